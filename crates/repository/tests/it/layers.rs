//! Each layer of the sources uses only itself and the layers before it.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use syn::{
    ItemUse, UseTree,
    visit::{self, Visit},
};

/// The layers, each a folder or a file, and each after those that it may use. A name that the crate's root re-exports is
/// that of its layer.
const LAYERS: [(&str, &[&str]); 6] = [
    ("db", &[]),
    ("read", &[]),
    ("database", &["Database", "WaitingFor"]),
    ("record", &[]),
    ("admin", &[]),
    ("store", &[]),
];

#[test]
fn a_layer_uses_only_the_layers_before_it() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut uses = 0;
    for (level, (layer, _)) in LAYERS.iter().enumerate() {
        for file in files(&sources, layer) {
            for name in used(&fs::read_to_string(&file).unwrap()) {
                let Some(used_level) = level_of(&name) else {
                    continue;
                };
                assert!(used_level <= level, "{} uses {name}", file.display());
                uses += usize::from(used_level < level);
            }
        }
    }
    assert!(uses >= 100, "only {uses} uses were found");
}

#[test]
fn every_form_of_a_use_is_found() {
    let source = "use crate::db::pool; use crate::{Database, read::{run, test}}; fn f() { crate::admin::tables::all() } \
                  mod inner { use super::super::record; } use diesel::Connection;";
    let found: Vec<String> = used(source).into_iter().collect();
    assert_eq!(found, ["Database", "admin", "db", "read"]);
}

fn level_of(name: &str) -> Option<usize> {
    LAYERS
        .iter()
        .position(|(layer, reexported)| *layer == name || reexported.contains(&name))
}

/// The files of a layer.
fn files(sources: &Path, layer: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut open = vec![sources.join(layer)];
    while let Some(folder) = open.pop().filter(|folder| folder.is_dir()) {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                open.push(path);
            } else {
                files.push(path);
            }
        }
    }
    let alone = sources.join(layer).with_extension("rs");
    files.extend(Some(alone).filter(|file| file.is_file()));
    assert!(!files.is_empty(), "{layer}");
    files
}

/// The first names of the paths from the crate's root in a source.
fn used(source: &str) -> BTreeSet<String> {
    let mut used = Used::default();
    used.visit_file(&syn::parse_file(source).unwrap());
    used.0
}

#[derive(Default)]
struct Used(BTreeSet<String>);

impl Used {
    fn add_first_of(&mut self, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => {
                self.0.insert(path.ident.to_string());
            }
            UseTree::Name(name) => {
                self.0.insert(name.ident.to_string());
            }
            UseTree::Rename(name) => {
                self.0.insert(name.ident.to_string());
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add_first_of(tree)),
            UseTree::Glob(_) => {}
        }
    }
}

impl<'ast> Visit<'ast> for Used {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if let UseTree::Path(path) = &item.tree
            && path.ident == "crate"
        {
            self.add_first_of(&path.tree);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let mut names = path.segments.iter().map(|segment| segment.ident.to_string());
        if names.next().is_some_and(|first| first == "crate") {
            self.0.extend(names.next());
        }
        visit::visit_path(self, path);
    }
}
