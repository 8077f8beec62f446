//! Many imports into one project. The last one judges, each waiting import reports that it waits, and a frozen one
//! blocks others only for a bounded time.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use assay_domain::{
    observation::History,
    recording::Effect,
    store::{Administration as _, ProjectChange, RecordError, Recorder},
    timestamp::Timestamp,
    verdict::{Judge, Judgement},
};
use assay_repository::{Database, PoolOptions, WaitingFor};

use crate::fixture::*;

const JUDGED: &str = "SELECT (judged = observed)::text FROM project";

/// A judge that counts its judgements.
#[derive(Default)]
struct TallyingJudge(AtomicUsize);

impl Judge for TallyingJudge {
    fn judge(&self, history: &History, now: Timestamp) -> Vec<Judgement> {
        self.0.fetch_add(1, Ordering::Relaxed);
        CountingJudge.judge(history, now)
    }

    fn builds_needed(&self, rate_before: Option<f64>) -> u32 {
        CountingJudge.builds_needed(rate_before)
    }
}

/// A judge that never returns, like a killed program.
struct PanickingJudge;

impl Judge for PanickingJudge {
    fn judge(&self, _: &History, _: Timestamp) -> Vec<Judgement> {
        panic!("killed while it judges")
    }

    fn builds_needed(&self, rate_before: Option<f64>) -> u32 {
        CountingJudge.builds_needed(rate_before)
    }
}

/// A judge that waits for a signal, like a frozen program.
struct FrozenJudge {
    began: mpsc::SyncSender<()>,
    thawed: Mutex<mpsc::Receiver<()>>,
}

impl FrozenJudge {
    /// The judge, the channel for its beginning, and the channel whose end it waits for.
    fn new() -> (Self, mpsc::Receiver<()>, mpsc::Sender<()>) {
        let (began, has_begun) = mpsc::sync_channel(0);
        let (thaw, thawed) = mpsc::channel();
        let thawed = Mutex::new(thawed);
        (Self { began, thawed }, has_begun, thaw)
    }
}

impl Judge for FrozenJudge {
    fn judge(&self, history: &History, now: Timestamp) -> Vec<Judgement> {
        // Only the first judgement waits. Its transaction is lost, and it is repeated.
        if self.began.send(()).is_ok() {
            let _ = self.thawed.lock().unwrap().recv();
        }
        CountingJudge.judge(history, now)
    }

    fn builds_needed(&self, rate_before: Option<f64>) -> u32 {
        CountingJudge.builds_needed(rate_before)
    }
}

fn verdicts(world: &World) -> Option<String> {
    world
        .database
        .text("SELECT string_agg(verdict::text, E'\\n' ORDER BY test) FROM verdict")
}

fn assert_rebuilt_is_the_same(world: &World) {
    let rebuilt = world.rebuild(world.project.id);
    assert_eq!((rebuilt.runs_changed, rebuilt.verdicts_changed), (0, 0));
}

#[test]
fn few_of_forty_simultaneous_imports_judge_and_a_rebuild_has_the_same_verdicts() {
    let world = World::new();
    let judge = TallyingJudge::default();
    for run in 0..3 {
        world.import(
            &report(&format!("before {run}"))
                .at((run + 3) * HOUR)
                .test("shared", "p")
                .test("old", "f"),
        );
    }
    let options = PoolOptions {
        size: 20,
        wait: Duration::from_secs(60),
        ..PoolOptions::default()
    };
    let store = Database::connect(world.database.url(), options).unwrap();
    thread::scope(|scope| {
        for index in 1..=40 {
            let (store, judge, project) = (&store, &judge, world.project.id);
            scope.spawn(move || {
                let shard = report("matrix").shard(index, 40).at(i64::from(index) * MINUTE);
                let name = format!("test {index}");
                let shard = shard
                    .test(&name, if index % 3 == 0 { "fp" } else { "p" })
                    .test("shared", "f");
                store.record(project, &shard, judge, NOW).unwrap()
            });
        }
    });
    assert_eq!(
        world.database.text(JUDGED).as_deref(),
        Some("true"),
        "the last import judged"
    );
    let judgements = judge.0.load(Ordering::Relaxed);
    assert!((1..40).contains(&judgements), "{judgements}");
    assert_eq!(
        world.database.text("SELECT count(*) FROM verdict").as_deref(),
        Some("42")
    );
    assert_rebuilt_is_the_same(&world);
}

#[test]
fn an_import_killed_before_its_judgement_is_judged_by_its_repetition() {
    let world = World::new();
    world.import(&report("a").at(3 * HOUR).test("x", "p"));
    let before = verdicts(&world);
    let recording = report("b").test("x", "f").test("y", "p");
    let kill = || {
        thread::scope(|scope| {
            let killed = scope.spawn(|| {
                world
                    .store
                    .record(world.project.id, &recording, &PanickingJudge, NOW)
            });
            assert!(killed.join().is_err());
        });
    };
    kill();
    assert_eq!(verdicts(&world), before);
    assert_eq!(
        world.database.text("SELECT count(*) FROM run").as_deref(),
        Some("2"),
        "the report is stored"
    );
    assert_eq!(world.database.text(JUDGED).as_deref(), Some("false"));
    let repeated = world.import(&recording);
    assert_eq!(repeated.effect, Effect::Unchanged);
    assert_eq!(
        repeated.verdicts_changed.total, 2,
        "{:?}",
        repeated.verdicts_changed
    );
    assert_eq!(world.database.text(JUDGED).as_deref(), Some("true"));
    assert_rebuilt_is_the_same(&world);
}

#[test]
fn an_import_killed_before_its_judgement_is_judged_by_the_next_import() {
    let world = World::new();
    world.import(&report("a").at(3 * HOUR).test("x", "p").test("y", "p"));
    // The stored verdicts must not hide the changes of the killed import.
    let replaced = report("a")
        .content(1)
        .replacing()
        .at(3 * HOUR)
        .test("x", "f")
        .test("z", "p");
    thread::scope(|scope| {
        let killed = scope.spawn(|| {
            world
                .store
                .record(world.project.id, &replaced, &PanickingJudge, NOW)
        });
        assert!(killed.join().is_err());
    });
    let next = world.import(&report("b").test("w", "p"));
    assert!(next.verdicts_changed.total >= 3, "{:?}", next.verdicts_changed);
    assert_rebuilt_is_the_same(&world);
}

#[test]
fn a_judgement_that_fails_is_reported_as_a_report_that_is_stored() {
    let world = World::new();
    world
        .database
        .execute("ALTER TABLE verdict_block RENAME TO hidden");
    let failed = world.try_import(&report("a").test("x", "p"));
    assert!(matches!(failed, Err(RecordError::NotJudged(_))), "{failed:?}");
    assert_eq!(
        world.database.text("SELECT count(*) FROM run").as_deref(),
        Some("1")
    );
    world
        .database
        .execute("ALTER TABLE hidden RENAME TO verdict_block");
    world.import(&report("a").test("x", "p"));
    assert_rebuilt_is_the_same(&world);
}

#[test]
fn a_waiting_import_prints_how_long_it_has_waited_and_goes_on() {
    let world = World::new();
    let (send_wait, heard) = mpsc::channel();
    let options = PoolOptions {
        size: 1,
        lock_round: Duration::from_millis(100),
        ..PoolOptions::default()
    };
    let mut store = Database::connect(world.database.url(), options).unwrap();
    store.on_waiting(move |what, waited| {
        assert_eq!(what, WaitingFor::OtherImport);
        let _ = send_wait.send(waited);
    });
    let mut other = world.database.connection();
    let lock = "BEGIN; SELECT FROM project FOR NO KEY UPDATE";
    diesel::connection::SimpleConnection::batch_execute(&mut other, lock).unwrap();
    let imported = thread::scope(|scope| {
        let import =
            scope.spawn(|| store.record(world.project.id, &report("a").test("x", "p"), &CountingJudge, NOW));
        let waits: Vec<Duration> = heard.iter().take(2).collect();
        assert!(
            waits[0] >= Duration::from_millis(100) && waits[1] > waits[0],
            "{waits:?}"
        );
        diesel::connection::SimpleConnection::batch_execute(&mut other, "COMMIT").unwrap();
        import.join().unwrap()
    });
    assert_eq!(imported.unwrap().effect, Effect::Added);
}

#[test]
fn an_import_that_never_gets_its_turn_fails_after_the_time_of_a_statement() {
    let world = World::new();
    let options = PoolOptions {
        size: 1,
        statement_timeout: Duration::from_millis(300),
        lock_round: Duration::from_millis(100),
        ..PoolOptions::default()
    };
    let store = Database::connect(world.database.url(), options).unwrap();
    let mut other = world.database.connection();
    let lock = "BEGIN; SELECT FROM project FOR NO KEY UPDATE";
    diesel::connection::SimpleConnection::batch_execute(&mut other, lock).unwrap();
    let refused = store.record(world.project.id, &report("a").test("x", "p"), &CountingJudge, NOW);
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("waiting for another import"), "{error}");
}

#[test]
fn an_import_that_is_frozen_while_it_judges_blocks_no_other_one() {
    let world = World::new();
    let (judge, has_begun, thaw) = FrozenJudge::new();
    let recording = report("a").test("x", "p");
    thread::scope(|scope| {
        let frozen = scope.spawn(|| world.store.record(world.project.id, &recording, &judge, NOW));
        has_begun.recv().unwrap();
        // It returns while the other one is frozen.
        let next = world.import(&report("b").test("x", "f"));
        assert_eq!(next.verdicts_changed.total, 1, "it judged both");
        drop((has_begun, thaw));
        let thawed = frozen.join().unwrap().unwrap();
        assert_eq!(thawed.effect, Effect::Added);
        assert_eq!(thawed.verdicts_changed.total, 0, "the other one judged");
    });
    assert_rebuilt_is_the_same(&world);
}

#[test]
fn a_program_that_is_frozen_with_the_lock_blocks_no_longer_than_a_transaction_may_be_idle() {
    let world = World::new();
    world.import(&report("a").test("x", "p"));
    let options = PoolOptions {
        size: 1,
        // The limit of an idle transaction is never longer than this one.
        statement_timeout: Duration::from_secs(600),
        idle_timeout: Duration::from_secs(1),
        ..PoolOptions::default()
    };
    let freezing = Database::connect(world.database.url(), options).unwrap();
    let (judge, has_begun, thaw) = FrozenJudge::new();
    let change = ProjectChange {
        stable_branch: Some("trunk".to_owned()),
        ..ProjectChange::default()
    };
    thread::scope(|scope| {
        let frozen = scope.spawn(|| freezing.set_project(world.project.id, &change, &judge, NOW));
        has_begun.recv().unwrap();
        // The import gives up before the default limit, a minute, would end the frozen transaction.
        world.import(&report("b").test("x", "f"));
        drop((has_begun, thaw));
        // Its transaction was lost with its connection and is repeated on another one.
        assert!(frozen.join().unwrap().unwrap());
    });
    assert_rebuilt_is_the_same(&world);
}

#[test]
fn pruning_between_an_import_and_its_judgement_does_not_lose_the_judgement() {
    let world = World::new();
    world.import(&report("old").at(400 * 24 * HOUR).test("gone", "p"));
    world.import(&report("a").at(HOUR).test("x", "p"));
    let (judge, has_begun, thaw) = FrozenJudge::new();
    let recording = report("b").test("x", "f");
    thread::scope(|scope| {
        let import = scope.spawn(|| world.store.record(world.project.id, &recording, &judge, NOW));
        has_begun.recv().unwrap();
        world.prune(false);
        assert_eq!(
            world.database.text("SELECT count(*) FROM run").as_deref(),
            Some("2"),
            "a run was pruned"
        );
        drop((has_begun, thaw));
        let imported = import.join().unwrap().unwrap();
        assert_eq!(
            imported.verdicts_changed.total, 1,
            "{:?}",
            imported.verdicts_changed
        );
    });
    assert_eq!(world.database.text(JUDGED).as_deref(), Some("true"));
    assert_rebuilt_is_the_same(&world);
}

#[test]
fn an_import_writes_only_the_verdicts_that_it_changes() {
    let world = World::new();
    let mut first = (0..140).fold(report("a").at(HOUR), |first, test| {
        first.test(&format!("test {test}"), "p")
    });
    first = first.test("y", "f");
    world.import(&first);
    let block = |number: i32| {
        let sql = format!("SELECT xmin FROM verdict_block WHERE block = {number}");
        world.database.text(&sql)
    };
    let evidence = |test: &str| {
        world.database.text(&format!(
            "SELECT verdict_evidence.xmin FROM verdict_evidence JOIN test ON test.ordinal = test WHERE test.name = '{test}'"
        ))
    };
    let (x, y, of_y) = (block(0), block(1), evidence("y"));
    assert!(x.is_some() && y.is_some() && of_y.is_some() && evidence("test 3").is_none());
    world.import(&report("b").test("test 3", "f"));
    assert_ne!(block(0), x);
    assert_eq!((block(1), evidence("y")), (y.clone(), of_y.clone()));
    // A complete judgement, as after a killed import, writes nothing if nothing changed.
    let (x, of_x) = (block(0), evidence("test 3"));
    assert!(of_x.is_some());
    world.database.execute("UPDATE project SET judged = NULL");
    let repeated = world.import(&first);
    assert_eq!(
        (repeated.effect, repeated.verdicts_changed.total),
        (Effect::Unchanged, 0)
    );
    assert_eq!(world.database.text(JUDGED).as_deref(), Some("true"));
    assert_eq!((block(0), block(1)), (x, y));
    assert_eq!((evidence("test 3"), evidence("y")), (of_x, of_y));
}

#[test]
fn an_import_judges_though_others_follow_if_the_judgement_is_a_minute_late() {
    let world = World::new();
    world.import(&report("a").at(5 * MINUTE).test("x", "p"));
    let judged_at = "UPDATE project SET evaluated_at = evaluated_at - interval '61 s'";
    // Simulates a following import: the observed state changes as soon as this one is stored.
    world.database.execute(
        "CREATE FUNCTION follow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             UPDATE project SET observed = gen_random_uuid() WHERE id = NEW.project_id; RETURN NULL; END $$; \
         CREATE CONSTRAINT TRIGGER follow AFTER INSERT ON part DEFERRABLE INITIALLY DEFERRED \
             FOR EACH ROW EXECUTE FUNCTION follow()",
    );
    let postponed = world.import(&report("b").test("x", "f"));
    assert_eq!(
        postponed.verdicts_changed.total, 0,
        "the judgement was left to the next import"
    );
    assert_eq!(world.database.text(JUDGED).as_deref(), Some("false"));
    world.database.execute(judged_at);
    let overdue = world.import(&report("c").test("y", "p"));
    assert_eq!(
        overdue.verdicts_changed.total, 2,
        "{:?}",
        overdue.verdicts_changed
    );
    assert_eq!(world.database.text(JUDGED).as_deref(), Some("true"));
    assert_rebuilt_is_the_same(&world);
}
