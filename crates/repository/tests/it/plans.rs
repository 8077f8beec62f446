//! The plan of every statement of the read API, and its place on a distributed database. Each statement is explained as
//! it was sent, over a large data set: with a plan for its values, and with a plan for any values. No large table is scanned as a whole, and no partition
//! outside of the period is read. The rows that are read are bounded by the rows in the answer.

use std::{collections::HashSet, sync::Arc};

use crate::{
    distribution::assert_of_one_project,
    explain::{Plans, Statement, explained},
    fixture::*,
    statements::{elements, listen, recorded_statements},
};
use assay_domain::{
    history::HistoryRest,
    page::PerPage,
    period::Days,
    recording::Recording,
    revision::Revisions,
    run::RunQuery,
    signature::{SignatureQuery, SignatureSort},
    store::{Recorder, Store, in_snapshot},
};

/// Runs and tests of each of two projects, with two runs a day over 20 weeks.
const RUNS: usize = 280;
const TESTS: usize = 200;

/// Other projects whose results are in the same partitions, so that a partition has more than a few pages.
const OTHER_PROJECTS: usize = 40;

/// Tests of each with a verdict but without results.
const MORE_TESTS: u32 = 3_000;

/// Runs of each that are visible but older than all periods, without results.
const BARE_RUNS: usize = 20_000;

/// Visible branches of the project in addition to its stable one. The other project has many times as many.
const BRANCHES: u32 = 400;

/// The number of runs with results. Occurrences of a signature may be in all of them.
const RUN_ROWS: f64 = 2.0 * RUNS as f64;
/// The visible occurrences of the only signature. Its figures need one read of each.
const OCCURRENCES: f64 = 181.0 * (TESTS / 10) as f64;

/// Fills a project and another one in the same tables.
fn world() -> World {
    let world = World::new();
    // The first import brings the names of tests, the signature and the verdicts.
    let mut first = report("first").at(HOUR);
    for test in 0..TESTS {
        first = first.test(&format!("test {test}"), if test % 10 == 0 { "fp" } else { "p" });
    }
    world.import(&first);
    let project = world.project.id;
    let neighbour = uuid::Uuid::now_v7();
    let now = format!("to_timestamp({})", NOW.unix_ms() / 1000);
    let results = insert_results(&format!(
        "SELECT project, start, 100, number, test, NULL, 0, CASE WHEN test % 10 = 0 THEN 2 ELSE 0 END, 0, 0 \
             FROM old, generate_series(0, {TESTS} - 1) AS test \
         UNION ALL SELECT md5(n::text)::uuid, start, 100, number, 0, NULL, 0, 0, 0, 0 \
             FROM old, generate_series(1, {OTHER_PROJECTS}) AS n WHERE project = '{project}'"
    ));
    // The tests without results have the verdict of the second test.
    let verdicts = [
        "status",
        "reason",
        "in_window",
        "last_run",
        "last_status",
        "last_offset_ms",
        "newest",
        "time_lost_ms",
        "flake_score",
        "flake_rate",
        "broken_probability",
        "impact",
        "body",
    ];
    let verdicts =
        verdicts.map(|column| format!("{column}[1:own] || array_fill({column}[2], ARRAY[128 - own])"));
    let verdicts = verdicts.join(", ");
    world.database.execute(&format!(
        "SELECT assay_create_partition({now} - week * interval '7 days', {now}) FROM generate_series(0, 20) AS week;
         INSERT INTO project SELECT '{neighbour}', organization_id, 'neighbour', stable_branch, NULL, false, created_at, \
             runs, tests, signatures, browsers, evaluated_at FROM project;
         INSERT INTO project_entry SELECT id, organization_id, name, stable_branch, created_at FROM project ON CONFLICT DO NOTHING;
         INSERT INTO test SELECT '{neighbour}', ordinal, name, file_path, name_hash, file_hash FROM test;
         INSERT INTO test SELECT project_id, {TESTS} - 1 + n, name || ' ' || n, file_path, substring(sha256(convert_to(n::text, 'UTF8')) FOR 16), file_hash \
             FROM test, generate_series(1, {MORE_TESTS}) AS n WHERE ordinal = 1;
         INSERT INTO signature SELECT '{neighbour}', ordinal, fingerprint, version, title, category FROM signature;
         CREATE TEMP TABLE known AS TABLE verdict_block;
         DELETE FROM verdict_block;
         INSERT INTO verdict_block SELECT owner, n, {verdicts}, bodies FROM known JOIN (VALUES ('{project}'::uuid), ('{neighbour}')) AS p (owner) ON known.block = 0, \
             generate_series(0, ({TESTS} + {MORE_TESTS}) / 128) AS n, LATERAL (SELECT CASE n WHEN 0 THEN 128 ELSE 0 END AS own) AS first;
         INSERT INTO verdict_block SELECT md5(n::text)::uuid, 0, {verdicts}, bodies FROM known, generate_series(1, 10 * {OTHER_PROJECTS}) AS n, \
             (VALUES (0)) AS first (own) WHERE known.block = 0;
         INSERT INTO verdict_evidence SELECT owner, n, failing_on, run_numbers FROM (SELECT * FROM verdict_evidence LIMIT 1) AS known, \
             (VALUES ('{project}'::uuid), ('{neighbour}')) AS p (owner), generate_series(0, {MORE_TESTS}) AS n ON CONFLICT DO NOTHING;
         CREATE TEMP TABLE old AS SELECT p AS project, 1000 + n AS number, {now} - n * interval '12 hours' AS start, \
             ('00000000-0000-0000-0000-' || lpad(to_hex(n), 12, '0'))::uuid AS id \
             FROM generate_series(1, {RUNS}) AS n, (VALUES ('{project}'::uuid), ('{neighbour}')) AS p (p);
         INSERT INTO run SELECT project, number, id, sha256(convert_to(number::text, 'UTF8')), false, 'branch ' || number % 5, \
             'c0ffee', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'passed', start, start, 1, NULL, {TESTS}, {TESTS}, 0, 0, {TESTS} / 10 FROM old;
         INSERT INTO run SELECT project_id, 10000 + n, gen_random_uuid(), sha256(convert_to('bare ' || n, 'UTF8')), sharded, branch, \
             commit_sha, NULL, NULL, NULL, NULL, NULL, NULL, NULL, status, {now} - interval '60 days' - n * interval '1 minute', NULL, \
             1, NULL, 0, 0, 0, 0, 0 FROM run, generate_series(1, {BARE_RUNS}) AS n WHERE number = 1001;
         INSERT INTO run_pack SELECT run.project_id, run.started_at, number, pack FROM run, run_pack WHERE run_pack.project_id = '{project}' \
             AND run_pack.run_number = 1 AND number > 10000;
         INSERT INTO daily_count SELECT project_id, date_trunc('day', started_at, 'UTC'), coalesce(status, ''), count(*) FROM run GROUP BY 1, 2, 3 \
             ON CONFLICT (project_id, day, status) DO UPDATE SET runs = excluded.runs;
         INSERT INTO branch SELECT project_id, branch, max(started_at) FROM run WHERE branch IS NOT NULL GROUP BY project_id, branch \
             ON CONFLICT (project_id, name) DO UPDATE SET newest = excluded.newest;
         INSERT INTO branch SELECT '{project}', 'branch ' || n, {now} FROM generate_series(5, {BRANCHES} - 1) AS n;
         INSERT INTO branch SELECT '{neighbour}', 'branch ' || n, {now} FROM generate_series(5, 50 * {BRANCHES}) AS n;
         INSERT INTO part (project_id, run_number, number, id, shard_id, content, state, status, started_at, finished_at, report_errors) \
             SELECT project, number, 0, id, id, '\\x00', 'completed', 'passed', start, start, '[]' FROM old;
         INSERT INTO upload SELECT project, start, id, id, id, 1, number, 1, 'added', NULL, id FROM old;
         INSERT INTO fix SELECT project, test, md5(test || ':' || n)::uuid, jsonb_build_object('storedAt', '2026-11-01T00:00:00.000Z', 'revision', 'c0ffee1') \
             FROM (SELECT DISTINCT project FROM old) AS of, generate_series(0, {TESTS} - 1) AS test, generate_series(1, 10) AS n;
         INSERT INTO run_pack SELECT old.project, old.start, old.number, pack FROM old, run_pack WHERE run_pack.project_id = '{project}' \
             AND run_pack.run_number = 1;
         {results}
         INSERT INTO attempt SELECT project, start, start, 100, number, test, 0, CASE WHEN retry = 0 THEN 0 END, retry, retry, 0, 1 - retry, \
             false, CASE WHEN retry = 0 THEN 'it broke' END, 0, test / 10 + 1 \
             FROM old, generate_series(0, {TESTS} - 1, 10) AS test, generate_series(0, 1) AS retry;
         INSERT INTO attempt_texts SELECT project, start, number, 0, n, array_fill('[]'::jsonb, ARRAY[{TESTS} / 10]) \
             FROM old, generate_series(0, 29) AS n",
    ));
    world
}

/// The largest permitted cost of a read.
struct Bound {
    /// Statements.
    statements: usize,
    /// Partitions of results or attempts that a statement reads.
    partitions: usize,
    /// Most rows that a statement reads, including pairs compared without a match: per returned row, and in addition.
    per_row: f64,
    beyond: f64,
}

#[test]
fn every_read_goes_through_indexes_and_reads_little_more_than_it_answers() {
    listen();
    let world = world();
    world.database.execute("VACUUM ANALYZE");
    check_reads(&world, 0.0);
}

/// Autovacuum runs some minutes after a large import. Until then, naming some tests may read all tests of a project.
#[test]
fn reads_are_bounded_before_the_first_analyze() {
    listen();
    let world = world();
    let analysed = "SELECT count(*) FROM pg_stats WHERE schemaname = 'public'";
    assert_eq!(world.database.text(analysed).as_deref(), Some("0"));
    check_reads(&world, f64::from(MORE_TESTS) + TESTS as f64);
}

/// `slack` is the number of additional rows that a statement may read.
fn check_reads(world: &World, slack: f64) {
    let store = world.database.connect();
    let project = &world.project;
    let test = any_file("test 20");
    let month = period(Days::Thirty);
    let runs = |branch: Option<&str>| RunQuery {
        branch: branch.map(str::to_owned),
        ..run_query()
    };
    let signatures = |sort, search: Option<&str>| SignatureQuery {
        period: month,
        branch: None,
        category: None,
        search: search.map(str::to_owned),
        sort,
        page: 1,
        per_page: PerPage::Ten,
    };
    let run = store.runs(project, &run_query()).unwrap().runs[3].id;
    let history = world.history(14);
    let newest = history.runs.last().unwrap().run.clone();
    let keys: Vec<_> = (0..10)
        .map(|test| result_key(test, newest.number, newest.started_at))
        .collect();
    // A period of 30 days covers five or six weeks, the 90 visible days 13 or 14.
    let bound = |statements, partitions, per_row, beyond| Bound {
        statements,
        partitions,
        per_row,
        beyond: beyond + slack,
    };
    // The answer has all of them in one row.
    check("branches", world, &bound(1, 0, 1.0, f64::from(BRANCHES)), || {
        drop(store.branches(project).unwrap())
    });
    check("runs", world, &bound(1, 0, 3.0, 130.0), || {
        drop(store.runs(project, &runs(None)).unwrap())
    });
    // There are far more runs than days: one row for each day and outcome, and the runs of the first and the last day.
    let quarter = RunQuery {
        period: period(Days::Ninety),
        ..run_query()
    };
    check("runs of 90 days", world, &bound(1, 0, 3.0, 130.0), || {
        drop(store.runs(project, &quarter).unwrap());
    });
    check("runs of a branch", world, &bound(1, 0, 3.0, 130.0), || {
        drop(store.runs(project, &runs(Some("branch 2"))).unwrap());
    });
    check("run", world, &bound(4, 1, 3.0, 3.0), || {
        drop(store.run(project, run).unwrap())
    });
    check("decisions", world, &bound(2, 0, 3.0, 0.0), || {
        drop(store.decisions(project, run).unwrap())
    });
    check("attempts", world, &bound(3, 1, 3.0, 60.0), || {
        drop(store.attempts(project, run, &test).unwrap())
    });
    check("history", world, &bound(4, 6, 3.0, 130.0), || {
        drop(store.history(project, &test, &month).unwrap())
    });
    // Each part of a long history reads its own runs, and no revisions.
    let rest = HistoryRest {
        test: 20,
        stored_as: vec![20],
        period: month,
        revisions: Arc::new(Revisions::of((NOW, NOW), "main", &[])),
        after: (NOW, i32::MAX),
        runs: HashSet::new(),
    };
    check("a part of a history", world, &bound(2, 6, 3.0, 130.0), || {
        drop(store.history_part(project, rest.clone()).unwrap())
    });
    check("a test in short", world, &bound(8, 6, 3.0, 200.0), || {
        drop(store.test_summary(project, &test, &month, 3).unwrap())
    });
    // A sequential scan of the two projects reads both.
    check("numbers of tests", world, &bound(1, 0, 4.0, 0.0), || {
        let numbers = in_snapshot(&store, project, |snapshot| {
            snapshot.test_ordinals(std::slice::from_ref(&test))
        });
        drop(numbers.unwrap());
    });
    check("timings", world, &bound(4, 14, 3.0, 130.0), || {
        drop(store.timings(project, NOW.plus_ms(1)).unwrap())
    });
    check("verdict", world, &bound(2, 0, 6.0, 0.0), || {
        drop(store.verdict(project, &test).unwrap())
    });
    check("fixes", world, &bound(5, 14, 6.0, 90.0), || {
        drop(store.fixes(project, &test, &period(Days::Thirty)).unwrap())
    });
    check(
        "signature",
        world,
        &bound(7, 14, 1.0, OCCURRENCES + 2.0 * RUN_ROWS),
        || {
            drop(
                store
                    .signature(project, &fingerprint("it broke"), &month)
                    .unwrap(),
            );
        },
    );
    for (sort, search) in [
        (SignatureSort::Occurrences, None),
        (SignatureSort::FirstSeen, None),
        (SignatureSort::Tests, Some("broke")),
    ] {
        // A store that has the page does not read it again.
        check("signatures", world, &bound(11, 14, 1.0, OCCURRENCES), || {
            let fresh = world.database.connect();
            drop(fresh.signatures(project, &signatures(sort, search)).unwrap());
        });
    }
    check("observations", world, &bound(2, 0, 3.0, 130.0), || {
        drop(observations(&store, project, (NOW.plus_days(-14), NOW)).unwrap());
    });
    // One row for each run of 11 weeks.
    check("runs one by one", world, &bound(2, 0, 3.0, 130.0), || {
        let read = in_snapshot(&store, project, |snapshot| {
            let mut runs = 0;
            snapshot.each_run((NOW.plus_days(-56), NOW), &mut |_, _| runs += 1)?;
            Ok(runs)
        });
        assert!(read.unwrap() > 100);
    });
    // The first one reads the joined tests, unless the snapshot has read the runs.
    check("final results", world, &bound(2, 1, 1.0, 0.0), || {
        drop(world.final_results(&keys).unwrap())
    });
    check("names", world, &bound(1, 0, 1.0, 0.0), || {
        drop(world.test_names(&[3, 4]).unwrap())
    });
    // The project's row says whether the cached names are current. A sequential scan of the two projects reads both.
    check("names of all", world, &bound(1, 0, 1.0, 2.0), || {
        drop(in_snapshot(&store, project, |snapshot| snapshot.all_test_names()).unwrap());
    });
}

#[test]
fn an_import_reads_once_the_newest_results_of_tests_that_left_the_window() {
    listen();
    let world = world();
    let later = NOW.plus_days(60);
    let statements = recorded_statements(|| {
        let (id, late) = (world.project.id, report("late").test("test 1", "p"));
        world.store.record(id, &late, &CountingJudge, later).unwrap();
    });
    let result_reads: Vec<Statement> = statements
        .iter()
        .filter(|statement| statement.contains(" FROM result_block "))
        .filter_map(|statement| Statement::of(statement))
        .collect();
    let [result_read] = result_reads.as_slice() else {
        panic!("{result_reads:#?}")
    };
    for plans in Plans::ALL {
        let work = explained(&world, result_read, plans);
        let details = || format!("{plans:?}: {work:?}\n{result_read:?}");
        // One block of each run has all results. Runs with the same tests are one row.
        assert!(
            work.answered >= 1.0 && work.read <= RUNS as f64 + 2.0,
            "{}",
            details()
        );
        assert!(work.whole.is_empty(), "{}", details());
    }
}

#[test]
fn no_statement_compares_each_row_with_a_list_as_long_as_a_report() {
    listen();
    let world = World::new();
    let tests = |recording, outcome| {
        (0..300).fold(recording, |recording: Recording, test| {
            let mut recording = recording.test(&format!("test {test}"), outcome);
            let last = recording.tests.last_mut().unwrap();
            last.attempts = vec![attempt(
                status(outcome.chars().next().unwrap()),
                &format!("error {test}"),
            )]
            .into();
            recording
        })
    };
    let statements = recorded_statements(|| {
        world.import(&tests(report("a").shard(1, 2), "p"));
        world.import(&tests(report("a").shard(2, 2), "f"));
        world.import(&tests(report("a").shard(2, 2).content(7), "p"));
        world.import(&report("a").shard(2, 2).content(8).replacing().test("test 1", "p"));
        let (id, late) = (world.project.id, tests(report("late").at(30 * DAY), "f"));
        world
            .store
            .record(id, &late, &CountingJudge, NOW.plus_days(60))
            .unwrap();
    });
    let mut lists = 0;
    for statement in &statements {
        let Some((sql, binds)) = statement.split_once(" -- binds: ") else {
            continue;
        };
        for (index, bind) in elements(binds).into_iter().enumerate() {
            let place = format!("${}", index + 1);
            let compared = ["ANY(", "ALL("]
                .iter()
                .any(|list| sql.contains(&format!("{list}{place})")));
            lists += usize::from(compared);
            assert!(!compared || elements(&bind).len() < 20, "{statement}");
        }
    }
    assert!(statements.iter().any(|statement| statement.contains("unnest(")) && lists > 0);
}

/// A run's number and its start depend on each other. Postgres knows it by statistics of both columns.
#[test]
fn the_planner_expects_about_as_many_rows_of_a_run_as_there_are() {
    listen();
    let world = World::new();
    let runs: Vec<_> = (0..12)
        .map(|run| {
            let whole = report(&format!("run {run}")).at((run + 1) * HOUR);
            let tests = 0..3_000;
            let outcome = |test: i32| if test % 100 == 0 { "fp" } else { "p" };
            let whole = tests.fold(whole, |whole, test| {
                whole.test(&format!("test {test}"), outcome(test))
            });
            world.import(&whole)
        })
        .collect();
    world.database.execute("ANALYZE");
    let store = world.database.connect();
    let statements = recorded_statements(|| {
        drop(store.run(&world.project, runs[4].run_id).unwrap());
        world.rebuild(world.project.id);
    });
    let statements = statements.iter().filter(|statement| {
        statement.contains("\"run_number\" = $2") && statement.contains("\"started_at\" = $3")
    });
    let (mut blocks, mut attempts) = (0, 0);
    for statement in statements.filter_map(|statement| Statement::of(statement)) {
        for plans in Plans::ALL {
            let work = explained(&world, &statement, plans);
            for (table, expected, found) in &work.scans {
                blocks += usize::from(table.starts_with("result_block_") && *found == 6.0);
                attempts += usize::from(table.starts_with("attempt_") && *found == 60.0);
                assert!(
                    found / 3.0 <= *expected && *expected <= found * 3.0,
                    "{plans:?}: {expected} rows of {table} expected, {found} found\n{statement:?}\n{:#}",
                    work.plan
                );
            }
        }
    }
    assert!(blocks >= 2 && attempts >= 2, "{blocks} {attempts}");
}

/// Tables of a few pages. A sequential scan reads them, because an index would not be faster.
const SMALL: [&str; 5] = [
    "project",
    "organization",
    "signature",
    "signature_alias",
    "browser",
];

fn check(what: &str, world: &World, bound: &Bound, ask: impl Fn()) {
    // The first request may fill caches.
    ask();
    let recorded = recorded_statements(&ask);
    assert_of_one_project(&recorded, world);
    let statements: Vec<Statement> = recorded
        .iter()
        .filter_map(|statement| Statement::of(statement))
        .collect();
    assert!(
        !statements.is_empty() && statements.len() <= bound.statements,
        "{what} took {} statements: {statements:#?}",
        statements.len()
    );
    for statement in statements {
        for plans in Plans::ALL {
            let work = explained(world, &statement, plans);
            let details = || format!("{what}, {plans:?}: {work:?}\n{statement:?}\n{:#}", work.plan);
            let whole: Vec<_> = work
                .whole
                .iter()
                .filter(|table| !SMALL.contains(&table.as_str()))
                .collect();
            assert!(whole.is_empty(), "{}", details());
            assert!(
                work.partitions
                    .values()
                    .all(|touched| *touched <= bound.partitions),
                "{}",
                details()
            );
            assert!(
                work.read.max(work.compared) <= bound.per_row * work.answered + bound.beyond,
                "{}",
                details()
            );
        }
    }
}

/// Most pairs of rows that a statement may compare, or rows that it may read, for each test of a project.
const PER_TEST: f64 = 20.0;

/// Autovacuum counts a table again after a tenth of it changed. Until then Postgres expects one test and one signature
/// in a project that is newer than its statistics, unless its import counts them.
#[test]
fn the_first_large_run_of_a_project_is_read_without_comparing_each_row_with_all_others() {
    listen();
    let world = World::new();
    let failing = |run_key: &str, tests: usize| {
        (0..tests).fold(report(run_key).at(HOUR), |recording, test| {
            let mut recording = recording.test(&format!("test {test}"), "f");
            let last = recording.tests.last_mut().unwrap();
            last.attempts = vec![attempt(status('f'), &format!("error {test}"))].into();
            recording
        })
    };
    world.import(&failing("known", 2_000));
    let tables = "test, signature, verdict_block, verdict_evidence, result_block, attempt, run, part";
    world.database.execute(&format!("ANALYZE {tables}"));
    let newcomer = world.another_project("newcomer");
    let tests = 1_500;
    let (id, recording) = (newcomer.id, failing("new", tests));
    let run = world
        .store
        .record(id, &recording, &CountingJudge, NOW)
        .unwrap()
        .run_id;
    let store = world.database.connect();
    let mut compared = 0;
    let mut check = |what: &str, ask: &dyn Fn()| {
        for statement in recorded_statements(ask)
            .iter()
            .filter_map(|text| Statement::of(text))
        {
            let work = explained(&world, &statement, Plans::Custom);
            compared += 1;
            assert!(
                work.compared.max(work.read) <= PER_TEST * tests as f64,
                "{what}: {} compared, {} read\n{statement:?}\n{:#}",
                work.compared,
                work.read,
                work.plan
            );
        }
    };
    check("run", &|| drop(store.run(&newcomer, run).unwrap()));
    check("page of a run", &|| {
        let some = assay_domain::run::SomeTests::Page {
            offset: 10,
            limit: 50,
        };
        drop(store.run_with(&newcomer, run, &some).unwrap());
    });
    for sort in [SignatureSort::Occurrences, SignatureSort::FirstSeen] {
        let query = SignatureQuery {
            period: period(Days::Thirty),
            branch: None,
            category: None,
            search: None,
            sort,
            page: 1,
            per_page: PerPage::Ten,
        };
        check("signatures", &|| {
            drop(store.signatures(&newcomer, &query).unwrap())
        });
    }
    check("facts of a failed run", &|| {
        let all: Vec<u32> = (0..tests as u32).collect();
        let read = in_snapshot(&store, &newcomer, |snapshot| {
            let failed = snapshot.failed_run(run)?.unwrap();
            snapshot.final_statuses(&failed, &all)?;
            snapshot.test_names(&all)?;
            snapshot.window_errors(failed.run_number, &all, NOW.plus_days(-14), NOW)?;
            snapshot.stored_facts(&all)
        });
        drop(read.unwrap());
    });
    check("names of all", &|| {
        drop(in_snapshot(&store, &newcomer, |snapshot| snapshot.all_test_names()).unwrap());
    });
    assert!(compared >= 10, "{compared}");
}
