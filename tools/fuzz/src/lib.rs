//! What the fuzz target does with its bytes.
//!
//! `.ci/fuzz 60` runs the target for a minute for each format, with the real reports as seeds. A single one:
//! `ASSAY_FUZZ_FORMAT=junit RUSTC_BOOTSTRAP=1 cargo fuzz run --fuzz-dir tools/fuzz report tools/fuzz/corpus/junit testdata/reports`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use assay_reports::{
    Format, Memory, Options, ReadError, Report, SourceFile, UnpackedBytes, looks_like_report,
    read as read_reports,
};
use peak_alloc::PeakAlloc;
use rustix::time::{ClockId, clock_gettime};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Reads the bytes as one file and checks that what comes out, and what it took, is within the limits.
///
/// # Panics
/// Where the reader broke a promise, so that the fuzzer keeps the input.
pub fn read(bytes: &[u8], format: Option<Format>) {
    if format.is_none() {
        let _ = looks_like_report(bytes);
    }
    let Ok(report) = measured(bytes, format) else {
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

/// Memory without a bound, whose use is measured.
#[derive(Debug, Default)]
struct Reserved {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Memory for Reserved {
    fn take(&self, bytes: usize) -> bool {
        let before = self.now.fetch_add(bytes, Ordering::Relaxed);
        self.most.fetch_max(before + bytes, Ordering::Relaxed);
        true
    }

    fn give_back(&self, bytes: usize) {
        self.now.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The processor time of this thread so far. Other programs and threads do not change it. One file is read on the thread
/// that asks for it.
fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Reads the bytes within the promised processor time, two seconds for each MB, and within the memory that the reading
/// reserved. Work that grows with a number in the report, or with the square of its size, exceeds the first at some
/// size: run it with `-max_len=1000000`.
fn measured(bytes: &[u8], format: Option<Format>) -> Result<Report, ReadError> {
    const TIME_A_BYTE: Duration = Duration::from_micros(2);
    // In addition, for any input: patterns are compiled once.
    const BASE: (usize, Duration) = (32 << 20, Duration::from_secs(2));
    // A list that grows is held twice, and once more in its new size.
    const GROWTH: usize = 3;
    let file = SourceFile {
        name: "fuzz".to_owned(),
        bytes: bytes.to_vec(),
        modified: None,
    };
    let reserved = Arc::new(Reserved::default());
    let memory: Arc<dyn Memory> = Arc::<Reserved>::clone(&reserved);
    let unpacked_bytes = UnpackedBytes::new(64 << 20);
    let options = Options {
        format,
        root: Some("/home/runner/work"),
        memory: Some(&memory),
        unpacked_bytes: Some(&unpacked_bytes),
        ..Options::default()
    };
    MEMORY.reset_peak_usage();
    let (before, began) = (MEMORY.current_usage(), processor_time());
    let report = read_reports([file], &options);
    let (peak, took) = (MEMORY.peak_usage() - before, processor_time() - began);
    let length = unpacked_bytes.taken().max(bytes.len());
    let most = BASE.0 + GROWTH * (length + reserved.most.load(Ordering::Relaxed));
    assert!(peak <= most, "{peak} bytes of {most}");
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    assert!(took <= BASE.1 + TIME_A_BYTE * length, "{took:?} for {length} bytes");
    report
}
