//! GitHub Actions: the routes of workflow runs, their jobs and their artifacts.

use assay_domain::timestamp::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    HostError, PastFile, PastReport, PastRun, Project, Service,
    service::{Places, text},
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
    ("id", "/id"),
    ("start", "/created_at"),
    ("start", "/run_started_at"),
    ("GITHUB_ACTIONS", "true"),
    ("GITHUB_EVENT_PATH", "event"),
    ("GITHUB_REPOSITORY", "/repository/full_name"),
    ("GITHUB_RUN_ID", "/id"),
    ("GITHUB_RUN_ATTEMPT", "/run_attempt"),
    ("GITHUB_SHA", "/head_sha"),
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

/// The runs of a time. If it has more than a search lists, its halves are searched.
fn runs(project: &Project, since: Timestamp, now: Timestamp) -> Result<Vec<PastRun>, HostError> {
    let workflow = project.workflow.as_ref();
    let workflow = workflow.map_or(String::new(), |name| format!("/workflows/{name}"));
    let (mut runs, mut windows) = (Vec::new(), vec![(since, now)]);
    while let Some((from, to)) = windows.pop() {
        let path = format!("/actions{workflow}/runs?per_page=100&created={from}..{to}&status=completed");
        let answer = project.get(&format!("{}{path}", project.base))?;
        let length = to.since_ms(from);
        let count = answer.get("total_count").and_then(Value::as_u64);
        match count.ok_or_else(|| HostError::Unusable("the list of runs has no total_count".to_owned()))? {
            0 => {}
            count if count > MOST_LISTED && length > SHORTEST_WINDOW_MS => {
                let middle = from.plus_ms(length / 2);
                windows.extend([(from, middle), (middle, to)]);
            }
            _ => runs.extend(project.list(&path, "/workflow_runs", since, |answer| {
                PastRun::of(answer, OF_RUN)
            })?),
        }
    }
    Ok(runs)
}

fn reports(project: &Project, run: &PastRun) -> Result<Vec<PastReport>, HostError> {
    let path = format!("{}/actions/runs/{}", project.base, run.id);
    let all = |list: &str| format!("{path}/{list}per_page=100");
    let artifacts: Vec<Artifact> = project.all(&all("artifacts?"), "/artifacts")?;
    if artifacts.is_empty() {
        return Ok(Vec::new());
    }
    let jobs: Vec<Value> = project.all(&all("jobs?filter=all&"), "/jobs")?;
    // One that never ran has no times.
    let jobs: Vec<Job> = jobs.iter().filter_map(|job| Job::deserialize(job).ok()).collect();
    let merge_base = merge_base(project, run)?;
    let report = |artifact| report(run, &jobs, artifact, merge_base.clone());
    Ok(artifacts.into_iter().map(report).collect())
}

/// The commit at which the head of a pull request left its base. A run of the event `pull_request` tested a merge with the
/// base's newest commit, which the service does not name.
fn merge_base(project: &Project, run: &PastRun) -> Result<Option<String>, HostError> {
    let is_merge = run.value("event").as_deref() == Some("pull_request");
    let (false, Some(base), Some(head)) = (is_merge, run.value("base"), run.value("GITHUB_SHA")) else {
        return Ok(None);
    };
    let path = format!("{}/compare/{base}...{head}?per_page=1", project.base);
    let answer = project.find(&path)?;
    // Once a branch is merged, its head itself is the answer.
    Ok(text(&answer, "/merge_base_commit/sha").filter(|sha| *sha != head))
}

#[derive(Deserialize)]
struct Artifact {
    id: u64,
    created_at: Timestamp,
    #[serde(flatten)]
    file: PastFile,
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

/// The job that stored an artifact: the one that ran then, or of several that ran the one that it is named after. The
/// service itself does not say.
fn job_of<'a>(jobs: &'a [Job], artifact: &Artifact) -> Option<&'a Job> {
    let ran =
        |job: &&Job| (job.started_at..=job.completed_at.plus_ms(AFTER_JOB_MS)).contains(&artifact.created_at);
    let only = |mut jobs: Vec<&'a Job>| jobs.pop().filter(|_| jobs.is_empty());
    let running: Vec<_> = jobs.iter().filter(ran).collect();
    let named = running
        .iter()
        .copied()
        .filter(|job| job.names(&artifact.file.name));
    only(named.collect()).or_else(|| only(running))
}

/// The report in an artifact.
fn report(run: &PastRun, jobs: &[Job], artifact: Artifact, merge_base: Option<String>) -> PastReport {
    let job = job_of(jobs, &artifact);
    let began = jobs.iter().filter(|job| job.started_at <= artifact.created_at);
    let latest = began.max_by_key(|job| job.started_at);
    let file = PastFile {
        is_archive: true,
        ..artifact.file
    };
    let key = job.map_or(file.name.as_str(), |job| job.key().0);
    let attempt = job.or(latest).map(|job| job.run_attempt.to_string());
    let values = [
        ("id", Some(artifact.id.to_string())),
        ("GITHUB_JOB", Some(key.to_owned())),
        ("GITHUB_RUN_ATTEMPT", attempt),
        ("RUNNER_NAME", job.and_then(|job| job.runner_name.clone())),
        ("start", job.map(|job| job.started_at.to_string())),
    ];
    let values = values
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    let repository = run.value("GITHUB_REPOSITORY").unwrap_or_default();
    let folder = repository.rsplit('/').next().unwrap_or_default();
    let root = |(work, slash)| format!("{work}{slash}{folder}{slash}{folder}");
    // The event of a workflow that another one starts has the values of a run, whatever started that.
    let event = json!({
        "workflow_run": {
            "head_sha": run.value("GITHUB_SHA"), "head_branch": run.value("branch"),
            "head_commit": {"message": run.value("message"), "author": {"name": run.value("author")}},
            "head_repository": run.value("head").map(|name| json!({"full_name": name})),
            "pull_requests": [{"number": run.value("number").and_then(|number| number.parse::<i64>().ok())}],
        },
    });
    let mut report = PastReport {
        roots: CHECKOUTS.map(root).to_vec(),
        files: vec![file],
        ..run.report(&values.collect(), Some(&event))
    };
    let context = &mut report.ci.context;
    context.run_url = run.value("url");
    // Which facts a job gets depends on the event.
    let name = run.value("event").unwrap_or_default();
    if !matches!(name.as_str(), "push" | "merge_group") {
        (context.commit_message, context.author_name) = (None, None);
    }
    if name.starts_with("pull_request") {
        context.tested_revision = run.value("GITHUB_SHA");
        context.pull_request_title = run.value("title");
        context.author_name = run.value("actor");
    }
    let suite = job.filter(|job| job.key().1).map(|job| job.name.clone());
    (report.flags.context.suite, report.flags.context.merge_base) = (suite, merge_base);
    report
}
