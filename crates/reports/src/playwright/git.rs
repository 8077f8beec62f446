//! Git metadata that Playwright's `captureGitInfo` and its predecessor write to `config.metadata`.

use assay_domain::recording::RunContext;
use serde::Deserialize;

use crate::{json, text};

/// The metadata that is read. The user may add any other.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Metadata {
    ci: json::Object<Ci>,
    git_commit: json::Object<GitCommit>,
    // Before 1.51 a plug-in wrote flat keys with a dot.
    #[serde(rename = "revision.id")]
    revision_id: json::Text,
    #[serde(rename = "revision.subject")]
    revision_subject: json::Text,
    #[serde(rename = "revision.author")]
    revision_author: json::Text,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Ci {
    branch: json::Text,
    commit_hash: json::Text,
    pr_href: json::Text,
    pr_title: json::Text,
    build_href: json::Text,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GitCommit {
    branch: json::Text,
    hash: json::Text,
    subject: json::Text,
    author: json::Object<Author>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Author {
    name: json::Text,
}

/// The run's context, as far as the metadata has it.
pub(super) fn context(metadata: &Metadata) -> RunContext {
    let title = |text: &json::Text| text::title(text.or_empty());
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
    text::title(metadata.ci.build_href.or_empty())
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
