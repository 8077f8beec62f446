//! GitHub Actions: the routes of workflow runs, their jobs and their artifacts.

use assay_domain::timestamp::Timestamp;
use serde_json::{Value, json};

use super::{HostError, PastFile, PastReport, PastRun, Places, Project, Service, Values, text, time};

/// GitHub Actions.
pub static GITHUB: Service = Service {
    name: "GitHub",
    form: "OWNER/REPO",
    url: ("GITHUB_API_URL", "https://api.github.com"),
    tokens: &["GITHUB_TOKEN", "GH_TOKEN"],
    header: ("Authorization", "Bearer "),
    scope: "may read its Actions",
    base: |name| format!("/repos/{name}"),
    default_branch: "/default_branch",
    runs,
    reports,
};

/// The most runs that one search lists.
const MOST_LISTED: u64 = 1_000;
/// The shortest time that a search is divided into, in milliseconds.
const SHORTEST_WINDOW_MS: i64 = 60_000;
/// An artifact is stored within this time after the last step of its job, in milliseconds.
const AFTER_JOB_MS: i64 = 60_000;
/// Where the hosted machines have checkouts: below the repository's name, twice.
const CHECKOUTS: [(&str, char); 3] = [
    ("/home/runner/work", '/'),
    ("/Users/runner/work", '/'),
    ("D:\\a", '\\'),
];

/// The values of a run that are needed later. An answer has twenty times as many.
const OF_RUN: &Places = &[
    ("GITHUB_ACTIONS", "true"),
    ("GITHUB_EVENT_PATH", "event"),
    ("GITHUB_RUN_ID", "/id"),
    ("GITHUB_RUN_ATTEMPT", "/run_attempt"),
    ("GITHUB_SHA", "/head_sha"),
    ("GITHUB_REPOSITORY", "/repository/full_name"),
    ("event", "/event"),
    ("branch", "/head_branch"),
    ("title", "/display_title"),
    ("url", "/html_url"),
    ("number", "/pull_requests/0/number"),
    ("base", "/pull_requests/0/base/sha"),
    ("GITHUB_BASE_REF", "/pull_requests/0/base/ref"),
    ("head", "/head_repository/full_name"),
    ("actor", "/actor/login"),
    ("message", "/head_commit/message"),
    ("author", "/head_commit/author/name"),
];

fn runs(project: &Project, since: Timestamp, now: Timestamp) -> Result<Vec<PastRun>, HostError> {
    let mut runs = Vec::new();
    window(project, since, now, &mut runs)?;
    Ok(runs)
}

/// Lists the runs of a window. If it has more than a search lists, its halves are searched.
fn window(
    project: &Project,
    from: Timestamp,
    to: Timestamp,
    runs: &mut Vec<PastRun>,
) -> Result<(), HostError> {
    let workflow = project.workflow.as_ref();
    let workflow = workflow.map_or(String::new(), |name| format!("/workflows/{name}"));
    let path = format!(
        "{}/actions{workflow}/runs?per_page=100&created={from}..{to}",
        project.base
    );
    let count = project
        .requests
        .get(&path)?
        .get("total_count")
        .and_then(Value::as_u64);
    let no_count = || HostError::Unusable("the list of runs has no total_count".to_owned());
    let (count, length) = (count.ok_or_else(no_count)?, to.since_ms(from));
    if count > MOST_LISTED && length > SHORTEST_WINDOW_MS {
        let middle = from.plus_ms(length / 2);
        window(project, from, middle, runs)?;
        return window(project, middle, to, runs);
    }
    if count == 0 {
        return Ok(());
    }
    project.requests.each(&path, "/workflow_runs", |answer| {
        let start = time(answer, "/run_started_at").or_else(|| time(answer, "/created_at"));
        let is_finished = text(answer, "/status").as_deref() == Some("completed");
        runs.extend(PastRun::of(answer, "/id", start, OF_RUN).filter(|_| is_finished));
        true
    })
}

fn reports(project: &Project, run: &PastRun) -> Result<Vec<PastReport>, HostError> {
    let path = format!("{}/actions/runs/{}", project.base, run.id);
    let artifacts = project
        .requests
        .all(&format!("{path}/artifacts?per_page=100"), "/artifacts")?;
    if artifacts.is_empty() {
        return Ok(Vec::new());
    }
    let mut jobs = Vec::new();
    let of_jobs = format!("{path}/jobs?filter=all&per_page=100");
    project.requests.each(&of_jobs, "/jobs", |job| {
        jobs.extend(Job::of(job));
        true
    })?;
    let merge_base = merge_base(project, run)?;
    let reports = artifacts.iter().filter_map(|artifact| {
        let mut report = report(run, &jobs, artifact)?;
        report.flags.context.merge_base.clone_from(&merge_base);
        Some(report)
    });
    Ok(reports.collect())
}

/// The commit at which the head of a pull request left its base. A run of the event `pull_request` tested a merge with the
/// base's newest commit, which the service does not name.
fn merge_base(project: &Project, run: &PastRun) -> Result<Option<String>, HostError> {
    if run.value("event").as_deref() == Some("pull_request") {
        return Ok(None);
    }
    let (Some(base), Some(head)) = (run.value("base"), run.value("GITHUB_SHA")) else {
        return Ok(None);
    };
    let path = format!("{}/compare/{base}...{head}?per_page=1", project.base);
    let answer = project.requests.find(&path)?;
    // Once a branch is merged, its head itself is the answer.
    Ok(text(&answer, "/merge_base_commit/sha").filter(|sha| *sha != head))
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
            let words = text.split(|c: char| !c.is_alphanumeric());
            let words = words.filter(|word| !word.is_empty());
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
    let only = |jobs: &[&'a Job]| match jobs {
        [job] => Some(*job),
        _ => None,
    };
    let running: Vec<_> = jobs.iter().filter(ran).collect();
    let named: Vec<_> = running
        .iter()
        .copied()
        .filter(|job| job.names(artifact))
        .collect();
    only(&named).or_else(|| only(&running))
}

/// The report in an artifact.
fn report(run: &PastRun, jobs: &[Job], artifact: &Value) -> Option<PastReport> {
    let (id, name) = (text(artifact, "/id")?, text(artifact, "/name")?);
    let created = time(artifact, "/created_at")?;
    let job = job_of(jobs, &name, created);
    let began = jobs.iter().filter(|job| job.started_at <= created);
    let latest = began.max_by_key(|job| job.started_at);
    let is_pull_request = run
        .value("event")
        .is_some_and(|event| event.starts_with("pull_request"));
    let repository = run.value("GITHUB_REPOSITORY")?;
    let mut values = Values::new();
    if let Some(job) = job.or(latest) {
        values.insert("GITHUB_RUN_ATTEMPT", job.attempt.clone());
    }
    values.extend(job.and_then(|job| Some(("RUNNER_NAME", job.runner.clone()?))));
    let key = job.map_or(name.as_str(), |job| job.key().0);
    values.insert("GITHUB_JOB", key.to_owned());
    let page = run.value("url").unwrap_or_default();
    if let Some((server, _)) = page.split_once(&format!("/{repository}/")) {
        values.insert("GITHUB_SERVER_URL", server.to_owned());
    }
    if let Some(branch) = run.value("branch") {
        match is_pull_request {
            true => values.extend([("GITHUB_HEAD_REF", branch)]),
            false => values.extend([
                ("GITHUB_REF", format!("refs/heads/{branch}")),
                ("GITHUB_REF_NAME", branch),
            ]),
        }
    }
    let folder = repository.rsplit('/').next().unwrap_or_default();
    let root = |(work, slash)| format!("{work}{slash}{folder}{slash}{folder}");
    let file = PastFile {
        url: text(artifact, "/archive_download_url")?,
        is_archive: true,
        bytes: artifact.get("size_in_bytes").and_then(Value::as_u64),
        expires_at: time(artifact, "/expires_at"),
        is_expired: artifact.get("expired") == Some(&Value::Bool(true)),
        name,
    };
    let mut report = PastReport {
        started_at: Some(job.map_or(run.started_at, |job| job.started_at)),
        roots: CHECKOUTS.map(root).to_vec(),
        files: vec![file],
        ..PastReport::new(run, &id, &values, Some(&event(run, is_pull_request)))
    };
    report.flags.context.suite = job.filter(|job| job.key().1).map(|job| job.name.clone());
    Some(report)
}

/// The event that started a run, as far as the service still knows it.
fn event(run: &PastRun, is_pull_request: bool) -> Value {
    let value = |name: &str| run.value(name);
    if is_pull_request {
        let number = value("number").and_then(|number| number.parse::<i64>().ok());
        return json!({"pull_request": {
            "number": number, "title": value("title"), "user": {"login": value("actor")},
            "head": {"sha": value("GITHUB_SHA"), "ref": value("branch"), "repo": {"full_name": value("head")}},
            "base": {"repo": {"full_name": value("GITHUB_REPOSITORY")}},
        }});
    }
    let commit = json!({"message": value("message"), "author": {"name": value("author")}});
    match value("event").as_deref() {
        Some("push") => json!({"head_commit": commit}),
        Some("merge_group") => {
            json!({"merge_group": {"head_sha": value("GITHUB_SHA"), "head_commit": commit}})
        }
        Some(_) | None => Value::Null,
    }
}
