//! The field `ci` of an upload: what a client took from CI's variables.

use crate::ci::CiContext;
use assay_domain::{
    recording::{RunContext, ShardIndex},
    run::CiProvider,
};
use serde::{Deserialize, Serialize};

use crate::values::{self, LONGEST_FIELD, LONGEST_MESSAGE};

/// The values, as a client sends them. A server ignores values that a later client adds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CiValues {
    provider: Option<String>,
    run_key: Option<String>,
    attempt: Option<u64>,
    job: Option<String>,
    job_id: Option<String>,
    runner: Option<String>,
    shard: Option<String>,
    branch: Option<String>,
    commit: Option<String>,
    tested_revision: Option<String>,
    base_branch: Option<String>,
    pull_request: Option<i64>,
    pull_request_title: Option<String>,
    message: Option<String>,
    author: Option<String>,
    suite: Option<String>,
    run_url: Option<String>,
    workspace_root: Option<String>,
    /// The variable of each value: (value, variable).
    sources: Vec<(String, String)>,
}

impl CiValues {
    /// The context as the client found it, and the variable of each value. An error names the wrong value.
    pub fn into_context(self) -> Result<(CiContext, Vec<(String, String)>), String> {
        let provider = self.provider.map(|word| word.parse::<CiProvider>()).transpose();
        let provider = provider.map_err(|error| format!("provider: {error}"))?;
        let shard = self.shard.as_deref().map(shard).transpose();
        let shard = shard.map_err(|error| format!("shard: {error}"))?;
        let context = CiContext {
            provider,
            context: RunContext {
                branch: self.branch,
                commit_sha: self.commit,
                commit_message: self.message,
                author_name: self.author,
                tested_revision: self.tested_revision,
                pull_request_number: self.pull_request.filter(|number| *number >= 1),
                pull_request_title: self.pull_request_title,
                ci_provider: provider,
                suite: self.suite,
                run_url: self.run_url,
                merge_base: None,
                base_branch: self.base_branch,
            },
            run_key: self.run_key,
            attempt: self.attempt,
            job: self.job,
            job_id: self.job_id,
            runner: self.runner,
            shard,
            workspace_root: self.workspace_root,
            // The names that a client sends are not those of this program.
            sources: Vec::new(),
        };
        Ok((context, self.sources))
    }
}

impl From<&CiContext> for CiValues {
    /// The values, each cut to the length that a server takes.
    fn from(ci: &CiContext) -> Self {
        let CiContext {
            provider,
            context,
            run_key,
            attempt,
            job,
            job_id,
            runner,
            shard,
            workspace_root,
            sources,
        } = ci;
        let cut = |text: &Option<String>, most| {
            text.as_ref()
                .map(|text| text.chars().take(most).collect::<String>())
        };
        let value = |text| cut(text, LONGEST_FIELD);
        Self {
            provider: provider.map(|provider| provider.to_string()),
            run_key: value(run_key),
            attempt: *attempt,
            job: value(job),
            job_id: value(job_id),
            runner: value(runner),
            shard: shard.map(|shard| shard.to_string()),
            branch: value(&context.branch),
            commit: value(&context.commit_sha),
            tested_revision: value(&context.tested_revision),
            base_branch: value(&context.base_branch),
            pull_request: context.pull_request_number,
            pull_request_title: value(&context.pull_request_title),
            message: cut(&context.commit_message, LONGEST_MESSAGE),
            author: value(&context.author_name),
            suite: value(&context.suite),
            run_url: value(&context.run_url),
            workspace_root: value(workspace_root),
            sources: sources
                .iter()
                .map(|(value, variable)| ((*value).to_owned(), (*variable).to_owned()))
                .collect(),
        }
    }
}

/// Parses the text of a [`ShardIndex`].
fn shard(text: &str) -> Result<ShardIndex, String> {
    match text.parse() {
        Ok(index @ 1..) => Ok(ShardIndex { index, total: None }),
        Ok(_) | Err(_) => values::shard(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_reads_every_value_that_a_client_sends() {
        let text = |text: &str| Some(text.to_owned());
        let sent = CiContext {
            provider: Some(CiProvider::GithubActions),
            context: RunContext {
                branch: text("feature/tax"),
                commit_sha: text("c0ffee"),
                commit_message: text("Round totals"),
                author_name: text("Ada"),
                tested_revision: text("0a1b2c3"),
                pull_request_number: Some(7),
                pull_request_title: text("Totals"),
                ci_provider: Some(CiProvider::GithubActions),
                suite: text("e2e"),
                run_url: text("https://ci.test/7"),
                merge_base: None,
                base_branch: text("release/1.2"),
            },
            run_key: text("github-actions/812"),
            attempt: Some(1),
            job: text("e2e"),
            job_id: text("1001"),
            runner: text("linux"),
            shard: Some(ShardIndex {
                index: 2,
                total: Some(5),
            }),
            workspace_root: text("/home/ci/shop"),
            sources: vec![("branch", "GITHUB_HEAD_REF")],
        };
        let (received, sources) = CiValues::from(&sent).into_context().unwrap();
        assert_eq!(sources, [("branch".to_owned(), "GITHUB_HEAD_REF".to_owned())]);
        let sources = sent.sources.clone();
        assert_eq!(CiContext { sources, ..received }, sent);

        let without_total = CiContext {
            shard: Some(ShardIndex {
                index: 3,
                total: None,
            }),
            ..CiContext::default()
        };
        let (received, _) = CiValues::from(&without_total).into_context().unwrap();
        assert_eq!(received, without_total);
    }

    #[test]
    fn values_are_cut_to_what_a_server_takes() {
        let long = Some("é".repeat(20_000));
        let ci = CiContext {
            context: RunContext {
                branch: long.clone(),
                commit_message: long,
                ..RunContext::default()
            },
            ..CiContext::default()
        };
        let (received, _) = CiValues::from(&ci).into_context().unwrap();
        let length = |text: &Option<String>| text.as_ref().unwrap().chars().count();
        assert_eq!(length(&received.context.branch), LONGEST_FIELD);
        assert_eq!(length(&received.context.commit_message), LONGEST_MESSAGE);
    }
}
