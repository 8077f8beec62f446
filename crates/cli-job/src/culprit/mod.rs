//! The search for the commit that broke a test, although the test also fails by itself.
//!
//! [`History`] has the test's runs on the stable branch: which commits to search, and how often the test fails by itself.
//! [`Search`] chooses the commit to run next and runs it in a worktree. [`Answer`] shows what the results say.

mod answer;
mod history;
mod search;
mod worktree;

pub use answer::Answer;
pub use history::{History, HistoryError};
pub use search::{Search, SearchError};
