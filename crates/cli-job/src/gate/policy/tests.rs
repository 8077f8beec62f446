use super::*;
use crate::gate::judged::fixture;

const NOW: Timestamp = Timestamp::from_unix_ms(1_793_520_000_000);

fn rules() -> Rules {
    Rules {
        risk: 0.05,
        most_excused: 5,
        changed: BTreeSet::new(),
        never: Vec::new(),
        allow_broken: false,
        expire_after_s: None,
        excuses: Vec::new(),
        now: NOW,
    }
}

fn flake() -> JudgedFailure {
    JudgedFailure {
        first_failed_at: Some(NOW.plus_days(-10)),
        ..fixture::flake("cart > odd")
    }
}

fn run(failures: Vec<JudgedFailure>) -> JudgedRun {
    let mine = 1.0
        - failures
            .iter()
            .filter(|failure| !failure.recovered)
            .map(|failure| 1.0 - failure.mine)
            .product::<f64>();
    JudgedRun {
        mine,
        action: assay_action(mine),
        incomplete: None,
        tests: 100,
        total: failures.len(),
        failures,
        lacking: None,
    }
}

fn assay_action(mine: f64) -> Action {
    match mine {
        ..0.05 => Action::Pass,
        0.05..0.9 => Action::Rerun,
        _ => Action::Block,
    }
}

fn outcome(failures: Vec<JudgedFailure>, rules: &Rules) -> GateOutcome {
    decide(&run(failures), rules).outcome
}

#[test]
fn a_flake_is_excused_and_a_breakage_is_not() {
    assert_eq!(outcome(vec![], &rules()), GateOutcome::Clean);
    assert_eq!(outcome(vec![flake()], &rules()), GateOutcome::Excused);
    let mine = JudgedFailure {
        mine: 0.95,
        cause: Cause::ThisChange,
        ..flake()
    };
    assert_eq!(outcome(vec![flake(), mine], &rules()), GateOutcome::Blocked);
    let perhaps = JudgedFailure {
        mine: 0.4,
        cause: Cause::Unclear,
        ..flake()
    };
    assert_eq!(outcome(vec![flake(), perhaps], &rules()), GateOutcome::Rerun);
    // Each is below the risk, all together are not.
    let small = JudgedFailure {
        mine: 0.03,
        ..flake()
    };
    assert_eq!(outcome(vec![small.clone(), small], &rules()), GateOutcome::Rerun);
    // A test that recovered needs no excuse.
    let recovered = JudgedFailure {
        recovered: true,
        mine: 0.9,
        ..flake()
    };
    assert_eq!(outcome(vec![recovered], &rules()), GateOutcome::Clean);
}

#[test]
fn some_failures_are_never_excused() {
    let refused = |failure: JudgedFailure, rules: &Rules| {
        let decision = decide(&run(vec![failure]), rules);
        assert_eq!(decision.outcome.passes(), decision.failed[0].1.is_none());
        decision.failed[0].1
    };
    let broken = JudgedFailure {
        broken_on_stable: true,
        cause: Cause::BrokenBefore,
        ..flake()
    };
    assert_eq!(refused(broken.clone(), &rules()), Some(Refusal::Broken));
    assert_eq!(
        refused(
            broken,
            &Rules {
                allow_broken: true,
                ..rules()
            }
        ),
        None
    );
    let new = JudgedFailure {
        runs_elsewhere: 4,
        ..flake()
    };
    assert_eq!(refused(new.clone(), &rules()), Some(Refusal::New));
    let probable = JudgedFailure {
        mine: 0.4,
        ..new.clone()
    };
    assert_eq!(outcome(vec![probable.clone()], &rules()), GateOutcome::Rerun);
    assert_eq!(refused(probable, &rules()), Some(Refusal::New));
    let passed_again = JudgedFailure { cleared: true, ..new };
    assert_eq!(refused(passed_again.clone(), &rules()), None);
    // No other branch ran it, so reruns show that this one added a flaky test.
    let own = JudgedFailure {
        runs_elsewhere: 0,
        ..passed_again
    };
    assert_eq!(outcome(vec![own.clone()], &rules()), GateOutcome::Blocked);
    assert_eq!(refused(own, &rules()), Some(Refusal::New));
    let crowd = JudgedFailure {
        same_error: 10,
        ..flake()
    };
    assert_eq!(refused(crowd, &rules()), Some(Refusal::Crowd));
    let unclear = JudgedFailure {
        cause: Cause::Unclear,
        ..flake()
    };
    assert_eq!(refused(unclear, &rules()), Some(Refusal::Unclear));
    for changed in ["tests/cart.test.ts", "web/tests/cart.test.ts"] {
        let changed = Rules {
            changed: BTreeSet::from([changed.to_owned()]),
            ..rules()
        };
        assert_eq!(refused(flake(), &changed), Some(Refusal::Changed));
    }
    let other = Rules {
        changed: BTreeSet::from(["more-tests/cart.test.ts".to_owned()]),
        ..rules()
    };
    assert_eq!(refused(flake(), &other), None);
    for never in ["cart > *", "tests/**"] {
        let never = Rules {
            never: vec![Pattern::new(never).unwrap()],
            ..rules()
        };
        assert_eq!(refused(flake(), &never), Some(Refusal::Never));
    }
    let expiring = |days: u64| Rules {
        expire_after_s: Some(days * 86_400),
        ..rules()
    };
    assert_eq!(refused(flake(), &expiring(9)), Some(Refusal::Expired));
    assert_eq!(refused(flake(), &expiring(11)), None);
}

#[test]
fn an_unsound_run_does_not_pass() {
    let flaky = || run(vec![flake()]);
    let outcome = |run: &JudgedRun| decide(run, &rules()).outcome;
    assert_eq!(outcome(&flaky()), GateOutcome::Excused);
    assert_eq!(outcome(&run(vec![])), GateOutcome::Clean);
    let cut = JudgedRun {
        incomplete: Some("a test was interrupted".to_owned()),
        ..flaky()
    };
    assert_eq!(outcome(&cut), GateOutcome::Blocked);
    assert_eq!(
        outcome(&JudgedRun {
            tests: 0,
            ..run(vec![])
        }),
        GateOutcome::Blocked
    );
    assert_eq!(
        outcome(&JudgedRun {
            total: 300,
            ..flaky()
        }),
        GateOutcome::Blocked
    );
    let lacking = JudgedRun {
        lacking: Some("3 tests are no longer reported".to_owned()),
        ..run(vec![])
    };
    assert_eq!(outcome(&lacking), GateOutcome::Blocked);
    let six = run(vec![JudgedFailure { mine: 0.0, ..flake() }; 6]);
    assert_eq!(outcome(&six), GateOutcome::Blocked);
    let decision = decide(
        &six,
        &Rules {
            most_excused: 6,
            ..rules()
        },
    );
    assert_eq!((decision.outcome, decision.excused()), (GateOutcome::Excused, 6));
}

#[test]
fn a_mass_failure_that_reruns_cleared_counts_once() {
    let thirty = |cleared: bool| {
        let failure = JudgedFailure {
            in_mass_failure: true,
            cleared,
            cause: Cause::Environment,
            same_error: 30,
            ..flake()
        };
        JudgedRun {
            mine: 0.03,
            ..run(vec![failure; 30])
        }
    };
    let decision = decide(&thirty(true), &rules());
    assert_eq!((decision.outcome, decision.excused()), (GateOutcome::Excused, 30));
    let none_excused = Rules {
        most_excused: 0,
        ..rules()
    };
    assert_eq!(decide(&thirty(true), &none_excused).outcome, GateOutcome::Blocked);
    let not_cleared = decide(&thirty(false), &rules());
    assert_eq!(not_cleared.outcome, GateOutcome::Blocked);
    assert_eq!(not_cleared.failed[0].1, Some(Refusal::Crowd));
}

fn excuse() -> Excuse {
    Excuse {
        test: "cart > odd".to_owned(),
        file: None,
        fingerprint: "f1".to_owned(),
        owner: "@org/web".to_owned(),
        reason: "The sandbox is slow".to_owned(),
        ticket: "WEB-7".to_owned(),
        until: "2026-11-20".to_owned(),
        ends: NOW.plus_days(20),
    }
}

#[test]
fn an_excuse_with_a_date_covers_one_error_of_one_test_until_its_day() {
    let possible = JudgedFailure {
        mine: 0.4,
        cause: Cause::Unclear,
        ..flake()
    };
    let with = |excuse: Excuse, failure: &JudgedFailure| {
        let rules = Rules {
            excuses: vec![excuse],
            ..rules()
        };
        outcome(vec![failure.clone()], &rules)
    };
    assert_eq!(outcome(vec![possible.clone()], &rules()), GateOutcome::Rerun);
    assert_eq!(with(excuse(), &possible), GateOutcome::Excused);
    for other in [
        Excuse {
            test: "cart > even".to_owned(),
            ..excuse()
        },
        Excuse {
            file: Some("other.ts".to_owned()),
            ..excuse()
        },
        Excuse {
            fingerprint: "f2".to_owned(),
            ..excuse()
        },
        Excuse {
            ends: NOW,
            ..excuse()
        },
        Excuse {
            ends: NOW.plus_days(32),
            ..excuse()
        },
    ] {
        assert_eq!(with(other.clone(), &possible), GateOutcome::Rerun, "{other:?}");
    }
    let of_change = JudgedFailure {
        mine: 0.51,
        cause: Cause::ThisChange,
        ..possible.clone()
    };
    assert!(!with(excuse(), &of_change).passes());
    let broken = JudgedFailure {
        broken_on_stable: true,
        ..flake()
    };
    assert_eq!(with(excuse(), &broken), GateOutcome::Excused);
    let no_text = JudgedFailure {
        fingerprint: None,
        ..possible
    };
    assert_eq!(with(excuse(), &no_text), GateOutcome::Rerun);
}

#[test]
fn an_excuse_with_a_date_says_who_gave_it_and_leaves_the_other_failures_to_the_rules() {
    let possible = JudgedFailure {
        mine: 0.4,
        cause: Cause::Unclear,
        ..flake()
    };
    let rules = Rules {
        excuses: vec![excuse()],
        ..rules()
    };
    let decision = decide(&run(vec![possible.clone(), flake()]), &rules);
    assert_eq!(decision.outcome, GateOutcome::Excused);
    assert_eq!(
        decision.failed[0].0.explanation,
        "Excused until 2026-11-20 by @org/web: The sandbox is slow (WEB-7)"
    );
    let other = JudgedFailure {
        test_name: "cart > even".to_owned(),
        ..possible.clone()
    };
    assert_eq!(
        decide(&run(vec![possible.clone(), other]), &rules).outcome,
        GateOutcome::Rerun
    );
    let another_error = JudgedFailure {
        fingerprint: Some("0".repeat(32)),
        ..possible.clone()
    };
    let refused = decide(&run(vec![another_error]), &rules);
    assert_eq!(
        refused.failed[0].0.explanation,
        "Failed in 4 of 120 runs on good code; excused until 2026-11-20 by @org/web, but for another error"
    );
    // The rules of the job precede the file of the sources.
    let never = Rules {
        never: vec![Pattern::new("cart*").unwrap()],
        ..rules
    };
    assert!(!decide(&run(vec![possible]), &never).outcome.passes());
}

#[test]
fn a_change_touches_a_test_without_a_file_by_the_name_of_its_module_or_class() {
    let changed = |file: &str| BTreeSet::from([file.to_owned()]);
    for (file, name, touched) in [
        ("tests/test_cart.py", "tests.test_cart > test_pays", true),
        ("tests/test_cart.py", "tests.test_cart.TestCart > pays", true),
        ("tests/test_cart.py", "tests.test_carts > pays", false),
        (
            "src/test/java/org/shop/CartTest.java",
            "org.shop.CartTest > pays",
            true,
        ),
        (
            "src/test/java/org/shop/CartTest.java",
            "org.shop.OrderTest > pays",
            false,
        ),
        ("lib/cart.py", "cart > pays", false),
        ("test_cart.py", "test_cart > pays", true),
    ] {
        assert_eq!(touches_test(&changed(file), name, None), touched, "{file} {name}");
    }
    // With a file, that counts, by its end: also the path in a container.
    for (file, touched) in [
        ("b.py", false),
        ("/app/web/tests/test_cart.py", true),
        ("C:/app/tests/test_cart.py", true),
        ("/app/more-tests/test_cart.py", false),
        ("packages/billing/tests/test_cart.py", false),
    ] {
        let touches = touches_test(&changed("tests/test_cart.py"), "tests.test_cart > a", Some(file));
        assert_eq!(touches, touched, "{file}");
    }
}

#[test]
fn a_test_that_this_change_broke_is_not_excused_by_the_flag_for_broken_ones() {
    let mine = JudgedFailure {
        mine: 0.9,
        broken_on_stable: true,
        ..flake()
    };
    let refusal = |failure: JudgedFailure, rules: &Rules| decide(&run(vec![failure]), rules).failed[0].1;
    assert_eq!(refusal(mine, &rules()), Some(Refusal::Mine));
    let broken = JudgedFailure {
        broken_on_stable: true,
        ..flake()
    };
    assert_eq!(refusal(broken.clone(), &rules()), Some(Refusal::Broken));
    // Whatever else refuses a test, one that has failed for too long has no excuse with a date.
    let rules = Rules {
        expire_after_s: Some(3_600),
        ..rules()
    };
    assert_eq!(refusal(broken, &rules), Some(Refusal::Expired));
}
