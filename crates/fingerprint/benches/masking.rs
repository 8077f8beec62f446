//! Measures hostile and ordinary errors. The time per character must not grow with the length of the text.
#![allow(missing_docs, clippy::expect_used)]

use assay_domain::attempt::ErrorDetail;
use criterion::{Criterion, criterion_group, criterion_main};

fn classify(c: &mut Criterion) {
    let long = 1_000_000;
    let ordinary = "Error: expect(locator).toHaveText(expected) failed\n\nLocator:  getByTestId('total')\nExpected: \"13.50\"\nReceived: \"12.50\"\nTimeout:  5000ms\n\nCall log:\n  - waiting for getByTestId('total')\n    9 × locator resolved to <b>12.50</b>\n\n    at /home/runner/work/shop/shop/tests/cart.spec.ts:12:38";
    for (name, message) in [
        ("ordinary", ordinary.to_owned()),
        ("1 MB of a", "a".repeat(long)),
        ("1 MB of digits", "7".repeat(long)),
        ("1 MB of quotes", "\"".repeat(long)),
        ("1 MB of slashes", "/a".repeat(long / 2)),
        ("1 MB of dashes", "a-".repeat(long / 2)),
        ("1 MB of dots", "1.".repeat(long / 2)),
        ("1 MB of colons", "a:".repeat(long / 2)),
        ("1 MB of brackets", "got {".repeat(long / 5)),
        ("1 MB of stack", "    at f (/a/b.js:1:2)\n".repeat(long / 23)),
    ] {
        let error = ErrorDetail {
            message: Some(message),
            ..ErrorDetail::default()
        };
        c.bench_function(name, |bench| bench.iter(|| assay_fingerprint::classify(&error)));
    }
}

criterion_group!(benches, classify);
criterion_main!(benches);
