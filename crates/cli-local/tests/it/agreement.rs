//! Compares the collector's observations with the builder of the engine's own crate.

use assay_cli_local::analysis::{Collector, read_csv};
use assay_domain::{attempt::AttemptStatus, test::TestName, verdict::Judge as _};
use assay_flakiness::{Engine, HistoryBuilder, ObservedAttempt, ObservedRun};
use proptest::prelude::*;

/// One result: run, test, variant, and its attempts.
type Sample = (usize, usize, usize, Vec<(AttemptStatus, Option<u64>)>);

fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let status = prop::sample::select(AttemptStatus::ALL.to_vec());
    let attempts = prop_oneof![
        3 => Just(vec![(AttemptStatus::Passed, Some(5))]),
        1 => prop::collection::vec((status, prop::option::of(0_u64..90_000)), 1..4),
    ];
    let result = (0..24_usize, 0..6_usize, 0..2_usize, attempts);
    prop::collection::btree_map((0..24_usize, 0..6_usize, 0..2_usize), result, 1..160).prop_map(|results| {
        results
            .into_iter()
            .map(|((run, test, variant), (.., attempts))| (run, test, variant, attempts))
            .collect()
    })
}

fn started_at(run: usize) -> String {
    format!("2026-11-{:02}T{:02}:00:00Z", 1 + run / 2, 6 + run % 2 * 9)
}

fn branch(run: usize) -> &'static str {
    ["main", "main", "feature"][run % 3]
}

proptest! {
    /// For any order of the rows, the verdicts and their evidence equal the engine's on the same results.
    #[test]
    fn rows_in_any_order_are_judged_as_by_the_builder(samples in samples(), seed in any::<u64>()) {
        let mut builder = HistoryBuilder::new("main");
        let mut rows = Vec::new();
        for (run, test, variant, attempts) in &samples {
            let name = TestName { name: format!("test {test}"), file_path: (*test > 3).then(|| "a.ts".to_owned()) };
            let observed = ObservedRun {
                started_at: started_at(*run).parse().unwrap(),
                id: format!("r{run}"),
                branch: Some(branch(*run).to_owned()),
                revision: (run % 4 > 0).then(|| format!("rev{}", run / 3)),
                variant: ["", "arm"][*variant].to_owned(),
            };
            builder.observe(&observed, &name, attempts.iter().map(|(status, duration_ms)| ObservedAttempt { status: *status, duration_ms: *duration_ms }));
            for (retry, (status, duration_ms)) in attempts.iter().enumerate() {
                rows.push(format!(
                    "{},{},{},{},{status},{},{},{},{retry},{}",
                    name.name, name.file_path.as_deref().unwrap_or_default(), observed.id, started_at(*run), branch(*run),
                    observed.revision.as_deref().unwrap_or_default(), observed.variant,
                    duration_ms.map(|ms| ms.to_string()).unwrap_or_default(),
                ));
            }
        }
        let mut state = seed | 1;
        rows.sort_by_cached_key(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state
        });
        let text = format!("test,file,run,started_at,status,branch,revision,variant,retry,duration_ms\n{}\n", rows.join("\n"));
        let mut collector = Collector::new("main");
        prop_assert_eq!(read_csv(&mut collector, "h.csv", text.as_bytes()).unwrap(), rows.len() as u64);
        let analysis = collector.judge(None).unwrap();

        let (history, names) = builder.build();
        let newest = history.runs.iter().map(|run| run.run.started_at).max().unwrap();
        prop_assert_eq!(analysis.now, newest);
        let expected = Engine::default().judge(&history, newest);
        prop_assert_eq!(analysis.tests.len(), expected.len());
        for judgement in expected {
            let name = &names[judgement.verdict.test as usize];
            let judged = analysis.tests.iter().find(|judged| judged.entry.test_name == name.name && judged.entry.file_path == name.file_path).unwrap();
            prop_assert_eq!(&judged.entry.figures, &judgement.verdict.figures);
            prop_assert_eq!(judged.entry.status, judgement.verdict.status);
            prop_assert_eq!(&judged.entry.explanation, &judgement.verdict.explanation);
            prop_assert_eq!(judged.entry.evidence.as_ref(), Some(&judgement.evidence));
            prop_assert_eq!(judged.entry.last_run.is_some(), judgement.verdict.last_run.is_some());
        }
    }
}
