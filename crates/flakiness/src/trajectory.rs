//! The path of a test that passes everywhere, computed once for all tests.
//!
//! A pass moves P(Broken) to the same fixed point whatever it was before, within a handful of runs. So a test that has
//! passed for a while is on this path to the last digit that matters, and its filter need not be run until something
//! happens to it: the work follows the failures, not the results.
#![expect(
    clippy::indexing_slicing,
    reason = "every index is a position of the timeline that sized the vectors"
)]

use std::collections::BTreeMap;

use crate::{
    background::Background,
    model::{GRID, Move, Outcome, PerRate, observe, pass_likelihood, predict},
    timeline::Timeline,
};

/// Two values of P(Broken) this near are the same: far below what any figure shows, even summed over a window.
pub(crate) const SAME: f64 = 1e-13;

/// The path of a test that passes everywhere.
#[derive(Debug)]
pub(crate) struct Trajectory {
    /// By position.
    pub(crate) points: Vec<Point>,
    /// The sum of a lane's logarithms of likelihood, by lane.
    pub(crate) totals: Vec<PerRate>,
}

/// The path at one position.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    /// P(Broken) of the chain after the pass.
    pub(crate) after: PerRate,
    /// The logarithm of the pass's likelihood.
    pub(crate) log_likelihood: PerRate,
    /// How the chain's state moves here while the stable chain is on the path.
    pub(crate) moves: Move,
    /// How probably good code passes here.
    pub(crate) passes: PerRate,
    /// The last position of the lane's stable chain before this one.
    pub(crate) stable_before: Option<usize>,
    /// Whether a test that is absent here, and was on the path before, stays on it.
    pub(crate) absence_is_harmless: bool,
}

impl Trajectory {
    /// Computes the path, given the background of every position.
    pub(crate) fn new(timeline: &Timeline<'_>, background: &Background) -> Self {
        let mut points: Vec<Point> = Vec::with_capacity(timeline.entries.len());
        let mut totals = Vec::with_capacity(timeline.lanes.len());
        for lane in &timeline.lanes {
            let mut total = [0.0; GRID];
            let mut stable_before = None;
            for position in lane.positions.clone() {
                let entry = &timeline.entries[position];
                let on_stable = timeline.chains[entry.chain].stable;
                let before = entry
                    .previous
                    .map_or([0.0; GRID], |previous| points[previous].after);
                let stable = stable_before.map(|position: usize| &points[position].after);
                let predicted = predict(entry.step, &before, on_stable, stable);
                let (likelihood, after) = observe(&predicted, Outcome::Passed, background.beta[position]);
                let log_likelihood = likelihood.map(f64::ln);
                for (sum, term) in total.iter_mut().zip(&log_likelihood) {
                    *sum += term;
                }
                points.push(Point {
                    after,
                    log_likelihood,
                    moves: Move::new(entry.step, on_stable, stable),
                    passes: pass_likelihood(background.beta[position]),
                    stable_before,
                    absence_is_harmless: false,
                });
                if on_stable {
                    stable_before = Some(position);
                }
            }
            totals.push(total);
        }
        let mut trajectory = Self { points, totals };
        trajectory.mark_absences(timeline);
        trajectory
    }

    /// An absence is harmless where the chain's state stands still there, and where the next run of the chain is as
    /// new to a test that missed this one as to one that did not.
    fn mark_absences(&mut self, timeline: &Timeline<'_>) {
        let mut next_of: BTreeMap<usize, usize> = BTreeMap::new();
        for position in (0..timeline.entries.len()).rev() {
            let entry = &timeline.entries[position];
            let next = next_of.insert(entry.chain, position);
            let still = entry.previous.is_some_and(|previous| {
                let as_new = timeline.entries[previous].revision == entry.revision
                    || next.is_none_or(|next| timeline.entries[next].revision != entry.revision);
                as_new && same(&self.points[previous].after, &self.points[position].after)
            });
            self.points[position].absence_is_harmless = still;
        }
    }
}

/// Whether two beliefs are the same for every purpose.
pub(crate) fn same(a: &PerRate, b: &PerRate) -> bool {
    a.iter().zip(b).all(|(a, b)| (a - b).abs() <= SAME)
}
