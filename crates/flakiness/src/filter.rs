//! Pass 2: the filter of one test that failed, run only where the test leaves the path of one that always passes.
#![expect(
    clippy::indexing_slicing,
    reason = "every index is a position or chain of the timeline that sized the vectors"
)]

use crate::{
    background::Background,
    model::{GRID, Outcome, PerRate, RATES, Step, mean, observe, posterior, predict},
    sheet::Sheet,
    timeline::{Lane, Timeline},
    trajectory::{Point, Trajectory, same},
};

/// What the filter says of a test.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Belief {
    /// The posterior of each rate.
    weights: PerRate,
    /// Probability that the test itself is unreliable.
    pub(crate) flake_score: f64,
    /// The expected flake rate.
    pub(crate) flake_rate: f64,
}

/// The filter with its working memory, reused from test to test.
#[derive(Debug)]
pub(crate) struct Filter<'t, 'h> {
    timeline: &'t Timeline<'h>,
    background: &'t Background,
    trajectory: &'t Trajectory,
    chains: Vec<State>,
    /// The chains whose state is or was off the path: those to be put back before the next test.
    touched: Vec<usize>,
    /// How many chains are off the path in a way that may still matter to a later position of the lane.
    loose: u32,
    /// The likelihoods of the latest steps, multiplied; a logarithm is taken only now and then.
    product: PerRate,
    factors: u32,
    log_likelihood: PerRate,
}

/// Where a chain of the test at hand stands.
#[derive(Debug, Clone, Copy)]
enum State {
    /// On the path of a test that passes everywhere.
    OnPath,
    /// Off the path; the test has not run on the chain yet.
    Unborn,
    /// Off the path: P(Broken) after the last run, and that run's revision.
    OffPath { broken: PerRate, revision: usize },
}

impl State {
    const fn is_on_path(&self) -> bool {
        match self {
            Self::OnPath => true,
            Self::Unborn | Self::OffPath { .. } => false,
        }
    }
}

/// Factors multiplied before a logarithm is taken: each is at least 1e-6, so that the product stays in range.
const FACTORS: u32 = 32;

impl<'t, 'h> Filter<'t, 'h> {
    /// A filter for the tests of a timeline.
    pub(crate) fn new(
        timeline: &'t Timeline<'h>,
        background: &'t Background,
        trajectory: &'t Trajectory,
    ) -> Self {
        Self {
            timeline,
            background,
            trajectory,
            chains: vec![State::OnPath; timeline.chains.len()],
            touched: Vec::new(),
            loose: 0,
            product: [1.0; GRID],
            factors: 0,
            log_likelihood: [0.0; GRID],
        }
    }

    /// Runs the filter over all results of a test.
    pub(crate) fn run(&mut self, sheet: Sheet<'_, 'h>) -> Belief {
        while let Some(chain) = self.touched.pop() {
            self.chains[chain] = State::OnPath;
        }
        self.log_likelihood = [0.0; GRID];
        for (lane, total) in self.timeline.lanes.iter().zip(&self.trajectory.totals) {
            if lane
                .positions
                .clone()
                .any(|position| sheet.column.contains(position))
            {
                add(&mut self.log_likelihood, total);
                self.run_lane(sheet, lane);
            }
        }
        self.fold();
        let weights = posterior(&self.log_likelihood);
        Belief {
            weights,
            flake_score: 1.0 - weights[0],
            flake_rate: mean(&weights, &RATES),
        }
    }

    /// P(Broken) of a chain after its last run of the test, whose position is `last`.
    pub(crate) fn broken_probability(&self, belief: &Belief, chain: usize, last: usize) -> f64 {
        match &self.chains[chain] {
            State::OnPath => mean(&belief.weights, &self.trajectory.points[last].after),
            State::OffPath { broken, .. } => mean(&belief.weights, broken),
            State::Unborn => 0.0,
        }
    }

    fn run_lane(&mut self, sheet: Sheet<'_, 'h>, lane: &Lane) {
        let seen = |position: usize| sheet.column.is_in(sheet.column.participation.seen[position]);
        self.loose = 0;
        let mut position = lane.positions.start;
        while position < lane.positions.end {
            if self.loose == 0 {
                // Nothing to do until the test fails or is absent.
                let quiet =
                    |position: &usize| seen(*position) && sheet.outcomes[*position] == Outcome::Passed;
                position += (position..lane.positions.end).take_while(quiet).count();
                if position == lane.positions.end {
                    return;
                }
            }
            let chain = self.timeline.entries[position].chain;
            let before = self.chains[chain];
            if !seen(position) {
                self.miss(position);
            } else if sheet.outcomes[position] != Outcome::Passed || !self.is_on_path(chain, lane.stable) {
                self.step(position, lane.stable, sheet.outcomes[position]);
            }
            self.account(position, chain, lane.stable, before.is_on_path());
            position += 1;
        }
    }

    fn is_on_path(&self, chain: usize, stable: Option<usize>) -> bool {
        self.chains[chain].is_on_path() && stable.is_none_or(|stable| self.chains[stable].is_on_path())
    }

    /// Counts the chains that matter later: the stable one to all that follows, another as long as it has runs.
    fn account(&mut self, position: usize, chain: usize, stable: Option<usize>, was_on_path: bool) {
        let over = stable != Some(chain) && self.timeline.chains[chain].last == position;
        let is_loose = !self.chains[chain].is_on_path() && !over;
        if was_on_path && !self.chains[chain].is_on_path() {
            self.touched.push(chain);
        }
        self.loose = self.loose + u32::from(is_loose) - u32::from(!was_on_path);
    }

    /// Takes in a result step by step.
    fn step(&mut self, position: usize, stable: Option<usize>, outcome: Outcome) {
        let entry = &self.timeline.entries[position];
        let point = &self.trajectory.points[position];
        let (step, before) = match &self.chains[entry.chain] {
            State::OnPath => {
                let before = entry
                    .previous
                    .map_or([0.0; GRID], |previous| self.trajectory.points[previous].after);
                (entry.step, before)
            }
            State::Unborn => (Step::First, [0.0; GRID]),
            State::OffPath { broken, revision } if *revision == entry.revision => {
                (Step::SameRevision, *broken)
            }
            State::OffPath { broken, .. } => (Step::NewRevision, *broken),
        };
        let on_stable = self.timeline.chains[entry.chain].stable;
        let predicted = predict(step, &before, on_stable, self.stable_belief(stable, point));
        let (likelihood, broken) = observe(&predicted, outcome, self.background.beta[position]);
        for (product, factor) in self.product.iter_mut().zip(&likelihood) {
            *product *= factor;
        }
        self.factors += 1;
        if self.factors == FACTORS {
            self.fold();
        }
        subtract(&mut self.log_likelihood, &point.log_likelihood);
        self.chains[entry.chain] = if same(&broken, &point.after) {
            State::OnPath
        } else {
            State::OffPath {
                broken,
                revision: entry.revision,
            }
        };
    }

    /// Skips a run that did not contain the test.
    fn miss(&mut self, position: usize) {
        let entry = &self.timeline.entries[position];
        let point = &self.trajectory.points[position];
        subtract(&mut self.log_likelihood, &point.log_likelihood);
        if self.chains[entry.chain].is_on_path() && !point.absence_is_harmless {
            self.chains[entry.chain] = entry.previous.map_or(State::Unborn, |previous| State::OffPath {
                broken: self.trajectory.points[previous].after,
                revision: self.timeline.entries[previous].revision,
            });
        }
    }

    /// P(Broken) of the lane's stable chain as the test left it, where it has run there.
    fn stable_belief(&self, stable: Option<usize>, point: &'t Point) -> Option<&PerRate> {
        match &self.chains[stable?] {
            State::OnPath => point
                .stable_before
                .map(|position| &self.trajectory.points[position].after),
            State::Unborn => None,
            State::OffPath { broken, .. } => Some(broken),
        }
    }

    fn fold(&mut self) {
        for (sum, product) in self.log_likelihood.iter_mut().zip(&mut self.product) {
            *sum += product.ln();
            *product = 1.0;
        }
        self.factors = 0;
    }
}

fn add(sum: &mut PerRate, terms: &PerRate) {
    for (sum, term) in sum.iter_mut().zip(terms) {
        *sum += term;
    }
}

fn subtract(sum: &mut PerRate, terms: &PerRate) {
    for (sum, term) in sum.iter_mut().zip(terms) {
        *sum -= term;
    }
}
