//! The reports of one shard, or of an unsharded run: each is a part, and together they make up the executions, as in an
//! import.

use std::collections::BTreeMap;

use assay_domain::{
    attempt::AttemptStatus,
    part::{MergedParts, SlotPart, merge_parts},
    recording::Sender,
    test::TestOrdinal,
};

use crate::part::{Attempt, Part, outcome};

/// The parts of a slot.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    received: Vec<ReceivedPart>,
    /// The parts together, if there are several.
    merged: Option<Part>,
}

/// One report.
#[derive(Debug)]
pub(crate) struct ReceivedPart {
    pub(crate) sender: Sender,
    /// The hash of its content. A report counts once.
    pub(crate) content: [u8; 32],
    pub(crate) part: Part,
    pub(crate) is_cut_short: bool,
    /// Whether it has an error that belongs to no test.
    pub(crate) has_errors: bool,
}

impl Slot {
    /// Adds a report, unless it was added before.
    pub(crate) fn add(&mut self, received: ReceivedPart) {
        if self
            .received
            .iter()
            .any(|other| other.content == received.content)
        {
            return;
        }
        self.received.push(received);
        if self.received.len() > 1 {
            self.merge();
        }
    }

    /// The part to which the rows of a history are added.
    pub(crate) fn of_rows(&mut self, starting: impl FnOnce() -> Part) -> Option<&mut Part> {
        if self.received.is_empty() {
            self.received.push(ReceivedPart {
                sender: Sender::default(),
                content: [0; 32],
                part: starting(),
                is_cut_short: false,
                has_errors: false,
            });
        }
        self.received.first_mut().map(|received| &mut received.part)
    }

    /// The results.
    pub(crate) fn part(&self) -> Option<&Part> {
        let first = || self.received.first().map(|received| &received.part);
        self.merged.as_ref().or_else(first)
    }

    /// Whether a report was cut short, and whether one has an error that belongs to no test. Those that a later attempt
    /// ran again do not count: they are removed when it is added.
    pub(crate) fn flaws(&self) -> (bool, bool) {
        let any = |has: fn(&ReceivedPart) -> bool| self.received.iter().any(has);
        (any(|part| part.is_cut_short), any(|part| part.has_errors))
    }

    fn merge(&mut self) {
        let MergedParts { executions, roles } = {
            let parts: Vec<SlotPart<'_, TestOrdinal>> =
                self.received.iter().map(ReceivedPart::in_slot).collect();
            merge_parts(&parts)
        };
        for (received, role) in self.received.iter_mut().zip(roles) {
            received.is_cut_short &= !role.is_superseded;
            received.has_errors &= !role.is_superseded;
        }
        let starts: Vec<_> = self
            .received
            .iter()
            .map(|received| received.part.starts())
            .collect();
        let Some(first) = self
            .received
            .iter()
            .map(|received| received.part.started_at)
            .min()
        else {
            return;
        };
        let mut merged = Part::starting(first);
        for (test, chains) in executions {
            for (execution, chain) in (0..).zip(chains) {
                let attempts = chain.iter().flat_map(|place| {
                    let of_part = self.received.get(place.part);
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
                    merged.add(
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
        self.merged = Some(merged);
    }
}

impl ReceivedPart {
    fn in_slot(&self) -> SlotPart<'_, TestOrdinal> {
        let ended = |test| {
            let executions = self.part.executions(test);
            let ended = executions.iter().map(|attempts| {
                outcome([attempts.as_slice()]).map_or(AttemptStatus::Skipped, |outcome| outcome.status)
            });
            ended.collect()
        };
        let tests: BTreeMap<TestOrdinal, Vec<AttemptStatus>> =
            self.part.tests().map(|test| (test, ended(test))).collect();
        SlotPart {
            sender: &self.sender,
            started_at: self.part.started_at,
            content: &self.content,
            tests,
        }
    }
}

#[cfg(test)]
mod tests {
    use assay_domain::timestamp::Timestamp;

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
            sender: Sender::default(),
            content: [u8::try_from(minute).unwrap(); 32],
            part,
            is_cut_short: false,
            has_errors: !tests.iter().all(|(_, passed)| *passed),
        }
    }

    fn statuses(slot: &Slot, test: TestOrdinal) -> Vec<Vec<AttemptStatus>> {
        let executions = slot.part().unwrap().executions(test);
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
            let mut slot = Slot::default();
            for report in reports {
                slot.add(report);
            }
            assert_eq!(statuses(&slot, 0), [[FAILED, PASSED]]);
            assert_eq!(statuses(&slot, 1), [[PASSED]]);
            let first = slot.part().unwrap();
            assert_eq!(first.started_at, Timestamp::from_unix_ms(60_000));
            assert_eq!(first.starts()[&1], Timestamp::from_unix_ms(60_001));
        }
    }

    #[test]
    fn a_report_of_all_tests_is_beside_the_earlier_one_and_a_copy_counts_once() {
        let mut slot = Slot::default();
        slot.add(report(1, &[(0, false), (1, true)]));
        slot.add(report(1, &[(0, false), (1, true)]));
        assert_eq!(statuses(&slot, 0), [[FAILED]]);
        slot.add(report(2, &[(0, true), (1, true)]));
        assert_eq!(statuses(&slot, 0), [[FAILED], [PASSED]]);
        assert_eq!(statuses(&slot, 1), [[PASSED], [PASSED]]);
        assert_eq!(
            slot.flaws(),
            (false, true),
            "the error of the first report stands"
        );
    }

    #[test]
    fn the_errors_of_an_attempt_that_ran_again_whole_are_over() {
        let mut slot = Slot::default();
        slot.add(report(1, &[(0, false), (1, true)]));
        let mut again = report(2, &[(0, true), (1, true)]);
        again.sender.attempt.of_command = 2;
        slot.add(again);
        assert_eq!(statuses(&slot, 0), [[FAILED, PASSED]]);
        assert_eq!(slot.flaws(), (false, false));
    }
}
