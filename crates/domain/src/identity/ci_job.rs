//! A job of a CI service, as the claims of its token describe it.

use super::Claims;

/// The claims of a CI service, by their names; empty for none: one that no other service has, the immutable id of the
/// repository or pipeline, branch, tag, environment, and person.
type ClaimNames = [&'static str; 6];

/// GitHub Actions, GitLab, CircleCI, Buildkite and Azure Pipelines.
const SERVICES: [ClaimNames; 5] = [
    [
        "repository_id",
        "repository_id",
        "ref",
        "",
        "environment",
        "actor",
    ],
    ["project_id", "project_id", "ref", "", "environment", "user_login"],
    [
        "oidc.circleci.com/project-id",
        "oidc.circleci.com/project-id",
        "oidc.circleci.com/vcs-ref",
        "",
        "",
        "",
    ],
    [
        "pipeline_slug",
        "pipeline_id",
        "build_branch",
        "build_tag",
        "",
        "",
    ],
    ["rpo_id", "rpo_id", "rpo_ref", "", "", ""],
];

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
        let mut services = SERVICES.iter().filter(|[mark, ..]| claims.text(mark).is_some());
        let [_, repository, branch, tag, environment, actor] =
            services.next().filter(|_| services.next().is_none())?;
        let written = claims.text(branch);
        let tag = claims
            .text(tag)
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
            environment: claims.text(environment),
            sender: claims
                .text(actor)
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
        let is_within = |a: &str, b: &str| match b.strip_suffix('*') {
            Some(beginning) => a.trim_end_matches('*').starts_with(beginning),
            None => a == b,
        };
        let may_be_same = |[a, b]: [&Option<String>; 2], is_within: &dyn Fn(&str, &str) -> bool| match (a, b)
        {
            (Some(a), Some(b)) => is_within(a, b) || is_within(b, a),
            (None, _) | (_, None) => true,
        };
        let is_equal = |a: &str, b: &str| a == b;
        self.issuer == other.issuer
            && self.repository == other.repository
            && self.audience == other.audience
            && may_be_same([&self.reference, &other.reference], &is_within)
            && may_be_same([&self.environment, &other.environment], &is_equal)
    }

    /// Whether it is about this job.
    pub fn covers(&self, job: &CiJob) -> bool {
        let is_reference = |wanted: &str| {
            let reference = job.reference.as_deref().unwrap_or_default();
            match wanted.strip_suffix('*') {
                Some(beginning) => reference.starts_with(beginning),
                None => reference == wanted,
            }
        };
        self.repository == job.repository
            && self.reference.as_deref().is_none_or(is_reference)
            && (self.environment.is_none() || self.environment == job.environment)
    }
}

#[cfg(test)]
mod tests;
