//! Imports of runs without shards, and reading them back.

use assay_domain::{
    attempt::{AttemptStatus, ErrorDetail, Location},
    id::ProjectId,
    recording::{Effect, ImportReceipt, RunContext},
    run::{CiProvider, Outcome, RunState, RunStatus},
    store::{RecordError, Recorder, Store},
    test::TestLookup,
};

use crate::fixture::*;

#[test]
fn a_run_reads_back_as_it_was_recorded() {
    let world = World::new();
    let mut recording = report("a")
        .test_in("no file", None, "p")
        .test_in("z", Some("z.ts"), "p")
        .test("broken", "ff");
    let context = &mut recording.context;
    context.commit_message = Some("Fix it".to_owned());
    context.author_name = Some("Ada".to_owned());
    context.pull_request_title = Some("A title".to_owned());
    context.ci_provider = Some(CiProvider::GithubActions);
    context.suite = Some("e2e".to_owned());
    context.run_url = Some("https://ci.test/7".to_owned());
    let last = recording.tests[2].attempts.last_mut().unwrap();
    last.attempt.browser = Some("webkit".to_owned());
    last.attempt.duration_ms = None;
    last.attempt.errors = vec![
        ErrorDetail {
            message: Some("it broke".to_owned()),
            stack: Some("at a.ts:1".to_owned()),
            snippet: Some("> 1 | x".to_owned()),
            location: Some(Location {
                file: "a.ts".to_owned(),
                line: Some(1),
                column: None,
            }),
        },
        ErrorDetail {
            stack: Some("second".to_owned()),
            ..ErrorDetail::default()
        },
    ];
    let errors = last.attempt.errors.clone();
    recording.report_errors = vec![ErrorDetail {
        message: Some("no file".to_owned()),
        ..ErrorDetail::default()
    }];
    let imported = world.import(&recording);
    let detail = world.detail(&imported);

    let run = &detail.run;
    assert_eq!(
        (run.id, run.run_number, run.status),
        (imported.run_id, 1, RunStatus::Failed)
    );
    assert_eq!(run.commit_message.as_deref(), Some("Fix it"));
    assert_eq!(
        (run.author_name.as_deref(), run.pull_request_title.as_deref()),
        (Some("Ada"), Some("A title"))
    );
    assert_eq!(
        (run.ci_provider, run.suite.as_deref()),
        (Some(CiProvider::GithubActions), Some("e2e"))
    );
    assert_eq!(run.run_url.as_deref(), Some("https://ci.test/7"));
    assert_eq!(
        (run.shards.as_ref(), &run.report_errors),
        (None, &recording.report_errors)
    );
    let order: Vec<_> = detail
        .tests
        .iter()
        .map(|test| (test.file_path.as_deref(), test.test_name.as_str()))
        .collect();
    assert_eq!(
        order,
        [
            (None, "no file"),
            (Some("a.spec.ts"), "broken"),
            (Some("z.ts"), "z")
        ]
    );
    let broken = &detail.tests[1];
    assert_eq!(
        (broken.status, broken.attempts, broken.duration_ms),
        (AttemptStatus::Failed, 2, None)
    );
    assert_eq!(broken.error_message.as_deref(), Some("it broke"));
    assert_eq!(broken.fingerprint, Some(fingerprint("it broke")));
    assert_eq!(
        (broken.browser_name.as_deref(), broken.shard),
        (Some("webkit"), None)
    );
    let clean = &detail.tests[0];
    assert_eq!(
        (clean.attempts, clean.duration_ms, &clean.error_message),
        (1, Some(100), &None)
    );

    let lookup = world
        .store
        .attempts(&world.project, imported.run_id, &any_file("broken"))
        .unwrap()
        .unwrap();
    let TestLookup::Found(attempts) = lookup else {
        panic!("{lookup:?}")
    };
    assert_eq!(
        (
            attempts.run.id,
            attempts.run.run_number,
            attempts.run.branch.as_deref()
        ),
        (imported.run_id, 1, Some("main"))
    );
    let attempts = &attempts.attempts;
    assert_eq!(
        attempts.iter().map(|attempt| attempt.retry).collect::<Vec<_>>(),
        [0, 1]
    );
    assert_eq!(
        (attempts[0].duration_ms, attempts[1].duration_ms),
        (Some(100), None)
    );
    assert_eq!(
        (
            attempts[0].browser_name.as_deref(),
            attempts[1].browser_name.as_deref()
        ),
        (None, Some("webkit"))
    );
    assert_eq!(attempts[1].errors, errors);
    let lookup = world
        .store
        .attempts(&world.project, imported.run_id, &any_file("no file"))
        .unwrap()
        .unwrap();
    let TestLookup::Found(attempts) = lookup else {
        panic!("{lookup:?}")
    };
    assert_eq!(
        (attempts.attempts.len(), attempts.attempts[0].status),
        (1, AttemptStatus::Passed)
    );
    assert_eq!(
        (
            attempts.attempts[0].duration_ms,
            attempts.attempts[0].errors.len()
        ),
        (Some(100), 0)
    );
}

#[test]
fn errors_that_are_stored_together_are_read_one_by_one() {
    let world = World::new();
    let failing = |recording, tests: std::ops::Range<usize>| {
        tests.fold(
            recording,
            |recording: assay_domain::recording::Recording, test| {
                let mut recording = recording.test(&format!("test {test}"), "ff");
                for (retry, attempt) in (0..).zip(&mut recording.tests.last_mut().unwrap().attempts) {
                    let message = format!("error {test} {retry} {}", "x".repeat(1_500));
                    attempt.attempt.errors[0].message = Some(message);
                }
                recording
            },
        )
    };
    let rows = || {
        let rows = "SELECT count(*) FROM attempt_texts";
        world.database.text(rows).unwrap().parse::<u32>().unwrap()
    };
    let imported = world.import(&failing(report("a"), 0..100));
    assert!((3..20).contains(&rows()), "{}", rows());
    // Moves the run to an earlier week.
    let later = failing(report("a").content(1).at(9 * DAY), 100..110);
    world.import(&later);
    for test in [0, 1, 57, 99, 100, 109] {
        let name = any_file(&format!("test {test}"));
        let lookup = world.store.attempts(&world.project, imported.run_id, &name);
        let TestLookup::Found(found) = lookup.unwrap().unwrap() else {
            panic!("{test}")
        };
        for (retry, attempt) in found.attempts.iter().enumerate() {
            let message = attempt.errors[0].message.as_deref().unwrap();
            assert!(
                message.starts_with(&format!("error {test} {retry} x")),
                "{message}"
            );
        }
    }
    world.import(&report("a").content(2).replacing().test("test 3", "p"));
    assert_eq!(rows(), 0);
}

#[test]
fn a_recovered_test_shows_no_error() {
    let world = World::new();
    let imported = world.import(&report("a").test("x", "fp"));
    let detail = world.detail(&imported);
    assert_eq!(imported.status, Some(Outcome::Passed));
    let test = &detail.tests[0];
    assert_eq!((test.status, test.attempts), (AttemptStatus::Passed, 2));
    assert_eq!((&test.error_message, &test.fingerprint), (&None, &None));
    assert_eq!(detail.counts.recovered, 1);
}

#[test]
fn a_skipped_attempt_keeps_its_reason() {
    let world = World::new();
    let mut recording = report("a").test("later", "s").test("without a reason", "s");
    recording.tests[0].attempts[0].attempt.skip_reason = Some("no network".to_owned());
    let imported = world.import(&recording);
    let attempts = |name| {
        let lookup = world
            .store
            .attempts(&world.project, imported.run_id, &any_file(name));
        let Some(TestLookup::Found(found)) = lookup.unwrap() else {
            panic!("no test {name}")
        };
        let attempts = found.attempts.into_iter();
        attempts
            .map(|attempt| (attempt.status, attempt.skip_reason))
            .collect::<Vec<_>>()
    };
    let skipped = AttemptStatus::Skipped;
    assert_eq!(attempts("later"), [(skipped, Some("no network".to_owned()))]);
    assert_eq!(attempts("without a reason"), [(skipped, None)]);
    assert_eq!(world.detail(&imported).tests[0].attempts, 1);
    // A result without a reason needs no row for its attempt.
    let rows = world.database.texts("SELECT count(*)::text FROM attempt");
    assert_eq!(rows, [Some("1".to_owned())]);
}

#[test]
fn the_same_content_again_changes_nothing() {
    let world = World::new();
    let first = world.import(&report("a").test("x", "f"));
    let rows = "SELECT run::text || result::text || attempt::text FROM run, result, attempt";
    let before = world.database.texts(rows);
    let again = world.import(&report("a").test("x", "f"));
    assert_eq!((first.effect, again.effect), (Effect::Added, Effect::Unchanged));
    assert_eq!(
        (again.run_id, again.shard_id, again.run_number),
        (first.run_id, first.shard_id, 1)
    );
    assert_eq!((again.status, again.counts), (first.status, first.counts));
    assert_eq!(world.database.texts(rows), before);
}

#[test]
fn a_report_without_branch_or_commit_keeps_those_of_its_run() {
    let world = World::new();
    let mut first = report("a").branch("main").test("x", "p");
    first.context.commit_sha = Some("aaa".to_owned());
    first.context.author_name = Some("Ada".to_owned());
    world.import(&first);
    let mut bare = report("a").content(1).test("x", "p");
    bare.context = RunContext::default();
    let again = world.import(&bare);
    assert_eq!(again.effect, Effect::Added);
    let facts = |imported: &ImportReceipt| {
        let run = world.detail(imported).run;
        (run.branch, run.commit_sha, run.author_name)
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(facts(&again), (some("main"), some("aaa"), some("Ada")));
    assert_eq!(again.context.branch, some("main"));
    // A value of the newer report wins.
    bare.context.branch = some("fixed");
    let again = world.import(&bare.clone().content(2));
    assert_eq!(facts(&again), (some("fixed"), some("aaa"), some("Ada")));
    // The author of one commit is not the author of another one.
    bare.context.commit_sha = some("bbb");
    let again = world.import(&bare.content(3).replacing());
    assert_eq!(facts(&again), (some("fixed"), some("bbb"), None));
}

#[test]
fn a_report_replaces_the_run_on_request() {
    let world = World::new();
    let first = world.import(
        &report("a")
            .test("gone", "ff")
            .test("stays", "fp")
            .test("better", "f"),
    );
    let second = report("a")
        .content(1)
        .replacing()
        .at(2 * HOUR)
        .branch("fixed")
        .test("stays", "p")
        .test("better", "p")
        .test("new", "s");
    let again = world.import(&second);
    assert_eq!(again.effect, Effect::Replaced);
    assert_eq!(
        (again.run_id, again.shard_id, again.run_number),
        (first.run_id, first.run_id, 1)
    );
    assert_eq!(again.status, Some(Outcome::Passed));
    let detail = world.detail(&again);
    let tests: Vec<_> = detail
        .tests
        .iter()
        .map(|test| (test.test_name.as_str(), test.status, test.attempts))
        .collect();
    use AttemptStatus::{Passed, Skipped};
    assert_eq!(
        tests,
        [("better", Passed, 1), ("new", Skipped, 1), ("stays", Passed, 1)]
    );
    assert_eq!(
        (detail.run.branch.as_deref(), detail.run.started_at),
        (Some("fixed"), second.started_at)
    );
    assert_eq!(
        world.database.text("SELECT count(*) FROM attempt").as_deref(),
        Some("0")
    );
    assert_eq!(
        world
            .store
            .attempts(&world.project, again.run_id, &any_file("gone"))
            .unwrap(),
        Some(TestLookup::Missing)
    );
}

#[test]
fn a_run_that_was_cut_short_has_no_outcome_unless_it_failed() {
    let world = World::new();
    let mut cut = report("a").test("x", "p").test("y", "i");
    cut.state = RunState::Interrupted;
    cut.finished_at = None;
    let imported = world.import(&cut);
    assert_eq!(imported.status, None);
    let detail = world.detail(&imported);
    assert_eq!(
        (detail.run.status, detail.run.duration_ms, detail.counts.skipped),
        (RunStatus::Incomplete, None, 1)
    );
    let mut failed = cut.clone().content(1).test("z", "f");
    failed.run_key = "b".to_owned();
    assert_eq!(world.import(&failed).status, Some(Outcome::Failed));
    let mut unloaded = report("c").test("x", "p");
    unloaded.report_errors = vec![ErrorDetail::default()];
    assert_eq!(
        world.import(&unloaded).status,
        Some(Outcome::Failed),
        "an error of the report fails the run"
    );
    assert_eq!(
        world.import(&report("d")).status,
        Some(Outcome::Passed),
        "nothing failed"
    );
}

#[test]
fn runs_are_numbered_without_gaps() {
    let world = World::new();
    assert_eq!(world.import(&report("a").test("x", "p")).run_number, 1);
    world.import(&report("a").test("x", "p"));
    let nowhere = ProjectId(uuid::Uuid::nil());
    let refused = world
        .store
        .record(nowhere, &report("b"), &CountingJudge, NOW)
        .unwrap_err();
    assert!(matches!(refused, RecordError::NoProject(id) if id == nowhere));
    assert_eq!(world.import(&report("c").test("x", "p")).run_number, 2);
}

#[test]
fn a_run_has_shards_or_none() {
    let world = World::new();
    world.import(&report("a").test("x", "p"));
    let refused = world.try_import(&report("a").shard(1, 2)).unwrap_err();
    assert!(
        matches!(
            refused,
            RecordError::ShardingDiffers {
                stored_sharded: false,
                ..
            }
        ),
        "{refused}"
    );
    world.import(&report("b").shard(1, 2).test("x", "p"));
    let refused = world.try_import(&report("b").content(9)).unwrap_err();
    assert!(
        matches!(
            refused,
            RecordError::ShardingDiffers {
                stored_sharded: true,
                ..
            }
        ),
        "{refused}"
    );
}

#[test]
fn any_text_can_be_stored() {
    let world = World::new();
    let long = "ü".repeat(9_000);
    let mut recording = report(&"k".repeat(1_000))
        .branch(&long)
        .test_in(&long, Some(&long), "f")
        .test("nul\0", "f");
    recording.context.commit_message = Some("nul \0 and 'quotes' \\ %".to_owned());
    recording.tests[1].attempts[0].attempt.errors = vec![ErrorDetail {
        message: Some("nul \0".to_owned()),
        stack: Some("nul \0".to_owned()),
        snippet: None,
        location: Some(Location {
            file: "nul\0".to_owned(),
            line: None,
            column: None,
        }),
    }];
    let imported = world.import(&recording);
    let detail = world.detail(&imported);
    assert_eq!(detail.run.branch.as_deref(), Some(long.as_str()));
    assert!(detail.tests.iter().any(|test| test.test_name == long));
    assert!(detail.tests.iter().any(|test| test.test_name == "nul\u{fffd}"));
    let lookup = world
        .store
        .attempts(&world.project, imported.run_id, &in_file(&long, Some(&long)))
        .unwrap();
    assert!(matches!(lookup, Some(TestLookup::Found(_))));
    assert_eq!(
        world
            .store
            .attempts(&world.project, imported.run_id, &any_file("nul\0"))
            .unwrap(),
        Some(TestLookup::Missing)
    );
}
