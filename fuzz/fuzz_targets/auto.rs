//! Any bytes through recognition and whichever reader it chooses.
#![no_main]

use assay_fuzz::read;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| read(bytes, None));
