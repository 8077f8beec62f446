//! A month of three projects.

use std::collections::BTreeMap;

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

use crate::world::{HOUR, Inbox, MINUTE, Run, START, World};

const DAYS: i64 = 30;
/// Runs of a day on the stable branch.
const RUNS_A_DAY: i64 = 6;
/// Runs on other branches for each of them.
const BRANCH_RUNS: i64 = 3;
const TESTS: usize = 80;
/// The flaky tests of each project, and the share of runs in which each fails.
const FLAKY: [(usize, f64); 3] = [(77, 0.03), (78, 0.05), (79, 0.08)];

/// A breakage of the stable branch.
struct Breakage {
    first: usize,
    tests: usize,
    runs_left: u32,
    error: String,
}

#[test]
fn a_month_sends_a_tenth_of_the_messages_of_every_failed_run_and_tells_each_breakage_at_once() {
    let world = World::new(3);
    let (mut messages, mut failed_runs, mut failed_stable_runs, mut breakages) = (0, 0, 0, 0);
    for (place, project) in world.projects.iter().enumerate() {
        let inbox = Inbox::default();
        let mut random = StdRng::seed_from_u64(17 + u64::try_from(place).unwrap());
        let mut broken: Option<Breakage> = None;
        // The failures of each run in the order of arrival, and the tests of each breakage.
        let (mut runs, mut planted): (Vec<usize>, BTreeMap<String, usize>) = (Vec::new(), BTreeMap::new());
        let between = 24 * HOUR / RUNS_A_DAY;
        for number in 0..DAYS * RUNS_A_DAY {
            let at = START.plus_ms(number * between);
            let mut flakes = || -> Vec<(usize, String)> {
                let failed = FLAKY.iter().filter(|(_, rate)| random.random_bool(*rate));
                failed
                    .map(|(test, _)| (*test, format!("flake of {test}")))
                    .collect()
            };
            let of_stable = flakes();
            let branches: Vec<_> = (0..BRANCH_RUNS).map(|_| flakes()).collect();
            // After a week, a breakage begins about every five days, the time of breakages aside.
            let is_planted = broken.is_none() && number > 7 * RUNS_A_DAY && random.random_bool(1.0 / 20.0);
            if is_planted {
                breakages += 1;
                broken = Some(Breakage {
                    first: random.random_range(0..60),
                    tests: random.random_range(1..12),
                    runs_left: random.random_range(1..7),
                    error: format!("breakage {place}-{number}"),
                });
                planted.extend(
                    broken
                        .iter()
                        .map(|breakage| (breakage.error.clone(), breakage.tests)),
                );
            }
            let mut failed = of_stable;
            if let Some(breakage) = &broken {
                let tests = breakage.first..breakage.first + breakage.tests;
                failed.extend(tests.map(|test| (test, breakage.error.clone())));
            }
            failed_stable_runs += usize::from(!failed.is_empty());
            failed_runs += usize::from(!failed.is_empty());
            let run = |branch: &str, failed| Run {
                key: format!("{branch} {number}"),
                branch: branch.to_owned(),
                commit: format!("{:x}{number:030x}", branch.bytes().map(u64::from).sum::<u64>()),
                tests: TESTS,
                failed,
            };
            runs.push(failed.len());
            world.import(project, &run("main", failed), at);
            world.pass(&inbox, at.plus_ms(MINUTE));
            if is_planted {
                let error = &broken.as_ref().unwrap().error;
                let sent = inbox.lock().unwrap();
                let groups = sent.iter().filter(|(when, _)| *when == at.plus_ms(MINUTE));
                let mut errors = groups
                    .flat_map(|(_, content)| &content.groups)
                    .map(|group| &group.error);
                assert!(
                    errors.any(|sent| sent.as_ref() == Some(error)),
                    "{error} is not sent at once"
                );
            }
            // Four in ten runs of branches fail by their own change.
            for (of_branch, place_in_day) in branches.into_iter().zip(1..) {
                let mut failed = of_branch;
                if random.random_bool(0.4) {
                    let test = random.random_range(0..76);
                    failed.push((test, format!("change {place}-{number}-{place_in_day}")));
                }
                failed_runs += usize::from(!failed.is_empty());
                runs.push(failed.len());
                let branch = format!("topic-{}-{place_in_day}", number / 3);
                let at = at.plus_ms(between / (BRANCH_RUNS + 1) * place_in_day);
                world.import(project, &run(&branch, failed), at);
                world.pass(&inbox, at.plus_ms(MINUTE));
            }
            if let Some(breakage) = &mut broken {
                breakage.runs_left -= 1;
                if breakage.runs_left == 0 {
                    broken = None;
                }
            }
        }
        world.pass(&inbox, START.plus_ms(DAYS * 24 * HOUR + HOUR));
        assert_eq!(world.unsettled(project), 0);
        let sent = inbox.lock().unwrap();
        messages += sent.len();
        let mut told: BTreeMap<String, usize> = BTreeMap::new();
        for group in sent.iter().flat_map(|(_, content)| &content.groups) {
            let sentence = &group.sentence;
            let error = group
                .error
                .as_ref()
                .and_then(|error| planted.get_key_value(error));
            if let Some((error, tests)) = error.filter(|_| sentence.contains(" broke")) {
                assert!(
                    sentence.starts_with(&format!("{tests} test")),
                    "{tests}: {sentence}"
                );
                assert!(sentence.contains(" by Ada"), "{sentence}");
                *told.entry(error.clone()).or_default() += 1;
            }
            if let Some((_, run)) = sentence.split_once("passes again on main as of run ") {
                let run: usize = run.split(' ').next().unwrap().parse().unwrap();
                assert_eq!(runs[run - 1], 0, "{sentence}");
            }
        }
        assert!(
            planted.keys().all(|error| told.get(error) == Some(&1)),
            "{planted:?}\n{told:?}"
        );
    }
    println!(
        "{breakages} breakages, {failed_runs} failed runs ({failed_stable_runs} on the stable branch), {messages} messages"
    );
    assert!(breakages >= 10, "{breakages}");
    assert!(
        messages * 10 <= failed_runs,
        "{messages} messages, {failed_runs} failed runs"
    );
}
