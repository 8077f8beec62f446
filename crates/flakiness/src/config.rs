//! The configuration: the length of the window, and the evidence that a flaky verdict requires.

use assay_domain::verdict::ENGINE_WINDOW_DAYS;

/// The version of the model. It is raised whenever the same history may be judged differently.
pub const ENGINE_VERSION: &str = "10";

/// The engine's configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// The length of the window in days of 24 hours; it ends at `now`.
    pub window_days: i64,
    /// The evidence that a flaky verdict requires.
    pub thresholds: Thresholds,
}

/// The evidence that a flaky verdict requires.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// The score that is enough after an incident.
    pub contradicted_score: f64,
    /// The score that is enough without an incident.
    pub episodic_score: f64,
    /// The number of failing episodes that is required without an incident.
    pub episodes: u32,
}

impl Thresholds {
    /// The default: finds the most flaky tests, at little cost in precision.
    pub const SENSITIVE: Self = Self {
        contradicted_score: 0.4,
        episodic_score: 0.5,
        episodes: 1,
    };
    /// Requires more evidence.
    pub const CAUTIOUS: Self = Self {
        contradicted_score: 0.5,
        episodic_score: 0.7,
        episodes: 2,
    };
}

impl Default for Config {
    /// The sensitive thresholds over the window of the API.
    fn default() -> Self {
        Self {
            window_days: ENGINE_WINDOW_DAYS,
            thresholds: Thresholds::SENSITIVE,
        }
    }
}

/// With fewer considered runs than this, a test without an incident has insufficient data, unless it fails now.
pub(crate) const ENOUGH_RUNS: u32 = 5;
/// The same for a test that had enough runs before.
pub(crate) const STILL_ENOUGH_RUNS: u32 = 3;
/// A failing streak from this length on may mean a breakage; a single failure does not.
pub(crate) const STREAK: u32 = 2;
/// The same for a streak that began in a mass failure.
pub(crate) const STREAK_OF_CROWD: u32 = 3;
/// The probability of the Broken state from which a failing streak is called broken.
pub(crate) const BROKEN: f64 = 0.75;
/// A streak of this length is a breakage in 19 of 20 cases, so it is a sufficient reason for `broken`.
pub(crate) const CONCLUSIVE_STREAK: u32 = 4;
/// A chain without runs for longer than this, while the test runs on other chains, does not count for the current
/// state.
pub(crate) const SILENCE_MS: i64 = 3 * assay_domain::timestamp::DAY_MS;
/// A later run is complete for a test if it contains this share of the other tests of the run with its last result.
pub(crate) const COMPLETE: f64 = 0.9;
/// The number of complete runs without a test after which it is no longer part of its suite, if it never missed more.
pub(crate) const LEFT_AFTER: u32 = 3;
/// The flips that one breakage and its fix explain.
pub(crate) const EXPLAINED_FLIPS: u32 = 2;
/// The number of further flips from which the flip rate is a signal.
pub(crate) const EXCESS_FLIPS: u32 = 2;
/// The passes after the last failure that `resolved` requires.
pub(crate) const RESOLVED_PASSES: u32 = 30;
/// A test is resolved if its earlier failure rate would give that many passes with less than this probability.
pub(crate) const RESOLVED_CHANCE: f64 = 0.0001;
/// The background from which a run is a mass failure.
pub(crate) const MASS_FAILURE: f64 = 0.1;
/// The number of branches that must have failed a test, with passes in between, until their changes are unlikely
/// causes.
pub(crate) const UNRELATED_BRANCHES: u32 = 3;
/// The failures on one variant from which they are called specific to it.
pub(crate) const VARIANT_FAILURES: u32 = 2;
/// The maximum number of branches in a verdict.
pub(crate) const NAMED_BRANCHES: usize = 20;
/// The maximum number of runs in a piece of evidence.
pub(crate) const NAMED_RUNS: usize = 20;
