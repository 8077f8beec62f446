//! Measures how fast reports are read, in report bytes per second.
#![allow(missing_docs, reason = "criterion's macros make public items")]

use std::hint::black_box;

use assay_reports::{Options, SourceFile, looks_like_report, read};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use serde_json::{Value, json};

/// A Playwright report of `tests` tests. Every fiftieth test failed twice before it passed.
fn playwright(tests: usize) -> Vec<u8> {
    let error = json!({
        "message": "Error: expect(received).toBe(expected)\n\nExpected: 201\nReceived: 503\n\n  17 | a\n> 18 | b\n     | ^\n  19 | c\n    at /r/tests/a.spec.ts:18:24",
        "location": {"file": "/r/tests/a.spec.ts", "line": 18, "column": 24},
    });
    let spec = |index: usize| -> Value {
        let result = |retry: usize, status: &str| {
            let errors = if status == "failed" {
                vec![error.clone()]
            } else {
                vec![]
            };
            json!({"workerIndex": 0, "status": status, "duration": 135, "errors": errors, "retry": retry,
                   "startTime": "2026-11-20T18:57:52.278Z", "stdout": [], "stderr": [], "attachments": []})
        };
        let flaky = index.is_multiple_of(50);
        let results = if flaky {
            vec![result(0, "failed"), result(1, "failed"), result(2, "passed")]
        } else {
            vec![result(0, "passed")]
        };
        json!({"title": format!("adds item {index}"), "ok": true, "tags": [], "id": format!("id-{index}"), "file": "a.spec.ts", "line": 3, "column": 5,
               "tests": [{"timeout": 30000, "annotations": [], "expectedStatus": "passed", "projectName": "chromium", "results": results,
                          "status": if flaky { "flaky" } else { "expected" }}]})
    };
    let specs: Vec<Value> = (0..tests).map(spec).collect();
    json!({"config": {"rootDir": "/r/tests"}, "suites": [{"title": "a.spec.ts", "file": "a.spec.ts", "specs": specs}], "errors": []})
        .to_string()
        .into_bytes()
}

fn reading(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("read");
    group.sample_size(20);
    let file = |bytes: Vec<u8>| SourceFile {
        name: "report.json".into(),
        bytes,
        modified: None,
    };
    let real = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/reports");
    let mut samples = vec![("playwright, 10,000 tests".to_owned(), playwright(10_000))];
    for name in [
        "playwright/full.json",
        "ctrf/playwright-full.json",
        "jest/jest.json",
    ] {
        let bytes = std::fs::read(format!("{real}/{name}"));
        samples.extend(bytes.map(|bytes| (name.to_owned(), bytes)));
    }
    for (name, bytes) in samples {
        group.throughput(Throughput::Bytes(u64::try_from(bytes.len()).unwrap_or(u64::MAX)));
        group.bench_function(name.clone(), |bencher| {
            bencher.iter_batched(
                || vec![file(bytes.clone())],
                |files| {
                    black_box(read(
                        files,
                        &Options {
                            root: Some("/r"),
                            ..Options::default()
                        },
                    ))
                },
                BatchSize::LargeInput,
            );
        });
        group.bench_function(format!("{name}, recognised"), |bencher| {
            bencher.iter(|| black_box(looks_like_report(&bytes)))
        });
    }
    group.finish();
}

criterion_group!(benches, reading);
criterion_main!(benches);
