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
        tree::{self, PathPattern},
    },
    sources::files::may_be_report,
};
use assay_cli_remote::{
    history::{
        self, BUILDKITE, CIRCLECI, GITHUB, GITLAB, HostError, JENKINS, PastFile, PastReport, PastRun,
        Project, Requests, Retries, Service, Values,
    },
    server::address::Address,
};
use assay_cli_terminal::{misuse::Misuse, output};
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

impl SourceFlags {
    /// Whether a file is among those to read.
    pub(super) fn wants(&self, file: &PastFile) -> bool {
        let is_named = |pattern: &Pattern| pattern.matches(&file.name);
        self.artifacts.as_ref().is_none_or(is_named) && (file.is_archive || may_be_report(&file.name))
    }
}

/// Where old runs are.
pub(super) enum Source {
    Service(Box<Project>),
    Tree(PathBuf, PathPattern),
}

impl Source {
    /// The source that the flags name, with the token of the environment.
    pub(super) fn of(
        global: &Global,
        flags: &SourceFlags,
        connection: &ConnectionFlags,
    ) -> anyhow::Result<Self> {
        let services: [(&'static Service, _); 5] = [
            (&GITHUB, &flags.github),
            (&GITLAB, &flags.gitlab),
            (&JENKINS, &flags.jenkins),
            (&BUILDKITE, &flags.buildkite),
            (&CIRCLECI, &flags.circleci),
        ];
        let mut named = services
            .into_iter()
            .filter_map(|(service, name)| Some((service, name.as_deref()?)));
        let Some((service, name)) = named.next() else {
            let tree = flags.dir.clone().zip(flags.pattern.clone());
            let (folder, pattern) = tree.context("no source is named")?;
            return Ok(Self::Tree(folder, pattern));
        };
        let is_url = service.form == "URL";
        let is_form = name.split('/').count() >= service.form.split('/').count();
        if !(is_url || is_form && name.split('/').all(is_part)) {
            let flag = service.name.to_lowercase();
            return Err(Misuse(format!("--{flag} {name:?}: expected {}", service.form)).into());
        }
        let url = flags.host_url.clone().unwrap_or_else(|| match is_url {
            true => origin(name),
            false => environment::variable(service.url.0).unwrap_or_else(|| service.url.1.to_owned()),
        });
        let token = token_of(service, &url)?;
        let user = environment::variable("JENKINS_USER_ID").unwrap_or_default();
        let variable = service.tokens.first().copied().unwrap_or_default();
        let requests = Requests::new(
            Address::parse("the CI service", &url, connection.insecure_http)?,
            token.map(|token| service.authorization(&user, &token)),
            format!(
                "; see whether {} is right and {variable} {}",
                service.form, service.scope
            ),
            Retries {
                progress: global.progress(),
                clock: clock::now,
                within: connection.retry_for,
            },
        )?;
        let project = Project::new(service, requests, name, flags.workflow.as_deref());
        Ok(Self::Service(Box::new(project)))
    }

    /// Its name in messages and in the state.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Service(project) => project.name(),
            Self::Tree(folder, _) => format!("dir {}", shown_path(folder)),
        }
    }

    /// How many requests were sent to the service.
    pub(super) fn requests(&self) -> u64 {
        match self {
            Self::Service(project) => project.requests(),
            Self::Tree(..) => 0,
        }
    }

    /// The branch that releases are made from, if the service knows it.
    pub(super) fn stable_branch(&self) -> Result<Option<String>, HostError> {
        match self {
            Self::Service(project) => project.stable_branch(),
            Self::Tree(..) => Ok(None),
        }
    }

    /// The runs since a moment, oldest first.
    pub(super) fn runs(
        &self,
        global: &Global,
        since: Timestamp,
        now: Timestamp,
    ) -> anyhow::Result<Vec<PastRun>> {
        match self {
            Self::Service(project) => Ok(project.runs(since, now)?),
            Self::Tree(folder, pattern) => {
                let (runs, others) = tree::runs(global.progress(), folder, pattern)?;
                if others > 0 {
                    let others = output::count(u64::try_from(others)?, "file");
                    let note = format!("skipped {others} that the pattern does not match");
                    global.progress().note(&note);
                }
                let runs = runs
                    .into_iter()
                    .map(|(values, files)| run_of_tree(values, &files, now));
                let mut runs: Vec<_> = runs.filter(|run| run.started_at >= since).collect();
                runs.sort_by_key(|run| run.started_at);
                Ok(runs)
            }
        }
    }

    /// What the jobs of a run may have reported.
    pub(super) fn reports(&self, global: &Global, run: &PastRun) -> Result<Vec<PastReport>, HostError> {
        let reports = match self {
            Self::Service(project) => project.reports(run),
            Self::Tree(..) => return Ok(vec![report_of_tree(run)]),
        };
        match reports {
            Err(error) if error.is_of_one_file() => {
                let note = format!("skipped the run {}: {error}", run.id);
                global.progress().note(&note);
                Ok(Vec::new())
            }
            reports => reports,
        }
    }

    /// The files with reports of a job, downloaded one after another.
    pub(super) fn files(
        &self,
        past: &PastReport,
        flags: &SourceFlags,
        counts: &mut Counts,
    ) -> anyhow::Result<Vec<SourceFile>> {
        let (mut reports, mut size) = (Vec::new(), 0);
        for file in past.files.iter().filter(|file| flags.wants(file)) {
            if file.is_expired {
                counts.expired += 1;
                continue;
            }
            let found = match self.open(file, counts) {
                Ok(opened) => unpack(opened, file, &past.id, counts),
                Err(error) if error.is_gone() => {
                    counts.expired += 1;
                    continue;
                }
                Err(error) if !error.is_of_one_file() && past.cases.is_none() => return Err(error.into()),
                Err(error) => {
                    counts.unreadable(&format!("{} of {}: {error}", file.name, past.id));
                    continue;
                }
            };
            size += found.iter().map(|report| report.bytes.len()).sum::<usize>();
            if u64::try_from(size)? > archive::MOST_BYTES {
                counts.unreadable(&format!(
                    "{}: its reports exceed {} MiB",
                    past.id,
                    archive::MOST_BYTES >> 20
                ));
                return Ok(Vec::new());
            }
            reports.extend(found);
        }
        if let (true, Some(cases), Self::Service(project)) = (reports.is_empty(), &past.cases, self) {
            match project.results(cases) {
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

    fn open(&self, file: &PastFile, counts: &mut Counts) -> Result<File, HostError> {
        match self {
            Self::Tree(..) => Ok(File::open(&file.url)?),
            Self::Service(project) => {
                let (downloaded, bytes) = project.download(file)?;
                counts.bytes += bytes;
                Ok(downloaded)
            }
        }
    }
}

/// The reports in a file. One that cannot be unpacked is counted and has none.
fn unpack(opened: File, file: &PastFile, report: &str, counts: &mut Counts) -> Vec<SourceFile> {
    let unpacked = match file.is_archive {
        true => archive::unpack(opened),
        false => archive::plain(opened, &file.name),
    };
    match unpacked {
        Ok(unpacked) => {
            if let Some(first) = unpacked.refused.first() {
                let number = u64::try_from(unpacked.refused.len()).unwrap_or(u64::MAX);
                counts.unreadable(&format!(
                    "{} of {} of {report}, the first {first}: links, archives, encrypted files and names that lead \
                     out of the archive are refused",
                    output::count(number, "file"),
                    file.name
                ));
            }
            unpacked.reports
        }
        Err(error) => {
            counts.unreadable(&format!("{} of {report}: {error}", file.name));
            Vec::new()
        }
    }
}

/// A run whose files have paths with these values. If no report has a start, it started when the first was written.
fn run_of_tree(values: Values, files: &[PathBuf], now: Timestamp) -> PastRun {
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
    let content = |file: &PastFile| archive::plain(File::open(&file.url).ok()?, &file.name).ok();
    let reports = past
        .files
        .iter()
        .filter_map(content)
        .flat_map(|file| file.reports);
    // What cannot be read is noted when it is sent.
    if let Ok(report) = history::read(&past, reports.collect(), now) {
        run.started_at = report.prepared.recording.started_at;
    }
    run
}

/// The report of such a run.
fn report_of_tree(run: &PastRun) -> PastReport {
    let value = |name: &str| run.values.get(name).cloned();
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
            run_key: value("run"),
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

/// Scheme and host of an address.
fn origin(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let host = rest.split('/').next().unwrap_or_default();
    format!("{scheme}://{host}")
}

/// Whether a part of a project's name may be a part of an address.
fn is_part(part: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !part.trim_matches('.').is_empty() && part.chars().all(is_allowed)
}

/// The token of the environment, else of `gh`.
fn token_of(service: &Service, url: &str) -> anyhow::Result<Option<String>> {
    let is_word = |token: &str| !token.is_empty() && token.chars().all(|c| c.is_ascii_graphic());
    for name in service.tokens {
        let token = environment::variable(name).unwrap_or_default().trim().to_owned();
        // It becomes a header.
        if !token.is_empty() && !is_word(&token) {
            let wrong = format!("{name} contains no token; a token is one word of ASCII characters");
            return Err(Misuse(wrong).into());
        }
        if !token.is_empty() {
            return Ok(Some(token));
        }
    }
    let is_github = service.name == GITHUB.name;
    let token = Some(url).filter(|_| is_github).and_then(token_of_gh);
    let token = token.filter(|token| is_word(token));
    if token.is_some() || service.name == JENKINS.name {
        return Ok(token);
    }
    let sign_in = if is_github {
        ", or sign in with `gh auth login`"
    } else {
        ""
    };
    let (name, scope) = (service.name, service.scope);
    let variable = service.tokens.first().copied().unwrap_or_default();
    Err(Misuse(format!(
        "no token for {name}: set {variable} to one that {scope}{sign_in}"
    ))
    .into())
}

/// The token that GitHub's own command line keeps for the host of this address. Another host must not get it.
fn token_of_gh(url: &str) -> Option<String> {
    let host = url.split_once("://")?.1.split(['/', ':']).next()?;
    let mut command = Command::new("gh");
    command.args([
        "auth",
        "token",
        "--hostname",
        host.strip_prefix("api.").unwrap_or(host),
    ]);
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let output = output.ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
