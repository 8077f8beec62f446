//! Answers about tests and failures for the API, the pages and the agents' tools, independent of HTTP.

pub mod changes;
pub mod comment;
pub mod commit;
pub mod cursor;
pub mod durations;
pub mod ejection;
pub mod failed_error;
pub mod failures;
pub mod fix;
pub mod flaky;
pub mod health;
pub mod links;
pub mod markdown;
mod numbers;
pub mod owners;
pub mod prompt;
pub mod proof;
pub mod release;
pub mod stable_branch;
pub mod test_list;
