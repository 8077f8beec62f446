//! Pass 1: the probability that a test failed in a run because many tests failed together.

use std::collections::{BTreeSet, VecDeque};

use assay_domain::{observation::Bitmap, test::TestOrdinal};

use crate::{
    config::MASS_FAILURE,
    model::{
        crowd::{self, Crowds, fails_again},
        project_rates::ProjectRates,
    },
    numbers::{at, count},
    timeline::{Entry, Lane, Timeline},
};

/// A failure of a longer streak is not fresh: it is no sign of a bad run.
const FRESH: u8 = 3;
/// The number of earlier runs from which the usual number of fresh failures is computed.
const USUAL_RUNS: usize = 20;
/// A crowd raises the usual number of fresh failures by at most this much: an outage of ten runs is no habit.
const HABIT: f64 = 10.0;
/// The upper bound of the background.
const AT_MOST: f64 = 0.95;
/// A test with this many failing streaks outside large crowds is recurring: it recovered in between.
const RECURRING: u8 = 3;
/// The background from which a run is a large crowd, whose failures are more probably the run's own than not.
const LARGE_CROWD: f64 = 0.5;
/// The number of excess failures at which the background is an eighth, whatever the size of the suite.
const HALFWAY: f64 = 10.0;
/// From this share of repeated failures on, a crowd grows the failing streaks of its tests.
const REPEATED: f64 = 0.9;

/// The background of every position: the probability that a good, reliable test failed there because of the run.
#[derive(Debug)]
pub(crate) struct Background {
    /// By position.
    pub(crate) beta: Vec<f64>,
    /// Whether the variant run at the position is a mass failure, which counts in no incident and no rate; by position.
    pub(crate) mass_failure: Vec<bool>,
    /// The crowds of the stable chains.
    pub(crate) crowds: Crowds,
    /// The runs with such a variant run, newest first.
    pub(crate) mass_failure_runs: Vec<usize>,
    /// The rates that the project's history teaches.
    pub(crate) rates: ProjectRates,
}

impl Background {
    /// Measures stable-branch runs and other runs separately.
    pub(crate) fn new(timeline: &Timeline<'_>) -> Self {
        let mut beta = vec![0.0; timeline.entries.len()];
        let mut kinds = [true, false].map(|on_stable_branch| Kind::new(timeline, on_stable_branch));
        let mut recurring = vec![false; timeline.words * at(u64::BITS)];
        let mut recurring_anywhere = recurring.clone();
        for lane in &timeline.lanes {
            recurring.fill(false);
            measure_both(&mut kinds, timeline, lane, &recurring, &mut beta);
            // The run does not cause the failures of recurring tests, so the second measurement leaves them out.
            if find_recurring(&kinds, &mut recurring) {
                for (anywhere, here) in recurring_anywhere.iter_mut().zip(&recurring) {
                    *anywhere |= here;
                }
                let mut without = beta.clone();
                measure_both(&mut kinds, timeline, lane, &recurring, &mut without);
                for (beta, without) in beta.iter_mut().zip(without) {
                    *beta = without.min(*beta);
                }
            }
        }
        let mass_failure: Vec<bool> = beta.iter().map(|beta| *beta >= MASS_FAILURE).collect();
        let runs: BTreeSet<usize> = (timeline.run_of.iter().zip(&mass_failure))
            .filter(|(_, mass_failure)| **mass_failure)
            .map(|(run, _)| *run)
            .collect();
        let crowds = crowd::find(timeline, &beta);
        let recurring = count(recurring_anywhere.iter().filter(|recurring| **recurring).count());
        let rates = ProjectRates::learn(timeline, &mass_failure, recurring);
        Self {
            beta,
            mass_failure,
            crowds,
            mass_failure_runs: runs.into_iter().rev().collect(),
            rates,
        }
    }

    /// Whether the variant run at a position is a mass failure in which this test does not count.
    pub(crate) fn leaves_out(&self, position: usize, test: TestOrdinal) -> bool {
        self.is_mass_failure(position) && !self.lasts(position, test)
    }

    /// Whether the variant run at a position is a mass failure.
    pub(crate) fn is_mass_failure(&self, position: usize) -> bool {
        self.mass_failure.get(position).copied().unwrap_or(false)
    }

    /// The tests that count at a position although it is a mass failure; `None` if none does.
    pub(crate) fn lasting(&self, position: usize) -> Option<&Bitmap> {
        self.crowds.lasting.get(position)?.as_ref()
    }

    /// Whether the code broke the test with others at a position, and it still fails.
    pub(crate) fn lasts(&self, position: usize, test: TestOrdinal) -> bool {
        self.lasting(position).is_some_and(|tests| tests.contains(test))
    }

    /// The background of a test at a position.
    pub(crate) fn of(&self, position: usize, test: TestOrdinal) -> f64 {
        if self.lasts(position, test) {
            0.0
        } else {
            self.beta.get(position).copied().unwrap_or(0.0)
        }
    }
}

/// Measures the runs of both kinds of a lane. Their positions are different, so both can be measured at once.
fn measure_both(
    [on_stable, off_stable]: &mut [Kind; 2],
    timeline: &Timeline<'_>,
    lane: &Lane,
    recurring: &[bool],
    betas: &mut [f64],
) {
    let (of_stable, of_others) = rayon::join(
        || on_stable.measure(timeline, lane, recurring),
        || off_stable.measure(timeline, lane, recurring),
    );
    for (position, measured) in of_stable.into_iter().chain(of_others) {
        if let Some(beta) = betas.get_mut(position) {
            *beta = measured;
        }
    }
}

/// Marks the recurring tests over the measured runs of both kinds. Returns whether there are any.
fn find_recurring([on_stable, off_stable]: &[Kind; 2], recurring: &mut [bool]) -> bool {
    let mut is_any = false;
    let streaks = on_stable.streaks_begun.iter().zip(&off_stable.streaks_begun);
    for (recurring, (on_stable, off_stable)) in recurring.iter_mut().zip(streaks) {
        *recurring = on_stable.saturating_add(*off_stable) >= RECURRING;
        is_any |= *recurring;
    }
    is_any
}

/// The state of one kind of run. Runs of the stable branch and of other branches have different usual failures.
struct Kind {
    /// Whether these are the runs of the stable branch.
    on_stable_branch: bool,
    /// Each test's consecutive failures.
    streaks: Vec<u8>,
    /// The tests whose streak is above zero, in any order.
    failing: Vec<TestOrdinal>,
    /// The fresh failures of the latest runs; off the stable branch without recurring tests.
    usual: VecDeque<f64>,
    /// For each test, the number of failing streaks that began outside large crowds.
    streaks_begun: Vec<u8>,
    /// The run before, if it is a mass failure.
    crowd: Option<usize>,
}

impl Kind {
    fn new(timeline: &Timeline<'_>, on_stable_branch: bool) -> Self {
        let tests = timeline.words * at(u64::BITS);
        Self {
            on_stable_branch,
            streaks: vec![0; tests],
            failing: Vec::new(),
            usual: VecDeque::with_capacity(USUAL_RUNS + 1),
            streaks_begun: vec![0; tests],
            crowd: None,
        }
    }

    /// Measures the background of a variant's runs of this kind without the excess of `recurring` tests, and counts the
    /// failing streaks that begin outside large crowds. Returns the background by position.
    fn measure(&mut self, timeline: &Timeline<'_>, lane: &Lane, recurring: &[bool]) -> Vec<(usize, f64)> {
        self.streaks.fill(0);
        self.failing.clear();
        self.usual.clear();
        self.streaks_begun.fill(0);
        self.crowd = None;
        let mut measured = Vec::new();
        for position in &lane.by_revision {
            let entry = timeline.entries.get(*position);
            if let Some(entry) = entry.filter(|entry| entry.on_stable_branch == self.on_stable_branch) {
                measured.push((*position, self.measure_run(timeline, *position, entry, recurring)));
            }
        }
        measured
    }

    fn measure_run(
        &mut self,
        timeline: &Timeline<'_>,
        position: usize,
        entry: &Entry<'_>,
        recurring: &[bool],
    ) -> f64 {
        self.end_streaks(timeline, entry);
        let (mut fresh, mut counted) = (0_u32, 0_u32);
        for failure in &*entry.failures {
            let Some(streak) = self.streaks.get_mut(at(failure.test)) else {
                continue;
            };
            if *streak == 0 {
                self.failing.push(failure.test);
            }
            *streak = streak.saturating_add(1);
            if *streak <= FRESH {
                fresh += 1;
                counted += u32::from(!recurring.get(at(failure.test)).copied().unwrap_or(false));
            }
        }
        // Tests that branches break recur off the stable branch. They would hide the outages there.
        let habit = if self.on_stable_branch { fresh } else { counted };
        let beta = background(&mut self.usual, habit, counted, || {
            timeline.count_seen(entry.observed)
        });
        if beta < LARGE_CROWD {
            for failure in &*entry.failures {
                let streak = self.streaks.get(at(failure.test));
                if streak.is_some_and(|streak| *streak == 1)
                    && let Some(begun) = self.streaks_begun.get_mut(at(failure.test))
                {
                    *begun = begun.saturating_add(1);
                }
            }
        }
        self.crowd = if beta >= MASS_FAILURE {
            self.limit_streaks(timeline, entry, fresh);
            Some(position)
        } else {
            None
        };
        beta
    }

    /// Ends the streaks of the tests that passed in a run.
    fn end_streaks(&mut self, timeline: &Timeline<'_>, entry: &Entry<'_>) {
        let streaks = &mut self.streaks;
        self.failing.retain(|test| {
            let passed = timeline.is_seen(entry.observed, *test) && !entry.has_failure(*test);
            if passed && let Some(streak) = streaks.get_mut(at(*test)) {
                *streak = 0;
            }
            !passed
        });
    }

    /// A mass failure grows no streak, unless the run before it was the same crowd. So an outage of many runs stays an
    /// outage, and a breakage is known after three.
    fn limit_streaks(&mut self, timeline: &Timeline<'_>, entry: &Entry<'_>, fresh: u32) {
        let is_half_fresh = 2 * fresh > timeline.count_seen(entry.observed);
        let before = self.crowd.and_then(|before| timeline.entries.get(before));
        let is_same = before.is_some_and(|before| fails_again(timeline, before, entry, REPEATED));
        if is_same && !is_half_fresh {
            return;
        }
        for failure in &*entry.failures {
            if let Some(streak) = self.streaks.get_mut(at(failure.test)) {
                *streak = streak.saturating_sub(1);
            }
        }
        let streaks = &self.streaks;
        self.failing
            .retain(|test| streaks.get(at(*test)).is_some_and(|streak| *streak > 0));
    }
}

/// The background of a run with `fresh` failures of tests that are not recurring. Adds the run to the `usual` ones, with
/// `habit` failures.
fn background(usual: &mut VecDeque<f64>, habit: u32, fresh: u32, tests: impl Fn() -> u32) -> f64 {
    let median = median(usual);
    let limit = 1.0 + median + 2.0 * (median + 1.0).sqrt();
    if usual.len() == USUAL_RUNS {
        usual.pop_front();
    }
    usual.push_back(f64::from(habit).min(limit + HABIT));
    let excess = f64::from(fresh) - limit;
    if excess <= 0.0 {
        return 0.0;
    }
    let by_share = excess / f64::from(tests().max(1));
    let by_count = (excess / (excess + HALFWAY)).powi(3);
    by_share.max(by_count).min(AT_MOST)
}

/// The median of the usual runs (for an even number the mean of the middle two); zero before the first run.
fn median(usual: &VecDeque<f64>) -> f64 {
    let mut sorted = [0.0; USUAL_RUNS];
    let runs = usual.len().min(USUAL_RUNS);
    for (place, fresh) in sorted.iter_mut().zip(usual) {
        *place = *fresh;
    }
    let Some(sorted) = sorted.get_mut(..runs) else {
        return 0.0;
    };
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = |index: usize| sorted.get(index).copied().unwrap_or(0.0);
    match runs {
        0 => 0.0,
        odd if odd % 2 == 1 => middle(odd / 2),
        even => f64::midpoint(middle(even / 2 - 1), middle(even / 2)),
    }
}
