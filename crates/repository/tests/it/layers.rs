//! Each layer of the sources uses only itself and the layers before it.

use std::{fs, path::Path};

/// The folders of the layers, each after those that it may use.
const LAYERS: [&str; 4] = ["db", "read", "record", "admin"];

#[test]
fn a_layer_uses_only_the_layers_before_it() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut uses = 0;
    for (level, layer) in LAYERS.iter().enumerate() {
        let mut folders = vec![sources.join(layer)];
        while let Some(folder) = folders.pop() {
            for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                for (used_level, used_layer) in LAYERS.iter().enumerate() {
                    if names(&fs::read_to_string(&path).unwrap(), used_layer) {
                        assert!(used_level <= level, "{} uses {used_layer}", path.display());
                        uses += 1;
                    }
                }
            }
        }
    }
    assert!(uses >= 40, "only {uses} uses were found");
}

/// Whether a source names a module of this layer.
fn names(source: &str, layer: &str) -> bool {
    // The compact form, and a line of the list form.
    let (path, item) = (format!("crate::{layer}::"), format!("{layer}::"));
    source.lines().any(|line| {
        line.contains(&path)
            || line
                .strip_prefix("    ")
                .is_some_and(|line| line.starts_with(&item))
    })
}
