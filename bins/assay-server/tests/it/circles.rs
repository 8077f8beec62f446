//! No circle of more than three source files: a reader who opens one file of a larger circle has to know all of them.
//!
//! A file uses another one if it names an item of it, in a `use` or in a path. Re-exports are followed to the file that
//! defines the item, and are no use themselves. Tests do not count.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use quote::ToTokens as _;
use syn::{
    Attribute, File, Item, UseTree, Visibility,
    visit::{self, Visit},
};

/// Most files that may use each other in a circle.
const LARGEST_CIRCLE: usize = 3;

#[test]
fn at_most_three_files_use_each_other_in_a_circle() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut too_large = Vec::new();
    let (mut crates, mut uses) = (0, 0);
    for folder in ["crates", "bins", "tools"] {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let sources = entry.unwrap().path().join("src");
            let Some(main) = ["lib.rs", "main.rs"]
                .map(|name| sources.join(name))
                .into_iter()
                .find(|main| main.is_file())
            else {
                continue;
            };
            let graph = Sources::read(&main).graph();
            crates += 1;
            uses += graph.values().map(BTreeSet::len).sum::<usize>();
            for circle in circles(&graph) {
                if circle.len() > LARGEST_CIRCLE {
                    let names = circle
                        .iter()
                        .map(|file| file.strip_prefix(&sources).unwrap().display());
                    let names: Vec<String> = names.map(|name| name.to_string()).collect();
                    too_large.push(format!("{}: {}", sources.display(), names.join(" ")));
                }
            }
        }
    }
    assert!(crates > 15 && uses > 1_000, "{crates} crates with {uses} uses");
    assert!(too_large.is_empty(), "{too_large:#?}");
}

#[test]
fn a_use_is_followed_to_the_file_that_defines_the_item() {
    let folder = tempfile::tempdir().unwrap();
    for (name, source) in [
        (
            "lib.rs",
            "mod a; mod b; pub use a::A; pub(crate) struct Shared; fn f() { b::g() }",
        ),
        ("a.rs", "use crate::b::{B, inner::C}; pub struct A(B, C);"),
        (
            "b/mod.rs",
            "pub use self::inner::C; mod inner; pub struct B; pub fn g() {}",
        ),
        (
            "b/inner.rs",
            "pub struct C(crate::A); impl super::super::Shared {} #[cfg(test)] mod tests { use crate::b::B; }",
        ),
    ] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, source).unwrap();
    }
    let graph = Sources::read(&folder.path().join("lib.rs")).graph();
    let name = |path: &Path| path.strip_prefix(folder.path()).unwrap().display().to_string();
    let found: BTreeMap<String, Vec<String>> = graph
        .iter()
        .map(|(file, used)| (name(file), used.iter().map(|used| name(used)).collect()))
        .collect();
    let expected = [
        ("a.rs", vec!["b/inner.rs", "b/mod.rs"]),
        ("b/inner.rs", vec!["a.rs", "lib.rs"]),
        ("lib.rs", vec!["b/mod.rs"]),
    ];
    let expected =
        expected.map(|(file, used)| (file.to_owned(), used.into_iter().map(str::to_owned).collect()));
    assert_eq!(found, BTreeMap::from(expected));
    let circles: Vec<usize> = circles(&graph).iter().map(Vec::len).collect();
    assert_eq!(circles, [2]);
}

/// The path of a module, empty for the root of a crate.
type ModulePath = Vec<String>;

#[derive(Default)]
struct Module {
    file: PathBuf,
    children: BTreeSet<String>,
    /// What its `use` items name, by the name that they give it.
    imports: Vec<(String, Vec<String>)>,
    /// The paths that end with `*`.
    globs: Vec<Vec<String>>,
    /// The names of items that it defines.
    items: BTreeSet<String>,
    /// The paths that its source uses.
    used: Vec<Vec<String>>,
}

/// The modules of a crate.
#[derive(Default)]
struct Sources(BTreeMap<ModulePath, Module>);

impl Sources {
    fn read(main: &Path) -> Self {
        let mut sources = Self::default();
        sources.read_file(Vec::new(), main, main.parent().unwrap());
        sources
    }

    /// Reads a file of a module whose children lie in `folder`.
    fn read_file(&mut self, module: ModulePath, file: &Path, folder: &Path) {
        let File { items, .. } = syn::parse_file(&fs::read_to_string(file).unwrap()).unwrap();
        self.read_items(module, file, folder, &items);
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a later version of syn may have further kinds of items"
    )]
    fn read_items(&mut self, path: ModulePath, file: &Path, folder: &Path, items: &[Item]) {
        let mut module = Module {
            file: file.to_owned(),
            ..Module::default()
        };
        for item in items {
            match item {
                Item::Mod(child) if !is_test(&child.attrs) => {
                    let name = child.ident.to_string();
                    let path = [path.clone(), vec![name.clone()]].concat();
                    let inside = folder.join(&name);
                    if let Some((_, items)) = &child.content {
                        self.read_items(path, file, &inside, items);
                    } else {
                        let beside = folder.join(format!("{name}.rs"));
                        let source = if beside.is_file() {
                            beside
                        } else {
                            inside.join("mod.rs")
                        };
                        self.read_file(path, &source, &inside);
                    }
                    module.children.insert(name);
                }
                Item::Use(item) if !is_test(&item.attrs) => {
                    let is_private = matches!(item.vis, Visibility::Inherited);
                    module.import(&item.tree, &mut Vec::new(), is_private);
                }
                Item::Mod(_) | Item::Use(_) => {}
                item => {
                    module.items.extend(name_of(item));
                    let mut paths = Paths(Vec::new());
                    paths.visit_item(item);
                    module.used.append(&mut paths.0);
                }
            }
        }
        self.0.insert(path, module);
    }

    /// The files that each file uses.
    fn graph(&self) -> BTreeMap<PathBuf, BTreeSet<PathBuf>> {
        let mut graph: BTreeMap<PathBuf, BTreeSet<PathBuf>> = BTreeMap::new();
        for (path, module) in &self.0 {
            for used in &module.used {
                if let Some(file) = self.file_of(path, used, 0)
                    && *file != *module.file
                {
                    graph
                        .entry(module.file.clone())
                        .or_default()
                        .insert(file.to_owned());
                }
            }
        }
        graph
    }

    /// The file that defines what a path in a module names; `None` if it is of another crate.
    fn file_of(&self, from: &[String], path: &[String], depth: usize) -> Option<&Path> {
        if depth > 20 {
            return None;
        }
        let mut at = from.to_vec();
        let mut is_first = true;
        for (place, segment) in path.iter().enumerate() {
            let module = self.0.get(&at)?;
            match segment.as_str() {
                "crate" => at.clear(),
                "self" if is_first => {}
                "super" => drop(at.pop()?),
                name if module.children.contains(name) => at.push(name.to_owned()),
                name => {
                    let rest = path.get(place + 1..).unwrap_or_default();
                    let imported = module.imports.iter().filter(|(known, _)| known == name);
                    for (_, target) in imported {
                        let target = [target.as_slice(), rest].concat();
                        // A name from itself, as in `use time; time::at()`, is of another crate.
                        if target != path || at != from {
                            return self.file_of(&at, &target, depth + 1);
                        }
                    }
                    if module.items.contains(name) {
                        return Some(&module.file);
                    }
                    for glob in &module.globs {
                        let target = [glob.as_slice(), path.get(place..).unwrap_or_default()].concat();
                        if let Some(file) = self.file_of(&at, &target, depth + 1) {
                            return Some(file);
                        }
                    }
                    // A name of the prelude or of another crate.
                    return if is_first { None } else { Some(&module.file) };
                }
            }
            is_first = false;
        }
        self.0.get(&at).map(|module| module.file.as_path())
    }
}

impl Module {
    fn import(&mut self, tree: &UseTree, path: &mut Vec<String>, is_private: bool) {
        let add = |module: &mut Self, name: String, path: Vec<String>| {
            if is_private {
                module.used.push(path.clone());
            }
            module.imports.push((name, path));
        };
        match tree {
            UseTree::Path(step) => {
                path.push(step.ident.to_string());
                self.import(&step.tree, path, is_private);
                path.pop();
            }
            UseTree::Name(name) if name.ident == "self" => {
                let last = path.last().cloned().unwrap_or_default();
                add(self, last, path.clone());
            }
            UseTree::Name(name) => {
                let name = name.ident.to_string();
                add(self, name.clone(), [path.as_slice(), &[name]].concat());
            }
            UseTree::Rename(name) => {
                let target = [path.as_slice(), &[name.ident.to_string()]].concat();
                add(self, name.rename.to_string(), target);
            }
            UseTree::Glob(_) => {
                if is_private {
                    self.used.push(path.clone());
                }
                self.globs.push(path.clone());
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, path, is_private);
                }
            }
        }
    }
}

/// Whether an item is only compiled for tests.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes
        .iter()
        .any(|attribute| attribute.meta.to_token_stream().to_string() == "cfg (test)")
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a later version of syn may have further kinds of items"
)]
fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        _ => return None,
    };
    Some(name.to_string())
}

/// Collects the paths of more than one name in an item.
struct Paths(Vec<Vec<String>>);

impl<'ast> Visit<'ast> for Paths {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string())
            .collect();
        if names.len() > 1 {
            self.0.push(names);
        }
        visit::visit_path(self, path);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_test(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }
}

/// The sets of files of which each uses each other one, directly or not.
fn circles(graph: &BTreeMap<PathBuf, BTreeSet<PathBuf>>) -> Vec<Vec<PathBuf>> {
    let reachable: BTreeMap<&PathBuf, BTreeSet<&PathBuf>> = graph
        .keys()
        .map(|file| {
            let mut found = BTreeSet::new();
            let mut open = vec![file];
            while let Some(file) = open.pop() {
                for used in graph.get(file).into_iter().flatten() {
                    if found.insert(used) {
                        open.push(used);
                    }
                }
            }
            (file, found)
        })
        .collect();
    let reaches = |from: &PathBuf, to: &PathBuf| reachable.get(from).is_some_and(|found| found.contains(to));
    let mut circles: Vec<Vec<PathBuf>> = Vec::new();
    for file in graph.keys() {
        if reaches(file, file) && !circles.iter().flatten().any(|known| known == file) {
            let members = graph
                .keys()
                .filter(|other| reaches(file, other) && reaches(other, file));
            circles.push(members.cloned().collect());
        }
    }
    circles
}
