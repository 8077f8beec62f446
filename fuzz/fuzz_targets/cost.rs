//! Any bytes through recognition and reading, in bounded memory and time.
#![no_main]

use assay_fuzz::measured;
use libfuzzer_sys::fuzz_target;
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

fuzz_target!(|bytes: &[u8]| measured(&MEMORY, bytes));
