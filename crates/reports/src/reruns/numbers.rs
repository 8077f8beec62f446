//! The numbers that tools give to the files of repeated attempts.

use std::{collections::HashSet, sync::LazyLock};

use regex::Regex;

use crate::{paths, text::pattern};

/// The place of each file in a series of attempts.
pub(super) struct Numbers(Vec<Place>);

#[derive(Debug, PartialEq)]
struct Place {
    /// The name of the series: a file without its number, or a folder whose subfolder has the later attempts.
    series: Series,
    /// 0 for a file without a number; it comes first, except in Bazel's folders.
    number: u32,
}

#[derive(Debug, PartialEq)]
enum Series {
    File(String),
    Folder(String),
}

impl Numbers {
    /// The places of the files with these names, by their index.
    pub(super) fn of<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        let mut places: Vec<Place> = names.map(Place::of).collect();
        // Bazel gives a number to all attempts but the last.
        let with_earlier: HashSet<String> = places
            .iter()
            .filter_map(|place| match &place.series {
                Series::File(file) if place.number > 0 && file.ends_with(BAZEL_LAST) => Some(file.clone()),
                Series::File(_) | Series::Folder(_) => None,
            })
            .collect();
        for place in &mut places {
            if let Series::File(file) = &place.series
                && place.number == 0
                && with_earlier.contains(file)
            {
                place.number = u32::MAX;
            }
        }
        Self(places)
    }

    /// The number of a file.
    pub(super) fn number(&self, index: usize) -> u32 {
        self.0.get(index).map_or(0, |place| place.number)
    }

    /// Whether both files are of one series, and the second one is later.
    pub(super) fn follows(&self, earlier: usize, later: usize) -> bool {
        let (Some(earlier), Some(later)) = (self.0.get(earlier), self.0.get(later)) else {
            return false;
        };
        let is_same = match (&earlier.series, &later.series) {
            (Series::File(file), Series::Folder(folder)) => paths::folder(file) == folder,
            (earlier, later) => earlier == later,
        };
        is_same && earlier.number < later.number
    }
}

/// The name of Bazel's file of the last attempt. The earlier ones are in `test_attempts` beside it.
const BAZEL_LAST: &str = "/test.xml";

impl Place {
    fn of(name: &str) -> Self {
        let name = name.replace('\\', "/");
        let (folder, file) = name.rsplit_once('/').unwrap_or(("", &name));
        if let Some(number) = number_of(file)
            && let Some(outer) = folder.strip_suffix("test_attempts")
        {
            let series = Series::File(format!("{}{BAZEL_LAST}", outer.trim_end_matches('/')));
            return Self { series, number };
        }
        if let Some(found) = FOLDER.captures(folder)
            && let (Some(outer), Some(number)) = (found.get(1), found.get(2))
        {
            return Self {
                series: Series::Folder(outer.as_str().trim_end_matches('/').to_owned()),
                number: number.as_str().parse().unwrap_or(u32::MAX),
            };
        }
        // The innermost part of the path with a number counts.
        let found = MARK.captures_iter(&name).last();
        match found.and_then(|found| Some((found.get(0)?.range(), found.get(1)?.as_str().parse().ok()?))) {
            Some((range, number)) => {
                let mut series = name.clone();
                series.replace_range(range, "");
                Self {
                    series: Series::File(series.replace("//", "/")),
                    number,
                }
            }
            None => Self {
                series: Series::File(name),
                number: 0,
            },
        }
    }
}

/// A path without the numbers of attempts.
pub(crate) fn without_number(path: &str) -> String {
    MARK.replace_all(path, "").into_owned()
}

/// The number in a name such as `attempt_2.xml`.
fn number_of(file: &str) -> Option<u32> {
    MARK.captures(file)?.get(1)?.as_str().parse().ok()
}

/// `attempt_2`, `-rerun_1`, `retry2` as a word of a file or folder.
static MARK: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?:\b|[-_. ])(?i:attempt|rerun|retry)[-_. ]?(\d{1,4})\b"));
/// `TestResults/Retries/1`, where Microsoft's test platform writes attempts into files of other names.
static FOLDER: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(.*?/?)Retries/(\d{1,4})$"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_of_one_series_follow_each_other() {
        for (earlier, later) in [
            ("attempt1.json", "attempt2.json"),
            ("out/junit.xml", "out/junit-retry-1.xml"),
            ("out/junit-retry-1.xml", "out/junit-retry-2.xml"),
            ("t/test_attempts/attempt_1.xml", "t/test_attempts/attempt_2.xml"),
            ("t/test_attempts/attempt_2.xml", "t/test.xml"),
            (
                "m/Pixel2-30-en-portrait/r.xml",
                "m/Pixel2-30-en-portrait-rerun_1/r.xml",
            ),
            (
                "m/Pixel2-30-en-portrait-rerun_1/r.xml",
                "m/Pixel2-30-en-portrait-rerun_2/r.xml",
            ),
            ("out/r.xml", "out/rerun_1/r.xml"),
            ("TestResults/a.trx", "TestResults/Retries/1/b.trx"),
            (r"TestResults\Retries\1\b.trx", r"TestResults\Retries\2\c.trx"),
        ] {
            let numbers = Numbers::of([earlier, later].into_iter());
            assert!(numbers.follows(0, 1), "{earlier} {later} {:?}", numbers.0);
            assert!(!numbers.follows(1, 0), "{later} {earlier}");
        }
    }

    #[test]
    fn files_that_are_not_numbered_as_attempts_do_not_follow_each_other() {
        for (one, other) in [
            ("junit-1.xml", "junit-2.xml"),
            ("a/attempt1.json", "b/attempt2.json"),
            ("linux/junit.xml", "windows/junit-retry-1.xml"),
            ("reattempt1.xml", "reattempt2.xml"),
            ("t/test.xml", "u/test_attempts/attempt_1.xml"),
            ("TestResults/a.trx", "other/Retries/1/b.trx"),
        ] {
            let numbers = Numbers::of([one, other].into_iter());
            assert!(
                !numbers.follows(0, 1) && !numbers.follows(1, 0),
                "{one} {other} {:?}",
                numbers.0
            );
        }
    }
}
