//! The lines with which a CI job sends its report, for the services that a checkout shows by their files.

use std::path::Path;

/// A service that has a file in a checkout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CiService {
    /// GitHub Actions.
    GithubActions,
    /// GitLab CI.
    Gitlab,
    /// CircleCI.
    Circleci,
    /// Buildkite.
    Buildkite,
    /// Jenkins.
    Jenkins,
    /// Azure Pipelines.
    AzurePipelines,
    /// Bitbucket Pipelines.
    Bitbucket,
}

impl CiService {
    /// Every service.
    pub const ALL: [Self; 7] = [
        Self::GithubActions,
        Self::Gitlab,
        Self::Circleci,
        Self::Buildkite,
        Self::Jenkins,
        Self::AzurePipelines,
        Self::Bitbucket,
    ];

    /// The services whose files are in a folder.
    pub fn detected(folder: &Path) -> Vec<Self> {
        let is_there = |service: &Self| folder.join(service.file()).exists();
        Self::ALL.into_iter().filter(is_there).collect()
    }

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::GithubActions => "GitHub Actions",
            Self::Gitlab => "GitLab CI",
            Self::Circleci => "CircleCI",
            Self::Buildkite => "Buildkite",
            Self::Jenkins => "Jenkins",
            Self::AzurePipelines => "Azure Pipelines",
            Self::Bitbucket => "Bitbucket Pipelines",
        }
    }

    /// The file or folder in a checkout.
    pub const fn file(self) -> &'static str {
        match self {
            Self::GithubActions => ".github/workflows",
            Self::Gitlab => ".gitlab-ci.yml",
            Self::Circleci => ".circleci/config.yml",
            Self::Buildkite => ".buildkite",
            Self::Jenkins => "Jenkinsfile",
            Self::AzurePipelines => "azure-pipelines.yml",
            Self::Bitbucket => "bitbucket-pipelines.yml",
        }
    }

    /// The lines of a job that run the tests and send their report to this address. `ASSAY_INGEST_KEY` is a secret of the
    /// service.
    pub fn job(self, url: &str) -> String {
        const RUN: &str = "assay run -- YOUR TEST COMMAND";
        match self {
            Self::GithubActions => format!(
                "- run: {RUN}\n  env:\n    ASSAY_URL: {url}\n    ASSAY_INGEST_KEY: ${{{{ secrets.ASSAY_INGEST_KEY }}}}"
            ),
            Self::Gitlab => format!("test:\n  variables:\n    ASSAY_URL: {url}\n  script: {RUN}"),
            Self::Circleci => {
                format!("- run:\n    command: {RUN}\n    environment:\n      ASSAY_URL: {url}")
            }
            Self::Buildkite => format!(
                "- key: test\n  secrets: [ASSAY_INGEST_KEY]\n  env:\n    ASSAY_URL: {url}\n  command: {RUN}"
            ),
            Self::Jenkins => format!(
                "environment {{\n  ASSAY_URL = '{url}'\n  ASSAY_INGEST_KEY = credentials('assay-ingest-key')\n}}\n\
                 steps {{ sh '{RUN}' }}"
            ),
            Self::AzurePipelines => format!(
                "- script: {RUN}\n  env:\n    ASSAY_URL: {url}\n    ASSAY_INGEST_KEY: $(ASSAY_INGEST_KEY)"
            ),
            Self::Bitbucket => format!("script:\n  - export ASSAY_URL={url}\n  - {RUN}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_runs_the_tests_with_the_address() {
        for service in CiService::ALL {
            let job = service.job("https://assay.example.org");
            assert!(
                job.contains("assay run -- ") && job.contains("https://assay.example.org"),
                "{job}"
            );
        }
    }
}
