//! What the causes of the stable branch's failures learn from its window: how often a revision breaks a test, how often a
//! crowd is a breakage, how often a test fails on several variants for a short time, and how many tests fail at which rate.
//!
//! A test that fails on a branch may fail because of anything that a change does. On the stable branch most failures pass
//! again soon, and projects differ by a factor of a hundred in how many do. So the window decides.

use std::collections::{BTreeMap, HashMap};

use assay_domain::{observation::Bitmap, test::TestOrdinal};

use super::{
    facts::EndedStreaks,
    links::Sequence,
    parts::{PRIOR, posterior},
};
use crate::{
    model::{GRID, PerRate, RATES, Step, background::Background, with_guards},
    numbers::count,
    timeline::{Chain, Timeline},
};

/// The weight of the usual rate of breaking, in breakages. It is small because projects differ that much.
const USUAL_BREAKAGES: f64 = 0.1;
/// The bounds for the factor of the usual rate. Below the lower one, the second failure in a row would look like a flake.
const BREAKS: (f64, f64) = (0.0001, 1.0);
/// The failures in a row from which a breakage has lasted.
const LASTS: u32 = 3;
/// The crowds that a project of which nothing else is known has had: that failed again, and that did not.
const USUAL_CROWDS: (f64, f64) = (0.3, 4.0);
/// The revisions of a project of which nothing else is known after which tests failed on several variants: that passed
/// again soon, and that kept failing. The proportion is that of tests without an earlier failure in two public histories,
/// 7 and 24; the weight is small because projects differ.
const USUAL_SHARED: (f64, f64) = (0.15, 0.5);
/// The weight of the usual flake rates, in tests.
const USUAL_TESTS: f64 = 50.0;
/// The rounds of expectation–maximization.
const ROUNDS: u32 = 20;

/// The figures that a window teaches about the failures of its stable branch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StableBranch {
    /// The factor for the usual rate at which a revision breaks a test, from 0.0001 to 1.
    pub(crate) breaks: f64,
    /// The factor for the odds that a crowd on a new revision comes from the change, at most 1.
    pub(crate) crowds: f64,
    /// The probability of each flake rate.
    pub(crate) rates: PerRate,
    /// The failing streaks that are over or have lasted, of all tests.
    pub(crate) streaks: EndedStreaks,
    /// The revisions that began some on several variants, and those of them after which most of these tests kept failing.
    shared_streaks: EndedStreaks,
    /// The same of the first streak of each test.
    first_shared_streaks: EndedStreaks,
}

impl StableBranch {
    /// Learns from the stable chains of a window. Mass failures count as crowds only.
    pub(crate) fn learn(timeline: &Timeline<'_>, background: &Background) -> Self {
        let mut breakages = Breakages::default();
        for chain in timeline.chains.iter().filter(|chain| chain.stable) {
            breakages.add(timeline, background, chain);
        }
        let crowds = &background.crowds;
        let again = USUAL_CROWDS.0 + f64::from(crowds.failed_again);
        let ended = USUAL_CROWDS.1 + f64::from(crowds.ended);
        Self {
            breaks: ((USUAL_BREAKAGES + breakages.lasted) / (USUAL_BREAKAGES + breakages.expected))
                .clamp(BREAKS.0, BREAKS.1),
            crowds: (again / ended).min(1.0),
            rates: with_guards(learn_rates(&breakages.tests), background.rates.branches_break),
            streaks: breakages.streaks,
            shared_streaks: breakages.shared(false),
            first_shared_streaks: breakages.shared(true),
        }
    }

    /// Makes a sequence one for failures of the stable branch: with the learned figures for its chains.
    pub(crate) fn apply(&self, sequence: &mut Sequence) {
        sequence.asks_for_stable = true;
        let variants = sequence.chains.iter().filter(|chain| chain.stable).count();
        sequence.outage_ratios = if variants > 1 {
            self.outage_ratios()
        } else {
            (0.0, 0.0)
        };
        for result in &mut sequence.results {
            let chain = sequence.chains.get(result.chain);
            if chain.is_some_and(|chain| chain.stable) {
                result.stable_rates.0 *= self.breaks;
                result.chi *= self.crowds;
            }
        }
    }

    /// How many times as often as a revision breaks a test, something outside of the code fails it on several variants for
    /// a short time: a test that never failed before, and others.
    fn outage_ratios(&self) -> (f64, f64) {
        let ratio = |shared: EndedStreaks| {
            let passed_again = USUAL_SHARED.0 + f64::from(shared.all - shared.lasted);
            passed_again / (USUAL_SHARED.1 + f64::from(shared.lasted))
        };
        (ratio(self.first_shared_streaks), ratio(self.shared_streaks))
    }

    /// The revisions that began failures on several variants, of all tests or of those that never failed before.
    pub(crate) const fn shared_streaks(&self, failed_before: bool) -> EndedStreaks {
        match failed_before {
            true => self.shared_streaks,
            false => self.first_shared_streaks,
        }
    }
}

/// The number of tests of stable chains, by (results, failures that passed again soon).
type Tests = BTreeMap<(u32, u32), f64>;

/// The failures of stable chains.
#[derive(Debug, Default)]
struct Breakages {
    /// The breakages that the usual rates expect.
    expected: f64,
    /// The streaks that a new revision began and that lasted.
    lasted: f64,
    /// The variants on which a new revision began a streak, by revision and test: those that passed again soon, and those
    /// on which it lasted, or failed whenever this revision ran.
    variants: HashMap<(usize, TestOrdinal), (u32, u32)>,
    tests: Tests,
    streaks: EndedStreaks,
}

/// The failures of a test in a row.
#[derive(Debug, Clone, Copy)]
struct Streak {
    /// Those outside of mass failures.
    failures: u32,
    /// The new revision at which it began, after a pass.
    revision: Option<usize>,
    /// Whether it failed again when that revision ran again.
    failed_again: bool,
}

impl Breakages {
    fn add(&mut self, timeline: &Timeline<'_>, background: &Background, chain: &Chain<'_>) {
        let mut streaks: HashMap<TestOrdinal, Streak> = HashMap::new();
        let mut passed_again: BTreeMap<TestOrdinal, u32> = BTreeMap::new();
        // The tests that ran outside of mass failures.
        let mut ran = Bitmap::default();
        let mut results = 0.0;
        for position in chain.positions.clone() {
            let Some(entry) = timeline.entries.get(position) else {
                continue;
            };
            streaks.retain(|test, streak| {
                let failure = entry.failure(*test);
                let ends = failure.map_or_else(
                    || timeline.is_seen(entry.observed, *test),
                    |failure| failure.recovered,
                );
                if ends && (1..LASTS).contains(&streak.failures) {
                    *passed_again.entry(*test).or_default() += streak.failures;
                    self.streaks.all += 1;
                    if let Some(revision) = streak.revision {
                        let variants = self.variants.entry((revision, *test)).or_default();
                        if streak.failed_again && entry.revision != revision {
                            variants.1 += 1;
                        } else {
                            variants.0 += 1;
                        }
                    }
                }
                !ends
            });
            if background.is_mass_failure(position) {
                for failure in entry.failures.iter().filter(|failure| !failure.recovered) {
                    streaks.entry(failure.test).or_insert(Streak {
                        failures: 0,
                        revision: None,
                        failed_again: false,
                    });
                }
                continue;
            }
            let seen = timeline.seen(entry.observed);
            results += f64::from(seen.len());
            let is_new = entry.step == Step::NewRevision;
            if is_new {
                let breaks = background.rates.stable_breaks.get(position);
                self.expected += f64::from(seen.len()) * breaks.copied().unwrap_or(0.0);
            }
            for failure in &*entry.failures {
                if failure.recovered {
                    *passed_again.entry(failure.test).or_default() += 1;
                    continue;
                }
                let streak = streaks.entry(failure.test).or_insert_with(|| Streak {
                    failures: 0,
                    revision: (is_new && ran.contains(failure.test)).then_some(entry.revision),
                    failed_again: false,
                });
                streak.failed_again |= streak.failures > 0 && streak.revision == Some(entry.revision);
                streak.failures += 1;
                if streak.failures == LASTS {
                    if let Some(revision) = streak.revision {
                        self.lasted += 1.0;
                        self.variants.entry((revision, failure.test)).or_default().1 += 1;
                    }
                    self.streaks.lasted += 1;
                    self.streaks.all += 1;
                }
            }
            ran.insert_all(&seen);
        }
        self.add_tests(ran.len(), results, &passed_again);
    }

    /// The revisions that began streaks on several variants, and those of them after which most tests kept failing; of the
    /// first streak of each test only, if asked for.
    fn shared(&self, only_first: bool) -> EndedStreaks {
        let mut first: HashMap<TestOrdinal, usize> = HashMap::new();
        for (revision, test) in self.variants.keys() {
            let of_test = first.entry(*test).or_insert(*revision);
            *of_test = (*of_test).min(*revision);
        }
        // Tests that one revision fails together are one event.
        let mut revisions: BTreeMap<usize, (u32, u32)> = BTreeMap::new();
        for ((revision, test), (short, lasted)) in &self.variants {
            let is_first = first.get(test) == Some(revision);
            if short + lasted > 1 && (is_first || !only_first) {
                let tests = revisions.entry(*revision).or_default();
                tests.0 += 1;
                tests.1 += u32::from(lasted >= short);
            }
        }
        let lasted = revisions.values().filter(|(tests, lasted)| 2 * lasted >= *tests);
        EndedStreaks {
            lasted: count(lasted.count()),
            all: count(revisions.len()),
        }
    }

    /// Adds the tests of a chain, as if each had the mean number of results.
    fn add_tests(&mut self, tests: u32, results: f64, passed_again: &BTreeMap<TestOrdinal, u32>) {
        if tests == 0 {
            return;
        }
        let mean = rounded(results / f64::from(tests));
        for failures in passed_again.values() {
            *self.tests.entry((mean.max(*failures), *failures)).or_default() += 1.0;
        }
        let failed = count(passed_again.len());
        *self.tests.entry((mean, 0)).or_default() += f64::from(tests - failed);
    }
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a mean number of results is at least 0 and less than the runs of a window"
)]
fn rounded(mean: f64) -> u32 {
    mean.round() as u32
}

/// The probability of each flake rate: [`ROUNDS`] of expectation–maximization (Dempster, Laird and Rubin 1977) over a
/// binomial mixture, with [`PRIOR`] as [`USUAL_TESTS`] further tests.
fn learn_rates(tests: &Tests) -> PerRate {
    let likelihoods: Vec<(PerRate, f64)> = tests
        .iter()
        .map(|((results, failures), tests)| {
            let passes = f64::from(results - failures);
            let log = RATES.map(|rate| f64::from(*failures) * rate.ln() + passes * (1.0 - rate).ln());
            (posterior(&[1.0; GRID], &log), *tests)
        })
        .collect();
    let all = USUAL_TESTS + tests.values().sum::<f64>();
    let mut rates = PRIOR;
    for _ in 0..ROUNDS {
        let mut next = PRIOR.map(|prior| prior * USUAL_TESTS);
        for (likelihood, tests) in &likelihoods {
            let total: f64 = rates.iter().zip(likelihood).map(|(rate, l)| rate * l).sum();
            for ((next, rate), l) in next.iter_mut().zip(rates).zip(likelihood) {
                *next += tests * rate * l / total;
            }
        }
        rates = next.map(|next| next / all);
    }
    rates
}
