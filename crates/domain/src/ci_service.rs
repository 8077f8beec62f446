//! The lines with which a CI job sends its report, for each service that is configured by a file of the repository.

/// A service that is configured by a file of the repository.
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
    /// TeamCity.
    Teamcity,
}

impl CiService {
    /// Every service.
    pub const ALL: [Self; 8] = [
        Self::GithubActions,
        Self::Gitlab,
        Self::Circleci,
        Self::Buildkite,
        Self::Jenkins,
        Self::AzurePipelines,
        Self::Bitbucket,
        Self::Teamcity,
    ];

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
            Self::Teamcity => "TeamCity",
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
            Self::Teamcity => ".teamcity",
        }
    }

    /// The lines of a job that run the tests and send their report to this address. `ASSAY_INGEST_KEY` is a secret of the
    /// service.
    pub fn job(self, url: &str) -> String {
        const RUN: &str = "assay run -- YOUR TEST COMMAND";
        // It does not name the job.
        const RUN_OF_SUITE: &str = "assay run --suite test -- YOUR TEST COMMAND";
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
            Self::Bitbucket => format!("script:\n  - export ASSAY_URL={url}\n  - {RUN_OF_SUITE}"),
            // It gives a build neither its branch nor its id as variables.
            Self::Teamcity => format!(
                "params {{\n  param(\"env.ASSAY_URL\", \"{url}\")\n  \
                 password(\"env.ASSAY_INGEST_KEY\", \"credentialsJSON:…\")\n  \
                 param(\"env.TEAMCITY_BUILD_BRANCH\", \"%teamcity.build.branch%\")\n  \
                 param(\"env.TEAMCITY_BUILD_ID\", \"%teamcity.build.id%\")\n}}\n\
                 steps {{ script {{ scriptContent = \"{RUN_OF_SUITE}\" }} }}"
            ),
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
                job.contains("assay run ") && job.contains("https://assay.example.org"),
                "{job}"
            );
        }
    }
}
