//! A failed test, and what its reruns say.
//!
//! A few explanations of a failure compete, and each predicts the results of reruns. A pass says most, because broken
//! code seldom passes. A failure of a test that runs alone says more than one beside the tests of its file, because most
//! flakes do not occur alone.

use serde::{Deserialize, Serialize};

use crate::model::{BROKEN_PASSES, RETRY_FAILS};

/// The share of breakages that a test shows only beside the other tests of its file, because the change spoils what
/// they share. Chosen, not measured.
const SHARED_IN_FILE: f64 = 0.06;
/// The same where each test has its process: they may share files or a service.
const SHARED_BY_PROCESSES: f64 = 0.01;
/// The same beside tests of other files, where files share a process.
const SHARED_BY_FILES: f64 = 0.005;
/// The same of breakages that cause a mass failure: what its tests share may be a server.
const SHARED_IN_MASS_FAILURE: f64 = 0.01;
/// The share of breakages with which a test fails only sometimes, and how often it then fails. Chosen on simulations.
const SOMETIMES: (f64, f64) = (0.2, 0.6);
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessOf {
    /// Each test has its own process.
    Test,
    /// The tests of a file, class or package.
    File,
    /// All tests.
    Suite,
}

/// The results of a test in reruns of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    /// How often it passed.
    pub passed: u32,
    /// How often it failed.
    pub failed: u32,
}

impl Results {
    const fn and(self, others: Self) -> Self {
        Self {
            passed: self.passed.saturating_add(others.passed),
            failed: self.failed.saturating_add(others.failed),
        }
    }
}

/// The results of a test in all its reruns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
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

    /// How often it failed.
    pub const fn failed(&self) -> u32 {
        self.alone.failed.saturating_add(self.with_file.failed)
    }

    /// These results and others together.
    #[must_use]
    pub const fn and(mut self, others: &Self) -> Self {
        self.alone = self.alone.and(others.alone);
        self.with_file = self.with_file.and(others.with_file);
        self
    }
}

/// A failed test that may run again.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Suspect {
    /// P(this change broke it), from 0 to 1, before its reruns.
    pub mine: f64,
    /// P(it fails because of something outside of the change that lasts), from 0 to 1: the environment, or code that was
    /// broken before. What `mine` and this leave is a flake.
    pub lasting: f64,
    /// Whether it failed in a mass failure. All such tests of a run have one cause.
    pub in_mass_failure: bool,
    /// The tests of the run that failed with its error, this one among them.
    pub same_error: u32,
    /// The tests that share its process.
    pub process: ProcessOf,
    /// Its reruns so far.
    pub results: RerunResults,
    /// P(this change broke it) as the engine judges its reruns; none before that.
    pub by_engine: Option<f64>,
    /// The seconds of one repetition alone, without the start of the runner; none if it cannot run alone.
    pub alone_s: Option<f64>,
    /// The same with the tests of its file.
    pub with_file_s: Option<f64>,
}

impl Suspect {
    /// The seconds of one repetition of this kind; none if it cannot run so.
    pub const fn seconds(&self, kind: RerunKind) -> Option<f64> {
        match kind {
            RerunKind::Alone => self.alone_s,
            RerunKind::WithFile => self.with_file_s,
        }
    }

    /// Takes over `mine` and `lasting` as the engine judges them after a rerun.
    pub fn judged_by_engine(&mut self, mine: f64, lasting: f64) {
        match self.results.all() {
            0 => (self.mine, self.lasting) = (mine, lasting),
            _ => self.by_engine = Some(mine),
        }
    }
}

/// How broken code shows in reruns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shows {
    /// In each rerun, or for some tests only sometimes.
    Everywhere,
    /// Beside the tests of its file.
    InFile,
    /// Beside tests of other files.
    BesideOtherFiles,
}

impl Shows {
    /// All of them, each with its share of the breakages.
    pub(super) const fn shares(process: ProcessOf, in_mass_failure: bool) -> [(Self, f64); 3] {
        let in_file = match process {
            ProcessOf::Test => SHARED_BY_PROCESSES,
            ProcessOf::File | ProcessOf::Suite => SHARED_IN_FILE,
        };
        let by_files = match (process, in_mass_failure) {
            (_, true) => SHARED_IN_MASS_FAILURE,
            (ProcessOf::Suite, false) => SHARED_BY_FILES,
            (ProcessOf::Test | ProcessOf::File, false) => 0.0,
        };
        [
            (Self::Everywhere, 1.0 - in_file - by_files),
            (Self::InFile, in_file),
            (Self::BesideOtherFiles, by_files),
        ]
    }

    /// The probability of a test's results if the change broke it.
    pub(super) fn probability(self, results: &RerunResults) -> f64 {
        let repeated = |fails: f64, of: Results| power(fails, of.failed) * power(1.0 - fails, of.passed);
        let both = |fails: f64| repeated(fails, results.alone) * repeated(fails, results.with_file);
        match self {
            Self::Everywhere => {
                (1.0 - SOMETIMES.0) * both(1.0 - BROKEN_PASSES) + SOMETIMES.0 * both(SOMETIMES.1)
            }
            Self::InFile => {
                repeated(FAILS_UNSEEN, results.alone) * repeated(1.0 - BROKEN_PASSES, results.with_file)
            }
            Self::BesideOtherFiles => both(FAILS_UNSEEN),
        }
    }
}

/// The probability of results if something outside of the change fails the test.
pub(super) fn if_lasting(results: &RerunResults) -> f64 {
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
pub(super) fn if_flake(results: &RerunResults) -> f64 {
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
