//! The weight of an error's text as evidence for a cause.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use assay_domain::test::TestOrdinal;

use super::parts::{BEFORE, CROWD, DRIFT, EARLIER, FLAKE, PARTS, Parts, THIS};

/// The weight of smoothing for the texts of a test's flakes: flakes of one test often have other texts.
const FLAKE_SPREAD: f64 = 0.35;
/// The same for the failures of one episode, which usually have one text.
const STREAK_SPREAD: f64 = 0.1;
/// The share of breakages whose text other failures of the test have.
const SEEN_BEFORE: f64 = 0.2;
/// The share of breakages whose text other failures of the run have.
const SHARED_IN_RUN: f64 = 0.3;
/// The same in a crowd.
const SHARED_IN_CROWD: f64 = 0.6;
/// The part of a factor that is equal for all causes.
const FLOOR: f64 = 0.1;
/// A text of this many tests distinguishes nothing.
const COMMON: u32 = 20;

/// The errors of a window: which text (fingerprint) each failure had.
///
/// A failure is identified by the index of its run in the history and by its test. Failures without a text are left
/// out.
#[derive(Debug, Clone, Default)]
pub struct ErrorTexts {
    by_failure: HashMap<(usize, TestOrdinal), u32>,
    by_test: BTreeMap<TestOrdinal, Vec<(usize, u32)>>,
    by_run_index: HashMap<usize, Vec<(TestOrdinal, u32)>>,
    /// The number of tests for each text of the window, if only the texts of some tests were inserted.
    window: Option<WindowTexts>,
}

impl ErrorTexts {
    /// No texts at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records the text of a failure, unless one is recorded already.
    pub fn insert(&mut self, run_index: usize, test: TestOrdinal, text: u32) {
        if self.by_failure.contains_key(&(run_index, test)) {
            return;
        }
        self.by_failure.insert((run_index, test), text);
        self.by_test.entry(test).or_default().push((run_index, text));
        self.by_run_index.entry(run_index).or_default().push((test, text));
    }

    /// Sets the number of tests for each text of the window, for a caller that inserts the failures of some tests only.
    pub fn set_window(&mut self, tests: impl IntoIterator<Item = (u32, u32)>) {
        let tests: HashMap<u32, u32> = tests.into_iter().collect();
        let pairs = tests.values().map(|tests| f64::from(*tests)).sum();
        self.window = Some(WindowTexts { tests, pairs });
    }

    /// The text of a failure.
    pub fn of(&self, run_index: usize, test: TestOrdinal) -> Option<u32> {
        self.by_failure.get(&(run_index, test)).copied()
    }

    /// The texts of the failures of a run of the history.
    pub(crate) fn of_run(&self, run_index: usize) -> &[(TestOrdinal, u32)] {
        self.by_run_index.get(&run_index).map_or(&[], Vec::as_slice)
    }

    /// The number of tests for each text, over the runs in the window.
    pub(crate) fn counts(&self, is_in_window: impl Fn(usize) -> bool) -> WindowTexts {
        if let Some(window) = &self.window {
            return window.clone();
        }
        let mut tests: HashMap<u32, u32> = HashMap::new();
        let mut pairs = 0.0;
        for failures in self.by_test.values() {
            let texts: BTreeSet<u32> = failures
                .iter()
                .filter(|(run_index, _)| is_in_window(*run_index))
                .map(|(_, text)| *text)
                .collect();
            for text in texts {
                pairs += 1.0;
                *tests.entry(text).or_default() += 1;
            }
        }
        WindowTexts { tests, pairs }
    }
}

/// The number of tests for each text of a window.
#[derive(Debug, Clone, Default)]
pub(crate) struct WindowTexts {
    tests: HashMap<u32, u32>,
    /// All pairs of a test and a text.
    pub(crate) pairs: f64,
}

impl WindowTexts {
    /// The number of tests with this text.
    pub(crate) fn tests(&self, text: u32) -> u32 {
        self.tests.get(&text).copied().unwrap_or(0)
    }

    /// Whether a text is too common to distinguish failures.
    pub(crate) fn is_common(&self, text: u32) -> bool {
        self.tests(text) >= COMMON
    }
}

/// The weight of failures with the text in question among the weight of all failures with a text.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Share {
    pub(crate) of_text: f64,
    pub(crate) of_all: f64,
}

impl Share {
    /// Adds a failure.
    pub(crate) fn add(&mut self, is_text: bool, weight: f64) {
        self.of_all += weight;
        if is_text {
            self.of_text += weight;
        }
    }

    fn plain(self) -> Option<f64> {
        (self.of_all > 0.0).then(|| self.of_text / self.of_all)
    }

    /// The share, drawn towards `rest` by a weight of `spread`.
    fn smoothed(self, spread: f64, rest: f64) -> f64 {
        (self.of_text + spread * rest) / (self.of_all + spread)
    }
}

/// The places where the text of a failure occurs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TextShares {
    /// Among the test's other failures, each weighted by its own flake part.
    pub(crate) flake: Share,
    /// Among the test's other failures.
    pub(crate) known: Share,
    /// Among the other failures of its run.
    pub(crate) run: Share,
    /// Among the episode around it, from its revision on.
    pub(crate) this: Share,
    /// Among the episode around it.
    pub(crate) earlier: Share,
    /// Among the stable chain's latest episode.
    pub(crate) before: Share,
    /// Among the stable chain's latest episode that is mended.
    pub(crate) mended: Share,
    /// The number of other tests that failed with it.
    pub(crate) other_tests: f64,
    /// The number of pairs of a test and a text in the window.
    pub(crate) pairs: f64,
}

impl TextShares {
    /// The parts, given the text.
    pub(crate) fn weigh(&self, parts: &Parts) -> Parts {
        let factors = self.factors();
        let weighted: Parts = std::array::from_fn(|part| {
            let both = parts.get(part).zip(factors.get(part));
            both.map_or(0.0, |(part, factor)| part * factor)
        });
        let total: f64 = weighted.iter().sum();
        weighted.map(|part| part / total)
    }

    /// The likelihood of the text under each part.
    fn factors(&self) -> [f64; PARTS] {
        let anywhere = (self.other_tests + 0.5) / (self.pairs + 10.0);
        let mix = |share: f64, by: f64| by * share + (1.0 - by) * anywhere;
        let fresh = self.run.plain().map_or(anywhere, |run| mix(run, SHARED_IN_RUN));
        let crowd = self.run.plain().map_or(anywhere, |run| mix(run, SHARED_IN_CROWD));
        let new = self
            .known
            .plain()
            .map_or(fresh, |known| SEEN_BEFORE * known + (1.0 - SEEN_BEFORE) * fresh);
        // A change may land a mended breakage again.
        let own = self.mended.smoothed(STREAK_SPREAD, new).max(new);
        let factor = |part: usize| match part {
            FLAKE => self.flake.smoothed(FLAKE_SPREAD, anywhere),
            CROWD => crowd,
            BEFORE => self.before.smoothed(STREAK_SPREAD, new),
            EARLIER => self.earlier.smoothed(STREAK_SPREAD, own),
            THIS => self.this.smoothed(STREAK_SPREAD, own),
            // A change outside of the code has a new text.
            DRIFT.. => new,
        };
        std::array::from_fn(|part| (1.0 - FLOOR) * factor(part) + FLOOR * anywhere)
    }
}
