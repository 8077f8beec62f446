//! Reads the context of a run from CI's environment variables.
//!
//! Pure: the caller passes a function that looks up variables and one that reads the event file. Every value is
//! returned with its source, so that a program can explain where a run's branch comes from.

mod buildkite_circle;
mod environment;
mod github;
mod gitlab_azure;
mod others;

use assay_domain::run::CiProvider;

use environment::EnvironmentReader;

pub use environment::{BASE_BRANCHES, CiContext};

/// Reads the variables of the CI service; empty outside of CI.
///
/// `var` looks a variable up. `event_file` reads the file at a path; GitHub Actions names that path.
pub fn detect(
    var: &dyn Fn(&str) -> Option<String>,
    event_file: &dyn Fn(&str) -> Option<Vec<u8>>,
) -> CiContext {
    let mut reader = EnvironmentReader::new(var, event_file);
    let is_set = |name: &str| var(name).is_some_and(|value| !matches!(value.trim(), "" | "false" | "0"));
    if let Some((variable, provider, read)) = SERVICES.iter().find(|(variable, ..)| is_set(variable)) {
        reader.begin(*provider, variable);
        read(&mut reader);
    }
    reader.finish()
}

/// A CI service: the variable that it sets, and the reader of its other variables.
type Service = (&'static str, CiProvider, fn(&mut EnvironmentReader<'_>));

const SERVICES: &[Service] = &[
    ("GITHUB_ACTIONS", CiProvider::GithubActions, github::read),
    ("GITLAB_CI", CiProvider::GitlabCi, gitlab_azure::gitlab),
    ("CIRCLECI", CiProvider::Circleci, buildkite_circle::circle),
    ("BUILDKITE", CiProvider::Buildkite, buildkite_circle::buildkite),
    ("TF_BUILD", CiProvider::AzurePipelines, gitlab_azure::azure),
    (
        "BITBUCKET_BUILD_NUMBER",
        CiProvider::BitbucketPipelines,
        others::bitbucket,
    ),
    ("TEAMCITY_VERSION", CiProvider::Teamcity, others::teamcity),
    ("JENKINS_URL", CiProvider::Jenkins, others::jenkins),
    // The service is unknown, so its variables are not read.
    ("CI", CiProvider::Other, |_| {}),
];
