use std::collections::{BTreeMap, BTreeSet};

use assay_domain::{
    attempt::AttemptStatus::{Failed, Passed, Skipped},
    execution::TestOutcome,
    observation::{RunEnding, RunFacts, RunObservations},
};
use proptest::{
    prelude::*,
    test_runner::{RngAlgorithm, TestRng},
};

use super::{
    comparison::{Comparison, is_parametrised},
    *,
};

/// The tests of a suite by number: name and file.
fn names(tests: &[(&str, &str)]) -> TestNames {
    let mut names = TestNames::default();
    for (number, (name, file)) in (0..).zip(tests) {
        let file_path = (!file.is_empty()).then_some(*file);
        names.push(number, TestNameRef { name, file_path });
    }
    names
}

/// A run. `results` has a letter for each test: P, F, S, or - where it did not run.
fn run(number: i32, branch: &str, results: &str) -> RunObservations {
    let mut observed = RunObservations::of(RunFacts {
        id: format!("r{number}").into(),
        number,
        started_at: Timestamp::from_unix_ms(i64::from(number) * 60_000),
        branch: Some(branch.into()),
        revision: Some(format!("c{number}").into()),
        variant: "unit".into(),
        ..RunFacts::default()
    });
    for (test, letter) in (0..).zip(results.chars()) {
        let status = match letter {
            'P' => Passed,
            'F' => Failed,
            'S' => Skipped,
            _ => continue,
        };
        observed.add(test, &TestOutcome::of([[(status, None)]]).unwrap());
    }
    observed
}

/// The changes of the last run, by the names of the tests.
fn compared(runs: Vec<RunObservations>, names: &TestNames) -> Compared {
    compared_from(runs, None, names)
}

/// The same for a run with this merge base.
fn compared_from(mut runs: Vec<RunObservations>, merge_base: Option<&str>, names: &TestNames) -> Compared {
    let last = &mut runs.last_mut().unwrap().run;
    last.merge_base = merge_base.map(Into::into);
    let number = last.number;
    let history = History {
        stable_branch: "main".into(),
        tests: 1_000,
        runs,
    };
    Compared::of(&history, number, names)
}

/// Twelve runs of main with these results, and a run of a branch.
fn against(stable: &str, results: &str) -> Vec<RunObservations> {
    let stable = (1..=12).map(|number| run(number, "main", stable));
    stable.chain([run(13, "topic", results)]).collect()
}

#[test]
fn each_change_has_its_list() {
    let names = names(&[
        ("a", "x"),
        ("b", "x"),
        ("c", "x"),
        ("d", "x"),
        ("e", "x"),
        ("new", "y"),
        ("also new", "y"),
    ]);
    let found = compared(against("PFPPP--", "FPS-PPP"), &names);
    assert_eq!(
        found,
        Compared {
            base: Some(11),
            missing_not_judged: None,
            broken: vec![0],
            repaired: vec![1],
            newly_skipped: vec![2],
            missing: vec![3],
            renamed: Vec::new(),
            added: vec![5, 6],
        }
    );
}

#[test]
fn a_missing_test_is_listed_only_if_the_run_would_have_reported_it() {
    let suite = names(&[("a", "x"), ("b", "x"), ("alone", "y"), ("no file", "")]);
    let missing = |runs: Vec<RunObservations>| {
        let found = compared(runs, &suite);
        (found.missing, found.missing_not_judged)
    };
    assert_eq!(missing(against("PPPP", "P-PP")), (vec![1], None));
    // The file did not run, and a test without a file has no neighbours.
    let wide: Vec<(String, String)> = (0..40)
        .map(|number| (format!("t{number}"), format!("f{number}")))
        .collect();
    let wide: Vec<(&str, &str)> = wide
        .iter()
        .map(|(name, file)| (name.as_str(), file.as_str()))
        .collect();
    let results = format!("-{}", "P".repeat(39));
    assert_eq!(
        compared(against(&"P".repeat(40), &results), &names(&wide)).missing,
        [0; 0]
    );
    assert_eq!(missing(against("PPPP", "PPP-")), (vec![], None));
    // It ran too rarely on main.
    let mut rare = against("PPPP", "P-PP");
    rare[10] = run(11, "main", "P-PP");
    assert_eq!(missing(rare.clone()), (vec![1], None));
    rare[9] = run(10, "main", "P-PP");
    assert_eq!(missing(rare), (vec![], None));
    // Main got it after the branch may have begun.
    let mut young = against("PPPP", "P-PP");
    young[0] = run(1, "main", "P-PP");
    assert_eq!(missing(young), (vec![], None));
    // Main has deleted it, too.
    let mut deleted = against("PPPP", "P-PP");
    deleted[11] = run(12, "main", "P-PP");
    assert_eq!(missing(deleted), (vec![], None));
    // The run is incomplete, or a selection of the suite.
    let mut incomplete = against("PPPP", "P-PP");
    incomplete[12].ending = RunEnding {
        complete: false,
        ..RunEnding::default()
    };
    assert_eq!(missing(incomplete), (vec![], Some(MissingNotJudged::Incomplete)));
    assert_eq!(
        missing(against("PPPP", "P--P")),
        (vec![], Some(MissingNotJudged::Partial))
    );
    // Main has too few complete runs, or none.
    let few = against("PPPP", "P-PP").split_off(4);
    assert_eq!(missing(few), (vec![], Some(MissingNotJudged::FewRuns)));
    assert_eq!(
        missing(vec![run(1, "topic", "P-PP")]),
        (vec![], Some(MissingNotJudged::NoBase))
    );
}

/// Twelve runs of main, whose tenth tested this merge base and whose last two are of later code, and a run of a branch.
fn left_main(at_base: &str, later: &str, results: &str) -> Vec<RunObservations> {
    let mut runs = against(at_base, results);
    for (place, number) in [(10, 11), (11, 12)] {
        runs[place] = run(number, "main", later);
    }
    runs[9].run.revision = Some(MERGE_BASE.into());
    runs
}

const MERGE_BASE: &str = "ba5e0010";

#[test]
fn later_changes_of_main_are_not_those_of_a_branch() {
    let suite = names(&[
        ("fixed later", "x"),
        ("broken later", "x"),
        ("added later", "x"),
        ("removed later", "x"),
        ("removed here", "x"),
        ("stays", "x"),
    ]);
    let runs = left_main("FP-PPP", "PFP-PP", "FP-P-P");
    let of_newest = Compared {
        base: Some(11),
        broken: vec![0],
        repaired: vec![1],
        missing: vec![4],
        ..Compared::default()
    };
    assert_eq!(compared(runs.clone(), &suite), of_newest);
    let of_base = Compared {
        base: Some(9),
        missing: vec![4],
        ..Compared::default()
    };
    assert_eq!(compared_from(runs.clone(), Some(MERGE_BASE), &suite), of_base);
    assert_eq!(
        compared_from(runs.clone(), Some("BA5E00101234"), &suite),
        of_base,
        "one of both is abbreviated"
    );
    assert_eq!(
        compared_from(runs.clone(), Some("dead0010"), &suite),
        of_newest,
        "no run tested it"
    );
    // A later run of the same commit is at the merge base, too.
    let mut again = runs.clone();
    again[11] = run(12, "main", "FP-PPP");
    again[11].run.revision = Some(MERGE_BASE.into());
    assert_eq!(compared_from(again, Some(MERGE_BASE), &suite).base, Some(11));
    let mut incomplete = runs.clone();
    incomplete[9].ending.complete = false;
    let before = compared_from(incomplete, Some(MERGE_BASE), &suite);
    assert_eq!((before.base, before.broken), (Some(8), vec![]));
    // Only another suite ran at the merge base.
    let mut other = runs.clone();
    other[9].run.variant = "e2e".into();
    assert_eq!(
        compared_from(other, Some(MERGE_BASE), &suite).base,
        Some(8),
        "the newest run that started before it"
    );
    let mut young = runs.clone().split_off(9);
    young[0].run.variant = "e2e".into();
    let without = compared_from(young, Some(MERGE_BASE), &suite);
    assert_eq!(
        (without.base, without.missing_not_judged),
        (None, Some(MissingNotJudged::NoBase)),
        "the suite is younger than the merge base"
    );
}

#[test]
fn a_run_of_main_and_its_durations_have_no_later_base() {
    let suite = names(&[("a", "x")]);
    let mut runs = left_main("P", "F", "P");
    let history = |runs: &[RunObservations]| History {
        stable_branch: "main".into(),
        tests: 1,
        runs: runs.to_vec(),
    };
    assert_eq!(last_complete(&history(&runs), 13).first(), Some(&11));
    runs[12].run.merge_base = Some(MERGE_BASE.into());
    assert_eq!(
        last_complete(&history(&runs), 13),
        (0..=9).rev().collect::<Vec<_>>()
    );
    runs[12] = run(13, "main", "P");
    assert_eq!(compared_from(runs, Some(MERGE_BASE), &suite).base, Some(11));
}

#[test]
fn a_test_that_was_probably_renamed_is_missing_and_not_added() {
    let suite = names(&[
        ("stays", "x"),
        ("adds", "x"),
        ("adds[1]", "x"),
        ("adds[2]", "x"),
        ("addsmore", "x"),
        ("moves", "x"),
        ("moves", "y"),
        ("old title", "z"),
        ("new title", "z"),
        ("stays", "z"),
        ("stays", "y"),
    ]);
    let found = compared(against("PP---P-P-PP", "P-PPP-P-PPP"), &suite);
    assert_eq!(found.renamed, [(1, 2, true), (5, 6, true), (7, 8, true)]);
    assert_eq!((found.missing, found.added), (vec![1, 5, 7], vec![4]));
}

/// The tests that got parameters, by comparing each absent test with each new one.
fn parametrised_by_pairs(
    names: &TestNames,
    absent: &[TestOrdinal],
    added: &mut BTreeSet<TestOrdinal>,
) -> BTreeMap<TestOrdinal, TestOrdinal> {
    let mut renamed = BTreeMap::new();
    for old in absent {
        let from = names.get(*old).unwrap();
        let continues = |new: &&TestOrdinal| {
            let to = names.get(**new).unwrap();
            to.file_path == from.file_path && is_parametrised(from.name, to.name)
        };
        let several: Vec<TestOrdinal> = added.iter().filter(continues).copied().collect();
        if let Some(first) = several.first() {
            renamed.insert(*old, *first);
            added.retain(|new| !several.contains(new));
        }
    }
    renamed
}

proptest! {
    #[test]
    fn parameters_are_found_as_by_comparing_all_pairs(
        tests in prop::collection::btree_set((r"[a\[ ]{1,6}", "[xy]"), 1..40),
        gone in prop::collection::vec(any::<bool>(), 40),
    ) {
        let tests: Vec<(&str, &str)> = tests.iter().map(|(name, file)| (name.as_str(), file.as_str())).collect();
        let names = names(&tests);
        let runs = against(&"P".repeat(40), &"P".repeat(40));
        let history = History { stable_branch: "main".into(), tests: 40, runs };
        let run = history.runs.last().unwrap();
        let stable: Vec<_> = history.runs.iter().enumerate().take(12).collect();
        let comparison = Comparison::new(&history, run, (&stable, Some(run)), &names).unwrap();
        let (absent, new): (Vec<TestOrdinal>, Vec<TestOrdinal>) =
            (0..).take(tests.len()).partition(|test: &TestOrdinal| gone[usize::try_from(*test).unwrap()]);
        let mut added: BTreeSet<TestOrdinal> = new.into_iter().collect();
        let mut expected_added = added.clone();
        let expected = parametrised_by_pairs(&names, &absent, &mut expected_added);
        prop_assert_eq!(comparison.parametrised(&absent, &mut added), expected);
        prop_assert_eq!(added, expected_added);
    }
}

/// A suite of 200 tests in 20 files, and the dice of one simulated run.
struct Simulated {
    names: TestNames,
    dice: TestRng,
}

impl Simulated {
    fn roll(&mut self, below: u32) -> u32 {
        self.dice.next_u32() % below
    }

    fn letter(&mut self) -> char {
        match self.roll(200) {
            0 => 'F',
            1 => 'S',
            _ => 'P',
        }
    }

    fn results(&mut self) -> Vec<char> {
        (0..200).map(|_| self.letter()).collect()
    }
}

/// 10,000 runs of branches: whole, selected by file, cut off, with renamed and parametrised tests, with deletions. The
/// stable branch has flaky, skipped, cut off and late tests.
#[test]
fn thousands_of_simulated_runs_have_no_false_missing_test_and_every_planted_one() {
    let tests: Vec<(String, String)> = (0..200)
        .map(|test| (format!("test {test}"), format!("file {}", test / 10)))
        // Numbers from 200 on are new names: moved, parametrised, edited.
        .chain((0..200).map(|test| (format!("test {test}"), format!("moved {}", test / 10))))
        .chain((0..200).map(|test| (format!("test {test} [a]"), format!("file {}", test / 10))))
        .chain((0..200).map(|test| (format!("edited {test}"), format!("file {}", test / 10))))
        .collect();
    let tests: Vec<(&str, &str)> = tests
        .iter()
        .map(|(name, file)| (name.as_str(), file.as_str()))
        .collect();
    let mut simulated = Simulated {
        names: names(&tests),
        dice: TestRng::deterministic_rng(RngAlgorithm::ChaCha),
    };
    let (mut planted_total, mut judged) = (0, 0);
    for _ in 0..2_500 {
        let (runs, planted) = simulate(&mut simulated);
        let found = compared(runs, &simulated.names);
        let listed: BTreeSet<TestOrdinal> = found.missing.iter().copied().collect();
        assert_eq!(listed, planted, "{:?}", found.missing_not_judged);
        planted_total += planted.len();
        judged += usize::from(found.missing_not_judged.is_none());
    }
    assert!(
        planted_total > 500 && judged > 1_000,
        "{planted_total} planted, {judged} judged"
    );
}

/// The runs of a history with a branch's run at the end, and the tests that the branch deleted.
fn simulate(simulated: &mut Simulated) -> (Vec<RunObservations>, BTreeSet<TestOrdinal>) {
    // A file of its own, so that a renamed test is the only one of its file that is gone.
    let late = 190 + simulated.roll(10);
    let late_from = 2 + i32::try_from(simulated.roll(10)).unwrap();
    let mut runs = Vec::new();
    for number in 1..=14 {
        let mut results = simulated.results();
        if number < late_from {
            results[usize::try_from(late).unwrap()] = '-';
        }
        let mut observed = run(number, "main", &results.iter().collect::<String>());
        if simulated.roll(12) == 0 {
            // Cut off: the run lacks tests, and says so.
            for test in simulated.roll(200)..200 {
                remove(&mut observed, test);
            }
            observed.ending = RunEnding::incomplete(observed.run.started_at);
        }
        runs.push(observed);
    }
    let mut results = simulated.results();
    results.resize(800, '-');
    // The branch began before the late test.
    results[usize::try_from(late).unwrap()] = '-';
    let mut planted = BTreeSet::new();
    let kind = simulated.roll(6);
    let one = simulated.roll(190);
    let place = |test: u32| usize::try_from(test).unwrap();
    match kind {
        0 => {}
        // Deleted: one or two tests of different files.
        1 | 2 => {
            planted.insert(one);
            planted.insert((one + 50 * simulated.roll(2)) % 190);
        }
        // Renamed in one of three ways, which may be a deletion and a new test.
        3 => {
            planted.insert(one);
            results[place(one + 200 * (1 + simulated.roll(3)))] = 'P';
        }
        // Some files only.
        4 => {
            for file in 0..20 {
                if simulated.roll(2) == 0 || file < 3 {
                    (file * 10..file * 10 + 10).for_each(|test| results[place(test)] = '-');
                }
            }
        }
        _ => {}
    }
    planted.iter().for_each(|test| results[place(*test)] = '-');
    let mut observed = run(15, "topic", &results.iter().collect::<String>());
    if kind == 5 {
        (100..200).for_each(|test| remove(&mut observed, test));
        observed.ending = RunEnding::incomplete(observed.run.started_at);
    }
    runs.push(observed);
    // A test that the stable branch skips or lost in two of its last ten runs is no steady part of it.
    let complete: Vec<&RunObservations> = runs[..14]
        .iter()
        .rev()
        .filter(|run| run.ending.complete)
        .collect();
    let is_steady = |test: &TestOrdinal| {
        complete.len() >= 10
            && complete.iter().take(10).filter(|run| run.ran(*test)).count() >= 9
            && complete[0].present.contains(*test)
            && runs[0].present.contains(*test)
    };
    planted.retain(|test| is_steady(test) && *test != late);
    (runs, planted)
}

fn remove(observed: &mut RunObservations, test: TestOrdinal) {
    observed.present.remove(test);
    observed.skipped.remove(test);
    observed.untimed.remove(test);
    observed.failures.retain(|failure| failure.test != test);
}
