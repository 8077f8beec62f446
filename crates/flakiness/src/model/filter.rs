//! Pass 2: the filter of one failing test. It runs only where the test's state differs from that of an always-passing
//! test.
#![expect(
    clippy::indexing_slicing,
    reason = "every index is a position or chain of the timeline that sized the vectors"
)]

use crate::{
    model::{
        GRID, Likelihood, Move, Outcome, PerRate, RATES, Step,
        always_passing::AlwaysPassing,
        background::Background,
        chain_state::{ChainState, Seen},
        mean,
        scaled_product::ScaledProduct,
    },
    timeline::{Chain, Timeline, positions::Positions},
    verdict::test_counts::TestCounts,
};

/// The result of the filter for a test.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Belief {
    /// The posterior of each rate.
    weights: PerRate,
    /// The probability that the test itself is unreliable.
    pub(crate) flake_score: f64,
    /// The expected flake rate.
    pub(crate) flake_rate: f64,
}

/// The filter with its working memory, which is reused from test to test.
#[derive(Debug)]
pub(crate) struct Filter<'t, 'h> {
    timeline: &'t Timeline<'h>,
    background: &'t Background,
    always_passing: &'t AlwaysPassing,
    /// The positions at which something happens to the current test: it fails, is absent, or new code inherits a state
    /// that differs from the always-passing one.
    visits: Positions,
    /// The positions of stable chains after which the state of the current test differs.
    astray: Positions,
    /// P(Broken) at these positions, by position.
    stable: Vec<PerRate>,
    /// The likelihood of the results.
    likelihood: ScaledProduct,
    /// The number of factors since the last call of `settle`.
    factors: u32,
}

/// The number of factors after which a product must be settled: each factor is at least 1e-6.
const FACTORS: u32 = 32;

impl<'t, 'h> Filter<'t, 'h> {
    /// A filter for the tests of a timeline.
    pub(crate) fn new(
        timeline: &'t Timeline<'h>,
        background: &'t Background,
        always_passing: &'t AlwaysPassing,
    ) -> Self {
        let positions = timeline.entries.len();
        Self {
            timeline,
            background,
            always_passing,
            visits: Positions::new(positions),
            astray: Positions::new(positions),
            stable: vec![[0.0; GRID]; positions],
            likelihood: ScaledProduct::ONE,
            factors: 0,
        }
    }

    /// Runs the filter over all results of a test.
    pub(crate) fn run(&mut self, test_counts: TestCounts<'_, 'h>) -> Belief {
        self.visits.clear();
        self.astray.clear();
        self.likelihood = ScaledProduct::ONE;
        self.factors = 0;
        for failure in test_counts.failures {
            self.visits.insert(failure.position);
        }
        let lanes = self.timeline.lanes.iter().zip(&self.always_passing.totals);
        for ((lane, total), always_seen) in lanes.zip(&test_counts.column.participation.always_seen) {
            if !test_counts.column.is_in(*always_seen) {
                let absent = |position: &usize| !test_counts.column.contains(*position);
                if lane.positions.clone().all(|position| absent(&position)) {
                    continue;
                }
                for position in lane.positions.clone().filter(absent) {
                    self.visits.insert(position);
                }
            }
            self.likelihood.multiply_all(total);
        }
        self.walk(test_counts);
        let weights = self.likelihood.clone().posterior();
        Belief {
            weights,
            flake_score: 1.0 - weights[0],
            flake_rate: mean(&weights, &RATES),
        }
    }

    /// P(Broken) of a stable chain after the test's last run on it, which has position `last`.
    pub(crate) fn broken_probability(&self, belief: &Belief, last: usize) -> f64 {
        mean(&belief.weights, self.stable_after(last))
    }

    /// P(Broken) of a stable chain after one of its positions, for the current test.
    fn stable_after(&self, position: usize) -> &PerRate {
        if self.astray.contains(position) {
            &self.stable[position]
        } else {
            &self.always_passing.points[position].after
        }
    }

    /// Goes through the positions at which the test's state differs from the always-passing one or leaves it.
    fn walk(&mut self, test_counts: TestCounts<'_, 'h>) {
        let mut position = 0;
        while let Some(visited) = self.visits.next(position) {
            let point = &self.always_passing.points[visited];
            position = if point.absence_is_harmless && !test_counts.column.contains(visited) {
                self.multiply(&point.scale);
                visited + 1
            } else {
                self.stray(test_counts, visited)
            };
        }
    }

    /// Follows a chain from `first` on while its state differs, and returns the position from which it is
    /// always-passing again.
    fn stray(&mut self, test_counts: TestCounts<'_, 'h>, first: usize) -> usize {
        let (timeline, always_passing) = (self.timeline, self.always_passing);
        let chain = &timeline.chains[timeline.entries[first].chain];
        let (mut code, mut revision) = match timeline.entries[first].step {
            Step::First => (ChainState::UNBORN, None),
            Step::SameRevision | Step::NewRevision => (
                ChainState::on_path(&always_passing.points[first - 1].after),
                Some(timeline.entries[first - 1].revision),
            ),
        };
        for position in first..chain.positions.end {
            let point = &always_passing.points[position];
            if test_counts.column.contains(position) {
                let here = timeline.entries[position].revision;
                let step = Step::between(revision.replace(here), here);
                let unusual = self.unusual_move(chain, position, step);
                let by = unusual.as_ref().unwrap_or(&point.by);
                let outcome = test_counts.outcomes[position];
                if outcome == Outcome::Passed {
                    code.take_in(by, &point.passes);
                } else {
                    let likelihood = Likelihood::of(outcome, self.background.beta[position]);
                    code.take_in(by, &Seen::new(&likelihood, &point.scale));
                }
                if outcome == Outcome::Passed && code.is_at(&point.after) {
                    self.multiply(&code.likelihood());
                    return position + 1;
                }
            } else {
                code.scale(&point.scale);
            }
            if chain.stable {
                self.bequeath(position, &code);
            }
            self.factors += 1;
            if self.factors >= FACTORS {
                let likelihood = code.likelihood();
                self.multiply(&likelihood);
                code.scale(&likelihood.map(|likelihood| 1.0 / likelihood));
            }
        }
        self.multiply(&code.likelihood());
        chain.positions.end
    }

    /// The move of a chain where it differs from the always-passing one.
    fn unusual_move(&self, chain: &Chain<'_>, position: usize, step: Step) -> Option<Move> {
        let entry = &self.timeline.entries[position];
        let heeds = step != Step::SameRevision;
        let astray = |stable: usize| heeds && self.astray.contains(stable);
        if step == entry.step && !entry.stable_before.is_some_and(astray) {
            return None;
        }
        let stable = entry.stable_before.map(|stable| self.stable_after(stable));
        Some(Move::new(step, chain.stable, stable))
    }

    /// Records P(Broken) after this stable-branch run and queues the branch positions that inherit it.
    fn bequeath(&mut self, position: usize, code: &ChainState) {
        self.astray.insert(position);
        self.stable[position] = code.broken();
        for heir in &self.timeline.entries[position].heirs {
            self.visits.insert(*heir);
        }
    }

    fn multiply(&mut self, factors: &PerRate) {
        self.likelihood.multiply(factors);
        self.factors += 1;
        if self.factors >= FACTORS {
            self.likelihood.settle();
            self.factors = 0;
        }
    }
}
