//! Pass 2: the filter of one test that failed, run only where the test leaves the path of one that always passes.
#![expect(
    clippy::indexing_slicing,
    reason = "every index is a position or chain of the timeline that sized the vectors"
)]

use crate::{
    background::Background,
    model::{GRID, Move, Outcome, PerRate, RATES, Step, mean, observe, pass, posterior, predict},
    numbers::at,
    sequels::{Sequel, Sequels},
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
    /// The positions at which something happens to the test at hand: it fails, is absent, or its chain is off the path.
    visits: Vec<u64>,
    /// How many chains are off the path in a way that may still matter to a later position of the lane.
    loose: u32,
    /// What a failure leads to, for tests that it befalls alike: many fail together in a bad run.
    sequels: Sequels,
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

/// How many positions a word of a set holds.
const BITS: usize = at(u64::BITS);

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
            visits: vec![0; timeline.entries.len().div_ceil(at(u64::BITS))],
            loose: 0,
            sequels: Sequels::new(timeline.entries.len()),
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
        for failure in sheet.failures {
            self.visit(failure.position);
        }
        let timeline = self.timeline;
        let participation = sheet.column.participation;
        let lanes = timeline.lanes.iter().zip(&self.trajectory.totals);
        for ((lane, total), always_seen) in lanes.zip(&participation.always_seen) {
            if !sheet.column.is_in(*always_seen) {
                let mut positions = lane.positions.clone();
                if !positions.any(|position| sheet.column.contains(position)) {
                    continue;
                }
                let positions = lane.positions.clone();
                for position in positions.filter(|position| !sheet.column.contains(*position)) {
                    self.visit(position);
                }
            }
            add(&mut self.log_likelihood, total);
            self.run_lane(sheet, lane);
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
        let mut position = lane.positions.start;
        self.loose = 0;
        self.sequels.forget();
        loop {
            // Off the path, the stable chain matters to all that follows; else the rest is as it always is.
            if self.is_on_path(lane.stable) {
                position = self.next_visit(position);
            }
            if position >= lane.positions.end {
                return;
            }
            self.visits[position / BITS] &= !(1 << (position % BITS));
            let outcome = sheet.outcomes[position];
            let seen = sheet.column.contains(position);
            if seen && self.loose == 0 && outcome != Outcome::Passed {
                let next = self.next_visit(position + 1);
                match self.sequels.of(position, outcome) {
                    Some(sequel) if sequel.until <= next => {
                        self.replay(&sequel);
                        position = sequel.until;
                        continue;
                    }
                    Some(_) => {}
                    None => self.sequels.begin(position, outcome, next),
                }
            }
            let entry = &self.timeline.entries[position];
            let chain = entry.chain;
            let was_on_path = self.chains[chain].is_on_path();
            if !seen {
                self.miss(position);
            } else if outcome != Outcome::Passed || !was_on_path || !self.is_on_path(lane.stable) {
                self.step(position, lane.stable, outcome);
            }
            self.loose -= u32::from(!was_on_path);
            if !self.chains[chain].is_on_path() {
                if was_on_path {
                    self.touched.push(chain);
                }
                if let Some(next) = entry.next {
                    self.visit(next);
                }
                self.loose += u32::from(entry.next.is_some() || lane.stable == Some(chain));
            }
            position += 1;
            if self.loose == 0 {
                self.sequels.end(position);
            }
        }
    }

    /// Takes in the results of a test that passes for a while after a failure, as others did.
    fn replay(&mut self, sequel: &Sequel) {
        for index in sequel.factors.clone() {
            let (position, likelihood) = self.sequels.factors[index];
            self.multiply(position, &likelihood);
        }
    }

    /// Multiplies the likelihood by that of a position's result, in the place of a pass on the path.
    fn multiply(&mut self, position: usize, likelihood: &PerRate) {
        for (product, factor) in self.product.iter_mut().zip(likelihood) {
            *product *= factor;
        }
        self.factors += 1;
        if self.factors == FACTORS {
            self.fold();
        }
        subtract(
            &mut self.log_likelihood,
            &self.trajectory.points[position].log_likelihood,
        );
    }

    fn is_on_path(&self, chain: Option<usize>) -> bool {
        chain.is_none_or(|chain| self.chains[chain].is_on_path())
    }

    fn visit(&mut self, position: usize) {
        self.visits[position / BITS] |= 1 << (position % BITS);
    }

    /// The first position from `from` on that is to be visited; past all positions where there is none.
    fn next_visit(&self, from: usize) -> usize {
        let mut rest = u64::MAX << (from % BITS);
        for (index, word) in self.visits.iter().enumerate().skip(from / BITS) {
            let found = word & rest;
            if found != 0 {
                return index * BITS + at(found.trailing_zeros());
            }
            rest = u64::MAX;
        }
        usize::MAX
    }

    /// Takes in a result step by step.
    fn step(&mut self, position: usize, stable: Option<usize>, outcome: Outcome) {
        let entry = &self.timeline.entries[position];
        let point = &self.trajectory.points[position];
        let on_path = [0.0; GRID];
        let (step, before) = match &self.chains[entry.chain] {
            State::OnPath => {
                let before = entry
                    .previous
                    .map_or(&on_path, |previous| &self.trajectory.points[previous].after);
                (entry.step, before)
            }
            State::Unborn => (Step::First, &on_path),
            State::OffPath { broken, revision } if *revision == entry.revision => {
                (Step::SameRevision, broken)
            }
            State::OffPath { broken, .. } => (Step::NewRevision, broken),
        };
        let on_stable = stable == Some(entry.chain);
        // Moves along the path are known; what the stable chain says matters to new code only.
        let as_usual =
            step == entry.step && (on_stable || step == Step::SameRevision || self.is_on_path(stable));
        let (likelihood, broken) = if outcome == Outcome::Passed && step != Step::First {
            if as_usual {
                pass(&point.moves, before, &point.passes)
            } else {
                let moves = Move::new(step, on_stable, self.stable_belief(stable, point));
                pass(&moves, before, &point.passes)
            }
        } else {
            let predicted = predict(step, before, on_stable, self.stable_belief(stable, point));
            observe(&predicted, outcome, self.background.beta[position])
        };
        self.sequels.take_in(position, &likelihood);
        self.multiply(position, &likelihood);
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
