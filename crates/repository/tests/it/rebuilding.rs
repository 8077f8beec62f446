//! After any history, all derived rows equal those of a rebuild, and a rebuild repairs damaged rows.

use assay_domain::{
    plan::Plan,
    recording::Recording,
    store::{Administration, Recorder},
};
use assay_repository::Database;
use proptest::{prelude::*, test_runner::TestRunner};

use crate::fixture::*;

/// One import or a pruning.
#[derive(Debug, Clone)]
enum Step {
    Import {
        run: u8,
        shard: u32,
        hours: i64,
        tests: Vec<(u8, &'static str)>,
    },
    Prune,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let attempts = prop_oneof![
        Just("p"),
        Just("f"),
        Just("fp"),
        Just("tp"),
        Just("s"),
        Just("i"),
        Just("ff"),
        Just("p p"),
        Just("p fs")
    ];
    let tests = prop::collection::vec((0u8..6, attempts), 0..5);
    // Starts are also close to the limits of the engine's window and of the retention.
    let hours = prop_oneof![0i64..100, (13i64 * 24)..(15 * 24), (55i64 * 24)..(65 * 24)];
    let step = prop_oneof![
        8 => (0u8..5, 0u32..4, hours, tests).prop_map(|(run, shard, hours, tests)| Step::Import {
            run,
            // The first two runs have no shards.
            shard: if run < 2 { 0 } else { shard.max(1) },
            hours,
            tests,
        }),
        1 => Just(Step::Prune),
    ];
    prop::collection::vec(step, 1..16)
}

fn recording(run: u8, shard: u32, hours: i64, tests: &[(u8, &str)], salt: usize) -> Recording {
    let mut recording = report(&format!("run {run}")).at(hours * HOUR);
    // A shard or a replacement may change the branch of its run.
    recording = recording.branch(["main", "topic", "late"][salt % 3]);
    if shard > 0 {
        recording = recording.shard(shard, 3);
    }
    recording.content[29] = salt as u8;
    recording.content[28] = 7;
    // Some replace their shard, others are parts of several attempts of one job.
    recording.replaces = salt % 4 == 3;
    recording.sender.attempt.of_job = salt as u64 % 3;
    let mut known = std::collections::BTreeSet::new();
    for (test, attempts) in tests {
        if known.insert(*test) {
            recording = recording.test(&format!("test {test}"), attempts);
        }
    }
    recording
}

/// Every derived row, as text.
fn derived_rows(world: &World) -> Vec<Option<String>> {
    world.database.texts(
        "SELECT 'result ' || result::text FROM result UNION ALL \
         SELECT 'attempt ' || attempt::text FROM attempt UNION ALL \
         SELECT 'part ' || part::text FROM part UNION ALL \
         SELECT 'pack ' || project_id || run_number || started_at || encode(pack, 'hex') FROM run_pack UNION ALL \
         SELECT 'run ' || run::text FROM run UNION ALL \
         SELECT 'branch ' || branch::text FROM branch UNION ALL \
         SELECT 'day ' || daily_count::text FROM daily_count UNION ALL \
         SELECT 'verdict ' || verdict::text FROM verdict ORDER BY 1",
    )
}

/// The number of attempts whose errors are missing, and of rows of errors without an attempt.
const STRAY_TEXTS: &str = "SELECT count(*) FROM attempt FULL JOIN attempt_texts AS texts \
         ON texts.project_id = attempt.project_id AND texts.run_number = attempt.run_number \
         AND texts.started_at = attempt.started_at AND texts.part = attempt.part AND texts.number = attempt.texts \
     WHERE attempt.test IS NULL OR attempt.texts IS NOT NULL AND texts.errors[attempt.texts_place] IS NULL";

#[test]
fn any_history_equals_its_rebuild() {
    let world = World::on(Plan::Standard);
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    runner
        .run(&steps(), |steps| {
            let case = world.store.all_projects().unwrap().len();
            let project = world.another_project(&format!("case {case}"));
            let observed = |store: &Database| observations(store, &project, (NOW.plus_days(-14), NOW)).unwrap();
            for (salt, step) in steps.iter().enumerate() {
                drop(observed(&world.store));
                match step {
                    Step::Import { run, shard, hours, tests } => {
                        let recording = recording(*run, *shard, *hours, tests, salt);
                        world.store.record(project.id, &recording, &CountingJudge, NOW).unwrap();
                    }
                    Step::Prune => drop(world.prune(false)),
                }
            }
            prop_assert_eq!(observed(&world.store), observed(&world.database.connect()), "a cached history is out of date");
            prop_assert_eq!(world.database.text(STRAY_TEXTS), Some("0".to_owned()));
            let before = derived_rows(&world);
            let rebuilt = world.rebuild(project.id);
            prop_assert_eq!(
                (rebuilt.runs_changed, rebuilt.branches_changed, rebuilt.days_changed, rebuilt.verdicts_changed),
                (0, 0, 0, 0)
            );
            prop_assert_eq!(&derived_rows(&world), &before);
            // Each kind of damage is repaired and reported.
            let branches: u64 = world.database.text("SELECT count(*) FROM branch").unwrap().parse().unwrap();
            let days: u64 = world.database.text("SELECT count(*) FROM daily_count").unwrap().parse().unwrap();
            world.database.execute(&format!(
                "INSERT INTO daily_count VALUES ('{0}', '2001-01-01', 'passed', 1); UPDATE daily_count SET runs = runs + 1; \
                 INSERT INTO branch VALUES ('{0}', 'gone', now()); \
                 UPDATE branch SET newest = newest - interval '1 hour'; UPDATE run_pack SET pack = '\\x00'; UPDATE run SET total = total + 1, failed = 7; \
                 UPDATE run SET status = CASE WHEN status = 'passed' THEN NULL ELSE 'passed' END; \
                 UPDATE part SET status = CASE WHEN status = 'passed' THEN NULL ELSE 'passed' END, superseded = NOT superseded; \
                 {1} \
                 UPDATE attempt SET is_final = NOT is_final, retry = retry + 3, execution = execution * 2 + 1; \
                 UPDATE verdict_block SET status = ARRAY(SELECT CASE WHEN one IS NOT NULL THEN 'broken' END FROM unnest(status) AS one), \
                     last_status = array_fill(4::smallint, ARRAY[cardinality(status)]), \
                     last_offset_ms = array_fill(5, ARRAY[cardinality(status)]), \
                     newest = array_fill(NULL::timestamptz, ARRAY[cardinality(status)]), \
                     impact = array_fill(7.5::float8, ARRAY[cardinality(status)]), \
                     bodies = ARRAY(SELECT replace(one, ' of ', ' off ') FROM unnest(bodies) WITH ORDINALITY AS one (one, n) ORDER BY n); \
                 UPDATE verdict_evidence SET run_numbers = run_numbers || run_numbers, failing_on = '[]'; \
                 INSERT INTO verdict_evidence VALUES ('{0}', 5000, '[]', '{{}}')",
                project.id,
                update_results(
                    "SET attempts = attempts + 1, status = 3, duration_ms = 7, start_offset_ms = 9, browser = 8, part = 5 \
                     WHERE attempts > 0"
                )
            ));
            let rebuilt = world.rebuild(project.id);
            prop_assert_eq!(rebuilt.runs_changed, rebuilt.runs);
            prop_assert_eq!(rebuilt.branches_changed, branches + 1);
            prop_assert_eq!(rebuilt.days_changed, days + 1);
            prop_assert_eq!(&derived_rows(&world), &before);
            world.database.execute("DELETE FROM branch; DELETE FROM daily_count; DELETE FROM run; DELETE FROM run_pack; DELETE FROM verdict_block; DELETE FROM verdict_evidence; DELETE FROM result_block; DELETE FROM attempt; DELETE FROM attempt_texts");
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_rebuild_repairs_each_derived_column_of_a_run() {
    let world = World::new();
    // The parts overlap for five minutes, and another one runs an hour later.
    for (shard, minutes) in [(1, 0), (2, 5), (3, 60)] {
        let part = report("a").at(minutes * MINUTE).shard(shard, 3);
        world.import(&part.test(&format!("test {shard}"), "p"));
    }
    let row = || world.database.text("SELECT run::text FROM run");
    let duration = || world.database.text("SELECT duration_ms::text FROM run");
    assert_eq!(duration(), Some((25 * MINUTE).to_string()));
    let before = row();
    for damage in [
        "status = 'failed'",
        "finished_at = started_at",
        "finished_at = NULL",
        "duration_ms = 1",
        "duration_ms = NULL",
        "shards_received = 1",
        "shards_expected = NULL",
        "total = 9",
        "passed = -1",
        "failed = 9",
        "skipped = 9",
        "recovered = 9",
        "complete = false",
    ] {
        world.database.execute(&format!("UPDATE run SET {damage}"));
        assert_ne!(row(), before, "{damage}");
        assert_eq!(world.rebuild(world.project.id).runs_changed, 1, "{damage}");
        assert_eq!(row(), before, "{damage}");
    }
}
