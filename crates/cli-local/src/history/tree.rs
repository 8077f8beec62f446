//! A tree of reports whose paths name the run, the branch and the commit.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::ensure;

use crate::sources::files;

/// The names that a pattern may have.
const NAMES: [&str; 5] = ["run", "branch", "commit", "job", "attempt"];

/// A pattern such as `{branch}/{run}-{commit}/*`. Each part matches one folder of a path; the last one may be followed by
/// any others.
#[derive(Debug, Clone)]
pub struct PathPattern(Vec<Vec<Piece>>);

#[derive(Debug, Clone)]
enum Piece {
    Text(String),
    /// A name, or `*`.
    Any(Option<&'static str>),
}

/// The reports of a run, or of one job of it.
#[derive(Debug, Default)]
pub struct TreeRun {
    /// The values that the path names.
    pub values: BTreeMap<&'static str, String>,
    /// Its files.
    pub files: Vec<PathBuf>,
}

/// A part of a path in the order of people: `run-9` before `run-10`.
type Ordered = Vec<(Reverse<bool>, u128, String)>;

impl PathPattern {
    /// Parses a pattern.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        for part in text.trim_matches('/').split('/') {
            let (mut pieces, mut rest) = (Vec::new(), part);
            while let Some(at) = rest.find(['{', '*']) {
                let (before, after) = rest.split_at(at);
                if !before.is_empty() {
                    pieces.push(Piece::Text(before.to_owned()));
                }
                if let Some(after) = after.strip_prefix('*') {
                    pieces.push(Piece::Any(None));
                    rest = after;
                    continue;
                }
                let (name, after) = after
                    .trim_start_matches('{')
                    .split_once('}')
                    .ok_or("a { has no }")?;
                let known = NAMES.iter().find(|known| **known == name);
                let known =
                    known.ok_or_else(|| format!("{{{name}}} is unknown; expected {}", NAMES.join(", ")))?;
                pieces.push(Piece::Any(Some(*known)));
                rest = after;
            }
            if !rest.is_empty() {
                pieces.push(Piece::Text(rest.to_owned()));
            }
            parts.push(pieces);
        }
        match parts
            .iter()
            .flatten()
            .any(|piece| matches!(piece, Piece::Any(Some("run"))))
        {
            true => Ok(Self(parts)),
            false => Err("expected {run} in it, such as {branch}/{run}-{commit}".to_owned()),
        }
    }

    /// The values in a path. None if the path does not match.
    fn values(&self, path: &str) -> Option<BTreeMap<&'static str, String>> {
        let mut values = BTreeMap::new();
        let mut folders = path.split('/');
        for pieces in &self.0 {
            match_part(pieces, folders.next()?, &mut values).then_some(())?;
        }
        Some(values)
    }
}

/// Matches a part of a path. A name takes as little as the text after it allows.
fn match_part(pieces: &[Piece], text: &str, values: &mut BTreeMap<&'static str, String>) -> bool {
    match pieces {
        [] => text.is_empty(),
        [Piece::Text(expected), rest @ ..] => text
            .strip_prefix(expected.as_str())
            .is_some_and(|after| match_part(rest, after, values)),
        [Piece::Any(name), rest @ ..] => {
            let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
            ends.into_iter().any(|end| {
                let (value, after) = text.split_at(end);
                let matches = match_part(rest, after, values);
                if let (true, Some(name)) = (matches, name) {
                    values.insert(*name, value.to_owned());
                }
                matches
            })
        }
    }
}

/// The runs below a folder, in the order of their names, and the number of files that do not match.
pub fn runs(folder: &Path, pattern: &PathPattern) -> anyhow::Result<(Vec<TreeRun>, usize)> {
    let candidates = files::candidates(&[folder.to_owned()], &[])?;
    let mut runs: BTreeMap<(Ordered, BTreeMap<&'static str, String>), TreeRun> = BTreeMap::new();
    let mut others = 0;
    for candidate in candidates {
        let below = candidate.path.strip_prefix(folder).unwrap_or(&candidate.path);
        let Some(values) = pattern.values(&below.to_string_lossy().replace('\\', "/")) else {
            others += 1;
            continue;
        };
        let order = values.get("run").map(|run| ordered(run)).unwrap_or_default();
        let run = runs.entry((order, values.clone())).or_default();
        run.values = values;
        run.files.push(candidate.path);
    }
    ensure!(
        !runs.is_empty(),
        "no report below {} has a path of the pattern; {others} other files were found",
        assay_reports::shown_path(folder)
    );
    Ok((runs.into_values().collect(), others))
}

/// Splits a name into its numbers and the texts between them.
fn ordered(name: &str) -> Ordered {
    let mut parts: Ordered = Vec::new();
    for c in name.chars() {
        let is_digit = c.is_ascii_digit();
        match parts.last_mut() {
            Some((Reverse(number), _, text)) if *number == is_digit => text.push(c),
            Some(_) | None => parts.push((Reverse(is_digit), 0, c.to_string())),
        }
    }
    for (_, number, text) in &mut parts {
        *number = text.parse().unwrap_or(0);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_takes_the_values_from_a_path() {
        let pattern = PathPattern::parse("builds/{branch}/{run}-{commit}/*").unwrap();
        let values = |path: &str| {
            let values = pattern.values(path)?;
            let joined: Vec<_> = values
                .into_iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            Some(joined.join(" "))
        };
        assert_eq!(
            values("builds/main/812-c0ffee/out/junit.xml").as_deref(),
            Some("branch=main commit=c0ffee run=812")
        );
        assert_eq!(values("builds/main/812"), None);
        assert_eq!(values("other/main/812-c0ffee/junit.xml"), None);
        assert!(PathPattern::parse("{branch}").unwrap_err().contains("{run}"));
        assert!(
            PathPattern::parse("{run}/{brunch}")
                .unwrap_err()
                .contains("{brunch}")
        );
        assert!(PathPattern::parse("{run").is_err());
        assert!(ordered("run-9") < ordered("run-10") && ordered("9") < ordered("10a"));
    }
}
