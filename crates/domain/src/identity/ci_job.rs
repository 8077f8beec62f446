//! A job of a CI service, as the claims of its token describe it.

use super::Claims;

/// The claims that only one CI service has, each with the claim that is the immutable id of the repository or pipeline: of
/// GitHub Actions, GitLab, CircleCI, Buildkite and Azure Pipelines.
const REPOSITORIES: [(&str, &str); 5] = [
    ("repository_id", "repository_id"),
    ("project_id", "project_id"),
    ("oidc.circleci.com/project-id", "oidc.circleci.com/project-id"),
    ("pipeline_slug", "pipeline_id"),
    ("rpo_id", "rpo_id"),
];
/// The claims of these services with the branch, or with any reference in full.
const REFERENCES: [&str; 4] = ["ref", "oidc.circleci.com/vcs-ref", "build_branch", "rpo_ref"];

/// Events of GitHub, and sources of pipelines of GitLab, whose jobs may run the code of a fork with the identity of the
/// repository.
const EVENTS_OF_FORKS: [&str; 5] = [
    "pull_request_target",
    "workflow_run",
    "issue_comment",
    "merge_request_event",
    "external_pull_request_event",
];

/// A job of a CI service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CiJob {
    /// The immutable id of its repository or pipeline.
    pub repository: String,
    /// The branch, tag or pull request that it tests, as `refs/heads/main`.
    pub reference: Option<String>,
    /// The environment that it deploys to.
    pub environment: Option<String>,
    /// Whether it may run the code of a fork.
    pub may_be_of_fork: bool,
    /// The job and the person who started it, for people.
    pub sender: String,
}

impl CiJob {
    /// The job that claims describe; none if they are not those of exactly one known service.
    pub fn of(claims: &Claims) -> Option<Self> {
        let mut services = REPOSITORIES
            .iter()
            .filter(|(mark, _)| claims.text(mark).is_some());
        let (_, repository) = services.next().filter(|_| services.next().is_none())?;
        let first = |names: &[&str]| names.iter().find_map(|name| claims.text(name));
        let written = first(&REFERENCES);
        let tag = claims
            .text("build_tag")
            .or_else(|| written.clone().filter(|_| claims.has("ref_type", "tag")));
        let reference = match (tag, written) {
            (_, Some(full)) if full.starts_with("refs/") => Some(full),
            (Some(tag), _) => Some(format!("refs/tags/{tag}")),
            (None, branch) => branch.map(|branch| format!("refs/heads/{branch}")),
        };
        let subject = claims.text("sub").unwrap_or_default();
        Some(Self {
            repository: claims.text(repository)?,
            may_be_of_fork: may_be_of_fork(claims, reference.as_deref().unwrap_or_default()),
            reference,
            environment: claims.text("environment"),
            sender: first(&["actor", "user_login"])
                .map_or_else(|| subject.clone(), |actor| format!("{subject} by {actor}")),
        })
    }
}

/// GitHub gives a token to jobs of a pull request only if its branch is in the repository itself. GitLab may run the merge
/// request of a fork in the parent project, and does not tell a child pipeline of it from one of a branch that is not
/// protected. The other services do not tell pull requests of forks from others. Buildkite writes a fork's branch as
/// `owner:branch`.
fn may_be_of_fork(claims: &Claims, reference: &str) -> bool {
    let path = claims.text("ref_path").unwrap_or_default();
    if path.starts_with("refs/merge-requests/") {
        return true;
    }
    match claims
        .text("event_name")
        .or_else(|| claims.text("pipeline_source"))
    {
        Some(event) if event == "parent_pipeline" => !claims.has("ref_protected", "true"),
        Some(event) => EVENTS_OF_FORKS.contains(&event.as_str()),
        None => {
            reference.starts_with("refs/pull/")
                || reference.starts_with("refs/heads/pull/")
                || reference.contains(':')
        }
    }
}

/// Which jobs may upload without a secret.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Trust {
    /// The issuer of their tokens.
    pub issuer: String,
    /// The id of their repository.
    pub repository: String,
    /// The branch or tag, also with a final `*`; none for any.
    #[serde(rename = "ref")]
    pub reference: Option<String>,
    /// The environment; none for any.
    pub environment: Option<String>,
    /// The audience of their tokens; none for the address of the installation.
    pub audience: Option<String>,
}

impl Trust {
    /// Whether there may be a job that both are about.
    pub fn overlaps(&self, other: &Self) -> bool {
        let may_be_same = |[a, b]: [&Option<String>; 2], covers: fn(&str, &str) -> bool| match (a, b) {
            (Some(a), Some(b)) => covers(a, b) || covers(b, a),
            (None, _) | (_, None) => true,
        };
        self.issuer == other.issuer
            && self.repository == other.repository
            && self.audience == other.audience
            && may_be_same([&self.reference, &other.reference], covers)
            && may_be_same([&self.environment, &other.environment], |a, b| a == b)
    }

    /// Whether it is about this job.
    pub fn covers(&self, job: &CiJob) -> bool {
        let reference = job.reference.as_deref().unwrap_or_default();
        self.repository == job.repository
            && self
                .reference
                .as_deref()
                .is_none_or(|wanted| covers(wanted, reference))
            && (self.environment.is_none() || self.environment == job.environment)
    }
}

/// Whether a reference, or the beginning of some with a final `*`, is one of those that are wanted.
fn covers(wanted: &str, reference: &str) -> bool {
    match wanted.strip_suffix('*') {
        Some(beginning) => reference.trim_end_matches('*').starts_with(beginning),
        None => reference == wanted,
    }
}

#[cfg(test)]
mod tests;
