//! The old runs of CI services: what they tested, and where their reports are.
//!
//! Each [`Service`] is a table of addresses with two functions, which list the runs and the reports of a run. A report
//! carries the variables that its job had, as far as the service still knows them, and its context is read from them as
//! from those of an upload. Nothing is downloaded until [`Project::download`] or [`Project::results`] is called.

mod buildkite;
mod circleci;
mod github;
mod gitlab;
mod jenkins;
mod report;
mod requests;
mod results;
mod service;

pub use report::{JobReport, read};
pub use requests::{HostError, Project};
pub use service::{PastFile, PastReport, PastRun, Service, Values};

/// The services, in the order of the flags.
pub static SERVICES: [&Service; 5] = [
    &github::GITHUB,
    &gitlab::GITLAB,
    &jenkins::JENKINS,
    &buildkite::BUILDKITE,
    &circleci::CIRCLECI,
];
