//! Measures how fast JUnit XML is read, in cases per second.
//!
//! The time covers everything from the bytes in memory to the neutral report: detection of the format, decoding, and
//! the parts of each test. It does not cover the copy of the bytes before and the drop of the report after, about a
//! sixth more. One thread reads a file; several files are read in parallel.
#![allow(missing_docs, reason = "criterion's macros make public items")]

use std::{fmt::Write, hint::black_box};

use assay_reports::{Options, SourceFile, read};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

const CASES: u64 = 20_000;

/// A report of 2.5 MB in pytest's form; every hundredth case failed.
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
    for files in [1, 8] {
        group.throughput(Throughput::Elements(CASES * files));
        let name = format!("{files} x {CASES} cases, {} bytes each", bytes.len());
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || (0..files).map(|file| source(file, &bytes)).collect::<Vec<_>>(),
                |files| black_box(read(files, &Options::default())),
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

fn source(file: u64, bytes: &[u8]) -> SourceFile {
    SourceFile {
        name: format!("{file}.xml"),
        bytes: bytes.to_vec(),
        modified: None,
    }
}

criterion_group!(benches, reading);
criterion_main!(benches);
