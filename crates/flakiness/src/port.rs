//! The engine as a service takes it: a port, chosen where the program is composed.

use assay_domain::{
    cause::Knowledge,
    observation::History,
    test::TestOrdinal,
    timestamp::Timestamp,
    verdict::{Judge, Judgement, Suspects},
};

use crate::{
    engine::Engine,
    model::causes::{ErrorTexts, FailureCause},
};

/// Port of an engine that also gives the causes of failures.
pub trait Diagnose: Judge {
    /// The starts of the first and the last run that [`Self::causes_of_run`] reads for a run with this start.
    fn causes_window(
        &self,
        started: Timestamp,
        knowledge: Knowledge,
        now: Timestamp,
    ) -> (Timestamp, Timestamp);

    /// The causes of the failures of a run, ascending by test, then execution; none where no run has this number.
    fn causes_of_run(
        &self,
        history: &History,
        texts: &ErrorTexts,
        run: i32,
        knowledge: Knowledge,
        now: Timestamp,
    ) -> Vec<FailureCause>;
}

impl Judge for Engine {
    fn judge(&self, history: &History, now: Timestamp) -> Vec<Judgement> {
        self.judge_all(history, now)
    }

    fn judge_tests(&self, history: &History, now: Timestamp, tests: &[TestOrdinal]) -> Vec<Judgement> {
        Self::judge_tests(self, history, now, tests)
    }

    fn suspects(&self, history: &History, now: Timestamp) -> Suspects {
        Self::suspects(self, history, now)
    }
}

impl Diagnose for Engine {
    fn causes_window(
        &self,
        started: Timestamp,
        knowledge: Knowledge,
        now: Timestamp,
    ) -> (Timestamp, Timestamp) {
        Self::causes_window(self, started, knowledge, now)
    }

    fn causes_of_run(
        &self,
        history: &History,
        texts: &ErrorTexts,
        run: i32,
        knowledge: Knowledge,
        now: Timestamp,
    ) -> Vec<FailureCause> {
        Self::causes_of_run(self, history, texts, run, knowledge, now)
    }
}
