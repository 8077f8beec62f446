//! Git metadata that Playwright's `captureGitInfo` and its predecessor write to `config.metadata`.

use assay_domain::recording::RunContext;
use serde_json::Value;

use crate::text;

/// The run's context, as far as the metadata has it.
pub(super) fn context(metadata: &Value) -> RunContext {
    let value_at = |path: &str| {
        metadata
            .pointer(path)
            .and_then(Value::as_str)
            .and_then(text::title)
    };
    // Before 1.51 a plug-in wrote flat keys with a dot.
    let flat = |key: &str| metadata.get(key).and_then(Value::as_str).and_then(text::title);
    RunContext {
        // A detached checkout has no branch; git then reports `HEAD`.
        branch: value_at("/ci/branch")
            .or_else(|| value_at("/gitCommit/branch"))
            .filter(|branch| branch != "HEAD"),
        commit_sha: value_at("/ci/commitHash")
            .or_else(|| value_at("/gitCommit/hash"))
            .or_else(|| flat("revision.id")),
        commit_message: value_at("/gitCommit/subject").or_else(|| flat("revision.subject")),
        author_name: value_at("/gitCommit/author/name").or_else(|| flat("revision.author")),
        pull_request_number: value_at("/ci/prHref").as_deref().and_then(last_number),
        pull_request_title: value_at("/ci/prTitle"),
        run_url: build(metadata),
        ..RunContext::default()
    }
}

/// The address of the CI build, the same for all its shards.
pub(super) fn build(metadata: &Value) -> Option<String> {
    metadata
        .pointer("/ci/buildHref")
        .and_then(Value::as_str)
        .and_then(text::title)
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
