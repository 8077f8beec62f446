//! A run with one failed test, the decisions of a gate on it, and its page. Also for a distributed database.

use assay_testkit::{Client, Response, Server, free_address, text};
use serde_json::{Value, json};

const FAILS: &str = "<testsuite name=\"cart\"><testcase classname=\"cart\" name=\"pays\" file=\"cart.test.ts\" time=\"0.01\">\
     <failure message=\"expected 3, got 4\">at cart.test.ts:3:1</failure></testcase></testsuite>";

/// The run, and a server with every listener.
pub(crate) struct GatedRun {
    pub(crate) server: Server,
    ingest: Client,
    key: String,
    cookie: String,
    page: String,
    run: Value,
}

impl GatedRun {
    /// Starts a server over this database, signs in with a read key, and sends the report with an ingest key of the
    /// project.
    pub(crate) fn new(
        database_url: &str,
        environment: &[(&str, &str)],
        [key, read_key, project]: [&str; 3],
    ) -> Self {
        let address = free_address();
        let environment = [environment, &[("ASSAY_INGEST_LISTEN", &address)]].concat();
        let server = Server::start_with_front(database_url, &environment);
        let mut gated = Self {
            ingest: Client::new(format!("http://{address}")),
            key: key.to_owned(),
            cookie: server.front().sign_in(read_key),
            page: String::new(),
            run: Value::Null,
            server,
        };
        let fields = "branch=feature/tax&commit=f1&runKey=gated";
        let stored = gated.post(&format!("reports?{fields}"), "text/xml", FAILS);
        assert_eq!(stored.status, 201, "{}", stored.text());
        gated.run = stored.json();
        gated.page = format!("/p/{project}/runs/{}", text(&gated.run["runId"]));
        gated
    }

    fn post(&self, path: &str, content_type: &str, body: &str) -> Response {
        let authorization = format!("Bearer {}", self.key);
        let headers = [
            ("Authorization", authorization.as_str()),
            ("Content-Type", content_type),
        ];
        self.ingest
            .post(&format!("/ingest/v1/{path}"), &headers, body.as_bytes())
    }

    /// Stores that the gate excuses the failed test.
    pub(crate) fn excuse(&self) -> Response {
        let excused = json!({
            "testName": "cart > pays", "filePath": "cart.test.ts", "cause": "flake", "mine": 0.01,
            "reason": "Failed in 4 of 120 runs on good code",
        });
        self.decide("excused", json!([excused]))
    }

    /// Stores that the run does not pass.
    pub(crate) fn block(&self) -> Response {
        self.decide("blocked", json!([]))
    }

    fn decide(&self, outcome: &str, excused: Value) -> Response {
        let decision = json!({
            "runId": self.run["runId"], "shardId": self.run["shardId"], "outcome": outcome, "failed": 1, "excused": excused,
        });
        self.post("decisions", "application/json", &decision.to_string())
    }

    /// The page of the run.
    pub(crate) fn page(&self) -> String {
        let page = self
            .server
            .front()
            .get_with(&self.page, &[("Cookie", &self.cookie)]);
        assert_eq!(page.status, 200, "{}", page.text());
        page.text()
    }
}

/// Sentences of the page.
pub(crate) const EXCUSED: &str = "The gate excused 1 of 1 failed test of the run and let it pass.";
pub(crate) const BLOCKED: &str = "The gate excused 0 of 1 failed test of the run and did not let it pass.";
