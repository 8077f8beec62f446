//! Values that requests share are of the state and the runs that each request sees.

use std::{
    cell::Cell,
    sync::{
        Barrier,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use assay_domain::{
    page::PerPage,
    period::Days,
    plan::Plan,
    project::Project,
    rules::RecordingRules,
    signature::{SignaturePage, SignatureQuery, SignatureSort},
    store::{
        Administration as _, ProjectChange, Recorder as _, SharedKey, Store as _, StoreError, in_snapshot,
        shared,
    },
    timestamp::Timestamp,
};
use assay_repository::Database;

use crate::{fixture::*, refingerprint::FirstWord, signatures::with_failing_test};

const RUNS: SharedKey = SharedKey {
    kind: "numbers of runs",
    of: 0,
};

/// The numbers of the runs of the two weeks before a time, and whether this request read them.
fn numbers(store: &Database, project: &Project, now: Timestamp) -> (Vec<i32>, bool) {
    let is_computed = Cell::new(false);
    let from = now.plus_days(-14);
    let read_values = in_snapshot(store, project, |snapshot| {
        shared(snapshot, RUNS, (from, now), |snapshot| {
            is_computed.set(true);
            let history = snapshot.observations(from, now)?;
            let numbers: Vec<i32> = history.runs.iter().map(|run| run.run.number).collect();
            Ok((numbers, 100))
        })
    });
    (read_values.unwrap().to_vec(), is_computed.get())
}

#[test]
fn values_are_computed_once_until_the_project_changes() {
    let world = World::on(Plan::Standard);
    let elsewhere = world.database.connect();
    world.import(&with_failing_test(report("a"), "x", None, &["boom early"]));
    let changes: [(&str, &dyn Fn()); 8] = [
        ("an import", &|| {
            world.import(&report("b").test("x", "p"));
        }),
        ("an import by another process", &|| {
            let recording = report("c").at(70 * DAY).test("y", "f");
            let imported = elsewhere.record(world.project.id, &recording, &CountingJudge, NOW);
            imported.unwrap();
        }),
        ("other content in its place", &|| {
            world.import(&report("b").content(1).replacing().test("x", "f"));
        }),
        ("a run that does not count in verdicts", &|| {
            let rules = RecordingRules::IngestKey {
                backfill: false,
                pull_requests_only: true,
                budget: None,
            };
            let mut of_fork = report("d").branch("topic").test("x", "f");
            of_fork.context.pull_request_number = Some(7);
            let stored = elsewhere.store_under(world.project.id, &of_fork, rules, NOW);
            stored.unwrap();
        }),
        ("another grouping of errors", &|| {
            let counts = elsewhere.refingerprint(world.project.id, &FirstWord);
            assert!(counts.unwrap().unwrap().changed > 0);
        }),
        ("another stable branch", &|| {
            let change = ProjectChange {
                stable_branch: Some("trunk".to_owned()),
                ..ProjectChange::default()
            };
            let changed = elsewhere.set_project(world.project.id, &change, &CountingJudge, NOW);
            changed.unwrap();
        }),
        ("pruning", &|| assert_eq!(world.prune(false)[0].runs, 1)),
        ("the repair of a pack", &|| {
            let damage = "UPDATE run_pack SET pack = '\\x0100000000'";
            world.database.execute(damage);
            assert!(world.rebuild(world.project.id).runs_changed > 0);
        }),
    ];
    let read = || numbers(&world.store, &world.project, NOW);
    assert_eq!(read(), (vec![1], true));
    for (what, change) in changes {
        assert!(!read().1, "computed again before {what}");
        change();
        let (after, is_computed) = read();
        assert!(is_computed, "not computed again after {what}");
        let alone = numbers(&world.database.connect(), &world.project, NOW);
        assert_eq!(after, alone.0, "{what}");
    }
    world.import(&report("b").content(1).replacing().test("x", "f"));
    assert!(!read().1, "the same content again is no change");
}

#[test]
fn time_and_retention_choose_the_runs() {
    let world = World::on(Plan::Standard);
    world.import(&report("old").at(13 * DAY).test("x", "f"));
    world.import(&report("new").at(DAY).test("x", "f"));
    world.import(&report("to come").at(-HOUR).test("x", "f"));
    for (later, expected) in [
        (0, vec![1, 2]),
        (2 * HOUR, vec![1, 2, 3]),
        (2 * DAY, vec![2, 3]),
        (-2 * DAY, vec![1]),
        (0, vec![1, 2]),
    ] {
        let now = NOW.plus_ms(later);
        let project = world.project.clone().seen(Plan::Standard, now);
        assert_eq!(numbers(&world.store, &project, now).0, expected, "{later}");
    }
    let mut shorter = world.project.clone();
    shorter.visible_from = NOW.plus_days(-2);
    assert_eq!(numbers(&world.store, &shorter, NOW), (vec![2], true));
}

#[test]
fn projects_and_keys_have_values_of_their_own() {
    let world = World::on(Plan::Standard);
    world.import(&report("a").test("x", "f"));
    let other = world.another_project("other");
    assert_eq!(numbers(&world.store, &world.project, NOW).0, [1]);
    assert_eq!(numbers(&world.store, &other, NOW).0, [0; 0]);
    let value_of_key = |of: i32| {
        let window = (NOW.plus_days(-14), NOW);
        let read = in_snapshot(&world.store, &world.project, |snapshot| {
            shared(snapshot, SharedKey { kind: "key", of }, window, |_| Ok((of, 4)))
        });
        *read.unwrap()
    };
    assert_eq!([1, 2, 1].map(value_of_key), [1, 2, 1]);
}

#[test]
fn a_value_larger_than_the_cache_and_a_failure_are_not_kept() {
    let world = World::on(Plan::Standard);
    let window = (NOW.plus_days(-14), NOW);
    let value = |value: u32, bytes: usize| {
        let read = in_snapshot(&world.store, &world.project, |snapshot| {
            shared(snapshot, RUNS, window, |_| Ok((value, bytes)))
        });
        *read.unwrap()
    };
    let failed = in_snapshot(&world.store, &world.project, |snapshot| {
        shared(snapshot, RUNS, window, |_| {
            Err::<(u32, usize), _>(StoreError::Corrupt {
                what: "value",
                value: String::new(),
            })
        })
    });
    assert!(failed.is_err());
    assert_eq!(value(1, 1 << 30), 1);
    assert_eq!(value(2, 4), 2);
    assert_eq!(value(3, 4), 2);
}

#[test]
fn requests_at_once_compute_a_value_once() {
    const REQUESTS: usize = 6;
    let world = World::on(Plan::Standard);
    world.import(&report("a").test("x", "f"));
    let (computed, all_here) = (AtomicUsize::new(0), Barrier::new(REQUESTS));
    let request = || {
        all_here.wait();
        let window = (NOW.plus_days(-14), NOW);
        let read = in_snapshot(&world.store, &world.project, |snapshot| {
            shared(snapshot, RUNS, window, |snapshot| {
                computed.fetch_add(1, Ordering::Relaxed);
                Ok((snapshot.observations(window.0, window.1)?.runs.len(), 8))
            })
        });
        *read.unwrap()
    };
    thread::scope(|scope| {
        let requests: Vec<_> = (0..REQUESTS).map(|_| scope.spawn(request)).collect();
        for request in requests {
            assert_eq!(request.join().unwrap(), 1);
        }
    });
    assert_eq!(computed.into_inner(), 1);
}

#[test]
fn a_page_of_signatures_is_read_once_until_something_changes() {
    let world = World::on(Plan::Standard);
    let import = |name: &str, age: i64, message: &str| {
        let recording = with_failing_test(report(name).at(age), "x", None, &[message]);
        world.import(&recording);
    };
    import("old", 20 * DAY, "boom early");
    import("new", DAY, "boom late");
    let query = |days: Days, search: Option<&str>| SignatureQuery {
        period: period(days),
        branch: None,
        category: None,
        search: search.map(str::to_owned),
        sort: SignatureSort::Occurrences,
        page: 1,
        per_page: PerPage::Ten,
    };
    let queries = [
        query(Days::Seven, None),
        query(Days::Thirty, None),
        query(Days::Thirty, Some("late")),
    ];
    let read = |store: &Database, project: &Project| {
        let pages = queries
            .iter()
            .map(|query| store.signatures(project, query).unwrap());
        pages.collect::<Vec<_>>()
    };
    let shared = || read(&world.store, &world.project);
    let fresh = || read(&world.database.connect(), &world.project);
    let totals = |pages: &[SignaturePage]| pages.iter().map(|page| page.page.total).collect::<Vec<_>>();
    let first = shared();
    assert_eq!((totals(&first), &first), (vec![1, 2, 1], &fresh()));

    // Only a program that bypasses the imports does this, so requests share the page of before.
    world
        .database
        .execute("DELETE FROM attempt WHERE message = 'boom late'");
    assert_eq!(totals(&fresh()), [0, 1, 0]);
    assert_eq!(shared(), first);
    import("newer", DAY / 2, "boom later");
    assert_eq!(shared(), fresh());
    assert_eq!(totals(&shared()), [1, 2, 1]);

    // A run that does not count in verdicts has errors, too.
    let rules = RecordingRules::IngestKey {
        backfill: false,
        pull_requests_only: true,
        budget: None,
    };
    let mut of_fork = with_failing_test(report("fork").branch("topic"), "x", None, &["late boom"]);
    of_fork.context.pull_request_number = Some(7);
    world
        .store
        .store_under(world.project.id, &of_fork, rules, NOW)
        .unwrap();
    assert_eq!(shared(), fresh());
    assert_eq!(totals(&shared()), [2, 3, 2]);

    // A signature is new if the period has its first visible occurrence, so the visible runs decide, too.
    let oldest = |pages: &[SignaturePage]| {
        pages[1]
            .signatures
            .iter()
            .map(|signature| signature.first_seen)
            .min()
    };
    let mut shorter = world.project.clone();
    shorter.visible_from = NOW.plus_days(-10);
    assert_eq!(
        read(&world.store, &shorter),
        read(&world.database.connect(), &shorter)
    );
    assert!(oldest(&read(&world.store, &shorter)) > oldest(&shared()));
    assert_eq!(shared(), fresh());
}
