//! From the counts of a failing test to its verdict.

use assay_domain::{
    test::TestOrdinal,
    verdict::{Figures, Label, Signal, Verdict, VerdictStatus},
};

use crate::{
    column::Presence,
    config::{BROKEN, ENOUGH_RUNS, STREAK, Thresholds},
    explanation,
    filter::{Belief, Filter},
    numbers::share,
    outcomes::{RunFigures, RunOutcome},
    sheet::Sheet,
    signals,
    tally::{ChainEnd, Tally},
};

/// A failing test with everything counted of it.
#[derive(Debug)]
pub(crate) struct Case<'a, 'h> {
    /// The test.
    pub(crate) test: TestOrdinal,
    /// Its results.
    pub(crate) sheet: Sheet<'a, 'h>,
    /// Its results by logical run, oldest first.
    pub(crate) outcomes: &'a [RunOutcome],
    /// What is counted of every test.
    pub(crate) presence: Presence,
    /// The counts by run.
    pub(crate) runs: RunFigures,
    /// The counts by chain.
    pub(crate) tally: Tally,
    /// What the filter says.
    pub(crate) belief: Belief,
    /// What its chains say at their ends.
    pub(crate) ends: Ends,
    /// How much evidence a flaky verdict asks for.
    pub(crate) thresholds: Thresholds,
}

/// A failing streak that may be a breakage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Breakage {
    /// The chain and its streak.
    pub(crate) end: ChainEnd,
    /// P(Broken) of the chain.
    pub(crate) probability: f64,
}

impl Case<'_, '_> {
    /// The verdict, with the signals it rests on.
    pub(crate) fn verdict(&self) -> Verdict {
        let (status, reason) = self.decide();
        let signals = signals::active(self, status, reason);
        Verdict {
            test: self.test,
            status,
            reason,
            explanation: explanation::of(self, status, reason),
            labels: labels(&signals),
            signals,
            figures: self.figures(),
            last_run: self.presence.last_run,
        }
    }

    /// The order is the model's: a regression is dearer to hide than a flake, so broken comes first.
    fn decide(&self) -> (VerdictStatus, Option<Signal>) {
        if self
            .ends
            .breakage
            .is_some_and(|breakage| breakage.probability >= BROKEN)
        {
            return (VerdictStatus::Broken, Some(signals::breaking(self)));
        }
        if self.presence.considered < ENOUGH_RUNS && self.incidents() == 0 {
            return (VerdictStatus::InsufficientData, None);
        }
        match signals::flaking(self) {
            Some(_) if self.runs.is_resolved() => (VerdictStatus::Healthy, Some(Signal::Resolved)),
            Some(reason) => (VerdictStatus::Flaky, Some(reason)),
            None => (VerdictStatus::Healthy, signals::excusing(self)),
        }
    }

    /// Contradictions that the state of the code does not explain.
    pub(crate) const fn incidents(&self) -> u32 {
        self.runs.recovered + self.tally.contradictions
    }

    fn figures(&self) -> Figures {
        let lost = self
            .sheet
            .marks
            .iter()
            .fold(0_u64, |sum, mark| sum.saturating_add(mark.lost_ms));
        Figures {
            time_lost_ms: self.presence.timed.then_some(lost),
            flake_score: self.belief.flake_score.clamp(0.0, 1.0),
            flake_rate: self.belief.flake_rate.clamp(0.0, 1.0),
            flip_rate: share(self.tally.flips, self.tally.pairs).unwrap_or(0.0),
            failure_rate: self.runs.failure_rate(),
            broken_probability: self
                .ends
                .broken_probability
                .map(|probability| probability.clamp(0.0, 1.0)),
            runs_in_window: self.presence.seen,
            runs_considered: self.presence.considered,
            failure_streak: self.runs.streak,
            impact: self.runs.impact,
        }
    }
}

/// The verdict on a test without a failed attempt in the window. It is not filtered: its scores are zero.
pub(crate) fn clean(test: TestOrdinal, presence: Presence) -> Verdict {
    let enough = presence.considered >= ENOUGH_RUNS;
    Verdict {
        test,
        status: if enough {
            VerdictStatus::Healthy
        } else {
            VerdictStatus::InsufficientData
        },
        reason: None,
        explanation: explanation::of_clean(presence),
        signals: Vec::new(),
        labels: Vec::new(),
        figures: Figures {
            time_lost_ms: presence.timed.then_some(0),
            failure_rate: share(0, presence.considered),
            broken_probability: presence.on_stable.then_some(0.0),
            runs_in_window: presence.seen,
            runs_considered: presence.considered,
            ..Figures::default()
        },
        last_run: presence.last_run,
    }
}

/// What the stable chains and the others say at their ends.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ends {
    /// The failing streak at the end of a live stable chain that is most probably a breakage.
    pub(crate) breakage: Option<Breakage>,
    /// P(Broken) of the worst live stable chain.
    pub(crate) broken_probability: Option<f64>,
    /// The longest failing streak of a live chain off the stable branch, where the stable ones pass.
    pub(crate) off_stable: Option<ChainEnd>,
}

impl Ends {
    /// Reads the ends of a test's chains; the filter has just run over the test.
    pub(crate) fn read(tally: &Tally, filter: &Filter<'_, '_>, belief: &Belief) -> Self {
        let mut ends = Self::default();
        let mut stable_fails = false;
        for end in tally.chains.iter().filter(|end| end.live) {
            if !end.stable {
                let longest = ends.off_stable.map_or(STREAK - 1, |longest| longest.streak);
                if end.streak > longest {
                    ends.off_stable = Some(*end);
                }
                continue;
            }
            stable_fails |= end.streak > 0;
            let probability = filter.broken_probability(belief, end.chain, end.last);
            ends.broken_probability = Some(
                ends.broken_probability
                    .map_or(probability, |worst| worst.max(probability)),
            );
            let worst = ends.breakage.map_or(f64::NEG_INFINITY, |worst| worst.probability);
            if end.streak >= STREAK && probability > worst {
                ends.breakage = Some(Breakage {
                    end: *end,
                    probability,
                });
            }
        }
        if stable_fails {
            ends.off_stable = None;
        }
        ends
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
