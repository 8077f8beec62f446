//! Counts of what the gate decides, and of failures by a probability.

use std::fmt::Write as _;

use assay_flakiness::domain::cause::{Action, Cause};

/// Upper limits of the bands of a probability.
const BANDS: [f64; 6] = [0.01, 0.05, 0.1, 0.5, 0.9, 1.01];

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
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bands([Band; BANDS.len()]);

/// The failures of one band.
#[derive(Debug, Clone, Copy, Default)]
struct Band {
    /// Those with this cause, and others.
    own: u32,
    others: u32,
    /// The sum of the probabilities.
    sum: f64,
}

impl Bands {
    pub(crate) fn add(&mut self, probability: f64, is_own: bool) {
        let band = BANDS.iter().position(|end| probability < *end);
        if let Some(band) = band.and_then(|band| self.0.get_mut(band)) {
            *if is_own { &mut band.own } else { &mut band.others } += 1;
            band.sum += probability;
        }
    }

    /// The upper limit of each band, its failures with the cause and others, and the means of the probability and of the
    /// truth.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (f64, [u32; 2], [f64; 2])> {
        BANDS.iter().zip(&self.0).map(|(end, band)| {
            let all = f64::from((band.own + band.others).max(1));
            let means = [band.sum / all, f64::from(band.own) / all];
            (end.min(1.0), [band.own, band.others], means)
        })
    }

    pub(crate) fn table(&self) -> String {
        let mut text =
            "| mine below | The branch's | Others | Mean of mine | Were the branch's |\n".to_owned();
        text += "|---|--:|--:|--:|--:|\n";
        for (end, [own, others], [mean, share]) in self.rows() {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "| {end:.2} | {own} | {others} | {mean:.3} | {share:.3} |");
        }
        text
    }
}
