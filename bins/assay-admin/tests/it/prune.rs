//! `assay-admin prune`.

use crate::junit;
use assay_testkit::{World, assert_contains, insert_results, stderr_text, text};

#[test]
fn runs_past_the_retention_are_counted_then_deleted() {
    let world = World::without_key();
    let report = world.file(
        "r.xml",
        &junit::report("2020-01-01T00:00:00Z", &[("adds", true), ("sums", false)]),
    );
    let imported = world.import(&["--run-key", "old", &report]);
    assert!(
        imported["warnings"][0].as_str().unwrap().contains("retention"),
        "{imported}"
    );
    let fresh = world.file("f.xml", &junit::report("2020-01-01T00:00:00Z", &[("adds", true)]));
    let now = world
        .database
        .text("SELECT to_char(now() at time zone 'utc', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')")
        .unwrap();
    world.import(&["--run-key", "new", "--started-at", &now, &fresh]);

    let counted = world.cli.json(&["prune", "--dry-run"]);
    assert_eq!(
        (&counted["runs"], &counted["results"], &counted["dryRun"]),
        (&1.into(), &2.into(), &true.into())
    );
    // Without a terminal, the command does not ask.
    let deleted = world.cli.json(&["prune"]);
    assert_eq!((&deleted["runs"], &deleted["dryRun"]), (&1.into(), &false.into()));
    assert_eq!(world.cli.json(&["prune"])["runs"], 0);
}

#[test]
fn pruning_refuses_a_clock_that_differs_from_the_databases() {
    let world = World::without_key();
    let report = world.file("r.xml", &junit::report("2020-01-01T00:00:00Z", &[("adds", true)]));
    world.import(&["--run-key", "old", &report]);
    let name = world.database.text("SELECT current_database()").unwrap();
    // New connections see a changed clock.
    world.database.execute(&format!(
        "ALTER DATABASE {name} SET search_path = public, pg_catalog"
    ));
    for (offset, difference) in [
        ("- interval '100 days'", "100 d ahead of"),
        ("+ interval '3 hours'", "3 h behind"),
    ] {
        world.database.execute(&format!(
            "CREATE OR REPLACE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql \
                 AS $$ SELECT pg_catalog.clock_timestamp() {offset} $$"
        ));
        for arguments in [
            &["prune"][..],
            &["prune", "--yes", "--all-of-it"],
            &["prune", "--dry-run"],
        ] {
            let refused = world.cli.run(arguments);
            assert_eq!(refused.status.code(), Some(1), "{arguments:?}");
            assert_contains(&stderr_text(&refused), difference);
        }
        assert_eq!(world.count("SELECT count(*) FROM run"), 1);
    }
}

#[test]
fn pruning_refuses_to_delete_everything_that_is_stored() {
    let world = World::without_key();
    let report = world.file("r.xml", &junit::report("2020-01-01T00:00:00Z", &[("adds", true)]));
    world.import(&["--run-key", "old", &report]);
    for arguments in [&["prune"][..], &["prune", "--yes"]] {
        let refused = world.cli.run(arguments);
        assert_eq!(refused.status.code(), Some(1), "{arguments:?}");
        assert_contains(&stderr_text(&refused), "--all-of-it");
    }
    assert_eq!(world.cli.json(&["prune", "--dry-run"])["runs"], 1);
    assert_eq!(world.count("SELECT count(*) FROM run"), 1);
    assert_eq!(world.cli.json(&["prune", "--all-of-it"])["runs"], 1);
    assert_eq!(world.count("SELECT count(*) FROM run"), 0);
    assert_eq!(
        world.cli.json(&["prune"])["runs"],
        0,
        "an empty database is no refusal"
    );
}

#[test]
fn killed_pruning_resumes_while_imports_continue() {
    let world = World::without_key();
    // Two organizations with a retention of 60 and 90 days; ten runs a day from 40 to 150 days ago.
    let other = world.cli.json(&["org", "create", "Bakery", "--plan", "standard"]);
    let bread = world
        .cli
        .json(&["project", "create", "--org", &text(&other["id"]), "bread"]);
    for (project, start) in [(&world.project, 0), (&text(&bread["id"]), 1)] {
        world.database.execute(&format!(
            "CREATE TEMP TABLE old AS SELECT '{project}'::uuid AS project, n AS number, \
                 ('00000000-0000-000{start}-0000-' || lpad(to_hex(n), 12, '0'))::uuid AS id, \
                 date_trunc('milliseconds', now()) - interval '40 days' - n * interval '144 minutes' AS start FROM generate_series(1, 1100) AS n; \
             SELECT assay_create_partition(start, now()) FROM old; \
             INSERT INTO test SELECT '{project}', n, 'old ' || n, NULL, decode(md5(n::text), 'hex'), '' FROM generate_series(0, 19) AS n; \
             INSERT INTO run SELECT project, number, id, sha256(convert_to(number::text, 'UTF8')), false, NULL, NULL, NULL, NULL, NULL, NULL, \
                 NULL, NULL, NULL, 'passed', start, start, 1, NULL, 20, 20, 0, 0, 0 FROM old; \
             INSERT INTO part (project_id, run_number, number, id, shard_id, content, state, status, started_at, finished_at, report_errors) \
             SELECT project, number, 0, id, id, '\\x00', 'completed', 'passed', start, start, '[]' FROM old; \
             INSERT INTO run_pack SELECT project, start, number, '\\x00' FROM old; \
             {} \
             UPDATE project SET runs = 1100, tests = 20 WHERE id = '{project}'",
            insert_results("SELECT project, start, 5, number, test, NULL, 0, 0, 0, 0 FROM old, generate_series(0, 19) AS test")
        ));
    }
    let expected = |days: i64, project: &str| {
        world.count(&format!(
            "SELECT count(*) FROM run WHERE project_id = '{project}' AND started_at >= now() - interval '{days} days'"
        ))
    };
    let (bread, web) = (text(&bread["id"]), world.project.clone());
    let kept_results = expected(90, &web) + expected(60, &bread);
    let due = world.cli.json(&["prune", "--dry-run"]);
    assert_eq!(due["runs"], 2200 - kept_results);

    let runs = || world.count("SELECT count(*) FROM run");
    let mut imported = 0;
    for round in 0..4 {
        let before = runs();
        let mut pruning = world.cli.command(&["prune", "--yes", "--json"]).spawn().unwrap();
        // The command is killed midway: some rows are deleted and some remain.
        while runs() == before && pruning.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        let fresh = world.file("n.xml", &junit::report("2020-01-01T00:00:00Z", &[("new", true)]));
        let now = world
            .database
            .text("SELECT to_char(now() at time zone 'utc', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')")
            .unwrap();
        if round < 3 {
            pruning.kill().unwrap();
        }
        world.import(&["--run-key", &format!("new {round}"), "--started-at", &now, &fresh]);
        imported += 1;
        pruning.wait().unwrap();
    }
    let last = world.cli.json(&["prune", "--yes"]);
    assert_eq!(last["periodsLeft"], 0, "{last}");
    // Some seconds have passed. A project has a run every 144 minutes, so at most one more is past its retention.
    assert!(
        (kept_results + imported - 2..=kept_results + imported).contains(&runs()),
        "{} of {kept_results} and {imported}",
        runs()
    );
    let results = world.count("SELECT count(*) FROM result");
    assert_eq!(results, (runs() - imported) * 20 + imported);
    let orphans = "SELECT (SELECT count(*) FROM result LEFT JOIN run ON run.project_id = result.project_id AND number = run_number \
         WHERE number IS NULL) + (SELECT count(*) FROM part LEFT JOIN run ON run.project_id = part.project_id AND run.number = run_number \
         WHERE run.number IS NULL) + (SELECT count(*) FROM run_pack LEFT JOIN run ON run.project_id = run_pack.project_id \
         AND number = run_number WHERE number IS NULL)";
    assert_eq!(world.count(orphans), 0);
    assert_eq!(
        world.count("SELECT count(*) FROM partition WHERE ends_at <= now() - interval '90 days'"),
        0
    );
}
