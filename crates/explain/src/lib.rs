//! Answers about tests and failures for the API, the pages and the agents' tools, independent of HTTP.

pub mod cursor;
pub mod failures;
pub mod flaky;
pub mod prompt;
pub mod stable_branch;
