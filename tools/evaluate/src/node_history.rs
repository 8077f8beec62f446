//! One history of runs from the daily reports of Node.js, which overlap.

use std::collections::BTreeMap;

use assay_flakiness::domain::timestamp::Timestamp;

use crate::node_reports::{FailureKind, PullRequest, Report};

/// The runs of all reports.
#[derive(Debug, PartialEq)]
pub(crate) struct NodeHistory {
    /// By number, and so by time.
    pub(crate) runs: Vec<NodeRun>,
    /// The number of tests. Those that failed come first.
    pub(crate) tests: u32,
    /// The number of texts.
    pub(crate) texts: u32,
}

/// A run of a pull request.
#[derive(Debug, PartialEq)]
pub(crate) struct NodeRun {
    pub(crate) number: u32,
    /// Interpolated: the last run of a report is as old as the report.
    pub(crate) started_at: Timestamp,
    /// The pull request, numbered from 1. A run whose pull request no report names has one of its own.
    pub(crate) pull_request: u32,
    /// The failed tests, each with its text.
    pub(crate) failed: BTreeMap<u32, Option<u32>>,
}

/// What the reports have of a run.
#[derive(Default)]
struct Reported {
    pull_request: Option<PullRequest>,
    failed: BTreeMap<u32, Option<u32>>,
    has_build_failure: bool,
    has_other_failure: bool,
}

impl Reported {
    /// Whether build failures are all that is known of it. Its tests then did not run.
    const fn is_only_build(&self) -> bool {
        self.has_build_failure && !self.has_other_failure
    }
}

impl NodeHistory {
    /// Joins the reports. A run with nothing but build failures is left out.
    pub(crate) fn of(reports: &[Report]) -> Self {
        let mut runs: BTreeMap<u32, Reported> = BTreeMap::new();
        let (mut tests, mut texts) = (Numbers::default(), Numbers::default());
        for report in reports {
            for number in report.runs.0..=report.runs.1 {
                runs.entry(number).or_default();
            }
        }
        for failure in reports.iter().flat_map(|report| &report.failures) {
            let test = match failure.kind {
                FailureKind::Test => Some(tests.of(&failure.reason)),
                FailureKind::LintedFile | FailureKind::Build | FailureKind::Infrastructure => None,
            };
            let text = failure.error.as_deref().map(|error| texts.of(error));
            for (pull_request, number) in &failure.runs {
                let Some(run) = runs.get_mut(number) else { continue };
                run.pull_request = Some(*pull_request);
                if let Some(test) = test {
                    run.failed.entry(test).or_insert(text);
                }
                let is_build = failure.kind == FailureKind::Build;
                run.has_build_failure |= is_build;
                run.has_other_failure |= !is_build;
            }
        }
        let largest_suite = reports.iter().map(|report| report.largest_suite).max();
        Self {
            runs: numbered(runs, &Times::of(reports)),
            tests: tests.count().max(largest_suite.unwrap_or(0)),
            texts: texts.count(),
        }
    }
}

/// Numbers names in the order of their first use, from 0.
#[derive(Default)]
struct Numbers<'n>(BTreeMap<&'n str, u32>);

impl<'n> Numbers<'n> {
    fn of(&mut self, name: &'n str) -> u32 {
        let next = self.count();
        *self.0.entry(name).or_insert(next)
    }

    fn count(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }
}

fn numbered(runs: BTreeMap<u32, Reported>, times: &Times) -> Vec<NodeRun> {
    let mut pull_requests: BTreeMap<PullRequest, u32> = BTreeMap::new();
    let mut last = 0;
    let with_tests = runs.into_iter().filter(|(_, run)| !run.is_only_build());
    let numbered = with_tests.map(|(number, run)| {
        let known = run
            .pull_request
            .and_then(|known| pull_requests.get(&known).copied());
        let pull_request = known.unwrap_or_else(|| {
            last += 1;
            last
        });
        pull_requests.extend(run.pull_request.map(|known| (known, pull_request)));
        NodeRun {
            number,
            started_at: times.of_run(number),
            pull_request,
            failed: run.failed,
        }
    });
    numbered.collect()
}

/// The known times of runs, ascending by number.
struct Times(Vec<(u32, Timestamp)>);

impl Times {
    fn of(reports: &[Report]) -> Self {
        let mut times: Vec<(u32, Timestamp)> = Vec::new();
        for report in reports {
            let last = report.runs.1;
            if times.last().is_none_or(|(number, _)| *number < last) {
                times.push((last, report.at));
            }
        }
        Self(times)
    }

    /// Runs before the first known time have the mean distance.
    fn of_run(&self, number: u32) -> Timestamp {
        let next = self.0.partition_point(|(known, _)| *known < number);
        let [from, to] = match next {
            0 => [self.0.first(), self.0.last()],
            next => [self.0.get(next - 1), self.0.get(next).or(self.0.last())],
        };
        let (Some((from, from_at)), Some((to, to_at))) = (from, to) else {
            return Timestamp::from_unix_ms(0);
        };
        let distance = to_at.since_ms(*from_at) / i64::from(to - from).max(1);
        from_at.plus_ms(distance * (i64::from(number) - i64::from(*from)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node_reports::{read, tests::report};

    #[test]
    fn overlapping_reports_are_one_history_with_interpolated_times() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).unwrap();
        write(
            "1.md",
            report((100, 110), "2024-09-05 00:00", "a", &[(1, 105), (2, 107)]),
        );
        write(
            "2.md",
            report((105, 120), "2024-09-06 00:00", "b", &[(1, 115), (2, 107)]),
        );
        write(
            "3.md",
            report((119, 121), "2024-09-06 12:00", "c", &[(3, 119), (4, 120)]).replace("JS_TEST", "BUILD"),
        );
        let history = NodeHistory::of(&read(folder.path()).unwrap());
        assert_eq!(history.tests, 4_100);
        // Those that were not built are left out.
        assert_eq!(history.runs.len(), 20);
        let run = |number: u32| history.runs.iter().find(|run| run.number == number).unwrap();
        assert_eq!(run(107).failed, BTreeMap::from([(0, Some(0)), (1, Some(1))]));
        assert_eq!(run(115).failed, BTreeMap::from([(1, Some(1))]));
        assert_eq!(run(105).pull_request, run(115).pull_request);
        assert_ne!(run(105).pull_request, run(107).pull_request);
        assert_ne!(run(101).pull_request, run(102).pull_request);
        assert_eq!(run(115).started_at, "2024-09-05T12:00:00Z".parse().unwrap());
        assert_eq!(run(121).started_at, "2024-09-06T12:00:00Z".parse().unwrap());
        assert!(run(100).started_at < run(101).started_at);
        assert!(run(109).started_at < "2024-09-05T00:00:00Z".parse().unwrap());
    }
}
