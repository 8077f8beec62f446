//! Look-ups of tests by name, and their history.

use assay_domain::{
    history::TestSummary,
    period::Days,
    plan::Plan,
    store::{Recorder, Store, in_snapshot},
    test::{CandidateFiles, TestLookup, TestName, TestSelector},
    verdict::VerdictStatus,
};

use crate::{
    fixture::*,
    statements::{interrupted, listen},
};

fn ambiguous(files: &[Option<&str>]) -> CandidateFiles {
    CandidateFiles::first_of(files.iter().map(|file| file.map(str::to_owned)))
}

#[test]
fn a_name_in_several_files_is_ambiguous() {
    let world = World::new();
    let first = world.import(
        &report("a")
            .test_in("x", Some("b.ts"), "p")
            .test_in("x", None, "p")
            .test_in("x", Some("B.ts"), "p"),
    );
    let second = world.import(&report("b").test_in("x", Some("c.ts"), "p"));
    let history = |selector: &TestSelector| {
        world
            .store
            .history(&world.project, selector, &period(Days::Seven))
            .unwrap()
    };
    let files = ambiguous(&[None, Some("B.ts"), Some("b.ts"), Some("c.ts")]);
    assert_eq!(history(&any_file("x")), TestLookup::Ambiguous(files.clone()));
    assert_eq!(
        world.store.verdict(&world.project, &any_file("x")).unwrap(),
        TestLookup::Ambiguous(files)
    );
    for file in [None, Some("b.ts"), Some("c.ts")] {
        let TestLookup::Found(history) = history(&in_file("x", file)) else {
            panic!("{file:?}")
        };
        assert_eq!(history.test.file_path.as_deref(), file);
        assert_eq!(history.occurrences.len(), 1);
    }
    assert_eq!(history(&in_file("x", Some("d.ts"))), TestLookup::Missing);
    assert_eq!(history(&any_file("X")), TestLookup::Missing);
    assert_eq!(history(&any_file("x\0")), TestLookup::Missing);

    let in_run = |run| {
        world
            .store
            .attempts(&world.project, run, &any_file("x"))
            .unwrap()
            .unwrap()
    };
    assert_eq!(
        in_run(first.run_id),
        TestLookup::Ambiguous(ambiguous(&[None, Some("B.ts"), Some("b.ts")]))
    );
    assert!(
        matches!(in_run(second.run_id), TestLookup::Found(_)),
        "the files of this run only"
    );
    let nowhere = assay_domain::id::RunId(uuid::Uuid::nil());
    assert_eq!(
        world
            .store
            .attempts(&world.project, nowhere, &any_file("x"))
            .unwrap(),
        None
    );
}

#[test]
fn a_name_in_very_many_files_names_the_first_and_counts_the_others() {
    let world = World::new();
    let many = |count| {
        (0..count).fold(report("a"), |report, file| {
            report.test_in("x", Some(&format!("{file:03}.ts")), "f")
        })
    };
    let run = world.import(&many(120)).run_id;
    // It is past the retention, so its file is not a candidate.
    world.import(&report("old").at(95 * DAY).test_in("x", Some("000.old.ts"), "p"));
    let (store, project, x) = (&world.store, &world.project, any_file("x"));
    let files: Vec<_> = (0..50).map(|file| Some(format!("{file:03}.ts"))).collect();
    let expected = CandidateFiles {
        named: files,
        others: 70,
    };
    assert_eq!(
        store.attempts(project, run, &x).unwrap().unwrap(),
        TestLookup::Ambiguous(expected.clone())
    );
    assert_eq!(
        store.history(project, &x, &period(Days::Seven)).unwrap(),
        TestLookup::Ambiguous(expected.clone())
    );
    assert_eq!(
        store.verdict(project, &x).unwrap(),
        TestLookup::Ambiguous(expected)
    );
}

#[test]
fn a_shared_name_selects_the_only_visible_file() {
    let world = World::on(Plan::Standard);
    world.import(&report("old").at(61 * DAY).test_in("x", Some("old.ts"), "p"));
    world.import(&report("older").at(62 * DAY).test_in("x", None, "p"));
    world.import(&report("new").test_in("x", Some("new.ts"), "p"));
    let (store, project, x) = (&world.store, &world.project, any_file("x"));
    let TestLookup::Found(verdict) = store.verdict(project, &x).unwrap() else {
        panic!("only one test of the name is visible")
    };
    assert_eq!(verdict.test.file_path.as_deref(), Some("new.ts"));
    assert_eq!(verdict.stored.unwrap().status, VerdictStatus::Healthy);
    let TestLookup::Found(history) = store.history(project, &x, &period(Days::Seven)).unwrap() else {
        panic!("only one test of the name is visible")
    };
    assert_eq!(
        (history.test.file_path.as_deref(), history.occurrences.len()),
        (Some("new.ts"), 1)
    );
}

/// A verdict takes several statements if the name is shared. An import in between must have no effect.
#[test]
fn an_ambiguous_name_is_answered_from_one_state() {
    listen();
    let world = World::new();
    let project = world.project.id;
    let both = || {
        report("a")
            .replacing()
            .test_in("x", Some("a.ts"), "p")
            .test_in("x", Some("b.ts"), "p")
    };
    let one = || report("a").content(1).replacing().test_in("x", Some("a.ts"), "p");
    let mut answers = Vec::new();
    for after in 0.. {
        world.import(&both());
        let (reader, importer) = (world.database.connect(), world.database.connect());
        let import = move || {
            importer.record(project, &one(), &CountingJudge, NOW).unwrap();
        };
        let (answer, was_interrupted) = interrupted(after, import, || {
            reader.verdict(&world.project, &any_file("x")).unwrap()
        });
        match answer {
            TestLookup::Found(verdict) => assert_eq!(verdict.test.file_path.as_deref(), Some("a.ts")),
            TestLookup::Ambiguous(files) => {
                assert_eq!(files, ambiguous(&[Some("a.ts"), Some("b.ts")]), "after {after}");
            }
            TestLookup::Missing => panic!("after {after}"),
        }
        if !was_interrupted {
            break;
        }
        answers.push(after);
    }
    assert!(answers.len() > 3, "{answers:?}");
}

#[test]
fn an_occurrence_has_the_suite_of_its_run() {
    let world = World::new();
    let mut recording = report("a").test("x", "p");
    recording.context.suite = Some("e2e".to_owned());
    world.import(&recording);
    let history = world.test_history("x", Days::Seven);
    assert_eq!(history.occurrences[0].suite.as_deref(), Some("e2e"));
}

#[test]
fn a_history_has_the_branch_to_which_the_engine_assigns_a_revision() {
    let world = World::new();
    let run = |key: &str, ago: i64, branch: Option<&str>, revision: Option<&str>, test: &str| {
        let mut recording = report(key).at(ago).test(test, "p");
        recording.context.branch = branch.map(str::to_owned);
        recording.context.commit_sha = revision.map(str::to_owned);
        world.import(&recording);
    };
    run("old", 15 * DAY, Some("topic"), Some("aa"), "x");
    // Other tests do not matter, and neither does a run in which everything was skipped.
    run("other", 9 * DAY, Some("topic"), Some("aa"), "y");
    run("first", 8 * DAY, Some("other"), Some("aa"), "x");
    run("merged", 7 * DAY, Some("main"), Some("bb"), "y");
    run("before", 6 * DAY, Some("topic"), Some("bb"), "x");
    run("unknown", 5 * DAY, None, None, "x");
    let mut skipped = report("skipped").at(4 * DAY).test("y", "s");
    skipped.context.commit_sha = Some("cc".to_owned());
    world.import(&skipped);
    run("last", 3 * DAY, Some("topic"), Some("cc"), "x");
    let history = world.test_history("x", Days::Thirty);
    assert_eq!(
        revision_origins(&history, DAY),
        [
            (Some("topic"), Some(3)),
            (None, Some(5)),
            (Some("main"), Some(7)),
            (Some("topic"), Some(9)),
            (None, None),
        ]
    );
}

#[test]
fn a_test_without_a_visible_result_is_missing() {
    let world = World::on(Plan::Standard);
    let old = world.import(&report("a").at(61 * DAY).test("x", "f"));
    world.import(&report("b").at(40 * DAY).test("y", "p"));
    for missing in [any_file("x"), in_file("x", Some("a.spec.ts"))] {
        let history = world
            .store
            .history(&world.project, &missing, &period(Days::Thirty))
            .unwrap();
        assert_eq!(history, TestLookup::Missing);
        assert_eq!(
            world.store.verdict(&world.project, &missing).unwrap(),
            TestLookup::Missing
        );
    }
    assert_eq!(world.store.run(&world.project, old.run_id).unwrap(), None);
    assert_eq!(
        world
            .store
            .attempts(&world.project, old.run_id, &any_file("x"))
            .unwrap(),
        None
    );
    let TestLookup::Found(history) = world
        .store
        .history(&world.project, &any_file("y"), &period(Days::Thirty))
        .unwrap()
    else {
        panic!("the test is visible, though without a result in the period")
    };
    assert_eq!(history.occurrences, []);
}

#[test]
fn names_are_in_the_requested_order() {
    let world = World::new();
    world.import(&report("a").test("x", "p").test("y", "p").test_in("z", None, "p"));
    let names = world.test_names(&[2, 0, 2, 1]).unwrap();
    let names: Vec<_> = names
        .iter()
        .map(|test| (test.name.as_str(), test.file_path.as_deref()))
        .collect();
    assert_eq!(
        names,
        [
            ("z", None),
            ("x", Some("a.spec.ts")),
            ("z", None),
            ("y", Some("a.spec.ts"))
        ]
    );
    assert!(world.test_names(&[3]).is_err());
    assert_eq!(world.test_names(&[]).unwrap(), []);
}

#[test]
fn a_test_in_short_has_what_its_history_and_its_attempts_have() {
    const MORE: usize = 1_200;
    let world = World::on(Plan::Standard);
    for (key, age, branch, attempts) in [
        ("a", 20 * DAY, "main", "fp"),
        ("b", 6 * DAY, "main", "p"),
        ("c", 5 * DAY, "topic", "ff"),
        ("d", 4 * DAY, "main", "s"),
        ("e", 3 * DAY, "topic", "pf p"),
        ("f", 2 * DAY, "main", "tp"),
    ] {
        world.import(&report(key).at(age).branch(branch).test("x", attempts));
    }
    let x = any_file("x");
    let summary = |days, failures| {
        let lookup = world
            .store
            .test_summary(&world.project, &x, &period(days), failures);
        let lookup = lookup.unwrap();
        let TestLookup::Found(summary) = lookup else {
            panic!("{lookup:?}")
        };
        summary
    };
    let check = |days: Days| {
        let summary = summary(days, 3);
        let lookup = world.store.history(&world.project, &x, &period(days)).unwrap();
        let TestLookup::Found(history) = lookup else {
            panic!("{lookup:?}")
        };
        assert_eq!(summary.test, history.test);
        let outcomes = summary
            .outcomes
            .iter()
            .map(|of| (of.branch.as_deref(), of.status, of.any_failed_attempt));
        let expected = history
            .occurrences
            .iter()
            .map(|of| (of.branch.as_deref(), of.status, of.any_failed_attempt));
        assert!(outcomes.eq(expected), "{summary:?}");
        let failed = history.occurrences.iter().filter(|of| of.any_failed_attempt);
        for (of, occurrence) in summary.last_failures.iter().zip(failed) {
            assert_eq!(
                (of.run.id, of.started_at, of.status),
                (occurrence.run_id, occurrence.started_at, occurrence.status)
            );
            let attempts = world
                .store
                .attempts(&world.project, of.run.id, &x)
                .unwrap()
                .unwrap();
            let TestLookup::Found(attempts) = attempts else {
                panic!("{attempts:?}")
            };
            let last = attempts
                .attempts
                .iter()
                .rfind(|attempt| attempt.status.is_failure());
            assert_eq!(of.errors, last.unwrap().errors);
        }
        let verdict = world.store.verdict(&world.project, &x).unwrap();
        let TestLookup::Found(verdict) = verdict else {
            panic!("{verdict:?}")
        };
        assert_eq!(summary.verdict, verdict.stored);
        let signatures = world
            .store
            .test_signatures(&world.project, &x, &period(days))
            .unwrap();
        assert_eq!(TestLookup::Found(summary.signatures.clone()), signatures);
        summary
    };
    let numbers = |of: &TestSummary| {
        of.last_failures
            .iter()
            .map(|of| of.run.run_number)
            .collect::<Vec<_>>()
    };
    let week = check(Days::Seven);
    assert_eq!(numbers(&week), [6, 5, 3]);
    assert_eq!(week.first_failure.as_ref().unwrap().0.run_number, 3);
    assert_eq!(numbers(&summary(Days::Seven, 1)), [6]);
    let month = check(Days::Thirty);
    assert_eq!(month.first_failure.as_ref().unwrap().0.run_number, 1);

    // The first failure is that of the period, although more runs than are listed passed since then.
    let now = format!("to_timestamp({})", NOW.unix_ms() / 1000);
    world.database.execute(&format!(
        "INSERT INTO run (project_id, number, id, key_hash, sharded, branch, status, started_at, shards_received, \
                 total, passed, failed, skipped, recovered) \
             SELECT id, 100 + n, gen_random_uuid(), sha256(convert_to('more ' || n, 'UTF8')), false, 'main', 'passed', \
                 {now} - n * interval '1 minute', 1, 1, 1, 0, 0, 0 FROM project, generate_series(1, {MORE}) AS n;
         {}",
        insert_results("SELECT project_id, started_at, 5, number, 0, NULL, 0, 0, 0, 0 FROM run WHERE number > 100")
    ));
    let long = summary(Days::Thirty, 3);
    assert_eq!(
        (long.outcomes.len(), &long.first_failure),
        (1_000, &month.first_failure)
    );
    assert_eq!(long.last_failures, month.last_failures);
    let absent = any_file("y");
    let none = world
        .store
        .test_summary(&world.project, &absent, &period(Days::Seven), 3);
    assert_eq!(none.unwrap(), TestLookup::Missing);
}

#[test]
fn many_tests_are_looked_up_as_each_would_be() {
    let world = World::on(Plan::Standard);
    world.import(&report("old").at(60 * DAY).test("former", "p"));
    let latest = report("a")
        .test("x", "p")
        .test_in("both", Some("a.ts"), "p")
        .test_in("both", Some("b.ts"), "p")
        .test_in("filed", Some("a.ts"), "p");
    world.import(&latest);
    let selectors = [
        any_file("x"),
        any_file("y"),
        any_file("both"),
        in_file("both", Some("b.ts")),
        in_file("both", Some("c.ts")),
        in_file("filed", Some("a.ts")),
        in_file("filed", None),
        any_file("former"),
        any_file("x\0"),
        any_file("x"),
    ];
    let ordinals = |tests: &[TestSelector]| {
        in_snapshot(&world.store, &world.project, |snapshot| {
            snapshot.test_ordinals(tests)
        })
        .unwrap()
    };
    let together = ordinals(&selectors);
    for (test, found) in selectors.iter().zip(&together) {
        assert_eq!(
            std::slice::from_ref(found),
            ordinals(std::slice::from_ref(test)),
            "{test:?}"
        );
        let history = world
            .store
            .history(&world.project, test, &period(Days::Ninety))
            .unwrap();
        match (found, history) {
            (TestLookup::Found(number), TestLookup::Found(history)) => {
                assert_eq!(world.test_names(&[*number]).unwrap(), [history.test]);
            }
            (TestLookup::Ambiguous(files), TestLookup::Ambiguous(of_history)) => {
                assert_eq!(*files, of_history);
            }
            (TestLookup::Missing, TestLookup::Missing) => {}
            other => panic!("{test:?}: {other:?}"),
        }
    }
    assert_eq!(ordinals(&[]), []);
}

#[test]
fn the_errors_of_several_tests_are_those_of_their_last_failed_attempts() {
    let world = World::new();
    let failing = |recording, name: &str, file, messages: &[&str]| {
        crate::signatures::with_failing_test(recording, name, file, messages)
    };
    let mut recording = failing(report("a"), "retried", Some("a.ts"), &["first", "second", ""]);
    recording = failing(recording, "same", Some("a.ts"), &["in a"]);
    recording = failing(recording, "same", Some("b.ts"), &["in b"]);
    recording = failing(recording, "same", None, &["nowhere"]);
    let run = world
        .import(&recording.test("passed", "p").test("several", "p f p"))
        .run_id;
    let other = failing(report("b").branch("topic"), "same", Some("a.ts"), &["later"]);
    let other = world.import(&other).run_id;
    let late = failing(report("late").at(95 * DAY), "same", Some("a.ts"), &["hidden"]);
    let late = world.import(&late).run_id;
    let test = |run, name: &str, file: Option<&str>| {
        let name = TestName {
            name: name.to_owned(),
            file_path: file.map(str::to_owned),
        };
        (run, name)
    };
    let nowhere = assay_domain::id::RunId(uuid::Uuid::nil());
    let asked = [
        (test(other, "same", Some("a.ts")), Some("later")),
        (test(run, "retried", Some("a.ts")), Some("second")),
        (test(run, "same", Some("b.ts")), Some("in b")),
        (test(run, "same", None), Some("nowhere")),
        (test(run, "same", Some("a.ts")), Some("in a")),
        (test(run, "passed", Some("a.spec.ts")), None),
        (test(run, "several", Some("a.spec.ts")), Some("it broke")),
        (test(run, "same", Some("c.ts")), None),
        (test(run, "none", None), None),
        (test(late, "same", Some("a.ts")), None),
        (test(nowhere, "same", Some("a.ts")), None),
        (test(run, "same", Some("b.ts")), Some("in b")),
    ];
    let tests: Vec<_> = asked.iter().map(|(test, _)| test.clone()).collect();
    let errors = world.store.last_errors(&world.project, &tests).unwrap();
    let messages: Vec<_> = errors
        .iter()
        .map(|errors| errors.first().and_then(|error| error.message.as_deref()))
        .collect();
    let expected: Vec<_> = asked.iter().map(|(_, message)| *message).collect();
    assert_eq!(messages, expected);
    let statements = crate::statements::recorded_statements(|| {
        world.store.last_errors(&world.project, &tests).unwrap();
    });
    assert_eq!(
        statements.iter().filter(|sql| sql.contains("attempt")).count(),
        1,
        "{statements:?}"
    );
}
