//! The description of the sample reports.

use anyhow::Context as _;
use assay_domain::{
    plan::Plan,
    recording::{RunContext, ShardIndex},
    run::CiProvider,
};
use include_dir::Dir;
use serde::Deserialize;

/// The sample organization and its projects.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Manifest {
    pub(crate) organization: SampleOrganization,
    pub(crate) projects: Vec<SampleProject>,
}

/// The sample organization.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SampleOrganization {
    pub(crate) name: String,
    pub(crate) plan: Plan,
}

/// A sample project and its reports.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SampleProject {
    pub(crate) name: String,
    pub(crate) stable_branch: String,
    pub(crate) imports: Vec<Import>,
}

/// One import: a report, and the facts about its run.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Import {
    /// The files, relative to the manifest.
    pub(crate) files: Vec<String>,
    pub(crate) run_key: String,
    /// The report of a second attempt, which a user can send.
    pub(crate) again: Option<String>,
    /// How long before the reference time of the samples the run started.
    pub(crate) minutes_ago: i64,
    /// The checkout's root as the report writes it.
    pub(crate) root: Option<String>,
    /// Such as `2/3`.
    pub(crate) shard: Option<String>,
    pub(crate) branch: String,
    pub(crate) commit: String,
    pub(crate) tested_revision: Option<String>,
    message: String,
    author: String,
    pull_request: Option<i64>,
    pull_request_title: Option<String>,
    provider: CiProvider,
    pub(crate) suite: String,
}

impl Manifest {
    /// Reads the manifest among the samples.
    pub(crate) fn read(samples: &Dir<'_>) -> anyhow::Result<Self> {
        let file = samples
            .get_file("manifest.json")
            .context("the samples have no manifest")?;
        serde_json::from_slice(file.contents()).context("the manifest of the samples")
    }
}

impl Import {
    /// The shard's place, if the run is sharded.
    pub(crate) fn shard(&self) -> anyhow::Result<Option<ShardIndex>> {
        let shard = self.shard.as_deref().map(assay_ingest::values::shard);
        shard.transpose().map_err(anyhow::Error::msg)
    }

    /// The facts about the run.
    pub(crate) fn context(&self) -> RunContext {
        RunContext {
            branch: Some(self.branch.clone()),
            commit_sha: Some(self.commit.clone()),
            commit_message: Some(self.message.clone()),
            author_name: Some(self.author.clone()),
            tested_revision: self.tested_revision.clone(),
            pull_request_number: self.pull_request,
            pull_request_title: self.pull_request_title.clone(),
            ci_provider: Some(self.provider),
            suite: Some(self.suite.clone()),
            run_url: None,
            merge_base: None,
            base_branch: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{super::SAMPLES, *};

    #[test]
    fn every_sample_exists_and_the_runs_cover_two_weeks() {
        let manifest = Manifest::read(&SAMPLES).unwrap();
        let mut keys = BTreeSet::new();
        let ages = || {
            let imports = manifest.projects.iter().flat_map(|project| &project.imports);
            imports.map(|import| import.minutes_ago)
        };
        assert!(ages().min().unwrap() < 24 * 60 && ages().max().unwrap() > 13 * 24 * 60);
        // Samples of the maximum age, whose times do not move yet, stay within the engine's window.
        let max_age_minutes = super::super::MAX_SAMPLE_AGE_MS / 60_000;
        for import in manifest.projects.iter().flat_map(|project| &project.imports) {
            for file in &import.files {
                assert!(SAMPLES.get_file(file).is_some(), "{file}");
            }
            assert!(
                (1..14 * 24 * 60 - max_age_minutes).contains(&import.minutes_ago),
                "{}",
                import.run_key
            );
            assert!(
                keys.insert((&import.run_key, &import.shard)),
                "{} twice",
                import.run_key
            );
            import.shard().unwrap();
        }
    }
}
