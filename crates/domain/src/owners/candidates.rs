//! The files of a checkout that a path in a report may mean.

use std::{cmp::Ordering, collections::BTreeSet};

/// Most files of one name whose owners are compared.
pub(crate) const MOST: usize = 1_000;

/// The files and folders of a checkout, each ordered by its path from the end, so that those with one end are neighbours.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    files: Vec<Box<str>>,
    folders: Vec<Box<str>>,
}

/// The paths that a file of a report may mean.
#[derive(Debug, Default)]
pub(crate) struct Meant {
    /// At most [`MOST`] of them.
    pub(crate) paths: Vec<String>,
    /// Whether there are more.
    pub(crate) has_more: bool,
}

impl Candidates {
    /// The files of a list with one path per line.
    pub(crate) fn of(list: &str) -> Self {
        let lines = || list.lines().map(str::trim).filter(|line| !line.is_empty());
        let folders: BTreeSet<&str> = lines().map(folder).collect();
        Self {
            files: by_end(lines()),
            folders: by_end(folders.into_iter()),
        }
    }

    /// The approximate memory use in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let paths = self.files.iter().chain(&self.folders);
        paths.map(|path| path.len() + size_of::<Box<str>>()).sum()
    }

    /// The file with exactly this path, else the files that end with it. If there are none, the file may be new: then the files of this name in each folder
    /// that ends with its folder. If there is no such folder either, the path itself.
    pub(crate) fn meant(&self, path: &str) -> Meant {
        let mut files = with_end(&self.files, path);
        if files.paths.iter().any(|file| file == path) {
            files = Meant {
                paths: vec![path.to_owned()],
                has_more: false,
            };
        }
        if !files.paths.is_empty() {
            return files;
        }
        let (of, name) = (folder(path), path.rsplit('/').next().unwrap_or(path));
        let mut folders = match of {
            "" => Meant {
                paths: self
                    .folders
                    .iter()
                    .take(MOST)
                    .map(|path| path.to_string())
                    .collect(),
                has_more: self.folders.len() > MOST,
            },
            of => with_end(&self.folders, of),
        };
        if folders.paths.is_empty() {
            folders.paths.push(of.to_owned());
        }
        for folder in &mut folders.paths {
            *folder = match folder.as_str() {
                "" => name.to_owned(),
                folder => format!("{folder}/{name}"),
            };
        }
        folders
    }
}

/// The folder of a path; empty for a file of the root.
fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn by_end<'a>(paths: impl Iterator<Item = &'a str>) -> Vec<Box<str>> {
    let mut paths: Vec<Box<str>> = paths.map(Box::from).collect();
    paths.sort_unstable_by(|left, right| from_end(left, right));
    paths.dedup();
    paths
}

fn from_end(left: &str, right: &str) -> Ordering {
    left.bytes().rev().cmp(right.bytes().rev())
}

/// The paths that are `end`, or that end with it after a `/`.
fn with_end(paths: &[Box<str>], end: &str) -> Meant {
    let below = format!("/{end}");
    let from = |text: &str| paths.partition_point(|path| from_end(path, text) == Ordering::Less);
    let whole = paths.get(from(end)).filter(|path| &***path == end);
    let deeper = paths
        .get(from(&below)..)
        .unwrap_or_default()
        .iter()
        .take_while(|path| path.ends_with(&below));
    let mut found: Vec<String> = whole
        .into_iter()
        .chain(deeper)
        .take(MOST + 1)
        .map(|path| path.to_string())
        .collect();
    let has_more = found.len() > MOST;
    found.truncate(MOST);
    Meant {
        paths: found,
        has_more,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_files_with_an_end_are_those_of_a_plain_search(
            files in proptest::collection::btree_set("[ab]{1,2}(/[ab]{1,2}){0,3}", 0..30),
            end in "[ab]{1,2}(/[ab]{1,2}){0,2}",
        ) {
            let list = files.iter().cloned().collect::<Vec<_>>().join("\n");
            let candidates = Candidates::of(&list);
            let found: BTreeSet<String> = with_end(&candidates.files, &end).paths.into_iter().collect();
            let below = format!("/{end}");
            let expected: BTreeSet<String> =
                files.into_iter().filter(|file| *file == end || file.ends_with(&below)).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
