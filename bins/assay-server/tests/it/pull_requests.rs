//! The answer of a commit and of a pull request: the route, the pages, and the comment that CI jobs post.

use assay_domain::ingest::IngestTerms;
use assay_testkit::{Response, assert_contains, text};
use serde_json::{Value, json};

use crate::{
    gate::Job,
    gate_decisions::Pages,
    ingest::{FAILS, IngestServer, PASSES, assert_refused, now},
};

const HEAD: &str = "bb00c0ffee";
/// A failed test that never ran before.
const NEW_FAILS: &str = r#"<testsuites><testsuite name="mail"><testcase classname="mail" name="mails" file="cart.test.ts" time="0.01"><failure message="expected 3, got 4">at cart.test.ts:3:1</failure></testcase></testsuite></testsuites>"#;
const PUBLIC: &str = "https://assay.example.org";

/// Sends the report of a suite of the pull request 7, and returns the run.
fn send(ingest: &IngestServer, key: &str, (suite, commit): (&str, &str), report: &str) -> String {
    let fields = [
        ("branch", "topic"),
        ("commit", commit),
        ("suite", suite),
        ("runKey", commit),
        ("pullRequest", "7"),
        ("runUrl", "https://github.com/shop/web/actions/runs/7"),
    ];
    let answer = ingest.send(key, &fields, &[("r.xml", report.as_bytes())]);
    assert_eq!(answer.status, 201, "{}", answer.text());
    text(&answer.json()["runId"])
}

fn ask(ingest: &IngestServer, key: &str, run: &str) -> Response {
    let body = json!({"runId": run}).to_string();
    ingest.post(
        "/ingest/v1/comments",
        key,
        &[("Content-Type", "application/json")],
        body.as_bytes(),
    )
}

fn comment(ingest: &IngestServer, run: &str) -> Value {
    let answer = ask(ingest, &ingest.key, run);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

#[test]
fn all_suites_of_a_commit_are_one_answer() {
    let ingest = IngestServer::new();
    send(&ingest, &ingest.key, ("unit", "aa00c0ffee"), FAILS);
    send(&ingest, &ingest.key, ("unit", HEAD), PASSES);
    send(&ingest, &ingest.key, ("e2e", HEAD), FAILS);
    let answer = ingest.read(&format!("/commits/{HEAD}"));
    let suites = |answer: &Value| {
        let runs = answer["runs"].as_array().unwrap();
        let mut suites: Vec<String> = runs.iter().map(|run| text(&run["suite"])).collect();
        suites.sort();
        suites
    };
    assert_eq!(suites(&answer), ["e2e", "unit"]);
    assert_eq!(
        (
            &answer["status"],
            &answer["counts"]["total"],
            &answer["commit"]["pullRequestNumber"]
        ),
        (&json!("failed"), &json!(2), &json!(7))
    );
    let failures = answer["failures"].as_array().unwrap();
    assert_eq!(failures.len(), 1, "{answer}");
    assert_eq!(
        (&failures[0]["suite"], &failures[0]["failure"]["filePath"]),
        (&json!("e2e"), &json!("cart.test.ts"))
    );
    assert_eq!(suites(&ingest.read("/commits/BB00")), ["e2e", "unit"]);
    let of_pull_request = ingest.read("/runs?pullRequest=7");
    assert_eq!(of_pull_request["total"], 3);
    assert_eq!(ingest.read("/runs?pullRequest=8")["total"], 0);
}

#[test]
fn comment_pages_and_api_name_the_suites_of_the_stable_branch_without_a_run() {
    let ingest = IngestServer::new();
    for suite in ["unit", "e2e", "lint"] {
        let fields = [
            ("branch", "main"),
            ("commit", "ba5ec0ffee"),
            ("suite", suite),
            ("runKey", "main"),
        ];
        let answer = ingest.send(&ingest.key, &fields, &[("r.xml", PASSES.as_bytes())]);
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
    let run = send(&ingest, &ingest.key, ("unit", HEAD), PASSES);
    let pages = Pages::over(ingest.database.url(), &ingest.read_key, &ingest.project);
    let shown = || {
        let comment = comment(&ingest, &run);
        let api = ingest.read(&format!("/commits/{HEAD}"));
        assert_eq!(
            (&api["status"], &api["gate"]["action"]),
            (&json!("passed"), &comment["action"])
        );
        let pages = [format!("/commit/{HEAD}"), "/pull/7".to_owned()].map(|path| pages.page(&path));
        let [commit, pull_request] =
            pages.map(|page| page.contains("passed so far") && page.contains("e2e, lint"));
        let markdown = text(&comment["markdown"]);
        let is_named = markdown.contains("so far, which the newest commit of `main` has: `e2e`, `lint`.");
        let absent: Vec<_> = api["absentSuites"].as_array().unwrap().iter().map(text).collect();
        (
            absent.join(" "),
            [is_named, commit, pull_request, !markdown.contains('✅')],
        )
    };
    assert_eq!(shown(), ("e2e lint".to_owned(), [true; 4]));
    for suite in ["lint", "e2e"] {
        send(&ingest, &ingest.key, (suite, HEAD), PASSES);
    }
    assert_eq!(shown(), (String::new(), [false; 4]));
    assert_eq!(ingest.read("/commits/ba5e")["absentSuites"], json!([]));
}

#[test]
fn the_pages_of_a_commit_and_a_pull_request_show_error_place_and_cause() {
    let ingest = IngestServer::new();
    send(&ingest, &ingest.key, ("unit", "aa00c0ffee"), FAILS);
    send(&ingest, &ingest.key, ("unit", HEAD), PASSES);
    let run = send(&ingest, &ingest.key, ("e2e", HEAD), FAILS);
    let pages = Pages::over(ingest.database.url(), &ingest.read_key, &ingest.project);
    let commit = pages.page(&format!("/commit/{HEAD}"));
    for expected in [
        "Commit bb00c0ff",
        "expected 3, got 4",
        "cart.test.ts",
        "suite <b><bdi>e2e</bdi></b>",
        "https://github.com/shop/web/commit/bb00c0ffee",
        "Whose failures?",
        &format!("/runs/{run}/test?name="),
        "/pull/7",
    ] {
        assert!(commit.contains(expected), "{expected}: {commit}");
    }
    let pull_request = pages.page("/pull/7");
    assert!(
        pull_request.contains("Pull request 7") && pull_request.contains("Earlier commits"),
        "{pull_request}"
    );
    assert_contains(&pull_request, "/commit/aa00c0ffee");
    assert!(
        pages.page("").contains(&format!("/commit/{HEAD}")),
        "the overview links to the newest commit"
    );
    for missing in ["/commit/dead", "/commit/xyz", "/pull/8", "/pull/0", "/pull/+7"] {
        assert_eq!(pages.status(missing), 404, "{missing}");
    }
}

#[test]
fn a_pull_request_is_compared_with_main_at_its_merge_base() {
    let ingest = IngestServer::with(&[("ASSAY_PUBLIC_URL", PUBLIC)]);
    let upload = |fields: &[(&str, &str)], minutes: i64, report: &str| {
        let started = now().plus_ms(-minutes * 60_000).to_string();
        let fields = [&[("startedAt", started.as_str())], fields].concat();
        ingest.send(&ingest.key, &fields, &[("r.xml", report.as_bytes())])
    };
    let of_main = [("ba5ec0ffee", 50, PASSES), ("1a7ec0ffee", 40, FAILS)];
    for (commit, minutes, report) in of_main {
        let fields = [("branch", "main"), ("commit", commit), ("runKey", commit)];
        assert_eq!(upload(&fields, minutes, report).status, 201);
    }
    let changes = |run_key: &str, merge_base: Option<&str>| {
        let mut fields = vec![("branch", run_key), ("commit", run_key), ("runKey", run_key)];
        fields.extend(merge_base.map(|base| ("mergeBase", base)));
        let answer = upload(&fields, 30, FAILS);
        assert_eq!(answer.status, 201, "{}", answer.text());
        let run = text(&answer.json()["runId"]);
        let changes = ingest.read(&format!("/runs/{run}/changes"));
        let markdown = text(&comment(&ingest, &run)["markdown"]);
        let failures = ingest.read(&format!("/runs/{run}/failures"));
        let before = &failures["failures"][0]["probabilities"]["brokenBefore"];
        let changed = (
            changes["base"]["revision"].clone(),
            changes["broken"]["total"].clone(),
            markdown.contains("Against the stable branch at `ba5ec0ff`: 1 newly failing."),
        );
        (changed, before.as_f64().unwrap())
    };
    let newest = (json!("1a7ec0ffee"), json!(0), false);
    let (changed, before_newest) = changes("bb00c0ffee", None);
    assert_eq!(changed, newest);
    let at_base = (json!("ba5ec0ffee"), json!(1), true);
    let (changed, before_base) = changes("bb01c0ffee", Some("BA5EC0FFEE"));
    assert_eq!(changed, at_base);
    // Main is broken, but not at the merge base.
    assert!(
        before_newest > 0.6 && before_base < 0.2,
        "{before_newest} {before_base}"
    );
    assert_eq!(
        changes("bb02c0ffee", Some("deadc0ffee")).0,
        newest,
        "no run tested it"
    );
    let refused = upload(&[("branch", "topic"), ("mergeBase", "main")], 30, FAILS);
    assert_refused(&refused, 400, "invalid_parameter");
    assert!(
        refused
            .text()
            .contains("expected a commit of 7 to 64 hexadecimal digits"),
        "{}",
        refused.text()
    );
}

#[test]
fn every_job_gets_the_comment_for_the_newest_commit() {
    let ingest = IngestServer::with(&[("ASSAY_PUBLIC_URL", PUBLIC)]);
    let old = send(&ingest, &ingest.key, ("unit", "aa00c0ffee"), PASSES);
    let unit = send(&ingest, &ingest.key, ("unit", HEAD), PASSES);
    let clean = comment(&ingest, &unit);
    assert_eq!(
        (&clean["clean"], &clean["enabled"]),
        (&json!(true), &json!(false))
    );
    let e2e = send(&ingest, &ingest.key, ("e2e", HEAD), NEW_FAILS);
    ingest.cli.run(&["project", "set", "web", "--pr-comments", "on"]);
    let of_run = comment(&ingest, &e2e);
    assert_eq!(
        (&of_run["clean"], &of_run["enabled"]),
        (&json!(false), &json!(true))
    );
    assert!(of_run["state"].as_i64() > clean["state"].as_i64());
    let markdown = text(&of_run["markdown"]);
    let first = format!(
        "<!-- assay project={} revision={HEAD} state={} action={} -->\n",
        ingest.project,
        of_run["state"],
        text(&of_run["action"])
    );
    assert!(markdown.starts_with(&first), "{markdown}");
    assert!(first.starts_with(&text(&of_run["marker"])));
    let page = format!("{PUBLIC}/p/{}", ingest.project);
    for expected in [
        format!("]({page}/runs/{e2e}/test?name="),
        format!("]({page}/pull/7)"),
        "`expected 3, got 4`".to_owned(),
        format!("Page: `{page}/runs/{e2e}/test?name="),
    ] {
        assert!(markdown.contains(&expected), "{expected}: {markdown}");
    }
    let annotation = &of_run["annotations"][0];
    assert_eq!(
        (&annotation["runId"], &annotation["file"]),
        (&json!(e2e), &json!("cart.test.ts"))
    );
    // A slow job of the older commit describes the newest one, too.
    let text_of = |comment: &Value| text(&comment["markdown"]).split_once('\n').unwrap().1.to_owned();
    assert_eq!(text_of(&comment(&ingest, &old)), text_of(&of_run));
}

#[test]
fn a_public_key_gets_comments_on_runs_of_such_keys_only() {
    let ingest = IngestServer::new();
    let trusted = send(&ingest, &ingest.key, ("secret", HEAD), FAILS);
    let public = ingest.new_key(&IngestTerms {
        pull_requests_only: true,
        ..IngestTerms::default()
    });
    let own = send(&ingest, &public, ("fork", "cc00c0ffee"), FAILS);
    let refused = ask(&ingest, &public, &trusted);
    assert_refused(&refused, 404, "unknown_run");
    let answer = ask(&ingest, &public, &own);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(!answer.text().contains("secret"), "{}", answer.text());
    // A trusted key sees the trusted runs alone, whatever a public key says of its pull request.
    let of_trusted = comment(&ingest, &trusted);
    assert_eq!(of_trusted["revision"], HEAD);
}

#[test]
fn a_comment_needs_a_run_of_the_keys_project() {
    let ingest = IngestServer::new();
    let run = send(&ingest, &ingest.key, ("unit", HEAD), FAILS);
    let foreign = ingest.foreign_key();
    let refused = ask(&ingest, &foreign, &run);
    assert_refused(&refused, 404, "unknown_run");
    for body in [
        "",
        "{}",
        "[]",
        "{\"runId\": 7}",
        "{\"runId\": \"x\", \"more\": 1}",
    ] {
        let answer = ingest.post(
            "/ingest/v1/comments",
            &ingest.key,
            &[("Content-Type", "application/json")],
            body.as_bytes(),
        );
        assert_refused(&answer, 400, "invalid_parameter");
    }
}

/// A report of these tests of one file; a name that ends with `!` is skipped.
fn report(tests: &[&str]) -> String {
    let case = |test: &&str| match test.strip_suffix('!') {
        Some(name) => format!(
            r#"<testcase classname="cart" name="{name}" file="cart.test.ts" time="0.01"><skipped/></testcase>"#
        ),
        None => format!(r#"<testcase classname="cart" name="{test}" file="cart.test.ts" time="0.01"/>"#),
    };
    let cases: String = tests.iter().map(case).collect();
    format!(r#"<testsuites><testsuite name="cart">{cases}</testsuite></testsuites>"#)
}

#[test]
fn a_deleted_test_is_told_in_route_page_comment_and_gate() {
    let ingest = IngestServer::new();
    let stable = report(&["pays", "mails", "refunds", "adds"]);
    for number in 0..12 {
        let (commit, minutes) = (format!("{number:02}c0ffee"), 120 - number * 10);
        let started = crate::ingest::now().plus_ms(-minutes * 60_000).to_string();
        let fields = [
            ("branch", "main"),
            ("commit", commit.as_str()),
            ("suite", "unit"),
            ("runKey", commit.as_str()),
            ("startedAt", started.as_str()),
        ];
        let answer = ingest.send(&ingest.key, &fields, &[("r.xml", stable.as_bytes())]);
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
    let run = send(
        &ingest,
        &ingest.key,
        ("unit", HEAD),
        &report(&["pays", "mails!", "subtracts", "adds"]),
    );
    let changes = ingest.read(&format!("/runs/{run}/changes"));
    assert_eq!(changes["missingNotJudged"], Value::Null, "{changes}");
    assert_eq!(changes["base"]["revision"], "11c0ffee");
    // One test of the file is gone and one is new, so the title was edited.
    assert_eq!(changes["renamed"]["tests"][0]["from"]["name"], "cart > refunds");
    assert_eq!(changes["newlySkipped"]["tests"][0]["name"], "cart > mails");
    // The rename is a guess, so the comment names it, and `--max-vanished` counts it.
    assert_eq!(changes["renamed"]["tests"][0]["guessed"], true);
    assert_eq!(changes["noLongerReported"]["total"], 1);
    let of_run = comment(&ingest, &run);
    assert!(
        text(&of_run["markdown"]).contains("Probably renamed: `cart > refunds` is now"),
        "{of_run}"
    );
    let strict = Job::of(&ingest).ask(&run, &ingest.read_key, &["--max-vanished", "0"]);
    assert_eq!(strict.status.code(), Some(1));
    let pages = Pages::over(ingest.database.url(), &ingest.read_key, &ingest.project);
    let page = pages.page(&format!("/commit/{HEAD}"));
    for words in ["no longer reported", "newly skipped", "renamed"] {
        let unfolded = format!("<details class=\"plain\" open><summary><b>1</b> {words}");
        assert_contains(&page, unfolded.as_str());
    }

    let run = send(
        &ingest,
        &ingest.key,
        ("unit", "cc00c0ffee"),
        &report(&["pays", "mails", "adds"]),
    );
    let changes = ingest.read(&format!("/runs/{run}/changes"));
    assert_eq!(
        changes["noLongerReported"]["tests"][0]["name"], "cart > refunds",
        "{changes}"
    );
    let of_run = comment(&ingest, &run);
    assert_eq!(of_run["clean"], false);
    let markdown = text(&of_run["markdown"]);
    assert_contains(&markdown, "1 no longer reported: `cart > refunds`.");
    let page = pages.page("/commit/cc00c0ffee");
    assert!(
        page.contains("no longer reported") && page.contains("cart &gt; refunds"),
        "{page}"
    );

    let job = Job::of(&ingest);
    let passes = |arguments: &[&str]| job.ask(&run, &ingest.read_key, arguments).status.code();
    assert_eq!(passes(&[]), Some(0));
    assert_eq!(passes(&["--max-vanished", "1"]), Some(0));
    assert_eq!(passes(&["--max-vanished", "0"]), Some(1));
}

/// A report of 12 tests of about a second each on a machine of this speed, where the first takes `first` seconds.
fn timed(first: f64, machine: f64) -> String {
    let case = |number: u32| {
        let seconds = if number == 0 {
            first
        } else {
            1.0 + f64::from(number) * 0.1
        };
        let seconds = seconds * machine;
        format!(r#"<testcase classname="cart" name="t{number}" file="cart.test.ts" time="{seconds:.3}"/>"#)
    };
    let cases: String = (0..12).map(case).collect();
    format!(r#"<testsuites><testsuite name="cart">{cases}</testsuite></testsuites>"#)
}

#[test]
fn a_slower_test_is_told_and_a_slow_machine_is_not() {
    let ingest = IngestServer::new();
    for number in 0..10 {
        let (commit, minutes) = (format!("{number:02}c0ffee"), 120 - number * 10);
        let started = crate::ingest::now().plus_ms(-minutes * 60_000).to_string();
        let fields = [
            ("branch", "main"),
            ("commit", commit.as_str()),
            ("suite", "unit"),
            ("runKey", commit.as_str()),
            ("startedAt", started.as_str()),
        ];
        let machine = 1.0 + 0.05 * f64::from(u32::try_from(number % 4).unwrap());
        let report = timed(20.0, machine);
        let answer = ingest.send(&ingest.key, &fields, &[("r.xml", report.as_bytes())]);
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
    let run = send(&ingest, &ingest.key, ("unit", "aa00c0ffee"), &timed(20.0, 3.0));
    assert_eq!(ingest.read(&format!("/runs/{run}/changes"))["slower"]["total"], 0);

    let run = send(&ingest, &ingest.key, ("unit", HEAD), &timed(40.0, 1.5));
    let slower = ingest.read(&format!("/runs/{run}/changes"))["slower"].take();
    assert_eq!(
        (&slower["total"], &slower["tests"][0]["test"]["name"]),
        (&json!(1), &json!("cart > t0"))
    );
    let factor = slower["tests"][0]["factor"].as_f64().unwrap();
    assert!((1.9..2.1).contains(&factor), "{slower}");
    let of_run = comment(&ingest, &run);
    assert_eq!(
        of_run["clean"], true,
        "a slower test alone is no reason for a comment"
    );
    let markdown = text(&of_run["markdown"]);
    assert_contains(&markdown, "1 slower: `cart > t0` 2.0 times.");
    let pages = Pages::over(ingest.database.url(), &ingest.read_key, &ingest.project);
    let page = pages.page(&format!("/commit/{HEAD}"));
    assert_contains(&page, "2.0 times as long");
}

/// Sends a passing or failing run of a branch to the server's project.
fn send_of(ingest: &IngestServer, fields: &[(&str, &str)], report: &str) -> String {
    let answer = ingest.send(&ingest.key, fields, &[("r.xml", report.as_bytes())]);
    assert_eq!(answer.status, 201, "{}", answer.text());
    text(&answer.json()["runId"])
}

/// A report of twelve tests, of which `pays` may fail.
fn of_twelve(fails: bool) -> String {
    let case = |name: &str, inner: &str| {
        format!(
            r#"<testcase classname="cart" name="{name}" file="cart.test.ts" time="0.01">{inner}</testcase>"#
        )
    };
    let mut cases = case(
        "pays",
        if fails {
            r#"<failure message="expected 3, got 4"/>"#
        } else {
            ""
        },
    );
    for number in 0..11 {
        cases += &case(&format!("other {number}"), "");
    }
    format!(r#"<testsuites><testsuite name="cart">{cases}</testsuite></testsuites>"#)
}

#[test]
fn a_merge_queue_is_a_kind_of_run_whose_ejections_are_explained() {
    let ingest = IngestServer::new();
    for number in 0..30 {
        let revision = format!("{number:040x}");
        send_of(
            &ingest,
            &[("branch", "main"), ("commit", &revision), ("runKey", &revision)],
            &of_twelve(false),
        );
    }
    let head = [
        ("branch", "topic"),
        ("commit", HEAD),
        ("runKey", HEAD),
        ("pullRequest", "7"),
    ];
    send_of(&ingest, &head, &of_twelve(false));
    let batch = "trunk-merge/pr-7-pr-8/99a0aad9";
    let mut run = String::new();
    // The queue tries a failed batch again.
    for key in ["q1", "q2", "q3"] {
        let queued = [
            ("branch", batch),
            ("commit", "cc00c0ffee"),
            ("runKey", key),
            ("pullRequest", "8"),
        ];
        run = send_of(&ingest, &queued, &of_twelve(true));
    }
    for (filter, total) in [
        ("kind=queue", 3),
        ("kind=branch", 31),
        ("pullRequest=7", 4),
        ("pullRequest=8", 3),
        ("pullRequest=7&kind=queue", 3),
        ("pullRequest=78", 0),
    ] {
        assert_eq!(
            ingest.read(&format!("/runs?{filter}"))["total"],
            total,
            "{filter}"
        );
    }
    let row = &ingest.read("/runs?kind=queue")["runs"][0];
    assert_eq!(row["queue"], json!({"base": null, "pullRequests": [7, 8]}));
    let said = "together with the others of its batch";
    let pages = Pages::over(ingest.database.url(), &ingest.read_key, &ingest.project);
    let page = pages.page("/pull/7");
    for expected in ["Merge queue", said, &format!("/runs/{run}"), HEAD] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    let list = pages.page("/runs?kind=queue");
    assert!(
        list.contains("merge queue") && list.contains("/pull/7") && list.contains("/pull/8"),
        "{list}"
    );
    let comment = comment(&ingest, &run);
    assert!(
        text(&comment["markdown"]).contains("**Merge queue:** Run 34 failed."),
        "{comment}"
    );
    // A queue's failures are no state of a branch.
    let tests = ingest.read("/tests?search=pays");
    assert_eq!(tests["counts"]["total"], 1, "{tests}");
    assert!(!tests.to_string().contains("failing_off_stable"), "{tests}");
    // The next push ends it.
    let pushed = [
        ("branch", "topic"),
        ("commit", "dd00c0ffee"),
        ("runKey", "dd"),
        ("pullRequest", "7"),
    ];
    send_of(&ingest, &pushed, &of_twelve(false));
    assert!(!pages.page("/pull/7").contains(said));
    // What its own run failed, too, is no sign of something outside of the code.
    let broken = [("commit", "ee00c0ffee"), ("runKey", "ee")];
    let broken = [&broken[..], &[("branch", "topic"), ("pullRequest", "7")]].concat();
    send_of(&ingest, &broken, &of_twelve(true));
    let queued = [
        ("branch", "trunk-merge/pr-7/1"),
        ("commit", "ff00c0ffee"),
        ("runKey", "ff"),
    ];
    let run = send_of(&ingest, &queued, &of_twelve(true));
    let failure = &ingest.read(&format!("/runs/{run}/failures"))["failures"][0];
    assert_eq!(
        (&failure["cause"], &failure["explanation"]),
        (
            &json!("earlier_on_branch"),
            &json!("Failed in run 36, too, which tested the same change")
        ),
        "{failure}"
    );
}

#[test]
fn a_commit_of_the_stable_branch_that_was_red_before_is_not_to_be_reverted() {
    let ingest = IngestServer::new();
    let send = |number: u32, fails: bool| {
        let revision = format!("{number:08x}");
        let fields = [("branch", "main"), ("commit", &*revision), ("runKey", &*revision)];
        send_of(&ingest, &fields, &of_twelve(fails))
    };
    for number in 1..=25 {
        send(number, false);
    }
    let runs: Vec<String> = (26..=30).map(|number| send(number, true)).collect();
    let advice = |run: &str| {
        let answer = ingest.read(&format!("/runs/{run}/failures"));
        answer["failures"][0]["breakage"]["revert"].clone()
    };
    let (first, last) = (advice(&runs[0]), advice(&runs[4]));
    assert_eq!(first["redBefore"], 0.0, "{first}");
    assert_ne!(first["action"], "keep", "{first}");
    assert_eq!(
        (&last["action"], &last["suspect"]),
        (&json!("keep"), &json!("0000001a")),
        "{last}"
    );
    let pages = Pages::over(ingest.database.url(), &ingest.read_key, &ingest.project);
    let page = pages.page("/commit/0000001e");
    assert_contains(&page, "Do not revert this commit");
}

#[test]
fn a_change_that_passes_alone_and_fails_in_each_merge_is_no_flake() {
    let ingest = IngestServer::new();
    for number in 1..=20 {
        let revision = format!("{number:08x}");
        let fields = [("branch", "main"), ("commit", &*revision), ("runKey", &*revision)];
        send_of(&ingest, &fields, &of_twelve(false));
    }
    let mut run = String::new();
    for number in 0x100..0x104 {
        let (head, merge) = (format!("{number:08x}"), format!("{number:x}beef0"));
        let of_branch = [("branch", "topic"), ("runKey", &*head)];
        let pushed = [&of_branch[..], &[("commit", &*head)]].concat();
        send_of(&ingest, &pushed, &of_twelve(false));
        let merged = [
            ("branch", "topic"),
            ("runKey", &*merge),
            ("commit", &*merge),
            ("testedRevision", &*head),
            ("pullRequest", "7"),
        ];
        run = send_of(&ingest, &merged, &of_twelve(true));
        // The push does not answer for the merge.
        assert_eq!(ingest.read(&format!("/commits/{head}"))["status"], "failed");
    }
    assert_eq!(ingest.read("/flaky")["tests"], json!([]));
    assert_eq!(
        ingest.read(&format!("/runs/{run}/failures"))["gate"]["action"],
        "block"
    );
}

#[test]
fn a_change_to_a_release_branch_is_compared_with_that_branch() {
    let ingest = IngestServer::new();
    let send = |branch: &str, number: u32, fails: bool| {
        let revision = format!("{number:08x}");
        let fields = [("branch", branch), ("commit", &*revision), ("runKey", &*revision)];
        send_of(&ingest, &fields, &of_twelve(fails))
    };
    for number in 1..=20 {
        send("main", number, false);
    }
    for number in 21..=30 {
        send("release/1.2", number, number > 23);
    }
    let change = |number: u32, base: &str| {
        let (revision, branch) = (format!("{number:08x}"), format!("topic-{number}"));
        let fields = [
            ("branch", &*branch),
            ("commit", &*revision),
            ("runKey", &*revision),
            ("pullRequest", "7"),
            ("baseBranch", base),
        ];
        let run = send_of(&ingest, &fields, &of_twelve(true));
        let failures = ingest.read(&format!("/runs/{run}/failures"));
        let changes = ingest.read(&format!("/runs/{run}/changes"));
        (
            text(&failures["failures"][0]["cause"]),
            text(&failures["gate"]["action"]),
            text(&changes["base"]["revision"]),
            changes["broken"]["total"].clone(),
        )
    };
    let of_main = (
        "unclear".to_owned(),
        "rerun".to_owned(),
        "00000014".to_owned(),
        json!(1),
    );
    assert_eq!(
        change(41, "release/1.2"),
        of_main,
        "the project has no release branch"
    );
    ingest
        .cli
        .run(&["project", "set", "web", "--release-branches", "release/*"]);
    let of_release = (
        "broken_before".to_owned(),
        "pass".to_owned(),
        "0000001e".to_owned(),
        json!(0),
    );
    assert_eq!(change(42, "release/1.2"), of_release);
    assert_eq!(change(43, "main"), of_main);
    assert_eq!(
        ingest.read("/settings")["settings"]["releaseBranches"],
        json!(["release/*"])
    );
    let release = ingest.read("/releases/release%2F1.2");
    assert_eq!(release["answer"], "no", "{release}");
    assert_eq!(
        release["explanation"],
        "no: 1 test fails on release/1.2 and not on main"
    );
    assert_eq!(release["tests"][0]["failingSince"]["revision"], "00000018");
    let pages = Pages::over(ingest.database.url(), &ingest.read_key, &ingest.project);
    assert_contains(
        &pages.page("/release?branch=release%2F1.2"),
        "<b>no: 1 test fails on release/1.2 and not on main</b>",
    );
    assert_contains(&pages.page(""), "release?branch=release%2F1.2");
    let public = ingest.new_key(&IngestTerms {
        pull_requests_only: true,
        ..IngestTerms::default()
    });
    let fields = [
        ("branch", "release/1.2"),
        ("pullRequest", "7"),
        ("runKey", "fork"),
    ];
    let refused = ingest.send(&public, &fields, &[("r.xml", PASSES.as_bytes())]);
    assert_refused(&refused, 403, "branch_not_allowed");
}
