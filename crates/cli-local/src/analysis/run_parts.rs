//! The reports of one run: each is a part, and together they make up the executions, as in an import.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::OnceLock,
};

use assay_domain::{
    attempt::AttemptStatus,
    part::{MergedParts, RunPart, merge_parts},
    recording::Sender,
    test::TestOrdinal,
    timestamp::Timestamp,
};

use crate::analysis::part::{Attempt, Part, outcome};

/// The parts of a run, at least one.
#[derive(Debug)]
pub(crate) struct RunParts {
    first: ReceivedPart,
    later: Vec<ReceivedPart>,
    /// The parts together. Computed when it is first read, because a further part changes it.
    merged: OnceLock<Merged>,
}

/// Several parts together.
#[derive(Debug)]
struct Merged {
    part: Part,
    flaws: (bool, bool),
}

/// One report.
#[derive(Debug)]
pub(crate) struct ReceivedPart {
    /// The number of its shard, if the run has shards.
    pub(crate) shard: Option<u32>,
    pub(crate) sender: Sender,
    /// The hash of its content. A report counts once.
    pub(crate) content: [u8; 32],
    pub(crate) part: Part,
    /// The numbers of the groups that passed in it and were no tests of an earlier report.
    pub(crate) unknown_groups: Vec<u32>,
    pub(crate) is_cut_short: bool,
    /// Whether it has an error that belongs to no test.
    pub(crate) has_errors: bool,
}

impl RunParts {
    pub(crate) fn of(first: ReceivedPart) -> Self {
        Self {
            first,
            later: Vec::new(),
            merged: OnceLock::new(),
        }
    }

    /// A run without results, for the rows of a history.
    pub(crate) fn of_rows(started_at: Timestamp) -> Self {
        Self::of(ReceivedPart {
            shard: None,
            sender: Sender::default(),
            content: [0; 32],
            part: Part::starting(started_at),
            unknown_groups: Vec::new(),
            is_cut_short: false,
            has_errors: false,
        })
    }

    /// Adds a report, unless it was added before.
    pub(crate) fn add(&mut self, received: ReceivedPart) {
        if self.received().all(|other| other.content != received.content) {
            self.later.push(received);
            self.merged = OnceLock::new();
        }
    }

    /// The part to which the rows of a history are added.
    pub(crate) fn rows(&mut self) -> &mut Part {
        &mut self.first.part
    }

    /// The results.
    pub(crate) fn part(&self) -> &Part {
        match self.later.is_empty() {
            true => &self.first.part,
            false => &self.merged().part,
        }
    }

    /// The numbers of the groups that passed in some part and were no tests then.
    pub(crate) fn unknown_groups(&self) -> impl Iterator<Item = u32> {
        let groups = self.received().flat_map(|received| &received.unknown_groups);
        groups.copied()
    }

    /// The start of the first part.
    pub(crate) fn started_at(&self) -> Timestamp {
        let later = self.later.iter().map(|received| received.part.started_at);
        later.fold(self.first.part.started_at, Timestamp::min)
    }

    /// Whether a report was cut short, and whether one has an error that belongs to no test. Those that a later attempt
    /// ran again do not count.
    pub(crate) fn flaws(&self) -> (bool, bool) {
        match self.later.is_empty() {
            true => (self.first.is_cut_short, self.first.has_errors),
            false => self.merged().flaws,
        }
    }

    /// The number of shards with a report.
    pub(crate) fn shards(&self) -> u32 {
        let shards: BTreeSet<Option<u32>> = self.received().map(|received| received.shard).collect();
        u32::try_from(shards.len()).unwrap_or(u32::MAX)
    }

    fn received(&self) -> impl Iterator<Item = &ReceivedPart> {
        std::iter::once(&self.first).chain(&self.later)
    }

    fn merged(&self) -> &Merged {
        self.merged.get_or_init(|| self.merge())
    }

    fn merge(&self) -> Merged {
        let received: Vec<&ReceivedPart> = self.received().collect();
        let run_parts: Vec<RunPart<'_, TestOrdinal>> =
            received.iter().map(|received| received.in_run()).collect();
        let MergedParts { executions, roles } = merge_parts(&run_parts);
        let in_force = || {
            let superseded = roles.iter().map(|role| role.is_superseded);
            received
                .iter()
                .zip(superseded)
                .filter(|(_, superseded)| !superseded)
        };
        let flaws = (
            in_force().any(|(received, _)| received.is_cut_short),
            in_force().any(|(received, _)| received.has_errors),
        );
        let starts: Vec<_> = received.iter().map(|received| received.part.starts()).collect();
        let mut part = Part::starting(self.started_at());
        for (test, chains) in executions {
            for (execution, chain) in (0..).zip(chains) {
                let attempts = chain.iter().flat_map(|place| {
                    let of_part = received.get(place.part);
                    let executions = of_part.map(|received| received.part.executions(test));
                    let attempts = executions.and_then(|mut executions| {
                        (place.execution < executions.len()).then(|| executions.swap_remove(place.execution))
                    });
                    let started_at = starts
                        .get(place.part)
                        .and_then(|starts| starts.get(&test).copied());
                    attempts
                        .unwrap_or_default()
                        .into_iter()
                        .map(move |attempt| Attempt {
                            started_at: attempt.started_at.or(started_at),
                            ..attempt
                        })
                });
                for (retry, attempt) in (0..).zip(attempts) {
                    part.add(
                        test,
                        Attempt {
                            execution,
                            retry,
                            ..attempt
                        },
                    );
                }
            }
        }
        Merged { part, flaws }
    }
}

impl ReceivedPart {
    fn in_run(&self) -> RunPart<'_, TestOrdinal> {
        let ended = |test| {
            let executions = self.part.executions(test);
            let ended = executions.iter().map(|attempts| {
                outcome([attempts.as_slice()]).map_or(AttemptStatus::Skipped, |outcome| outcome.status)
            });
            ended.collect()
        };
        let tests: BTreeMap<TestOrdinal, Vec<AttemptStatus>> =
            self.part.tests().map(|test| (test, ended(test))).collect();
        RunPart {
            shard: self.shard,
            sender: &self.sender,
            started_at: self.part.started_at,
            content: &self.content,
            tests,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A report of these tests, each with whether it passed, that began at a minute.
    fn report(minute: i64, tests: &[(TestOrdinal, bool)]) -> ReceivedPart {
        let started_at = Timestamp::from_unix_ms(minute * 60_000);
        let mut part = Part::starting(started_at);
        for (test, passed) in tests {
            let attempt = Attempt {
                execution: 0,
                retry: 0,
                status: if *passed {
                    AttemptStatus::Passed
                } else {
                    AttemptStatus::Failed
                },
                duration_ms: Some(5),
                started_at: Some(started_at.plus_ms(i64::from(*test))),
                signature: None,
            };
            part.add(*test, attempt);
        }
        ReceivedPart {
            shard: None,
            sender: Sender::default(),
            content: [u8::try_from(minute).unwrap(); 32],
            part,
            unknown_groups: Vec::new(),
            is_cut_short: false,
            has_errors: !tests.iter().all(|(_, passed)| *passed),
        }
    }

    fn statuses(parts: &RunParts, test: TestOrdinal) -> Vec<Vec<AttemptStatus>> {
        let executions = parts.part().executions(test);
        let statuses = |attempts: Vec<Attempt>| attempts.iter().map(|attempt| attempt.status).collect();
        executions.into_iter().map(statuses).collect()
    }

    const PASSED: AttemptStatus = AttemptStatus::Passed;
    const FAILED: AttemptStatus = AttemptStatus::Failed;

    #[test]
    fn a_report_of_the_failed_tests_continues_them_in_any_order_of_arrival() {
        let reports = || [report(1, &[(0, false), (1, true)]), report(2, &[(0, true)])];
        for swap in [false, true] {
            let mut reports = reports();
            if swap {
                reports.reverse();
            }
            let [first, second] = reports;
            let mut parts = RunParts::of(first);
            parts.add(second);
            assert_eq!(statuses(&parts, 0), [[FAILED, PASSED]]);
            assert_eq!(statuses(&parts, 1), [[PASSED]]);
            let first = parts.part();
            assert_eq!(first.started_at, Timestamp::from_unix_ms(60_000));
            assert_eq!(first.starts()[&1], Timestamp::from_unix_ms(60_001));
        }
    }

    #[test]
    fn a_report_of_all_tests_is_beside_the_earlier_one_and_a_copy_counts_once() {
        let mut parts = RunParts::of(report(1, &[(0, false), (1, true)]));
        parts.add(report(1, &[(0, false), (1, true)]));
        assert_eq!(statuses(&parts, 0), [[FAILED]]);
        parts.add(report(2, &[(0, true), (1, true)]));
        assert_eq!(statuses(&parts, 0), [[FAILED], [PASSED]]);
        assert_eq!(statuses(&parts, 1), [[PASSED], [PASSED]]);
        assert_eq!(
            parts.flaws(),
            (false, true),
            "the error of the first report stands"
        );
    }

    #[test]
    fn the_errors_of_an_attempt_that_ran_again_whole_are_over() {
        let mut parts = RunParts::of(report(1, &[(0, false), (1, true)]));
        let mut again = report(2, &[(0, true), (1, true)]);
        again.sender.attempt.of_command = 2;
        parts.add(again);
        assert_eq!(statuses(&parts, 0), [[FAILED, PASSED]]);
        assert_eq!(parts.flaws(), (false, false));
    }
}
