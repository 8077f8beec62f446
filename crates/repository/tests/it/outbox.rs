//! The outbox: edges of judgements, and messages about them.

use assay_domain::{
    edge::{Edge, EdgeSubject},
    recording::Recording,
    run::RunState,
    settings::{ChatEvent, FlakeBudget},
    store::{
        Administration, Attempt, MessageKey, MessageKind, NewMessage, Outbox, ProjectChange, Recorder, Store,
    },
    timestamp::Timestamp,
    verdict::VerdictStatus,
};
use assay_repository::OutboxLock;
use uuid::Uuid;

use crate::fixture::*;

/// A world whose project has all events, and whose first run passed.
fn world() -> World {
    let world = World::new();
    let change = ProjectChange {
        chat: Some(Some(ChatEvent::ALL.to_vec())),
        ..ProjectChange::default()
    };
    let set = world
        .store
        .set_project(world.project.id, &change, &CountingJudge, NOW);
    assert!(set.unwrap());
    import(
        &world,
        &report("first").at(10 * HOUR).test("x", "p").test("y", "p"),
        0,
    );
    world
}

fn import(world: &World, recording: &Recording, minutes: i64) {
    let at = NOW.plus_ms(minutes * MINUTE);
    world
        .store
        .record(world.project.id, recording, &CountingJudge, at)
        .unwrap();
}

fn edges(world: &World) -> Vec<Edge> {
    world.store.unsettled(world.project.id).unwrap()
}

fn events(edges: &[Edge]) -> Vec<ChatEvent> {
    edges.iter().map(|edge| edge.event).collect()
}

#[test]
fn a_judgement_writes_one_edge_for_each_change_on_the_stable_branch() {
    let world = world();
    assert_eq!(
        edges(&world),
        [],
        "the first judgement has nothing to compare with"
    );
    import(
        &world,
        &report("good").at(9 * HOUR).test("x", "p").test("y", "p"),
        1,
    );
    assert_eq!(edges(&world), []);

    import(
        &world,
        &report("bad").at(8 * HOUR).test("x", "f").test("y", "p"),
        2,
    );
    let found = edges(&world);
    assert_eq!(
        events(&found),
        [ChatEvent::RunFailed, ChatEvent::NewError, ChatEvent::TestBroken]
    );
    let [failed, error, broken] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!(
        (failed.number, failed.subject, failed.is_red),
        (0, EdgeSubject::Suite, true)
    );
    assert_eq!(failed.run.unwrap().number, 3);
    assert_eq!(
        (error.subject, error.is_red),
        (EdgeSubject::Error { signature: 0 }, true)
    );
    let test = EdgeSubject::Test {
        test: 0,
        from: VerdictStatus::Healthy,
        to: VerdictStatus::Broken,
    };
    assert_eq!(
        (broken.subject, broken.since_run, broken.is_red),
        (test, Some(3), true)
    );
    assert!(found.iter().all(|edge| edge.judged_at == NOW.plus_ms(2 * MINUTE)));

    // The same state again is no edge. The passed run is one, and the repaired test with it.
    import(
        &world,
        &report("worse").at(7 * HOUR).test("x", "f").test("y", "p"),
        3,
    );
    assert_eq!(edges(&world).len(), 3);
    import(
        &world,
        &report("fixed").at(6 * HOUR).test("x", "p").test("y", "p"),
        4,
    );
    assert_eq!(
        events(&edges(&world)[3..]),
        [ChatEvent::RunRecovered, ChatEvent::TestResolved]
    );
}

#[test]
fn a_passed_run_of_an_old_commit_repairs_nothing() {
    let world = world();
    let of_commit = |key: &str, commit: &str, hours: i64, outcome: &str| {
        let mut recording = report(key).at(hours * HOUR).test("x", outcome).test("y", "p");
        recording.context.commit_sha = Some(commit.to_owned());
        recording
    };
    import(&world, &of_commit("old", "01d", 9, "p"), 1);
    import(&world, &of_commit("new", "4e3", 8, "f"), 2);
    let broken = edges(&world);
    assert!(events(&broken).contains(&ChatEvent::RunFailed));
    import(&world, &of_commit("again", "01d", 7, "p"), 3);
    assert_eq!(edges(&world), broken);
    import(&world, &of_commit("fixed", "f1e", 6, "p"), 4);
    assert_eq!(
        events(&edges(&world)[broken.len()..]),
        [ChatEvent::RunRecovered, ChatEvent::TestResolved]
    );
}

#[test]
fn an_incomplete_run_repairs_nothing() {
    let world = world();
    let run =
        |key: &str, hours: i64, outcome: &str| report(key).at(hours * HOUR).test("x", outcome).test("y", "p");
    import(&world, &run("bad", 9, "f"), 1);
    let broken = edges(&world);
    assert!(events(&broken).contains(&ChatEvent::RunFailed));
    import(&world, &run("half", 8, "p").shard(1, 2), 2);
    let mut cut = run("cut", 7, "p");
    cut.state = RunState::Interrupted;
    import(&world, &cut, 3);
    // A day later their results count, and no part is expected any more.
    import(&world, &run("other", 6, "p").branch("topic"), 24 * 60);
    assert_eq!(edges(&world), broken);
    import(&world, &run("fixed", 5, "p"), 24 * 60 + 1);
    assert_eq!(
        events(&edges(&world)[broken.len()..]),
        [ChatEvent::RunRecovered, ChatEvent::TestResolved]
    );
}

#[test]
fn a_flake_budget_is_exceeded_and_met_once() {
    let world = world();
    let set = |budget: Option<FlakeBudget>| {
        let change = ProjectChange {
            flake_budget: Some(budget),
            ..ProjectChange::default()
        };
        let id = world.project.id;
        assert!(world.store.set_project(id, &change, &CountingJudge, NOW).unwrap());
    };
    let state = || world.store.settings(&world.project).unwrap().flake_budget;
    let of_budget = |found: &[Edge]| -> Vec<(ChatEvent, EdgeSubject)> {
        let is_of_budget = |edge: &&Edge| matches!(edge.subject, EdgeSubject::Budget { .. });
        let found = found.iter().filter(is_of_budget);
        found.map(|edge| (edge.event, edge.subject)).collect()
    };
    assert_eq!(state(), None);
    set(Some(FlakeBudget { most: 0, met_at: 0 }));
    // The judge finds a test flaky if a run failed that is not the newest.
    let runs = [("once", "f"), ("again", "p"), ("later", "p")];
    for (minute, (name, outcome)) in (1..).zip(runs) {
        let run = report(name)
            .at((10 - minute) * HOUR)
            .test("x", outcome)
            .test("y", "p");
        import(&world, &run, minute);
    }
    let exceeded = (ChatEvent::FlakeBudgetExceeded, EdgeSubject::Budget { flaky: 1 });
    assert_eq!(of_budget(&edges(&world)), [exceeded]);
    assert!(state().unwrap().is_exceeded);
    // The operators' metrics have the same judgement.
    let figures = world.store.judged_figures().unwrap();
    let [of] = figures.as_slice() else {
        panic!("{figures:?}")
    };
    assert_eq!(
        (of.judged.runs, of.judged.failed_runs, of.is_budget_exceeded),
        (4, 1, true)
    );
    assert_eq!(of.judged.tests, [0, 0, 1, 1, 0]);
    // A new budget has its state at once. The next judgement writes its edge, once.
    for (most, is_exceeded) in [(1, false), (0, true), (0, true)] {
        set(Some(FlakeBudget { most, met_at: 0 }));
        assert_eq!(state().unwrap().is_exceeded, is_exceeded);
    }
    assert!(world.store.judged_figures().unwrap()[0].is_budget_exceeded);
    for minute in 4..6 {
        let run = report(&minute.to_string())
            .at((10 - minute) * HOUR)
            .test("x", "p");
        import(&world, &run, minute);
        set(Some(FlakeBudget { most: 0, met_at: 0 }));
    }
    assert_eq!(of_budget(&edges(&world)), [exceeded, exceeded]);
    // The failure leaves the window.
    let days = 15 * 24 * 60;
    import(
        &world,
        &report("clean").at(-i64::from(15 * 24) * HOUR).test("x", "p"),
        days,
    );
    let met = (ChatEvent::FlakeBudgetMet, EdgeSubject::Budget { flaky: 0 });
    assert_eq!(of_budget(&edges(&world)), [exceeded, exceeded, met]);
    assert!(!state().unwrap().is_exceeded);
    set(None);
    assert_eq!(state(), None);
}

#[test]
fn edges_of_release_branches_are_independent_of_the_stable_branch() {
    let world = world();
    let change = ProjectChange {
        release_branches: Some(vec!["release/*".parse().unwrap()]),
        ..ProjectChange::default()
    };
    let set = world
        .store
        .set_project(world.project.id, &change, &CountingJudge, NOW);
    assert!(set.unwrap());
    let of = |key: &str, hours: i64, branch: &str, outcome: &str| {
        let mut recording = report(key).at(hours * HOUR).test("x", outcome).test("y", "p");
        recording.context.branch = Some(branch.to_owned());
        recording
    };
    import(&world, &of("good", 9, "release/1.2", "p"), 1);
    import(&world, &of("topic", 8, "topic", "f"), 2);
    assert_eq!(edges(&world), [], "a branch of a change has no edges");
    import(&world, &of("bad", 7, "release/1.2", "f"), 3);
    import(&world, &of("other", 6, "release/1.3", "p"), 4);
    let found = edges(&world);
    assert_eq!(events(&found), [ChatEvent::RunFailed]);
    assert_eq!(found[0].line(), (Some("release/1.2"), ""));
    // The same state again is no edge. The stable branch fails for itself.
    import(&world, &of("worse", 5, "release/1.2", "f"), 5);
    assert_eq!(edges(&world).len(), 1);
    import(&world, &of("fixed", 4, "release/1.2", "p"), 6);
    let found = edges(&world);
    assert_eq!(events(&found), [ChatEvent::RunFailed, ChatEvent::RunRecovered]);
    assert_eq!(found[1].line(), (Some("release/1.2"), ""));
}

#[test]
fn a_suite_that_fails_by_flaky_tests_alone_does_not_fail() {
    let world = world();
    // The judge finds a test flaky if a run failed that is not the newest.
    import(
        &world,
        &report("once").at(9 * HOUR).test("x", "f").test("y", "p"),
        1,
    );
    import(
        &world,
        &report("again").at(8 * HOUR).test("x", "p").test("y", "p"),
        2,
    );
    let before = edges(&world).len();
    let of_e2e = |key: &str, test: &str| {
        let mut late = report(key).at(8 * HOUR + MINUTE).test(test, "f");
        late.context.suite = Some("e2e".to_owned());
        late
    };
    import(&world, &of_e2e("flaky", "x"), 3);
    assert_eq!(edges(&world).len(), before, "{:?}", edges(&world));
    import(&world, &of_e2e("broken", "z"), 4);
    let found = edges(&world);
    assert_eq!(
        events(&found[before..]),
        [ChatEvent::RunFailed, ChatEvent::TestBroken]
    );
    assert_eq!(found[before].suite, "e2e");
}

#[test]
fn branches_and_projects_without_events_write_no_edge() {
    let world = world();
    // The judge reads all branches, and finds the test broken.
    let topic = report("topic").at(9 * HOUR).branch("topic").test("x", "f");
    import(&world, &topic, 1);
    assert_eq!(edges(&world), []);

    let silent = World::new();
    import(&silent, &report("first").at(10 * HOUR).test("x", "p"), 0);
    import(&silent, &report("bad").at(8 * HOUR).test("x", "f"), 1);
    assert_eq!(edges(&silent), []);
    // Once it has events, what failed before is no edge, and what changes then is one.
    let change = ProjectChange {
        chat: Some(Some(vec![ChatEvent::RunFailed])),
        ..ProjectChange::default()
    };
    silent
        .store
        .set_project(silent.project.id, &change, &CountingJudge, NOW)
        .unwrap();
    import(&silent, &report("still").at(7 * HOUR).test("x", "f"), 2);
    assert_eq!(edges(&silent), []);
    import(&silent, &report("fixed").at(6 * HOUR).test("x", "p"), 3);
    assert_eq!(events(&edges(&silent)), [ChatEvent::RunRecovered]);
}

#[test]
fn settled_edges_have_batches_and_cancelled_ones_are_gone() {
    let world = world();
    import(&world, &report("bad").at(8 * HOUR).test("x", "f"), 2);
    let (store, id) = (&world.store, world.project.id);
    store.settle(id, &[0], &[1], NOW).unwrap();
    store.settle(id, &[2], &[], NOW.plus_ms(MINUTE)).unwrap();
    assert_eq!(store.unsettled(id).unwrap(), []);
    let settled = store.settled(id).unwrap();
    let batches: Vec<(i32, i32)> = settled
        .iter()
        .map(|edge| (edge.number, edge.settled.unwrap().batch))
        .collect();
    assert_eq!(batches, [(0, 1), (2, 2)]);
    let projects = store.outbox_projects(NOW).unwrap();
    assert_eq!((projects[0].last_batch, projects[0].has_unsettled), (2, false));
}

#[test]
fn batches_go_on_after_the_edges_of_earlier_ones_are_deleted() {
    let world = world();
    import(&world, &report("bad").at(8 * HOUR).test("x", "f"), 2);
    let (store, id) = (&world.store, world.project.id);
    store.settle(id, &[0], &[1, 2], NOW).unwrap();
    let sent = NewMessage {
        through: 1,
        ..message(0, None)
    };
    store.add_message(id, &sent, NOW).unwrap();
    store.forget(id, NOW.plus_days(9)).unwrap();
    assert_eq!(store.settled(id).unwrap(), []);
    assert_eq!(store.outbox_projects(NOW).unwrap()[0].last_batch, 1);
    import(&world, &report("good").at(7 * HOUR).test("x", "p"), 3);
    store.settle(id, &[3], &[], NOW.plus_days(9)).unwrap();
    assert_eq!(store.settled(id).unwrap()[0].settled.unwrap().batch, 2);
}

fn message(number: i32, content: Option<&str>) -> NewMessage<'static> {
    NewMessage {
        target: "team",
        number,
        id: Uuid::from_u128(u128::try_from(number).unwrap() + 7),
        kind: MessageKind::Changes,
        through: number,
        content: content.map(str::to_owned),
        thread: None,
    }
}

#[test]
fn messages_are_due_in_their_order_until_they_are_delivered_or_given_up() {
    let world = world();
    let (store, project) = (&world.store, world.project.id);
    for new in [
        message(0, None),
        message(1, Some("{\"a\":1}")),
        message(2, Some("{\"b\":2}")),
    ] {
        store.add_message(project, &new, NOW).unwrap();
        let again = store.add_message(project, &new, NOW.plus_ms(HOUR));
        assert!(again.is_err(), "its number is taken");
    }
    let due = |at: Timestamp| store.due(project, "team", at).unwrap().map(|due| due.number);
    let key = |number| MessageKey {
        project,
        target: "team",
        number,
    };
    let failed = |next| Attempt::Failed {
        reason: "no".to_owned(),
        next,
    };
    assert_eq!(due(NOW), Some(1));
    assert_eq!(
        store.due(project, "other", NOW).unwrap().map(|due| due.number),
        None
    );
    store
        .note_attempt(key(1), &failed(Some(NOW.plus_ms(MINUTE))), NOW)
        .unwrap();
    assert_eq!(due(NOW), None, "the second message waits for the first");
    assert_eq!(due(NOW.plus_ms(MINUTE)), Some(1));
    store.note_attempt(key(1), &failed(None), NOW).unwrap();
    assert_eq!(due(NOW), Some(2), "the first is given up");
    store.retry_all(project, NOW).unwrap();
    assert_eq!(due(NOW), Some(1), "a start tries it again");
    let delivered = Attempt::Delivered {
        receipt: Some("1503435956.000247".to_owned()),
    };
    store.note_attempt(key(1), &delivered, NOW).unwrap();
    assert_eq!(due(NOW), Some(2));
    let heads = store.messages(project, "team").unwrap();
    let numbers: Vec<(i32, bool)> = heads.iter().map(|head| (head.number, head.has_content)).collect();
    assert_eq!(numbers, [(2, true), (1, true), (0, false)]);

    // What was not delivered is dropped after three days, and everything else is kept for eight.
    assert_eq!(store.forget(project, NOW.plus_days(3)).unwrap().messages, []);
    let late = NOW.plus_days(3).plus_ms(1);
    let dropped = store.forget(project, late).unwrap();
    assert_eq!(dropped.messages, [("team".to_owned(), None)]);
    assert_eq!(
        (due(late), store.messages(project, "team").unwrap().len()),
        (None, 3)
    );
    store.forget(project, NOW.plus_days(9)).unwrap();
    let heads = store.messages(project, "team").unwrap();
    assert_eq!(heads.len(), 1, "the last one holds how far the target is");
}

#[test]
fn edges_that_nobody_sends_are_dropped_after_three_days() {
    let world = world();
    import(&world, &report("bad").at(8 * HOUR).test("x", "f"), 2);
    let (store, id) = (&world.store, world.project.id);
    assert_eq!(store.forget(id, NOW.plus_days(3)).unwrap().edges, 0);
    assert_eq!(store.forget(id, NOW.plus_days(3).plus_ms(HOUR)).unwrap().edges, 3);
    assert_eq!(store.unsettled(id).unwrap(), []);
}

#[test]
fn the_last_edge_of_a_problem_is_kept_longer_than_others() {
    let world = world();
    let (store, id) = (&world.store, world.project.id);
    let kept = |days: i64| -> Vec<i32> {
        store.forget(id, NOW.plus_days(days)).unwrap();
        let edges = store.settled(id).unwrap();
        edges.iter().map(|edge| edge.number).collect()
    };
    // The suite failed by an error, and its test is broken.
    import(&world, &report("bad").at(8 * HOUR).test("x", "f"), 2);
    store.settle(id, &[0, 1, 2], &[], NOW).unwrap();
    assert_eq!(kept(8), [0, 1, 2]);
    assert_eq!(kept(9), [2], "the suite's edge and that of the error are old");
    assert_eq!(kept(90), [2]);
    // The suite recovers, and the test with it: its problem is over.
    import(&world, &report("good").at(7 * HOUR).test("x", "p"), 3);
    let resolved = edges(&world).last().unwrap().number;
    store
        .settle(id, &[resolved], &[resolved - 1], NOW.plus_days(9))
        .unwrap();
    assert_eq!(kept(17), [resolved]);
    assert_eq!(kept(18), [0; 0]);
}

#[test]
fn one_program_has_the_lock_of_the_outbox() {
    let world = World::new();
    let url = world.database.url();
    let mut first = OutboxLock::acquire(url).unwrap().unwrap();
    assert!(OutboxLock::acquire(url).unwrap().is_none());
    assert!(first.is_held());
    drop(first);
    assert!(OutboxLock::acquire(url).unwrap().is_some());
}
