//! Bounds the memory that a report takes beyond a multiple of its size.
//!
//! An empty object in a list takes two bytes of the report and some hundred bytes of memory. The name of a suite is
//! written once, and each of its tests gets a copy. The size of a report alone therefore does not bound its memory.

use std::cell::Cell;

use crate::report::ReadError;

thread_local! {
    /// The remaining memory for the file that this thread reads. 0 if it was used up.
    static REMAINING_BYTES: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The memory that every file may use in addition to a multiple of its size. It suffices for the elements and names of
/// the permitted number of tests.
const BASE_BYTES: usize = 192 << 20;

/// Runs the reader of a file of `bytes` bytes. Its lists, and its copies of names, may take twice that size and
/// [`BASE_BYTES`] of memory.
pub(crate) fn within<T>(bytes: usize, read: impl FnOnce() -> T) -> T {
    let outer = REMAINING_BYTES.replace(bytes.saturating_mul(2).saturating_add(BASE_BYTES));
    let value = read();
    REMAINING_BYTES.set(outer);
    value
}

/// Takes memory from the budget. Returns whether the budget sufficed. Once it did not, [`check`] rejects the file.
pub(crate) fn charge(bytes: usize) -> bool {
    let remaining = REMAINING_BYTES.get().saturating_sub(bytes);
    REMAINING_BYTES.set(remaining);
    remaining > 0
}

/// Takes the memory of one element from the budget. Fails if the budget is used up.
pub(crate) fn reserve<T, E: serde::de::Error>() -> Result<(), E> {
    if charge(size_of::<T>()) {
        Ok(())
    } else {
        Err(E::custom(
            "its lists have more elements than a report of this size may hold",
        ))
    }
}

/// Fails if the budget is used up.
pub(crate) fn check(file: &str) -> Result<(), ReadError> {
    if charge(0) {
        return Ok(());
    }
    Err(ReadError::TooLarge {
        file: file.to_owned(),
        what: "the memory of its lists, and of names that many of its tests share,",
        limit: format!("{} MiB and twice its size", BASE_BYTES >> 20),
    })
}
