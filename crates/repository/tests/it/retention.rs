//! Results past the retention are hidden immediately, and deleted by pruning.

use assay_domain::{
    period::{Days, Period},
    plan::Plan,
    project::Project,
    store::{Administration, PrunedCounts, ReadKeys, Recorder, Store},
    test::TestLookup,
};

use crate::fixture::*;

/// Runs of 70, 50 and 1 days ago.
fn world() -> World {
    let world = World::new();
    world.import(
        &report("a")
            .at(70 * DAY)
            .branch("gone")
            .test("old", "f")
            .test("x", "f"),
    );
    world.import(&report("b").at(50 * DAY).branch("kept").test("x", "p"));
    world.import(&report("c").at(DAY).test("x", "p").test("y", "p"));
    world
}

fn on(world: &World, plan: Plan) -> Project {
    let caller = assay_domain::project::Caller {
        plan,
        ..world.caller.clone()
    };
    world
        .store
        .project(&caller, world.project.id, NOW)
        .unwrap()
        .unwrap()
}

#[test]
fn a_shorter_retention_hides_at_once_and_a_longer_one_shows_again() {
    let world = world();
    for (plan, branches, occurrences) in [
        (Plan::Pro, vec!["gone", "kept", "main"], 3),
        (Plan::Standard, vec!["kept", "main"], 2),
        (Plan::Pro, vec!["gone", "kept", "main"], 3),
    ] {
        let project = on(&world, plan);
        assert_eq!(world.store.branches(&project).unwrap().names, {
            let mut branches = branches.clone();
            branches.sort_unstable();
            branches
        });
        // Even for a period that reaches further back.
        let period = Period::ending(NOW, Days::Ninety);
        let TestLookup::Found(history) = world.store.history(&project, &any_file("x"), &period).unwrap()
        else {
            panic!("the test is visible")
        };
        assert_eq!(history.occurrences.len(), occurrences);
        let query = assay_domain::run::RunQuery {
            period,
            ..run_query()
        };
        assert_eq!(
            world.store.runs(&project, &query).unwrap().total,
            occurrences as u64
        );
        let visible = plan == Plan::Pro;
        let old = world.store.history(&project, &any_file("old"), &period).unwrap();
        assert_eq!(matches!(old, TestLookup::Found(_)), visible);
        let signature = world
            .store
            .signature(&project, &fingerprint("it broke"), &period)
            .unwrap();
        assert_eq!(signature.is_some(), visible);
    }
}

#[test]
fn a_run_that_starts_in_the_future_is_on_no_route_until_then() {
    let world = World::new();
    let late = report("late").at(-DAY).branch("next");
    let late = world.import(&late.test("late", "f").test_in("x", Some("late.ts"), "f"));
    world.import(&report("now").branch("main").test("x", "p"));
    world.import(&report("also late").at(-DAY).branch("main").test("y", "p"));
    let (later, x) = (NOW.plus_days(1), any_file("x"));
    for (now, is_shown) in [(NOW, false), (later, true), (later.plus_ms(-1), false)] {
        let project = world
            .store
            .project(&world.caller, world.project.id, now)
            .unwrap()
            .unwrap();
        let (store, week) = (&world.store, Period::ending(now, Days::Seven));
        let branches = store.branches(&project).unwrap().names;
        assert_eq!(branches.contains(&"next".to_owned()), is_shown);
        assert!(branches.contains(&"main".to_owned()));
        assert_eq!(store.run(&project, late.run_id).unwrap().is_some(), is_shown);
        let attempts = store.attempts(&project, late.run_id, &any_file("late")).unwrap();
        assert_eq!(attempts.is_some(), is_shown);
        for test in ["late", "y"] {
            let history = store.history(&project, &any_file(test), &week).unwrap();
            assert_eq!(matches!(history, TestLookup::Found(_)), is_shown, "{test}");
            let verdict = store.verdict(&project, &any_file(test)).unwrap();
            assert_eq!(matches!(verdict, TestLookup::Found(_)), is_shown, "{test}");
        }
        // A file that only the future run has was not a candidate before.
        let history = store.history(&project, &x, &week).unwrap();
        assert_eq!(matches!(history, TestLookup::Ambiguous(_)), is_shown);
        let verdict = store.verdict(&project, &x).unwrap();
        assert_eq!(matches!(verdict, TestLookup::Ambiguous(_)), is_shown);
        let boom = fingerprint("it broke");
        assert_eq!(
            store.signature(&project, &boom, &week).unwrap().is_some(),
            is_shown
        );
        let query = assay_domain::run::RunQuery {
            period: week,
            ..run_query()
        };
        assert_eq!(
            store.runs(&project, &query).unwrap().total,
            if is_shown { 3 } else { 1 }
        );
        let from = now.plus_days(-14);
        // Even if a caller requests more.
        let observed = observations(store, &project, (from, now.plus_days(30))).unwrap();
        assert_eq!(observed.runs.len(), if is_shown { 3 } else { 1 });
    }
}

#[test]
fn a_test_that_ran_long_ago_and_will_run_again_is_missing_until_then() {
    let world = World::on(Plan::Standard);
    let (id, then) = (world.project.id, NOW.plus_days(-70));
    let old = report("old").at(71 * DAY).test("x", "p");
    world.store.record(id, &old, &CountingJudge, then).unwrap();
    // Its verdict now has the start of the newest run, which is tomorrow.
    world.import(&report("late").at(-DAY).test("x", "p"));
    for (now, is_shown) in [(NOW, false), (NOW.plus_days(1), true)] {
        let project = world.store.project(&world.caller, id, now).unwrap().unwrap();
        let verdict = world.store.verdict(&project, &any_file("x")).unwrap();
        assert_eq!(matches!(verdict, TestLookup::Found(_)), is_shown);
        let week = Period::ending(now, Days::Seven);
        let verdict = world.store.history(&project, &any_file("x"), &week).unwrap();
        assert_eq!(matches!(verdict, TestLookup::Found(_)), is_shown);
    }
}

#[test]
fn pruning_deletes_exactly_the_hidden_rows() {
    let world = world();
    assert_eq!(world.prune(false), [], "all of it is within 90 days");
    world
        .store
        .set_plan(world.caller.organization, Plan::Standard)
        .unwrap();
    let due = [PrunedCounts {
        project_id: world.project.id,
        project: "web".to_owned(),
        runs: 1,
        results: 2,
    }];
    let state = "SELECT (SELECT count(*) FROM run) || ' ' || (SELECT count(*) FROM part) || ' ' || \
         (SELECT count(*) FROM result) || ' ' || (SELECT count(*) FROM attempt) || ' ' || \
         (SELECT count(*) FROM run_pack) || ' ' || (SELECT count(*) FROM test) || ' ' || \
         (SELECT count(*) FROM signature)";
    assert_eq!(world.prune(true), due);
    assert_eq!(
        world.database.text(state).as_deref(),
        Some("3 3 5 2 3 3 1"),
        "a dry run only counts"
    );
    assert_eq!(world.prune(false), due);
    assert_eq!(world.database.text(state).as_deref(), Some("2 2 3 0 2 2 0"));
    assert_eq!(world.prune(false), []);
    world.rebuild(world.project.id);

    // Deleted names may be imported again, with new numbers.
    let again = world.import(&report("a").at(DAY).test("old", "f"));
    assert_eq!(again.run_number, 4);
    assert_eq!(
        words(&world.history(14)).last().unwrap(),
        "run 4 test 3 failed 1 recovered false lost Some(100)"
    );
}

#[test]
fn pruning_goes_by_batches() {
    let world = World::new();
    for index in 0..120 {
        world.import(&report(&format!("{index}")).at(95 * DAY + index).test("x", "p"));
    }
    world.import(&report("new").test("y", "p"));
    let pruned = world.prune(false);
    assert_eq!((pruned[0].runs, pruned[0].results), (120, 120));
    assert_eq!(
        world.database.text("SELECT count(*) FROM result").as_deref(),
        Some("1")
    );
}
