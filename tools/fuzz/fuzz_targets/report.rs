//! Fuzzes the reader of the format that `ASSAY_FUZZ_FORMAT` names, or format detection and the detected reader.
#![no_main]

use std::sync::LazyLock;

use assay_fuzz::read;
use assay_reports::Format;
use libfuzzer_sys::fuzz_target;

/// None for detection.
static FORMAT: LazyLock<Option<Format>> = LazyLock::new(|| {
    let name = std::env::var("ASSAY_FUZZ_FORMAT").ok()?;
    (name != "auto").then(|| name.parse().unwrap_or_else(|error| panic!("ASSAY_FUZZ_FORMAT: {error}")))
});

fuzz_target!(|bytes: &[u8]| read(bytes, *FORMAT));
