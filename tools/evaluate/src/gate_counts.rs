//! Counts of what the gate decides, and of failures by a probability.

use std::fmt::Write as _;

use assay_answers::failures::own_unexplained;
use assay_flakiness::{
    Diagnose as _, Engine, ErrorTexts, FailureCause,
    domain::{
        cause::{Action, Cause, Knowledge},
        observation::History,
        timestamp::Timestamp,
    },
};

/// The causes of a run's failures at its time, as the gate sees them.
pub(crate) fn causes_for_gate(
    history: &History,
    texts: &ErrorTexts,
    (run, started_at): (i32, Timestamp),
) -> Vec<FailureCause> {
    let mut causes = Engine::default().causes_of_run(history, texts, run, Knowledge::AtTheTime, started_at);
    own_unexplained(history, &mut causes);
    causes
}

/// Whether the branch of the run caused the failure.
pub(crate) const fn is_mine(cause: Cause) -> bool {
    matches!(cause, Cause::ThisChange | Cause::EarlierOnBranch)
}

/// The number of runs with `pass`, `rerun` and `block`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Actions(pub(crate) [u32; 3]);

impl Actions {
    pub(crate) const fn add(&mut self, action: Action) {
        let [pass, rerun, block] = &mut self.0;
        *match action {
            Action::Pass => pass,
            Action::Rerun => rerun,
            Action::Block => block,
        } += 1;
    }

    pub(crate) fn all(self) -> u32 {
        self.0.iter().sum()
    }

    pub(crate) fn shares(self) -> String {
        let all = f64::from(self.all().max(1));
        self.0
            .iter()
            .map(|count| format!(" {:.2} % |", 100.0 * f64::from(*count) / all))
            .collect()
    }
}

/// Failures by bands of the probability of a cause.
#[derive(Debug)]
pub(crate) struct Bands(Vec<Band>);

/// The failures of one band.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Band {
    /// The upper limit of the probability.
    pub(crate) end: f64,
    /// The number of failures with this cause, and of others.
    own: u32,
    others: u32,
    /// The sum of the probabilities.
    sum: f64,
}

impl Band {
    pub(crate) const fn all(self) -> u32 {
        self.own + self.others
    }

    /// The mean of the probability, and the share of the failures with this cause.
    pub(crate) fn means(self) -> [f64; 2] {
        let all = f64::from(self.all().max(1));
        [self.sum / all, f64::from(self.own) / all]
    }
}

impl Default for Bands {
    fn default() -> Self {
        Self::new(&[0.01, 0.05, 0.1, 0.5, 0.9, 1.0])
    }
}

impl Bands {
    /// Bands with these upper limits. The last band includes its limit.
    pub(crate) fn new(ends: &[f64]) -> Self {
        let band = |end: &f64| Band {
            end: *end,
            own: 0,
            others: 0,
            sum: 0.0,
        };
        Self(ends.iter().map(band).collect())
    }

    pub(crate) fn add(&mut self, probability: f64, is_own: bool) {
        let last = self.0.len().saturating_sub(1);
        let band = self.0.partition_point(|band| band.end <= probability);
        if let Some(band) = self.0.get_mut(band.min(last)) {
            *if is_own { &mut band.own } else { &mut band.others } += 1;
            band.sum += probability;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Band> {
        self.0.iter().copied()
    }

    pub(crate) fn table(&self) -> String {
        let mut text = "| P below | Failures | Mean of P | True |\n|---|--:|--:|--:|\n".to_owned();
        for band in self.iter() {
            let [mean, share] = band.means();
            // Writing to a String cannot fail.
            let _ = writeln!(text, "| {} | {} | {mean:.3} | {share:.3} |", band.end, band.all());
        }
        text
    }
}
