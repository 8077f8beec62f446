//! The constants of the model: its version, and the evidence that each verdict requires.

/// The version of the model. It is raised whenever the same history may be judged differently.
pub const ENGINE_VERSION: &str = "15";

/// The main constants of the model and of the verdicts, by name. `docs/engine.md` explains them.
pub fn constants() -> Vec<(&'static str, Vec<f64>)> {
    let mut constants = crate::model::constants();
    constants.extend([
        ("contradictedScore", vec![CONTRADICTED_SCORE]),
        ("episodicScore", vec![EPISODIC_SCORE]),
        (
            "enoughRuns",
            vec![f64::from(ENOUGH_RUNS), f64::from(STILL_ENOUGH_RUNS)],
        ),
        ("broken", vec![BROKEN]),
        ("streak", vec![f64::from(STREAK), f64::from(STREAK_OF_CROWD)]),
        ("resolvedPasses", vec![f64::from(RESOLVED_PASSES)]),
        ("resolvedChance", vec![RESOLVED_CHANCE]),
        ("massFailure", vec![MASS_FAILURE]),
    ]);
    constants
}

/// The score of a flaky test with an incident. Chosen with the next one to find the most flaky tests at little cost in
/// precision.
pub(crate) const CONTRADICTED_SCORE: f64 = 0.4;
/// The score of a flaky test without an incident.
pub(crate) const EPISODIC_SCORE: f64 = 0.5;
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
