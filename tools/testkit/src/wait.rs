//! Waits for conditions within a bound that a slow machine keeps.

use std::{
    thread,
    time::{Duration, Instant},
};

/// The longest wait for a program or an answer. It only ends a test that would hang.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The pause between two checks.
const STEP: Duration = Duration::from_millis(20);

/// Waits until a condition holds.
///
/// # Panics
///
/// If it does not hold within [`PATIENCE`].
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        thread::sleep(STEP);
    }
}

/// Fails unless a text contains another one, and shows the text.
///
/// # Panics
///
/// If it does not.
#[track_caller]
pub fn assert_contains(text: &str, part: &str) {
    assert!(text.contains(part), "{part:?} is not in: {text}");
}
