//! Results in blocks: the view for people with SQL, its documented examples, and a plain map of results that random imports,
//! parts, shards, replacements, prunings and rebuilds must equal.

use std::collections::{BTreeMap, BTreeSet};

use assay_domain::{
    period::Days,
    plan::Plan,
    recording::Recording,
    store::{Administration, Recorder, Store},
    test::TestLookup,
};
use proptest::{prelude::*, test_runner::TestRunner};

use crate::fixture::*;

/// Tests of the project: three blocks, the last one not full.
const TESTS: u32 = 1_200;

/// An import: the tests of one residue class modulo 7, the shard or the part, without those that a filter leaves out.
#[derive(Debug, Clone)]
enum Step {
    Import {
        run: u8,
        class: u32,
        /// The first and the last test, and the share of tests between them that run: one of this many.
        range: (u32, u32),
        every: u32,
        hours: i64,
        duration_ms: u64,
        browser: Option<&'static str>,
    },
    Prune,
    Rebuild,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Some runs are past the retention of 60 days.
    let hours = prop_oneof![8 => 0i64..100, 1 => (59i64 * 24)..(62 * 24)];
    let duration = prop_oneof![0u64..5_000, Just(u64::from(u32::MAX)), Just(3_000_000_000_000)];
    let browser = prop_oneof![3 => Just(None), 1 => Just(Some("firefox")), 1 => Just(Some("webkit"))];
    let import = (
        0u8..4,
        0u32..3,
        (0..TESTS, 0..TESTS),
        prop_oneof![Just(1u32), Just(3), Just(40)],
        hours,
        duration,
        browser,
    )
        .prop_map(
            |(run, class, range, every, hours, duration_ms, browser)| Step::Import {
                run,
                class,
                range: (range.0.min(range.1), range.0.max(range.1)),
                every,
                hours,
                duration_ms,
                browser,
            },
        );
    prop::collection::vec(
        prop_oneof![8 => import, 1 => Just(Step::Prune), 1 => Just(Step::Rebuild)],
        1..9,
    )
}

/// A test's result in a run: status, duration, attempts, browser. The map's key is the test's name.
type Results = BTreeMap<String, (String, Option<u64>, u32, Option<String>)>;

/// The results of a recording whose tests no other part of its run has.
fn results(recording: &Recording) -> Results {
    let result = |test: &assay_domain::recording::RecordedTest| {
        let last = test.attempts.iter().last().unwrap();
        let result = (
            format!("{:?}", last.attempt.status),
            last.attempt.duration_ms,
            u32::try_from(test.attempts.iter().count()).unwrap(),
            last.attempt.browser.clone(),
        );
        (test.test.name.clone(), result)
    };
    recording.tests.iter().map(result).collect()
}

/// The starts of these results, in milliseconds of Unix time.
fn starts(recording: &Recording) -> BTreeMap<String, Option<i64>> {
    let start = |test: &assay_domain::recording::RecordedTest| {
        let start = test.attempts.iter().last().unwrap().attempt.started_at;
        (test.test.name.clone(), start.map(|start| start.unix_ms()))
    };
    recording.tests.iter().map(start).collect()
}

/// The recording of a step. The first two runs have shards, which later imports replace. The others have parts of several
/// attempts of a job.
fn recording(step: &Step, salt: usize) -> Option<Recording> {
    let Step::Import {
        run,
        class,
        range,
        every,
        hours,
        duration_ms,
        browser,
    } = step
    else {
        return None;
    };
    let mut recording = report(&format!("run {run}")).at(hours * HOUR);
    if *run < 2 {
        recording = recording.shard(class + 1, 3).replacing();
    } else {
        recording.sender.attempt.of_job = salt as u64;
    }
    recording.content[29] = salt as u8;
    recording.content[28] = 9;
    for test in (range.0..=range.1).filter(|test| test % 3 == *class && test / 3 % every == 0) {
        let attempts = match test % 31 {
            0 => "fp",
            1 => "ff",
            2 => "s",
            _ => "p",
        };
        recording = recording.test(&format!("test {test}"), attempts);
        for attempt in recording.tests.last_mut().unwrap().attempts.iter_mut() {
            attempt.attempt.duration_ms = (test % 5 > 0).then_some(duration_ms + u64::from(test));
            attempt.attempt.browser = browser.map(str::to_owned);
            attempt.attempt.started_at =
                (test % 2 == 0).then(|| recording.started_at.plus_ms(i64::from(test)));
        }
    }
    Some(recording)
}

#[test]
fn blocks_equal_a_plain_map_of_results() {
    let world = World::on(Plan::Standard);
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 12,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    runner
        .run(&steps(), |steps| {
            let case = world.store.all_projects().unwrap().len();
            let project = world.another_project(&format!("case {case}"));
            let import = |recording: &Recording| {
                world.store.record(project.id, recording, &CountingJudge, NOW).unwrap()
            };
            // Numbers all tests in their order.
            let all = (0..TESTS).fold(report("all"), |all, test| all.test(&format!("test {test}"), "p"));
            let mut ids = BTreeMap::from([(u8::MAX, import(&all).run_id)]);
            let mut runs = BTreeMap::from([(u8::MAX, BTreeMap::from([(0, all)]))]);
            for (salt, step) in steps.iter().enumerate() {
                match (recording(step, salt), step) {
                    (Some(recording), Step::Import { run, class, .. }) => {
                        let shards: &mut BTreeMap<u32, Recording> = runs.entry(*run).or_default();
                        // Of a run with parts, each class of tests is in one part, so that no part continues another one.
                        if *run < 2 || !shards.contains_key(class) {
                            ids.insert(*run, import(&recording).run_id);
                            shards.insert(*class, recording);
                        }
                    }
                    (None, Step::Rebuild) => {
                        prop_assert_eq!(world.rebuild(project.id).runs_changed, 0);
                    }
                    _ => {
                        drop(world.prune(false));
                        let visible = |shards: &BTreeMap<u32, Recording>| {
                            let start = shards.values().map(|recording| recording.started_at).min();
                            start.unwrap() >= NOW.plus_days(-60)
                        };
                        runs.retain(|_, shards| visible(shards));
                    }
                }
            }
            // A run that once had a shard of weeks ago has lost the starts of the others.
            let is_far = |step: &&Step| matches!(step, Step::Import { hours, .. } if *hours > 100);
            let far = steps.iter().filter(is_far).filter_map(|step| match step {
                Step::Import { run, .. } => ids.get(run).map(|id| id.to_string()),
                Step::Prune | Step::Rebuild => None,
            });
            let far: BTreeSet<String> = far.collect();
            let without_lost_start = |row: String| match row.split_once(' ') {
                Some((id, _)) if far.contains(id) => row.rsplit_once(' ').unwrap().0.to_owned(),
                _ => row,
            };
            let stored: BTreeSet<String> = world.database.texts(&format!(
                "SELECT run.id || ' ' || test.name || ' ' || result.status || ' ' || coalesce(result.duration_ms::text, '-') || ' ' || \
                     greatest(attempts, 1) || ' ' || coalesce(browser.name, '-') || ' ' || \
                     coalesce(((extract(epoch FROM result.started_at) * 1000)::bigint + start_offset_ms)::text, '-') \
                 FROM result JOIN test ON test.project_id = result.project_id AND ordinal = test \
                 JOIN run ON run.project_id = result.project_id AND number = run_number \
                 LEFT JOIN browser ON browser.project_id = result.project_id AND browser.ordinal = result.browser \
                 WHERE result.project_id = '{}'",
                project.id
            )).into_iter().flatten().map(without_lost_start).collect();
            let mut expected = BTreeSet::new();
            for (run, shards) in &runs {
                let id = ids[run];
                let of_run: Results = shards.values().flat_map(results).collect();
                let starts: BTreeMap<_, _> = shards.values().flat_map(starts).collect();
                let first = shards.values().map(|recording| recording.started_at.unix_ms()).min().unwrap();
                for (name, (status, duration_ms, attempts, browser)) in &of_run {
                    let code = ["Passed", "Failed", "TimedOut", "Skipped", "Interrupted"].iter().position(|word| word == status);
                    let duration = duration_ms.map_or("-".to_owned(), |ms| ms.to_string());
                    let browser = browser.as_deref().unwrap_or("-");
                    // A start more than six days away from the run's is not stored.
                    let start = starts[name].filter(|ms| ms - first <= 1 << 29);
                    let start = start.map_or("-".to_owned(), |ms| ms.to_string());
                    let status = code.unwrap();
                    let row = format!("{id} {name} {status} {duration} {attempts} {browser} {start}");
                    expected.insert(without_lost_start(row));
                }
                // The programs read the same.
                let visible = world.store.run(&project, id).unwrap();
                let Some(detail) = visible else { continue };
                let read: Results = detail.tests.iter().map(|test| {
                    (test.test_name.clone(), (format!("{:?}", test.status), test.duration_ms, test.attempts, test.browser_name.clone()))
                }).collect();
                prop_assert!(read == of_run, "run {run}");
            }
            prop_assert_eq!(stored, expected);
            for test in [0, 511, 512, 700, TESTS - 1] {
                let name = format!("test {test}");
                let lookup = world.store.history(&project, &any_file(&name), &period(Days::Thirty)).unwrap();
                let TestLookup::Found(history) = lookup else { panic!("{name} is missing") };
                let read: BTreeSet<_> = history.occurrences.iter()
                    .map(|occurrence| (occurrence.run_id, format!("{:?}", occurrence.status), occurrence.duration_ms)).collect();
                let in_period = |shards: &BTreeMap<u32, Recording>| {
                    shards.values().map(|recording| recording.started_at).min().unwrap() >= NOW.plus_days(-30)
                };
                let expected: BTreeSet<_> = runs.iter().filter(|(_, shards)| in_period(shards)).filter_map(|(run, shards)| {
                    let of_run: Results = shards.values().flat_map(results).collect();
                    let (status, duration_ms, ..) = of_run.get(&name)?.clone();
                    Some((ids[run], status, duration_ms))
                }).collect();
                prop_assert_eq!(read, expected);
            }
            Ok(())
        })
        .unwrap();
}

/// The statements in a page of the documents.
fn examples(page: &str) -> Vec<String> {
    let blocks = page.split("```sql\n").skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap().to_owned())
        .collect()
}

#[test]
fn the_documented_statements_on_results_answer() {
    let world = World::new();
    let mut slow = report("a")
        .test("slow", "p")
        .test("fast", "p")
        .test("broken", "f")
        .test("off", "s");
    slow.tests[0].attempts[0].attempt.duration_ms = Some(9_000);
    world.import(&slow);
    world.import(&report("b").at(3 * HOUR).test("slow", "p").test("broken", "p"));
    // The examples are about the last week.
    let days = "SELECT extract(day FROM now() - max(started_at))::integer::text FROM run";
    let days: i64 = world.database.text(days).unwrap().parse().unwrap();
    let [slowest, by_hour, flaky] = examples(include_str!("../../../../docs/storage.md"))
        .try_into()
        .unwrap();
    let recent = |sql: &str| {
        assert!(sql.contains("now() - interval '7 days'"), "{sql}");
        sql.replace(
            "now() - interval '7 days'",
            &format!("now() - interval '{} days'", days + 7),
        )
        .replace("'storefront'", "'web'")
        .trim()
        .trim_end_matches(';')
        .to_owned()
    };
    let rows = |sql: &str, row: &str| {
        world
            .database
            .texts(&format!("SELECT {row} FROM ({}) AS example", recent(sql)))
    };
    let slow = rows(&slowest, "name || ' ' || milliseconds");
    assert_eq!(slow[0].as_deref(), Some("slow 9100"));
    assert_eq!(slow.len(), 4);
    let failed: Vec<_> = rows(&by_hour, "failed || ' of ' || ran");
    assert_eq!(failed, [Some("0 of 2".to_owned()), Some("1 of 3".to_owned())]);
    world.import(&report("c").at(4 * HOUR).test("fast", "f"));
    let of_project = flaky.replace("'storefront'", "'web'");
    let flaky = of_project.trim().trim_end_matches(';');
    let lost = format!("SELECT name || ' ' || (time_lost_ms IS NOT NULL) FROM ({flaky}) AS example");
    assert_eq!(world.database.texts(&lost), [Some("fast true".to_owned())]);
}
