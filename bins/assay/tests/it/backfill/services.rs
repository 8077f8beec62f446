//! The routes of the other services, and a folder. Each history is compared as CSV.

use std::fs;

use assay_testkit::{Cli, ServedWorld, assert_contains, text};
use serde_json::json;

use super::{
    command, days_ago,
    host::{Answer, Asked, Host, json, status, zipped},
    succeeded,
};
use crate::junit;

/// The rows of a history: test, run, branch, revision, variant, retry and status.
fn rows(folder: &tempfile::TempDir) -> Vec<String> {
    let text = fs::read_to_string(folder.path().join("h.csv")).unwrap();
    let columns = |line: &str| {
        let cells: Vec<_> = line.split(',').collect();
        [0, 2, 4, 5, 6, 8, 9]
            .map(|index| cells[index].to_owned())
            .join(",")
    };
    text.lines()
        .skip(1)
        .filter(|line| line.contains("T10:"))
        .map(columns)
        .collect()
}

fn xml() -> String {
    junit::report(&start(), &[("pays", false)])
}

/// A start that identifies its row.
fn start() -> String {
    format!("{}T10:00:00Z", days_ago(3).to_string().split('T').next().unwrap())
}

/// Backfills from a host with these routes into a CSV file. Each request without the token fails.
fn backfilled(
    flags: &[&str],
    token: (&str, &'static str, &'static str),
    routes: impl Fn(&str, &str) -> Answer + Send + Sync + 'static,
) -> Vec<String> {
    let (variable, header, value) = token;
    let host = Host::start(move |url, asked: &Asked| match asked.headers.get(header) {
        Some(sent) if sent == value => routes(url, &asked.path),
        _ => status(401, ""),
    });
    let folder = tempfile::tempdir().unwrap();
    let own: Vec<String> = flags.iter().map(|flag| flag.replace("HOST", &host.url)).collect();
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let all = [&own[..], &["--csv", "h.csv"]].concat();
    let mut run = match own[0] {
        "--jenkins" => Cli::new("").command(&[&["backfill"], &all[..]].concat()),
        _ => command(&folder, &host.url, &all),
    };
    let secret = value.rsplit(' ').next().unwrap();
    run.env(variable, secret)
        .env("JENKINS_USER_ID", "ada")
        .current_dir(folder.path());
    if variable == "JENKINS_API_TOKEN" {
        run.env(variable, "secret");
    }
    succeeded(run);
    rows(&folder)
}

#[test]
fn gitlab_has_archives_of_jobs_and_a_test_report() {
    let token = ("GITLAB_TOKEN", "private-token", "glpat");
    let rows = backfilled(&["--gitlab", "shop/web"], token, |url, path| {
        let pipeline = |id: u32, reference: &str| json!({"id": id, "sha": "c0ffee", "ref": reference, "created_at": start(), "web_url": "https://ci.test/1"});
        let job = |id: u32, name: &str, kind: &str| {
            json!({"id": id, "name": name, "ref": "main", "started_at": start(), "artifacts_file": {"size": 9},
                   "artifacts": [{"file_type": kind}, {"file_type": "trace"}],
                   "commit": {"message": "Add", "author_name": "Ada"}})
        };
        let Some(rest) = path.strip_prefix("/projects/shop%2Fweb") else {
            return status(404, "");
        };
        if rest.is_empty() {
            return json(&json!({"default_branch": "main"}));
        }
        match rest.split('?').next().unwrap() {
            "/pipelines" if rest.contains("page=2") => {
                json(&json!([pipeline(8, "refs/merge-requests/5/head")]))
            }
            "/pipelines" => {
                let next = format!("Link: <{url}{path}&page=2>; rel=\"next\"\r\n");
                (200, next, json!([pipeline(7, "main")]).to_string().into_bytes())
            }
            "/pipelines/7/jobs" => json(&json!([
                job(71, "rspec 1/2", "archive"),
                job(72, "lint", "trace")
            ])),
            "/pipelines/8/jobs" => json(&json!([job(81, "unit", "junit")])),
            "/merge_requests/5" => json(&json!({
                "title": "Carts", "source_branch": "carts", "source_project_id": 2, "target_project_id": 1,
            })),
            "/jobs/71/artifacts" => (200, String::new(), zipped(&[("junit.xml", &xml())], false)),
            "/pipelines/8/test_report" => json(&json!({"test_suites": [
                {"name": "other", "test_cases": [{"name": "not this", "status": "failed"}]},
                {"name": "unit", "test_cases": [
                    {"name": "adds", "classname": "T", "status": "success", "execution_time": 0.5},
                    {"name": "pays", "classname": "T", "status": "failed", "system_output": "<4>"},
                    {"name": "odd", "classname": "T", "status": "new-word"},
                ]},
            ]})),
            _ => status(404, ""),
        }
    });
    assert_eq!(
        rows,
        [
            "totals > pays,gitlab-ci/7 rspec,main,c0ffee,rspec,0,failed",
            "T > adds,gitlab-ci/8 unit,fork:carts,c0ffee,unit,0,passed",
            "T > pays,gitlab-ci/8 unit,fork:carts,c0ffee,unit,0,failed",
            "T > odd,gitlab-ci/8 unit,fork:carts,c0ffee,unit,0,failed",
        ]
    );
}

#[test]
fn jenkins_has_branches_artifacts_and_a_test_report() {
    // ada:secret
    let token = ("JENKINS_API_TOKEN", "authorization", "Basic YWRhOnNlY3JldA==");
    let rows = backfilled(&["--jenkins", "HOST/job/web/"], token, |_, path| {
        let at = start()
            .parse::<assay_domain::timestamp::Timestamp>()
            .unwrap()
            .unix_ms();
        let build = |number: u32, artifacts: serde_json::Value| {
            json!({"number": number, "url": "https://ci.test/1", "timestamp": at + i64::from(number), "building": false,
                   "artifacts": artifacts, "actions": [{}, {"lastBuiltRevision": {"SHA1": "c0ffee"}}]})
        };
        match path.split('?').next().unwrap() {
            "/job/web/api/json" => json(&json!({"fullName": "web", "jobs": [{"name": "main"}],
                "_class": "org.jenkinsci.plugins.workflow.multibranch.WorkflowMultiBranchProject"})),
            "/job/web/job/main/api/json" => json(&json!({"fullName": "web/main", "allBuilds": [
                build(2, json!([])), build(1, json!([{"relativePath": "out/junit report.xml"}, {"relativePath": "a.png"}])),
            ]})),
            "/job/web/job/main/1/artifact/out/junit%20report%2Exml" => {
                (200, String::new(), xml().into_bytes())
            }
            "/job/web/job/main/2/testReport/api/json" => json(&json!({"suites": [{"name": "s", "cases": [
                {"className": "T", "name": "pays", "status": "REGRESSION", "duration": 1.5, "errorDetails": "4"},
                {"className": "T", "name": "adds", "status": "FIXED"},
            ]}]})),
            _ => status(404, ""),
        }
    });
    assert_eq!(
        rows,
        [
            "totals > pays,jenkins/jenkins-web-main-1,main,c0ffee,,0,failed",
            "s > T > pays,jenkins/jenkins-web-main-2,main,c0ffee,,0,failed",
            "s > T > adds,jenkins/jenkins-web-main-2,main,c0ffee,,0,passed",
        ]
    );
}

#[test]
fn the_name_of_a_job_in_a_folder_of_jenkins_is_no_branch() {
    let token = ("JENKINS_API_TOKEN", "authorization", "Basic YWRhOnNlY3JldA==");
    let rows = backfilled(&["--jenkins", "HOST/job/team"], token, |_, path| {
        let at = start()
            .parse::<assay_domain::timestamp::Timestamp>()
            .unwrap()
            .unix_ms();
        let revision =
            json!({"SHA1": "c0ffee", "branch": [{"SHA1": "c0ffee", "name": "refs/remotes/origin/main"}]});
        match path.split('?').next().unwrap() {
            "/job/team/api/json" => json(&json!({"fullName": "team", "jobs": [{"name": "api"}],
                "_class": "com.cloudbees.hudson.plugins.folder.Folder"})),
            "/job/team/job/api/api/json" => json(&json!({"fullName": "team/api", "allBuilds": [
                {"number": 1, "url": "https://ci.test/1", "timestamp": at, "building": false, "artifacts": [{"relativePath": "junit.xml"}],
                 "actions": [{"lastBuiltRevision": revision}]},
            ]})),
            "/job/team/job/api/1/artifact/junit%2Exml" => (200, String::new(), xml().into_bytes()),
            _ => status(404, ""),
        }
    });
    assert_eq!(
        rows,
        ["totals > pays,jenkins/jenkins-team-api-1,main,c0ffee,,0,failed"]
    );
}

#[test]
fn buildkite_has_artifacts_of_jobs() {
    let token = ("BUILDKITE_API_TOKEN", "authorization", "Bearer bkua");
    let storage = Host::start(|_, asked| match asked.headers.get("authorization") {
        None => (200, String::new(), xml().into_bytes()),
        Some(_) => status(400, ""),
    });
    let rows = backfilled(&["--buildkite", "shop/web"], token, move |url, path| {
        let base = "/organizations/shop/pipelines/web";
        match path.split('?').next().unwrap().strip_prefix(base).unwrap() {
            "" => json(&json!({"default_branch": "main"})),
            "/builds" => json(&json!([{
                "number": 5, "id": "b-5", "branch": "carts", "commit": "c0ffee", "started_at": start(),
                "pipeline": {"repository": "git@h.test:shop/web.git"},
                "pull_request": {"id": "12", "repository": "git@h.test:ada/web.git"},
                "jobs": [{"id": "j-1", "step_key": "unit", "name": "Unit", "retries_count": 0, "started_at": start()}],
            }])),
            "/builds/5/artifacts" => json(&json!([
                {"id": "a", "job_id": "j-1", "path": "out/junit.xml", "state": "finished", "download_url": format!("{url}{base}/download/a")},
                {"id": "b", "job_id": "j-1", "path": "out/old.xml", "state": "expired", "download_url": format!("{url}{base}/download/b")},
            ])),
            "/download/a" => status(302, &format!("Location: {}/a\r\n", storage.url)),
            _ => status(404, ""),
        }
    });
    assert_eq!(
        rows,
        ["totals > pays,buildkite/b-5 unit,ada:carts,c0ffee,unit,0,failed"]
    );
}

#[test]
fn circleci_has_results_of_jobs() {
    let token = ("CIRCLE_TOKEN", "circle-token", "cci");
    let rows = backfilled(
        &["--circleci", "gh/shop/web", "--workflow", "ci"],
        token,
        |_, path| match path {
            "/project/gh/shop/web" => json(&json!({"vcs_info": {"default_branch": "main"}})),
            "/project/gh/shop/web/pipeline" => json(&json!({"next_page_token": "n", "items": [
                {"id": "p-2", "created_at": start(), "vcs": {"branch": "main", "revision": "c0ffee"}},
            ]})),
            "/project/gh/shop/web/pipeline?page-token=n" => json(&json!({"next_page_token": "o", "items": [
                {"id": "p-1", "created_at": "2020-01-01T00:00:00Z", "vcs": {}},
            ]})),
            "/pipeline/p-2/workflow" => {
                json(&json!({"items": [{"id": "w-1", "name": "ci"}, {"id": "w-2", "name": "nightly"}]}))
            }
            "/workflow/w-1/job" => json(&json!({"items": [
                {"id": "j", "name": "hold", "type": "approval"}, {"id": "k", "name": "unit", "job_number": 31, "started_at": start()},
            ]})),
            "/project/gh/shop/web/31/artifacts" => {
                json(&json!({"items": [{"path": "coverage/index.html", "url": "https://x.test/i"}]}))
            }
            "/project/gh/shop/web/31/tests" => json(&json!({"next_page_token": "m", "items": [
                {"name": "adds", "classname": "T", "result": "success", "run_time": 0.1, "file": ""},
            ]})),
            "/project/gh/shop/web/31/tests?page-token=m" => json(&json!({"items": [
                {"name": "pays", "classname": "T", "result": "failure", "message": "4"},
            ]})),
            _ => status(500, ""),
        },
    );
    assert_eq!(
        rows,
        [
            "T > adds,circleci/w-1 unit,main,c0ffee,unit,0,passed",
            "T > pays,circleci/w-1 unit,main,c0ffee,unit,0,failed",
        ]
    );
}

#[test]
fn the_paths_of_a_folder_name_run_branch_and_commit() {
    let folder = tempfile::tempdir().unwrap();
    for (path, pays) in [
        ("main/run-9-c0ffee", true),
        ("main/run-10-decaf", false),
        ("notes", true),
    ] {
        let path = folder.path().join("builds").join(path);
        fs::create_dir_all(path.join("out")).unwrap();
        fs::write(
            path.join("out/junit.xml"),
            junit::report(&start(), &[("pays", pays)]),
        )
        .unwrap();
    }
    let flags = [
        "backfill",
        "--dir",
        "builds",
        "--pattern",
        "{branch}/run-{run}-{commit}",
        "--csv",
        "h.csv",
    ];
    let mut run = Cli::new("").command(&flags);
    run.current_dir(folder.path());
    let shown = succeeded(run);
    assert_contains(&shown, "skipped 1 file that the pattern does not match");
    assert_eq!(
        rows(&folder),
        [
            "totals > pays,main/9/c0ffee,main,c0ffee,,0,passed",
            "totals > pays,main/10/decaf,main,decaf,,0,failed"
        ]
    );

    // The dates are those of the reports. All files were written just now.
    let dated = |more: &[&str]| {
        let mut run = Cli::new("").command(&[&flags[..5], more].concat());
        run.current_dir(folder.path()).output().unwrap()
    };
    let day = start().split('T').next().unwrap().to_owned();
    let plan = String::from_utf8(dated(&["--plan"]).stdout).unwrap();
    assert_contains(&plan, &format!("2 runs of dir builds, from {day} to {day}"));
    let none = assay_testkit::stderr_text(&dated(&["--plan", "--days", "2"]));
    assert_contains(&none, "no finished run of the last 2 days");
}

/// Jenkins numbers the builds of each branch from 1, and those of a job that was made again once more.
#[test]
fn builds_of_one_number_are_one_run_only_with_one_branch_and_commit() {
    let world = ServedWorld::with_ingest(&[]);
    let folder = tempfile::tempdir().unwrap();
    let builds = [
        ("main/1-c0ffee/unit", true),
        ("main/1-c0ffee/e2e", true),
        ("main/1-decaf/unit", true),
        ("feature/1-c0ffee/unit", false),
        ("feature/2-beef/unit", false),
    ];
    for (path, pays) in builds {
        let path = folder.path().join("builds").join(path);
        fs::create_dir_all(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        fs::write(path.join("junit.xml"), junit::report(&start(), &[(name, pays)])).unwrap();
    }
    let key = world
        .cli
        .json(&["key", "create-ingest", "--project", "web", "--backfill"]);
    let run = |arguments: &[&str]| {
        let mut run = world.cli.command(arguments);
        run.current_dir(folder.path())
            .env("ASSAY_INGEST_URL", world.server.ingest().base())
            .env("ASSAY_INGEST_KEY", text(&key["key"]));
        run
    };
    let flags = [
        "backfill",
        "--dir",
        "builds",
        "--pattern",
        "{branch}/{run}-{commit}",
    ];
    let shown = succeeded(run(&[&flags[..], &["--csv", "h.csv"]].concat()));
    assert_contains(&shown, "1 day, 4 runs.");
    succeeded(run(&["analyze", "h.csv"]));
    let mut runs: Vec<_> = rows(&folder)
        .iter()
        .map(|row| row.split(',').nth(1).unwrap().to_owned())
        .collect();
    runs.sort();
    let expected = [
        "feature/1/c0ffee",
        "feature/2/beef",
        "main/1/c0ffee",
        "main/1/c0ffee",
        "main/1/decaf",
    ];
    assert_eq!(runs, expected);

    // Another commit has the key of one of them.
    let other = [
        "upload",
        "builds/main/1-decaf",
        "--run-key",
        "main/1/decaf",
        "--commit",
        "5eed",
    ];
    succeeded(run(&other));
    let output = run(&flags).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert_contains(&shown, "Of 4 runs, 4 have reports; reports: 3 stored, 1 refused.");
    assert_eq!(output.status.code(), Some(1));
    let state = folder.path().join("state");
    let again = [&flags[..], &["--days", "10", "--state", state.to_str().unwrap()]].concat();
    fs::remove_dir_all(folder.path().join("builds/main/1-decaf")).unwrap();
    assert_contains(
        &succeeded(run(&again)),
        "Of 3 runs, 3 have reports; reports: 3 there already.",
    );
}

#[test]
fn a_history_that_was_written_before_stays_until_the_next_one_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let build = folder.path().join("builds/1");
    fs::create_dir_all(&build).unwrap();
    fs::write(build.join("junit.xml"), "<testsuites/>").unwrap();
    let written = |csv: &str| {
        let flags = ["backfill", "--dir", "builds", "--pattern", "{run}", "--csv", csv];
        let mut run = Cli::new("").command(&flags);
        run.current_dir(folder.path()).output().unwrap().status.code()
    };
    let history = folder.path().join("h.csv");
    fs::write(&history, "the old one").unwrap();
    assert_eq!(written("h.csv"), Some(1));
    assert_eq!(fs::read_to_string(&history).unwrap(), "the old one");

    fs::write(
        build.join("junit.xml"),
        junit::report(&start(), &[("pays", false)]),
    )
    .unwrap();
    std::os::unix::fs::symlink("h.csv", folder.path().join("link.csv")).unwrap();
    assert_eq!(written("link.csv"), Some(0));
    assert!(fs::read_to_string(&history).unwrap().contains("totals > pays"));
    // Nothing else is left.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    assert_eq!(written("/dev/null"), Some(0));
}
