//! Fuzzes the pytest-json-report reader with arbitrary bytes.
#![no_main]

use assay_fuzz::read;
use assay_reports::Format;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| read(bytes, Some(Format::PytestJson)));
