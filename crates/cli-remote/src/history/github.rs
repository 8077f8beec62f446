//! GitHub Actions: the routes of workflow runs, their jobs and their artifacts.

use assay_domain::timestamp::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use ureq::http::StatusCode;

use super::{
    HostError, PastFile, PastReport, PastRun, Project, Service,
    service::{Places, list, text, values},
};

/// GitHub Actions.
pub(super) static GITHUB: Service = Service {
    name: "GitHub",
    form: "OWNER/REPO",
    url: ("GITHUB_API_URL", "https://api.github.com"),
    tokens: &["GITHUB_TOKEN", "GH_TOKEN"],
    header: ("Authorization", "Bearer "),
    scope: "may read its Actions",
    base: |name| format!("/repos/{name}"),
    default_branch: "/default_branch",
    roots: &[
        "/home/runner/work/{folder}/{folder}",
        "/Users/runner/work/{folder}/{folder}",
        "D:\\a\\{folder}\\{folder}",
    ],
    results: ("", ""),
    runs,
    reports,
};

/// From this number of runs on, a list may be cut: a search lists at most 1,000, and some may be unreadable.
const MOST_LISTED: usize = 900;
/// An artifact is stored within this time after the last step of its job, in milliseconds.
const AFTER_JOB_MS: i64 = 60_000;
/// The values of a run that are needed later. An answer has twenty times as many.
const OF_RUN: &Places = &[
    ("id", "/id"),
    ("created", "/created_at"),
    ("start", "/created_at"),
    ("start", "/run_started_at"),
    ("GITHUB_ACTIONS", "true"),
    ("GITHUB_EVENT_NAME", "/event"),
    ("GITHUB_EVENT_PATH", "event"),
    ("GITHUB_REPOSITORY", "/repository/full_name"),
    ("GITHUB_RUN_ID", "/id"),
    ("GITHUB_RUN_ATTEMPT", "/run_attempt"),
    ("GITHUB_REF_NAME", "/head_branch"),
    ("GITHUB_SHA", "/head_sha"),
    ("url", "/html_url"),
];
/// The values of a pull request that are needed later.
const OF_REQUEST: &Places = &[
    ("base", "/base/sha"),
    ("number", "/number"),
    ("GITHUB_BASE_REF", "/base/ref"),
];
/// The places of an artifact's facts.
const ARTIFACT: [&str; 4] = ["/name", "/archive_download_url", "/size_in_bytes", "/expires_at"];

/// The runs of a time. A search lists the newest ones, and the next one those before.
fn runs(project: &Project, since: Timestamp, now: Timestamp) -> Result<Vec<PastRun>, HostError> {
    let workflow = project.workflow.as_ref();
    let workflow = workflow.map_or(String::new(), |name| format!("/workflows/{name}"));
    let (mut runs, mut until) = (Vec::new(), now);
    loop {
        let path = format!("/actions{workflow}/runs?per_page=100&created={since}..{until}&status=completed");
        let found = project.list(&path, "/workflow_runs", since, run)?;
        let created = found.iter().filter_map(|run| run.value("created")?.parse().ok());
        let oldest = created.min().filter(|oldest| *oldest < until);
        let is_cut = found.len() >= MOST_LISTED;
        runs.extend(found);
        match oldest {
            Some(oldest) if is_cut => until = oldest,
            Some(_) | None => return Ok(runs),
        }
    }
}

fn run(answer: &Value) -> Option<PastRun> {
    let mut run = PastRun::of(answer, OF_RUN)?;
    let at = |place: &str| answer.pointer(place).cloned();
    let head = at("/head_repository/full_name").map(|name| json!({"full_name": name}));
    let name = run.value("GITHUB_EVENT_NAME").unwrap_or_default();
    // Which facts a file has depends on the event. Those of a pull request count before those of a workflow's run.
    let request = json!({
        "head": {"sha": at("/head_sha"), "repo": head}, "title": at("/display_title"),
        "user": {"login": at("/actor/login")},
    });
    let event = json!({
        "pull_request": run.is_of_pull_request().then_some(request),
        "workflow_run": {"head_sha": at("/head_sha"), "head_branch": at("/head_branch"), "head_repository": head},
        "head_commit": at("/head_commit").filter(|_| matches!(name.as_str(), "push" | "merge_group")),
    });
    run.values.insert("event", event.to_string());
    run.set_pull_request(list(answer, "/pull_requests"));
    Some(run)
}

impl PastRun {
    fn is_of_pull_request(&self) -> bool {
        let event = self.value("GITHUB_EVENT_NAME").unwrap_or_default();
        event.starts_with("pull_request")
    }

    /// Sets the base of the run's branch, and for events of pull requests the pull request, if only one of these is into the
    /// repository.
    fn set_pull_request<'a>(&mut self, requests: impl Iterator<Item = &'a Value>) {
        let repository = format!("/repos/{}", self.value("GITHUB_REPOSITORY").unwrap_or_default());
        let base = |request: &Value| text(request, "/base/repo/url");
        let is_own = |request: &&Value| base(request).is_some_and(|url| url.ends_with(&repository));
        let own: Vec<_> = requests.filter(is_own).collect();
        let [request] = own.as_slice() else { return };
        let mut found = values(request, OF_REQUEST);
        let number = found.remove("number").unwrap_or_default();
        found.insert("GITHUB_REF", format!("refs/pull/{number}/head"));
        found.retain(|name, _| *name == "base" || self.is_of_pull_request());
        self.values.extend(found);
    }
}

fn reports(project: &Project, run: &PastRun) -> Result<Vec<PastReport>, HostError> {
    let path = format!("{}/actions/runs/{}", project.base, run.id);
    let artifacts = project.all(&format!("{path}/artifacts?per_page=100"), "/artifacts")?;
    if artifacts.is_empty() {
        return Ok(Vec::new());
    }
    let jobs = project.all(&format!("{path}/jobs?filter=all&per_page=100"), "/jobs")?;
    // One that never ran has no times.
    let jobs: Vec<Job> = jobs.iter().filter_map(|job| Job::deserialize(job).ok()).collect();
    let mut run = run.clone();
    if run.is_of_pull_request() && run.value("GITHUB_REF").is_none() {
        // The list of runs has only open pull requests.
        let sha = run.value("GITHUB_SHA").unwrap_or_default();
        let requests = match project.get(&format!("{}/commits/{sha}/pulls?per_page=100", project.base)) {
            // The token may read Actions only, or the commit is gone.
            Err(HostError::Refused(StatusCode::FORBIDDEN | StatusCode::UNPROCESSABLE_ENTITY, ..)) => {
                Value::Null
            }
            requests => requests?,
        };
        let branch = run.value("GITHUB_REF_NAME");
        let of_branch = |request: &&Value| text(request, "/head/ref") == branch;
        run.set_pull_request(list(&requests, "").filter(of_branch));
    }
    let merge_base = merge_base(project, &run)?;
    let report = |artifact| report(&run, &jobs, artifact, merge_base.clone());
    Ok(artifacts.iter().filter_map(report).collect())
}

/// The commit at which the head of a pull request left its base. A run of the event `pull_request` tested a merge with the
/// base's newest commit, which the service does not name.
fn merge_base(project: &Project, run: &PastRun) -> Result<Option<String>, HostError> {
    let is_merge = run.value("GITHUB_EVENT_NAME").as_deref() == Some("pull_request");
    let (false, Some(base), Some(head)) = (is_merge, run.value("base"), run.value("GITHUB_SHA")) else {
        return Ok(None);
    };
    let path = format!("{}/compare/{base}...{head}?per_page=1", project.base);
    let answer = project.get(&path)?;
    // Once a branch is merged, its head itself is the answer.
    Ok(text(&answer, "/merge_base_commit/sha").filter(|sha| *sha != head))
}

/// A job of an attempt of a run.
#[derive(Deserialize)]
struct Job {
    name: String,
    run_attempt: u32,
    runner_name: Option<String>,
    started_at: Timestamp,
    completed_at: Timestamp,
}

impl Job {
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
        let [of_job, of_artifact] = [&self.name, artifact].map(str::to_lowercase);
        let words = |text| str::split(text, |c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words(&of_job).all(|word| words(&of_artifact).any(|other| other == word))
    }
}

/// The job that stored an artifact of a name: the one that ran then, or of several that ran the one that it is named
/// after. The service itself does not say.
fn job_of<'a>(jobs: &'a [Job], name: &str, stored_at: Timestamp) -> Option<&'a Job> {
    let ran = |job: &&Job| (job.started_at..=job.completed_at.plus_ms(AFTER_JOB_MS)).contains(&stored_at);
    let only = |mut jobs: Vec<&'a Job>| jobs.pop().filter(|_| jobs.is_empty());
    let running: Vec<_> = jobs.iter().filter(ran).collect();
    let named = running.iter().copied().filter(|job| job.names(name));
    only(named.collect()).or_else(|| only(running))
}

/// The report in an artifact. None if the service does not say when it was stored.
fn report(run: &PastRun, jobs: &[Job], artifact: &Value, merge_base: Option<String>) -> Option<PastReport> {
    let file = PastFile {
        is_archive: true,
        is_expired: artifact.get("expired") == Some(&Value::Bool(true)),
        ..PastFile::of(artifact, ARTIFACT)
    };
    let stored_at = text(artifact, "/created_at")?.parse().ok()?;
    let job = job_of(jobs, &file.name, stored_at);
    let began = jobs.iter().filter(|job| job.started_at <= stored_at);
    let attempt = job.or_else(|| began.max_by_key(|job| job.started_at));
    let mut of_job = values(artifact, &[("id", "/id")]);
    let key = job.map_or(file.name.as_str(), |job| job.key().0);
    of_job.insert("GITHUB_JOB", key.to_owned());
    of_job.extend(attempt.map(|job| ("GITHUB_RUN_ATTEMPT", job.run_attempt.to_string())));
    of_job.extend(job.map(|job| ("start", job.started_at.to_string())));
    let runner = job.and_then(|job| job.runner_name.clone());
    of_job.extend(runner.map(|name| ("RUNNER_NAME", name)));
    let mut report = PastReport {
        files: vec![file],
        ..run.report(&of_job)
    };
    report.ci.context.run_url = run.value("url");
    report.flags.context.suite = job.filter(|job| job.key().1).map(|job| job.name.clone());
    report.flags.context.merge_base = merge_base;
    Some(report)
}
