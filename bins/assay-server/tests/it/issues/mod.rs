//! `assay issues`, with a server and a code host.

mod host;

use std::{
    process::{Command, Output, Stdio},
    sync::{Arc, Barrier},
    thread,
    time::Duration,
};

use assay_testkit::{Cli, Response, assert_contains, stderr_text};
use serde_json::{Value, json};

use self::host::{Host, Stored};
use crate::{
    gate::{TIMEOUT, WRONG},
    ingest::{IngestServer, now},
};

/// A server with a history of main.
struct World {
    ingest: IngestServer,
}

const FIX: &str = "f1c0ffee";

impl World {
    /// 20 runs of six days, at no common hour. `odd` and `even` fail with one error in every fourth, and each failure takes minutes. `cheap` is
    /// as flaky and quick. `old` fails in the last five.
    fn new() -> Self {
        let world = Self {
            ingest: IngestServer::new(),
        };
        for run in 1..=20 {
            let odd = TIMEOUT.filter(|_| run % 4 == 0);
            let even = TIMEOUT.filter(|_| run % 4 == 2);
            let cheap = Some("no such file").filter(|_| run % 4 == 1);
            let old = WRONG.filter(|_| run > 15);
            let cases = [("odd", odd), ("even", even), ("cheap", cheap), ("old", old)];
            world.send(&format!("c{run}c0ffee"), (20 - run) * 430 + 1_000, &cases);
        }
        world
    }

    fn send(&self, commit: &str, minutes_ago: i64, failed: &[(&str, Option<&str>)]) {
        let case = |name: &str, failure: String, seconds: u32| {
            format!(
                r#"<testcase classname="cart" name="{name}" file="cart.test.ts" time="{seconds}">{failure}</testcase>"#
            )
        };
        let mut xml: String = (0..8)
            .map(|other| case(&format!("other {other}"), String::new(), 1))
            .collect();
        for (name, error) in failed {
            let failure = error.map_or_else(String::new, |error| format!("<failure message=\"{error}\"/>"));
            let is_slow = ["odd", "even"].contains(name) && error.is_some();
            xml += &case(name, failure, if is_slow { 400 } else { 1 });
        }
        let xml = format!(r#"<testsuites><testsuite name="cart">{xml}</testsuite></testsuites>"#);
        let started = now().plus_ms(-minutes_ago * 60_000).to_string();
        let fields = [
            ("branch", "main"),
            ("commit", commit),
            ("runKey", commit),
            ("startedAt", &started),
        ];
        let answer = self
            .ingest
            .send(&self.ingest.key, &fields, &[("r.xml", xml.as_bytes())]);
        assert_eq!(answer.status, 201, "{}", answer.text());
    }

    /// A fix of `odd` that holds, and `old` passes again.
    fn repair(&self) {
        let fix = json!({
            "testName": "cart > odd", "filePath": "cart.test.ts", "revision": FIX, "rateBefore": 1.0,
        });
        let json = [("Content-Type", "application/json")];
        let claimed: Response = self.ingest.post(
            "/ingest/v1/fixes",
            &self.ingest.key,
            &json,
            fix.to_string().as_bytes(),
        );
        assert_eq!(claimed.status, 201, "{}", claimed.text());
        for run in 0..32 {
            let commit = if run == 0 {
                FIX.to_owned()
            } else {
                format!("d{run}c0ffee")
            };
            self.send(
                &commit,
                900 - run * 20,
                &[("odd", None), ("even", None), ("cheap", None), ("old", None)],
            );
        }
    }

    fn command(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Command {
        let mut command = Cli::new("postgresql://127.0.0.1:1/nowhere").command_of(
            "assay",
            &[&["issues", "--json", "--retry-for", "0"], arguments].concat(),
        );
        command
            .env(
                "ASSAY_API_URL",
                format!("{}/api/v1", self.ingest.server.client().base()),
            )
            .env("ASSAY_READ_KEY", &self.ingest.read_key)
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn on(&self, host: &Host, token: &str, arguments: &[&str]) -> Command {
        self.command(
            &[
                ("GITHUB_ACTIONS", "true"),
                ("GITHUB_REF_NAME", "main"),
                ("GITHUB_REPOSITORY", "shop/web"),
                ("GITHUB_API_URL", &host.api),
                ("GITHUB_TOKEN", token),
            ],
            arguments,
        )
    }

    fn on_gitlab(&self, host: &Host, arguments: &[&str]) -> Command {
        self.command(
            &[
                ("GITLAB_CI", "true"),
                ("CI_COMMIT_BRANCH", "main"),
                ("CI_PROJECT_ID", "12"),
                ("CI_API_V4_URL", &format!("{}/api/v4", host.api)),
                ("GITLAB_TOKEN", "glpat-jobs"),
            ],
            arguments,
        )
    }

    /// Applies as a job of GitHub.
    fn apply(&self, host: &Host) -> Vec<String> {
        changes(&mut self.on(host, "ghs_jobs", &["--apply"]))
    }
}

/// Runs a command, which must succeed, and returns its changes.
fn changes(command: &mut Command) -> Vec<String> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr_text(&output));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let change = |change: &Value| {
        format!(
            "{} {}",
            change["action"].as_str().unwrap(),
            change["title"].as_str().unwrap()
        )
    };
    answer["changes"].as_array().unwrap().iter().map(change).collect()
}

/// Both streams of a command that must end with this status.
fn ends_with(command: &mut Command, status: i32) -> String {
    let output: Output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr_text(&output);
    assert_eq!(output.status.code(), Some(status), "{text}");
    for secret in ["ghs_", "ghp_", "glpat-"] {
        assert!(!text.contains(secret), "{text}");
    }
    text
}

const ALL: [&str; 4] = [
    "create Broken test: cart > old",
    "create Flaky test: cart > even",
    "create Flaky test: cart > odd",
    "create Error of several tests: Timed out waiting for the cart",
];

#[test]
fn each_problem_gets_one_issue_and_people_are_heard() {
    let (world, host) = (World::new(), Host::start());
    let github = |arguments: &[&str]| changes(&mut world.on(&host, "ghs_jobs", arguments));
    assert_eq!(github(&["--plan"]), ALL);
    let topic = &mut world.on(&host, "ghs_jobs", &["--apply"]);
    assert_eq!(changes(topic.env("GITHUB_REF_NAME", "topic")), [""; 0]);
    assert_eq!(host.writes(), []);
    // A pull request of the bot with the label is no issue, and one that a person copied is not the token's.
    let of = |author, body: &str, is_pull_request| Stored {
        title: "Flaky test: cart > odd".to_owned(),
        body: body.to_owned(),
        labels: vec!["assay".to_owned()],
        open: true,
        author,
        is_pull_request,
        comments: Vec::new(),
    };
    host.state().issues.insert(1, of((41, "Bot"), "", true));
    assert_eq!(github(&["--apply", "--max", "1"]), ALL[..1]);
    let copied = of((9, "User"), &host.issues()[&2].body, false);
    host.state().issues.insert(3, copied);
    assert_eq!(github(&["--apply"]), ALL[1..]);
    host.writes();
    assert_eq!(github(&["--apply"]), [""; 0]);
    assert_eq!(host.writes(), []);
    assert_eq!(host.issues()[&2].labels, ["assay", "broken-test"]);

    // A person edits three in a browser, closes the first and removes the section of the second.
    {
        let mut state = host.state();
        for number in [2, 4, 5] {
            let issue = state.issues.get_mut(&number).unwrap();
            issue.body = format!("Mine.\n\n{}\n\nMine, too.", issue.body).replace('\n', "\r\n");
        }
        state.issues.get_mut(&2).unwrap().open = false;
        state.issues.get_mut(&4).unwrap().body = "Nothing".to_owned();
    }
    let before = host.issues();
    assert_eq!(github(&["--apply"]), [""; 0], "a closed issue has no successor");
    world.repair();
    let followed = github(&["--apply"]);
    assert!(
        followed.contains(&"close Flaky test: cart > odd".to_owned()),
        "{followed:?}"
    );
    assert!(
        !followed
            .iter()
            .any(|change| change.contains("old") || change.contains("even")),
        "{followed:?}"
    );
    let after = host.issues();
    assert_eq!(
        [&after[&1], &after[&2], &after[&3], &after[&4]],
        [&before[&1], &before[&2], &before[&3], &before[&4]]
    );
    let body = &after[&5].body;
    assert!(body.starts_with("Mine.\r\n\r\n<!-- assay:begin "), "{body:?}");
    assert!(body.ends_with("<!-- assay:end -->\r\n\r\nMine, too."), "{body:?}");
}

#[test]
fn a_killed_call_loses_nothing_and_repeats_nothing() {
    let (world, host) = (World::new(), Host::start());
    // One issue is to be created later, one exists twice, and one has a text of a person.
    assert_eq!(world.apply(&host), ALL);
    {
        let mut state = host.state();
        state.issues.remove(&4);
        let second = state.issues[&2].clone();
        state.issues.insert(4, second);
        state.issues.get_mut(&3).unwrap().body += "\n\nMine.";
    }
    world.repair();
    let start = host.issues();
    host.writes();
    let changes = world.apply(&host);
    let writes = host.writes().len();
    let end = host.issues();
    for action in ["create", "comment", "close"] {
        assert!(
            changes.iter().any(|change| change.starts_with(action)),
            "{action}: {changes:?}"
        );
    }
    assert!(!end[&3].open && !end[&4].open && end[&2].open, "{end:?}");
    assert_eq!(world.apply(&host), [""; 0]);
    for cut in 1..=writes {
        {
            let mut state = host.state();
            state.issues = start.clone();
            state.cut = Some(cut);
        }
        let mut killed = world.on(&host, "ghs_jobs", &["--apply"]).spawn().unwrap();
        while host.state().cut != Some(0) {
            assert_eq!(killed.try_wait().unwrap(), None, "cut after {cut}");
            thread::sleep(Duration::from_millis(2));
        }
        killed.kill().unwrap();
        killed.wait().unwrap();
        host.state().cut = None;
        world.apply(&host);
        assert_eq!(host.issues(), end, "cut after {cut}");
    }
    // The fix held, and then the test failed again.
    world.send("e1c0ffee", 5, &[("odd", TIMEOUT)]);
    let again = world.apply(&host);
    assert!(again.contains(&ALL[2].to_owned()), "{again:?}");
    assert!(!host.issues()[&3].open);
}

#[test]
fn the_next_call_closes_the_younger_issues_of_two_jobs_at_once() {
    let (world, host) = (World::new(), Host::start());
    host.state().meeting = Some(Arc::new(Barrier::new(2)));
    let jobs = [(); 2].map(|()| world.on(&host, "ghs_jobs", &["--apply"]).spawn().unwrap());
    for job in jobs {
        let output = job.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", stderr_text(&output));
    }
    assert_eq!(host.issues().len(), 8);
    let closed = world.apply(&host);
    assert_eq!(closed.len(), 4, "{closed:?}");
    let issues = host.issues();
    let mut open: Vec<&str> = issues
        .values()
        .filter(|issue| issue.open)
        .map(|issue| &*issue.title)
        .collect();
    open.sort_unstable();
    open.dedup();
    assert_eq!(open.len(), 4, "{issues:?}");
    for closed in issues.values().filter(|issue| !issue.open) {
        assert_eq!(closed.comments.len(), 1, "{closed:?}");
        assert_contains(&closed.comments[0].1, "is about the same");
    }
    assert_eq!(world.apply(&host), [""; 0]);
}

#[test]
fn a_refusal_says_what_to_do() {
    let (world, host) = (World::new(), Host::start());
    let refused = |refusal| {
        host.state().refusals.push_back(refusal);
        ends_with(&mut world.on(&host, "ghs_jobs", &["--apply"]), 1)
    };
    for (refusal, expected) in [
        (
            (
                "POST",
                410,
                "",
                r#"{"message": "Issues has been disabled in this repository."}"#,
            ),
            "turn on issues",
        ),
        (("GET", 404, "", r#"{"message": "Not Found"}"#), "issues: write"),
        (
            (
                "POST",
                403,
                "",
                r#"{"message": "Resource not accessible by integration"}"#,
            ),
            "issues: write",
        ),
    ] {
        assert_contains(&refused(refusal), expected);
    }
    // A refused issue does not keep the others from being created.
    host.state().issues.clear();
    let text = refused((
        "POST",
        422,
        "",
        r#"{"message": "Validation Failed", "errors": [{"field": "title"}]}"#,
    ));
    assert_contains(&text, "\"field\": \"title\"");
    assert_contains(&text, "shorten");
    assert_eq!(host.issues().len(), 3);
    // A secondary limit is waited for, also by a new issue.
    host.state().issues.clear();
    let limit = r#"{"message": "You have exceeded a secondary rate limit."}"#;
    host.state().refusals.extend([
        ("GET", 403, "Retry-After: 0\r\n", limit),
        ("POST", 403, "Retry-After: 0\r\n", limit),
    ]);
    assert_eq!(world.apply(&host).len(), 4);
    assert_eq!(host.issues().len(), 4);

    host.state().issues.clear();
    let text = ends_with(&mut world.on(&host, "ghs_fork", &["--apply"]), 1);
    assert_contains(&text, "issues: write");
    assert_contains(
        &ends_with(&mut world.on(&host, "ghs_other", &["--apply"]), 1),
        "401",
    );
    assert_eq!(host.issues().len(), 0);
    // Labels of a token without the right are left out. An issue that would not be found again does not stay open.
    let text = ends_with(&mut world.on(&host, "ghp_reader", &["--apply"]), 1);
    assert_contains(&text, "the right to set labels");
    assert!(host.issues().values().all(|issue| !issue.open));
    host.state().issues.clear();
    assert_eq!(changes(&mut world.on(&host, "ghp_person", &["--apply"])), ALL);
    assert_eq!(changes(&mut world.on(&host, "ghp_person", &["--apply"])), [""; 0]);
}

#[test]
fn a_job_of_gitlab_keeps_issues_too() {
    let (world, host) = (World::new(), Host::start());
    host.state()
        .refusals
        .push_back(("POST", 429, "Retry-After: 0\r\n", "Retry later\n"));
    assert_eq!(changes(&mut world.on_gitlab(&host, &["--apply"])), ALL);
    host.writes();
    assert_eq!(changes(&mut world.on_gitlab(&host, &["--apply"])), [""; 0]);
    assert_eq!(host.writes(), []);
    assert_eq!(host.issues()[&2].labels, ["assay", "flaky-test"]);
    world.repair();
    // A locked issue does not stop the others.
    let locked = r#"{"message": "This issue is locked."}"#;
    host.state().refusals.push_back(("POST", 403, "", locked));
    let text = ends_with(&mut world.on_gitlab(&host, &["--apply"]), 1);
    assert_contains(&text, "unlock the issue");
    assert!(!text.contains("the next call goes on"), "{text}");
    changes(&mut world.on_gitlab(&host, &["--apply"]));
    let odd = &host.issues()[&3];
    assert!(!odd.open);
    assert_eq!(odd.comments.len(), 2, "one comment and the host's note: {odd:?}");
    assert_contains(&odd.comments[0].1, "held on `main`");
    assert_eq!(changes(&mut world.on_gitlab(&host, &["--apply"])), [""; 0]);
    let project = &mut world.on_gitlab(&host, &["--apply"]);
    assert_contains(&ends_with(project.env("CI_PROJECT_ID", "13"), 1), "the scope api");
    let text = ends_with(world.on_gitlab(&host, &["--apply"]).env_remove("GITLAB_TOKEN"), 2);
    assert_contains(&text, "set GITHUB_TOKEN or GITLAB_TOKEN");
}
