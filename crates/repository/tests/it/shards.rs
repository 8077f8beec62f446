//! Shards: they join a run, arrive late, are replaced, and run the same test.

use assay_domain::{
    attempt::AttemptStatus,
    period::Days,
    run::{Outcome, RunState, RunStatus},
    store::Store,
    test::TestLookup,
    timestamp::Timestamp,
};

use crate::fixture::*;

#[test]
fn shards_are_one_run_under_any_of_their_ids() {
    let world = World::new();
    let second = world.import(&report("a").shard(2, 3).at(HOUR).test("b", "p"));
    assert_eq!((second.run_id, second.status), (second.shard_id, None));
    let first = world.import(&report("a").shard(1, 3).at(2 * HOUR).test("a", "p"));
    assert_eq!((first.run_id, first.run_number), (second.run_id, 1));
    assert_ne!(first.shard_id, first.run_id);
    let third = world.import(&report("a").shard(3, 3).at(HOUR + MINUTE).test("c", "p"));
    assert_eq!(third.status, Some(Outcome::Passed));

    let detail = world.detail(&third);
    for id in [first.shard_id, second.shard_id, third.shard_id] {
        assert_eq!(
            world.store.run(&world.project, id).unwrap().as_ref(),
            Some(&detail)
        );
    }
    assert_eq!(detail.run.started_at, NOW.plus_ms(-2 * HOUR), "the earliest");
    assert_eq!(
        detail.run.finished_at,
        Some(NOW.plus_ms(-HOUR + 10 * MINUTE)),
        "the latest"
    );
    assert_eq!(
        detail.run.duration_ms,
        Some(21 * MINUTE),
        "the time in which a part ran"
    );
    let shards = detail.run.shards.unwrap();
    assert_eq!(shards.expected, Some(3));
    let received: Vec<_> = shards
        .received
        .iter()
        .map(|shard| (shard.index, shard.run_id, shard.status))
        .collect();
    let passed = Some(Outcome::Passed);
    assert_eq!(
        received,
        [
            (1, first.shard_id, passed),
            (2, second.shard_id, passed),
            (3, third.shard_id, passed)
        ]
    );
    let by: Vec<_> = detail
        .tests
        .iter()
        .map(|test| test.shard.map(|shard| (shard.index, shard.run_id)))
        .collect();
    assert_eq!(
        by,
        [
            Some((1, first.shard_id)),
            Some((2, second.shard_id)),
            Some((3, third.shard_id))
        ]
    );
    assert_eq!(
        world.store.runs(&world.project, &run_query()).unwrap().runs.len(),
        1
    );
}

#[test]
fn the_outcome_is_known_as_soon_as_one_shard_failed() {
    let world = World::new();
    assert_eq!(world.import(&report("a").shard(1, 3).test("a", "p")).status, None);
    assert_eq!(
        world.import(&report("a").shard(2, 3).test("b", "f")).status,
        Some(Outcome::Failed)
    );
    let fixed = world.import(&report("a").shard(2, 3).content(1).replacing().test("b", "p"));
    assert_eq!(fixed.status, None, "one is still missing");
    assert_eq!(world.detail(&fixed).run.status, RunStatus::Incomplete);
    let mut cut = report("a").shard(3, 3).test("c", "p");
    cut.state = RunState::Interrupted;
    assert_eq!(world.import(&cut).status, None);
    let complete = world.import(&report("a").shard(3, 3).content(1).replacing().test("c", "p"));
    assert_eq!(complete.status, Some(Outcome::Passed));
}

#[test]
fn a_run_without_its_lower_shards_has_no_outcome_yet() {
    let world = World::new();
    let of_unknown_total = |index: u32| {
        let mut recording = report("a").shard(index, 3).test(&format!("test {index}"), "p");
        recording.shard.as_mut().unwrap().total = None;
        recording
    };
    let second = world.import(&of_unknown_total(2));
    assert_eq!(second.status, None, "the first is missing");
    assert_eq!(world.detail(&second).run.status, RunStatus::Incomplete);
    let runs = world.store.runs(&world.project, &run_query()).unwrap().runs;
    assert_eq!((runs[0].status, runs[0].shards.unwrap().expected), (None, None));
    let first = world.import(&of_unknown_total(1));
    assert_eq!(first.status, Some(Outcome::Passed));
    assert_eq!(
        world.import(&of_unknown_total(4)).status,
        None,
        "the third is missing"
    );
    // A database of an earlier version has such runs as passed.
    world
        .database
        .execute("UPDATE run SET status = 'passed'; UPDATE daily_count SET status = 'passed'");
    let rebuilt = world.rebuild(world.project.id);
    assert_eq!((rebuilt.runs_changed, rebuilt.days_changed), (1, 2));
    assert_eq!(world.detail(&first).run.status, RunStatus::Incomplete);
    let third = world.import(&of_unknown_total(3));
    assert_eq!(third.status, Some(Outcome::Passed));
}

#[test]
fn a_late_shard_moves_the_start_of_all() {
    let world = World::new();
    let mut first = report("a")
        .shard(1, 2)
        .at(HOUR)
        .test("timed", "f")
        .test("untimed", "f")
        .test("clean", "p");
    let start = NOW.plus_ms(-HOUR + MINUTE);
    first.tests[0].attempts[0].attempt.started_at = Some(start);
    first.tests[2].attempts[0].attempt.started_at = Some(start);
    world.import(&first);
    let late = world.import(&report("a").shard(2, 2).at(5 * HOUR).test("other", "p"));
    let run_start = NOW.plus_ms(-5 * HOUR);
    assert_eq!(world.detail(&late).run.started_at, run_start);

    let history = world.history(14);
    assert_eq!(history.runs[0].run.started_at, run_start);
    let finals = world
        .final_results(&[2, 0, 1, 3].map(|test| result_key(test, 1, run_start)))
        .unwrap();
    let starts: Vec<Timestamp> = finals.iter().map(|ended| ended.started_at).collect();
    assert_eq!(
        starts,
        [start, start, run_start, run_start],
        "a known start stays, an unknown one is the run's"
    );
    let occurred = "SELECT extract(epoch FROM occurred_at)::bigint FROM attempt ORDER BY test";
    let occurred: Vec<i64> = world
        .database
        .texts(occurred)
        .into_iter()
        .map(|at| at.unwrap().parse().unwrap())
        .collect();
    assert_eq!(occurred, [start.unix_ms() / 1000, run_start.unix_ms() / 1000]);
    let history = world.test_history("clean", Days::Seven);
    assert_eq!(history.occurrences[0].started_at, run_start);
}

/// Status, attempts and shard of the test `x`, and the statuses of its attempts.
fn merged_test(
    world: &World,
    imported: &assay_domain::recording::ImportReceipt,
) -> (AttemptStatus, u32, u32, Vec<AttemptStatus>) {
    let detail = world.detail(imported);
    let entry = detail.tests.iter().find(|test| test.test_name == "x").unwrap();
    let lookup = world
        .store
        .attempts(&world.project, imported.run_id, &any_file("x"))
        .unwrap()
        .unwrap();
    let TestLookup::Found(test_attempts) = lookup else {
        panic!("{lookup:?}")
    };
    for (number, execution) in (0..).zip(
        test_attempts
            .attempts
            .chunk_by(|one, next| one.shard == next.shard),
    ) {
        for (retry, attempt) in (0..).zip(execution) {
            assert_eq!(
                (attempt.execution, attempt.retry),
                (number, retry),
                "retries count within a shard"
            );
        }
    }
    let last = test_attempts.attempts.last().unwrap();
    assert_eq!(
        (last.status, last.shard),
        (entry.status, entry.shard),
        "the entry shows the final attempt"
    );
    let statuses = test_attempts
        .attempts
        .iter()
        .map(|attempt| attempt.status)
        .collect();
    (entry.status, entry.attempts, entry.shard.unwrap().index, statuses)
}

#[test]
fn a_test_in_several_shards_is_one_and_each_part_can_be_undone() {
    use AttemptStatus::{Failed, Passed, Skipped};
    let world = World::new();
    let clean = report("a").shard(1, 3).test("x", "p").test("only", "p");
    let imported = world.import(&clean);
    let alone = merged_test(&world, &imported);
    assert_eq!(alone, (Passed, 1, 1, vec![Passed]));

    let failed = world.import(&report("a").shard(2, 3).test("x", "ff"));
    assert_eq!(
        merged_test(&world, &failed),
        (Failed, 2, 2, vec![Passed, Failed, Failed])
    );
    assert_eq!((failed.counts.total, failed.counts.failed), (2, 1));
    let skipped = world.import(&report("a").shard(3, 3).test("x", "s"));
    assert_eq!(
        merged_test(&world, &skipped),
        (Failed, 2, 2, vec![Skipped, Passed, Failed, Failed])
    );

    let recovered = world.import(&report("a").shard(2, 3).content(1).replacing().test("x", "fp"));
    assert_eq!(
        merged_test(&world, &recovered),
        (Passed, 2, 2, vec![Skipped, Passed, Failed, Passed])
    );
    assert_eq!(
        (recovered.status, recovered.counts.recovered),
        (Some(Outcome::Passed), 1)
    );

    let without = world.import(&report("a").shard(2, 3).content(2).replacing().test("y", "p"));
    assert_eq!(
        merged_test(&world, &without),
        (Passed, 1, 1, vec![Skipped, Passed])
    );
    let without = world.import(&report("a").shard(3, 3).content(2).replacing().test("z", "p"));
    assert_eq!(
        merged_test(&world, &without),
        alone,
        "what is left is the first shard's"
    );
    let rows = "SELECT count(*) FROM attempt JOIN test ON test.ordinal = attempt.test WHERE test.name = 'x'";
    assert_eq!(
        world.database.text(rows).as_deref(),
        Some("0"),
        "its row of `result` has all of a plain attempt"
    );
    // The earlier version stored it as an attempt with separate rows.
    world.database.execute(&format!(
        "INSERT INTO attempt SELECT project_id, started_at, started_at, duration_ms, run_number, test, browser, NULL, \
             0, 0, part, status, false, NULL, NULL, NULL, 0, true \
         FROM result WHERE test = (SELECT ordinal FROM test WHERE name = 'x'); {}",
        update_results("SET attempts = 1 WHERE test = (SELECT ordinal FROM test WHERE name = 'x')")
    ));
    assert_eq!(world.rebuild(world.project.id).runs_changed, 1);
    assert_eq!(world.database.text(rows).as_deref(), Some("0"));
    assert_eq!(merged_test(&world, &without), alone);
    assert_eq!(without.counts.total, 4);
    let replaced = world.import(&report("a").shard(1, 3).content(2).replacing().test("only", "p"));
    assert!(
        world
            .detail(&replaced)
            .tests
            .iter()
            .all(|test| test.test_name != "x")
    );
    assert_eq!(
        world.database.text("SELECT count(*) FROM attempt").as_deref(),
        Some("0")
    );
}

#[test]
fn a_test_that_every_shard_runs_was_not_retried() {
    let world = World::new();
    for index in 1..=3 {
        world.import(&report("a").shard(index, 3).test("setup", "p").test("own", "p p"));
    }
    let all = world.import(&report("b").test("setup", "fp fp").test("own", "p"));
    let history = world.test_history("setup", Days::Seven);
    let occurrences: Vec<_> = history
        .occurrences
        .iter()
        .map(|occurrence| {
            (
                occurrence.attempts,
                occurrence.wasted_ms,
                occurrence.lost_ms,
                occurrence.any_failed_attempt,
            )
        })
        .collect();
    assert_eq!(occurrences, [(2, 200, Some(200), true), (1, 0, Some(0), false)]);
    assert_eq!((all.counts.recovered, all.counts.passed), (1, 2));
    let runs = world.store.runs(&world.project, &run_query()).unwrap().runs;
    assert_eq!((runs[1].counts.recovered, runs[1].counts.total), (0, 2));
    let pack = &world.history(14).runs[1];
    assert_eq!(pack.failures.len(), 1);
    assert!(pack.failures[0].recovered && pack.failures[0].failed_attempts == 1);
}

#[test]
fn the_order_of_arrival_makes_no_difference() {
    let shard = |index: u32| match index {
        1 => report("a").shard(1, 3).at(HOUR).test("x", "fp").test("y", "p"),
        2 => report("a")
            .shard(2, 3)
            .at(2 * HOUR)
            .test("x", "pp")
            .test("z", "f"),
        _ => report("a")
            .shard(3, 3)
            .at(3 * HOUR)
            .test("x", "s")
            .test("y", "ff"),
    };
    let outcomes: Vec<_> = [[1, 2, 3], [3, 2, 1], [2, 3, 1]]
        .into_iter()
        .map(|order| {
            let world = World::new();
            let last = order.map(|index| world.import(&shard(index)))[2].clone();
            let detail = world.detail(&last);
            let tests: Vec<_> = detail
                .tests
                .iter()
                .map(|test| {
                    (
                        test.test_name.clone(),
                        test.status,
                        test.attempts,
                        test.shard.unwrap().index,
                    )
                })
                .collect();
            (
                tests,
                detail.counts,
                detail.run.status,
                detail.run.started_at,
                merged_test(&world, &last),
            )
        })
        .collect();
    assert_eq!(outcomes[0], outcomes[1]);
    assert_eq!(outcomes[0], outcomes[2]);
}

#[test]
fn later_shards_complete_the_context_of_the_run() {
    let world = World::new();
    let mut first = report("a").shard(1, 2).test("x", "p");
    first.context.branch = None;
    first.context.author_name = Some("Ada".to_owned());
    world.import(&first);
    let both = world.import(&report("a").shard(2, 2).branch("dev").test("y", "p"));
    let run = world.detail(&both).run;
    assert_eq!(
        (run.branch.as_deref(), run.author_name.as_deref()),
        (Some("dev"), Some("Ada"))
    );
}
