//! Bounds the memory that the reports of an import take beyond a multiple of their size.
//!
//! An empty object in a list takes two bytes of the report and some hundred bytes of memory. The name of a suite is
//! written once, and each of its tests gets a copy. The size of a report alone therefore does not bound its memory.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::report::{ReadError, whole_import};

thread_local! {
    /// The budget of the file that this thread reads.
    static BUDGET: RefCell<FileBudget> = const { RefCell::new(FileBudget::UNBOUNDED) };
}

/// The memory that the files of an import may use together, in addition to a multiple of each one's size. It suffices
/// for the elements and names of 500,000 tests.
const BASE_BYTES: usize = 192 << 20;

/// What is left of [`BASE_BYTES`] for all files of an import.
#[derive(Debug, Clone)]
pub(crate) struct ImportBudget(Arc<AtomicUsize>);

impl ImportBudget {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicUsize::new(BASE_BYTES)))
    }

    /// Takes memory. Returns whether some is left.
    fn take(&self, bytes: usize) -> bool {
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |remaining| {
                Some(remaining.saturating_sub(bytes))
            });
        taken.is_ok_and(|before| before > bytes)
    }
}

/// The memory that a file may use.
struct FileBudget {
    /// What is left of the multiple of its size.
    own_bytes: usize,
    /// Used once that is used up.
    import: Option<ImportBudget>,
}

impl FileBudget {
    const UNBOUNDED: Self = Self {
        own_bytes: usize::MAX,
        import: None,
    };

    fn take(&mut self, bytes: usize) -> bool {
        let excess = bytes.saturating_sub(self.own_bytes);
        self.own_bytes = self.own_bytes.saturating_sub(bytes);
        self.own_bytes > 0 || self.import.as_ref().is_some_and(|import| import.take(excess))
    }
}

/// Runs the reader of a file of `bytes` bytes. Its lists, and its copies of names, may take twice that size and what is
/// left of the import's budget.
pub(crate) fn within<T>(bytes: usize, import: &ImportBudget, read: impl FnOnce() -> T) -> T {
    let budget = FileBudget {
        own_bytes: bytes.saturating_mul(2),
        import: Some(import.clone()),
    };
    let outer = BUDGET.replace(budget);
    let value = read();
    BUDGET.set(outer);
    value
}

/// Takes memory from the budget. Returns whether the budget sufficed. Once it did not, [`check`] rejects the file.
pub(crate) fn charge(bytes: usize) -> bool {
    BUDGET.with_borrow_mut(|budget| budget.take(bytes))
}

/// Takes the memory of one element from the budget. Fails if the budget is used up.
pub(crate) fn reserve<T, E: serde::de::Error>() -> Result<(), E> {
    if charge(size_of::<T>()) {
        Ok(())
    } else {
        Err(E::custom("the memory for lists is used up"))
    }
}

/// Fails if the budget is used up.
pub(crate) fn check(file: &str) -> Result<(), ReadError> {
    if charge(0) {
        return Ok(());
    }
    Err(ReadError::TooLarge {
        file: file.to_owned(),
        what: whole_import::MEMORY,
        limit: format!("{} MiB plus twice the size of each file", BASE_BYTES >> 20),
    })
}
