//! Files that may be of one build: the legs of a matrix, and reruns of failed tests.
//!
//! A caller that reads a whole history selects such files by their paths: those of one folder or of sibling folders,
//! whose paths have the same numbers ([`build_key`]). Their content decides. Reports of one build start within an hour,
//! have tests in common and are of one revision.

use std::{collections::HashSet, sync::LazyLock};

use regex::Regex;

use assay_domain::{test::TestName, timestamp::Timestamp};

use crate::{
    import::NamedReport,
    merge::merge,
    piece::Piece,
    report::{ReadError, Report},
    reruns,
    text::pattern,
};

/// Milliseconds between the starts of two reports of one build.
const MOST_APART_MS: u64 = 60 * 60 * 1_000;

/// What the paths of files share if they may be of one build: the folder above their folders, and the numbers below
/// that folder. A number counts builds or runs unless it is a part of a word, such as that of `net8.0`, or of a retry.
pub fn build_key(path: &str) -> String {
    let path = path.replace('\\', "/");
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", &path));
    let (above, folder) = folder.rsplit_once('/').unwrap_or(("", folder));
    let below = reruns::without_number(&format!("{folder}/{file}"));
    let mut key = above.to_owned();
    for number in NUMBER.captures_iter(&below) {
        key.push('\0');
        key.push_str(number.get(1).map_or("", |number| number.as_str()));
    }
    key
}

/// A number that is no part of a word: `run-7.xml`, `build12/`, `2026-11-20/`.
static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?i)(?:^|[^\p{Alphabetic}\d.]|\b(?:build|job|junit|report|results?|run|tests?))(\d+)")
});

/// The runs of files with one [`build_key`]: each file is a run, except that a rerun of failed tests belongs to the run
/// whose tests it repeats, and the legs of a build are variants of one run.
pub(crate) fn runs(mut pieces: Vec<Piece>) -> Result<Vec<NamedReport>, ReadError> {
    let had_tests: Vec<bool> = pieces
        .iter()
        .map(|piece| !piece.report.tests.is_empty())
        .collect();
    let reruns = reruns::join(&mut pieces);
    let mut had_tests = had_tests.into_iter();
    // The results of a rerun were moved into the file that they repeat.
    pieces.retain(|piece| !(had_tests.next() == Some(true) && piece.report.tests.is_empty()));
    if let (Some(warning), Some(first)) = (reruns.retries, pieces.first_mut()) {
        first.report.warnings.push(warning);
    }
    let mut builds: Vec<Vec<Piece>> = Vec::new();
    for piece in pieces {
        let is_leg = |build: &&mut Vec<Piece>| {
            build
                .iter()
                .all(|other| may_be_legs(&other.report, &piece.report))
                && build.iter().any(|other| overlap(&other.report, &piece.report))
        };
        match builds.iter_mut().find(is_leg) {
            Some(build) => build.push(piece),
            None => builds.push(vec![piece]),
        }
    }
    let mut runs = Vec::new();
    for build in builds {
        let names: Vec<&str> = build.iter().map(|piece| &*piece.name).collect();
        let (name, variants) = match names.as_slice() {
            [only] => ((*only).to_owned(), vec![None]),
            several => {
                let (name, legs) = build_and_legs(several);
                (name, legs.into_iter().map(Some).collect())
            }
        };
        for (piece, variant) in build.into_iter().zip(variants) {
            runs.push(NamedReport {
                name: name.clone(),
                variant,
                modified: piece.modified,
                report: merge(vec![piece])?,
            });
        }
    }
    Ok(runs)
}

/// Whether nothing shows that two reports are of different builds.
fn may_be_legs(one: &Report, other: &Report) -> bool {
    let differ = |one: Option<&str>, other: Option<&str>| matches!((one, other), (Some(one), Some(other)) if one != other);
    let apart = |one: Timestamp, other: Timestamp| one.since_ms(other).unsigned_abs();
    let (one_context, other_context) = (&one.context, &other.context);
    let starts = one.started_at.zip(other.started_at);
    starts.is_some_and(|(one, other)| apart(one, other) <= MOST_APART_MS)
        && !differ(one_context.revision(), other_context.revision())
        && !differ(one_context.branch.as_deref(), other_context.branch.as_deref())
        && !differ(one_context.run_url.as_deref(), other_context.run_url.as_deref())
}

/// Whether two reports have a test in common.
fn overlap(one: &Report, other: &Report) -> bool {
    let tests: HashSet<&TestName> = one.tests.iter().map(|test| &test.test).collect();
    other.tests.iter().any(|test| tests.contains(&test.test))
}

/// The names of a build and of its legs. That of the build has a star in place of the part in which the names of the
/// files differ, which is the leg.
fn build_and_legs(names: &[&str]) -> (String, Vec<String>) {
    let is_word = |c: char| c.is_alphanumeric() || c == '.';
    let first = names.first().copied().unwrap_or_default();
    let begin = first
        .get(..common_prefix(names))
        .unwrap_or_default()
        .trim_end_matches(is_word)
        .len();
    let reversed: Vec<String> = names.iter().map(|name| name.chars().rev().collect()).collect();
    let reversed: Vec<&str> = reversed.iter().map(String::as_str).collect();
    let suffix = reversed
        .first()
        .and_then(|name| name.get(..common_prefix(&reversed)));
    let suffix: String = suffix.unwrap_or_default().chars().rev().collect();
    // The differing part ends with its word.
    let end = suffix.trim_start_matches(char::is_alphanumeric).len();
    let leg = |name: &&str| {
        let end = name.len().saturating_sub(end).max(begin);
        let leg = name.get(begin..end).unwrap_or(name);
        match leg.trim_matches(|c: char| !c.is_alphanumeric()) {
            "" => (*name).to_owned(),
            leg => leg.to_owned(),
        }
    };
    let ending = first
        .get(first.len().saturating_sub(end).max(begin)..)
        .unwrap_or_default();
    let build = format!("{}*{ending}", first.get(..begin).unwrap_or_default());
    (build, names.iter().map(leg).collect())
}

/// The bytes that all texts begin with.
fn common_prefix(texts: &[&str]) -> usize {
    let first = texts.first().copied().unwrap_or_default();
    let is_common = |(at, c): &(usize, char)| {
        texts
            .iter()
            .all(|text| text.get(*at..).is_some_and(|rest| rest.starts_with(*c)))
    };
    first
        .char_indices()
        .take_while(is_common)
        .last()
        .map_or(0, |(at, c)| at + c.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_folder_or_of_siblings_may_be_of_one_build_unless_their_numbers_differ() {
        for (one, other) in [
            ("builds/10/shop_net48.trx", "builds/10/shop_net8.0.trx"),
            ("b/net6.0/r.trx", "b/net8.0/r.trx"),
            ("b/10/linux/r.xml", "b/10/windows/r.xml"),
            ("linux-7.xml", "windows-7.xml"),
            ("r/py39.xml", "r/py311.xml"),
            ("r/junit.xml", "r/junit-retry-1.xml"),
        ] {
            assert_eq!(build_key(one), build_key(other), "{one} {other}");
        }
        for (one, other) in [
            ("run-1.xml", "run-2.xml"),
            ("r/run1.xml", "r/run2.xml"),
            ("builds/10/r.xml", "builds/11/r.xml"),
            ("2026-11-20/r.xml", "2026-11-21/r.xml"),
            ("b/10/linux/r.xml", "b/11/windows/r.xml"),
            ("a/b/r.xml", "c/d/r.xml"),
        ] {
            assert_ne!(build_key(one), build_key(other), "{one} {other}");
        }
    }

    #[test]
    fn a_leg_is_the_part_in_which_the_names_differ() {
        for (names, build, legs) in [
            (
                ["b/10/shop_net48.trx", "b/10/shop_net8.0.trx"],
                "b/10/shop_*.trx",
                ["net48", "net8.0"],
            ),
            (
                ["b/linux/r.xml", "b/windows/r.xml"],
                "b/*/r.xml",
                ["linux", "windows"],
            ),
            (["linux-7.xml", "windows-7.xml"], "*-7.xml", ["linux", "windows"]),
            (
                ["r/junit.xml", "r/junit-win.xml"],
                "r/*.xml",
                ["junit", "junit-win"],
            ),
        ] {
            assert_eq!(
                build_and_legs(&names),
                (build.to_owned(), legs.map(str::to_owned).to_vec())
            );
        }
    }
}
