//! Reruns of failed tests: after which of them the gate can decide, and what they cost.

mod choice;
mod common_cause;
mod suspect;

pub use self::{
    common_cause::mines_now,
    suspect::{ProcessOf, RerunKind, RerunResults, Results, Suspect},
};

use self::{choice::Choice, common_cause::common_causes};
use crate::numbers;

/// The cost of a wrong block: the hour of one person, in seconds of waiting for reruns.
const WRONG_BLOCK_S: f64 = 3_600.0;

/// What bounds a plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The most seconds that all reruns may take.
    pub budget_s: f64,
    /// The seconds of a start of the runner.
    pub startup_s: f64,
    /// The run passes if the probability that this change broke any test is below this.
    pub passes_below: f64,
    /// The run is blocked if that probability is at least this.
    pub blocks_from: f64,
}

/// A test that runs again next, once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlannedRerun {
    /// The index of the suspect.
    pub suspect: usize,
    /// The tests with which it runs.
    pub kind: RerunKind,
}

/// The causes that reruns must decide, as indexes of `mines`, which has P(this change is it) of each: the fewest without
/// which the others leave at most half of the accepted probability.
fn open_causes(mines: &[f64], passes_below: f64) -> Vec<usize> {
    let mut order: Vec<(usize, f64)> = mines.iter().copied().enumerate().collect();
    order.sort_by(|(_, left), (_, right)| left.total_cmp(right));
    let mut none_mine = 1.0;
    let others = order
        .iter()
        .take_while(|(_, mine)| {
            none_mine *= 1.0 - mine;
            1.0 - none_mine <= passes_below / 2.0
        })
        .count();
    let mut open: Vec<usize> = order.into_iter().skip(others).map(|(index, _)| index).collect();
    open.sort_unstable();
    open
}

/// Whether more reruns may decide, whatever they cost.
pub fn may_decide(suspects: &[Suspect], limits: &Limits) -> bool {
    let unbounded = Limits {
        budget_s: f64::INFINITY,
        ..*limits
    };
    !plan(suspects, &unbounded).is_empty()
}

/// The next reruns within the budget, in the order of the suspects. `suspects` are all failed tests of the run; those run
/// again that stand in the way of a decision. A test runs at most eight times in all.
///
/// The tests of a mass failure have one cause, so a few of them run again for all. Of each cause by itself, the rerun is
/// chosen after which the expected loss is smallest, and runs if it saves more than it costs. Where none does and no test
/// has run again, the cheapest rerun runs: no run is blocked without one.
pub fn plan(suspects: &[Suspect], limits: &Limits) -> Vec<PlannedRerun> {
    let causes = common_causes(suspects);
    let mines: Vec<f64> = causes.iter().map(|cause| cause.mine_now(suspects)).collect();
    let none_mine: f64 = mines.iter().map(|mine| 1.0 - mine).product();
    if 1.0 - none_mine < limits.passes_below {
        return Vec::new();
    }
    let open = open_causes(&mines, limits.passes_below);
    let others = mines
        .iter()
        .enumerate()
        .filter(|(index, _)| !open.contains(index));
    let none_of_others: f64 = others.map(|(_, mine)| 1.0 - mine).product();
    let passes_below = limits.of_one_cause(open.len(), none_of_others);
    let has_run = suspects.iter().any(|suspect| suspect.results.all() > 0);
    let mut choices = Vec::new();
    for index in &open {
        let (Some(cause), Some(mine)) = (causes.get(*index), mines.get(*index)) else {
            continue;
        };
        // A block is wrong only if no other test is broken.
        let others = open.iter().filter(|other| *other != index);
        let none_broken: f64 = others
            .filter_map(|other| mines.get(*other))
            .map(|mine| 1.0 - mine)
            .product();
        let stakes = (passes_below, WRONG_BLOCK_S * none_broken);
        let choice = Choice::of(cause, suspects, stakes, limits);
        let is_worth_it = choice.as_ref().is_some_and(|choice| choice.saves_s > 0.0);
        if !is_worth_it && has_run && *mine >= limits.blocks_from {
            // One test that the change broke is enough.
            return Vec::new();
        }
        choices.extend(choice);
    }
    let seconds = |choice: &Choice| choice.seconds + limits.startup_s;
    let by_rate = |one: &Choice, other: &Choice| {
        let rate = |choice: &Choice| choice.saves_s / seconds(choice).max(f64::MIN_POSITIVE);
        rate(other).total_cmp(&rate(one))
    };
    choices.sort_by(by_rate);
    let worth = choices.iter().take_while(|choice| choice.saves_s > 0.0);
    let mut chosen: Vec<&Choice> = Vec::new();
    let mut left_s = limits.budget_s;
    for choice in worth {
        // Tests of one kind share a start of the runner.
        let is_started = chosen.iter().any(|other| other.kind == choice.kind);
        let takes = if is_started {
            choice.seconds
        } else {
            seconds(choice)
        };
        if takes <= left_s {
            left_s -= takes;
            chosen.push(choice);
        }
    }
    if chosen.is_empty() && !has_run {
        chosen.extend(
            choices
                .iter()
                .min_by(|one, other| seconds(one).total_cmp(&seconds(other))),
        );
    }
    let mut planned: Vec<PlannedRerun> = chosen
        .into_iter()
        .flat_map(|choice| {
            choice.tests.iter().map(|suspect| PlannedRerun {
                suspect: *suspect,
                kind: choice.kind,
            })
        })
        .collect();
    planned.sort_unstable_by_key(|rerun| rerun.suspect);
    planned
}

/// The kinds of reruns: those of one kind start together.
const KINDS: [RerunKind; 2] = [RerunKind::Alone, RerunKind::WithFile];

impl Limits {
    /// The probability below which each of this many causes must be, so that the run passes.
    fn of_one_cause(&self, causes: usize, none_of_others: f64) -> f64 {
        let left = (1.0 - self.passes_below) / none_of_others.max(f64::EPSILON);
        let causes = f64::from(numbers::count(causes).max(1));
        (1.0 - left.powf(causes.recip())).max(0.0)
    }
}

#[cfg(test)]
mod tests;
