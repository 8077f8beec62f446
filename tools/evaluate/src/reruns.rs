//! Evaluates the gate with reruns on histories with known causes.
//!
//! The reruns are correlated as in `datasets/rerun-correlation`, and not as the planner assumes: some flakes never occur
//! alone, others come in rows. Three in a hundred breakages show only beside other tests.

use std::{collections::BTreeMap, fmt::Write as _};

use assay_answers::failures::{action, gate};
use assay_flakiness::{
    FailureCause, any_mine,
    domain::{
        cause::{Action, Cause},
        observation::History,
    },
    mine_and_shared,
    plan::reruns::{self, Limits, ProcessOf, RerunKind, RerunResults, Suspect},
};
use rand::{RngExt, SeedableRng, rngs::StdRng};

use crate::{
    breakage::Breakage,
    causes::{BranchRun, COUNTED_FROM, CausesWorld},
    gate_counts::{Actions, causes_for_gate, is_mine},
};

/// The share of flakes that never occur alone, by failures (`assay-evaluate correlation`).
pub(crate) const NEVER_ALONE: f64 = 0.74;
/// The share of flakes that come in rows, by failures, and the probability that such a row goes on. Their product is the
/// measured probability of a failure in the next round.
pub(crate) const IN_ROWS: f64 = 0.52;
pub(crate) const ROW_GOES_ON: f64 = 0.81;
/// The probability that another flake occurs again: the mean rate of the simulated tests.
const FLAKES_AGAIN: f64 = 0.08;
/// The share of breakages that show only beside other tests, and the share of those in the file of the test.
const SHOWN_BESIDE: (f64, f64) = (0.03, 0.67);
/// The probability that an outage lasts until a rerun.
const OUTAGE_LASTS: f64 = 0.7;
/// The budget of a run in seconds.
pub(crate) const BUDGET_S: f64 = 90.0;
/// The risk and the other bound of the gate.
const BOUNDS: (f64, f64) = (0.05, 0.9);

/// What the failures of a run with one cause have in common.
#[derive(Debug, Clone, Copy)]
struct OfRun {
    /// Whether its breakage shows only beside other tests, and if so, whether in the file of the test.
    shows_beside: Option<bool>,
    /// Whether its outage lasts until the reruns.
    outage_lasts: bool,
}

impl OfRun {
    fn draw(random: &mut StdRng) -> Self {
        Self {
            shows_beside: random
                .random_bool(SHOWN_BESIDE.0)
                .then(|| random.random_bool(SHOWN_BESIDE.1)),
            outage_lasts: random.random_bool(OUTAGE_LASTS),
        }
    }
}

/// Why a test fails, as far as its reruns depend on it.
#[derive(Debug, Clone, Copy)]
enum Nature {
    /// Broken code fails with this probability.
    Broken(f64),
    /// Broken code that fails only beside other tests, in its file or not.
    BrokenBeside { in_file: bool },
    /// A flake.
    Flake { alone: bool, goes_on: f64 },
    /// It fails while something outside of the code is bad.
    Environment { lasts: bool, share: f64 },
}

impl Nature {
    fn of(run: &BranchRun, of_run: OfRun, test: u32, cause: Cause, random: &mut StdRng) -> Self {
        let rate = |of: &[Breakage]| {
            let rates = of.iter().filter_map(|broken| broken.tests.get(&test));
            rates.map(|(rate, _)| *rate).next().unwrap_or(0.998)
        };
        match cause {
            Cause::ThisChange | Cause::EarlierOnBranch => match of_run.shows_beside {
                Some(in_file) => Self::BrokenBeside { in_file },
                None => Self::Broken(rate(&run.own)),
            },
            Cause::BrokenBefore => Self::Broken(rate(&run.before)),
            Cause::Environment => match run.outage {
                Some((share, _)) => Self::Environment {
                    lasts: of_run.outage_lasts,
                    share,
                },
                None => Self::Environment {
                    lasts: true,
                    share: 1.0,
                },
            },
            Cause::Flake | Cause::Unclear => Self::Flake {
                alone: !random.random_bool(NEVER_ALONE),
                goes_on: match random.random_bool(IN_ROWS) {
                    true => ROW_GOES_ON,
                    false => FLAKES_AGAIN,
                },
            },
        }
    }

    fn fails(self, kind: RerunKind, random: &mut StdRng) -> bool {
        let probability = match (self, kind) {
            (Self::Broken(rate), _) => rate,
            (Self::BrokenBeside { in_file: true }, RerunKind::WithFile) => 0.998,
            (Self::BrokenBeside { .. }, _) | (Self::Flake { alone: false, .. }, RerunKind::Alone) => 0.0,
            (Self::Flake { goes_on, .. }, _) => goes_on,
            (Self::Environment { lasts: true, share }, _) => share,
            (Self::Environment { lasts: false, .. }, _) => 0.0,
        };
        random.random_bool(probability)
    }
}

/// A failed test of the run that runs again.
struct Failed {
    test: u32,
    nature: Nature,
}

/// The gate before and after, by whether the branch broke a failed test.
#[derive(Debug, Default)]
pub(crate) struct Score {
    before: [Actions; 2],
    after: [Actions; 2],
    seconds: Vec<f64>,
    /// The rule that runs each failed test again up to three times, and passes if all pass once; and its seconds.
    three_times: [Actions; 2],
    seconds_of_three: Vec<f64>,
    /// Runs that were blocked without a rerun.
    pub(crate) blocked_unseen: u32,
}

/// The table of simulated projects with these seeds.
pub(crate) fn table(seeds: &[u64]) -> String {
    let mut score = Score::default();
    for seed in seeds {
        score.judge(&mut CausesWorld::new(*seed), *seed, BUDGET_S);
    }
    score.table()
}

pub(crate) fn judge(
    world: &mut CausesWorld,
    place: usize,
    budget_s: f64,
    random: &mut StdRng,
    score: &mut Score,
) {
    let (Some(run), Some(observed)) = (world.runs.get(place), world.history.runs.get(place)) else {
        return;
    };
    if run.branch == 0 || observed.failures.is_empty() {
        return;
    }
    let at = (observed.run.number, observed.run.started_at);
    // Later runs do not count, so a history without them is judged sooner.
    let mut history = world.history.clone();
    history.runs.truncate(place + 1);
    let causes = causes_for_gate(&history, &world.texts, at);
    let truth = |test: u32| world.truth.get(&(place, test)).copied();
    let has_own = causes
        .iter()
        .filter_map(|failure| truth(failure.test))
        .any(is_mine);
    let first = action(gate(&causes).mine);
    let side = usize::from(!has_own);
    let add = |actions: &mut [Actions; 2], action| {
        if let Some(actions) = actions.get_mut(side) {
            actions.add(action);
        }
    };
    add(&mut score.before, first);
    let process = [ProcessOf::Test, ProcessOf::File, ProcessOf::Suite];
    let process = process.get(random.random_range(0..3_usize)).copied();
    let startup_s = 10.0_f64.powf(random.random_range(0.0..1.3));
    let of_run = OfRun::draw(random);
    let (mut failed, mut suspects) = (Vec::<Failed>::new(), Vec::<Suspect>::new());
    for failure in &causes {
        let Some(cause) = truth(failure.test) else {
            continue;
        };
        let alone_s = 10.0_f64.powf(random.random_range(-1.3..1.3));
        failed.push(Failed {
            test: failure.test,
            nature: Nature::of(run, of_run, failure.test, cause, random),
        });
        suspects.push(Suspect {
            mine: failure.probabilities.mine(),
            lasting: lasting(failure),
            in_mass_failure: failure.in_mass_failure,
            same_error: failure.facts.same_error.in_this_run + 1,
            process: process.unwrap_or(ProcessOf::Suite),
            results: RerunResults::default(),
            by_engine: None,
            alone_s: Some(alone_s),
            with_file_s: Some(alone_s * random.random_range(1.0..15.0)),
        });
    }
    let (passes, seconds) = three_times(&failed, &suspects, startup_s, random);
    add(
        &mut score.three_times,
        if passes { Action::Pass } else { Action::Block },
    );
    score.seconds_of_three.push(seconds);
    let mut spent = 0.0;
    let mut last = first;
    while last != Action::Pass {
        let limits = Limits {
            budget_s: budget_s - spent,
            startup_s,
            passes_below: BOUNDS.0,
            blocks_from: BOUNDS.1,
        };
        let seconds = rerun_once(&failed, &mut suspects, &limits, random);
        let Some(seconds) = seconds else {
            if spent > 0.0 && !reruns::may_decide(&suspects, &limits) {
                last = Action::Block;
            }
            break;
        };
        spent += seconds;
        write_results(&mut history, place, &failed, &suspects);
        let causes = causes_for_gate(&history, &world.texts, at);
        let causes: BTreeMap<u32, &FailureCause> =
            causes.iter().map(|failure| (failure.test, failure)).collect();
        for (test, suspect) in failed.iter().zip(&mut suspects) {
            if let Some(cause) = causes.get(&test.test) {
                suspect.judged_by_engine(cause.probabilities.mine(), lasting(cause));
            }
        }
        let mines = reruns::mines_now(&suspects)
            .into_iter()
            .zip(&suspects)
            .zip(&failed);
        last = action(any_mine(mines.map(|((mine, suspect), failure)| {
            let by_engine = causes.get(&failure.test);
            let environment = by_engine.map_or(0.0, |cause| cause.probabilities.environment);
            mine_and_shared(mine, suspect.in_mass_failure, environment)
        })));
    }
    add(&mut score.after, last);
    // Later runs are judged by the stored results of the reruns, too.
    if let (Some(stored), Some(judged)) = (world.history.runs.get_mut(place), history.runs.get(place)) {
        stored.failures.clone_from(&judged.failures);
    }
    score.blocked_unseen += u32::from(last == Action::Block && spent == 0.0);
    if spent > 0.0 {
        score.seconds.push(spent);
    }
}

fn lasting(failure: &FailureCause) -> f64 {
    failure.probabilities.environment + failure.probabilities.broken_before
}

/// Runs each failed test with its file up to three times, until it passes. Whether all passed, and the seconds.
fn three_times(failed: &[Failed], suspects: &[Suspect], startup_s: f64, random: &mut StdRng) -> (bool, f64) {
    let (mut red, mut seconds) = (Vec::from_iter(failed.iter().zip(suspects)), 0.0);
    for _ in 0..3 {
        if red.is_empty() {
            break;
        }
        seconds += startup_s;
        red.retain(|(test, suspect)| {
            seconds += suspect.with_file_s.unwrap_or_default();
            test.nature.fails(RerunKind::WithFile, random)
        });
    }
    (red.is_empty(), seconds)
}

/// Runs what a plan begins with, each test once, and returns the seconds; none if the plan is empty.
fn rerun_once(
    failed: &[Failed],
    suspects: &mut [Suspect],
    limits: &Limits,
    random: &mut StdRng,
) -> Option<f64> {
    let plan = reruns::plan(suspects, limits);
    let (mut seconds, mut kinds) = (0.0, Vec::new());
    for planned in &plan {
        let (test, suspect) = failed
            .get(planned.suspect)
            .zip(suspects.get_mut(planned.suspect))?;
        seconds += suspect.seconds(planned.kind).unwrap_or_default();
        if !kinds.contains(&planned.kind) {
            kinds.push(planned.kind);
            seconds += limits.startup_s;
        }
        let fails = test.nature.fails(planned.kind, random);
        suspect.results.add(planned.kind, fails);
    }
    (!plan.is_empty()).then_some(seconds)
}

/// Writes the results of the reruns into the run, as retries.
fn write_results(history: &mut History, place: usize, failed: &[Failed], suspects: &[Suspect]) {
    let Some(observed) = history.runs.get_mut(place) else {
        return;
    };
    for (test, suspect) in failed.iter().zip(suspects) {
        let of_run = observed.failures.iter_mut();
        for failure in of_run.filter(|failure| failure.test == test.test) {
            failure.recovered = suspect.results.passed() > 0;
            failure.failed_attempts = 1 + suspect.results.failed();
        }
    }
}

impl Score {
    /// Judges the runs of a project, and runs the tests of undecided ones again.
    pub(crate) fn judge(&mut self, world: &mut CausesWorld, seed: u64, budget_s: f64) {
        for (place, of_run) in (0..world.runs.len()).zip(1_u64..) {
            // Each run has reruns of its own, so that those of one do not change those of the next.
            if world.runs.get(place).is_none_or(|run| run.at < COUNTED_FROM) {
                continue;
            }
            let seed = seed
                .wrapping_mul(7_919)
                .wrapping_add(of_run.wrapping_mul(1 << 32));
            judge(world, place, budget_s, &mut StdRng::seed_from_u64(seed), self);
        }
    }

    /// A row of shares in percent: innocent runs that do not pass and breakages that pass, without reruns, with them, and of
    /// the rule of three, and the mean seconds of both.
    pub(crate) fn row(&self) -> String {
        let shares = [self.before, self.after, self.three_times].map(|[own, none]| {
            let share = |part: u32, all: u32| 100.0 * f64::from(part) / f64::from(all.max(1));
            let Actions([passed, ..]) = own;
            let Actions([_, undecided, blocked]) = none;
            format!(
                "{:.1} + {:.1} / {:.2}",
                share(blocked, none.all()),
                share(undecided, none.all()),
                share(passed, own.all())
            )
        });
        let runs = f64::from(
            self.before
                .iter()
                .map(|actions| actions.all())
                .sum::<u32>()
                .max(1),
        );
        let mean = |seconds: &[f64]| seconds.iter().sum::<f64>() / runs;
        let [own, none] = self.before.map(Actions::all);
        format!(
            "{none} | {own} | {} | {:.0} | {:.0} |",
            shares.join(" | "),
            mean(&self.seconds),
            mean(&self.seconds_of_three)
        )
    }

    /// The undecided runs, before and after.
    fn undecided(&self) -> [u32; 2] {
        [self.before, self.after].map(|actions| actions.iter().map(|Actions([_, rerun, _])| rerun).sum())
    }

    /// The table.
    pub(crate) fn table(mut self) -> String {
        let mut text = "| Runs | Number | Pass | Rerun | Block |\n|---|--:|--:|--:|--:|\n".to_owned();
        for (name, actions) in [("without reruns", self.before), ("with reruns", self.after)] {
            for (kind, actions) in ["own breakage", "none"].iter().zip(actions) {
                let _ = writeln!(text, "| {kind}, {name} | {} |{}", actions.all(), actions.shares());
            }
        }
        let [before, after] = self.undecided();
        let fewer = 100.0 * (1.0 - f64::from(after) / f64::from(before.max(1)));
        let _ = writeln!(
            text,
            "\nUndecided runs fall from {before} to {after}, by {fewer:.0} %."
        );
        self.seconds.sort_by(f64::total_cmp);
        let at = |tenths: usize| {
            let second = self.seconds.get(self.seconds.len() * tenths / 10);
            second.copied().unwrap_or_default()
        };
        let _ = writeln!(text, "Seconds: median {:.1}, 90 % {:.1}", at(5), at(9));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reruns_leave_fewer_runs_undecided_and_pass_no_more_breakages() {
        let mut score = Score::default();
        score.judge(&mut CausesWorld::new(5), 5, 90.0);
        let [before, after] = score.undecided();
        assert!(before > 10 && 3 * after < before, "{before} {after}");
        assert!(score.after[0].0[0] <= score.before[0].0[0] + 1);
        assert_eq!(score.blocked_unseen, 0);
        // A control: without a budget nothing changes.
        let mut none = Score::default();
        none.judge(&mut CausesWorld::new(5), 5, 0.0);
        let [first, last] = none.undecided();
        assert!(first > 10 && first == last, "{first} {last}");
        assert_eq!(none.after[1].0, none.before[1].0);
        assert!(none.blocked_unseen > 0);
        assert!(none.seconds.is_empty());
    }
}
