//! Jenkins: the JSON API of jobs, the artifacts and the test reports of builds.

use assay_domain::timestamp::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::Value;

use super::{
    HostError, PastFile, PastReport, PastRun, Project, Service, Values,
    service::{Places, list, text, values},
};

/// Jenkins. The name of a project is the address of its page.
pub(super) static JENKINS: Service = Service {
    name: "Jenkins",
    form: "URL",
    url: ("", ""),
    tokens: &["JENKINS_API_TOKEN"],
    header: ("Authorization", "Basic "),
    scope: "may read it, as JENKINS_USER_ID",
    base: |url| {
        let path = url.splitn(4, '/').nth(3).unwrap_or_default();
        format!("/{path}").trim_end_matches('/').to_owned()
    },
    default_branch: "",
    roots: &[],
    results: ("/suites", "/cases"),
    runs,
    reports: |_, run| Ok(run.reports.clone()),
};

/// The builds of one request.
const PER_PAGE: usize = 100;
/// How deep folders and multibranch projects are followed.
const DEEPEST: usize = 3;
const NO_JOB: &str =
    "the page is no job of Jenkins that JENKINS_API_TOKEN may read; see whether its address is right";
/// The end of the class of a project whose jobs are branches.
const MULTIBRANCH: &str = "MultiBranchProject";

const OF_BUILD: &Places = &[("JENKINS_URL", "true"), ("BUILD_URL", "/url")];
const OF_REVISION: &Places = &[
    ("GIT_COMMIT", "/lastBuiltRevision/SHA1"),
    ("GIT_BRANCH", "/lastBuiltRevision/branch/0/name"),
];

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// The builds of a job and of those below it.
fn runs(project: &Project, since: Timestamp, _: Timestamp) -> Result<Vec<PastRun>, HostError> {
    let (mut runs, mut pages) = (Vec::new(), vec![(project.base.clone(), None, 0, 0)]);
    while let Some((path, branch, depth, page)) = pages.pop() {
        let range = format!("{{{},{}}}", page * PER_PAGE, (page + 1) * PER_PAGE);
        let tree = encoded(&format!(
            "fullName,jobs[name],allBuilds[number,url,timestamp,building,\
             actions[remoteUrls,lastBuiltRevision[SHA1,branch[name]]],artifacts[relativePath]]{range}"
        ));
        let answer = project.get(&format!("{path}/api/json?tree={tree}"))?;
        let name = text(&answer, "/fullName").ok_or_else(|| HostError::Unusable(NO_JOB.to_owned()))?;
        let builds: Vec<_> = list(&answer, "/allBuilds").collect();
        let run = |build: &&Value| run(&path, &name, branch.as_deref(), build);
        let found = builds.iter().filter_map(run);
        let before = runs.len();
        runs.extend(found.filter(|run| run.started_at >= since));
        if page == 0 && depth < DEEPEST {
            // The jobs of a folder have names of their own.
            let are_branches = text(&answer, "/_class").is_some_and(|class| class.ends_with(MULTIBRANCH));
            let names = list(&answer, "/jobs").filter_map(|job| text(job, "/name"));
            pages.extend(names.map(|name| {
                let below = format!("{path}/job/{}", encoded(&name));
                (below, Some(name).filter(|_| are_branches), depth + 1, 0)
            }));
        }
        // The newest build is the first.
        if builds.len() == PER_PAGE && runs.len() > before {
            pages.push((path, branch, depth, page + 1));
        }
    }
    Ok(runs)
}

/// The checkout of the job's own repository. Others are of shared libraries, which are loaded before it, and of further
/// steps. The repository has the name of a folder of the job, or its checkout the branch of the job, or it is the last.
fn checkout<'a>(build: &'a Value, job: &str, branch: Option<&str>) -> Option<&'a Value> {
    let checkouts = list(build, "/actions").filter(|action| action.get("lastBuiltRevision").is_some());
    checkouts.max_by_key(|checkout| {
        let remote = text(checkout, "/remoteUrls/0").unwrap_or_default();
        let name = remote.trim_end_matches(".git").rsplit(['/', ':']).next();
        let built = text(checkout, "/lastBuiltRevision/branch/0/name");
        let is_of_branch = branch.is_some() && built.as_deref() == branch;
        (job.split('/').any(|part| Some(part) == name), is_of_branch)
    })
}

/// A build with its report. None while it is running.
fn run(path: &str, job: &str, branch: Option<&str>, build: &Value) -> Option<PastRun> {
    if build.get("building") == Some(&Value::Bool(true)) {
        return None;
    }
    let number = text(build, "/number")?;
    let path = format!("{path}/{number}");
    let mut of_build = values(build, OF_BUILD);
    let branch = branch.map(|branch| percent_decode_str(branch).decode_utf8_lossy());
    if let Some(checkout) = checkout(build, job, branch.as_deref()) {
        of_build.extend(values(checkout, OF_REVISION));
    }
    if let Some(branch) = branch {
        let request = branch.strip_prefix("PR-").map(str::to_owned);
        of_build.extend(request.map(|request| ("CHANGE_ID", request)));
        of_build.insert("BRANCH_NAME", branch.into_owned());
    }
    of_build.extend([("JOB_NAME", job.to_owned()), ("BUILD_NUMBER", number.clone())]);
    let mut run = PastRun {
        id: format!("{job}#{number}"),
        started_at: Timestamp::from_unix_ms(build.get("timestamp")?.as_i64()?),
        values: of_build,
        reports: Vec::new(),
    };
    let files = list(build, "/artifacts").map(|artifact| {
        let file = PastFile::of(artifact, ["/relativePath", "", "", ""]);
        let url = format!("{path}/artifact/{}", encoded(&file.name).replace("%2F", "/"));
        PastFile { url, ..file }
    });
    run.reports.push(PastReport {
        id: run.id.clone(),
        files: files.collect(),
        results: Some(format!("{path}/testReport/api/json")),
        ..run.report(&Values::new())
    });
    Some(run)
}
