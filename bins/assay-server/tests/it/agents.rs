//! The tools for coding agents.

mod answers;
mod local_runs;
mod protocol;

use std::time::Instant;

use assay_testkit::{Client, PATIENCE, Response, ServedWorld, text};
use serde_json::{Value, json};

/// The newest version of the protocol that opens with a handshake.
const HANDSHAKE: &str = "2025-11-25";

/// The calls of `testdata/agents.json` under a name, each with what is right.
pub(crate) fn cases(name: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("../../../../testdata/agents.json")).unwrap();
    all[name].as_array().unwrap().clone()
}

/// A served project with the endpoint of the tools.
pub(crate) struct Agents {
    pub(crate) world: ServedWorld,
}

impl Agents {
    /// With an empty project.
    pub(crate) fn empty() -> Self {
        Self::with(&[])
    }

    /// The same with additional environment variables for the server.
    fn with(environment: &[(&str, &str)]) -> Self {
        Self {
            world: ServedWorld::with_front(environment),
        }
    }

    fn new() -> Self {
        let agents = Self::empty();
        for (ago, sometimes) in [
            (500, true),
            (400, false),
            (300, true),
            (200, false),
            (100, true),
            (10, false),
        ] {
            let flags = [
                "--branch",
                "main",
                "--commit",
                &format!("abcd{ago:04}"),
                "--run-key",
                &format!("build-{ago}"),
            ];
            agents
                .world
                .import_cases(ago, &[("adds", true), ("pays", sometimes)], &flags);
        }
        agents
    }

    /// The status and the JSON for a message with these additional headers.
    fn post(&self, message: &Value, headers: &[(&str, &str)]) -> (u16, Value) {
        let answer = post(self.front(), message, headers);
        (answer.status, answer.json_or_null())
    }

    /// A client of the listener with the endpoint.
    fn front(&self) -> &Client {
        self.world.server.front()
    }

    /// The result of a method of the protocol with the handshake.
    fn ask(&self, method: &str, params: Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let bearer = format!("Bearer {}", self.world.key);
        let headers = [
            ("Authorization", bearer.as_str()),
            ("MCP-Protocol-Version", HANDSHAKE),
        ];
        // A slow machine may need more time than the listener or a tool permits, until other tests end.
        let is_busy = |status: u16, answer: &Value| {
            let text = answer["result"]["content"][0]["text"].as_str();
            status == 503 || text.is_some_and(|text| text.ends_with("try again later."))
        };
        let began = Instant::now();
        let (mut status, mut answer) = self.post(&message, &headers);
        while is_busy(status, &answer) && began.elapsed() < 5 * PATIENCE {
            (status, answer) = self.post(&message, &headers);
        }
        assert_eq!(status, 200, "{answer}");
        answer["result"].clone()
    }

    /// Whether a tool failed, and its text.
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> (bool, String) {
        let result = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        let text = text(&result["content"][0]["text"]);
        let failed = result["isError"] == true;
        if !failed {
            assert_eq!(result["structuredContent"].to_string(), text);
        }
        (failed, text)
    }

    /// The answer of a tool.
    pub(crate) fn answer(&self, tool: &str, arguments: Value) -> Value {
        let (failed, text) = self.call(tool, arguments);
        assert!(!failed, "{text}");
        serde_json::from_str(&text).unwrap()
    }
}

/// Posts a message to the endpoint with additional headers.
pub(crate) fn post(front: &Client, message: &Value, headers: &[(&str, &str)]) -> Response {
    let accept = ("Accept", "application/json, text/event-stream");
    front.post_json("/mcp", &[&[accept], headers].concat(), message)
}
