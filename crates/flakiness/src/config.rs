//! What may be configured: the length of the window and how much evidence a flaky verdict asks for.

use assay_domain::verdict::ENGINE_WINDOW_DAYS;

/// The version of the model: raised whenever the same history may be judged differently.
pub const ENGINE_VERSION: &str = "2";

/// The engine's configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// The length of the window in days of 24 hours; it ends at `now`.
    pub window_days: i64,
    /// How much evidence a flaky verdict asks for.
    pub thresholds: Thresholds,
}

/// How much evidence a flaky verdict asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// The score that is enough once the test contradicted itself (passed on retry, or both ways on one revision).
    pub contradicted_score: f64,
    /// The score that is enough without a contradiction.
    pub episodic_score: f64,
    /// The failing episodes that it takes without a contradiction.
    pub episodes: u32,
}

impl Thresholds {
    /// The default: finds the most, at hardly any cost in precision.
    pub const SENSITIVE: Self = Self {
        contradicted_score: 0.35,
        episodic_score: 0.7,
        episodes: 1,
    };
    /// Waits for more evidence.
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

/// Fewer considered runs than this say nothing of a test that never contradicted itself.
pub(crate) const ENOUGH_RUNS: u32 = 5;
/// A failing streak of this length may mean a breakage; one failure never does.
pub(crate) const STREAK: u32 = 2;
/// Probability of the Broken state from which a failing streak is called broken.
pub(crate) const BROKEN: f64 = 0.9;
/// A streak of this length is a breakage in 19 of 20 cases whatever came before, so it is itself the reason.
pub(crate) const PLAIN_STREAK: u32 = 4;
/// A chain that is silent for longer than this beside its siblings says nothing of today.
pub(crate) const SILENCE_MS: i64 = 3 * assay_domain::timestamp::DAY_MS;
/// Flips that one breakage and its fix explain.
pub(crate) const EXPLAINED_FLIPS: u32 = 2;
/// Flips beyond the explained ones from which the flip rate is a signal.
pub(crate) const EXCESS_FLIPS: u32 = 2;
/// Passes that must follow the last failure before a test may be called resolved.
pub(crate) const RESOLVED_PASSES: u32 = 20;
/// A test is resolved when its earlier failure rate would give that many passes with less than this probability.
pub(crate) const RESOLVED_CHANCE: f64 = 0.002;
/// From this background on a run is a mass failure.
pub(crate) const MASS_FAILURE: f64 = 0.1;
/// Failures on one variant that it takes to call them specific to it.
pub(crate) const VARIANT_FAILURES: u32 = 2;
/// Branches named in a verdict.
pub(crate) const NAMED_BRANCHES: usize = 20;
/// Runs named in a piece of evidence.
pub(crate) const NAMED_RUNS: usize = 20;
