//! The page on dependencies and the manifest.

use std::{collections::BTreeSet, fs};

use super::root;

#[test]
fn every_dependency_is_documented() {
    let read = |file: &str| fs::read_to_string(root().join(file)).unwrap();
    let manifest = read("Cargo.toml");
    let (_, dependencies) = manifest.split_once("[workspace.dependencies]\n").unwrap();
    let (dependencies, _) = dependencies.split_once("\n[").unwrap();
    let used: BTreeSet<_> = dependencies
        .lines()
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, _)| name)
        .filter(|name| !name.starts_with("assay-"))
        .collect();
    assert!(used.len() > 40, "{used:?}");

    let page = read("docs/dependencies.md");
    let named: BTreeSet<_> = page
        .split(|char: char| !char.is_ascii_alphanumeric() && char != '-' && char != '_')
        .collect();
    let undocumented: Vec<_> = used.difference(&named).collect();
    assert!(undocumented.is_empty(), "not on the page: {undocumented:?}");

    let (programs, _) = page.split_once("## For development only").unwrap();
    let rows = programs.lines().filter_map(|line| line.strip_prefix("| "));
    let named = rows.skip(1).flat_map(|row| {
        let names = row.split(" | ").next().unwrap().split(", ");
        names.map(|name| name.split(' ').next().unwrap())
    });
    let gone: Vec<_> = named.filter(|name| !used.contains(name)).collect();
    assert!(gone.is_empty(), "no longer in the manifest: {gone:?}");
}
