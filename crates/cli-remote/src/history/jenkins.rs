//! Jenkins: the JSON API of jobs, the artifacts and the test reports of builds.

use assay_domain::timestamp::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Value, json};

use super::{
    Host, HostError, PastFile, PastReport, PastRun, Requests,
    cases::{Cases, Form},
    list, oldest_first, text,
};

/// The builds of one request.
const PER_PAGE: usize = 100;
/// How deep folders and multibranch projects are followed.
const DEEPEST: usize = 3;

/// A job of Jenkins, or a folder of jobs.
pub struct Jenkins {
    requests: Requests,
    /// The path of the job.
    path: String,
}

impl Jenkins {
    /// The job at a path such as `/job/shop/job/web`.
    pub fn new(requests: Requests, path: &str) -> Self {
        Self {
            requests,
            path: path.to_owned(),
        }
    }

    /// Lists the builds of a job and of those below it.
    fn job(
        &self,
        (path, depth): (&str, usize),
        branch: Option<&str>,
        since: Timestamp,
        runs: &mut Vec<PastRun>,
    ) -> Result<(), HostError> {
        for page in 0.. {
            let range = format!("{{{},{}}}", page * PER_PAGE, (page + 1) * PER_PAGE);
            let tree = format!(
                "fullName,jobs[name],allBuilds[number,url,timestamp,building,\
                 actions[lastBuiltRevision[SHA1,branch[name]]],artifacts[relativePath]]{range}"
            );
            let tree = utf8_percent_encode(&tree, NON_ALPHANUMERIC);
            let answer = self.requests.get(&format!("{path}/api/json?tree={tree}"))?;
            let name = text(&answer, "/fullName").ok_or(HostError::Unreadable("fullName"))?;
            let builds: Vec<_> = list(&answer, "/allBuilds")
                .filter_map(|build| run(path, &name, branch, build))
                .collect();
            let (count, oldest) = (builds.len(), builds.iter().map(|run| run.started_at).min());
            let is_over = |run: &PastRun| run.details.get("building") != Some(&Value::Bool(true));
            runs.extend(
                builds
                    .into_iter()
                    .filter(|run| run.started_at >= since && is_over(run)),
            );
            if page == 0 && depth < DEEPEST {
                for child in list(&answer, "/jobs").filter_map(|job| text(job, "/name")) {
                    let below = format!("{path}/job/{}", utf8_percent_encode(&child, NON_ALPHANUMERIC));
                    self.job((&below, depth + 1), Some(&child), since, runs)?;
                }
            }
            if count < PER_PAGE || oldest.is_none_or(|oldest| oldest < since) {
                break;
            }
        }
        Ok(())
    }
}

fn run(path: &str, job: &str, branch: Option<&str>, build: &Value) -> Option<PastRun> {
    let of = |name: &str| build.get(name).cloned().unwrap_or_default();
    let number = text(build, "/number")?;
    let revision = list(build, "/actions").find_map(|action| action.get("lastBuiltRevision"));
    Some(PastRun {
        id: format!("{job}#{number}"),
        started_at: Timestamp::from_unix_ms(build.get("timestamp")?.as_i64()?),
        details: json!({
            "path": format!("{path}/{number}"), "tag": format!("jenkins-{}-{number}", job.replace('/', "-")),
            "branch": branch, "url": of("url"), "building": of("building"), "artifacts": of("artifacts"),
            "revision": revision,
        }),
    })
}

impl Host for Jenkins {
    fn requests(&self) -> &Requests {
        &self.requests
    }

    fn runs(&self, since: Timestamp, _: Timestamp) -> Result<Vec<PastRun>, HostError> {
        let mut runs = Vec::new();
        self.job((&self.path, 0), None, since, &mut runs)?;
        Ok(oldest_first(runs))
    }

    fn reports(&self, run: &PastRun) -> Result<Vec<PastReport>, HostError> {
        let of_run = |pointer: &str| text(&run.details, pointer);
        let path = of_run("/path").unwrap_or_default();
        let file = |artifact: &Value| {
            let name = text(artifact, "/relativePath")?;
            let parts: Vec<_> = name
                .split('/')
                .map(|part| utf8_percent_encode(part, NON_ALPHANUMERIC).to_string())
                .collect();
            Some(PastFile {
                url: format!("{path}/artifact/{}", parts.join("/")),
                is_archive: name.to_lowercase().ends_with(".zip"),
                name,
                bytes: None,
                expires_at: None,
                is_expired: false,
            })
        };
        let mut report = PastReport {
            id: run.id.clone(),
            started_at: Some(run.started_at),
            files: list(&run.details, "/artifacts").filter_map(file).collect(),
            cases: Some(Cases {
                path: format!("{path}/testReport/api/json"),
                form: Form::Jenkins,
            }),
            ..PastReport::default()
        };
        let branch = of_run("/branch");
        let change = branch.as_deref().and_then(|branch| branch.strip_prefix("PR-"));
        let decode = |name: String| percent_decode_str(&name).decode_utf8_lossy().into_owned();
        let of_git = of_run("/revision/branch/0/name");
        let of_git = of_git.map(|name| name.trim_start_matches("refs/remotes/").to_owned());
        for (variable, value) in [
            ("JENKINS_URL", Some("true".to_owned())),
            ("BUILD_TAG", of_run("/tag")),
            ("BUILD_URL", of_run("/url")),
            ("GIT_COMMIT", of_run("/revision/SHA1")),
            ("GIT_BRANCH", of_git),
            ("CHANGE_ID", change.map(str::to_owned)),
            ("BRANCH_NAME", branch.map(decode)),
        ] {
            report.set(variable, value);
        }
        Ok(vec![report])
    }
}
