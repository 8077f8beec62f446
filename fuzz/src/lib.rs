//! What all fuzz targets do with their bytes.
//!
//! `.ci/fuzz 60` runs all targets for a minute each, with the real reports as seeds. A single one:
//! `RUSTC_BOOTSTRAP=1 cargo fuzz run playwright fuzz/corpus/playwright testdata/reports`.

use std::time::Duration;

use assay_reports::{Format, Options, SourceFile, looks_like_report, read as read_reports};
use peak_alloc::PeakAlloc;
use rustix::time::{ClockId, clock_gettime};

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

/// The processor time of this process so far. Other programs do not change it.
fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// Reads the bytes as one file, within a multiple of their number of memory and of processor time.
///
/// An element takes some hundred bytes of memory and may be two bytes long, so the multiple is large. The bound detects
/// work that grows with a number in the report, or with the square of its size. Run it with `-max_len=1000000`.
///
/// # Panics
/// Where reading takes more, so that the fuzzer keeps the input.
pub fn measured(memory: &PeakAlloc, bytes: &[u8]) {
    const BYTES_A_BYTE: usize = 512;
    const TIME_A_BYTE: Duration = Duration::from_micros(20);
    // In addition, for any input: patterns are compiled once.
    const BASE: (usize, Duration) = (32 << 20, Duration::from_secs(2));
    if bytes.starts_with(&[0x1f, 0x8b]) || bytes.starts_with(b"PK") {
        // An archive unpacks to a different number of bytes.
        return;
    }
    memory.reset_peak_usage();
    let (before, began) = (memory.current_usage(), processor_time());
    read(bytes, None);
    let (peak, took) = (memory.peak_usage() - before, processor_time() - began);
    assert!(peak <= BASE.0 + BYTES_A_BYTE * bytes.len(), "{peak} bytes");
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    assert!(took <= BASE.1 + TIME_A_BYTE * length, "{took:?}");
}
