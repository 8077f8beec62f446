//! `assay mcp`: connects an agent's standard input and output with a server's tools.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};

use anyhow::anyhow;
use assay_cli_remote::server::{address::Address, http::Client};
use clap::Args;
use serde_json::{Value, json};
use ureq::http::Method;

use crate::server_flags::{InstallationFlags, no_key, read_key};

/// The maximum size of a message, in bytes.
const LARGEST: u64 = 4 << 20;
/// The field with the protocol's version in a message, for versions without a handshake.
const VERSION_FIELD: &str = "io.modelcontextprotocol/protocolVersion";
/// JSON-RPC's code of an internal error.
const INTERNAL_ERROR: i64 = -32_603;

const EXAMPLES: &str = "\
Example: add it to an agent, as its documentation says for a server over stdio
  claude mcp add assay --env ASSAY_URL=https://assay.example.org --env ASSAY_READ_KEY=KEY -- assay mcp

An agent that speaks HTTP needs no program: its address is ASSAY_URL/mcp, with the header Authorization: Bearer KEY.";

/// Offer a server's tools to a coding agent over stdio
///
/// Forwards each message to the server's listener for pages (ASSAY_FRONT_LISTEN of assay-server). ASSAY_READ_KEY holds
/// a read key (`assay-admin key create`).
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct McpArgs {
    #[command(flatten)]
    installation: InstallationFlags,
}

/// Forwards messages until standard input ends.
pub(crate) fn run(args: &McpArgs) -> anyhow::Result<()> {
    let url = args.installation.required()?;
    let key = read_key(&url)?.ok_or_else(no_key)?;
    let address = Address::parse("the listener for pages", &url, args.installation.insecure_http)?;
    let mut forwarder = Forwarder {
        endpoint: format!("{}/mcp", address.base()),
        client: Client::new(address)?,
        authorization: format!("Bearer {}", key.trim()),
        version: None,
    };
    let mut input = BufReader::new(std::io::stdin().lock());
    let mut output = std::io::stdout().lock();
    loop {
        let mut line = Vec::new();
        let read = (&mut input).take(LARGEST).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        if line.last() != Some(&b'\n') && u64::try_from(read)? == LARGEST {
            return Err(anyhow!("a message is longer than {LARGEST} bytes"));
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        if let Some(answer) = forwarder.forward(&line) {
            match writeln!(output, "{answer}").and_then(|()| output.flush()) {
                // The client has ended.
                Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(()),
                written => written?,
            }
        }
    }
}

/// Sends messages to the server.
struct Forwarder {
    client: Client,
    endpoint: String,
    authorization: String,
    /// The version from the handshake.
    version: Option<String>,
}

impl Forwarder {
    /// The answer to a message, in one line; `None` for a notification.
    fn forward(&mut self, line: &[u8]) -> Option<String> {
        let message: Value = match serde_json::from_slice(line) {
            Ok(message) => message,
            Err(error) => return Some(failure(&Value::Null, -32_700, &format!("not JSON: {error}"))),
        };
        let id = message.get("id").cloned();
        match (self.send(&message), id) {
            (Ok(answer), Some(_)) => answer,
            (Ok(_), None) => None,
            (Err(error), Some(id)) => Some(failure(&id, INTERNAL_ERROR, &format!("{error:#}"))),
            (Err(error), None) => {
                log::warn!("a notification was not sent: {error:#}");
                None
            }
        }
    }

    fn send(&mut self, message: &Value) -> anyhow::Result<Option<String>> {
        let method = message.get("method").and_then(Value::as_str);
        let requested = message
            .pointer("/params/_meta")
            .and_then(|meta| meta.get(VERSION_FIELD));
        let version = requested.and_then(Value::as_str).or(self.version.as_deref());
        let mut headers = vec![
            ("Authorization", self.authorization.as_str()),
            ("Accept", "application/json, text/event-stream"),
        ];
        if let Some(version) = version.filter(|_| method != Some("initialize")) {
            headers.push(("MCP-Protocol-Version", version));
        }
        headers.extend(method.map(|method| ("Mcp-Method", method)));
        let name = message.pointer("/params/name").and_then(Value::as_str);
        headers.extend(name.map(|name| ("Mcp-Name", name)));
        let answer = self
            .client
            .send(Method::POST, &self.endpoint, &headers, Some(message), None)?;
        let status = answer.status;
        if answer.is_empty() {
            return if status.is_success() {
                Ok(None)
            } else {
                Err(anyhow!("{} answered {status}", self.endpoint))
            };
        }
        let Some(value) = &answer.json else {
            return Err(anyhow!(
                "{} answered {status}: {}",
                self.endpoint,
                answer.beginning()
            ));
        };
        if value.get("jsonrpc").is_none() {
            let reason = answer.text("error");
            let reason = reason.as_deref().unwrap_or("no reason was given");
            return Err(anyhow!("{reason} ({status})"));
        }
        if method == Some("initialize") {
            let agreed = value.pointer("/result/protocolVersion").and_then(Value::as_str);
            self.version = agreed.map(str::to_owned);
        }
        Ok(Some(value.to_string()))
    }
}

/// A JSON-RPC error, in one line.
fn failure(id: &Value, code: i64, message: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}).to_string()
}
