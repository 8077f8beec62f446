//! The reruns of one job: rounds until the gate can decide or the time is over.

use std::time::Duration;

use assay_console::{message, output};
use assay_domain::{decision::GateOutcome, test::TestName};
use assay_flakiness::plan::reruns::RerunKind;

use super::{Bounds, Reruns, Round};
use crate::{
    judged::JudgedRun,
    policy::{self, CommandStatus, Decision, Rules},
    selector::{Budget, CommandJob, Ended, Selector, failed},
};

/// The reruns of one job.
#[derive(Debug)]
pub struct Session<'a> {
    selector: &'a Selector,
    rules: &'a Rules,
    status: CommandStatus,
    reruns: Reruns,
    /// The seconds of a start of the runner.
    startup_s: f64,
    budget: Budget,
    /// Whether a rerun was sent.
    is_sent: bool,
}

impl<'a> Session<'a> {
    /// The reruns of a run that was judged first, whose command took this long and ended with this status.
    pub fn new(
        selector: &'a Selector,
        rules: &'a Rules,
        judged: JudgedRun,
        (status, took): (CommandStatus, Duration),
        budget: Duration,
    ) -> Self {
        Self {
            selector,
            rules,
            status,
            reruns: Reruns::new(judged, selector.process(), |test, kind| {
                selector.seconds(test, kind)
            }),
            startup_s: selector.startup_s(took),
            budget: Budget::of(budget),
            is_sent: false,
        }
    }

    /// Runs rounds until the gate can decide, and prints what runs.
    pub fn run<J: CommandJob>(mut self, job: &mut J) -> Ended<Decision, J::Error> {
        let (decision, error) = match self.until_decided(job) {
            Ok(decision) => (decision, None),
            Err(error) => (self.decision(), Some(error)),
        };
        Ended {
            found: self.is_sent.then_some(decision),
            error,
        }
    }

    fn until_decided<J: CommandJob>(&mut self, job: &mut J) -> Result<Decision, J::Error> {
        loop {
            let bounds = self.bounds();
            let rounds = self.reruns.next(bounds);
            let is_over = rounds.is_empty();
            for round in rounds {
                self.run_round(job, &round)?;
            }
            let mut decision = self.decision();
            // A run is blocked by a probability only after a rerun of what is in doubt.
            if decision.outcome != GateOutcome::Rerun && (self.is_sent || is_over || !decision.is_open) {
                return Ok(decision);
            }
            if is_over {
                if decision.reran.is_some() && !self.reruns.may_decide(bounds) {
                    decision.outcome = GateOutcome::Blocked;
                    decision
                        .problems
                        .push("No further rerun could tell whether this change broke the tests".to_owned());
                } else if !self.is_sent {
                    message!(
                        "no test runs again: a rerun that decides takes longer than --rerun {} s, or the tests cannot be selected",
                        self.budget.limit_s()
                    );
                }
                return Ok(decision);
            }
        }
    }

    fn bounds(&self) -> Bounds {
        Bounds {
            left_s: self.budget.left_s(),
            startup_s: self.startup_s,
            risk: self.rules.risk,
        }
    }

    fn decision(&self) -> Decision {
        let mut decision = policy::decide(&self.reruns.judged(), self.rules, Some(self.status));
        decision.reran = self.reruns.summary(self.budget.spent_s());
        decision
    }

    /// Runs the tests of a round once, and sends their results.
    fn run_round<J: CommandJob>(&mut self, job: &mut J, round: &Round) -> Result<(), J::Error> {
        let selection = self.selector.select(&round.tests, round.kind)?;
        let with = match round.kind {
            RerunKind::Alone => "alone",
            RerunKind::WithFile => "with the tests of its file",
        };
        let count = u64::try_from(round.tests.len()).unwrap_or(u64::MAX);
        message!("running {} again, {with}", output::count(count, "failed test"));
        let report = job.run(selection)?;
        let failed = failed(&report);
        let passed_before = self.reruns.passed();
        let ran = self.reruns.record(round, |test| failed.get(test).copied());
        // A pass that repeats an earlier one is no independent run, so that it counts in this decision only.
        let new: Vec<TestName> = ran
            .into_iter()
            .filter(|test| failed.get(test) == Some(&true) || !passed_before.contains(test))
            .collect();
        if new.is_empty() {
            self.reruns.judge_again(None);
            return Ok(());
        }
        let judged = job.send(&new)?;
        self.reruns.judge_again(Some(&judged));
        self.is_sent = true;
        Ok(())
    }
}
