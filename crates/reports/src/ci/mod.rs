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

pub use environment::CiContext;

/// Reads the variables of the CI service; empty outside of CI.
///
/// `var` looks a variable up. `event_file` reads the file at a path; GitHub Actions names that path.
pub fn detect(
    var: &dyn Fn(&str) -> Option<String>,
    event_file: &dyn Fn(&str) -> Option<Vec<u8>>,
) -> CiContext {
    let mut reader = EnvironmentReader::new(var);
    let is_set = |name: &str| var(name).is_some_and(|value| !matches!(value.trim(), "" | "false" | "0"));
    if is_set("GITHUB_ACTIONS") {
        reader.begin(CiProvider::GithubActions, "GITHUB_ACTIONS");
        github::read(&mut reader, event_file);
    } else if is_set("GITLAB_CI") {
        reader.begin(CiProvider::GitlabCi, "GITLAB_CI");
        gitlab_azure::gitlab(&mut reader);
    } else if is_set("CIRCLECI") {
        reader.begin(CiProvider::Circleci, "CIRCLECI");
        buildkite_circle::circle(&mut reader);
    } else if is_set("BUILDKITE") {
        reader.begin(CiProvider::Buildkite, "BUILDKITE");
        buildkite_circle::buildkite(&mut reader);
    } else if is_set("TF_BUILD") {
        reader.begin(CiProvider::AzurePipelines, "TF_BUILD");
        gitlab_azure::azure(&mut reader);
    } else if is_set("BITBUCKET_BUILD_NUMBER") {
        reader.begin(CiProvider::BitbucketPipelines, "BITBUCKET_BUILD_NUMBER");
        others::bitbucket(&mut reader);
    } else if is_set("TEAMCITY_VERSION") {
        reader.begin(CiProvider::Teamcity, "TEAMCITY_VERSION");
        others::teamcity(&mut reader);
    } else if is_set("JENKINS_URL") {
        reader.begin(CiProvider::Jenkins, "JENKINS_URL");
        others::jenkins(&mut reader);
    } else if is_set("CI") {
        // The service is unknown, so its variables are not read.
        reader.begin(CiProvider::Other, "CI");
    }
    reader.finish()
}
