//! A failed test, and what its reruns say.
//!
//! A few explanations of a failure compete, and each predicts the results of reruns. A pass says most, because broken
//! code seldom passes. A failure of a test that runs alone says more than one beside the tests of its file, because most
//! flakes do not occur alone.

use crate::model::{BROKEN_PASSES, RETRY_FAILS};

/// The share of breakages that a test shows only beside the other tests of its file, because the change spoils what
/// they share. Chosen, not measured.
const SHARED_IN_FILE: f64 = 0.06;
/// The same beside tests of other files, where files share a process.
const SHARED_BY_FILES: f64 = 0.005;
/// The share of breakages with which a test fails only sometimes, and how often it then fails. Chosen on simulations.
const SOMETIMES: (f64, f64) = (0.1, 0.6);
/// The probability that a flake repeats if the test runs alone. 3 % do, measured in docs/reruns.md.
const FLAKES_AGAIN_ALONE: f64 = 0.1;
/// The probability that a flaky test that has passed in a rerun fails in the next one.
const FLAKES_LATER: f64 = 0.05;
/// The probabilities that what is bad outside of the change fails a test again: in the first rerun, and in the next one
/// after it did.
const LASTS: (f64, f64) = (0.7, 0.9);
/// The probability that a breakage fails a test in a rerun that cannot show it.
const FAILS_UNSEEN: f64 = 0.01;
/// The number of further failures on good code that count; more of them have the same cause.
const COUNTED_FAILURES: u32 = 2;

/// The tests with which a test runs again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RerunKind {
    /// Without others. A pass does not exclude that the change spoils what tests share.
    Alone,
    /// With the tests of its file, or of its class or package where the runner selects those.
    WithFile,
}

/// The tests that share a process with a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessOf {
    /// Each test has its own process.
    Test,
    /// The tests of a file, class or package.
    File,
    /// All tests.
    Suite,
}

/// The results of a test in reruns of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Results {
    /// How often it passed.
    pub passed: u32,
    /// How often it failed.
    pub failed: u32,
}

/// The results of a test in all its reruns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RerunResults {
    /// Alone.
    pub alone: Results,
    /// With the tests of its file.
    pub with_file: Results,
}

impl RerunResults {
    /// Adds a result.
    pub const fn add(&mut self, kind: RerunKind, failed: bool) {
        let of_kind = match kind {
            RerunKind::Alone => &mut self.alone,
            RerunKind::WithFile => &mut self.with_file,
        };
        match failed {
            true => of_kind.failed = of_kind.failed.saturating_add(1),
            false => of_kind.passed = of_kind.passed.saturating_add(1),
        }
    }

    /// The number of reruns.
    pub const fn all(&self) -> u32 {
        self.passed().saturating_add(self.failed())
    }

    /// How often it passed.
    pub const fn passed(&self) -> u32 {
        self.alone.passed.saturating_add(self.with_file.passed)
    }

    const fn failed(&self) -> u32 {
        self.alone.failed.saturating_add(self.with_file.failed)
    }
}

/// A failed test that may run again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Suspect {
    /// P(this change broke it), from 0 to 1, after its first failure.
    pub mine: f64,
    /// P(it fails because of something outside of the change that lasts), from 0 to 1: the environment, or code that was
    /// broken before. What `mine` and this leave is a flake.
    pub lasting: f64,
    /// The tests that share its process.
    pub process: ProcessOf,
    /// Its reruns so far.
    pub results: RerunResults,
    /// The seconds of one repetition alone, without the start of the runner; none if it cannot run alone.
    pub alone_s: Option<f64>,
    /// The same with the tests of its file.
    pub with_file_s: Option<f64>,
}

impl Suspect {
    /// P(this change broke it) after its reruns (Bayes).
    pub fn mine_now(&self) -> f64 {
        Weights::of(self, &self.results).mine()
    }
}

/// The joint probabilities of results, with a change that broke the test and with another reason.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weights {
    broken: f64,
    good: f64,
}

impl Weights {
    pub(super) fn all(self) -> f64 {
        self.broken + self.good
    }

    pub(super) fn mine(self) -> f64 {
        self.broken / self.all().max(f64::MIN_POSITIVE)
    }

    pub(super) fn of(suspect: &Suspect, results: &RerunResults) -> Self {
        let mine = suspect.mine.clamp(0.0, 1.0);
        let lasting = suspect.lasting.clamp(0.0, 1.0 - mine);
        Self {
            broken: mine * if_broken(suspect.process, results),
            good: lasting * if_lasting(results) + (1.0 - mine - lasting) * if_flake(results),
        }
    }
}

/// The probability of results if the change broke the test.
fn if_broken(process: ProcessOf, results: &RerunResults) -> f64 {
    let repeated = |fails: f64, of: Results| power(fails, of.failed) * power(1.0 - fails, of.passed);
    let both = |fails: f64| repeated(fails, results.alone) * repeated(fails, results.with_file);
    let (in_file, by_files) = match process {
        ProcessOf::Test => (0.0, 0.0),
        ProcessOf::File => (SHARED_IN_FILE, 0.0),
        ProcessOf::Suite => (SHARED_IN_FILE, SHARED_BY_FILES),
    };
    let shown_in_file =
        repeated(FAILS_UNSEEN, results.alone) * repeated(1.0 - BROKEN_PASSES, results.with_file);
    let seen = (1.0 - SOMETIMES.0) * both(1.0 - BROKEN_PASSES) + SOMETIMES.0 * both(SOMETIMES.1);
    in_file * shown_in_file + by_files * both(FAILS_UNSEEN) + (1.0 - in_file - by_files) * seen
}

/// The probability of results if something outside of the change fails the test.
fn if_lasting(results: &RerunResults) -> f64 {
    let (failed, passed) = (results.failed(), results.passed());
    let failed = match failed.min(COUNTED_FAILURES) {
        0 => 1.0,
        counted => LASTS.0 * power(LASTS.1, counted - 1),
    };
    match passed {
        0 => failed,
        passed => failed * (1.0 - LASTS.0) * power(1.0 - FLAKES_LATER, passed - 1),
    }
}

/// The probability of results if the test is flaky.
fn if_flake(results: &RerunResults) -> f64 {
    let alone = match results.alone.failed.min(COUNTED_FAILURES) {
        0 => 1.0,
        counted => FLAKES_AGAIN_ALONE * power(RETRY_FAILS, counted - 1),
    };
    let failed = alone * power(RETRY_FAILS, results.with_file.failed.min(COUNTED_FAILURES));
    let first_passes = match (results.alone.passed, results.with_file.passed) {
        (0, 0) => return failed,
        (0, _) => 1.0 - RETRY_FAILS,
        (_, _) => 1.0 - FLAKES_AGAIN_ALONE,
    };
    failed * first_passes * power(1.0 - FLAKES_LATER, results.passed() - 1)
}

fn power(base: f64, exponent: u32) -> f64 {
    base.powf(f64::from(exponent))
}
