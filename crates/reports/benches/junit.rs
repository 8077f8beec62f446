//! How fast JUnit XML is read: whole, from bytes to the report, in cases a second.
#![allow(missing_docs, reason = "criterion's macros make public items")]

use std::{fmt::Write, hint::black_box};

use assay_reports::{Options, SourceFile, read};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

const CASES: u64 = 20_000;

/// A report of 2.5 MB as pytest writes it, every hundredth case failed.
fn pytest() -> String {
    let mut xml = String::from(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><testsuites name=\"pytest tests\"><testsuite name=\"pytest\" errors=\"0\" \
         failures=\"200\" skipped=\"0\" tests=\"20000\" time=\"9.126\" timestamp=\"2026-11-20T19:11:37.779883+00:00\" \
         hostname=\"runner-1\">",
    );
    for case in 0..CASES {
        let file = case / 50;
        let _ = write!(
            xml,
            "<testcase classname=\"tests.unit.test_orders_{file}.TestOrders\" name=\"test_total[{case}]\" \
             file=\"tests/unit/test_orders_{file}.py\" time=\"0.00{}\"",
            case % 10
        );
        if case.is_multiple_of(100) {
            let _ = write!(
                xml,
                "><failure message=\"AssertionError: assert 1250 == {case}\">def test_total():\n&gt;       assert total() == {case}\n\
                 E       AssertionError: assert 1250 == {case}\n\ntests/unit/test_orders_{file}.py:15: AssertionError</failure></testcase>"
            );
        } else {
            xml.push_str(" />");
        }
    }
    xml.push_str("</testsuite></testsuites>");
    xml
}

fn reading(criterion: &mut Criterion) {
    let bytes = pytest().into_bytes();
    let mut group = criterion.benchmark_group("junit");
    group.throughput(Throughput::Elements(CASES));
    group.bench_function(format!("{CASES} cases, {} bytes", bytes.len()), |bencher| {
        bencher.iter_batched(
            || {
                vec![SourceFile {
                    name: "junit.xml".into(),
                    bytes: bytes.clone(),
                    modified: None,
                }]
            },
            |files| black_box(read(files, &Options::default())),
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

criterion_group!(benches, reading);
criterion_main!(benches);
