//! GitHub Actions: the routes of workflow runs, their jobs and their artifacts.

use assay_domain::timestamp::Timestamp;
use serde_json::{Value, json};

use super::{Host, HostError, PastFile, PastReport, PastRun, Requests, list, oldest_first, text, time};

/// The most runs that one search lists.
const MOST_LISTED: u64 = 1_000;
/// The shortest time that a search is divided into, in milliseconds.
const SHORTEST_WINDOW_MS: i64 = 60_000;
/// An artifact is stored within this time after the last step of its job, in milliseconds.
const AFTER_JOB_MS: i64 = 60_000;

/// A repository of GitHub.
pub struct GitHub {
    requests: Requests,
    /// `/repos/OWNER/NAME`
    base: String,
    /// The part of the path that selects a workflow.
    workflow: String,
}

impl GitHub {
    /// The headers that its routes need, beside the token.
    pub const HEADERS: [(&'static str, &'static str); 2] = [
        ("Accept", "application/vnd.github+json"),
        ("X-GitHub-Api-Version", "2022-11-28"),
    ];

    /// The repository `OWNER/NAME`, or one workflow of it by its file's name.
    pub fn new(requests: Requests, repository: &str, workflow: Option<&str>) -> Self {
        Self {
            requests,
            base: format!("/repos/{repository}"),
            workflow: workflow.map_or(String::new(), |name| format!("/workflows/{name}")),
        }
    }

    /// Lists the runs of a window. If it has more than a search lists, its halves are searched.
    fn window(&self, from: Timestamp, to: Timestamp, runs: &mut Vec<PastRun>) -> Result<(), HostError> {
        let path = format!(
            "{}/actions{}/runs?per_page=100&created={from}..{to}",
            self.base, self.workflow
        );
        let first = self.requests.get(&path)?;
        let count = first.get("total_count").and_then(Value::as_u64);
        let count = count.ok_or(HostError::Unreadable("total_count"))?;
        let length = to.since_ms(from);
        if count > MOST_LISTED && length > SHORTEST_WINDOW_MS {
            let middle = from.plus_ms(length / 2);
            self.window(from, middle, runs)?;
            return self.window(middle, to, runs);
        }
        let mut add = |answer: &Value| {
            let finished = list(answer, "/workflow_runs")
                .filter(|run| text(run, "/status").as_deref() == Some("completed"));
            runs.extend(finished.filter_map(run));
            Ok(())
        };
        match count {
            0..=100 => add(&first),
            _ => self.requests.pages(&path, add),
        }
    }

    /// The commit at which the head of a pull request left its base.
    fn merge_base(&self, run: &Value) -> Result<Option<String>, HostError> {
        let (Some(base), Some(head)) = (text(run, "/base"), text(run, "/head_sha")) else {
            return Ok(None);
        };
        let path = format!("{}/compare/{base}...{head}?per_page=1", self.base);
        let answer = self.requests.find(&path)?.unwrap_or_default();
        // Once a branch is merged, its head itself is the answer.
        Ok(text(&answer, "/merge_base_commit/sha").filter(|sha| *sha != head))
    }
}

/// The values of a run that are needed later. An answer has twenty times as many.
fn run(run: &Value) -> Option<PastRun> {
    let name = |path: &str| run.pointer(path).cloned().unwrap_or_default();
    Some(PastRun {
        id: text(run, "/id")?,
        started_at: time(run, "/run_started_at").or_else(|| time(run, "/created_at"))?,
        details: json!({
            "event": name("/event"), "head_branch": name("/head_branch"), "head_sha": name("/head_sha"),
            "attempt": name("/run_attempt"), "title": name("/display_title"), "url": name("/html_url"),
            "number": name("/pull_requests/0/number"), "base": name("/pull_requests/0/base/sha"),
            "head_repository": name("/head_repository/full_name"), "repository": name("/repository/full_name"),
            "actor": name("/actor/login"), "message": name("/head_commit/message"),
            "author": name("/head_commit/author/name"),
        }),
    })
}

impl Host for GitHub {
    fn requests(&self) -> &Requests {
        &self.requests
    }

    fn stable_branch(&self) -> Result<Option<String>, HostError> {
        Ok(text(&self.requests.get(&self.base)?, "/default_branch"))
    }

    fn runs(&self, since: Timestamp, now: Timestamp) -> Result<Vec<PastRun>, HostError> {
        let mut runs = Vec::new();
        self.window(since, now, &mut runs)?;
        Ok(oldest_first(runs))
    }

    fn reports(&self, run: &PastRun) -> Result<Vec<PastReport>, HostError> {
        let path = format!("{}/actions/runs/{}", self.base, run.id);
        let mut artifacts = Vec::new();
        self.requests
            .pages(&format!("{path}/artifacts?per_page=100"), |page| {
                artifacts.extend(list(page, "/artifacts").cloned());
                Ok(())
            })?;
        if artifacts.is_empty() {
            return Ok(Vec::new());
        }
        let mut jobs = Vec::new();
        self.requests
            .pages(&format!("{path}/jobs?filter=all&per_page=100"), |page| {
                jobs.extend(list(page, "/jobs").filter_map(Job::of));
                Ok(())
            })?;
        let merge_base = self.merge_base(&run.details)?;
        let mut reports: Vec<_> = artifacts
            .iter()
            .filter_map(|artifact| Some((time(artifact, "/created_at")?, artifact)))
            .filter_map(|(created, artifact)| report(run, &jobs, artifact, created))
            .map(|report| PastReport {
                merge_base: merge_base.clone(),
                ..report
            })
            .collect();
        reports.sort_by_cached_key(|report| (report.started_at, report.id.len(), report.id.clone()));
        Ok(reports)
    }
}

/// A job of an attempt of a run.
struct Job {
    name: String,
    attempt: String,
    runner: Option<String>,
    started_at: Timestamp,
    completed_at: Timestamp,
}

impl Job {
    fn of(job: &Value) -> Option<Self> {
        Some(Self {
            name: text(job, "/name")?,
            attempt: text(job, "/run_attempt")?,
            runner: text(job, "/runner_name"),
            started_at: time(job, "/started_at")?,
            completed_at: time(job, "/completed_at")?,
        })
    }

    /// The key of the job in its workflow's file, and whether a matrix has several jobs of it. A job without a name of its
    /// own is shown by its key, `CALLER / KEY` in a reusable workflow, with the values of a matrix in brackets.
    fn key(&self) -> (&str, bool) {
        let (name, is_leg) = match self.name.split_once(" (") {
            Some((name, _)) => (name, true),
            None => (self.name.as_str(), false),
        };
        (name.rsplit(" / ").next().unwrap_or(name), is_leg)
    }

    /// Whether an artifact is named after the job: its name has each word of the job's.
    fn names(&self, artifact: &str) -> bool {
        let words = |text: &str| {
            let words = text
                .split(|c: char| !c.is_alphanumeric())
                .filter(|word| !word.is_empty());
            words.map(str::to_lowercase).collect::<Vec<_>>()
        };
        let of_artifact = words(artifact);
        words(&self.name).iter().all(|word| of_artifact.contains(word))
    }
}

/// The job that stored an artifact: the one that ran then, or of several that ran the one that it is named after. The
/// service itself does not say.
fn job_of<'a>(jobs: &'a [Job], artifact: &str, created: Timestamp) -> Option<&'a Job> {
    let ran = |job: &&Job| (job.started_at..=job.completed_at.plus_ms(AFTER_JOB_MS)).contains(&created);
    let only = |jobs: Vec<&'a Job>| match jobs.as_slice() {
        [job] => Some(*job),
        _ => None,
    };
    let running: Vec<_> = jobs.iter().filter(ran).collect();
    let named = running
        .iter()
        .filter(|job| job.names(artifact))
        .copied()
        .collect();
    only(named).or_else(|| only(running))
}

/// The report in an artifact.
fn report(run: &PastRun, jobs: &[Job], artifact: &Value, created: Timestamp) -> Option<PastReport> {
    let (id, name) = (text(artifact, "/id")?, text(artifact, "/name")?);
    let of_run = |path: &str| text(&run.details, path);
    let job = job_of(jobs, &name, created);
    let attempts = jobs.iter().filter(|job| job.started_at <= created);
    let attempt = attempts
        .max_by_key(|job| job.started_at)
        .map(|job| job.attempt.clone());
    let is_pull_request = of_run("/event").is_some_and(|event| event.starts_with("pull_request"));
    let (repository, url) = (of_run("/repository")?, of_run("/url").unwrap_or_default());
    let folder = repository.rsplit('/').next().unwrap_or_default();
    let mut report = PastReport {
        id: format!("{}/{id}", run.id),
        event: Some(event(&run.details, is_pull_request)),
        suite: job.filter(|job| job.key().1).map(|job| job.name.clone()),
        started_at: Some(job.map_or(run.started_at, |job| job.started_at)),
        roots: ["/home/runner/work", "/Users/runner/work", "D:\\a"]
            .map(|work| match work.contains('\\') {
                true => format!("{work}\\{folder}\\{folder}"),
                false => format!("{work}/{folder}/{folder}"),
            })
            .to_vec(),
        files: vec![PastFile {
            url: text(artifact, "/archive_download_url")?,
            is_archive: true,
            bytes: artifact.get("size_in_bytes").and_then(Value::as_u64),
            expires_at: time(artifact, "/expires_at"),
            is_expired: artifact.get("expired") == Some(&Value::Bool(true)),
            name: name.clone(),
        }],
        ..PastReport::default()
    };
    let branch = of_run("/head_branch");
    for (variable, value) in [
        ("GITHUB_ACTIONS", Some("true".to_owned())),
        ("GITHUB_EVENT_PATH", Some("event".to_owned())),
        ("GITHUB_RUN_ID", Some(run.id.clone())),
        (
            "GITHUB_RUN_ATTEMPT",
            job.map(|job| job.attempt.clone())
                .or(attempt)
                .or(of_run("/attempt")),
        ),
        ("GITHUB_JOB", Some(job.map_or(name, |job| job.key().0.to_owned()))),
        ("RUNNER_NAME", job.and_then(|job| job.runner.clone())),
        ("GITHUB_SHA", of_run("/head_sha")),
        (
            "GITHUB_SERVER_URL",
            url.split_once(&format!("/{repository}/"))
                .map(|(server, _)| server.to_owned()),
        ),
        ("GITHUB_REPOSITORY", Some(repository)),
        ("GITHUB_HEAD_REF", branch.clone().filter(|_| is_pull_request)),
        ("GITHUB_REF_NAME", branch.clone().filter(|_| !is_pull_request)),
        (
            "GITHUB_REF",
            branch
                .filter(|_| !is_pull_request)
                .map(|branch| format!("refs/heads/{branch}")),
        ),
    ] {
        report.set(variable, value);
    }
    Some(report)
}

/// The event that started a run, as far as the service still knows it.
fn event(run: &Value, is_pull_request: bool) -> Value {
    let of_run = |name: &str| run.get(name).cloned().unwrap_or_default();
    if is_pull_request {
        return json!({"pull_request": {
            "number": of_run("number"), "title": of_run("title"), "user": {"login": of_run("actor")},
            "head": {"sha": of_run("head_sha"), "ref": of_run("head_branch"),
                     "repo": {"full_name": of_run("head_repository")}},
            "base": {"repo": {"full_name": of_run("repository")}},
        }});
    }
    let commit = json!({"message": of_run("message"), "author": {"name": of_run("author")}});
    match of_run("event").as_str() {
        Some("push") => json!({"head_commit": commit}),
        Some("merge_group") => {
            json!({"merge_group": {"head_sha": of_run("head_sha"), "head_commit": commit}})
        }
        Some(_) | None => Value::Null,
    }
}
