//! What all fuzz targets do with their bytes.
//!
//! `cargo +nightly fuzz run playwright -- -max_total_time=60`, with the real reports as seeds:
//! `cargo +nightly fuzz run playwright fuzz/corpus/playwright testdata/reports/playwright`.

use assay_reports::{Format, Options, SourceFile, looks_like_report, read as read_reports};

/// Reads the bytes as one file and checks that what comes out is within the limits.
///
/// # Panics
/// Where the reader broke a promise, so that the fuzzer keeps the input.
pub fn read(bytes: &[u8], format: Option<Format>) {
    if format.is_none() {
        let _ = looks_like_report(bytes);
    }
    let file = SourceFile {
        name: "fuzz".to_owned(),
        bytes: bytes.to_vec(),
        modified: None,
    };
    let options = Options {
        format,
        root: Some("/home/runner/work"),
        ..Options::default()
    };
    let Ok(report) = read_reports(vec![file], &options) else {
        return;
    };
    for test in &report.tests {
        assert!(!test.attempts.is_empty(), "a test without attempts");
        assert!(!test.test.name.is_empty(), "a test without a name");
        let errors = test.attempts.iter().flat_map(|attempt| &attempt.errors);
        let texts = errors.flat_map(|error| {
            [&error.message, &error.stack, &error.snippet]
                .into_iter()
                .flatten()
        });
        for text in texts.chain([&test.test.name]).chain(&test.test.file_path) {
            assert!(
                !text.chars().any(|c| c.is_control() && c != '\n' && c != '\t'),
                "a control character"
            );
        }
    }
}
