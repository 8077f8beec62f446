//! Where old runs are: a CI service, or a folder of this machine.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::bail;
use assay_cli_local::{
    history::{
        archive,
        tree::{self, PathPattern, PathValues},
    },
    sources::files::may_be_report,
};
use assay_cli_remote::{
    history::{self, HostError, PastFile, PastReport, PastRun, Project, Retries, SERVICES, Service, Values},
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

/// Where old runs are.
enum Place {
    Service(Box<Project>),
    Tree(PathBuf, PathPattern),
}

/// A history of old runs.
pub(super) struct Source {
    /// Its name in messages and in the state.
    pub(super) name: String,
    place: Place,
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
        let mut named = SERVICES.into_iter().zip(names);
        let named = named.find_map(|(service, name)| Some((service, name.as_deref()?)));
        let (name, place) = match (named, &flags.dir, &flags.pattern) {
            (Some((service, name)), ..) => {
                let project = project(global, flags, connection, service, name)?;
                (
                    format!("{} {name}", flag_of(service)),
                    Place::Service(Box::new(project)),
                )
            }
            (None, Some(folder), Some(pattern)) => {
                let place = Place::Tree(folder.clone(), pattern.clone());
                (format!("dir {}", shown_path(folder)), place)
            }
            (None, ..) => bail!("no source is named"),
        };
        Ok(Self {
            name,
            place,
            artifacts: flags.artifacts.clone(),
            progress: global.progress(),
        })
    }

    /// How many requests were sent to the service.
    pub(super) fn requests(&self) -> u64 {
        match &self.place {
            Place::Service(project) => project.count(),
            Place::Tree(..) => 0,
        }
    }

    /// The branch that releases are made from, if the service knows it.
    pub(super) fn stable_branch(&self) -> Result<Option<String>, HostError> {
        match &self.place {
            Place::Service(project) => project.stable_branch(),
            Place::Tree(..) => Ok(None),
        }
    }

    /// The runs since a moment, oldest first.
    pub(super) fn runs(&self, since: Timestamp, now: Timestamp) -> anyhow::Result<Vec<PastRun>> {
        let (folder, pattern) = match &self.place {
            Place::Service(project) => return Ok(project.runs(since, now)?),
            Place::Tree(folder, pattern) => (folder, pattern),
        };
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
        let Place::Service(project) = &self.place else {
            return Ok(vec![report_of_tree(run)]);
        };
        let reports = project.reports(run);
        if let Err(error) = &reports
            && error.is_of_one_file()
        {
            self.progress
                .note(&format!("skipped the run {}: {error}", run.id));
            return Ok(Vec::new());
        }
        reports
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
            let opened = match &self.place {
                _ if file.is_expired => Ok(None),
                Place::Tree(..) => File::open(&file.url)
                    .map(|file| Some((file, 0)))
                    .map_err(HostError::from),
                Place::Service(project) => project.download(&file.url),
            };
            let found = match opened {
                Ok(None) => {
                    counts.expired += 1;
                    continue;
                }
                Ok(Some((opened, bytes))) => {
                    counts.bytes += bytes;
                    archive::reports(opened, &file.name, file.is_archive)
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
        if let (0, Some(cases), Place::Service(project)) = (size, &past.cases, &self.place) {
            match cases.report(project) {
                Err(error) if error.is_of_one_file() => {
                    counts.unreadable(&format!("the results of {}: {error}", past.id));
                }
                report => reports.extend(report?),
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
    let (workflow, token) = (flags.workflow.clone(), token_of(service, &url)?);
    Project::new(service, name, workflow, address, token, retries)
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
    let (is_github, is_jenkins) = (service.name == "GitHub", service.name == "Jenkins");
    let set = |name: &str| environment::variable(name).filter(|text| !text.trim().is_empty());
    let token = service.tokens.iter().find_map(|name| set(name));
    let of_gh = || is_github.then(|| token_of_gh(url))?;
    let token = token.or_else(of_gh).unwrap_or_default();
    let token = token.trim();
    if token.is_empty() && is_jenkins {
        return Ok(None);
    }
    if token.is_empty() {
        let (name, scope, variable) = (service.name, service.scope, service.tokens.join(" or "));
        let sign_in = is_github.then_some(", or sign in with `gh auth login`");
        let missing = format!(
            "no token for {name}: set {variable} to one that {scope}{}",
            sign_in.unwrap_or_default()
        );
        return Err(Misuse(missing).into());
    }
    // It becomes a header.
    if !token.chars().all(|c| c.is_ascii_graphic()) {
        let wrong = format!("the token for {} is no word of ASCII characters", service.name);
        return Err(Misuse(wrong).into());
    }
    Ok(Some(match is_jenkins {
        true => format!("{}:{token}", set("JENKINS_USER_ID").unwrap_or_default()),
        false => token.to_owned(),
    }))
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
