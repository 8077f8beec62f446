//! The packages of a monorepo, whose tests may share their names.
//!
//! A report with no files of its tests, or with files relative to its package, does not say which package they are of. So
//! the folder of the package leads the name or the file of each, also in a report of one package alone: a name does not
//! depend on the reports that arrive with it.

use assay_domain::test::TestName;

use crate::{paths, piece::Piece, text};

/// Leads the names of tests without a file, and files that do not lie in the package, with the folder of the package, if
/// they are not unique in a repository.
pub(crate) fn lead_names(pieces: &mut [Piece]) {
    for piece in pieces
        .iter_mut()
        .filter(|piece| !piece.report.has_qualified_names)
    {
        let Some(package) = package(&piece.name) else {
            continue;
        };
        let lead = |name: &str| text::joined([package.as_str(), name]);
        let lead_test = |test: &mut TestName| match &mut test.file_path {
            Some(file) if is_relative_to(&package, file) => *file = paths::join(&package, file),
            Some(_) => {}
            None => test.name = lead(&test.name),
        };
        piece.report.passed_groups.iter_mut().for_each(lead_test);
        for test in &mut piece.report.tests {
            lead_test(&mut test.test);
            if test.test.file_path.is_none()
                && let Some(shown) = &mut test.shown_as.name
            {
                *shown = lead(shown);
            }
        }
    }
}

/// Whether a file of a report is relative to the report's package: it is neither absolute nor outside, and does not begin with
/// a folder of packages, as one relative to the checkout does.
fn is_relative_to(package: &str, file: &str) -> bool {
    let first = |path: &str| path.split('/').next().unwrap_or_default().to_owned();
    let begins = first(file);
    !paths::is_absolute(file) && begins != ".." && begins != first(package) && !PARENTS.contains(&&*begins)
}

/// A file relative to its package, as a runner knows it that runs there: `src/a.test.ts` of `packages/shop/src/a.test.ts`.
pub fn within_package(file: &str) -> &str {
    let mut parts = file.splitn(3, '/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(parent), Some(_), Some(own)) if PARENTS.contains(&parent) => own,
        _ => file,
    }
}

/// A name without the folder of the package that leads it, as the runner knows it.
pub fn without_package(name: &str) -> &str {
    let led = name.split_once(text::JOINT);
    let led = led.filter(|(first, _)| package(&format!("{first}/")).as_deref() == Some(*first));
    led.map_or(name, |(_, own)| own)
}

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
pub(crate) fn package(name: &str) -> Option<String> {
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
    fn a_name_is_without_the_package_that_leads_it() {
        for (name, expected) in [
            (
                "packages/x > tests.test_shop > health",
                "tests.test_shop > health",
            ),
            ("web/apps/shop > App renders", "App renders"),
            (
                "example.org/shop/cart > TestPays",
                "example.org/shop/cart > TestPays",
            ),
            ("packages > adds", "packages > adds"),
            ("adds", "adds"),
        ] {
            assert_eq!(without_package(name), expected);
        }
    }

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
