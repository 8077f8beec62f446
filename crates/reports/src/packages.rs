//! Tests of one name in the reports of several packages of a monorepo.
//!
//! A report without the files of its tests does not say which package they are of. Where two packages of one import
//! have a test of one name, the folder of the package leads the name of both.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    hash::BuildHasher as _,
};

use crate::{piece::Piece, report::ReportedTest, text};

/// Tells such tests apart, and returns a warning that names the packages.
pub(crate) fn tell_apart(pieces: &mut [Piece]) -> Option<String> {
    let packages: Vec<Option<String>> = pieces.iter().map(|piece| package(&piece.name)).collect();
    if packages.iter().flatten().collect::<BTreeSet<_>>().len() < 2 {
        return None;
    }
    let hasher = foldhash::fast::RandomState::default();
    let hash = |test: &ReportedTest| hasher.hash_one(&test.test);
    let is_of_unknown_file = |test: &&ReportedTest| test.test.file_path.is_none();
    let mut package_of: HashMap<u64, &str> = HashMap::new();
    let mut shared: HashSet<u64> = HashSet::new();
    let mut named: BTreeSet<&str> = BTreeSet::new();
    for (piece, package) in pieces.iter().zip(&packages) {
        let Some(package) = package else { continue };
        for test in piece.report.tests.iter().filter(is_of_unknown_file) {
            let other = *package_of.entry(hash(test)).or_insert(package);
            if other != package {
                shared.insert(hash(test));
                named.extend([other, package]);
            }
        }
    }
    if shared.is_empty() {
        return None;
    }
    for (piece, package) in pieces.iter_mut().zip(&packages) {
        let Some(package) = package else { continue };
        for test in &mut piece.report.tests {
            if test.test.file_path.is_none() && shared.contains(&hash(test)) {
                test.test.name = text::joined([package.as_str(), &test.test.name]);
            }
        }
    }
    let named: Vec<&str> = named.into_iter().take(MOST_NAMED).collect();
    Some(format!(
        "{} names of tests are those of several packages, and the folder of the package leads each: {}. Reports with the \
         files of their tests, or a --suite for each package, do not need this.",
        shared.len(),
        named.join(", ")
    ))
}

/// Most packages that the warning names.
const MOST_NAMED: usize = 5;

/// Folders whose subfolders are the packages of a monorepo.
const PARENTS: &[&str] = &[
    "apps",
    "components",
    "crates",
    "libs",
    "modules",
    "packages",
    "plugins",
    "projects",
    "services",
];

/// The folder of the package that a report lies in: `packages/shop` of `packages/shop/out/junit.xml`. The innermost one
/// counts. An absolute path begins with the folder that has the packages.
fn package(name: &str) -> Option<String> {
    let name = name.replace('\\', "/");
    let folders: Vec<&str> = name.rsplit_once('/')?.0.split('/').collect();
    let parent = folders
        .iter()
        .take(folders.len().saturating_sub(1))
        .rposition(|folder| PARENTS.contains(folder))?;
    let is_absolute = name.starts_with('/') || folders.first().is_some_and(|first| first.ends_with(':'));
    let first = if is_absolute { parent } else { 0 };
    Some(folders.get(first..=parent + 1)?.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_a_folder_below_one_that_holds_packages() {
        for (name, expected) in [
            ("packages/shop/junit.xml", Some("packages/shop")),
            (r"packages\shop\out\junit.xml", Some("packages/shop")),
            ("web/apps/shop/out/junit.xml", Some("web/apps/shop")),
            (
                "services/api/modules/pay/junit.xml",
                Some("services/api/modules/pay"),
            ),
            ("/home/ci/shop/packages/cart/junit.xml", Some("packages/cart")),
            ("packages/junit.xml", None),
            ("linux/junit.xml", None),
            ("junit.xml", None),
        ] {
            assert_eq!(package(name).as_deref(), expected, "{name}");
        }
    }
}
