//! What the API, the pages and the tools for agents say of a failure, in one place and without any HTTP.

pub mod prompt;
