//! Owners of tests: who may change them, and where they are shown.

use assay_domain::ingest::IngestTerms;
use assay_testkit::{assert_contains, text};
use serde_json::{Value, json};

use crate::{
    agents,
    gate_decisions::Pages,
    ingest::{FAILS, IngestServer, PASSES, now},
};

/// What a job sends beside its report.
struct Job<'a> {
    key: &'a str,
    branch: &'a str,
    pull_request: Option<&'a str>,
    /// Minutes before now at which its run started.
    minutes: i64,
    owners: Option<&'a str>,
}

impl Job<'_> {
    /// Sends a failed run, and returns the owners that the server names for it.
    fn owners(&self, ingest: &IngestServer, run_key: &str) -> Value {
        let started = now().plus_ms(-self.minutes * 60_000).to_string();
        let mut fields = vec![
            ("branch", self.branch),
            ("commit", "bb00c0ffee"),
            ("runKey", run_key),
            ("startedAt", started.as_str()),
        ];
        fields.extend(self.pull_request.map(|number| ("pullRequest", number)));
        if let Some(owners) = self.owners {
            fields.extend([
                ("owners", owners),
                ("ownersPath", "CODEOWNERS"),
                ("ownersFiles", FILES),
            ]);
        }
        let answer = ingest.send(self.key, &fields, &[("r.xml", FAILS.as_bytes())]);
        assert_eq!(answer.status, 201, "{}", answer.text());
        let run = text(&answer.json()["runId"]);
        let failures = ingest.read(&format!("/runs/{run}/failures"));
        let failure = &failures["failures"][0];
        assert_eq!(failure["ownersAmbiguous"], false);
        failure["owners"].clone()
    }
}

const FILES: &str = "web/cart.test.ts\napi/mail.test.ts";

#[test]
fn owners_take_effect_within_one_upload_of_the_stable_branch_and_of_nothing_else() {
    let ingest = IngestServer::new();
    let public = ingest.new_key(&IngestTerms {
        pull_requests_only: true,
        ..IngestTerms::default()
    });
    let job = Job {
        key: &ingest.key,
        branch: "main",
        pull_request: None,
        minutes: 60,
        owners: Some("/web/ @org/cart @ada\n"),
    };
    let cart = json!(["@org/cart", "@ada"]);
    assert_eq!(job.owners(&ingest, "1"), cart);
    let theirs = Some("* @mallory\n");
    for (run_key, other) in [
        (
            "a branch",
            Job {
                branch: "topic",
                owners: theirs,
                minutes: 50,
                ..job
            },
        ),
        (
            "a pull request",
            Job {
                pull_request: Some("7"),
                owners: theirs,
                minutes: 50,
                ..job
            },
        ),
        (
            "a fork",
            Job {
                key: &public,
                branch: "fork:main",
                pull_request: Some("8"),
                owners: theirs,
                minutes: 50,
            },
        ),
        (
            "an older run",
            Job {
                owners: theirs,
                minutes: 70,
                ..job
            },
        ),
        (
            "a run without the file",
            Job {
                owners: None,
                minutes: 50,
                ..job
            },
        ),
    ] {
        assert_eq!(other.owners(&ingest, run_key), cart, "{run_key}");
    }
    // The control: the same text from a newer run of the stable branch.
    let newer = Job {
        owners: theirs,
        minutes: 40,
        ..job
    };
    assert_eq!(newer.owners(&ingest, "2"), json!(["@mallory"]));
    let removed = Job {
        owners: Some(""),
        minutes: 30,
        ..job
    };
    assert_eq!(removed.owners(&ingest, "3"), json!([]));
}

#[test]
fn owners_are_shown_on_pages_in_the_comment_and_in_the_list_of_flaky_tests() {
    let ingest = IngestServer::new();
    let owners = "* @org/all\n/web/ @org/cart <b>\n/web/ @org/cart\n";
    for (number, report) in (0..12).zip([FAILS, PASSES].repeat(6)) {
        let (commit, minutes) = (format!("{number:02}c0ffee"), 120 - number * 10);
        let started = now().plus_ms(-minutes * 60_000).to_string();
        let fields = [
            ("branch", "main"),
            ("commit", commit.as_str()),
            ("runKey", commit.as_str()),
            ("startedAt", started.as_str()),
            ("owners", owners),
            ("ownersFiles", FILES),
        ];
        let answer = ingest.send(&ingest.key, &fields, &[("r.xml", report.as_bytes())]);
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
    let flaky = ingest.read("/flaky");
    assert_eq!(flaky["tests"][0]["owners"], json!(["@org/cart"]), "{flaky}");
    for (owner, total) in [("%40ORG%2Fcart", 1), ("%40org%2Fall", 0), ("unowned", 0)] {
        let owned = ingest.read(&format!("/flaky?owner={owner}"));
        assert_eq!(owned["page"]["total"], total, "{owner}: {owned}");
    }

    let fields = [
        ("branch", "topic"),
        ("commit", "bb00c0ffee"),
        ("pullRequest", "7"),
        ("runKey", "pr"),
    ];
    let answer = ingest.send(&ingest.key, &fields, &[("r.xml", FAILS.as_bytes())]);
    let run = text(&answer.json()["runId"]);
    let body = json!({"runId": run}).to_string();
    let headers = [("Content-Type", "application/json")];
    let comment = ingest.post("/ingest/v1/comments", &ingest.key, &headers, body.as_bytes());
    assert_eq!(comment.status, 200, "{}", comment.text());

    let pages = Pages::over(ingest.database.url(), &ingest.read_key, &ingest.project);
    for path in [
        "/tests",
        "/tests?owner=%40ORG%2Fcart",
        "/pull/7",
        &format!("/runs/{run}"),
        "/test?name=cart+%3E+pays",
    ] {
        assert!(
            pages.page(path).contains("Owned by @org/cart"),
            "{path}: {}",
            pages.page(path)
        );
    }
    for path in ["/tests?owner=%40org%2Fall", "/tests?owner=unowned"] {
        assert!(pages.page(path).contains("No test matches"), "{path}");
    }
    // The lists of failures select by owner. The gate and the counts cover all of them.
    for (owner, total) in [("%40ORG%2Fcart", 1), ("%40org%2Fall", 0), ("unowned", 0)] {
        for path in [format!("/runs/{run}/failures"), "/commits/bb00c0ffee".to_owned()] {
            let owned = ingest.read(&format!("{path}?owner={owner}"));
            assert_eq!(owned["page"]["total"], total, "{path} {owner}: {owned}");
            assert_eq!(owned["gate"], ingest.read(&path)["gate"], "{path} {owner}");
        }
        for (path, empty) in [
            ("/pull/7".to_owned(), "No test of this owner failed"),
            (format!("/runs/{run}"), "No such test of this owner"),
        ] {
            let page = pages.page(&format!("{path}?owner={owner}"));
            assert_eq!(
                page.contains("Owned by @org/cart"),
                total == 1,
                "{path} {owner}: {page}"
            );
            assert_eq!(page.contains(empty), total == 0, "{path} {owner}: {page}");
        }
    }
    for (owner, tests) in [("@ORG/cart", 1), ("@org/all", 0), ("unowned", 0)] {
        let arguments = json!({"run": run, "owner": owner});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "explain_failures", "arguments": arguments}});
        let headers = [("Authorization", &*format!("Bearer {}", ingest.read_key))];
        let answer = agents::post(pages.server.front(), &call, &headers).json();
        let answer = &answer["result"]["structuredContent"];
        let found = answer["failures"].as_array().map_or(0, Vec::len);
        assert_eq!(found, tests, "{owner}: {answer}");
        let is_empty = answer["says"] == "No failed test has this name or owner.";
        assert_eq!(is_empty, tests == 0, "{owner}: {answer}");
    }
    let grouped = pages.page("/tests?group=owner");
    assert_contains(&grouped, "owner=%40org%2Fcart");
    assert_eq!(pages.status("/tests?group=file"), 400);
}

#[test]
fn a_file_that_two_packages_have_has_no_owner_and_says_so() {
    let ingest = IngestServer::new();
    let fields = [
        ("branch", "main"),
        ("commit", "bb00c0ffee"),
        ("owners", "/web/ @web\n/api/ @api\n"),
        ("ownersFiles", "web/cart.test.ts\napi/cart.test.ts"),
    ];
    let answer = ingest.send(&ingest.key, &fields, &[("r.xml", FAILS.as_bytes())]);
    let run = text(&answer.json()["runId"]);
    let failures = ingest.read(&format!("/runs/{run}/failures"));
    let failure = &failures["failures"][0];
    assert_eq!(
        (&failure["owners"], &failure["ownersAmbiguous"]),
        (&json!([]), &json!(true))
    );
    let pages = Pages::over(ingest.database.url(), &ingest.read_key, &ingest.project);
    assert!(pages.page(&format!("/runs/{run}")).contains("Owner unclear"));
}
