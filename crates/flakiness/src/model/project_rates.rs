//! The rates that a project's history teaches: how many of its tests are unreliable, how often a branch breaks a test,
//! and how often the stable branch does.

use assay_domain::{test::TestOrdinal, timestamp::DAY_MS};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::{
    model::background::Background,
    numbers::{at, count},
    participation::row::{Row, WORDS, and, and_not, or, row},
    timeline::{Chain, Timeline},
};

/// The share of unreliable tests in a project of which nothing else is known.
pub(crate) const USUALLY_UNRELIABLE: f64 = 0.06;
/// The weight of this share, in tests. In a small suite, one bad night more or less would change many verdicts.
const USUAL_TESTS: f64 = 500.0;
/// The number of unreliable tests for each recurring test: rare flakes do not fail three times in a fortnight.
const PER_RECURRING: f64 = 1.25;
/// The bounds for the share of unreliable tests. In a window of few runs, few tests recur in any project. Above the upper
/// bound, most recurring tests are those that changes break.
const UNRELIABLE: (f64, f64) = (0.03, 0.15);
/// The probability that a new revision of another branch breaks a test, in a project of which nothing else is known.
pub(crate) const BRANCHES_USUALLY_BREAK: f64 = 0.0015;
/// The weight of this rate, in results on new revisions.
const USUAL_RESULTS: f64 = 5_000.0;
/// The stable branch breaks a test at this rate for each day since the revision before.
const STABLE_BREAKS_A_DAY: f64 = 0.005;
/// The bounds of this rate for one revision.
const STABLE_BREAKS: (f64, f64) = (0.0005, 0.01);
/// The upper bound of the rate after learning.
const STABLE_BREAKS_AT_MOST: f64 = 0.02;
/// The weight of the usual rate, in breakages.
const USUAL_BREAKAGES: f64 = 20.0;
/// The bounds of the learned factor.
const FACTOR: (f64, f64) = (0.1, 10.0);
/// The stable branch mends a test at this rate for each day since the revision before.
const STABLE_MENDS_A_DAY: f64 = 0.2;
/// The bounds of this rate for one revision.
const STABLE_MENDS: (f64, f64) = (0.05, 0.3);

/// The rates of a project.
#[derive(Debug, Default)]
pub(crate) struct ProjectRates {
    /// The share of unreliable tests.
    pub(crate) unreliable: f64,
    /// The probability that a new revision off the stable branch breaks a test.
    pub(crate) branches_break: f64,
    /// The probability that the revision at a position of a stable chain breaks a test, by position.
    pub(crate) stable_breaks: Vec<f64>,
    /// The probability that it mends a breakage, by position.
    pub(crate) stable_mends: Vec<f64>,
}

impl ProjectRates {
    /// Learns the rates, given the crowds of the window and the number of its recurring tests.
    pub(crate) fn learn(timeline: &Timeline<'_>, background: &Background, recurring: u32) -> Self {
        let tests = USUAL_TESTS + f64::from(timeline.count_tests());
        let unreliable = USUAL_TESTS * USUALLY_UNRELIABLE + PER_RECURRING * f64::from(recurring);
        let mut rates = Self {
            unreliable: (unreliable / tests).clamp(UNRELIABLE.0, UNRELIABLE.1),
            branches_break: branches_break(timeline, &background.mass_failure),
            stable_breaks: vec![0.0; timeline.entries.len()],
            stable_mends: vec![0.0; timeline.entries.len()],
        };
        rates.learn_stable(timeline, background);
        rates
    }

    /// The longer the time since the revision before, the more changes a revision contains.
    fn learn_stable(&mut self, timeline: &Timeline<'_>, background: &Background) {
        let rates = self.stable_breaks.iter_mut().zip(&mut self.stable_mends);
        for ((breaks, mends), entry) in rates.zip(&timeline.entries) {
            let days = days(entry.since_revision_ms);
            *breaks = (STABLE_BREAKS_A_DAY * days).clamp(STABLE_BREAKS.0, STABLE_BREAKS.1);
            *mends = (1.0 - (-STABLE_MENDS_A_DAY * days).exp()).clamp(STABLE_MENDS.0, STABLE_MENDS.1);
        }
        let (mut seen, mut expected) = (0, 0.0);
        for chain in timeline.chains.iter().filter(|chain| chain.stable) {
            Breakages::of(timeline, background, chain).count(timeline, |position, broken, results| {
                seen += broken;
                expected += f64::from(results) * self.stable_breaks.get(position).copied().unwrap_or(0.0);
            });
        }
        let factor = (USUAL_BREAKAGES + f64::from(seen)) / (USUAL_BREAKAGES + expected);
        let factor = factor.clamp(FACTOR.0, FACTOR.1);
        for breaks in &mut self.stable_breaks {
            *breaks = (*breaks * factor).min(STABLE_BREAKS_AT_MOST);
        }
    }
}

#[expect(
    clippy::as_conversions,
    reason = "the milliseconds of a window are exact as f64"
)]
fn days(milliseconds: i64) -> f64 {
    milliseconds.max(0) as f64 / DAY_MS as f64
}

/// The branches on which a test failed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum FailedOn<'h> {
    Nothing,
    OneBranch(Option<&'h str>),
    /// On several branches or the stable one, or it passed on retry: no sign of a branch that broke it.
    More,
}

/// The probability that a new revision off the stable branch breaks a test.
///
/// A test that failed on a single branch, and nowhere else, was probably broken by it. A test that failed on several
/// branches is probably flaky, or was broken on the stable branch.
fn branches_break(timeline: &Timeline<'_>, mass_failure: &[bool]) -> f64 {
    let mut failed_on = vec![FailedOn::Nothing; timeline.words * at(u64::BITS)];
    let mut results = 0.0;
    for (entry, _) in timeline
        .entries
        .iter()
        .zip(mass_failure)
        .filter(|(_, mass)| !**mass)
    {
        let Some(chain) = timeline.chains.get(entry.chain) else {
            continue;
        };
        if !chain.stable && entry.step.is_new_code() {
            results += f64::from(timeline.count_seen(entry.observed));
        }
        for failure in &*entry.failures {
            if let Some(failed_on) = failed_on.get_mut(at(failure.test)) {
                let here = FailedOn::OneBranch(chain.branch);
                let is_first = *failed_on == FailedOn::Nothing || *failed_on == here;
                *failed_on = if is_first && !chain.stable && !failure.recovered {
                    here
                } else {
                    FailedOn::More
                };
            }
        }
    }
    let broken = failed_on.iter().filter(|on| matches!(on, FailedOn::OneBranch(_)));
    let broken = f64::from(count(broken.count()));
    (BRANCHES_USUALLY_BREAK * USUAL_RESULTS + broken) / (USUAL_RESULTS + results)
}

/// Counts the breakages of a stable chain.
///
/// A result shows whether its revision broke the test only under three conditions: it is the first one of its revision,
/// five passes come before it, and two results follow, one of them on a later revision. If all three failed, the
/// revision broke the test.
struct Breakages {
    /// The runs of the chain that count.
    runs: Vec<Run>,
}

/// A run of the chain.
struct Run {
    position: usize,
    revision: usize,
}

/// Eight words of a run's tests.
#[derive(Debug, Clone, Copy)]
struct Tests {
    seen: Row,
    /// With a failed attempt.
    failing: Row,
    failed: Row,
    /// The tests whose results here can show a breakage.
    shows: Row,
}

/// The number of passes before a result that shows a breakage.
const PASSES: usize = 5;

impl Breakages {
    fn of(timeline: &Timeline<'_>, background: &Background, chain: &Chain<'_>) -> Self {
        let counts = |position: &usize| {
            !background.is_mass_failure(*position) || background.lasting(*position).is_some()
        };
        let run = |position: usize| {
            let entry = timeline.entries.get(position)?;
            Some(Run {
                position,
                revision: entry.revision,
            })
        };
        Self {
            runs: chain.positions.clone().filter(counts).filter_map(run).collect(),
        }
    }

    /// Calls `add` for each run with its position, its breakages, and its results that can show one.
    fn count(self, timeline: &Timeline<'_>, mut add: impl FnMut(usize, u32, u32)) {
        let blocks: Vec<usize> = (0..timeline.words).step_by(WORDS).collect();
        let none = || vec![(0, 0); self.runs.len()];
        let totals = blocks
            .into_par_iter()
            .fold(
                || (none(), Vec::with_capacity(self.runs.len())),
                |(mut totals, mut tests), first| {
                    self.count_block(timeline, first, &mut tests, &mut totals);
                    (totals, tests)
                },
            )
            .map(|(totals, _)| totals)
            .reduce(none, |mut totals, more| {
                for (total, more) in totals.iter_mut().zip(more) {
                    total.0 += more.0;
                    total.1 += more.1;
                }
                totals
            });
        for (run, (broken, results)) in self.runs.iter().zip(totals) {
            add(run.position, broken, results);
        }
    }

    /// Adds the breakages and the results that can show one, of the tests from word `first` on.
    fn count_block(
        &self,
        timeline: &Timeline<'_>,
        first: usize,
        tests: &mut Vec<Tests>,
        totals: &mut [(u32, u32)],
    ) {
        let known: Row = std::array::from_fn(|word| timeline.known_tests(first + word));
        tests.clear();
        tests.extend(self.runs.iter().map(|run| run.read(timeline, first, &known)));
        self.find_candidates(tests);
        self.keep_decided(tests);
        for (place, (of_run, total)) in tests.iter().zip(totals).enumerate() {
            for (word, (shows, failed)) in of_run.shows.iter().zip(&of_run.failed).enumerate() {
                total.1 += shows.count_ones();
                let mut failed = shows & failed;
                while failed != 0 {
                    let bit = failed & failed.wrapping_neg();
                    total.0 += u32::from(self.stays_red(tests, place, (word, bit)));
                    failed &= failed - 1;
                }
            }
        }
    }

    /// Marks the first results of a revision after five passes.
    fn find_candidates(&self, tests: &mut [Tests]) {
        // The tests with at least one pass at the end, two passes, and so on.
        let mut passes = [[0; WORDS]; PASSES];
        let (mut revision, mut on_revision) = (None, [0; WORDS]);
        for (run, here) in self.runs.iter().zip(tests) {
            if revision.replace(run.revision) != Some(run.revision) {
                on_revision = [0; WORDS];
            }
            let [.., enough] = passes;
            here.shows = and_not(&and(&here.seen, &enough), &on_revision);
            or(&mut on_revision, &here.seen);
            let passed = and_not(&here.seen, &here.failing);
            let mut fewer = [u64::MAX; WORDS];
            for at_least in &mut passes {
                let before = *at_least;
                *at_least = and_not(&before, &here.seen);
                or(at_least, &and(&fewer, &passed));
                fewer = before;
            }
        }
    }

    /// Leaves the results that are followed by two others, one of them on a later revision.
    fn keep_decided(&self, tests: &mut [Tests]) {
        let none = || [0; WORDS];
        let (mut once, mut twice, mut on_revision, mut later) = (none(), none(), none(), none());
        let mut revision = None;
        for (run, here) in self.runs.iter().zip(tests).rev() {
            if revision.replace(run.revision) != Some(run.revision) {
                or(&mut later, &on_revision);
                on_revision = none();
            }
            here.shows = and(&here.shows, &and(&twice, &later));
            or(&mut twice, &and(&once, &here.seen));
            or(&mut once, &here.seen);
            or(&mut on_revision, &here.seen);
        }
    }

    /// Whether a test that failed in a run also failed in the next results, up to the second one and a later revision.
    /// The test is a bit of a word.
    fn stays_red(&self, tests: &[Tests], place: usize, (word, bit): (usize, u64)) -> bool {
        let has = |row: &Row| row.get(word).is_some_and(|tests| tests & bit != 0);
        let mut runs = self.runs.iter().zip(tests).skip(place);
        let Some((first, _)) = runs.next() else {
            return false;
        };
        let mut behind = 0;
        for (run, here) in runs.filter(|(_, here)| has(&here.seen)) {
            if !has(&here.failed) {
                return false;
            }
            behind += 1;
            if behind >= 2 && run.revision != first.revision {
                return true;
            }
        }
        false
    }
}

impl Run {
    /// Reads the tests from word `first` on, of those that are known.
    fn read(&self, timeline: &Timeline<'_>, first: usize, known: &Row) -> Tests {
        let mut read = Tests {
            seen: [0; WORDS],
            failing: [0; WORDS],
            failed: [0; WORDS],
            shows: [0; WORDS],
        };
        let Some(entry) = timeline.entries.get(self.position) else {
            return read;
        };
        let present = and(&row(&entry.observed.present, first), known);
        read.seen = and_not(&present, &row(&entry.observed.skipped, first));
        let word_of = |test: TestOrdinal| at(test / u64::BITS);
        let begin = entry
            .failures
            .partition_point(|failure| word_of(failure.test) < first);
        for failure in entry.failures.get(begin..).unwrap_or_default() {
            let Some(word) = word_of(failure.test)
                .checked_sub(first)
                .filter(|word| *word < WORDS)
            else {
                break;
            };
            let mut bit = [0; WORDS];
            if let Some(bit) = bit.get_mut(word) {
                *bit = 1 << (failure.test % u64::BITS);
            }
            or(&mut read.failing, &bit);
            if !failure.recovered {
                or(&mut read.failed, &bit);
            }
        }
        read
    }
}
