//! A test that is flaky on one of several variants has its flake rate there, and not that of all its results.

use assay_flakiness::{
    Engine,
    domain::{
        observation::History,
        verdict::{Judge as _, Verdict, VerdictStatus},
    },
};

use crate::history::{START_MS, add, run};

const EIGHT_HOURS_MS: i64 = 8 * 3_600_000;

/// The verdict on a test of `main` with these results on each variant, a revision every eight hours, beside 99 tests that
/// pass.
fn verdict(variants: &[&str]) -> Verdict {
    let mut history = History {
        stable_branch: "main".into(),
        tests: 100,
        runs: Vec::new(),
    };
    for place in 0..variants[0].len() {
        let number = i32::try_from(place).unwrap() + 1;
        let at_ms = START_MS + i64::from(number) * EIGHT_HOURS_MS;
        for (variant, results) in variants.iter().enumerate() {
            let mut observed = run(number, at_ms, Some("main"), Some(format!("{number}")));
            observed.run.variant = format!("variant {variant}").into();
            add(&mut observed, 0, results.chars().nth(place).unwrap());
            (1..100).for_each(|test| add(&mut observed, test, 'P'));
            history.runs.push(observed);
        }
    }
    let now = history.runs.last().unwrap().run.started_at;
    Engine::default().verdicts(&history, now).swap_remove(0)
}

const PASSES: &str = "PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP";

#[test]
fn two_failures_of_a_test_that_is_flaky_on_one_variant_are_no_breakage() {
    let flaky = "PPFPPFPFPPPPFPPPFFPPPFPPPPFPPFPPFF";
    for variants in [[flaky, PASSES, PASSES], [PASSES, PASSES, flaky]] {
        let verdict = verdict(&variants);
        assert_eq!(verdict.status, VerdictStatus::Flaky, "{verdict:?}");
        let probability = verdict.figures.broken_probability.unwrap();
        assert!(probability < 0.5, "{probability}");
    }
}

#[test]
fn a_test_that_fails_for_good_on_one_variant_is_broken() {
    let broken = "PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPFF";
    let was_flaky = "PPFPPFPFPPPPFPPPFFPPPPFFFFFFFFFFFF";
    for last in [broken, was_flaky] {
        let verdict = verdict(&[PASSES, PASSES, last]);
        assert_eq!(verdict.status, VerdictStatus::Broken, "{verdict:?}");
    }
}

#[test]
fn a_variant_that_breaks_is_broken_before_and_after_one_that_is_flaky() {
    let flaky = "PFPFPPFPFPPPPFPPPFPPPFPPPPFPPFPPPP";
    for broken in [
        "PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPFF",
        "PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPFFF",
    ] {
        for variants in [[flaky, broken], [broken, flaky]] {
            let verdict = verdict(&variants);
            assert_eq!(verdict.status, VerdictStatus::Broken, "{variants:?} {verdict:?}");
        }
    }
}

#[test]
fn a_flake_rate_that_all_variants_share_is_learned_from_all_of_them() {
    let flaky = "PPPPPPPPPPPPPPPPPPPPPPPPPPPFPPPPFF";
    let others = "PPFPPFPFPPPPFPPPFFPPPFPPPPFPPFPPPP";
    let alone = verdict(&[flaky, PASSES, PASSES]);
    let shared = verdict(&[flaky, others, others]);
    let probability = |verdict: &Verdict| verdict.figures.broken_probability.unwrap();
    assert!(
        probability(&shared) < 0.5 * probability(&alone),
        "{alone:?} {shared:?}"
    );
}
