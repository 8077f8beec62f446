//! Measures how fast each format is read, in report bytes per second.
//!
//! Every report has 5,000 tests of the format's template, and every hundredth of them failed. The time covers everything
//! from the bytes in memory to the neutral report, including recognition of the format.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "criterion's macros make public items, and the templates are for tests"
)]

use std::hint::black_box;

use assay_reports::{Options, read};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

#[path = "../tests/templates/mod.rs"]
mod templates;

fn formats(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("formats");
    group.sample_size(10);
    let words = |number: usize| if number % 100 == 7 { "fail" } else { "pass" };
    let tests: Vec<(String, &str)> = (0..5_000)
        .map(|number| (format!("adds_item_{number}"), words(number)))
        .collect();
    for template in templates::all() {
        let files = template.files(&tests);
        let bytes: usize = files.iter().map(|file| file.bytes.len()).sum();
        let report = read(files.clone(), &Options::default()).unwrap();
        assert_eq!(
            (report.format, report.tests.len()),
            (template.format, tests.len())
        );
        group.throughput(Throughput::Bytes(u64::try_from(bytes).unwrap_or(u64::MAX)));
        group.bench_function(template.format.as_str(), |bencher| {
            bencher.iter_batched(
                || files.clone(),
                |files| black_box(read(files, &Options::default())),
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, formats);
criterion_main!(benches);
