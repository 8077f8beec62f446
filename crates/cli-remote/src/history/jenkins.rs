//! Jenkins: the JSON API of jobs, the artifacts and the test reports of builds.

use assay_domain::timestamp::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::Value;

use super::{
    Cases, HostError, PastFile, PastReport, PastRun, Places, Project, Service, Values, list, text, values,
};

/// Jenkins. The name of a project is the address of its page.
pub static JENKINS: Service = Service {
    name: "Jenkins",
    form: "URL",
    url: ("", ""),
    tokens: &["JENKINS_API_TOKEN"],
    header: ("Authorization", "Basic "),
    scope: "may read it, as JENKINS_USER_ID",
    base: |url| {
        let path = url.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
        let path = path.map(|(_, path)| format!("/{path}"));
        path.unwrap_or_default().trim_end_matches('/').to_owned()
    },
    default_branch: "",
    runs,
    reports,
};

/// The builds of one request.
const PER_PAGE: usize = 100;
/// How deep folders and multibranch projects are followed.
const DEEPEST: usize = 3;

const OF_BUILD: &Places = &[("JENKINS_URL", "true"), ("BUILD_URL", "/url")];
const OF_REVISION: &Places = &[("GIT_COMMIT", "/SHA1"), ("GIT_BRANCH", "/branch/0/name")];

fn runs(project: &Project, since: Timestamp, _: Timestamp) -> Result<Vec<PastRun>, HostError> {
    let mut runs = Vec::new();
    of_job(project, (&project.base, 0), None, since, &mut runs)?;
    Ok(runs)
}

/// Lists the builds of a job and of those below it.
fn of_job(
    project: &Project,
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
        let answer = project.requests.get(&format!("{path}/api/json?tree={tree}"))?;
        let name = text(&answer, "/fullName")
            .ok_or_else(|| HostError::Unusable("the page is no job of Jenkins".to_owned()))?;
        let (mut count, mut is_new) = (0, true);
        for build in list(&answer, "/allBuilds") {
            count += 1;
            let run = run(path, &name, branch, build).filter(|run| run.started_at >= since);
            is_new = run.is_some();
            runs.extend(run.filter(|_| build.get("building") != Some(&Value::Bool(true))));
        }
        if page == 0 && depth < DEEPEST {
            for child in list(&answer, "/jobs").filter_map(|job| text(job, "/name")) {
                let below = format!("{path}/job/{}", utf8_percent_encode(&child, NON_ALPHANUMERIC));
                of_job(project, (&below, depth + 1), Some(&child), since, runs)?;
            }
        }
        if count < PER_PAGE || !is_new {
            break;
        }
    }
    Ok(())
}

fn run(path: &str, job: &str, branch: Option<&str>, build: &Value) -> Option<PastRun> {
    let start = build.get("timestamp")?.as_i64().map(Timestamp::from_unix_ms);
    let mut run = PastRun::of(build, "/number", start, OF_BUILD)?;
    let revision = list(build, "/actions").find_map(|action| action.get("lastBuiltRevision"));
    run.values.extend(
        revision
            .map(|revision| values(revision, OF_REVISION))
            .unwrap_or_default(),
    );
    if let Some(name) = run.values.get_mut("GIT_BRANCH") {
        *name = name.trim_start_matches("refs/remotes/").to_owned();
    }
    if let Some(branch) = branch {
        let number = branch.strip_prefix("PR-").map(str::to_owned);
        run.values.extend(number.map(|number| ("CHANGE_ID", number)));
        let name = percent_decode_str(branch).decode_utf8_lossy().into_owned();
        run.values.insert("BRANCH_NAME", name);
    }
    let tag = format!("jenkins-{}-{}", job.replace('/', "-"), run.id);
    run.values.insert("BUILD_TAG", tag);
    run.values.insert("path", format!("{path}/{}", run.id));
    run.parts = list(build, "/artifacts")
        .map(|artifact| values(artifact, &[("path", "/relativePath")]))
        .collect();
    run.id = format!("{job}#{}", run.id);
    Some(run)
}

fn reports(_: &Project, run: &PastRun) -> Result<Vec<PastReport>, HostError> {
    let path = run.value("path").unwrap_or_default();
    let file = |artifact: &Values| {
        let name = artifact.get("path")?;
        let parts: Vec<_> = name
            .split('/')
            .map(|part| utf8_percent_encode(part, NON_ALPHANUMERIC).to_string())
            .collect();
        let url = format!("{path}/artifact/{}", parts.join("/"));
        Some(PastFile::named(name.clone(), url))
    };
    Ok(vec![PastReport {
        id: run.id.clone(),
        started_at: Some(run.started_at),
        files: run.parts.iter().filter_map(file).collect(),
        cases: Some(Cases {
            path: format!("{path}/testReport/api/json"),
            suites: "/suites",
            cases: "/cases",
            of_job: None,
        }),
        ..PastReport::new(run, "", &Values::new(), None)
    }])
}
