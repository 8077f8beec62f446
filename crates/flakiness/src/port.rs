//! The port through which the programs use the engine, so that a test can replace it.

use assay_domain::{cause::Knowledge, observation::History, timestamp::Timestamp, verdict::Judge};

use crate::model::causes::{ErrorTexts, FailureCause};

/// Port of an engine that also gives the causes of failures.
pub trait Diagnose: Judge {
    /// The starts of the first and the last run that [`Self::causes_of_run`] reads for a run with this start.
    fn causes_window(
        &self,
        started: Timestamp,
        knowledge: Knowledge,
        now: Timestamp,
    ) -> (Timestamp, Timestamp);

    /// The causes of the failures of a run, ascending by test, then variant run; empty if no run has this number.
    ///
    /// [`Knowledge::AtTheTime`] reads the engine's window before the run. [`Knowledge::Hindsight`] also reads as many
    /// days after it, until `now` at most.
    fn causes_of_run(
        &self,
        history: &History,
        texts: &ErrorTexts,
        run: i32,
        knowledge: Knowledge,
        now: Timestamp,
    ) -> Vec<FailureCause>;
}
