//! The files that a report names, and what its failed tests printed.

use assay_domain::ingest::IngestTerms;
use assay_testkit::assert_contains;
use serde_json::json;

use crate::{
    gate_decisions::Pages,
    ingest::{IngestServer, assert_refused},
};

/// A failed test with a picture, a file that would leave its place, and output.
const WITH_FILES: &str = "<testsuites><testsuite name=\"cart\"><testcase classname=\"cart\" name=\"pays\" file=\"cart.test.ts\">\
<failure message=\"expected 3, got 4\">at cart.test.ts:3:1</failure><system-out>[[ATTACHMENT|out/&lt;b&gt; shot.png]]\n\
[[ATTACHMENT|javascript:alert(1)]]\nthe total was 4</system-out></testcase></testsuite></testsuites>";

#[test]
fn files_and_output_of_a_failed_attempt_are_linked_in_route_page_and_prompt() {
    let ingest = IngestServer::new();
    let template = "https://ci.test/812/{path}";
    let fields = [
        ("branch", "main"),
        ("commit", "c0ffee"),
        ("artifactsUrl", template),
    ];
    let answer = ingest.send(&ingest.key, &fields, &[("r.xml", WITH_FILES.as_bytes())]);
    assert_eq!(answer.status, 201, "{}", answer.text());
    let run = answer.json()["runId"].as_str().unwrap().to_owned();
    let attempts = ingest.read(&format!("/runs/{run}/tests/cart%20%3E%20pays"));
    let attempt = &attempts["attempts"][0];
    let url = "https://ci.test/812/out/%3Cb%3E%20shot.png";
    assert_eq!(
        attempt["attachments"],
        json!([
            {"name": "<b> shot.png", "kind": null, "path": "out/<b> shot.png", "url": url},
            {"name": "javascript:alert(1)", "kind": null, "path": "javascript:alert(1)", "url": null},
        ])
    );
    assert_eq!(attempt["output"], "the total was 4");
    let prompt = attempt["copyPrompt"].as_str().unwrap();
    assert!(
        prompt.contains(url) && prompt.contains("the total was 4"),
        "{prompt}"
    );

    let pages = Pages::over(ingest.database.url(), &ingest.read_key, &ingest.project);
    let page = pages.page(&format!("/runs/{run}/test?name=cart+%3E+pays"));
    assert_contains(&page, &format!("href=\"{url}\""));
    assert_contains(&page, "Files of this run, which started");
    assert!(
        !page.contains("<b> shot") && !page.contains("href=\"javascript:"),
        "{page}"
    );

    // Anybody may have a public key, so its addresses are texts.
    let public = ingest.new_key(&IngestTerms {
        pull_requests_only: true,
        ..IngestTerms::default()
    });
    let foreign = WITH_FILES.replace("javascript:alert(1)", "https://evil.test/a.png");
    let fields = [
        ("branch", "topic"),
        ("pullRequest", "7"),
        ("artifactsUrl", template),
    ];
    let answer = ingest.send(&public, &fields, &[("r.xml", foreign.as_bytes())]);
    assert_eq!(answer.status, 201, "{}", answer.text());
    let run = answer.json()["runId"].as_str().unwrap().to_owned();
    let attempts = ingest.read(&format!("/runs/{run}/tests/cart%20%3E%20pays"));
    for attachment in attempts["attempts"][0]["attachments"].as_array().unwrap() {
        assert_eq!(attachment["url"], json!(null), "{attachment}");
    }
    let page = pages.page(&format!("/runs/{run}/test?name=cart+%3E+pays"));
    assert!(
        page.contains("https://evil.test/a.png")
            && !page.contains("href=\"https://evil.test")
            && !page.contains("href=\"https://ci.test"),
        "{page}"
    );

    for wrong in ["https://ci.test/812", "javascript:{path}", "https://{path}"] {
        let fields = [("branch", "main"), ("artifactsUrl", wrong)];
        let refused = ingest.send(&ingest.key, &fields, &[("r.xml", WITH_FILES.as_bytes())]);
        assert_refused(&refused, 400, "invalid_parameter");
    }
}
