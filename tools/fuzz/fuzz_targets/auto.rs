//! Fuzzes format detection, and the reader of the detected format, with arbitrary bytes.
#![no_main]

use assay_fuzz::read;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| read(bytes, None));
