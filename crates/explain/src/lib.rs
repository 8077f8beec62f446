//! What the API, the pages and the tools for agents say of tests and failures, in one place and without any HTTP.

pub mod cursor;
pub mod failures;
pub mod flaky;
pub mod prompt;
