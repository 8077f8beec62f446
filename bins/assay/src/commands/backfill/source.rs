//! Where old runs are: a CI service, or a folder of this machine.

use std::{
    cell::Cell,
    fs::File,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::Context as _;
use assay_cli_local::{
    history::{
        archive,
        tree::{self, PathPattern, PathValues},
    },
    sources::files::may_be_report,
};
use assay_cli_remote::{
    history::{self, HostError, PastFile, PastReport, PastRun, Project, SERVICES, Service, Values},
    server::{address::Address, http::Client},
};
use assay_cli_terminal::{misuse::Misuse, output, progress::Progress};
use assay_domain::{recording::RunContext, timestamp::Timestamp};
use assay_ingest::{Flags, ci::CiContext};
use assay_reports::{SourceFile, shown_path};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use clap::Args;
use glob::Pattern;

use super::counts::Counts;
use crate::{clock, environment, global::Global, server_flags::ConnectionFlags};

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
    /// The API of a host of your own, such as `https://github.example.org/api/v3`
    #[arg(long, value_name = "URL", conflicts_with_all = ["jenkins", "dir"])]
    host_url: Option<String>,
}

/// A history of old runs.
pub(super) struct Source<'a> {
    /// Its name in messages and in the state.
    pub(super) name: String,
    /// The project of a service; none for a folder.
    project: Option<Project>,
    flags: &'a SourceFlags,
    progress: &'static dyn Progress,
}

impl<'a> Source<'a> {
    /// The source that the flags name, with the token of the environment.
    pub(super) fn of(
        global: &Global,
        flags: &'a SourceFlags,
        connection: &ConnectionFlags,
    ) -> anyhow::Result<Self> {
        let names = [
            &flags.github,
            &flags.gitlab,
            &flags.jenkins,
            &flags.buildkite,
            &flags.circleci,
        ];
        let mut named = SERVICES.into_iter().zip(names);
        let named = named.find_map(|(service, name)| Some((service, name.as_deref()?)));
        let folder = flags.dir.as_deref().map(shown_path);
        let name = match named {
            Some((service, name)) => format!("{} {name}", service.name.to_lowercase()),
            None => format!("dir {}", folder.unwrap_or_default()),
        };
        let project = named.map(|(service, name)| project(global, flags, connection, service, name));
        Ok(Self {
            name,
            project: project.transpose()?,
            flags,
            progress: global.progress(),
        })
    }

    /// How many requests were sent to the service.
    pub(super) fn requests(&self) -> u64 {
        self.project.as_ref().map_or(0, |project| project.requests.get())
    }

    /// The branch that releases are made from, if the service knows it.
    pub(super) fn stable_branch(&self) -> Result<Option<String>, HostError> {
        self.project.as_ref().map_or(Ok(None), Project::stable_branch)
    }

    /// The runs since a moment, oldest first.
    pub(super) fn runs(&self, since: Timestamp, now: Timestamp) -> anyhow::Result<Vec<PastRun>> {
        if let Some(project) = &self.project {
            return Ok(project.runs(since, now)?);
        }
        let tree = self.flags.dir.as_ref().zip(self.flags.pattern.as_ref());
        let (folder, pattern) = tree.context("no source is named")?;
        let runs = tree::runs(self.progress, folder, pattern)?;
        let runs = runs.iter().map(|(values, files)| run_of_tree(values, files, now));
        let mut runs: Vec<_> = runs.filter(|run| run.started_at >= since).collect();
        runs.sort_by_key(|run| run.started_at);
        Ok(runs)
    }

    /// What the jobs of a run may have reported.
    pub(super) fn reports(&self, run: &PastRun) -> Result<Vec<PastReport>, HostError> {
        match self.project.as_ref().map(|project| project.reports(run)) {
            None => Ok(run.reports.clone()),
            Some(Err(error)) if error.is_of_one_file() => {
                let skipped = format!("skipped the run {}: {error}", run.id);
                self.progress.note(&skipped);
                Ok(Vec::new())
            }
            Some(reports) => reports,
        }
    }

    /// The files of a job that are to be read.
    pub(super) fn wanted<'b>(&'b self, past: &'b PastReport) -> impl Iterator<Item = &'b PastFile> {
        past.files.iter().filter(|file| {
            let pattern = self.flags.artifacts.as_ref();
            let is_named = pattern.is_none_or(|pattern| pattern.matches(&file.name));
            is_named && (file.is_archive || may_be_report(&file.name))
        })
    }

    /// The files with reports of a job, downloaded one after another.
    pub(super) fn files(&self, past: &PastReport, counts: &mut Counts) -> anyhow::Result<Vec<SourceFile>> {
        let (mut reports, mut left) = (Vec::new(), archive::MOST_BYTES);
        for file in self.wanted(past) {
            let name = format!("{} of {}", file.name, past.id);
            let opened = match &self.project {
                _ if file.is_expired => Ok(None),
                None => File::open(&file.url)
                    .map(|file| Some((file, 0)))
                    .map_err(HostError::from),
                Some(project) => project.download(&file.url),
            };
            let found = match opened {
                Ok(None) => {
                    counts.expired += 1;
                    continue;
                }
                Ok(Some((opened, bytes))) => {
                    counts.bytes += bytes;
                    archive::reports(opened, &file.name, file.is_archive, &mut left)
                }
                Err(error) if !error.is_of_one_file() && past.results.is_none() => return Err(error.into()),
                Err(error) => Err(error.into()),
            };
            match found {
                Ok(unpacked) => {
                    if let Some(first) = unpacked.refused.first() {
                        let refused = output::count(u64::try_from(unpacked.refused.len())?, "file");
                        counts.unreadable(&format!(
                            "{refused} of {name}, the first {first}: links, archives, encrypted files and names that \
                             lead out of the archive are refused"
                        ));
                    }
                    reports.extend(unpacked.reports);
                }
                Err(error) => counts.unreadable(&format!("{name}: {error}")),
            }
        }
        if let (true, Some(project)) = (reports.is_empty(), &self.project) {
            match project.results(past) {
                Err(error) if error.is_of_one_file() => {
                    counts.unreadable(&format!("the results of {}: {error}", past.id));
                }
                report => reports.extend(report?),
            }
        }
        Ok(reports)
    }
}

/// The project of a service, with the token of the environment.
fn project(
    global: &Global,
    flags: &SourceFlags,
    connection: &ConnectionFlags,
    service: &'static Service,
    name: &str,
) -> anyhow::Result<Project> {
    let is_url = service.form == "URL";
    let is_form = name.split('/').count() >= service.form.split('/').count();
    // Parts of an address.
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_part = |part: &str| !part.trim_matches('.').is_empty() && part.chars().all(is_allowed);
    if !(is_url || is_form && name.split('/').all(is_part)) {
        let flag = service.name.to_lowercase();
        let expected = format!("--{flag} {name:?}: expected {}", service.form);
        return Err(Misuse(expected).into());
    }
    let url = match &flags.host_url {
        Some(url) => url.clone(),
        None if is_url => name.splitn(4, '/').take(3).collect::<Vec<_>>().join("/"),
        None => environment::variable(service.url.0).unwrap_or_else(|| service.url.1.to_owned()),
    };
    let address = Address::parse("the CI service", &url, connection.insecure_http)?;
    Ok(Project {
        service,
        name: name.to_owned(),
        base: (service.base)(name),
        workflow: flags.workflow.clone(),
        client: Client::new(address)?,
        authorization: authorization(service, &url)?,
        progress: global.progress(),
        clock: clock::now,
        retry_for: connection.retry_for,
        requests: Cell::default(),
    })
}

/// A run whose files have paths with these values. If no report has a start, it started when the first was written.
fn run_of_tree(values: &PathValues, files: &[PathBuf], now: Timestamp) -> PastRun {
    let value = |name: &str| values.get(name).cloned();
    let named = values.iter().map(|(name, value)| format!("{name}={value}"));
    let modified = |file: &PathBuf| file.metadata().ok()?.modified().ok();
    let first = files.iter().filter_map(modified).min();
    let mut started_at = first.map_or(now, |at| time::OffsetDateTime::from(at).into());
    // Each branch may number its builds from 1, and a job that was made again numbers them once more.
    let key: Vec<_> = ["branch", "run", "commit"]
        .into_iter()
        .filter_map(value)
        .collect();
    let file = |path: &PathBuf| PastFile {
        name: shown_path(path),
        bytes: path.metadata().ok().map(|file| file.len()),
        url: path.to_string_lossy().into_owned(),
        ..PastFile::default()
    };
    let report = PastReport {
        id: named.collect::<Vec<_>>().join(" "),
        ci: CiContext {
            attempt: value("attempt").and_then(|attempt| attempt.parse().ok()),
            job: value("job"),
            ..CiContext::default()
        },
        flags: Flags {
            run_key: Some(key.join("/")),
            context: RunContext {
                branch: value("branch").map(|branch| branch.replace("%2F", "/")),
                commit_sha: value("commit"),
                suite: value("job"),
                ..RunContext::default()
            },
            ..Flags::default()
        },
        started_at: Some(started_at),
        files: files.iter().map(file).collect(),
        ..PastReport::default()
    };
    let mut content = Vec::new();
    let mut left = archive::MOST_BYTES;
    // What cannot be read is noted when it is sent.
    for file in &report.files {
        let opened = File::open(&file.url).map_err(anyhow::Error::new);
        let unpacked = opened.and_then(|opened| archive::reports(opened, &file.name, false, &mut left));
        content.extend(unpacked.unwrap_or_default().reports);
    }
    if let Ok(Some(read)) = history::read(&report, content, now) {
        started_at = read.prepared.recording.started_at;
    }
    PastRun {
        id: report.id.clone(),
        started_at,
        values: Values::new(),
        reports: vec![report],
    }
}

/// The header with the token of the environment, else of `gh`. That of Jenkins has the name of its user before it.
fn authorization(service: &Service, url: &str) -> anyhow::Result<Option<String>> {
    let (is_github, is_basic) = (service.name == "GitHub", service.header.1 == "Basic ");
    let set = |name: &str| environment::variable(name).filter(|text| !text.trim().is_empty());
    let of_gh = || is_github.then(|| token_of_gh(url))?;
    let token = service.tokens.iter().find_map(|name| set(name)).or_else(of_gh);
    let Some(token) = token else {
        if is_basic {
            return Ok(None);
        }
        let (name, scope, variable) = (service.name, service.scope, service.tokens.join(" or "));
        let sign_in = is_github.then_some(", or sign in with `gh auth login`");
        let sign_in = sign_in.unwrap_or_default();
        let missing = format!("no token for {name}: set {variable} to one that {scope}{sign_in}");
        return Err(Misuse(missing).into());
    };
    let mut token = token.trim().to_owned();
    if !token.chars().all(|c| c.is_ascii_graphic()) {
        let wrong = format!("the token for {} is no word of ASCII characters", service.name);
        return Err(Misuse(wrong).into());
    }
    if is_basic {
        let user = set("JENKINS_USER_ID").unwrap_or_default();
        token = STANDARD.encode(format!("{user}:{token}"));
    }
    Ok(Some(format!("{}{token}", service.header.1)))
}

/// The token that GitHub's own command line keeps for the host of this address. Another host must not get it.
fn token_of_gh(url: &str) -> Option<String> {
    let host = url.split_once("://")?.1.split(['/', ':']).next()?;
    let host = host.strip_prefix("api.").unwrap_or(host);
    let mut command = Command::new("gh");
    command.args(["auth", "token", "--hostname", host]);
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let output = output.ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}
