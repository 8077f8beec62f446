//! A request by the operator's template, such as one that opens an issue of Jira or Linear.

use std::collections::BTreeMap;

use assay_messages::{Channel, Content, Outgoing, Receipt, SendError, text};
use serde::Deserialize;
use serde_json::{Value, json};
use ureq::http::{HeaderName, HeaderValue};

use crate::targets::{
    Allowed, Secret,
    http::{Endpoint, Http},
    within_limit,
};

/// Longest subject, in characters: Jira allows 255.
const SUBJECT_CHARS: usize = 250;

/// A request of the file of targets.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { url = …, body = … }")]
pub(crate) struct RequestEntry {
    url: Secret,
    #[serde(default)]
    headers: BTreeMap<String, Secret>,
    body: String,
}

/// Posts a template of JSON, whose texts have the message in place of `{subject}`, `{text}`, `{url}` and `{id}`.
#[derive(Debug)]
pub(crate) struct Request {
    http: Http,
    entry: RequestEntry,
}

impl Request {
    /// A request to an address with these headers.
    ///
    /// # Errors
    /// If the address is not allowed, a header is none, or the template is not an object of JSON.
    pub(crate) fn new(entry: RequestEntry, allowed: &Allowed) -> Result<Self, &'static str> {
        let is_header = |(name, value): (&String, &Secret)| {
            name.parse::<HeaderName>().is_ok() && HeaderValue::from_str(value.reveal()).is_ok()
        };
        if !entry.headers.iter().all(is_header) {
            return Err("headers has a name or a value that no header may have");
        }
        let json: Value = serde_json::from_str(&entry.body).map_err(|_| "body is not JSON")?;
        if !json.is_object() {
            return Err("body is not a JSON object");
        }
        let http = Http::new(Endpoint::new(&entry.url, allowed)?, allowed);
        Ok(Self { http, entry })
    }

    fn body(&self, message: &Outgoing<'_>, content: &Content) -> String {
        let subject: String = text::subject(content).chars().take(SUBJECT_CHARS).collect();
        let texts = [
            ("{subject}", subject),
            ("{text}", text::plain(content)),
            ("{url}", content.url.clone().unwrap_or_default()),
            ("{id}", message.id.to_string()),
        ];
        filled(&self.entry.body, &texts)
    }
}

impl Channel for Request {
    fn send(&self, message: &Outgoing<'_>) -> Result<Receipt, SendError> {
        let body = within_limit(message.content, |content| self.body(message, content));
        let headers = self.entry.headers.iter();
        let headers = headers.map(|(name, value)| (name.as_str(), value.reveal()));
        let headers: Vec<(&str, &str)> = headers.collect();
        let answer = self.http.post_and_read(&headers, &body)?;
        let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
        // GraphQL refuses with status 200.
        let refused = answer.pointer("/errors/0/message").and_then(Value::as_str);
        let host = &self.http.endpoint.host;
        match refused {
            None => Ok(None),
            Some(reason) => Err(SendError::new(format!("{host} refuses the message: {reason}"))),
        }
    }

    fn kind(&self) -> &'static str {
        "request"
    }
}

/// The template with the texts in place of their names, as parts of JSON strings. A text that has such a name itself stays as
/// it is.
fn filled(template: &str, texts: &[(&str, String)]) -> String {
    let found = texts
        .iter()
        .filter_map(|(name, text)| Some((template.find(name)?, *name, text)));
    let Some((at, name, text)) = found.min_by_key(|(at, ..)| *at) else {
        return template.to_owned();
    };
    let (before, rest) = template.split_at(at);
    let json = json!(text).to_string();
    let quoted = json.strip_prefix('"').and_then(|json| json.strip_suffix('"'));
    let after = rest.strip_prefix(name).unwrap_or_default();
    format!("{before}{}{}", quoted.unwrap_or_default(), filled(after, texts))
}
