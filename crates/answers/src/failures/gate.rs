//! Turns probabilities into a cause and an action.

use std::collections::BTreeMap;

use assay_domain::{
    cause::{Action, Cause, band},
    test::TestOrdinal,
};
use assay_flakiness::{FailureCause, Probabilities, any_mine, mine_and_shared};
use serde::Serialize;

/// A cause below this probability is `unclear`.
pub const CLEAR: f64 = 0.6;
/// A run passes if the probability that its branch broke a test is below this.
const PASSES_BELOW: f64 = 0.05;
/// A cause is called likely from this probability on.
const LIKELY: f64 = 0.5;
/// A run is blocked from this probability on.
pub const BLOCKS_FROM: f64 = 0.9;

/// The action for a run with failures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Gate {
    /// `pass` below 0.05, `block` from 0.9 on, else `rerun`. A run that may lack results, or that has an error outside of
    /// its tests, does not pass: it is at least `rerun`.
    pub action: Action,
    /// P(this branch broke at least one of the failed tests).
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub mine: f64,
    /// The failed tests by cause, without recovered tests.
    pub by_cause: ByCause,
}

/// Failed tests by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ByCause {
    /// The test is flaky.
    pub flake: u32,
    /// A crowd of failures, or a change outside of the code.
    pub environment: u32,
    /// Broken before this branch.
    pub broken_before: u32,
    /// Broken by an earlier revision of this branch.
    pub earlier_on_branch: u32,
    /// Broken by this revision.
    pub this_change: u32,
    /// No cause is probable enough.
    pub unclear: u32,
}

impl ByCause {
    /// The number of failed tests.
    pub fn tests(&self) -> u32 {
        self.counts().iter().map(|(_, tests)| tests).sum()
    }

    /// The numbers with their causes: this branch's first.
    pub const fn counts(&self) -> [(Cause, u32); 6] {
        [
            (Cause::ThisChange, self.this_change),
            (Cause::EarlierOnBranch, self.earlier_on_branch),
            (Cause::BrokenBefore, self.broken_before),
            (Cause::Flake, self.flake),
            (Cause::Environment, self.environment),
            (Cause::Unclear, self.unclear),
        ]
    }

    const fn add(&mut self, cause: Cause, tests: u32) {
        let count = match cause {
            Cause::Flake => &mut self.flake,
            Cause::Environment => &mut self.environment,
            Cause::BrokenBefore => &mut self.broken_before,
            Cause::EarlierOnBranch => &mut self.earlier_on_branch,
            Cause::ThisChange => &mut self.this_change,
            Cause::Unclear => &mut self.unclear,
        };
        *count += tests;
    }
}

/// The gate of a run, or of the runs of a commit. A test that failed in several variants counts once, with the highest
/// probability that the branch broke it. The environment fails all its tests by one cause.
pub fn gate<'a>(causes: impl IntoIterator<Item = &'a FailureCause>) -> Gate {
    let tests = failed_tests(causes);
    let mut by_cause = ByCause::default();
    for (failure, _) in tests.values() {
        by_cause.add(cause(failure), 1);
    }
    Gate::of(any_mine(tests.into_values().map(mine_of)), by_cause)
}

/// The failure of each failed test with the highest probability that the branch broke it, and the smallest probability of a
/// [shared cause](mine_and_shared) of its failures.
fn failed_tests<'a>(
    causes: impl IntoIterator<Item = &'a FailureCause>,
) -> BTreeMap<TestOrdinal, (&'a FailureCause, f64)> {
    let mut tests: BTreeMap<TestOrdinal, (&FailureCause, f64)> = BTreeMap::new();
    for failure in causes.into_iter().filter(|failure| !failure.recovered) {
        let is_one = failure.in_mass_failure || failure.facts.nothing_compares;
        let Probabilities { environment, .. } = failure.probabilities;
        let (mine, shared) = mine_and_shared(failure.probabilities.mine(), is_one, environment);
        let (worst, least_shared) = tests.entry(failure.test).or_insert((failure, shared));
        if mine > worst.probabilities.mine() {
            *worst = failure;
        }
        *least_shared = least_shared.min(shared);
    }
    tests
}

fn mine_of((failure, shared): (&FailureCause, f64)) -> (f64, f64) {
    (failure.probabilities.mine(), shared)
}

/// The actions for the failures of a run, or of the runs of a commit. A failure has the action for all failures together
/// that are no more probably caused by the branch. So no failure has a stronger action than the run, and one has the same.
#[derive(Debug, Clone, Copy)]
pub struct Actions {
    rerun_from: f64,
    block_from: f64,
}

impl Actions {
    /// The actions for these failures.
    pub fn of<'a>(causes: impl IntoIterator<Item = &'a FailureCause>) -> Self {
        let causes: Vec<&FailureCause> = causes.into_iter().collect();
        let mine = |failure: &&FailureCause| failure.probabilities.mine();
        let mut mines: Vec<f64> = causes.iter().map(mine).collect();
        mines.sort_unstable_by(f64::total_cmp);
        let any = |most: f64| {
            let counted = causes.iter().copied().filter(|failure| mine(failure) <= most);
            any_mine(failed_tests(counted).into_values().map(mine_of))
        };
        let from = |least: f64| {
            let place = mines.partition_point(|mine| any(*mine) < least);
            mines.get(place).copied().unwrap_or(f64::INFINITY)
        };
        Self {
            rerun_from: from(PASSES_BELOW),
            block_from: from(BLOCKS_FROM),
        }
    }

    /// The action for a failure with this probability that the branch broke it.
    pub fn of_failure(&self, mine: f64) -> Action {
        if mine >= self.block_from {
            Action::Block
        } else if mine >= self.rerun_from {
            Action::Rerun
        } else {
            Action::Pass
        }
    }
}

/// The probability that the branch broke a test, in words that agree with the action for its failure.
pub const fn whose(mine: f64, action: Action) -> &'static str {
    match action {
        Action::Pass => band(0.0),
        Action::Rerun if mine < PASSES_BELOW => "possible, with the other failures",
        Action::Block if mine < LIKELY => "likely, with the other failures",
        Action::Rerun | Action::Block => band(mine),
    }
}

impl Gate {
    /// The gate of a run that may lack results, if it is incomplete.
    #[must_use]
    pub fn of_incomplete(self, is_incomplete: bool) -> Self {
        let action = match (self.action, is_incomplete) {
            (Action::Pass, true) => Action::Rerun,
            (action, _) => action,
        };
        Self { action, ..self }
    }

    /// Whether only missing results, or an error outside of tests, speak against the run.
    pub fn only_lacks_results(&self) -> bool {
        self.action == Action::Rerun && self.mine < PASSES_BELOW
    }

    /// The gate of a run with this probability that its branch broke any of the failed tests.
    fn of(mine: f64, by_cause: ByCause) -> Self {
        let mine = mine.clamp(0.0, 1.0);
        Self {
            action: action(mine),
            mine,
            by_cause,
        }
    }
}

/// The action for this probability of a breakage by the branch.
pub fn action(mine: f64) -> Action {
    if mine < PASSES_BELOW {
        Action::Pass
    } else if mine >= BLOCKS_FROM {
        Action::Block
    } else {
        Action::Rerun
    }
}

/// The cause of a failure.
pub fn cause(failure: &FailureCause) -> Cause {
    let [(likeliest, probability), _] = two_likeliest(&failure.probabilities);
    let is_unknown = failure.facts.nothing_compares || !failure.facts.causes_distinguishable;
    if probability < CLEAR || is_unknown {
        Cause::Unclear
    } else {
        likeliest
    }
}

/// The two largest probabilities, the largest first.
pub(super) fn two_likeliest(of: &Probabilities) -> [(Cause, f64); 2] {
    let mut causes = [
        (Cause::Flake, of.flake),
        (Cause::Environment, of.environment),
        (Cause::BrokenBefore, of.broken_before),
        (Cause::EarlierOnBranch, of.earlier_on_branch),
        (Cause::ThisChange, of.this_change),
    ];
    causes.sort_by(|(_, left), (_, right)| right.total_cmp(left));
    let [first, second, ..] = causes;
    [first, second]
}
