//! The runs list and the branches.

use assay_domain::{
    page::{Direction, RunPosition},
    period::{Days, Period},
    run::{Outcome, RunPage, RunQuery, ShardCount, SomeTests},
    store::Store,
    timestamp::Timestamp,
};

use crate::fixture::*;

fn numbers(page: &RunPage) -> Vec<i32> {
    page.runs.iter().map(|run| run.run_number).collect()
}

#[test]
fn a_row_has_the_figures_of_its_run() {
    let world = World::new();
    let mut recording = report("a")
        .test("clean", "p")
        .test("recovered", "fp")
        .test("failed", "ff")
        .test("late", "t")
        .test("off", "s");
    recording.context.tested_revision = Some("beef".to_owned());
    recording.context.pull_request_number = Some(7);
    let imported = world.import(&recording);
    let page = world.store.runs(&world.project, &run_query()).unwrap();
    let row = &page.runs[0];
    assert_eq!((page.total, page.has_older, page.has_newer), (1, false, false));
    assert_eq!((row.id, row.run_number), (imported.run_id, 1));
    assert_eq!(row.branch.as_deref(), Some("main"));
    assert_eq!(row.commit_sha.as_deref(), Some("c0ffee"));
    assert_eq!(
        (row.tested_revision.as_deref(), row.pull_request_number),
        (Some("beef"), Some(7))
    );
    assert_eq!(row.status, Some(Outcome::Failed));
    assert_eq!(
        (row.started_at, row.finished_at),
        (recording.started_at, recording.finished_at)
    );
    assert_eq!(row.duration_ms, Some(10 * MINUTE));
    assert_eq!(row.shards, None);
    let counts = row.counts;
    assert_eq!(
        (
            counts.total,
            counts.passed,
            counts.failed,
            counts.skipped,
            counts.recovered
        ),
        (5, 2, 2, 1, 1)
    );
    assert_eq!(counts, imported.counts);
}

#[test]
fn filters_narrow_the_list() {
    let world = World::new();
    let mut mixed = report("b").at(2 * HOUR).branch("Feature").test("x", "f");
    mixed.context.commit_sha = Some("ABCDEF01".to_owned());
    mixed.context.tested_revision = Some("1234abcd".to_owned());
    world.import(&report("a").at(3 * HOUR).test("x", "p"));
    world.import(&mixed);
    world.import(&report("c").at(HOUR).branch("feature").shard(1, 2).test("x", "p"));
    world.import(&report("old").at(31 * DAY).test("x", "p"));
    let list = |query: RunQuery| {
        let page = world.store.runs(&world.project, &query).unwrap();
        assert_eq!(page.total, page.runs.len() as u64);
        numbers(&page)
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(list(run_query()), [3, 2, 1]);
    assert_eq!(
        list(RunQuery {
            branch: text("feature"),
            ..run_query()
        }),
        [3],
        "exactly, with its case"
    );
    assert_eq!(
        list(RunQuery {
            branch: text("feat"),
            ..run_query()
        }),
        Vec::<i32>::new()
    );
    assert_eq!(
        list(RunQuery {
            branch: text("a\0b"),
            ..run_query()
        }),
        Vec::<i32>::new()
    );
    assert_eq!(
        list(RunQuery {
            sha: text("abcdef"),
            ..run_query()
        }),
        [2]
    );
    assert_eq!(
        list(RunQuery {
            sha: text("1234"),
            ..run_query()
        }),
        [2],
        "the tested revision, too"
    );
    assert_eq!(
        list(RunQuery {
            sha: text("bcde"),
            ..run_query()
        }),
        Vec::<i32>::new(),
        "from its start"
    );
    assert_eq!(
        list(RunQuery {
            status: Some(Outcome::Failed),
            ..run_query()
        }),
        [2]
    );
    assert_eq!(
        list(RunQuery {
            status: Some(Outcome::Passed),
            ..run_query()
        }),
        [1],
        "an unknown outcome is neither"
    );
    let shards = world.store.runs(&world.project, &run_query()).unwrap().runs[0].shards;
    assert_eq!(
        shards,
        Some(ShardCount {
            received: 1,
            expected: Some(2)
        })
    );
}

#[test]
fn pages_are_complete_among_ties_in_both_directions() {
    let world = World::new();
    // 23 runs, all but three of them at the same instant.
    for index in 0..23 {
        let before = if index % 8 == 7 {
            i64::from(index) * MINUTE
        } else {
            HOUR
        };
        world.import(&report(&format!("run {index}")).at(before).test("x", "p"));
    }
    let page = |position, direction| {
        let query = RunQuery {
            position,
            direction,
            ..run_query()
        };
        world.store.runs(&world.project, &query).unwrap()
    };
    let edge = |run: &assay_domain::run::RunRow| {
        Some(RunPosition {
            started_at: run.started_at,
            number: run.run_number,
        })
    };
    let mut numbers_seen = Vec::new();
    let mut pages = vec![page(None, Direction::Next)];
    loop {
        let last = pages.last().unwrap();
        assert_eq!(last.total, 23);
        assert_eq!(last.has_newer, pages.len() > 1);
        numbers_seen.extend(last.runs.iter().map(|run| (run.started_at, run.run_number)));
        if !last.has_older {
            break;
        }
        pages.push(page(edge(last.runs.last().unwrap()), Direction::Next));
    }
    assert_eq!(
        pages.iter().map(|page| page.runs.len()).collect::<Vec<_>>(),
        [10, 10, 3]
    );
    let mut ordered = numbers_seen.clone();
    ordered.sort_unstable_by(|a, b| b.cmp(a));
    ordered.dedup();
    assert_eq!(ordered, numbers_seen, "newest first, each once");

    let back = page(edge(&pages[2].runs[0]), Direction::Prev);
    assert_eq!(numbers(&back), numbers(&pages[1]));
    assert!(back.has_newer && back.has_older);
    let first = page(edge(&back.runs[0]), Direction::Prev);
    assert_eq!(numbers(&first), numbers(&pages[0]));
    assert!(!first.has_newer && first.has_older);

    // A newer run arrives: pages by position neither repeat nor skip.
    world.import(&report("new").at(0).test("x", "p"));
    let again = page(edge(pages[0].runs.last().unwrap()), Direction::Next);
    assert_eq!(numbers(&again), numbers(&pages[1]));
    assert!(page(edge(&pages[0].runs[0]), Direction::Prev).runs.len() == 1);
}

#[test]
fn has_older_and_newer_hold_under_the_filters() {
    let world = World::new();
    for (index, branch) in ["a", "b", "a"].into_iter().enumerate() {
        world.import(
            &report(branch)
                .content(index as u8)
                .replacing()
                .at((3 - index as i64) * HOUR)
                .branch(branch)
                .test("x", "p"),
        );
    }
    // The second import on `a` replaced the first, so there are two runs.
    let page = world.store.runs(&world.project, &run_query()).unwrap();
    let position = page
        .runs
        .iter()
        .find(|run| run.branch.as_deref() == Some("b"))
        .unwrap();
    let position = Some(RunPosition {
        started_at: position.started_at,
        number: position.run_number,
    });
    let only = |branch: &str, direction| {
        let query = RunQuery {
            branch: Some(branch.to_owned()),
            position,
            direction,
            ..run_query()
        };
        let page = world.store.runs(&world.project, &query).unwrap();
        (page.runs.len(), page.has_older, page.has_newer)
    };
    assert_eq!(only("b", Direction::Next), (0, false, false));
    assert_eq!(only("b", Direction::Prev), (0, false, false));
    assert_eq!(only("a", Direction::Prev), (1, false, false));
}

#[test]
fn branches_are_in_alphabetical_order_whatever_their_case() {
    let world = World::new();
    for (index, branch) in [
        "main", "Zeta", "alpha", "ärger", "main", "_x", "Main", "zebra", "ΑΣ", "ας", "Ärzte",
    ]
    .into_iter()
    .enumerate()
    {
        world.import(&report(&format!("{index}")).branch(branch).test("x", "p"));
    }
    let mut without = report("none").test("x", "p");
    without.context.branch = None;
    world.import(&without);
    assert_eq!(
        world.store.branches(&world.project).unwrap().names,
        [
            "_x", "alpha", "Main", "main", "zebra", "Zeta", "ärger", "Ärzte", "ΑΣ", "ας"
        ]
    );
}

#[test]
fn the_total_is_that_of_any_period_to_the_millisecond() {
    let world = World::new();
    let midnight = NOW.unix_ms().div_euclid(DAY) * DAY;
    // Close to the limits of days, two of one kind on one of them, and one outside of all whole days.
    let starts = [
        -3 * DAY,
        -3 * DAY - 1,
        -2 * DAY,
        -2 * DAY + 1,
        -2 * DAY + HOUR,
        -DAY - 1,
        -DAY,
        -1,
        0,
    ];
    let mut stored = Vec::new();
    for (place, start) in starts.into_iter().enumerate() {
        let at = Timestamp::from_unix_ms(midnight + start);
        let branch = ["main", "topic"][place % 2];
        let name = format!("run {place}");
        // Every third lacks a shard, so its outcome is unknown.
        let (status, recording) = match place % 3 {
            0 => (Some(Outcome::Passed), report(&name).test("x", "p")),
            1 => (Some(Outcome::Failed), report(&name).test("x", "f")),
            _ => (None, report(&name).shard(1, 2).test("x", "p")),
        };
        let mut recording = recording.branch(branch);
        recording.started_at = at;
        world.import(&recording);
        stored.push((at, status, branch));
    }
    let bounds: Vec<i64> = (-4..1)
        .flat_map(|day| [-1, 0, 2 * HOUR].map(|ms| midnight + day * DAY + ms))
        .collect();
    let periods = bounds.iter().enumerate().flat_map(|(place, from)| {
        let ends = bounds.get(place..).unwrap_or_default();
        ends.iter().map(|to| (*from, *to))
    });
    for (from, to) in periods {
        let period = Period {
            days: Days::Seven,
            from: Timestamp::from_unix_ms(from),
            to: Timestamp::from_unix_ms(to),
        };
        for status in [None, Some(Outcome::Passed), Some(Outcome::Failed)] {
            for branch in [None, Some("topic")] {
                let is_asked = |(at, ended, on): &&(Timestamp, Option<Outcome>, &str)| {
                    (period.from..=period.to).contains(at)
                        && (status.is_none() || status == *ended)
                        && branch.is_none_or(|branch| branch == *on)
                };
                let query = RunQuery {
                    period,
                    status,
                    branch: branch.map(str::to_owned),
                    ..run_query()
                };
                let page = world.store.runs(&world.project, &query).unwrap();
                let expected = stored.iter().filter(is_asked).count();
                assert_eq!(page.total, expected as u64, "{query:?}");
                assert_eq!(page.runs.len(), expected, "{query:?}");
            }
        }
    }
}

#[test]
fn some_tests_of_a_run_are_a_part_of_all() {
    let world = World::new();
    let mut recording = report("a").test("b", "fp").test("a", "f").test("c", "p");
    for test in ["d", "a", "B", "\u{e9}"] {
        recording = recording
            .test_in(test, Some("z.test.ts"), "p")
            .test_in(test, Some("Y.test.ts"), "f");
    }
    let imported = world.import(&recording);
    let all = world.detail(&imported);
    let some = |tests: &SomeTests| {
        let run = world.store.run_with(&world.project, imported.run_id, tests);
        let run = run.unwrap().unwrap();
        assert_eq!((&run.run, run.counts, &run.rest), (&all.run, all.counts, &None));
        run.tests
    };
    for limit in [1_u32, 3, 4, 100] {
        for offset in 0..all.tests.len() + 1 {
            let page = SomeTests::Page {
                offset: offset as u64,
                limit,
            };
            let expected: Vec<_> = all
                .tests
                .iter()
                .skip(offset)
                .take(limit as usize)
                .cloned()
                .collect();
            assert_eq!(some(&page), expected, "{limit} from {offset}");
        }
    }
    assert_eq!(some(&SomeTests::Of(Vec::new())), []);
    // The first three tests of the report.
    let first = some(&SomeTests::Of(vec![0, 1, 2]));
    let names: Vec<&str> = first.iter().map(|test| test.test_name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(some(&SomeTests::Of(vec![77])), []);
    let other = world.another_project("other");
    let foreign = world
        .store
        .run_with(&other, imported.run_id, &SomeTests::Of(vec![0]));
    assert_eq!(foreign.unwrap(), None);
}

#[test]
fn the_slowest_tests_and_the_longest_runs_come_first() {
    let world = World::new();
    let mut recording = report("a");
    for test in ["a", "b", "c", "d"] {
        recording = recording.test(test, "p");
    }
    for (test, duration) in recording.tests.iter_mut().zip([Some(5), None, Some(7), Some(5)]) {
        test.attempts[0].attempt.duration_ms = duration;
    }
    let imported = world.import(&recording);
    let slowest = |offset, limit| -> Vec<String> {
        let page = SomeTests::Slowest { offset, limit };
        let run = world.store.run_with(&world.project, imported.run_id, &page);
        run.unwrap()
            .unwrap()
            .tests
            .into_iter()
            .map(|test| test.test_name)
            .collect()
    };
    assert_eq!(slowest(0, 10), ["c", "a", "d", "b"]);
    assert_eq!(slowest(1, 2), ["a", "d"]);
    assert_eq!(slowest(4, 2), [""; 0]);

    for (key, branch, minutes) in [("b", "topic", 30), ("c", "main", 20), ("d", "main", 40)] {
        let mut run = report(key).at(HOUR).branch(branch).test("a", "p");
        run.finished_at = Some(Timestamp::from_unix_ms(
            run.started_at.unix_ms() + minutes * MINUTE,
        ));
        world.import(&run);
    }
    let mut query = run_query();
    let longest = |query: &RunQuery| -> Vec<i32> {
        let runs = world.store.longest_runs(&world.project, query).unwrap();
        runs.iter().map(|run| run.run_number).collect()
    };
    assert_eq!(longest(&query), [4, 2, 3, 1]);
    query.branch = Some("main".to_owned());
    assert_eq!(longest(&query), [4, 3, 1]);
    query.branch = Some("none\0".to_owned());
    assert_eq!(longest(&query), [0; 0]);
}
