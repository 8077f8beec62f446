//! Measures the hot paths over many results. Run manually, with optimization:
//! `cargo test --release -p assay-repository --test it -- load --ignored --nocapture`.

use std::time::Instant;

use assay_domain::{
    observation::History,
    page::PerPage,
    period::Days,
    signature::{SignatureQuery, SignatureSort},
    store::{Recorder, Store},
    timestamp::Timestamp,
    verdict::{Judge, Judgement},
};

use crate::fixture::*;

const RUNS: i64 = 340;
const TESTS: usize = 5_000;

/// Gives every test the same verdict, so that only the store's own work is measured.
struct UniformJudge;

impl Judge for UniformJudge {
    fn judge(&self, history: &History, now: Timestamp) -> Vec<Judgement> {
        let newest: Vec<usize> = (0..history.runs.len()).rev().take(1).collect();
        let one_run = History {
            runs: history.runs.last().cloned().into_iter().collect(),
            ..history.clone()
        };
        let mut judgements = CountingJudge.judge(&one_run, now);
        for judgement in &mut judgements {
            judgement.verdict.figures.runs_in_window = history.runs.len() as u32;
            judgement.verdict.last_run = newest.first().copied();
        }
        judgements
    }
}

#[test]
#[ignore = "takes minutes; for measuring"]
fn load() {
    let world = World::new();
    let mut times = Vec::new();
    for run in 0..RUNS {
        let mut recording = report(&format!("run {run}")).at((RUNS - run) * HOUR);
        for test in 0..TESTS {
            let unlucky = (test * 31 + run as usize * 17) % 200;
            let attempts = if unlucky == 0 {
                "ff"
            } else if unlucky < 3 {
                "fp"
            } else {
                "p"
            };
            recording = recording.test(
                &format!("chromium > spec {} > test number {test}", test % 100),
                attempts,
            );
        }
        let started = Instant::now();
        world
            .store
            .record(world.project.id, &recording, &UniformJudge, NOW)
            .unwrap();
        times.push(started.elapsed());
    }
    times.sort();
    println!(
        "import of {TESTS} tests: median {:?}, slowest {:?}",
        times[times.len() / 2],
        times.last().unwrap()
    );
    world.database.execute("VACUUM ANALYZE");
    let measure = |what: &str, work: &dyn Fn()| {
        let mut times: Vec<_> = (0..20)
            .map(|_| {
                let started = Instant::now();
                work();
                started.elapsed()
            })
            .collect();
        times.sort();
        println!("{what}: median {:?}, slowest {:?}", times[10], times[19]);
    };
    let store = &world.store;
    let project = &world.project;
    let name = any_file("chromium > spec 7 > test number 7");
    let run = store.runs(project, &run_query()).unwrap().runs[0].id;
    let query = SignatureQuery {
        period: period(Days::Thirty),
        branch: None,
        category: None,
        search: None,
        sort: SignatureSort::Occurrences,
        page: 1,
        per_page: PerPage::Ten,
    };
    measure("observations of 14 days", &|| drop(world.history(14)));
    measure("runs", &|| drop(store.runs(project, &run_query()).unwrap()));
    measure("branches", &|| drop(store.branches(project).unwrap()));
    measure("run detail", &|| drop(store.run(project, run).unwrap()));
    measure("attempts", &|| drop(store.attempts(project, run, &name).unwrap()));
    measure("history", &|| {
        drop(store.history(project, &name, &period(Days::Thirty)).unwrap())
    });
    measure("verdict", &|| drop(store.verdict(project, &name).unwrap()));
    measure("signature", &|| {
        drop(
            store
                .signature(project, &fingerprint("it broke"), &period(Days::Thirty))
                .unwrap(),
        );
    });
    measure("signatures", &|| drop(store.signatures(project, &query).unwrap()));
    let sizes = "SELECT relname || ' ' || pg_total_relation_size(oid) / greatest(reltuples, 1)::bigint || ' bytes a row, ' || reltuples \
         FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY pg_total_relation_size(oid) DESC LIMIT 6";
    for size in world.database.texts(sizes) {
        println!("{}", size.unwrap());
    }
}
