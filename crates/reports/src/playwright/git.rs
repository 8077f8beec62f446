//! Git metadata that Playwright's `captureGitInfo` and its predecessor write to `config.metadata`.

use assay_domain::recording::RunContext;
use serde::Deserialize;

use crate::{json, text};

/// The metadata that is read. The user may add any other.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Metadata {
    #[serde(deserialize_with = "json::object")]
    ci: Ci,
    #[serde(deserialize_with = "json::object")]
    git_commit: GitCommit,
    // Before 1.51 a plug-in wrote flat keys with a dot.
    #[serde(rename = "revision.id", deserialize_with = "json::text")]
    revision_id: Option<String>,
    #[serde(rename = "revision.subject", deserialize_with = "json::text")]
    revision_subject: Option<String>,
    #[serde(rename = "revision.author", deserialize_with = "json::text")]
    revision_author: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Ci {
    #[serde(deserialize_with = "json::text")]
    branch: Option<String>,
    #[serde(deserialize_with = "json::text")]
    commit_hash: Option<String>,
    #[serde(deserialize_with = "json::text")]
    pr_href: Option<String>,
    #[serde(deserialize_with = "json::text")]
    pr_title: Option<String>,
    #[serde(deserialize_with = "json::text")]
    build_href: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GitCommit {
    #[serde(deserialize_with = "json::text")]
    branch: Option<String>,
    #[serde(deserialize_with = "json::text")]
    hash: Option<String>,
    #[serde(deserialize_with = "json::text")]
    subject: Option<String>,
    #[serde(deserialize_with = "json::object")]
    author: Author,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Author {
    #[serde(deserialize_with = "json::text")]
    name: Option<String>,
}

/// The run's context, as far as the metadata has it.
pub(super) fn context(metadata: &Metadata) -> RunContext {
    let title = |text: &Option<String>| text.as_deref().and_then(text::title);
    let Metadata { ci, git_commit, .. } = metadata;
    RunContext {
        // A detached checkout has no branch; git then reports `HEAD`.
        branch: title(&ci.branch)
            .or_else(|| title(&git_commit.branch))
            .filter(|branch| branch != "HEAD"),
        commit_sha: title(&ci.commit_hash)
            .or_else(|| title(&git_commit.hash))
            .or_else(|| title(&metadata.revision_id)),
        commit_message: title(&git_commit.subject).or_else(|| title(&metadata.revision_subject)),
        author_name: title(&git_commit.author.name).or_else(|| title(&metadata.revision_author)),
        pull_request_number: title(&ci.pr_href).as_deref().and_then(last_number),
        pull_request_title: title(&ci.pr_title),
        run_url: build(metadata),
        ..RunContext::default()
    }
}

/// The address of the CI build, the same for all its shards.
pub(super) fn build(metadata: &Metadata) -> Option<String> {
    metadata.ci.build_href.as_deref().and_then(text::title)
}

fn last_number(address: &str) -> Option<i64> {
    address
        .trim_end_matches('/')
        .rsplit('/')
        .next()?
        .parse()
        .ok()
        .filter(|number| *number > 0)
}
