//! The renames file of a checkout, and suggestions for it by the renames that git recognises and those of a run.

use std::{collections::HashSet, fmt, path::Path};

use assay_domain::{
    renames::{RenamesFile, quoted},
    test::TestName,
};

use crate::sources::{
    git::{GitError, git},
    owners::{read_at_most, repository},
};

/// The renames file of the repository that contains this folder, or of the folder itself if it is in no repository. A
/// repository without one gets an empty one. None if neither is found. Also returns warnings.
pub fn renames(folder: &Path) -> anyhow::Result<(Option<RenamesFile>, Vec<String>)> {
    let repository = repository(folder);
    let root = repository.as_deref().unwrap_or(folder);
    if !root.join(RenamesFile::PATH).is_file() {
        return Ok((repository.map(|_| RenamesFile::default()), Vec::new()));
    }
    Ok(
        match read_at_most(root, RenamesFile::PATH, RenamesFile::MOST_TEXT_BYTES)? {
            Ok(text) => (Some(RenamesFile { text }), Vec::new()),
            Err(too_large) => (
                None,
                vec![format!(
                    "{too_large}; the renames that were sent before still hold"
                )],
            ),
        },
    )
}

/// A line for the renames file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// The day, such as `2026-11-27`.
    date: String,
    kind: &'static str,
    old: String,
    new: String,
}

impl fmt::Display for Suggestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.date, self.rename())
    }
}

impl Suggestion {
    fn rename(&self) -> String {
        format!("{} {} -> {}", self.kind, quoted(&self.old), quoted(&self.new))
    }

    /// Whether a renames file has this line, with any date.
    pub fn is_in(&self, renames: &str) -> bool {
        let rename = self.rename();
        let mut lines = renames.lines().map(str::trim_end);
        lines.any(|line| {
            line.split_once(' ')
                .is_some_and(|(_, line)| line.trim_start() == rename)
        })
    }

    /// The lines for a test that a run reported under another name: of its file, its name, or both.
    pub fn of_test(date: &str, from: &TestName, to: &TestName) -> Vec<Self> {
        let suggestion = |kind, old: &str, new: &str| Self {
            date: date.to_owned(),
            kind,
            old: old.to_owned(),
            new: new.to_owned(),
        };
        let mut lines = Vec::new();
        if let (Some(old), Some(new)) = (&from.file_path, &to.file_path)
            && old != new
        {
            lines.push(suggestion("file", old, new));
        }
        if from.name != to.name {
            lines.push(suggestion("test", &from.name, &to.name));
        }
        lines
    }
}

/// The renames of files in the commits of the last days, oldest first. A file that exists again is left out.
pub fn of_git(root: &Path, days: u32) -> Result<Vec<Suggestion>, GitError> {
    let since = format!("--since={days} days ago");
    let options = [
        "--reverse",
        "--diff-filter=R",
        "--name-status",
        "--format=%x01%cs",
    ];
    let listed = git(root, &[&["log", "-M", "-z", &since], &options[..]].concat())?;
    let renames = renames_of_log(&listed).into_iter();
    Ok(renames
        .filter(|rename| !root.join(&rename.old).exists())
        .collect())
}

/// The renames of files that reports name, as they name them: from the root or from a folder of the checkout.
pub fn in_files(renames: Vec<Suggestion>, files: &HashSet<&str>) -> Vec<Suggestion> {
    let as_reported = |rename: Suggestion| {
        let folders = rename.new.match_indices('/').map(|(index, _)| index + 1);
        let mut starts = std::iter::once(0).chain(folders);
        let start = starts.find(|start| rename.new.get(*start..).is_some_and(|file| files.contains(file)))?;
        let (folder, new) = rename.new.split_at_checked(start)?;
        Some(Suggestion {
            old: rename.old.strip_prefix(folder)?.to_owned(),
            new: new.to_owned(),
            ..rename
        })
    };
    renames.into_iter().filter_map(as_reported).collect()
}

/// The renames of `git log -z --name-status`, whose commits begin with a byte 1 and their day.
fn renames_of_log(listed: &str) -> Vec<Suggestion> {
    let mut renames = Vec::new();
    for commit in listed.split('\u{1}') {
        let mut fields = commit.split('\0').map(|field| field.trim_start_matches('\n'));
        let date = fields.next().unwrap_or_default().trim();
        let mut fields = fields.filter(|field| !field.is_empty());
        while let (Some(status), Some(old), Some(new)) = (fields.next(), fields.next(), fields.next()) {
            if status.starts_with('R') {
                renames.push(Suggestion {
                    date: date.to_owned(),
                    kind: "file",
                    old: old.to_owned(),
                    new: new.to_owned(),
                });
            }
        }
    }
    renames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_of_git_is_read() {
        let listed = "\u{1}2026-11-20\0\nR100\0src/a.ts\0src/b.ts\0R090\0c d.ts\0e.ts\0\u{1}2026-11-27\0\nR100\0src/b.ts\0lib/b.ts\0";
        let lines: Vec<String> = renames_of_log(listed).iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "2026-11-20 file src/a.ts -> src/b.ts",
                "2026-11-20 file c d.ts -> e.ts",
                "2026-11-27 file src/b.ts -> lib/b.ts",
            ]
        );
    }

    #[test]
    fn a_file_is_named_as_reports_name_it() {
        let listed =
            "\u{1}2026-11-20\0\nR100\0web/src/a.ts\0web/src/b.ts\0R100\0api/a.ts\0web/src/c.ts\0R100\0x\0y\0";
        let files = HashSet::from(["src/b.ts", "src/c.ts"]);
        let lines = in_files(renames_of_log(listed), &files);
        let texts: Vec<String> = lines.iter().map(ToString::to_string).collect();
        // A file that comes from another package has no name in its reports.
        assert_eq!(texts, ["2026-11-20 file src/a.ts -> src/b.ts"]);
    }

    #[test]
    fn a_line_that_the_file_has_is_known_whatever_its_date() {
        let test = |name: &str, file: &str| TestName {
            name: name.to_owned(),
            file_path: Some(file.to_owned()),
        };
        let lines = Suggestion::of_test("2026-11-27", &test("a -> b", "x.ts"), &test("c", "y.ts"));
        let texts: Vec<String> = lines.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            ["2026-11-27 file x.ts -> y.ts", "2026-11-27 test \"a -> b\" -> c"]
        );
        let known = "# moved\n2026-11-01 file x.ts -> y.ts\n";
        assert_eq!(
            lines.iter().map(|line| line.is_in(known)).collect::<Vec<_>>(),
            [true, false]
        );
    }
}
