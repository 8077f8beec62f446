//! How much memory the lists of one report may take while it is parsed.
//!
//! A list of empty objects takes two bytes an element in the report and some hundred in memory, so the number of bytes
//! of a report does not bound the memory that its elements take.

use std::cell::Cell;

thread_local! {
    /// What is left for the report that this thread parses.
    static ROOM: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// What every report may take beside a multiple of its size: enough for the elements of as many tests as are taken.
const LEAST: usize = 192 << 20;

/// Runs a parser over a text of `bytes` bytes. The size bounds the memory of its lists.
pub(super) fn within<T>(bytes: usize, parse: impl FnOnce() -> T) -> T {
    let before = ROOM.replace(bytes.saturating_mul(2).saturating_add(LEAST));
    let parsed = parse();
    ROOM.set(before);
    parsed
}

/// Takes the room of an element. Fails where there is none left.
pub(super) fn take<T, E: serde::de::Error>() -> Result<(), E> {
    let left = ROOM.get().checked_sub(size_of::<T>());
    ROOM.set(left.unwrap_or(0));
    left.map(|_| ())
        .ok_or_else(|| E::custom("its lists have more elements than a report of this size may hold"))
}
