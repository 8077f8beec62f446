//! Whether a later report ran again what failed in an earlier one, and the executions that result.
//!
//! A report of a run may be followed by another one that repeats some of its tests: `pytest --last-failed`, a test
//! runner that writes each attempt into a file of its own, a job that CI repeats. A wrong guess would hide a failure.
//! Therefore the sender or the file's path says so, or the later report has failed tests of the earlier one and no
//! others ([`is_selection_of_failed`]). A leg of a matrix with fewer tests has tests that passed, too.

use std::{
    collections::{HashMap, HashSet},
    hash::Hash,
};

use crate::execution::Executions;

/// Whether a later report has only tests that failed in an earlier one, and not all tests of that report. Each test of
/// the earlier one is paired with whether it failed: whether the last attempt of some execution failed.
pub fn is_selection_of_failed<T: Hash + Eq>(
    earlier: impl IntoIterator<Item = (T, bool)>,
    later: impl IntoIterator<Item = T>,
) -> bool {
    let earlier: HashMap<T, bool> = earlier.into_iter().collect();
    let later: HashSet<T> = later.into_iter().collect();
    let has_failed = |test: &T| earlier.get(test).copied().unwrap_or_default();
    !later.is_empty() && later.len() < earlier.len() && later.iter().all(has_failed)
}

/// A report's path without the parts in which the files of repeated commands differ: numbers, times, uuids and words
/// for retries. Two paths with the same rest may be of one command.
pub fn without_attempt(path: &str) -> String {
    let folders = path.split(['/', '\\']).map(|name| {
        let words = name.split(|c: char| !c.is_alphanumeric());
        let words = words.filter(|word| !is_uuid_or_time(word)).map(|word| {
            let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
            let is_retry = RETRY_WORDS.iter().any(|retry| word.eq_ignore_ascii_case(retry));
            if is_retry { "" } else { word }
        });
        words
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join("-")
    });
    folders
        .filter(|name| !name.is_empty())
        .collect::<Vec<_>>()
        .join("/")
}

const RETRY_WORDS: &[&str] = &["attempt", "attempts", "rerun", "reruns", "retry", "retries"];

/// Whether a word is a part of a uuid, or a time such as `20261125T100000Z`.
fn is_uuid_or_time(word: &str) -> bool {
    let has_digit = word.contains(|c: char| c.is_ascii_digit());
    let is_hex = word.chars().all(|c| c.is_ascii_hexdigit());
    let is_time = word.starts_with(|c: char| c.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_digit() || matches!(c, 'T' | 'Z'));
    has_digit && (is_hex && matches!(word.len(), 4 | 8 | 12 | 32) || is_time)
}

/// Whether the report at one path may repeat the tests of the report at another: the folders differ in words for retries,
/// uuids and times only, and no path is that of another shard. Another number may be that of a leg, such as `node-20`.
pub fn may_repeat(one: &str, other: &str) -> bool {
    let are_other_shards = shard(one)
        .zip(shard(other))
        .is_some_and(|(one, other)| one != other);
    folder_without_attempt(one) == folder_without_attempt(other) && !are_other_shards
}

/// The folder of a report's path without words for retries, uuids and times. A path that ends with `/` is a folder.
fn folder_without_attempt(path: &str) -> Vec<String> {
    let folder = path.rsplit_once(['/', '\\']).map_or("", |(folder, _)| folder);
    let names = folder.split(['/', '\\']).map(|name| {
        let mut words: Vec<&str> = Vec::new();
        let mut is_after_retry = false;
        for word in name.split(|c: char| !c.is_alphanumeric()) {
            let is_number = !word.is_empty() && word.chars().all(|c| c.is_ascii_digit());
            let is_retry = RETRY_WORDS.iter().any(|retry| {
                word.trim_end_matches(|c: char| c.is_ascii_digit())
                    .eq_ignore_ascii_case(retry)
            });
            let is_short = word.len() < 6 && !has_date(name);
            if !(word.is_empty()
                || is_retry
                || is_after_retry && is_number
                || is_uuid_or_time(word) && !(is_number && is_short))
            {
                words.push(word);
            }
            is_after_retry = is_retry;
        }
        words.join("-")
    });
    names.filter(|name| !name.is_empty()).collect()
}

/// Whether a name has a date, such as `2026-11-25_10_00_00`.
fn has_date(name: &str) -> bool {
    let words: Vec<&str> = name.split(|c: char| !c.is_ascii_digit()).collect();
    words
        .windows(3)
        .any(|date| date.iter().map(|part| part.len()).eq([4, 2, 2]))
}

/// The number of the shard that a path names: `shard-2`, `2-of-3`.
fn shard(path: &str) -> Option<&str> {
    let words: Vec<&str> = path
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    words.windows(2).find_map(|pair| match *pair {
        [word, number] if word.eq_ignore_ascii_case("shard") => Some(number),
        [number, word] if word.eq_ignore_ascii_case("of") => Some(number),
        _ => None,
    })
}

impl<A> Executions<A> {
    /// These executions and those of a later report that ran the test again. A later execution continues one whose
    /// last attempt failed, the first of several. Each further execution is one more execution.
    #[must_use]
    pub fn continued_by(self, later: Self, has_failed: impl Fn(&[A]) -> bool) -> Self {
        let mut all: Vec<Vec<A>> = self.into_executions().collect();
        let mut failed: Vec<usize> = Vec::new();
        for (index, execution) in all.iter().enumerate() {
            if has_failed(execution) {
                failed.push(index);
            }
        }
        let mut failed = failed.into_iter();
        for execution in later.into_executions() {
            match failed.next().and_then(|index| all.get_mut(index)) {
                Some(earlier) => earlier.extend(execution),
                None => all.push(execution),
            }
        }
        let mut continued = Self::with_capacity(all.iter().map(Vec::len).sum());
        for execution in all {
            continued.push(execution);
        }
        continued
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_of_failed_tests_has_no_other_tests() {
        let first = [("a", false), ("b", true), ("c", true), ("d", false)];
        for (later, expected) in [
            (&["b", "c"][..], true),
            (&["c", "b", "c"], true),
            (&["b"], true),
            (&["a", "b", "c"], false),
            (&["a", "b", "c", "d"], false),
            (&["b", "e"], false),
            (&[], false),
        ] {
            assert_eq!(
                is_selection_of_failed(first, later.iter().copied()),
                expected,
                "{later:?}"
            );
        }
        assert!(
            !is_selection_of_failed([("b", true)], ["b"]),
            "all tests, as on another system"
        );
    }

    #[test]
    fn paths_of_repeated_commands_differ_in_numbers_times_uuids_and_words_for_retries_only() {
        for (one, other) in [
            ("out/junit.xml", "out/junit-retry-1.xml"),
            ("out/junit-1.xml", "out/junit-2.xml"),
            (
                "TestResults/h_2026-11-25_10_00_00.trx",
                "TestResults/h_2026-11-25_10_05_07.trx",
            ),
            (
                "r/3f2504e0-4f89-11d3-9a0c-0305e82c3301/r.trx",
                "r/9c5b94b1-35ad-49bb-b118-8e8fc24abf80/r.trx",
            ),
            ("m/Pixel2-30-rerun_1/r.xml", "m/Pixel2-30/r.xml"),
            ("out/r.xml", r"out\rerun_1\r.xml"),
        ] {
            assert_eq!(without_attempt(one), without_attempt(other), "{one} {other}");
        }
        for (one, other) in [
            ("pg.xml", "my.xml"),
            ("chrome/r.xml", "firefox/r.xml"),
            ("packages/shop/junit.xml", "packages/admin/junit.xml"),
        ] {
            assert_ne!(without_attempt(one), without_attempt(other), "{one} {other}");
        }
    }

    #[test]
    fn a_report_may_repeat_another_one_unless_it_is_of_another_folder_leg_or_shard() {
        for (one, other) in [
            ("out/junit.xml", "out/junit-lf.xml"),
            ("out/junit-1.xml", "out/junit-2.xml"),
            ("m/Pixel2-30-rerun_1/r.xml", "m/Pixel2-30/r.xml"),
            ("out/retry2/r.xml", "out/r.xml"),
            ("2026-11-25_10_00_00/r.trx", "2026-11-25_10_05_07/r.trx"),
            (
                "r/3f2504e0-4f89-11d3-9a0c-0305e82c3301/r.trx",
                "r/9c5b94b1-35ad-49bb-b118-8e8fc24abf80/r.trx",
            ),
        ] {
            assert!(may_repeat(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("node-18/r.xml", "node-20/r.xml"),
            ("py310/r.xml", "py312/r.xml"),
            ("t/run_1_of_2/test.xml", "t/run_2_of_2/test.xml"),
            ("shard-1/r.xml", "shard-2/r.xml"),
            ("junit-shard-1.xml", "junit-shard-2.xml"),
            ("junit-1-of-3.xml", "junit-2-of-3.xml"),
        ] {
            assert!(!may_repeat(one, other), "{one} {other}");
        }
    }

    #[test]
    fn a_later_result_continues_a_failed_execution_and_is_another_one_beside_a_passed_one() {
        let executions = |all: &[&[i32]]| {
            let mut executions = Executions::with_capacity(0);
            for attempts in all {
                executions.push(attempts.iter().copied());
            }
            executions
        };
        // Negative numbers are failures.
        let has_failed = |attempts: &[i32]| attempts.last().is_some_and(|last| *last < 0);
        for (earlier, later, expected) in [
            (&[&[-1][..]][..], &[&[2][..]][..], &[&[-1, 2][..]][..]),
            (&[&[1]], &[&[2]], &[&[1], &[2]]),
            (&[&[1], &[-2, -3]], &[&[4, 5]], &[&[1], &[-2, -3, 4, 5]]),
            (&[&[-1], &[-2]], &[&[3], &[4], &[5]], &[&[-1, 3], &[-2, 4], &[5]]),
            (&[&[-1]], &[], &[&[-1]]),
        ] {
            let continued = executions(earlier).continued_by(executions(later), has_failed);
            assert_eq!(continued, executions(expected));
        }
    }
}
