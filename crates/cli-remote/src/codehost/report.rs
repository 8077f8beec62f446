//! Reports the state of a commit from a CI job: where, and in which forms.

use std::{
    fs::OpenOptions,
    io::Write as _,
    path::PathBuf,
    str::FromStr,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use assay_cli_terminal::{
    progress::Progress,
    retry::{self, Backoff, Transient},
};
use assay_domain::{revision::is_commit, run::CiProvider};

use crate::codehost::{
    annotations,
    bitbucket::Report,
    buildkite::Agent,
    check_run, code_quality,
    comment::Comment,
    host::{self, CodeHost, PostError},
    post::{Outcome, post, write_until_current},
};

/// What a job reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReportTo {
    /// Whether a form that this job cannot report is left out without a message.
    is_auto: bool,
    summary: bool,
    annotations: bool,
    comment: bool,
    check: bool,
}

impl FromStr for ReportTo {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = Self {
            is_auto: true,
            summary: true,
            annotations: true,
            comment: true,
            check: false,
        };
        match text {
            "auto" => return Ok(all),
            "none" => return Ok(Self::default()),
            _ => {}
        }
        let mut parts = Self::default();
        for word in text.split(',') {
            match word.trim() {
                "summary" => parts.summary = true,
                "annotations" => parts.annotations = true,
                "comment" => parts.comment = true,
                "check" => parts.check = true,
                _ => {
                    return Err(
                        "expected auto, none, or some of summary,annotations,comment,check".to_owned(),
                    );
                }
            }
        }
        Ok(parts)
    }
}

impl ReportTo {
    /// Whether nothing is reported.
    pub const fn is_none(self) -> bool {
        !self.summary && !self.annotations && !self.comment && !self.check
    }
}

/// The CI job.
pub struct Job<'a> {
    /// The service.
    pub provider: Option<CiProvider>,
    /// The pull request that it tests.
    pub pull_request: Option<i64>,
    /// Looks up a variable of its environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// When all requests end, the last one and its repetitions, too.
    pub deadline: Instant,
    /// Where waiting is shown.
    pub progress: &'a dyn Progress,
    /// The files of the checkout, relative to its root; empty if they are unknown.
    pub files: &'a dyn Fn() -> Vec<String>,
}

/// Asks the server for the newest text.
type Compose<'a> = &'a mut dyn FnMut() -> anyhow::Result<Comment>;

/// One thing that was reported, or why it was not.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A line that the service reads from the log.
    Command(String),
    /// A sentence for people.
    Message(String),
    /// A failure.
    Warning(String),
}

impl Job<'_> {
    /// Reports a commit. `compose` asks the server for the newest text. No failure is an error, because the report is stored
    /// and the job's result does not depend on it.
    pub fn report(&self, to: ReportTo, run_id: &str, comment: &Comment, compose: Compose<'_>) -> Vec<Line> {
        let files = (self.files)();
        let compose = &mut || Ok(annotations::located(compose()?, &files));
        let comment = &annotations::located(comment.clone(), &files);
        let mut lines = Vec::new();
        if to.summary {
            lines.extend(self.line_of("the summary", to, self.summary(comment, compose)));
        }
        if to.annotations {
            lines.extend(self.annotations(run_id, comment));
        }
        if self.provider == Some(CiProvider::BitbucketPipelines) && (to.summary || to.annotations) {
            let written = self.report_of_bitbucket(to, comment, compose);
            lines.extend(self.line_of("the report on the commit", to, written));
        }
        if to.check {
            let written = self.check_run(comment, compose);
            lines.extend(self.line_of("the check run", to, written));
        }
        if to.comment {
            let posted = self.comment(comment, compose);
            lines.extend(self.line_of("the comment", to, posted));
        }
        lines
    }

    /// The line for what was done. `None` means that this job cannot do it.
    fn line_of(&self, what: &str, to: ReportTo, done: anyhow::Result<Option<Line>>) -> Option<Line> {
        match done {
            Ok(Some(line)) => Some(line),
            Ok(None) if to.is_auto => None,
            Ok(None) => Some(Line::Message(format!(
                "{what} is not reported: docs/pull-requests.md has what this CI service needs for it"
            ))),
            Err(error) => Some(Line::Warning(format!("{what} is not reported: {error:#}"))),
        }
    }

    /// The failures of the own run at their lines.
    fn annotations(&self, run_id: &str, comment: &Comment) -> Vec<Line> {
        match self.provider {
            Some(CiProvider::GithubActions) => {
                let commands = annotations::github(&comment.annotations, run_id);
                commands.into_iter().map(Line::Command).collect()
            }
            Some(CiProvider::GitlabCi) => {
                let folder = (self.variable)("CI_PROJECT_DIR").map_or_else(|| ".".into(), PathBuf::from);
                vec![match code_quality::write(&folder, &comment.annotations, run_id) {
                    Ok(1) => Line::Message(format!("{} has 1 failure", code_quality::FILE)),
                    Ok(failures) => Line::Message(format!("{} has {failures} failures", code_quality::FILE)),
                    Err(error) => Line::Warning(format!("the failures are not reported: {error:#}")),
                }]
            }
            Some(
                CiProvider::AzurePipelines
                | CiProvider::Buildkite
                | CiProvider::Circleci
                | CiProvider::BitbucketPipelines
                | CiProvider::Jenkins
                | CiProvider::Teamcity
                | CiProvider::Other,
            )
            | None => Vec::new(),
        }
    }

    fn report_of_bitbucket(
        &self,
        to: ReportTo,
        comment: &Comment,
        compose: Compose<'_>,
    ) -> anyhow::Result<Option<Line>> {
        let Some(report) = Report::of_job(self.variable, comment, self.deadline) else {
            return Ok(None);
        };
        let write = |comment: &Comment| report.write(comment, to.annotations);
        let outcome = write_until_current(comment.clone(), write, compose)?;
        Ok(Some(Line::Message(words("report", outcome))))
    }

    fn check_run(&self, comment: &Comment, compose: Compose<'_>) -> anyhow::Result<Option<Line>> {
        let host = match self.provider {
            Some(CiProvider::GithubActions) => host::github(self.variable, self.deadline)?,
            Some(_) | None => None,
        };
        let revision = comment.revision.as_deref().filter(|revision| is_commit(revision));
        let Some(((requests, repository), revision)) = host.zip(revision) else {
            return Ok(None);
        };
        let write = |comment: &Comment| check_run::write(&requests, &repository, revision, comment);
        let written = self.write("check run", comment, write, compose)?;
        Ok(Some(Line::Message(
            written.unwrap_or_else(|refused| format!("check run: {refused}")),
        )))
    }

    fn summary(&self, comment: &Comment, compose: Compose<'_>) -> anyhow::Result<Option<Line>> {
        match self.provider {
            Some(CiProvider::GithubActions) => {
                let Some(path) = (self.variable)("GITHUB_STEP_SUMMARY") else {
                    return Ok(None);
                };
                append(&path.into(), &comment.markdown)?;
                if let Some(path) = (self.variable)("GITHUB_OUTPUT") {
                    append(&path.into(), &outputs(comment))?;
                }
                Ok(Some(Line::Message(comment.headline.clone())))
            }
            Some(CiProvider::AzurePipelines) => {
                let Some(folder) = (self.variable)("AGENT_TEMPDIRECTORY") else {
                    return Ok(None);
                };
                let path = PathBuf::from(folder).join(format!("assay-{}.md", comment.state));
                append(&path, &comment.markdown)?;
                Ok(Some(Line::Command(format!(
                    "##vso[task.uploadsummary]{}",
                    path.display()
                ))))
            }
            Some(CiProvider::Buildkite) => {
                let agent = Agent("buildkite-agent".into());
                let write = |comment: &Comment| agent.annotate(comment);
                write_until_current(comment.clone(), write, compose)?;
                Ok(Some(Line::Message(comment.headline.clone())))
            }
            Some(
                CiProvider::GitlabCi
                | CiProvider::Circleci
                | CiProvider::BitbucketPipelines
                | CiProvider::Jenkins
                | CiProvider::Teamcity
                | CiProvider::Other,
            )
            | None => Ok(Some(Line::Message(comment.headline.clone()))),
        }
    }

    fn comment(&self, comment: &Comment, compose: Compose<'_>) -> anyhow::Result<Option<Line>> {
        let Some(number) = self.pull_request else {
            return Ok(None);
        };
        if !comment.enabled {
            return Ok(Some(Line::Message(
                "the project's settings turn comments off; `assay-admin project set PROJECT --pr-comments on` turns them on"
                    .to_owned(),
            )));
        }
        let Some(host) = CodeHost::of_job(self.provider, self.variable, number, self.deadline)? else {
            return Ok(None);
        };
        let posted = self.write("comment", comment, |comment| post(&host, comment), compose)?;
        let text = posted.unwrap_or_else(|refused| refused.to_string());
        Ok(Some(Line::Message(format!("pull request {number}: {text}"))))
    }

    /// Writes the newest text until the deadline. Returns what happened in words, or the refusal of a token that may only
    /// read, as that of a fork's pull request.
    fn write(
        &self,
        what: &str,
        comment: &Comment,
        write: impl Fn(&Comment) -> Result<Outcome, PostError>,
        compose: Compose<'_>,
    ) -> anyhow::Result<Result<String, PostError>> {
        let mut backoff = Backoff::until(self.deadline);
        let doing = format!("the {what} is not written yet");
        let written = retry::until_expired(self.progress, &mut backoff, &doing, || {
            let write = |comment: &Comment| Ok(write(comment)?);
            write_until_current(comment.clone(), write, || compose().map_err(Failure::Compose))
        });
        match written {
            Ok(outcome) => Ok(Ok(words(what, outcome))),
            Err(Failure::Post(error @ PostError::Forbidden { .. })) => Ok(Err(error)),
            Err(error) => Err(error.into()),
        }
    }
}

/// The reason why the newest comment is not posted.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Post(#[from] PostError),
    #[error("it is posted, and may not be the newest: {0:#}")]
    Compose(anyhow::Error),
}

impl Transient for Failure {
    fn is_transient(&self) -> bool {
        match self {
            Self::Post(error) => error.is_transient(),
            Self::Compose(_) => false,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Post(error) => error.retry_after(),
            Self::Compose(_) => None,
        }
    }
}

fn words(what: &str, outcome: Outcome) -> String {
    match outcome {
        Outcome::Created => format!("a {what} was written"),
        Outcome::Edited => format!("the {what} was brought up to date"),
        Outcome::Unchanged => format!("the {what} is up to date"),
        Outcome::Newer => format!("the {what} is newer than this report"),
        Outcome::Silent => format!("no {what}, because no test failed"),
    }
}

/// The outputs of the step, one a line. A line break in a value would begin another output.
fn outputs(comment: &Comment) -> String {
    let counts = comment.counts;
    let url = comment.url.as_deref().unwrap_or_default();
    let values = [
        ("action", comment.action.clone()),
        ("address", url.to_owned()),
        ("tests", counts.total.to_string()),
        ("failed", counts.failed.to_string()),
        ("passed-on-retry", counts.recovered.to_string()),
        ("skipped", counts.skipped.to_string()),
    ];
    let line = |(name, value): (&str, String)| format!("{name}={}", value.replace(['\r', '\n'], " "));
    values.map(line).join("\n")
}

fn append(path: &PathBuf, text: &str) -> anyhow::Result<()> {
    let shown = path.display();
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .with_context(|| shown.to_string())?;
    file.write_all(format!("{text}\n").as_bytes())
        .with_context(|| shown.to_string())
}
