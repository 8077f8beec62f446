//! Pages, tools, API and reports on one address: paths tell them apart.

use assay_testkit::{ServedWorld, text};
use serde_json::json;

use crate::agents::post;

const REPORT: &str = r#"<testsuite><testcase classname="cart" name="pays" time="0.1"/></testsuite>"#;

#[test]
fn each_path_is_answered_by_its_part() {
    let ServedWorld { mut server, world } = ServedWorld::on_one_address(&[]);
    let created = world.cli.json(&["key", "create-ingest", "--project", "web"]);
    let (read, ingest) = (
        format!("Bearer {}", world.key),
        format!("Bearer {}", text(&created["key"])),
    );
    let ask = |path: &str, key: &str| server.client().get_with(path, &[("Authorization", key)]);

    // The API, also for paths that it does not have. Without a key it shows none of them.
    assert_eq!(ask("/api/v1/projects", &read).status, 200);
    assert_eq!(ask("/%61pi/v1/projects", &read).status, 200);
    for (path, key, status, code) in [
        ("/api/v1/projects", &ingest, 401, "wrong_key_type"),
        ("/api/v1/nothing", &read, 404, "invalid_parameter"),
        ("/api", &read, 404, "invalid_parameter"),
        ("/api/v2", &ingest, 401, "wrong_key_type"),
        ("/ingest/v1/key", &read, 401, "wrong_key_type"),
        ("/ingest/v1/nothing", &ingest, 404, "not_found"),
        ("/ingest", &read, 404, "not_found"),
        ("/ingest/v1/reports", &ingest, 405, "method_not_allowed"),
        ("/mcp", &read, 405, "method_not_allowed"),
    ] {
        let answer = ask(path, key);
        assert_eq!(
            (answer.status, text(&answer.json()["code"]).as_str()),
            (status, code),
            "{path}"
        );
        assert_eq!(answer.header("content-security-policy"), None, "{path}");
    }

    // Reports, also from a client that waits for permission to send the body.
    assert_eq!(ask("/ingest/v1/key", &ingest).json()["project"]["name"], "web");
    for (key, headers) in [("one", &[][..]), ("two", &[("Expect", "100-continue")])] {
        let path = format!("/ingest/v1/reports?branch=main&runKey={key}");
        let headers = [&[("Authorization", ingest.as_str())], headers].concat();
        let answer = server.client().post(&path, &headers, REPORT.as_bytes());
        assert_eq!(answer.status, 201, "{}", answer.text());
    }

    // Agents' tools.
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "list_runs", "arguments": {}}});
    let answer = post(server.client(), &message, &[("Authorization", &read)]).json();
    assert_eq!(answer["result"]["structuredContent"]["total"], 2, "{answer}");

    // Pages, and every other path.
    let cookie = server.client().sign_in(&world.key);
    let page = |path: &str| server.client().get_with(path, &[("Cookie", &cookie)]);
    let runs = page(&format!("/p/{}/runs", world.project));
    assert_eq!(runs.status, 200);
    assert!(runs.text().contains("/runs/"), "{}", runs.text());
    for path in ["/nothing", "/apis", "/ingested", "/mcp/x", "/v1/projects"] {
        let answer = page(path);
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.header("content-security-policy").is_some(), "{path}");
    }
    assert_eq!(ask("/", &read).status, 303, "a page needs a session");

    server.signal("TERM");
    assert!(server.ended().success(), "{}", server.log());
}

#[test]
fn the_log_names_every_address_and_what_is_off_and_answers_link_to_the_public_one() {
    let public = [("ASSAY_PUBLIC_URL", "https://assay.example.org")];
    let ServedWorld { server, world } = ServedWorld::on_one_address(&public);
    let base = server.client().base();
    for line in [
        format!("the API listens on {base}/api/v1, for clients https://assay.example.org/api/v1"),
        format!("the pages listen on {base}/, for clients https://assay.example.org/"),
        format!("agents' tools listen on {base}/mcp, for clients https://assay.example.org/mcp"),
        format!(
            "the ingest listener listens on {base}/ingest/v1, for clients https://assay.example.org/ingest/v1"
        ),
        "health and metrics for operators are on http://".to_owned(),
    ] {
        assert!(server.log().contains(&line), "{line}: {}", server.log());
    }
    let created = world.cli.json(&["key", "create-ingest", "--project", "web"]);
    let ingest = format!("Bearer {}", text(&created["key"]));
    let stored = server.client().post(
        "/ingest/v1/reports?branch=main",
        &[("Authorization", &ingest)],
        REPORT.as_bytes(),
    );
    let stored = stored.json();
    let page = format!(
        "https://assay.example.org/p/{}/runs/{}",
        world.project,
        text(&stored["runId"])
    );
    assert_eq!(stored["url"], page);
    let lone = assay_testkit::Server::start(world.database.url());
    for line in [
        "the pages are off; ASSAY_FRONT_LISTEN=HOST:PORT turns this on",
        "agents' tools are off; ASSAY_FRONT_LISTEN=HOST:PORT turns this on",
        "the ingest listener is off; ASSAY_INGEST_LISTEN=HOST:PORT turns this on",
    ] {
        assert!(lone.log().contains(line), "{line}: {}", lone.log());
    }
}
