//! Bounds the memory of a report's lists while it is parsed.
//!
//! An empty object in a list takes two bytes of the report and some hundred bytes of memory. The size of a report
//! alone therefore does not bound the memory of its elements.

use std::cell::Cell;

thread_local! {
    /// The remaining memory for the report that this thread parses.
    static REMAINING_BYTES: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The memory that every report may use in addition to a multiple of its size. It suffices for the elements of the
/// permitted number of tests.
const BASE_BYTES: usize = 192 << 20;

/// Runs a parser over a text of `bytes` bytes. Its lists may take twice that size and [`BASE_BYTES`] of memory.
pub(super) fn within<T>(bytes: usize, parse: impl FnOnce() -> T) -> T {
    let outer = REMAINING_BYTES.replace(bytes.saturating_mul(2).saturating_add(BASE_BYTES));
    let parsed = parse();
    REMAINING_BYTES.set(outer);
    parsed
}

/// Takes the memory of one element from the budget. Fails if the budget is used up.
pub(super) fn reserve<T, E: serde::de::Error>() -> Result<(), E> {
    let remaining = REMAINING_BYTES.get().checked_sub(size_of::<T>());
    REMAINING_BYTES.set(remaining.unwrap_or(0));
    remaining
        .map(|_| ())
        .ok_or_else(|| E::custom("its lists have more elements than a report of this size may hold"))
}
