//! Bounds the memory that the reports of an import take.
//!
//! An empty object in a list takes two bytes of the report and some hundred bytes of memory. The name of a suite is
//! written once, and each of its tests gets a copy. The size of a report alone therefore does not bound its memory.
//!
//! There are two bounds. Lists and copies of names may take [`BASE_BYTES`] for all files and twice the size of each one.
//! Beside that, all memory is taken from the caller's [`Memory`], if there is one: each test and attempt by its size,
//! and whatever a reader holds until the end of its file. The latter is given back at the end of the file.

use std::{
    cell::{Cell, RefCell},
    fmt::Debug,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use assay_domain::{attempt::Attempt, test::TestName};

use crate::report::{ReadError, Report, whole_import};

/// The memory that the reading of an import may take. Several threads read, and each takes what it needs.
pub trait Memory: Debug + Send + Sync {
    /// Takes memory. Returns whether there was enough; otherwise nothing is taken, and the reading fails.
    fn take(&self, bytes: usize) -> bool;
    /// Gives memory back.
    fn give_back(&self, bytes: usize);
}

thread_local! {
    /// The budget of the file that this thread reads.
    static BUDGET: FileBudget = const { FileBudget::unbounded() };
}

/// The memory that the lists and shared names of an import's files may use together, in addition to a multiple of each
/// one's size. It suffices for 500,000 tests.
const BASE_BYTES: usize = 192 << 20;
/// The least that a file takes from the import's memory at a time.
const PIECE: usize = 64 << 10;

/// What one test costs beside its texts, in all steps from the reader to the database: the entries of the collector, of
/// the report and of the recording, and its rows. Measured by `bins/assay-server/tests/security/upload_cost.rs`.
const TEST: usize = 900;
/// The same of an attempt.
const ATTEMPT: usize = 500;
/// The same of an error.
const ERROR: usize = 400;
/// How often a name, a message or a stack is held at a time: as a part of the recording and as a value for the database.
const COPIES: usize = 2;
/// What a file costs beside its content.
const FILE: usize = 4 << 10;

/// What all files of an import may use together.
#[derive(Debug, Clone)]
pub(crate) struct ImportBudget {
    /// What is left of [`BASE_BYTES`].
    lists: Arc<AtomicUsize>,
    memory: Option<Arc<dyn Memory>>,
}

impl ImportBudget {
    pub(crate) fn new(memory: Option<&Arc<dyn Memory>>) -> Self {
        Self {
            lists: Arc::new(AtomicUsize::new(BASE_BYTES)),
            memory: memory.cloned(),
        }
    }

    /// Takes memory for lists. Returns whether some is left.
    fn take_for_lists(&self, bytes: usize) -> bool {
        let taken = self
            .lists
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |remaining| {
                Some(remaining.saturating_sub(bytes))
            });
        taken.is_ok_and(|before| before > bytes)
    }
}

/// The memory that a file may use.
struct FileBudget {
    /// What is left of the multiple of its size for lists.
    lists: Cell<usize>,
    /// What is left of the pieces that were taken from the caller's memory.
    taken: Cell<usize>,
    /// The part of them that is given back at the end of the file.
    held: Cell<usize>,
    /// Whether the caller's memory did not suffice.
    is_refused: Cell<bool>,
    /// Used once the former are used up. Without one there is no bound.
    import: RefCell<Option<ImportBudget>>,
}

impl FileBudget {
    const fn unbounded() -> Self {
        Self {
            lists: Cell::new(usize::MAX),
            taken: Cell::new(usize::MAX),
            held: Cell::new(0),
            is_refused: Cell::new(false),
            import: RefCell::new(None),
        }
    }

    fn of_file(import: &ImportBudget) -> Self {
        let taken = if import.memory.is_some() { 0 } else { usize::MAX };
        let budget = Self::unbounded();
        budget.lists.set(0);
        budget.taken.set(taken);
        budget.import.replace(Some(import.clone()));
        budget
    }

    fn take_for_lists(&self, bytes: usize) -> bool {
        let own = self.lists.get();
        let excess = bytes.saturating_sub(own);
        self.lists.set(own.saturating_sub(bytes));
        self.lists.get() > 0
            || self
                .import
                .borrow()
                .as_ref()
                .is_some_and(|import| import.take_for_lists(excess))
    }

    fn take(&self, bytes: usize) -> bool {
        if let Some(left) = self.taken.get().checked_sub(bytes) {
            self.taken.set(left);
            return !self.is_refused.get();
        }
        let import = self.import.borrow();
        let Some(memory) = import.as_ref().and_then(|import| import.memory.as_ref()) else {
            return true;
        };
        let missing = bytes.saturating_sub(self.taken.get()).max(PIECE);
        if self.is_refused.get() || !memory.take(missing) {
            self.is_refused.set(true);
            return false;
        }
        self.taken.set((self.taken.get() + missing).saturating_sub(bytes));
        true
    }

    fn hold(&self, bytes: usize) -> bool {
        let is_taken = self.take(bytes);
        if is_taken {
            self.held.set(self.held.get().saturating_add(bytes));
        }
        is_taken
    }

    /// Gives back what the file no longer uses.
    fn end(&self) {
        let import = self.import.borrow();
        if let Some(memory) = import.as_ref().and_then(|import| import.memory.as_ref()) {
            memory.give_back(self.held.get().saturating_add(self.taken.get()));
        }
    }
}

/// Reads a file within a budget.
pub(crate) fn within<T>(import: &ImportBudget, read: impl FnOnce() -> T) -> T {
    /// Ends the budget of a file, also if its reader panics.
    struct Ending(Option<FileBudget>);
    impl Drop for Ending {
        fn drop(&mut self) {
            if let Some(outer) = self.0.take() {
                swap(&outer);
                outer.end();
            }
        }
    }
    let file = FileBudget::of_file(import);
    swap(&file);
    let _ending = Ending(Some(file));
    hold(FILE);
    read()
}

/// Exchanges the thread's budget and another one.
fn swap(other: &FileBudget) {
    BUDGET.with(|budget| {
        budget.lists.swap(&other.lists);
        budget.taken.swap(&other.taken);
        budget.held.swap(&other.held);
        budget.is_refused.swap(&other.is_refused);
        budget.import.swap(&other.import);
    });
}

/// Permits the lists of the file to take twice the size of its text.
pub(crate) fn permit_lists_of(text: &str) {
    BUDGET.with(|budget| budget.lists.set(text.len().saturating_mul(2)));
}

/// Works on tests that are charged already.
pub(crate) fn without_charge<T>(work: impl FnOnce() -> T) -> T {
    let unbounded = FileBudget::unbounded();
    swap(&unbounded);
    let value = work();
    swap(&unbounded);
    value
}

/// Takes memory for lists and shared names, until the end of the file. Returns whether the budget sufficed. Once it did
/// not, [`check`] rejects the file.
pub(crate) fn charge(bytes: usize) -> bool {
    BUDGET.with(|budget| {
        let is_within = budget.take_for_lists(bytes);
        budget.hold(bytes) && is_within
    })
}

/// Takes memory for what a reader holds until the end of the file, in proportion to the file's size. Returns as
/// [`charge`].
pub(crate) fn hold(bytes: usize) -> bool {
    BUDGET.with(|budget| budget.hold(bytes))
}

/// Takes the memory of a test until the report is stored. Returns as [`charge`].
pub(crate) fn keep_test(test: &TestName, found_file: Option<&str>) -> bool {
    let texts = test.name.len() + length(&test.file_path) + found_file.map_or(0, str::len);
    keep(TEST.saturating_add(COPIES.saturating_mul(texts)))
}

/// Takes the memory of another name of a test until the report is stored. Returns as [`charge`].
pub(crate) fn keep_name(name: &str) -> bool {
    keep(COPIES.saturating_mul(name.len()))
}

/// Takes the memory of attempts until the report is stored. Returns as [`charge`].
pub(crate) fn keep_attempts(attempts: &[Attempt]) -> bool {
    keep(bytes_of(attempts))
}

/// Takes the memory of a report's errors and warnings until it is stored.
pub(crate) fn keep_rest_of(report: &Report) -> bool {
    let warnings: usize = report.warnings.iter().map(String::len).sum();
    keep(errors(&report.errors).saturating_add(warnings))
}

/// Gives back the memory of attempts that are dropped.
pub(crate) fn drop_attempts(attempts: &[Attempt]) {
    BUDGET.with(|budget| {
        let taken = budget.taken.get();
        budget.taken.set(taken.saturating_add(bytes_of(attempts)));
    });
}

fn keep(bytes: usize) -> bool {
    BUDGET.with(|budget| budget.take(bytes))
}

fn bytes_of(attempts: &[Attempt]) -> usize {
    let attempts = attempts.iter().map(|attempt| {
        let texts = length(&attempt.browser) + length(&attempt.skip_reason);
        let output = attempt.output.as_deref().map_or(0, output);
        ATTEMPT + COPIES.saturating_mul(texts) + errors(&attempt.errors) + output
    });
    attempts.sum()
}

fn errors(errors: &[assay_domain::attempt::ErrorDetail]) -> usize {
    let errors = errors.iter().map(|error| {
        let file = error.location.as_ref().map_or(0, |location| location.file.len());
        let texts = length(&error.message) + length(&error.stack) + length(&error.snippet) + file;
        ERROR + COPIES.saturating_mul(texts)
    });
    errors.sum()
}

fn output(output: &assay_domain::attempt::AttemptOutput) -> usize {
    let attachments = output.attachments.iter().map(|attachment| {
        let texts = attachment.name.len() + length(&attachment.kind) + length(&attachment.path);
        ERROR + COPIES.saturating_mul(texts)
    });
    size_of_val(output) + COPIES.saturating_mul(length(&output.console)) + attachments.sum::<usize>()
}

fn length(text: &Option<String>) -> usize {
    text.as_ref().map_or(0, String::len)
}

/// Takes the memory of one element from the budget, twice because a list grows by doubling. Fails if the budget is used
/// up.
pub(crate) fn reserve<T, E: serde::de::Error>() -> Result<(), E> {
    if hold(size_of::<T>()) && charge(size_of::<T>()) {
        Ok(())
    } else {
        Err(E::custom("the memory for lists is used up"))
    }
}

/// Fails if the budget is used up.
pub(crate) fn check(file: &str) -> Result<(), ReadError> {
    let (is_refused, has_lists) = BUDGET.with(|budget| (budget.is_refused.get(), budget.take_for_lists(0)));
    if is_refused {
        return Err(ReadError::too_large(
            file,
            whole_import::MEMORY,
            "the import's budget",
        ));
    }
    if has_lists {
        return Ok(());
    }
    let limit = format!("{} MiB plus twice the size of each file", BASE_BYTES >> 20);
    Err(ReadError::too_large(file, whole_import::LISTS, limit))
}
