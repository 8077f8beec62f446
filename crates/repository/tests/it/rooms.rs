//! The rooms of the sources use only those before them.

use std::{fs, path::Path};

/// The rooms in the order of their dependencies.
const ROOMS: [&str; 4] = ["db", "read", "record", "admin"];

#[test]
fn a_room_uses_only_the_rooms_before_it() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut uses = 0;
    for (floor, room) in ROOMS.iter().enumerate() {
        let mut folders = vec![sources.join(room)];
        while let Some(folder) = folders.pop() {
            for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                for (other, used) in ROOMS.iter().enumerate() {
                    if names(&fs::read_to_string(&path).unwrap(), used) {
                        assert!(other <= floor, "{} uses {used}", path.display());
                        uses += 1;
                    }
                }
            }
        }
    }
    assert!(uses >= 40, "only {uses} uses were found");
}

/// Whether a source names a module of this room.
fn names(source: &str, room: &str) -> bool {
    // The compact form, and a line of the list form.
    let (path, item) = (format!("crate::{room}::"), format!("{room}::"));
    source.lines().any(|line| {
        line.contains(&path)
            || line
                .strip_prefix("    ")
                .is_some_and(|line| line.starts_with(&item))
    })
}
