//! The runs list and the branches.

use assay_domain::{
    page::{Direction, RunPosition},
    period::{Days, Period},
    run::{Outcome, RunPage, RunQuery, SomeTests},
    store::Store,
    timestamp::Timestamp,
};

use crate::fixture::*;

fn numbers(page: &RunPage) -> Vec<i32> {
    page.runs.iter().map(|run| run.run_number).collect()
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
fn the_slowest_tests_of_a_run_come_first() {
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
}
