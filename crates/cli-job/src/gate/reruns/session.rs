//! The reruns of one job: rounds until the gate can decide or the time is over.

use std::{collections::HashMap, time::Duration};

use assay_cli_terminal::output;
use assay_domain::{decision::GateOutcome, test::TestName};
use assay_flakiness::plan::reruns::RerunKind;

use super::{Bounds, Reruns, Round};
use crate::gate::{
    judged::JudgedRun,
    policy::{self, Decision, Rules},
    selector::{Budget, CommandJob, Ended, RunEnd, Selector},
};

/// The reruns of one job.
#[derive(Debug)]
pub struct Session<'a> {
    selector: &'a Selector,
    rules: &'a Rules,
    reruns: Reruns,
    /// The seconds of a start of the runner.
    startup_s: f64,
    budget: Budget,
    /// Whether a rerun was sent.
    is_sent: bool,
    /// Whether a rerun was ended, because the time is over.
    is_timed_out: bool,
}

impl<'a> Session<'a> {
    /// The reruns of a run that was judged first, whose command took this long.
    pub fn new(
        selector: &'a Selector,
        rules: &'a Rules,
        judged: JudgedRun,
        took: Duration,
        budget: Duration,
    ) -> Self {
        Self {
            selector,
            rules,
            reruns: Reruns::new(judged, selector.process(), |test, kind| {
                selector.seconds(test, kind)
            }),
            startup_s: selector.startup_s(took),
            budget: Budget::of(budget),
            is_sent: false,
            is_timed_out: false,
        }
    }

    /// Runs rounds until the gate can decide, and notes what runs.
    pub fn run<J: CommandJob>(mut self, job: &mut J) -> Ended<Decision, J::Error> {
        let (decision, error) = match self.until_decided(job) {
            Ok(decision) => (decision, None),
            Err(error) => (self.decision(), Some(error)),
        };
        Ended {
            found: Some(decision),
            error,
        }
    }

    fn until_decided<J: CommandJob>(&mut self, job: &mut J) -> Result<Decision, J::Error> {
        loop {
            let bounds = self.bounds();
            let rounds = self.reruns.next(bounds);
            if rounds.is_empty() {
                let mut decision = self.decision();
                if decision.outcome == GateOutcome::Rerun {
                    if decision.reran.is_none() && !self.is_timed_out {
                        job.progress()
                            .note(&format!("no test runs again: {}", self.obstacle()));
                    } else {
                        decision.open = self.what_decides(bounds);
                    }
                }
                return Ok(decision);
            }
            for round in rounds {
                self.run_round(job, &round)?;
            }
            let decision = self.decision();
            if !decision.may_run_again() {
                return Ok(decision);
            }
        }
    }

    /// What would decide, after reruns that did not.
    fn what_decides(&self, bounds: Bounds) -> Vec<String> {
        let limit = self.budget.limit_s();
        let sentences: &[String] = if self.is_timed_out {
            &[
                format!("A rerun was ended after the {limit} s of --rerun, and its results do not count"),
                "A longer --rerun decides, unless the test hangs".to_owned(),
            ]
        } else if self.reruns.may_decide(bounds) {
            &[format!(
                "The {limit} s of --rerun are over, and more reruns would decide"
            )]
        } else {
            &[
                "No further rerun in this job would decide".to_owned(),
                "Run the job again, if possible on another machine: the results of both runs decide"
                    .to_owned(),
                "The same failure on the stable branch would show that this change did not break the tests"
                    .to_owned(),
            ]
        };
        sentences.to_vec()
    }

    /// Why no test can run again.
    fn obstacle(&self) -> String {
        let limit = self.budget.limit_s();
        match self.reruns.seconds() {
            Some(seconds) if self.startup_s + seconds > self.budget.left_s() => format!(
                "a rerun takes about {:.0} s, longer than --rerun {limit} s",
                (self.startup_s + seconds).ceil()
            ),
            Some(_) => format!("no rerun within --rerun {limit} s can decide"),
            None => {
                let failed = self.reruns.first();
                let refused = failed.and_then(|test| self.selector.select(&[test], RerunKind::Alone).err());
                match refused {
                    Some(refused) => format!("the runner cannot select {refused}"),
                    None => "no failed test ended: the runner found none by name and file, skipped them, or was cut short".to_owned(),
                }
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
        let mut decision = policy::decide(&self.reruns.judged(), self.rules);
        decision.reran = self.reruns.summary(self.budget.spent_s());
        decision.reruns = Some(self.reruns.clone());
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
        let tests = output::count(count, "failed test");
        job.progress().note(&format!("running {tests} again, {with}"));
        let failed = match job.run(selection, self.budget.left())? {
            RunEnd::Reported(report, _) => self.selector.failed(&report),
            // A runner that finds no test may write no report.
            RunEnd::Unreported => HashMap::new(),
            RunEnd::TimedOut => {
                self.is_timed_out = true;
                return Ok(());
            }
        };
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
