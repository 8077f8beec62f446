use proptest::prelude::*;

use super::{common_cause::MOST_REPETITIONS, *};
use crate::{any_mine, mine_and_shared};

const LIMITS: Limits = Limits {
    budget_s: 90.0,
    startup_s: 2.0,
    passes_below: 0.05,
    blocks_from: 0.9,
};

const fn suspect(mine: f64) -> Suspect {
    Suspect {
        mine,
        lasting: 0.0,
        in_mass_failure: false,
        same_error: 1,
        process: ProcessOf::File,
        results: RerunResults {
            alone: Results { passed: 0, failed: 0 },
            with_file: Results { passed: 0, failed: 0 },
        },
        by_engine: None,
        alone_s: Some(1.0),
        with_file_s: Some(4.0),
    }
}

fn planned(suspect: Suspect) -> Option<PlannedRerun> {
    plan(&[suspect], &LIMITS).first().copied()
}

/// P(this change broke it) after results of one kind.
fn mine_after(suspect: Suspect, kind: RerunKind, failed: &[bool]) -> f64 {
    let mut suspect = suspect;
    for failed in failed {
        suspect.results.add(kind, *failed);
    }
    mines_now(&[suspect])[0]
}

#[test]
fn a_pass_makes_an_even_chance_a_small_one_and_a_second_pass_a_smaller_one() {
    let with_file = |failed: &[bool]| mine_after(suspect(0.5), RerunKind::WithFile, failed);
    assert_eq!(with_file(&[]), 0.5);
    // 0.94 (0.8 0.002 + 0.2 0.4) / 0.5 to 1.
    assert!(
        (with_file(&[false]) - 0.133).abs() < 1e-3,
        "{}",
        with_file(&[false])
    );
    assert!(with_file(&[false, false]) < 0.07);
    // The change may still spoil what the tests of the process share.
    let alone = mine_after(suspect(0.5), RerunKind::Alone, &[false; 4]);
    assert!((0.06..0.08).contains(&alone), "{alone}");
    let own_process = Suspect {
        process: ProcessOf::Test,
        ..suspect(0.5)
    };
    assert!(mine_after(own_process, RerunKind::Alone, &[false; 4]) < 0.03);
}

#[test]
fn a_failure_alone_says_more_than_one_with_the_file_and_repeated_ones_little() {
    let after = |kind, failures| mine_after(suspect(0.5), kind, &vec![true; failures]);
    assert!(after(RerunKind::Alone, 1) > 0.89);
    assert!(after(RerunKind::WithFile, 1) < 0.7);
    assert!(after(RerunKind::WithFile, 9) < 0.81);
    // What lasts fails alone, too.
    let lasting = Suspect {
        lasting: 0.4,
        ..suspect(0.5)
    };
    assert!(mine_after(lasting, RerunKind::Alone, &[true]) < 0.7);
}

/// A suspect after results of one kind.
fn after(mine: f64, kind: RerunKind, failed: &[bool]) -> Suspect {
    let mut suspect = suspect(mine);
    for failed in failed {
        suspect.results.add(kind, *failed);
    }
    suspect
}

#[test]
fn the_next_rerun_is_of_the_kind_that_tells_more() {
    use RerunKind::{Alone, WithFile};
    let kind = |suspect: Suspect| planned(suspect).map(|rerun| rerun.kind);
    // A failure alone says more.
    assert_eq!(kind(suspect(0.3)), Some(Alone));
    // What shows only beside the tests of its file is left.
    assert_eq!(kind(after(0.85, Alone, &[false; 4])), Some(WithFile));
}

#[test]
fn reruns_go_on_while_they_save_more_than_they_cost() {
    let likely = after(0.95, RerunKind::WithFile, &[true]);
    assert!(mines_now(&[likely])[0] > LIMITS.blocks_from && planned(likely).is_some());
    let certain = after(0.95, RerunKind::Alone, &[true, true]);
    assert_eq!(planned(certain), None, "{:?}", mines_now(&[certain]));
    let slow = Suspect {
        alone_s: Some(80.0),
        with_file_s: Some(80.0),
        ..likely
    };
    assert_eq!(planned(slow), None);
    // One such test blocks the run, whatever the others do.
    assert_eq!(plan(&[certain, suspect(0.5)], &LIMITS), []);
    // Nothing is blocked without a rerun.
    assert!(planned(suspect(0.9999)).is_some());
}

#[test]
fn only_tests_that_stand_in_the_way_run_again() {
    assert_eq!(open_causes(&[0.01, 0.4, 0.002, 0.2], 0.05), [1, 3]);
    assert_eq!(open_causes(&[0.02, 0.02, 0.02], 0.05), [1, 2]);
    assert!(open_causes(&[0.001; 9], 0.05).is_empty());
    assert!(open_causes(&[], 0.05).is_empty());
}

#[test]
fn nothing_runs_where_it_cannot_decide_or_exceeds_the_budget() {
    assert_eq!(planned(suspect(0.01)), None, "it is decided already");
    let slow = Suspect {
        alone_s: Some(100.0),
        with_file_s: Some(100.0),
        ..suspect(0.5)
    };
    assert_eq!(planned(slow), None);
    assert!(may_decide(&[slow], &LIMITS));
    let not_selectable = Suspect {
        alone_s: None,
        with_file_s: None,
        ..slow
    };
    assert!(!may_decide(&[not_selectable], &LIMITS));
    let only_alone = Suspect {
        alone_s: Some(1.0),
        ..not_selectable
    };
    assert_eq!(planned(only_alone).unwrap().kind, RerunKind::Alone);
    let mut tried = suspect(0.5);
    for _ in 0..MOST_REPETITIONS {
        tried.results.add(RerunKind::WithFile, true);
    }
    assert!(mines_now(&[tried])[0] < 0.9 && !may_decide(&[tried], &LIMITS));
    assert_eq!(plan(&[], &LIMITS), []);
}

/// Thirty failures with even chances of the change and of something that lasts.
fn thirty(in_mass_failure: bool) -> Vec<Suspect> {
    let suspect = Suspect {
        lasting: 0.5,
        in_mass_failure,
        same_error: 30,
        ..suspect(0.5)
    };
    vec![suspect; 30]
}

/// P(this change broke any) after each test of the plan had a result in each of these rounds.
fn any_mine_after(mut suspects: Vec<Suspect>, rounds: &[&[bool]]) -> f64 {
    for failed in rounds {
        let reruns = plan(&suspects, &LIMITS);
        assert_eq!(reruns.len(), failed.len());
        for (rerun, failed) in reruns.iter().zip(*failed) {
            suspects[rerun.suspect].results.add(rerun.kind, *failed);
        }
    }
    let mines = mines_now(&suspects).into_iter().zip(&suspects);
    any_mine(mines.map(|(mine, suspect)| mine_and_shared(mine, suspect.in_mass_failure, 0.0)))
}

#[test]
fn three_tests_stand_for_a_mass_failure() {
    let planned = plan(&thirty(true), &LIMITS);
    assert_eq!(planned.len(), 3, "{planned:?}");
    assert!(planned.iter().all(|rerun| rerun.kind == RerunKind::WithFile));
    let after = |rounds: &[&[bool]]| any_mine_after(thirty(true), rounds);
    assert!((after(&[]) - 0.5).abs() < 1e-12);
    let passed = after(&[&[false; 3]]);
    // What shows only beside other files: 0.01 / (0.01 + 0.27). A test besides: 27 times 0.0005.
    assert!((passed - 0.048).abs() < 2e-3, "{passed}");
    // What lasts fails again, too.
    let failed = after(&[&[true; 3], &[true; 3]]);
    assert!((0.5..0.65).contains(&failed), "{failed}");
    assert!(after(&[&[true, false, false]]) < 0.05);
    // A control: without a mass failure each has a cause of its own, and no few reruns decide.
    assert_eq!(plan(&thirty(false), &LIMITS).len(), 1);
}

#[test]
fn flakes_of_a_mass_failure_that_fail_again_block() {
    let flakes = thirty(true).into_iter().map(|suspect| Suspect {
        lasting: 0.0,
        ..suspect
    });
    assert!(any_mine_after(flakes.collect(), &[&[true; 3], &[true; 3]]) > 0.9);
}

#[test]
fn each_common_error_has_a_test_and_of_one_error_the_fastest_run() {
    let mut suspects = thirty(true);
    for (place, suspect) in suspects.iter_mut().enumerate() {
        let seconds = f64::from(numbers::count(30 - place));
        (suspect.alone_s, suspect.with_file_s) = (Some(seconds), Some(seconds));
        suspect.same_error = if place < 6 { 6 } else { 24 };
    }
    // The probability of a test that the change hardly broke says little about the others.
    suspects[29].mine = 0.1;
    let tests = plan(&suspects, &LIMITS);
    let tests: Vec<usize> = tests.iter().map(|rerun| rerun.suspect).collect();
    assert_eq!(tests, [5, 27, 28]);
    // Fewer of them run where the budget is small.
    for suspect in &mut suspects {
        (suspect.mine, suspect.lasting, suspect.same_error) = (0.3, 0.7, 30);
    }
    let of_budget = |budget_s| {
        let limits = Limits { budget_s, ..LIMITS };
        plan(&suspects, &limits).len()
    };
    assert_eq!([2.9, 5.0, 8.0].map(of_budget), [0, 2, 3]);
}

#[test]
fn a_mass_failure_of_slow_files_runs_again_alone() {
    let mut suspects = thirty(true);
    for suspect in &mut suspects {
        (suspect.mine, suspect.with_file_s) = (0.99, Some(200.0));
    }
    let planned = plan(&suspects, &LIMITS);
    assert_eq!(planned.len(), 3, "{planned:?}");
    assert!(planned.iter().all(|rerun| rerun.kind == RerunKind::Alone));
    // Passes alone clear none of them.
    assert!(any_mine_after(suspects.clone(), &[&[false; 3]]) > 0.5);
    // A control: no rerun fits the budget.
    for suspect in &mut suspects {
        suspect.alone_s = Some(200.0);
    }
    assert_eq!(plan(&suspects, &LIMITS), []);
}

#[test]
fn a_large_mass_failure_is_not_cleared_by_three_tests() {
    let mut many: Vec<Suspect> = thirty(true).into_iter().cycle().take(200).collect();
    for suspect in many.iter_mut().take(3) {
        suspect.results.add(RerunKind::WithFile, false);
    }
    assert!(any_mine_after(many, &[]) > 0.1);
}

#[test]
fn tests_of_one_kind_share_the_start_of_the_runner() {
    let of_budget = |budget_s| {
        let limits = Limits { budget_s, ..LIMITS };
        let own_process = Suspect {
            process: ProcessOf::Test,
            ..suspect(0.1)
        };
        plan(&[own_process, own_process], &limits).len()
    };
    assert_eq!([2.9, 3.9, 4.0].map(of_budget), [0, 1, 2]);
}

proptest! {
    #[test]
    fn a_plan_keeps_its_budget(
        mines in prop::collection::vec((0.0..1.0_f64, 0.0..20.0_f64, 0.0..1.0_f64), 0..6),
        budget in 0.0..120.0_f64,
    ) {
        let suspects: Vec<Suspect> = mines
            .iter()
            .map(|(mine, seconds, lasting)| Suspect {
                lasting: *lasting,
                alone_s: Some(*seconds),
                with_file_s: Some(3.0 * seconds),
                ..suspect(*mine)
            })
            .collect();
        let planned = plan(&suspects, &Limits { budget_s: budget, ..LIMITS });
        let tests: f64 = planned.iter().filter_map(|rerun| suspects[rerun.suspect].seconds(rerun.kind)).sum();
        let kinds: std::collections::HashSet<RerunKind> = planned.iter().map(|rerun| rerun.kind).collect();
        prop_assert!(tests + LIMITS.startup_s * f64::from(numbers::count(kinds.len())) <= budget + 1e-9);
    }
}
