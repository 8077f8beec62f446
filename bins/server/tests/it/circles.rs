//! No circle of more than three files in the programs: a reader can take each file by itself.
//!
//! An edge is a `use` or a path from one module to another. What a module hands on by `pub use`, and its tests, do not
//! count.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use syn::{
    Attribute, ItemMod, ItemUse, UseTree, Visibility,
    visit::{self, Visit},
};
use walkdir::WalkDir;

/// The path of a module below the crate's root.
type Module = Vec<String>;

#[test]
fn no_circle_of_files_in_a_program_is_larger_than_three() {
    for program in ["assay", "assay-admin", "server", "bench"] {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .join(program)
            .join("src");
        let modules = modules(&sources);
        let edges = edges(&modules);
        let count: usize = edges.values().map(BTreeSet::len).sum();
        assert!(count > modules.len(), "{program}: only {count} edges were found");
        for module in modules.keys() {
            let circle: Vec<_> = reached(&edges, module)
                .into_iter()
                .filter(|other| reached(&edges, other).contains(module))
                .map(|module| module.join("::"))
                .collect();
            assert!(circle.len() <= 3, "{program}: {circle:?}");
        }
    }
}

#[test]
fn every_form_of_a_use_is_an_edge() {
    let source = "use crate::{b, c::{d, Thing}}; use super::e; pub use crate::f; mod g; fn f() { crate::h::run(g::run()) } \
                  #[cfg(test)] mod tests { use crate::i; }";
    let module = |path: &str| -> Module { path.split("::").map(str::to_owned).collect() };
    let sources = ["a::x", "b", "c", "c::d", "a::e", "f", "a::x::g", "h", "i"].map(|path| {
        let source = if path == "a::x" { source } else { "" };
        (module(path), source.to_owned())
    });
    let modules = sources.into_iter().collect();
    let edges = edges(&modules);
    let found: Vec<_> = edges[&module("a::x")]
        .iter()
        .map(|module| module.join("::"))
        .collect();
    assert_eq!(found, ["a::e", "a::x::g", "b", "c", "c::d", "h"]);
}

/// The sources of a crate by module.
fn modules(sources: &Path) -> BTreeMap<Module, String> {
    let files = WalkDir::new(sources)
        .into_iter()
        .map(|entry| entry.unwrap().into_path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    files
        .map(|path| {
            let relative = path.strip_prefix(sources).unwrap().with_extension("");
            let mut module: Module = relative
                .iter()
                .map(|name| name.to_string_lossy().into_owned())
                .collect();
            module.pop_if(|last| last == "mod");
            if module == ["main"] {
                module.clear();
            }
            (module, fs::read_to_string(&path).unwrap())
        })
        .collect()
}

fn edges(modules: &BTreeMap<Module, String>) -> BTreeMap<&Module, BTreeSet<&Module>> {
    let edges = |(module, source): (&'_ Module, &String)| {
        let mut paths = Paths::default();
        paths.visit_file(&syn::parse_file(source).unwrap());
        let targets = paths.0.iter().filter_map(|path| target(modules, module, path));
        targets
            .filter(|target| *target != module)
            .map(Clone::clone)
            .collect::<BTreeSet<Module>>()
    };
    modules
        .iter()
        .map(|(module, source)| {
            let targets = edges((module, source));
            (
                module,
                modules
                    .keys()
                    .filter(|module| targets.contains(*module))
                    .collect(),
            )
        })
        .collect()
}

/// The module that a path within `module` names, with the longest match.
fn target<'a>(modules: &'a BTreeMap<Module, String>, module: &Module, path: &[String]) -> Option<&'a Module> {
    let mut names = path.iter().peekable();
    let mut found = match names.peek()?.as_str() {
        "crate" => Vec::new(),
        "self" | "super" => module.clone(),
        name => {
            let child = [module.as_slice(), &[name.to_owned()]].concat();
            modules.contains_key(&child).then(|| module.clone())?
        }
    };
    if names
        .peek()
        .is_some_and(|name| *name == "crate" || *name == "self")
    {
        names.next();
    }
    while names.next_if(|name| *name == "super").is_some() {
        found.pop();
    }
    for name in names {
        let below = [found.as_slice(), &[name.clone()]].concat();
        if !modules.contains_key(&below) {
            break;
        }
        found = below;
    }
    modules.get_key_value(&found).map(|(module, _)| module)
}

/// The modules that can be reached from one.
fn reached<'a>(edges: &BTreeMap<&'a Module, BTreeSet<&'a Module>>, from: &Module) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&Module> = edges[from].iter().copied().collect();
    while let Some(module) = open.pop() {
        if let Some((module, targets)) = edges.get_key_value(module)
            && reached.insert(*module)
        {
            open.extend(targets);
        }
    }
    reached
}

/// The paths in a source, without those of its tests and of what it hands on.
#[derive(Default)]
struct Paths(Vec<Vec<String>>);

impl Paths {
    fn add(&mut self, before: &[String], tree: &UseTree) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.add(&with(&path.ident), &path.tree),
            UseTree::Name(name) => self.0.push(with(&name.ident)),
            UseTree::Rename(name) => self.0.push(with(&name.ident)),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add(before, tree)),
            UseTree::Glob(_) => self.0.push(before.to_vec()),
        }
    }
}

fn is_of_tests(attributes: &[Attribute]) -> bool {
    attributes
        .iter()
        .any(|attribute| attribute.path().is_ident("cfg"))
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if matches!(item.vis, Visibility::Inherited) {
            self.add(&[], &item.tree);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_of_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<_> = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string())
            .collect();
        if names.len() > 1 {
            self.0.push(names);
        }
        visit::visit_path(self, path);
    }
}
