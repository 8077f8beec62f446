//! Posts the state of a commit to the code host of a CI job, with the job's own token.
//!
//! The server composes the text ([`Comment`]). [`post()`] keeps one comment on a pull request up to date, although many jobs
//! post it at the same time; [`GitHub`] and [`GitLab`] are the hosts. [`annotations`] writes the lines of a job's log that
//! the service shows beside the code.

/// The variables with the tokens of the code hosts.
pub const TOKENS: [&str; 2] = ["GITHUB_TOKEN", "GITLAB_TOKEN"];

pub mod annotations;
mod comment;
mod github;
mod gitlab;
mod host;
mod post;
mod report;

pub use comment::{Annotation, Comment, Counts};
pub use github::GitHub;
pub use gitlab::GitLab;
pub use host::{CodeHost, ExistingComment, PostError};
pub use post::{Outcome, post, post_until_current};
pub use report::{Job, Line, ReportTo};
