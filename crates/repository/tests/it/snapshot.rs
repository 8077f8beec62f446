//! The reads of the flaky list are of one state, even if rows are stored or deleted between them.

use assay_domain::{
    attempt::AttemptStatus,
    id::ProjectId,
    observation::Failure,
    store::{Administration, FinalResult, Recorder, ResultKey, StoreError, in_snapshot},
    test::TestName,
};
use assay_repository::Database;

use crate::{
    fixture::*,
    statements::{interrupted, listen},
};

/// The failed tests of one state with their names and final results, as the flaky list reads them.
fn failed_tests(store: &Database, world: &World) -> Result<Vec<(TestName, FinalResult)>, StoreError> {
    in_snapshot(store, &world.project, |snapshot| {
        let history = snapshot.observations(NOW.plus_days(-14), NOW)?;
        let failures = history.runs.iter().flat_map(|observed| {
            let key = |failure: &Failure| ResultKey {
                test: failure.test,
                run_number: observed.run.number,
                run_started_at: observed.run.started_at,
            };
            observed.failures.iter().map(key)
        });
        let keys: Vec<ResultKey> = failures.collect();
        let tests: Vec<_> = keys.iter().map(|key| key.test).collect();
        let names = snapshot.test_names(&tests)?;
        let results = snapshot.final_results(&keys)?;
        Ok(names.into_iter().zip(results).collect())
    })
}

/// Repeats the read, each time with `meanwhile` before another statement of it. Each answer must equal the one before
/// `meanwhile` or the one after it.
fn assert_one_state(meanwhile: fn(&Database, ProjectId), after: &[(&str, AttemptStatus)]) {
    listen();
    let before = [("x", AttemptStatus::Failed), ("y", AttemptStatus::Failed)];
    let mut answers = Vec::new();
    for statement in 0.. {
        let world = World::new();
        world.import(&report("a").test("x", "f").test("y", "f").test("z", "p"));
        let (reader, writer, project) = (
            world.database.connect(),
            world.database.connect(),
            world.project.id,
        );
        let (answer, was_interrupted) = interrupted(
            statement,
            move || meanwhile(&writer, project),
            || failed_tests(&reader, &world),
        );
        let failed = answer.unwrap_or_else(|error| panic!("before statement {statement}: {error:?}"));
        let failed: Vec<_> = failed
            .iter()
            .map(|(test, result)| (test.name.as_str(), result.status))
            .collect();
        if !was_interrupted {
            break;
        }
        assert!(
            failed == before || failed == after,
            "before statement {statement}: {failed:?}"
        );
        answers.push(failed == after);
    }
    // The interruption happened both before the first read of the data and after it.
    assert!(
        answers.len() > 3 && answers.contains(&true) && answers.contains(&false),
        "{answers:?}"
    );
}

#[test]
fn an_import_in_between_does_not_mix_two_states() {
    let import = |store: &Database, project| {
        let other = report("a").content(1).replacing().test("y", "t").test("z", "f");
        store.record(project, &other, &CountingJudge, NOW).unwrap();
    };
    assert_one_state(
        import,
        &[("y", AttemptStatus::TimedOut), ("z", AttemptStatus::Failed)],
    );
}

#[test]
fn a_deletion_in_between_does_not_mix_two_states() {
    let delete = |store: &Database, project| {
        store.delete_project(project, NOW, &mut |_| ()).unwrap().unwrap();
    };
    assert_one_state(delete, &[]);
}

#[test]
fn a_read_over_a_dead_connection_is_done_again() {
    let world = World::new();
    world.import(&report("a").test("x", "f"));
    let mut reads = 0;
    let failed = in_snapshot(&world.store, &world.project, |snapshot| {
        reads += 1;
        let history = snapshot.observations(NOW.plus_days(-14), NOW)?;
        if reads == 1 {
            world.database.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                 WHERE datname = current_database() AND pid <> pg_backend_pid()",
            );
        }
        snapshot.test_names(&[0])?;
        Ok(history.runs.len())
    });
    assert_eq!((failed.unwrap(), reads), (1, 2));
}
