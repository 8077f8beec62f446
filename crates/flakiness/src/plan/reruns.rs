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

/// Probabilities of a decision that differ by less than this are equal.
const EQUAL: f64 = 0.01;

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

/// A test to run again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlannedRerun {
    /// The index of the suspect.
    pub suspect: usize,
    /// The tests with which it runs.
    pub kind: RerunKind,
    /// The largest number of repetitions, from 1. They end when the test is decided.
    pub repetitions: u32,
    /// The probability that the results decide about its cause.
    pub decides: f64,
}

/// Reruns within a budget.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RerunPlan {
    /// The tests to run again, in the order of the suspects.
    pub reruns: Vec<PlannedRerun>,
    /// The expected seconds: repetitions of a test end when it is decided.
    pub expected_s: f64,
    /// The seconds if every repetition is needed; at most the budget.
    pub longest_s: f64,
    /// The probability that the run passes or is blocked afterwards.
    pub decides: f64,
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
    !plan(suspects, &unbounded).reruns.is_empty()
}

/// Reruns within the budget. `suspects` are all failed tests of the run; those run again that stand in the way of a
/// decision. A test runs at most eight times in all.
///
/// The tests of a mass failure have one cause, so a few of them run again for all. For each cause by itself the kind is
/// chosen that decides it more surely, or of two equal ones the cheaper one. Repetitions are then added where they add most
/// to the probability that their cause is decided, for each second. So a larger budget may make the decision of the run
/// less probable. Choices that regard all causes together decide no more runs: of 2,075 simulated ones, 239 in place of 237
/// stay undecided.
pub fn plan(suspects: &[Suspect], limits: &Limits) -> RerunPlan {
    let causes = common_causes(suspects);
    let mines: Vec<f64> = causes.iter().map(|cause| cause.mine_now(suspects)).collect();
    let open = open_causes(&mines, limits.passes_below);
    let others = mines
        .iter()
        .enumerate()
        .filter(|(index, _)| !open.contains(index));
    let none_of_others: f64 = others.map(|(_, mine)| 1.0 - mine).product();
    let passes_below = limits.of_one_cause(open.len(), none_of_others);
    let mut choices: Vec<Choice> = open
        .iter()
        .filter_map(|index| causes.get(*index))
        .map(|cause| Choice::of(cause, suspects, passes_below, limits))
        .collect();
    while let Some((index, repetitions)) = best_addition(&choices, limits) {
        if let Some(choice) = choices.get_mut(index) {
            choice.repetitions = repetitions;
        }
    }
    let planned = choices.iter().filter(|choice| choice.repetitions > 0);
    let mut reruns: Vec<PlannedRerun> = planned
        .flat_map(|choice| {
            choice.tests.iter().map(|suspect| PlannedRerun {
                suspect: *suspect,
                kind: choice.kind,
                repetitions: choice.repetitions,
                decides: choice.outcomes().decides(),
            })
        })
        .collect();
    reruns.sort_unstable_by_key(|rerun| rerun.suspect);
    RerunPlan {
        reruns,
        expected_s: expected_seconds(&choices, limits),
        longest_s: longest_seconds(&choices, limits),
        decides: decides(&choices),
    }
}

impl Limits {
    /// The probability below which each of this many causes must be, so that the run passes.
    fn of_one_cause(&self, causes: usize, none_of_others: f64) -> f64 {
        let left = (1.0 - self.passes_below) / none_of_others.max(f64::EPSILON);
        let causes = f64::from(numbers::count(causes).max(1));
        (1.0 - left.powf(causes.recip())).max(0.0)
    }
}

/// The kinds of reruns: those of one kind start together.
const KINDS: [RerunKind; 2] = [RerunKind::Alone, RerunKind::WithFile];

/// The number of starts of the runner for a kind.
fn starts(choices: &[Choice], kind: RerunKind) -> u32 {
    let of_kind = choices.iter().filter(|choice| choice.kind == kind);
    of_kind.map(|choice| choice.repetitions).max().unwrap_or(0)
}

/// The seconds if every repetition is needed.
fn longest_seconds(choices: &[Choice], limits: &Limits) -> f64 {
    let starts: u32 = KINDS.iter().map(|kind| starts(choices, *kind)).sum();
    let tests: f64 = choices
        .iter()
        .map(|choice| f64::from(choice.repetitions) * choice.seconds)
        .sum();
    f64::from(starts) * limits.startup_s + tests
}

/// The expected seconds. A start is needed while any cause of its kind is undecided.
fn expected_seconds(choices: &[Choice], limits: &Limits) -> f64 {
    let mut seconds = 0.0;
    for kind in KINDS {
        for repetition in 1..=starts(choices, kind) {
            let of_kind = choices.iter().filter(|choice| choice.kind == kind);
            let mut none_needed = 1.0;
            for choice in of_kind {
                let needed = choice.needs(repetition);
                none_needed *= 1.0 - needed.min(1.0);
                seconds += needed * choice.seconds;
            }
            seconds += (1.0 - none_needed) * limits.startup_s;
        }
    }
    seconds
}

/// The probability that the run is decided: one cause blocks it, or all let it pass.
fn decides(choices: &[Choice]) -> f64 {
    let (mut all_pass, mut none_blocks) = (1.0, 1.0);
    for outcomes in choices.iter().map(Choice::outcomes) {
        all_pass *= outcomes.passes;
        none_blocks *= 1.0 - outcomes.blocks;
    }
    (all_pass + 1.0 - none_blocks).clamp(0.0, 1.0)
}

/// The choice and its new number of repetitions that add most to the probability of a decision for each second; none if
/// nothing is added within the budget.
fn best_addition(choices: &[Choice], limits: &Limits) -> Option<(usize, u32)> {
    let now = longest_seconds(choices, limits);
    let started = KINDS.map(|kind| (kind, starts(choices, kind)));
    let mut best: Option<(f64, usize, u32)> = None;
    for (index, choice) in choices.iter().enumerate() {
        let starts = started.iter().find(|(kind, _)| *kind == choice.kind);
        let starts = starts.map_or(0, |(_, starts)| *starts);
        // One more may decide nothing where two more do: a block needs two further failures.
        for repetitions in choice.repetitions + 1..=choice.most() {
            let more = repetitions - choice.repetitions;
            let gain = choice.outcomes_of(repetitions).decides() - choice.outcomes().decides();
            let seconds = f64::from(more) * choice.seconds
                + f64::from(repetitions.saturating_sub(starts)) * limits.startup_s;
            if gain <= EQUAL || now + seconds > limits.budget_s {
                continue;
            }
            let rate = gain / seconds.max(f64::MIN_POSITIVE);
            if best.is_none_or(|(most, ..)| rate > most) {
                best = Some((rate, index, repetitions));
            }
        }
    }
    best.map(|(_, index, repetitions)| (index, repetitions))
}

#[cfg(test)]
mod tests;
