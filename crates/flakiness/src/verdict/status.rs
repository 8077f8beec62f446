//! Decides the verdict of a failing test from its counts.

use assay_domain::{
    test::TestOrdinal,
    verdict::{FailingOn, Figures, Label, Signal, Verdict, VerdictStatus},
};

use crate::{
    model::calendar::Calendar,
    numbers::share,
    participation::Presence,
    verdict::{explanation, findings::Findings, signals, test_counts::TestCounts},
};

/// A failing test with all its counts.
#[derive(Debug)]
pub(crate) struct FailedTest<'a, 'h> {
    /// The test.
    pub(crate) test: TestOrdinal,
    /// Its results.
    pub(crate) test_counts: TestCounts<'a, 'h>,
    /// The findings in its results.
    pub(crate) findings: &'a Findings,
    /// The days or the time of the day in which all failures lie.
    pub(crate) calendar: Option<Calendar>,
}

impl FailedTest<'_, '_> {
    /// The verdict with the signals behind it.
    pub(crate) fn verdict(&self) -> Verdict {
        let (status, reason) = self.decide();
        let signals = signals::active(self, status, reason);
        Verdict {
            test: self.test,
            status,
            reason,
            explanation: explanation::of(self, status, reason),
            labels: labels(&signals),
            failing_on: self.failing_on(),
            signals,
            figures: self.figures(),
            last_run: self.test_counts.column.presence.last_run,
        }
    }

    /// Broken comes before flaky: hiding a breakage costs more than hiding a flake. What only the calendar explains comes
    /// first.
    pub(crate) fn decide(&self) -> (VerdictStatus, Option<Signal>) {
        if signals::is_by_calendar(self) {
            return (VerdictStatus::Flaky, Some(Signal::Calendar));
        }
        if self
            .findings
            .ends
            .breakage
            .is_some_and(|breakage| breakage.is_conclusive())
        {
            return (VerdictStatus::Broken, Some(signals::broken_reason(self)));
        }
        let fails_now = self.findings.ends.failing_now.is_some();
        let failing = || (VerdictStatus::Failing, signals::failing_reason(self));
        if !self.test_counts.column.presence.enough && self.incidents() == 0 {
            return if fails_now {
                failing()
            } else {
                (VerdictStatus::InsufficientData, None)
            };
        }
        match signals::flaky_reason(self) {
            Some(reason) if !self.findings.runs.is_resolved() => (VerdictStatus::Flaky, Some(reason)),
            _ if fails_now => failing(),
            Some(_) => (VerdictStatus::Healthy, Some(Signal::Resolved)),
            None => (VerdictStatus::Healthy, signals::healthy_reason(self)),
        }
    }

    /// Failing episodes that ended in a pass, or on a branch that does not count for the current state. A lasting
    /// episode may be a breakage, so it is no evidence of a flaky test.
    pub(crate) const fn closed_episodes(&self) -> u32 {
        self.findings
            .chain_counts
            .episodes
            .saturating_sub(self.findings.ends.open_episodes)
    }

    fn failing_on(&self) -> Vec<FailingOn> {
        let timeline = self.test_counts.timeline;
        let ends = self.findings.ends.failing_on.iter();
        ends.map(|end| FailingOn {
            branch: timeline
                .chains
                .get(end.chain)
                .and_then(|chain| chain.branch)
                .map(str::to_owned),
            streak: end.streak,
            since_run: timeline
                .entries
                .get(end.since)
                .map_or(0, |entry| entry.observed.run.number),
        })
        .collect()
    }

    /// The number of incidents.
    pub(crate) const fn incidents(&self) -> u32 {
        self.findings.runs.recovered + self.findings.chain_counts.contradictions
    }

    fn figures(&self) -> Figures {
        let lost = self
            .test_counts
            .failures
            .iter()
            .fold(0_u64, |sum, failure| sum.saturating_add(failure.lost_ms));
        let pairs = self.test_counts.column.pairs;
        Figures {
            time_lost_ms: self.test_counts.column.presence.timed.then_some(lost),
            flake_score: self.findings.belief.flake_score.clamp(0.0, 1.0),
            flake_rate: self.findings.belief.flake_rate.clamp(0.0, 1.0),
            flip_rate: share(self.findings.chain_counts.flips, pairs).unwrap_or(0.0),
            failure_rate: self.findings.runs.failure_rate(),
            broken_probability: self
                .findings
                .ends
                .broken_probability
                .map(|probability| probability.clamp(0.0, 1.0)),
            runs_in_window: self.test_counts.column.presence.seen,
            runs_considered: self.test_counts.column.presence.considered,
            failure_streak: self.findings.runs.streak,
            impact: self.findings.runs.impact,
        }
    }
}

/// The status of a test without a failed attempt in the window.
pub(crate) const fn clean_status(presence: Presence) -> VerdictStatus {
    if presence.enough {
        VerdictStatus::Healthy
    } else {
        VerdictStatus::InsufficientData
    }
}

/// The verdict on a test without a failed attempt in the window. It is not filtered: its scores are zero.
pub(crate) fn clean(test: TestOrdinal, presence: Presence) -> Verdict {
    Verdict {
        test,
        status: clean_status(presence),
        reason: None,
        explanation: explanation::of_clean(presence),
        signals: Vec::new(),
        labels: Vec::new(),
        failing_on: Vec::new(),
        figures: Figures {
            time_lost_ms: presence.timed.then_some(0),
            failure_rate: share(0, presence.considered),
            broken_probability: presence.on_stable_chain.then_some(0.0),
            runs_in_window: presence.seen,
            runs_considered: presence.considered,
            ..Figures::default()
        },
        last_run: presence.last_run,
    }
}

fn labels(signals: &[Signal]) -> Vec<Label> {
    let mut labels = Vec::new();
    if signals.contains(&Signal::FlipRate) {
        labels.push(Label::Flips);
    }
    if signals.contains(&Signal::RetryRate) {
        labels.push(Label::Retries);
    }
    labels
}
