//! The gate: the ingest listener explains the failures of reports; `assay gate` and `assay run --gate` use it.

use std::{
    fs,
    process::{Command, Output},
};

use assay_domain::ingest::IngestTerms;
use assay_testkit::{Cli, assert_contains};
use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};

use crate::ingest::IngestServer;

/// A test's name with its error, if it failed.
pub(crate) type Case<'a> = (&'a str, Option<&'a str>);

pub(crate) fn report(cases: &[Case<'_>]) -> String {
    let mut xml = format!("<testsuites><testsuite name=\"cart\" tests=\"{}\">", cases.len());
    for (name, error) in cases {
        let failure = error.map_or_else(String::new, |error| {
            format!("<failure message=\"{error}\">at cart.test.ts:3:1</failure>")
        });
        xml += &format!(
            "<testcase classname=\"cart\" name=\"{name}\" file=\"cart.test.ts\" time=\"0.01\">{failure}</testcase>"
        );
    }
    xml + "</testsuite></testsuites>"
}

pub(crate) const TIMEOUT: Option<&str> = Some("Timed out waiting for the cart");
pub(crate) const WRONG: Option<&str> = Some("expected 3 items, got 4");

/// A server with 20 runs of main within six days: `odd` fails in every fourth, at another hour each time, `old` in the last
/// five.
pub(crate) fn ingest() -> IngestServer {
    let ingest = IngestServer::new();
    let newest = OffsetDateTime::now_utc() - Duration::hours(2);
    for run in 1..=20 {
        let odd = (run % 4 == 0).then_some(()).and(TIMEOUT);
        let old = (run > 15).then_some(()).and(WRONG);
        let started = newest - Duration::hours(i64::from(20 - run) * 7);
        let started = started
            .format(&time::format_description::well_known::Rfc3339)
            .unwrap();
        let (commit, key) = (format!("c{run}"), format!("build-{run}"));
        let fields = [
            ("branch", "main"),
            ("commit", &*commit),
            ("runKey", &*key),
            ("startedAt", &*started),
        ];
        let xml = report(&[("pays", None), ("odd", odd), ("old", old)]);
        let answer = ingest.send(&ingest.key, &fields, &[("r.xml", xml.as_bytes())]);
        assert_eq!(answer.status, 201, "{}", answer.text());
        assert!(answer.json()["failures"].is_null(), "not asked for");
    }
    ingest
}

#[test]
fn the_gate_says_whether_a_release_may_be_cut() {
    let ingest = ingest();
    let ask = |branch: &str| {
        let output = Cli::new("postgresql://127.0.0.1:1/nowhere")
            .command(&["gate", "--release", branch, "--retry-for", "0"])
            .env(
                "ASSAY_API_URL",
                format!("{}/api/v1", ingest.server.client().base()),
            )
            .env("ASSAY_READ_KEY", &ingest.read_key)
            .output()
            .unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.code(), text)
    };
    let (unknown, text) = ask("release/2.0");
    assert_eq!(unknown, Some(3), "{text}");
    assert_contains(&text, "No run of this project is of this branch");
    let send = |key: &str, cases: &[Case<'_>]| {
        let fields = [
            ("branch", "release/2.0"),
            ("commit", key),
            ("runKey", key),
            ("author", "Ada"),
        ];
        let answer = ingest.send(&ingest.key, &fields, &[("r.xml", report(cases).as_bytes())]);
        assert_eq!(answer.status, 201, "{}", answer.text());
    };
    send("d1", &[("pays", None), ("odd", None), ("old", WRONG)]);
    let (yes, text) = ask("release/2.0");
    assert_eq!(yes, Some(0), "{text}");
    assert_contains(
        &text,
        "yes: no test fails on release/2.0 and not on main; 1 test fails on both",
    );
    send("d2", &[("pays", WRONG), ("odd", TIMEOUT), ("old", WRONG)]);
    let (no, text) = ask("release/2.0");
    assert_eq!(no, Some(1), "{text}");
    assert_contains(
        &text,
        "no: 1 test fails on release/2.0 and not on main; 2 tests fail on both",
    );
    assert_contains(&text, "cart > pays: since run 22, d2 by Ada, ");
    send("d3", &[("odd", None), ("old", WRONG)]);
    let (unknown, text) = ask("release/2.0");
    assert_eq!(unknown, Some(3), "{text}");
    assert_contains(
        &text,
        "unknown: run 23 did not run 1 test that failed when it last ran",
    );
    send("d4", &[("old", WRONG)]);
    let (unknown, text) = ask("release/2.0");
    assert_eq!(unknown, Some(3), "{text}");
    assert_contains(&text, "unknown: run 24 ran 1 of the usual 3 tests");
}

/// The listener's explanation of a report's failures on a branch.
fn explained(ingest: &IngestServer, key: &str, fields: &[(&str, &str)], cases: &[Case<'_>]) -> Value {
    let branch = [
        ("branch", "feature/tax"),
        ("commit", "f1"),
        ("runKey", "build-f1"),
        ("failures", "true"),
    ];
    let fields = [&branch, fields].concat();
    let answer = ingest.send(key, &fields, &[("r.xml", report(cases).as_bytes())]);
    assert!([200, 201].contains(&answer.status), "{}", answer.text());
    answer.json()
}

fn of<'a>(answer: &'a Value, test: &str) -> &'a Value {
    let list = answer["failures"]["failures"].as_array().unwrap();
    list.iter()
        .find(|failure| failure["testName"].as_str().unwrap().ends_with(test))
        .unwrap_or_else(|| panic!("{test} in {answer}"))
}

pub(crate) const BROKEN: [Case<'_>; 4] = [
    ("pays", Some("TypeError: tax is not a function")),
    ("odd", TIMEOUT),
    ("old", WRONG),
    ("brand new", Some("no such page")),
];

#[test]
fn an_upload_may_request_the_causes_of_its_failures() {
    let ingest = ingest();
    let answer = explained(&ingest, &ingest.key, &[("dryRun", "true")], &BROKEN);
    assert_eq!(answer["runId"], Value::Null, "nothing is stored");
    assert_eq!(answer["failures"]["total"], 4);
    assert_eq!(answer["failures"]["incomplete"], Value::Null);
    assert_eq!(of(&answer, "pays")["cause"], "this_change", "{answer}");
    assert_eq!(of(&answer, "pays")["runsElsewhere"], 20);
    assert_eq!(of(&answer, "odd")["cause"], "flake", "{answer}");
    assert_eq!(of(&answer, "odd")["sameError"]["here"], 5, "{answer}");
    assert!(of(&answer, "odd")["firstFailedAt"].is_string(), "{answer}");
    assert_eq!(of(&answer, "old")["cause"], "broken_before", "{answer}");
    assert_eq!(of(&answer, "brand new")["runsElsewhere"], 0, "{answer}");
    // A new test that fails is the branch's own.
    assert_eq!(answer["failures"]["gate"]["action"], "block");
    assert_eq!(ingest.read("/runs")["total"], 20);
    let new = &answer["failures"]["newTests"];
    assert_eq!(
        (&new["total"], &new["tests"][0]["name"]),
        (&1.into(), &"cart > brand new".into()),
        "{new}"
    );

    // The answer is the same if the report is stored at once, and if it is already stored.
    let stored = explained(&ingest, &ingest.key, &[], &BROKEN);
    assert_eq!(
        (&stored["effect"], &stored["runNumber"]),
        (&"added".into(), &21.into())
    );
    assert_eq!(judged_alike(&stored), judged_alike(&answer));
    let again = explained(&ingest, &ingest.key, &[], &BROKEN);
    assert_eq!(again["effect"], "unchanged");
    assert_eq!(
        judged_alike(&again),
        judged_alike(&answer),
        "its own run is not evidence against it"
    );

    // The read API's answer for the stored run.
    let route = ingest.read(&format!("/runs/{}/failures", stored["runId"].as_str().unwrap()));
    assert_eq!(route["gate"], stored["failures"]["gate"]);
    assert_eq!(
        (&route["run"]["tests"], &route["incomplete"]),
        (&4.into(), &Value::Null)
    );
    for failure in route["failures"].as_array().unwrap() {
        let name = failure["testName"].as_str().unwrap();
        let same = of(&stored, name.rsplit(" > ").next().unwrap());
        for field in [
            "cause",
            "mine",
            "probabilities",
            "explanation",
            "sameError",
            "stable",
            "status",
            "runsElsewhere",
        ] {
            assert_eq!(failure[field], same[field], "{name}: {field}");
        }
        assert!(failure["firstFailedAt"].is_string(), "{name}: {failure}");
    }

    // A report in which only the flaky test failed passes the gate.
    let flake = [("pays", None), ("odd", TIMEOUT), ("old", None)];
    let fields = [
        ("branch", "feature/cart"),
        ("commit", "c1"),
        ("runKey", "build-c1"),
        ("failures", "true"),
        ("dryRun", "true"),
    ];
    let answer = ingest
        .send(&ingest.key, &fields, &[("r.xml", report(&flake).as_bytes())])
        .json();
    assert_eq!(answer["failures"]["gate"]["action"], "pass", "{answer}");
}

#[test]
fn a_dry_run_completes_its_context_from_the_stored_run() {
    let ingest = ingest();
    let terms = IngestTerms {
        pull_requests_only: true,
        ..IngestTerms::default()
    };
    let of_pull_requests = ingest.new_key(&terms);
    for (key, more) in [
        (&ingest.key, &[][..]),
        (&of_pull_requests, &[("pullRequest", "7")]),
    ] {
        let stored = explained(&ingest, key, more, &BROKEN);
        let dry_run = |code: &[(&str, &str)]| {
            let fields = [
                &[
                    ("runKey", "build-f1"),
                    ("failures", "true"),
                    ("dryRun", "true"),
                    // Without its branch and commit it is another report, so it says whose place it takes.
                    ("replace", "true"),
                ],
                code,
                more,
            ]
            .concat();
            let answer = ingest.send(key, &fields, &[("r.xml", report(&BROKEN).as_bytes())]);
            assert_eq!(answer.status, 200, "{}", answer.text());
            answer.json()
        };
        let bare = dry_run(&[]);
        assert_eq!(judged_alike(&bare), judged_alike(&stored));
        // The report's own values take precedence.
        let other = dry_run(&[("branch", "feature/other"), ("commit", "c20")]);
        assert_ne!(judged_alike(&other), judged_alike(&stored), "{other}");
    }
}

#[test]
fn a_rerun_is_judged_with_what_the_first_attempt_did() {
    let ingest = ingest();
    let wrong = Some("TypeError: tax is not a function");
    let first = explained(
        &ingest,
        &ingest.key,
        &[],
        &[("pays", wrong), ("odd", TIMEOUT), ("old", None)],
    );
    assert_eq!(first["failures"]["total"], 2, "{first}");
    let pays = of(&first, "pays")["mine"].as_f64().unwrap();
    // The second attempt lacks a failed test, so its report says too little.
    let again = |cases: &[Case<'_>], more: &[(&str, &str)]| {
        explained(&ingest, &ingest.key, &[&[("attempt", "2")], more].concat(), cases)
    };
    let partial = again(&[("pays", None)], &[("dryRun", "true")]);
    let reason = partial["failures"]["incomplete"].as_str().unwrap();
    assert_contains(reason, "earlier attempt did not run again");
    // Both passed on retry: the first attempt's failure is evidence of a flake.
    let green = again(&[("pays", None), ("odd", None)], &[("dryRun", "true")]);
    assert_eq!(green["failures"]["incomplete"], Value::Null, "{green}");
    let recovered = of(&green, "pays");
    assert_eq!(
        (&recovered["status"], &recovered["attempts"]),
        (&"passed".into(), &2.into())
    );
    assert!(recovered["mine"].as_f64().unwrap() < pays, "{recovered}");
    // What failed again is judged as one failure with two attempts.
    let red = again(&[("pays", wrong), ("odd", None)], &[]);
    let failed = of(&red, "pays");
    assert_eq!(
        (&failed["status"], &failed["attempts"]),
        (&"failed".into(), &2.into())
    );
    assert_eq!(
        (&red["continues"], &red["status"]),
        (&true.into(), &"failed".into())
    );
    // The same upload again is that part, and not a third attempt.
    let repeated = again(&[("pays", wrong), ("odd", None)], &[]);
    assert_eq!(repeated["effect"], "unchanged");
    assert_eq!(judged_alike(&repeated), judged_alike(&red));
}

/// The failures without fields that storing the run changes: the verdicts and the first failures.
fn judged_alike(answer: &Value) -> Value {
    let mut failures = answer["failures"].clone();
    for failure in failures["failures"].as_array_mut().unwrap() {
        failure["verdict"].take();
        failure["firstFailedAt"].take();
        // The reports begin at their uploads, milliseconds apart, and the time since the run before counts.
        let rounded = |value: &Value| value.as_f64().map(|share| (share * 1e6).round().into());
        failure["mine"] = rounded(&failure["mine"]).unwrap_or_default();
        for share in failure["probabilities"].as_object_mut().unwrap().values_mut() {
            *share = rounded(share).unwrap_or_default();
        }
    }
    failures
}

/// Runs the command line in a folder with a report, like a CI job.
pub(crate) struct Job<'a> {
    pub(crate) ingest: &'a IngestServer,
    pub(crate) folder: tempfile::TempDir,
}

impl<'a> Job<'a> {
    /// A job in an empty folder that reports to this server.
    pub(crate) fn of(ingest: &'a IngestServer) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { ingest, folder }
    }

    pub(crate) fn run(&self, cases: &[Case<'_>], arguments: &[&str]) -> Output {
        fs::write(self.folder.path().join("saved.xml"), report(cases)).unwrap();
        Cli::new("postgresql://127.0.0.1:1/nowhere")
            .command(arguments)
            .current_dir(self.folder.path())
            .env("ASSAY_INGEST_URL", self.ingest.server.ingest().base())
            .env("ASSAY_INGEST_KEY", &self.ingest.key)
            .output()
            .unwrap()
    }

    /// Runs `assay gate` with these results.
    pub(crate) fn gate(&self, cases: &[Case<'_>], arguments: &[&str]) -> (Option<i32>, Value) {
        let fixed = [
            "gate",
            "saved.xml",
            "--branch",
            "feature/tax",
            "--commit",
            "f1",
            "--json",
        ];
        let output = self.run(cases, &[&fixed, arguments].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        let value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        assert!(output.status.code().is_some(), "{stderr}");
        (output.status.code(), value)
    }
}

#[test]
fn the_gate_excuses_only_flakes() {
    let ingest = ingest();
    let job = Job::of(&ingest);
    let refusal = |value: &Value| value["failed"][0]["refusal"].clone();
    let (status, value) = job.gate(&[("pays", None), ("odd", None)], &[]);
    assert_eq!((status, &value["outcome"]), (Some(0), &"clean".into()), "{value}");
    let flake = [("pays", None), ("odd", TIMEOUT)];
    let (status, value) = job.gate(&flake, &[]);
    assert_eq!(
        (status, &value["outcome"]),
        (Some(0), &"excused".into()),
        "{value}"
    );
    let (status, value) = job.gate(&BROKEN[..2], &["--exit-code", "42"]);
    assert_eq!(
        (status, &value["outcome"]),
        (Some(42), &"rerun".into()),
        "{value}"
    );
    assert_eq!(refusal(&value), "mine", "{value}");
    let (status, value) = job.gate(&[("pays", None), ("old", WRONG)], &[]);
    assert_eq!((status, refusal(&value)), (Some(1), "broken".into()), "{value}");
    let (status, _) = job.gate(&[("pays", None), ("old", WRONG)], &["--allow-broken"]);
    assert_eq!(status, Some(0));
    let (status, value) = job.gate(&flake, &["--never", "cart*"]);
    assert_eq!((status, refusal(&value)), (Some(1), "never".into()), "{value}");
    fs::write(
        job.folder.path().join("changed.txt"),
        "README.md\nweb/cart.test.ts\n",
    )
    .unwrap();
    let (status, value) = job.gate(&flake, &["--changed", "changed.txt"]);
    assert_eq!((status, refusal(&value)), (Some(1), "changed".into()), "{value}");
    let (status, value) = job.gate(&flake, &["--expire-after", "1d"]);
    assert_eq!((status, refusal(&value)), (Some(1), "expired".into()), "{value}");
    let (status, _) = job.gate(&flake, &["--max-excused", "0"]);
    assert_eq!(status, Some(1));
    let (status, _) = job.gate(&flake, &["--risk", "2"]);
    assert_eq!(status, Some(2), "wrong usage");
    assert_eq!(ingest.read("/runs")["total"], 20, "the gate stores nothing");

    // Without an answer, no failure is excused.
    let output = Cli::new("postgresql://127.0.0.1:1/nowhere")
        .command(&["gate", "saved.xml", "--retry-for", "0"])
        .current_dir(job.folder.path())
        .env("ASSAY_INGEST_URL", "http://127.0.0.1:1")
        .env("ASSAY_INGEST_KEY", &ingest.key)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
}

impl Job<'_> {
    /// Runs `assay gate --run` with a read key.
    fn gate_of(&self, run: &str, arguments: &[&str]) -> (Option<i32>, Value) {
        let output = self.ask(run, &self.ingest.read_key, arguments);
        let value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        (output.status.code(), value)
    }

    pub(crate) fn ask(&self, run: &str, key: &str, arguments: &[&str]) -> Output {
        self.asking(run, key, arguments).output().unwrap()
    }

    /// Runs `assay gate --run` with a read key, the address of the ingest listener and these variables.
    pub(crate) fn ask_with(&self, run: &str, environment: &[(&str, &str)]) -> Output {
        self.asking(run, &self.ingest.read_key, &[])
            .env("ASSAY_INGEST_URL", self.ingest.server.ingest().base())
            .envs(environment.iter().copied())
            .output()
            .unwrap()
    }

    fn asking(&self, run: &str, key: &str, arguments: &[&str]) -> Command {
        let mut command = Cli::new("postgresql://127.0.0.1:1/nowhere")
            .command(&[&["gate", "--run", run, "--json", "--retry-for", "0"], arguments].concat());
        command
            .current_dir(self.folder.path())
            .env(
                "ASSAY_API_URL",
                format!("{}/api/v1", self.ingest.server.client().base()),
            )
            .env("ASSAY_READ_KEY", key);
        command
    }

    /// Runs a command that ends with this status under `assay run`, as the build of this key on a branch of its own.
    /// Returns the status and standard error.
    pub(crate) fn wrapped(
        &self,
        cases: &[Case<'_>],
        (key, status): (&str, i32),
        flags: &[&str],
    ) -> (Option<i32>, String) {
        let script = format!("cp saved.xml r.xml; exit {status}");
        let branch = format!("feature/{key}");
        let fixed = [
            "run",
            "--report",
            "r.xml",
            "--run-key",
            key,
            "--branch",
            &branch,
            "--commit",
            key,
        ];
        let command = ["--", "sh", "-c", &script];
        let output = self.run(cases, &[&fixed, flags, &command].concat());
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    }

    /// Stores results as one shard of two on a branch; returns the run's id.
    pub(crate) fn shard(&self, key: &str, shard: &str, cases: &[Case<'_>]) -> String {
        let fields = [
            ("branch", "feature/tax"),
            ("commit", key),
            ("runKey", key),
            ("shard", shard),
        ];
        let answer = self
            .ingest
            .send(&self.ingest.key, &fields, &[("r.xml", report(cases).as_bytes())]);
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer.json()["runId"].as_str().unwrap().to_owned()
    }
}

#[test]
fn a_stored_run_is_judged_with_all_its_shards() {
    let ingest = ingest();
    let job = Job::of(&ingest);
    let run = job.shard("s1", "1/2", &[("pays", None), ("odd", TIMEOUT)]);
    let (status, value) = job.gate_of(&run, &[]);
    assert_eq!(
        (status, &value["outcome"]),
        (Some(1), &"blocked".into()),
        "{value}"
    );
    assert_eq!(
        value["problems"][0],
        "The report is not complete: only 1 of 2 shards have reported"
    );
    assert_eq!(job.shard("s1", "2/2", &[("old", None)]), run);
    let (status, value) = job.gate_of(&run, &["--project", "web"]);
    assert_eq!(
        (status, &value["outcome"]),
        (Some(0), &"excused".into()),
        "{value}"
    );
    assert_eq!(value["failed"].as_array().unwrap().len(), 1, "{value}");
    let (status, value) = job.gate_of(&run, &["--expire-after", "1d"]);
    assert_eq!(
        (status, &value["failed"][0]["refusal"]),
        (Some(1), &"expired".into()),
        "{value}"
    );

    // The decision on the stored run is that of the dry run of its report.
    let (_, dry) = job.gate(&BROKEN, &["--run-key", "whole"]);
    let fields = [("branch", "feature/tax"), ("commit", "f1"), ("runKey", "whole")];
    let stored = ingest.send(&ingest.key, &fields, &[("r.xml", report(&BROKEN).as_bytes())]);
    let (status, value) = job.gate_of(stored.json()["runId"].as_str().unwrap(), &[]);
    assert_eq!(status, Some(1));
    assert_eq!(value, dry);

    // A report that was cut off may hide failures.
    let cut = report(&[("pays", None)]).replace("</testsuite></testsuites>", "<testcase");
    let fields = [("branch", "feature/tax"), ("commit", "f2"), ("runKey", "cut")];
    let stored = ingest.send(&ingest.key, &fields, &[("r.xml", cut.as_bytes())]);
    assert_eq!(stored.status, 201, "{}", stored.text());
    let (status, value) = job.gate_of(stored.json()["runId"].as_str().unwrap(), &[]);
    assert_eq!(status, Some(1), "{value}");
    assert!(
        value["problems"][0].as_str().unwrap().contains("cut short"),
        "{value}"
    );

    // Without an answer, nothing is excused; without a key or beside a path, the usage is wrong.
    assert_eq!(job.gate_of(&ingest.project, &[]).0, Some(3), "no such run");
    assert_eq!(
        job.ask(&run, &ingest.key, &[]).status.code(),
        Some(3),
        "an ingest key"
    );
    assert_eq!(job.ask(&run, "", &[]).status.code(), Some(2));
    assert_eq!(job.gate_of(&run, &["--project", "shop"]).0, Some(3));
    assert_eq!(job.gate_of(&run, &["saved.xml"]).0, Some(2));
}

#[test]
fn a_wrapped_command_passes_where_every_failed_test_is_excused() {
    let ingest = ingest();
    let job = Job::of(&ingest);
    let run =
        |cases: &[Case<'_>], key: &str, status: i32, flags: &[&str]| job.wrapped(cases, (key, status), flags);
    let flake = [("pays", None), ("odd", TIMEOUT)];
    let (status, stderr) = run(&flake, "g1", 1, &["--gate"]);
    assert_eq!(status, Some(0), "{stderr}");
    assert_contains(&stderr, "Gate: passes, 1 failed test excused");
    let (status, stderr) = run(&flake, "g2", 1, &[]);
    assert_eq!(status, Some(1), "{stderr}");
    // The process was killed, so tests may be missing.
    let (status, stderr) = run(&flake, "g3", 137, &["--gate"]);
    assert_eq!(status, Some(137), "{stderr}");
    assert_contains(&stderr, "ended with status 137");
    // The report has no failure.
    let (status, stderr) = run(&[("pays", None)], "g4", 1, &["--gate"]);
    assert_eq!(status, Some(1), "{stderr}");
    let (status, stderr) = run(&BROKEN, "g5", 1, &["--gate", "--exit-code", "9"]);
    assert_eq!(status, Some(9), "{stderr}");
    // A report that was named and not written.
    let (status, stderr) = run(&[("pays", None)], "g6", 0, &["--gate", "--report", "e2e.xml"]);
    assert_eq!(status, Some(1), "{stderr}");
    assert_eq!(ingest.read("/runs")["total"], 26, "every report is stored");
    // These runs failed for everybody, and not for the gate of their job alone.
    for key in ["g3", "g4", "g6"] {
        let runs = ingest.read(&format!("/runs?branch=feature/{key}"));
        let run = &runs["runs"][0];
        assert_eq!(run["status"], "failed", "{key}");
        let id = run["id"].as_str().unwrap();
        assert_eq!(job.gate_of(id, &[]).0, Some(1), "{key}");
        let failures = ingest.read(&format!("/runs/{id}/failures"));
        assert_ne!(failures["gate"]["action"], "pass", "{key}: {failures}");
        let body = json!({"runId": id}).to_string();
        let headers = [("Content-Type", "application/json")];
        let comment = ingest.post("/ingest/v1/comments", &ingest.key, &headers, body.as_bytes());
        assert_eq!(comment.json()["clean"], false, "{key}");
        assert_ne!(comment.json()["action"], "pass", "{key}");
    }
}
