//! A judged failure for the tests of this crate, which change what they are about.

use assay_domain::cause::{Action, Cause};

use crate::gate::judged::{JudgedFailure, JudgedRun};

/// A test of this name that failed by a flake.
pub(crate) fn flake(name: &str) -> JudgedFailure {
    JudgedFailure {
        test_name: name.to_owned(),
        file_path: Some("tests/cart.test.ts".to_owned()),
        recovered: false,
        cause: Cause::Flake,
        mine: 0.01,
        lasting: 0.0,
        in_mass_failure: false,
        environment: 0.0,
        cleared: false,
        explanation: "Failed in 4 of 120 runs on good code".to_owned(),
        broken_on_stable: false,
        known_as_flaky: false,
        runs_elsewhere: 40,
        same_error: 1,
        first_failed_at: None,
        fingerprint: Some("f1".to_owned()),
    }
}

/// A run with these failures, of which it is open whether this change broke one.
pub(crate) fn run(failures: Vec<JudgedFailure>) -> JudgedRun {
    JudgedRun {
        mine: 0.5,
        action: Action::Rerun,
        incomplete: None,
        tests: 3,
        total: failures.len(),
        failures,
        lacking: None,
    }
}
