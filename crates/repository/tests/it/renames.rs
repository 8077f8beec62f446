//! Renamed tests: with a line of the renames file, a history equals that of a test that always had its name.

use assay_domain::{
    page::PerPage,
    period::Days,
    plan::Plan,
    project::Project,
    recording::Recording,
    renames::RenamesFile,
    rules::RecordingRules,
    signature::{SignatureQuery, SignatureSort},
    store::{Recorder as _, Snapshot, Store as _, StoreError, in_snapshot},
    test::{TestLookup, TestName, TestSelector},
};
use proptest::{prelude::*, test_runner::TestRunner};

use crate::fixture::*;

const LINES: &str = "2026-01-01 test old -> new\n2026-01-01 file x.spec.ts -> y.spec.ts\n";

/// One run: its attempts of a renamed test, a moved test and another one, whether it has their old names, its branch.
type Run = (&'static str, &'static str, &'static str, bool, bool);

fn runs() -> impl Strategy<Value = Vec<Run>> {
    let attempts = || prop_oneof![Just(""), Just("p"), Just("f"), Just("fp"), Just("s"), Just("p f"),];
    let run = (attempts(), attempts(), attempts(), any::<bool>(), any::<bool>());
    prop::collection::vec(run, 1..8)
}

/// The report of the run at an index; `has_old_names` names the tests as before their rename.
fn recording(index: usize, run: &Run, has_old_names: bool) -> Recording {
    let (renamed, moved, other, _, is_stable) = *run;
    let hours = i64::try_from(40 - index).unwrap();
    let mut recording = report(&format!("run {index}"))
        .at(hours * HOUR)
        .branch(if is_stable { "main" } else { "topic" });
    let (name, file) = match has_old_names {
        true => ("old", "x.spec.ts"),
        false => ("new", "y.spec.ts"),
    };
    for (name, file, attempts) in [
        (name, "a.spec.ts", renamed),
        ("moved", file, moved),
        ("other", "a.spec.ts", other),
    ] {
        if !attempts.is_empty() {
            recording = recording.test_in(name, Some(file), attempts);
        }
    }
    recording
}

/// A run that names all tests as they are today, and brings this renames file.
fn last(text: &str) -> Recording {
    let mut recording = recording(30, &("p", "p", "p", false, true), false);
    recording.content[27] = u8::try_from(text.len()).unwrap();
    recording.run_key = format!("last {}", text.len());
    recording.started_at = recording
        .started_at
        .plus_ms(i64::try_from(100 - text.len()).unwrap());
    recording.checkout.renames = Some(RenamesFile {
        text: text.to_owned(),
    });
    recording
}

fn import(world: &World, project: &Project, recording: &Recording) {
    world
        .store
        .record(project.id, recording, &CountingJudge, NOW)
        .unwrap();
}

/// What the store answers about a test, without ids and without the names of tests.
fn answers(world: &World, project: &Project, selector: &TestSelector) -> Vec<String> {
    fn found<T>(lookup: TestLookup<T>) -> T {
        match lookup {
            TestLookup::Found(found) => found,
            TestLookup::Missing => panic!("the test is missing"),
            TestLookup::Ambiguous(files) => panic!("{files:?}"),
        }
    }
    let history = found(
        world
            .store
            .history(project, selector, &period(Days::Thirty))
            .unwrap(),
    );
    let mut answers: Vec<String> = history
        .occurrences
        .iter()
        .map(|ran| {
            format!(
                "{} {:?} {:?} {:?} {} {} {:?}",
                ran.run_number,
                ran.branch,
                ran.status,
                ran.duration_ms,
                ran.attempts,
                ran.any_failed_attempt,
                ran.revision
            )
        })
        .collect();
    let stored = found(world.store.verdict(project, selector).unwrap())
        .stored
        .unwrap();
    let last = stored.last.map(|(at, run)| (at, run.run_number, run.status));
    answers.push(format!(
        "{:?} {} {:?} {:?} {last:?}",
        stored.status, stored.explanation, stored.figures, stored.signals
    ));
    let summary = found(
        world
            .store
            .test_summary(project, selector, &period(Days::Thirty), 5)
            .unwrap(),
    );
    let failures = summary
        .last_failures
        .iter()
        .map(|failure| (failure.run.run_number, failure.started_at));
    answers.push(format!(
        "{:?} {:?} {:?} {:?}",
        summary.outcomes,
        summary.first_failure.map(|(run, at)| (run.run_number, at)),
        failures.collect::<Vec<_>>(),
        summary.signatures
    ));
    let ordinals = in_snapshot(&world.store, project, |snapshot| facts(snapshot, selector));
    answers.push(ordinals.unwrap());
    answers
}

/// What a snapshot has of a test: in which runs it ran, its errors and its first failure.
fn facts(snapshot: &mut dyn Snapshot, selector: &TestSelector) -> Result<String, StoreError> {
    let history = snapshot.observations(NOW.plus_days(-14), NOW)?;
    let lookup = snapshot.test_ordinals(std::slice::from_ref(selector))?.remove(0);
    let TestLookup::Found(test) = lookup else {
        panic!("{lookup:?}")
    };
    let ran: Vec<(i32, bool)> = history
        .runs
        .iter()
        .filter(|run| run.present.contains(test))
        .map(|run| (run.run.number, run.failed(test)))
        .collect();
    let first_failed_at = snapshot
        .stored_facts(&[test])?
        .get(&test)
        .and_then(|facts| facts.first_failed_at);
    let errors = snapshot.window_errors(1, &[test], NOW.plus_days(-14), NOW)?;
    let runs: Vec<(i32, assay_domain::timestamp::Timestamp)> = history
        .runs
        .iter()
        .map(|run| (run.run.number, run.run.started_at))
        .collect();
    let durations = snapshot.green_durations(&runs)?;
    let durations: Vec<Option<u64>> = durations
        .iter()
        .map(|of_run| of_run.iter().find(|(other, _)| *other == test).map(|(_, ms)| *ms))
        .collect();
    let failures: Vec<(i32, u32)> = errors
        .failures
        .iter()
        .map(|(run, _, text)| (*run, *text))
        .collect();
    Ok(format!(
        "{ran:?} {first_failed_at:?} {failures:?} {:?} {durations:?}",
        errors.tests
    ))
}

const TESTS: [(&str, &str, &str); 3] = [
    ("new", "old", "a.spec.ts"),
    ("moved", "moved", "y.spec.ts"),
    ("other", "other", "a.spec.ts"),
];

#[test]
fn a_history_with_renames_is_that_of_tests_that_always_had_their_names() {
    let world = World::on(Plan::Standard);
    let number = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(ProptestConfig::with_cases(12));
    let outcome = runner.run(&runs(), |runs| {
        number.set(number.get() + 1);
        let number = number.get();
        let renamed = world.another_project(&format!("renamed {number}"));
        let constant = world.another_project(&format!("constant {number}"));
        let separate = world.another_project(&format!("separate {number}"));
        for (index, run) in runs.iter().enumerate() {
            import(&world, &renamed, &recording(index, run, run.3));
            import(&world, &separate, &recording(index, run, run.3));
            import(&world, &constant, &recording(index, run, false));
        }
        import(&world, &renamed, &last(LINES));
        import(&world, &separate, &last(LINES).without_renames());
        import(&world, &constant, &last(LINES).without_renames());
        for (name, former, file) in TESTS {
            let expected = answers(&world, &constant, &any_file(name));
            for selector in [any_file(name), any_file(former), in_file(name, Some(file))] {
                if former == "old"
                    && selector.name == "old"
                    && !runs.iter().any(|run| run.3 && !run.0.is_empty())
                {
                    // No report had the old name.
                    continue;
                }
                prop_assert_eq!(&answers(&world, &renamed, &selector), &expected, "{:?}", selector);
            }
        }
        let rebuilt = world.rebuild(renamed.id);
        prop_assert_eq!((rebuilt.verdicts_changed, rebuilt.joins_changed), (0, false));

        // Without the lines, nothing is left of them.
        import(&world, &renamed, &last(""));
        import(&world, &separate, &last("").without_renames());
        for (name, file) in [("new", "a.spec.ts"), ("moved", "y.spec.ts")] {
            let selector = in_file(name, Some(file));
            prop_assert_eq!(
                answers(&world, &renamed, &selector),
                answers(&world, &separate, &selector)
            );
        }
        Ok(())
    });
    outcome.unwrap();
}

trait WithoutRenames {
    fn without_renames(self) -> Self;
}

impl WithoutRenames for Recording {
    fn without_renames(mut self) -> Self {
        self.checkout.renames = None;
        self
    }
}

/// A project whose test `old` failed and became `new`.
fn renamed(world: &World) {
    world.import(&report("1").at(40 * HOUR).test("old", "f"));
    world.import(&report("2").at(30 * HOUR).test("new", "p"));
}

fn runs_of_new(world: &World) -> usize {
    world.test_history("new", Days::Thirty).occurrences.len()
}

fn with_renames(mut recording: Recording, text: &str) -> Recording {
    recording.checkout.renames = Some(RenamesFile {
        text: text.to_owned(),
    });
    recording.test("new", "p")
}

#[test]
fn only_trusted_runs_of_the_stable_branch_change_renames() {
    let world = World::on(Plan::Standard);
    renamed(&world);
    let of_branch = with_renames(report("branch").at(9 * HOUR).branch("topic"), LINES);
    world.import(&of_branch);
    let mut of_pull_request = with_renames(report("pull request").at(8 * HOUR), LINES);
    of_pull_request.context.pull_request_number = Some(7);
    world.import(&of_pull_request);
    let of_fork = with_renames(report("fork").at(7 * HOUR).branch("fork:main"), LINES);
    let public = RecordingRules::IngestKey {
        backfill: false,
        pull_requests_only: true,
        budget: None,
    };
    let mut of_fork_pull_request = of_fork;
    of_fork_pull_request.context.pull_request_number = Some(8);
    let stored = world.store.record_under(
        world.project.id,
        &of_fork_pull_request,
        public,
        &CountingJudge,
        NOW,
    );
    stored.unwrap();
    assert_eq!(runs_of_new(&world), 4);
    world.import(&with_renames(report("main").at(6 * HOUR), LINES));
    assert_eq!(
        runs_of_new(&world),
        6,
        "the failed run counts as one of the new name"
    );
    // An older run that arrives later changes nothing.
    world.import(&with_renames(report("late").at(20 * HOUR), ""));
    assert_eq!(runs_of_new(&world), 7);
    world.import(&with_renames(report("removed").at(5 * HOUR), ""));
    assert_eq!(runs_of_new(&world), 7, "one run more, and the joined one is gone");
}

#[test]
fn a_run_with_both_names_keeps_two_tests() {
    let world = World::on(Plan::Standard);
    renamed(&world);
    let both = world.import(&report("both").at(20 * HOUR).test("old", "f").test("new", "p"));
    world.import(&with_renames(report("main").at(6 * HOUR), LINES));
    let history = world.test_history("new", Days::Thirty);
    let statuses: Vec<_> = history.occurrences.iter().map(|ran| ran.status).collect();
    assert_eq!(
        statuses,
        ["p", "p", "p", "f"].map(|letter| status(letter.chars().next().unwrap()))
    );
    let observed = world.history(14);
    let run = observed
        .runs
        .iter()
        .find(|run| run.run.number == both.run_number)
        .unwrap();
    assert_eq!(run.present.len(), 2);
}

#[test]
fn pruning_and_a_rebuild_keep_joined_tests() {
    let world = World::on(Plan::Standard);
    world.import(&report("past").at(65 * DAY).test("older", "p"));
    renamed(&world);
    let lines = format!("2026-01-01 test older -> old\n{LINES}");
    world.import(&with_renames(report("main").at(6 * HOUR), &lines));
    let joined = || world.database.texts("SELECT joined_tests::text FROM project");
    let before = joined();
    assert_eq!(runs_of_new(&world), 3);
    world.prune(false);
    assert_ne!(joined(), before, "the pruned test is no longer joined");
    assert_eq!(runs_of_new(&world), 3);
    let pruned = joined();
    world.database.execute("UPDATE project SET joined_tests = NULL");
    assert!(world.rebuild(world.project.id).joins_changed);
    assert_eq!((joined(), runs_of_new(&world)), (pruned, 3));
    assert!(!world.rebuild(world.project.id).joins_changed);
}

/// The tests of the only error, in the detail and in the lists: name, file and occurrences.
fn tests_with_the_error(world: &World) -> Vec<(String, Option<String>, u64)> {
    let list = |sort, search: Option<&str>| {
        let query = SignatureQuery {
            period: period(Days::Thirty),
            branch: None,
            category: None,
            search: search.map(str::to_owned),
            sort,
            page: 1,
            per_page: PerPage::Ten,
        };
        world.store.signatures(&world.project, &query).unwrap().signatures
    };
    let detail = world
        .store
        .signature(&world.project, &fingerprint("it broke"), &period(Days::Thirty))
        .unwrap()
        .unwrap();
    for sort in [
        SignatureSort::Occurrences,
        SignatureSort::Tests,
        SignatureSort::LastSeen,
        SignatureSort::FirstSeen,
    ] {
        assert_eq!(
            list(sort, None),
            std::slice::from_ref(&detail.signature),
            "{sort:?}"
        );
    }
    // Both the file that was reported and the present one find it.
    for file in ["x.spec", "y.spec"] {
        assert_eq!(list(SignatureSort::Tests, Some(file)).len(), 1, "{file}");
    }
    assert!(list(SignatureSort::Tests, Some("z.spec")).is_empty());
    let tests = detail.tests.into_iter();
    let tests: Vec<_> = tests
        .map(|test| (test.test_name, test.file_path, test.occurrence_count))
        .collect();
    assert_eq!(detail.signature.test_count, tests.len() as u64);
    assert_eq!(detail.runs.len(), 4, "each run has the names that it reported");
    tests
}

#[test]
fn an_error_of_a_renamed_test_is_one_of_one_test() {
    let world = World::on(Plan::Standard);
    let file = |name: &str| Some(format!("{name}.spec.ts"));
    world.import(
        &report("1")
            .at(40 * HOUR)
            .test("old", "f")
            .test_in("moved", Some("x.spec.ts"), "f"),
    );
    world.import(
        &report("2")
            .at(30 * HOUR)
            .test("new", "f")
            .test_in("moved", Some("y.spec.ts"), "f"),
    );
    let reported = [
        ("moved".to_owned(), file("x"), 1),
        ("moved".to_owned(), file("y"), 1),
        ("new".to_owned(), file("a"), 1),
        ("old".to_owned(), file("a"), 1),
    ];
    assert_eq!(tests_with_the_error(&world), reported);
    world.import(&with_renames(report("main").at(6 * HOUR), LINES));
    let joined = [
        ("moved".to_owned(), file("y"), 2),
        ("new".to_owned(), file("a"), 2),
    ];
    assert_eq!(tests_with_the_error(&world), joined);
    world.import(&with_renames(report("removed").at(5 * HOUR), ""));
    assert_eq!(tests_with_the_error(&world), reported);
}

#[test]
fn former_names_are_those_that_mean_the_test_today() {
    let world = World::on(Plan::Standard);
    world.import(
        &report("1")
            .at(40 * HOUR)
            .test("older", "p")
            .test("left", "p")
            .test("right", "p"),
    );
    world.import(&report("2").at(30 * HOUR).test("old", "p"));
    let lines = "2026-01-01 test older -> old\n2026-01-02 test old -> new\n\
                 2026-01-03 test left -> right\n2026-01-03 test right -> left\n";
    world.import(&with_renames(report("main").at(6 * HOUR), lines));
    let former = in_snapshot(&world.store, &world.project, |snapshot| {
        let tests = ["new", "left", "right"].map(any_file);
        let tests = snapshot
            .test_ordinals(&tests)?
            .into_iter()
            .map(|test| match test {
                TestLookup::Found(test) => test,
                other @ (TestLookup::Missing | TestLookup::Ambiguous(_)) => panic!("{other:?}"),
            });
        snapshot.former_names(&tests.collect::<Vec<_>>())
    });
    let name = |name: &str| TestName {
        name: name.to_owned(),
        file_path: Some("a.spec.ts".to_owned()),
    };
    assert_eq!(
        former.unwrap(),
        [vec![name("old"), name("older")], Vec::new(), Vec::new()]
    );
}
