//! Where old runs are: a CI service, or a folder of this machine.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::Context as _;
use assay_cli_local::{
    history::{
        archive,
        report::Known,
        tree::{self, PathPattern, TreeRun},
    },
    sources::files::{self, may_be_report},
};
use assay_cli_remote::{
    history::{
        Buildkite, CircleCi, GitHub, GitLab, Host, HostError, Jenkins, PastFile, PastReport, PastRun,
        Requests, Waiting, basic, cases,
    },
    server::address::Address,
};
use assay_cli_terminal::message;
use assay_domain::{recording::RunContext, timestamp::Timestamp};
use assay_reports::{SourceFile, ci::CiContext};
use clap::Args;
use glob::Pattern;

use super::{counts::Counts, misuse};
use crate::{clock, environment, server_flags::ConnectionFlags};

/// The flags of the source.
#[derive(Debug, Args)]
pub(super) struct SourceFlags {
    /// A repository with GitHub Actions
    #[arg(long, value_name = "OWNER/REPO", group = "source")]
    github: Option<String>,
    /// A project of GitLab
    #[arg(long, value_name = "GROUP/PROJECT", group = "source")]
    gitlab: Option<String>,
    /// The page of a job, a folder or a multibranch project of Jenkins
    #[arg(long, value_name = "URL", group = "source")]
    jenkins: Option<String>,
    /// A pipeline of Buildkite
    #[arg(long, value_name = "ORG/PIPELINE", group = "source")]
    buildkite: Option<String>,
    /// A project of CircleCI by its slug, such as gh/OWNER/REPO
    #[arg(long, value_name = "SLUG", group = "source")]
    circleci: Option<String>,
    /// A folder of reports whose paths name their runs
    #[arg(long, value_name = "TREE", group = "source", requires = "pattern")]
    dir: Option<PathBuf>,
    /// How the paths below --dir name run, branch, commit, job and attempt
    #[arg(long, value_name = "PATTERN", requires = "dir", value_parser = PathPattern::parse)]
    pattern: Option<PathPattern>,
    /// Read only these: artifacts of GitHub, jobs of GitLab, paths of files elsewhere
    #[arg(long, value_name = "GLOB", conflicts_with = "dir", value_parser = Pattern::new)]
    artifacts: Option<Pattern>,
    /// Only this workflow: its file on GitHub, its name on CircleCI
    #[arg(long, value_name = "NAME", conflicts_with_all = ["gitlab", "jenkins", "buildkite", "dir"])]
    workflow: Option<String>,
    /// The API of a host of your own, such as https://github.example.org/api/v3
    #[arg(long, value_name = "URL", conflicts_with_all = ["jenkins", "dir"])]
    host_url: Option<String>,
}

impl SourceFlags {
    /// Whether a file is among those to read.
    pub(super) fn wants(&self, file: &PastFile) -> bool {
        self.artifacts
            .as_ref()
            .is_none_or(|pattern| pattern.matches(&file.name))
            && (file.is_archive || may_be_report(&file.name))
    }
}

/// Where old runs are.
pub(super) enum Source {
    Host { name: String, host: Box<dyn Host> },
    Tree { folder: PathBuf, pattern: PathPattern },
}

/// A run.
pub(super) enum Run {
    Past(PastRun),
    Tree(TreeRun, Timestamp),
}

impl Run {
    pub(super) const fn started_at(&self) -> Timestamp {
        match self {
            Self::Past(run) => run.started_at,
            Self::Tree(_, modified) => *modified,
        }
    }
}

/// What a job of a run may have reported.
pub(super) struct Job {
    /// Its identity in the source.
    pub(super) id: String,
    pub(super) ci: CiContext,
    pub(super) known: Known,
    content: Content,
}

enum Content {
    Past(PastReport),
    Files(Vec<PathBuf>),
}

impl Job {
    /// Its files at the host.
    pub(super) fn past_files(&self) -> impl Iterator<Item = &PastFile> {
        let files = match &self.content {
            Content::Past(report) => report.files.as_slice(),
            Content::Files(_) => &[],
        };
        files.iter()
    }

    /// Whether its files are on this machine.
    pub(super) const fn has_files_here(&self) -> bool {
        matches!(self.content, Content::Files(_))
    }

    /// Whether the host may have its results.
    pub(super) const fn has_results(&self) -> bool {
        matches!(&self.content, Content::Past(PastReport { cases: Some(_), .. }))
    }
}

impl Source {
    /// The source that the flags name, with the token of the environment.
    pub(super) fn of(flags: &SourceFlags, connection: &ConnectionFlags) -> anyhow::Result<Self> {
        let requests = |url: &str, headers: Vec<(&'static str, String)>, advice: &'static str| {
            let own = flags.host_url.as_deref().unwrap_or(url);
            let address = Address::parse("the CI service", own, connection.insecure_http)?;
            let waiting = |waiting: &Waiting| {
                message!("waiting {} s: {}", waiting.pause.as_secs().max(1), waiting.reason);
            };
            Requests::new(
                address,
                headers,
                advice,
                (clock::now, connection.retry_for),
                Box::new(waiting),
            )
        };
        let workflow = flags.workflow.as_deref();
        let (name, host): (String, Box<dyn Host>) = if let Some(repository) = &flags.github {
            const ADVICE: &str = "see whether OWNER/REPO is right and GITHUB_TOKEN may read its Actions";
            parts_of(repository, "--github", "OWNER/REPO")?;
            let url = environment::variable("GITHUB_API_URL");
            let url = url.as_deref().unwrap_or("https://api.github.com");
            let token = token(&["GITHUB_TOKEN", "GH_TOKEN"])?.or_else(token_of_gh);
            let token = token.ok_or_else(|| {
                misuse(
                    "no token for GitHub: set GITHUB_TOKEN to one that may read Actions, or sign in with `gh auth login`",
                )
            })?;
            let mut headers = vec![("Authorization", format!("Bearer {token}"))];
            headers.extend(GitHub::HEADERS.map(|(name, value)| (name, value.to_owned())));
            let host = GitHub::new(requests(url, headers, ADVICE)?, repository, workflow);
            (format!("github {repository}"), Box::new(host))
        } else if let Some(project) = &flags.gitlab {
            const ADVICE: &str = "see whether GROUP/PROJECT is right and GITLAB_TOKEN has the scope read_api";
            parts_of(project, "--gitlab", "GROUP/PROJECT")?;
            let url = environment::variable("CI_API_V4_URL");
            let url = url.as_deref().unwrap_or("https://gitlab.com/api/v4");
            let token = required_token("GITLAB_TOKEN", "GitLab", "one with the scope read_api")?;
            let host = GitLab::new(requests(url, vec![("PRIVATE-TOKEN", token)], ADVICE)?, project);
            (format!("gitlab {project}"), Box::new(host))
        } else if let Some(url) = &flags.jenkins {
            const ADVICE: &str =
                "see whether the URL is a job's, and JENKINS_USER_ID and JENKINS_API_TOKEN may read it";
            let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
            let (host, path) = rest.trim_end_matches('/').split_once('/').unwrap_or((rest, ""));
            let user = environment::variable("JENKINS_USER_ID").unwrap_or_default();
            let headers = token(&["JENKINS_API_TOKEN"])?
                .map(|token| ("Authorization", basic(&user, &token)))
                .into_iter()
                .collect();
            let requests = requests(&format!("{scheme}://{host}"), headers, ADVICE)?;
            let path = format!("/{path}");
            (
                format!("jenkins {url}"),
                Box::new(Jenkins::new(requests, path.trim_end_matches('/'))),
            )
        } else if let Some(pipeline) = &flags.buildkite {
            const ADVICE: &str = "see whether ORG/PIPELINE is right and BUILDKITE_API_TOKEN may read_builds and read_artifacts";
            let (organization, slug) = parts_of(pipeline, "--buildkite", "ORG/PIPELINE")?;
            let token = required_token(
                "BUILDKITE_API_TOKEN",
                "Buildkite",
                "one with read_builds and read_artifacts",
            )?;
            let headers = vec![("Authorization", format!("Bearer {token}"))];
            let requests = requests("https://api.buildkite.com/v2", headers, ADVICE)?;
            (
                format!("buildkite {pipeline}"),
                Box::new(Buildkite::new(requests, organization, slug)),
            )
        } else if let Some(slug) = &flags.circleci {
            const ADVICE: &str =
                "see whether the slug is right, as gh/OWNER/REPO, and CIRCLE_TOKEN may read the project";
            parts_of(slug, "--circleci", "gh/OWNER/REPO")?;
            let token = required_token("CIRCLE_TOKEN", "CircleCI", "a personal API token")?;
            let requests = requests(
                "https://circleci.com/api/v2",
                vec![("Circle-Token", token)],
                ADVICE,
            )?;
            (
                format!("circleci {slug}"),
                Box::new(CircleCi::new(requests, slug, workflow)),
            )
        } else {
            let (folder, pattern) = flags
                .dir
                .clone()
                .zip(flags.pattern.clone())
                .context("no source is named")?;
            return Ok(Self::Tree { folder, pattern });
        };
        Ok(Self::Host { name, host })
    }

    /// Its name in messages and in the state.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Host { name, .. } => name.clone(),
            Self::Tree { folder, .. } => format!("dir {}", assay_reports::shown_path(folder)),
        }
    }

    /// How many requests were sent to the host.
    pub(super) fn requests(&self) -> u64 {
        match self {
            Self::Host { host, .. } => host.requests().count(),
            Self::Tree { .. } => 0,
        }
    }

    pub(super) fn stable_branch(&self) -> anyhow::Result<Option<String>> {
        match self {
            Self::Host { host, .. } => Ok(host.stable_branch()?),
            Self::Tree { .. } => Ok(None),
        }
    }

    /// The runs since a moment, oldest first.
    pub(super) fn runs(&self, since: Timestamp, now: Timestamp) -> anyhow::Result<Vec<Run>> {
        match self {
            Self::Host { host, .. } => Ok(host.runs(since, now)?.into_iter().map(Run::Past).collect()),
            Self::Tree { folder, pattern } => {
                let (runs, others) = tree::runs(folder, pattern)?;
                if others > 0 {
                    message!("skipped {others} files whose paths do not match the pattern");
                }
                let modified = |run: &TreeRun| {
                    let times = run
                        .files
                        .iter()
                        .filter_map(|file| file.metadata().ok()?.modified().ok());
                    times
                        .min()
                        .map_or(now, |at| Timestamp::from(time::OffsetDateTime::from(at)))
                };
                let runs = runs.into_iter().map(|run| {
                    let modified = modified(&run);
                    Run::Tree(run, modified)
                });
                Ok(runs.filter(|run| run.started_at() >= since).collect())
            }
        }
    }

    /// What the jobs of a run may have reported.
    pub(super) fn jobs(&self, run: &Run) -> anyhow::Result<Vec<Job>> {
        match (self, run) {
            (Self::Host { host, .. }, Run::Past(run)) => {
                let reports = match host.reports(run) {
                    Err(error) if error.is_of_one_file() => {
                        message!("skipped the run {}: {error}", run.id);
                        Vec::new()
                    }
                    reports => reports?,
                };
                Ok(reports.into_iter().map(Job::of_past).collect())
            }
            (_, Run::Tree(run, modified)) => Ok(vec![Job::of_tree(run, *modified)]),
            (Self::Tree { .. }, Run::Past(_)) => Ok(Vec::new()),
        }
    }

    /// The reports of a job, downloaded one file after another.
    pub(super) fn files(
        &self,
        job: &Job,
        flags: &SourceFlags,
        counts: &mut Counts,
    ) -> anyhow::Result<Vec<SourceFile>> {
        let (host, past) = match (self, &job.content) {
            (Self::Host { host, .. }, Content::Past(past)) => (host, past),
            (_, Content::Files(paths)) => return read_here(paths, counts),
            (Self::Tree { .. }, Content::Past(_)) => return Ok(Vec::new()),
        };
        let mut reports = Vec::new();
        for file in past.files.iter().filter(|file| flags.wants(file)) {
            if file.is_expired {
                counts.expired += 1;
                continue;
            }
            match download(host.requests(), file, counts) {
                Ok(files) => reports.extend(files),
                Err(HostError::Gone | HostError::Token { status: 404, .. }) => counts.expired += 1,
                Err(error) if !error.is_of_one_file() && past.cases.is_none() => {
                    return Err(error.into());
                }
                Err(error) => counts.unreadable(&format!("{} of {}: {error}", file.name, job.id)),
            }
        }
        if let (true, Some(cases)) = (reports.is_empty(), &past.cases) {
            let report = match cases::report(host.requests(), cases) {
                Err(error) if error.is_of_one_file() => {
                    counts.unreadable(&format!("the results of {}: {error}", job.id));
                    None
                }
                report => report?,
            };
            reports.extend(report.map(|bytes| SourceFile {
                name: "results-of-ci.xml".to_owned(),
                bytes,
                modified: None,
            }));
        }
        Ok(reports)
    }
}

/// The reports in a file of the host. One that cannot be unpacked is counted and has none.
fn download(requests: &Requests, file: &PastFile, counts: &mut Counts) -> Result<Vec<SourceFile>, HostError> {
    let mut downloaded = tempfile::tempfile().map_err(HostError::Download)?;
    counts.bytes += requests.download(&file.url, &mut downloaded)?;
    let unpacked = match file.is_archive {
        true => archive::unpack(downloaded),
        false => archive::plain(downloaded, &file.name),
    };
    match unpacked {
        Ok(unpacked) => {
            if unpacked.refused > 0 {
                counts.unreadable(&format!(
                    "{} entries of {}: they lead out of the archive or are links",
                    unpacked.refused, file.name
                ));
            }
            Ok(unpacked.reports)
        }
        Err(error) => {
            counts.unreadable(&format!("{}: {error}", file.name));
            Ok(Vec::new())
        }
    }
}

/// The reports among files of this machine.
fn read_here(paths: &[PathBuf], counts: &mut Counts) -> anyhow::Result<Vec<SourceFile>> {
    let mut reports = Vec::new();
    let budget = files::ByteBudget::default();
    for path in paths {
        let candidate = files::Candidate {
            path: path.clone(),
            from_walk: true,
        };
        match candidate.read_if(|bytes| assay_reports::looks_like_report(bytes).is_some(), &budget) {
            Ok(report) => reports.extend(report),
            Err(error) => counts.unreadable(&format!("{error:#}")),
        }
    }
    Ok(reports)
}

impl Job {
    fn of_past(report: PastReport) -> Self {
        Self {
            id: report.id.clone(),
            ci: report.ci(),
            known: Known {
                run_key: None,
                context: RunContext {
                    suite: report.suite.clone(),
                    merge_base: report.merge_base.clone(),
                    ..RunContext::default()
                },
                started_at: report.started_at,
                modified_at: None,
                roots: report.roots.clone(),
            },
            content: Content::Past(report),
        }
    }

    fn of_tree(run: &TreeRun, modified: Timestamp) -> Self {
        let value = |name: &str| run.values.get(name).cloned();
        let values: Vec<_> = run
            .values
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        Self {
            id: values.join(" "),
            ci: CiContext {
                attempt: value("attempt").and_then(|attempt| attempt.parse().ok()),
                job: value("job"),
                ..CiContext::default()
            },
            known: Known {
                run_key: value("run"),
                context: RunContext {
                    branch: value("branch").map(|branch| branch.replace("%2F", "/")),
                    commit_sha: value("commit"),
                    suite: value("job"),
                    ..RunContext::default()
                },
                started_at: None,
                modified_at: Some(modified),
                roots: Vec::new(),
            },
            content: Content::Files(run.files.clone()),
        }
    }
}

/// The parts of a name such as `OWNER/REPO`. They become parts of an address.
fn parts_of<'a>(name: &'a str, flag: &str, form: &str) -> anyhow::Result<(&'a str, &'a str)> {
    let is_part = |part: &str| {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        !part.is_empty() && part.trim_matches('.') != "" && part.chars().all(is_allowed)
    };
    let parts = name.split_once('/').filter(|_| name.split('/').all(is_part));
    let is_long_enough = name.split('/').count() >= form.split('/').count();
    parts
        .filter(|_| is_long_enough)
        .ok_or_else(|| misuse(format!("{flag} {name:?}: expected {form}")))
}

/// The first of these variables that is set. It must be a token, because it becomes a header.
fn token(variables: &[&str]) -> anyhow::Result<Option<String>> {
    let set = variables.iter().find_map(|name| {
        let token = environment::variable(name)?.trim().to_owned();
        (!token.is_empty()).then_some((name, token))
    });
    match set {
        Some((name, token)) if !token.chars().all(|c| c.is_ascii_graphic()) => Err(misuse(format!(
            "{name} contains no token; a token is one word of ASCII characters"
        ))),
        set => Ok(set.map(|(_, token)| token)),
    }
}

fn required_token(variable: &str, host: &str, kind: &str) -> anyhow::Result<String> {
    token(&[variable])?.ok_or_else(|| misuse(format!("no token for {host}: set {variable} to {kind}")))
}

/// The token that GitHub's own command line keeps.
fn token_of_gh() -> Option<String> {
    let output = Command::new("gh")
        .args(["auth", "token"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let output = output.ok().filter(|output| output.status.success())?;
    let token = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (!token.is_empty() && token.chars().all(|c| c.is_ascii_graphic())).then_some(token)
}
