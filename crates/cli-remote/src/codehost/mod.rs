//! Posts the state of a commit to the code host of a CI job, with the job's own token.
//!
//! The server composes the text ([`Comment`]). [`post()`] keeps one comment on a pull request up to date, although many jobs
//! post it at the same time; [`CodeHost`] has the routes of GitHub, GitLab and Azure Repos. [`annotations`] writes the lines of
//! a job's log that the service shows beside the code. [`Job::report`] also writes a check run of GitHub, a report of
//! Bitbucket and a Code Quality report of GitLab.

/// The variables with the tokens of the code hosts.
pub const TOKENS: [&str; 3] = ["GITHUB_TOKEN", "GITLAB_TOKEN", "SYSTEM_ACCESSTOKEN"];

pub mod annotations;
mod bitbucket;
mod buildkite;
mod check_run;
mod code_quality;
mod comment;
mod host;
pub mod issues;
mod post;
mod report;

pub use comment::{Annotation, Comment, Counts};
pub use host::{CodeHost, PostError};
pub use post::{Outcome, post, write_until_current};
pub use report::{Job, Line, ReportTo};
