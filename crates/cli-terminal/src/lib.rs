//! What the command lines `assay` and `assay-admin` share: [`main`] from the arguments to the exit status, output as JSON
//! or text, tables, questions, progress bars, help, completions and manual pages.

// First, because its macro `message` applies to the modules after it.
#[macro_use]
pub mod terminal;

pub mod changes;
pub mod completions;
pub mod confirm;
pub mod errors;
pub mod help;
pub mod man;
pub mod misuse;
pub mod output;
pub mod program;
pub mod progress;
pub mod retry;
mod start;
pub mod suggest;
pub mod table;
pub mod uploads;
pub mod values;
pub mod when;
pub mod wrap;

pub use program::Program;
pub use start::main;
