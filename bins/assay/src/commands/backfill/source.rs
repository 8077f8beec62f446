//! Where old runs are: a CI service, or a folder of this machine.

use std::{
    fs::File,
    path::{Path, PathBuf},
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
    history::{
        self, HostError, PastFile, PastReport, PastRun, Project, Requests, Retries, SERVICES, Service, Values,
    },
    server::address::Address,
};
use assay_cli_terminal::{misuse::Misuse, output, progress::Progress};
use assay_domain::{recording::RunContext, timestamp::Timestamp};
use assay_ingest::{Flags, ci::CiContext};
use assay_reports::{SourceFile, shown_path};
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

/// Where old runs are. Without a project of a CI service, they are in a folder.
pub(super) struct Source {
    /// Its name in messages and in the state.
    pub(super) name: String,
    project: Option<Project>,
    tree: Option<(PathBuf, PathPattern)>,
    artifacts: Option<Pattern>,
    progress: &'static dyn Progress,
}

impl Source {
    /// The source that the flags name, with the token of the environment.
    pub(super) fn of(
        global: &Global,
        flags: &SourceFlags,
        connection: &ConnectionFlags,
    ) -> anyhow::Result<Self> {
        let names = [
            &flags.github,
            &flags.gitlab,
            &flags.jenkins,
            &flags.buildkite,
            &flags.circleci,
        ];
        let named = SERVICES.into_iter().zip(names);
        let named = named.filter_map(|(service, name)| Some((service, name.as_deref()?)));
        let source = |(service, name)| (service, name, format!("{} {name}", flag_of(service)));
        let named = named.map(source).next();
        let folder = flags.dir.as_deref().map(shown_path).unwrap_or_default();
        Ok(Self {
            name: named
                .as_ref()
                .map_or(format!("dir {folder}"), |(_, _, name)| name.clone()),
            project: named
                .map(|(service, name, _)| project(global, flags, connection, service, name))
                .transpose()?,
            tree: flags.dir.clone().zip(flags.pattern.clone()),
            artifacts: flags.artifacts.clone(),
            progress: global.progress(),
        })
    }

    /// How many requests were sent to the service.
    pub(super) fn requests(&self) -> u64 {
        self.project
            .as_ref()
            .map_or(0, |project| project.requests.count())
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
        let (folder, pattern) = self.tree.as_ref().context("no source is named")?;
        let (runs, others) = tree::runs(self.progress, folder, pattern)?;
        if others > 0 {
            let others = output::count(u64::try_from(others)?, "file");
            self.progress
                .note(&format!("skipped {others} that the pattern does not match"));
        }
        let runs = runs
            .into_iter()
            .map(|(values, files)| run_of_tree(values, &files, now));
        let mut runs: Vec<_> = runs.filter(|run| run.started_at >= since).collect();
        runs.sort_by_key(|run| run.started_at);
        Ok(runs)
    }

    /// What the jobs of a run may have reported.
    pub(super) fn reports(&self, run: &PastRun) -> Result<Vec<PastReport>, HostError> {
        match self.project.as_ref().map(|project| project.reports(run)) {
            None => Ok(vec![report_of_tree(run)]),
            Some(Err(error)) if error.is_of_one_file() => {
                self.progress
                    .note(&format!("skipped the run {}: {error}", run.id));
                Ok(Vec::new())
            }
            Some(reports) => reports,
        }
    }

    /// The files of a job that are to be read.
    pub(super) fn wanted<'a>(&'a self, past: &'a PastReport) -> impl Iterator<Item = &'a PastFile> {
        past.files.iter().filter(|file| {
            let is_named = self
                .artifacts
                .as_ref()
                .is_none_or(|pattern| pattern.matches(&file.name));
            is_named && (file.is_archive || may_be_report(&file.name))
        })
    }

    /// The files with reports of a job, downloaded one after another.
    pub(super) fn files(&self, past: &PastReport, counts: &mut Counts) -> anyhow::Result<Vec<SourceFile>> {
        let (mut reports, mut size) = (Vec::new(), 0);
        for file in self.wanted(past) {
            let name = format!("{} of {}", file.name, past.id);
            let opened = match &self.project {
                _ if file.is_expired => Ok(None),
                None => File::open(&file.url)
                    .map(|file| Some((file, 0)))
                    .map_err(HostError::from),
                Some(project) => match project.requests.download(&file.url) {
                    Err(error) if error.is_gone() => Ok(None),
                    opened => opened.map(Some),
                },
            };
            let found = match opened {
                Ok(None) => {
                    counts.expired += 1;
                    continue;
                }
                Ok(Some((opened, bytes))) => {
                    counts.bytes += bytes;
                    let is_named = self.project.is_some() && file.name.to_lowercase().ends_with(".zip");
                    archive::reports(opened, &file.name, file.is_archive || is_named)
                }
                Err(error) if !error.is_of_one_file() && past.cases.is_none() => return Err(error.into()),
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
            size = reports.iter().map(|report: &SourceFile| report.bytes.len()).sum();
            if u64::try_from(size)? > archive::MOST_BYTES {
                counts.unreadable(&format!("{}: {}", past.id, archive::TOO_LARGE));
                return Ok(Vec::new());
            }
        }
        if let (0, Some(cases), Some(project)) = (size, &past.cases, &self.project) {
            match cases.report(&project.requests) {
                Err(error) if error.is_of_one_file() => {
                    counts.unreadable(&format!("the results of {}: {error}", past.id));
                }
                report => reports.extend(report?.map(|bytes| SourceFile {
                    name: "results-of-ci.xml".to_owned(),
                    bytes,
                    modified: None,
                })),
            }
        }
        Ok(reports)
    }
}

/// The flag of a service, without dashes.
fn flag_of(service: &Service) -> String {
    service.name.to_lowercase()
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
        let expected = format!("--{} {name:?}: expected {}", flag_of(service), service.form);
        return Err(Misuse(expected).into());
    }
    let origin = || name.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
    let url = flags.host_url.clone().unwrap_or_else(|| match is_url {
        true => origin(),
        false => environment::variable(service.url.0).unwrap_or_else(|| service.url.1.to_owned()),
    });
    let retries = Retries {
        progress: global.progress(),
        clock: clock::now,
        within: connection.retry_for,
    };
    let address = Address::parse("the CI service", &url, connection.insecure_http)?;
    let requests = Requests::new(service, address, token_of(service, &url)?, retries)?;
    Ok(Project::new(service, requests, name, flags.workflow.clone()))
}

/// A run whose files have paths with these values. If no report has a start, it started when the first was written.
fn run_of_tree(values: PathValues, files: &[PathBuf], now: Timestamp) -> PastRun {
    let named = values.iter().map(|(name, value)| format!("{name}={value}"));
    let modified = |file: &PathBuf| file.metadata().ok()?.modified().ok();
    let first = files.iter().filter_map(modified).min();
    let file = |path: &PathBuf| Values::from([("path", path.to_string_lossy().into_owned())]);
    let mut run = PastRun {
        id: named.collect::<Vec<_>>().join(" "),
        started_at: first.map_or(now, |at| time::OffsetDateTime::from(at).into()),
        parts: files.iter().map(file).collect(),
        values,
    };
    let past = report_of_tree(&run);
    let content = |file: &PastFile| archive::reports(File::open(&file.url).ok()?, &file.name, false).ok();
    let files = past.files.iter().filter_map(content);
    // What cannot be read is noted when it is sent.
    if let Ok(Some(report)) = history::read(&past, files.flat_map(|file| file.reports).collect(), now) {
        run.started_at = report.prepared.recording.started_at;
    }
    run
}

/// The report of such a run.
fn report_of_tree(run: &PastRun) -> PastReport {
    let value = |name: &str| run.values.get(name).cloned();
    // Each branch may number its builds from 1, and a job that was made again numbers them once more.
    let key: Vec<_> = ["branch", "run", "commit"]
        .into_iter()
        .filter_map(value)
        .collect();
    let file = |path: &String| PastFile {
        name: shown_path(Path::new(path)),
        bytes: Path::new(path).metadata().ok().map(|file| file.len()),
        url: path.clone(),
        ..PastFile::default()
    };
    PastReport {
        id: run.id.clone(),
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
        modified_at: Some(run.started_at),
        files: run.parts.iter().flat_map(Values::values).map(file).collect(),
        ..PastReport::default()
    }
}

/// The token of the environment, else of `gh`. That of Jenkins has the name of its user before it.
fn token_of(service: &Service, url: &str) -> anyhow::Result<Option<String>> {
    // It becomes a header.
    let is_word = |token: &str| !token.is_empty() && token.chars().all(|c| c.is_ascii_graphic());
    let variables = service
        .tokens
        .iter()
        .filter_map(|name| Some((name, environment::variable(name)?)));
    let (is_github, is_jenkins) = (service.name == "GitHub", service.name == "Jenkins");
    for (name, token) in variables {
        match token.trim() {
            "" => {}
            token if !is_word(token) => {
                let wrong = format!("{name} contains no token; a token is one word of ASCII characters");
                return Err(Misuse(wrong).into());
            }
            token if is_jenkins => {
                let user = environment::variable("JENKINS_USER_ID").unwrap_or_default();
                return Ok(Some(format!("{user}:{token}")));
            }
            token => return Ok(Some(token.to_owned())),
        }
    }
    let token = Some(url).filter(|_| is_github).and_then(token_of_gh);
    let token = token.filter(|token| is_word(token));
    if token.is_some() || is_jenkins {
        return Ok(token);
    }
    let (name, scope, variable) = (service.name, service.scope, service.tokens.first().unwrap_or(&""));
    let sign_in = if is_github {
        ", or sign in with `gh auth login`"
    } else {
        ""
    };
    Err(Misuse(format!(
        "no token for {name}: set {variable} to one that {scope}{sign_in}"
    ))
    .into())
}

/// The token that GitHub's own command line keeps for the host of this address. Another host must not get it.
fn token_of_gh(url: &str) -> Option<String> {
    let host = url.split_once("://")?.1.split(['/', ':']).next()?;
    let host = host.strip_prefix("api.").unwrap_or(host);
    let mut command = Command::new("gh");
    command.args(["auth", "token", "--hostname", host]);
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let output = output.ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
