//! Excuses with a date: failures with one error that a team accepts until a day.

use assay_domain::timestamp::{DAY_MS, Timestamp};
use serde::{Deserialize, Serialize};

use crate::gate::judged::JudgedFailure;

/// The most days from now to the last day of an excuse.
pub const MOST_DAYS: i64 = 30;
/// A failure that this change broke more probably is not excused.
pub(super) const MOST_MINE: f64 = 0.5;

/// A failure that a team accepts until a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Excuse {
    /// The full name of the test.
    pub test: String,
    /// Its file; without it, the test of any file.
    pub file: Option<String>,
    /// The fingerprint of the error.
    pub fingerprint: String,
    /// Who looks after it.
    pub owner: String,
    /// Why the failure is accepted.
    pub reason: String,
    /// Where it is tracked.
    pub ticket: String,
    /// The last day, as the file has it.
    pub until: String,
    /// The end of that day in UTC.
    pub ends: Timestamp,
}

/// Whether an excuse counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ExcuseState {
    /// It counts.
    InForce,
    /// Its last day is over.
    Expired,
    /// Its last day is more than 30 days ahead.
    TooLong,
}

impl JudgedFailure {
    /// Whether an excuse may cover it: its error has a fingerprint, and this change did not probably break it.
    pub fn may_be_accepted(&self) -> bool {
        self.fingerprint.is_some() && self.mine <= MOST_MINE
    }
}

impl Excuse {
    /// Whether it counts now.
    pub const fn state(&self, now: Timestamp) -> ExcuseState {
        match self.ends.since_ms(now) {
            ..=0 => ExcuseState::Expired,
            left if left > (MOST_DAYS + 1) * DAY_MS => ExcuseState::TooLong,
            _ => ExcuseState::InForce,
        }
    }

    /// Whether it is about the test of a failure.
    pub(super) fn is_about(&self, failure: &JudgedFailure) -> bool {
        self.test == failure.test_name && (self.file.is_none() || self.file == failure.file_path)
    }

    /// Whether it is about the error of a failure.
    pub(super) fn has_error_of(&self, failure: &JudgedFailure) -> bool {
        failure.fingerprint.as_ref() == Some(&self.fingerprint)
    }

    /// Why it does not excuse a failure of its test; none if it does.
    pub(super) fn refusal(&self, failure: &JudgedFailure, now: Timestamp) -> Option<&'static str> {
        if !self.has_error_of(failure) {
            return Some("for another error");
        }
        match self.state(now) {
            ExcuseState::Expired => Some("that day is over"),
            ExcuseState::TooLong => Some("that day is more than 30 days ahead"),
            ExcuseState::InForce if !failure.may_be_accepted() => Some("this change probably broke it"),
            ExcuseState::InForce => None,
        }
    }

    /// Who excused what until when, as a sentence without a full stop.
    pub fn sentence(&self) -> String {
        format!(
            "Excused until {} by {}: {} ({})",
            self.until, self.owner, self.reason, self.ticket
        )
    }
}
