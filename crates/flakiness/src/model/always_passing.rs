//! The filter's state for a test that passes everywhere, computed once for all tests.
//!
//! After about five passes, P(Broken) no longer depends on its value before them. A test that has passed for a
//! while therefore has this state up to rounding. Its filter runs only near failures and absences, so the cost grows
//! with the number of failures and not of results.
#![expect(
    clippy::indexing_slicing,
    reason = "every index is a position of the timeline that sized the vectors"
)]

use crate::{
    model::{
        GRID, Likelihood, Move, Outcome, PerRate, Step,
        background::Background,
        branch_breaks,
        chain_state::{ChainState, RelativeLikelihood},
        first_breaks,
        scaled_product::ScaledProduct,
        stable_breaks,
    },
    timeline::Timeline,
};

/// The states of a test that passes everywhere.
#[derive(Debug)]
pub(crate) struct AlwaysPassing {
    /// By position.
    pub(crate) points: Vec<Point>,
    /// The likelihood of the passes of a lane, by lane.
    pub(crate) totals: Vec<ScaledProduct>,
}

/// The state at one position.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    /// P(Broken) of the chain after the pass.
    pub(crate) after: PerRate,
    /// The transition of the chain's state here, if the stable chain is in the always-passing state too.
    pub(crate) by: Move,
    /// The likelihood of the pass.
    pub(crate) passes: RelativeLikelihood,
    /// 1 divided by the likelihood of the pass.
    pub(crate) scale: PerRate,
    /// Whether a test that is absent here, and had this state before, keeps it.
    pub(crate) absence_is_harmless: bool,
}

/// The transition at a position for a test that ran at every position of the chain. `stable` is P(Broken) of the stable
/// chain before.
fn usual_move(
    timeline: &Timeline<'_>,
    background: &Background,
    position: usize,
    stable: Option<&PerRate>,
) -> Move {
    let entry = &timeline.entries[position];
    let on_stable = timeline.chains[entry.chain].stable;
    match (entry.step, on_stable) {
        (Step::First, true) => Move::first_on_stable(),
        (Step::First, false) => Move::first_on_branch(
            stable,
            &first_breaks(&branch_breaks(background.rates.branches_break), 1.0),
        ),
        (Step::SameRevision, _) => {
            let before = timeline.entries[position - 1].started_at();
            Move::rerun(entry.started_at().since_ms(before))
        }
        (Step::NewRevision, true) => Move::new_on_stable(
            &stable_breaks(background.rates.stable_breaks[position]),
            background.rates.stable_mends[position],
        ),
        (Step::NewRevision, false) => {
            Move::new_on_branch(stable, &branch_breaks(background.rates.branches_break))
        }
    }
}

impl AlwaysPassing {
    /// Computes the states, given the background of every position.
    pub(crate) fn new(timeline: &Timeline<'_>, background: &Background) -> Self {
        let mut points: Vec<Point> = Vec::with_capacity(timeline.entries.len());
        let mut totals = Vec::with_capacity(timeline.lanes.len());
        for lane in &timeline.lanes {
            let mut total = ScaledProduct::ONE;
            for position in lane.positions.clone() {
                let entry = &timeline.entries[position];
                let before = match entry.step {
                    Step::First => ChainState::START,
                    Step::SameRevision | Step::NewRevision => {
                        ChainState::always_passing(&points[position - 1].after)
                    }
                };
                let stable = entry.stable_before.map(|stable| &points[stable].after);
                let by = usual_move(timeline, background, position, stable);
                let pass = Likelihood::of(Outcome::Passed, background.beta[position]);
                let mut passed = before;
                passed.update(&by, &RelativeLikelihood::new(&pass, &[1.0; GRID]));
                let likelihood = passed.likelihood();
                let scale = likelihood.map(|likelihood| 1.0 / likelihood);
                total.multiply(&likelihood);
                total.settle();
                points.push(Point {
                    after: passed.broken(),
                    by,
                    passes: RelativeLikelihood::new(&pass, &scale),
                    scale,
                    absence_is_harmless: false,
                });
            }
            totals.push(total);
        }
        let mut always_passing = Self { points, totals };
        always_passing.mark_absences(timeline);
        always_passing
    }

    /// An absence is harmless under two conditions: the pass does not change the chain's state, and the run is the last
    /// one of its revision. Then the next run is a new revision, with or without a result here.
    fn mark_absences(&mut self, timeline: &Timeline<'_>) {
        for chain in &timeline.chains {
            for position in chain.positions.clone().skip(1) {
                let next = Some(position + 1).filter(|next| chain.positions.contains(next));
                let as_new = next.is_none_or(|next| timeline.entries[next].step == Step::NewRevision);
                let before = ChainState::always_passing(&self.points[position - 1].after);
                self.points[position].absence_is_harmless =
                    as_new && before.is_at(&self.points[position].after);
            }
        }
    }
}
