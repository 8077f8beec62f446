//! Slack, by an incoming webhook or by `chat.postMessage`, which also has threads.
//!
//! Texts of reports are `plain_text`, in which Slack interprets nothing. The limits are those of Block Kit's reference:
//! 50 blocks, 150 characters of a header, 3,000 of a section.

use assay_messages::{Channel, Content, Group, Outgoing, Receipt, SendError, Tone, text};
use serde_json::{Value, json};

use crate::targets::{
    Allowed, Secret,
    http::{Endpoint, Http},
    within_limit,
};

/// Longest text of a header, in characters.
const HEADER_CHARS: usize = 150;
/// Longest text of a section, in characters.
const SECTION_CHARS: usize = 3_000;
/// Longest address of a link, in characters.
const URL_CHARS: usize = 3_000;
/// Slack's methods.
const API: &str = "https://slack.com/api";

/// Where messages go.
#[derive(Debug, Clone)]
pub(crate) enum SlackAddress {
    /// The address of an incoming webhook. It has no threads.
    Webhook(Secret),
    /// A channel, with the token of an app that may write there.
    Channel {
        /// The token, which begins with `xoxb-`.
        token: Secret,
        /// The channel's id or name.
        channel: String,
        /// Another address of the methods than Slack's own.
        api: Option<String>,
    },
}

/// Sends messages to a channel of Slack.
#[derive(Debug)]
pub(crate) struct Slack {
    http: Http,
    /// Token and channel; none for an incoming webhook.
    app: Option<(Secret, String)>,
}

impl Slack {
    /// A channel at this address.
    ///
    /// # Errors
    /// If the address is not allowed.
    pub(crate) fn new(address: SlackAddress, allowed: &Allowed) -> Result<Self, &'static str> {
        let (url, app) = match address {
            SlackAddress::Webhook(url) => (url, None),
            SlackAddress::Channel { token, channel, api } => {
                let api = api.as_deref().unwrap_or(API).trim_end_matches('/');
                (
                    Secret::new(format!("{api}/chat.postMessage")),
                    Some((token, channel)),
                )
            }
        };
        Ok(Self {
            http: Http::new(Endpoint::new(&url, allowed)?, allowed),
            app,
        })
    }

    pub(crate) fn body(&self, message: &Outgoing<'_>, content: &Content) -> String {
        let mut body = json!({
            "text": escaped(&text::subject(content)),
            "blocks": blocks(content),
            "unfurl_links": false,
            "unfurl_media": false,
        });
        if let (Some(fields), Some((_, channel))) = (body.as_object_mut(), &self.app) {
            fields.insert("channel".to_owned(), json!(channel));
            if let Some((_, Some(root))) = &message.thread {
                fields.insert("thread_ts".to_owned(), json!(root));
            }
        }
        body.to_string()
    }
}

impl Channel for Slack {
    fn send(&self, message: &Outgoing<'_>) -> Result<Receipt, SendError> {
        let body = within_limit(message.content, |content| self.body(message, content));
        let Some((token, _)) = &self.app else {
            return self.http.post(&[], &body).map(|()| None);
        };
        let bearer = format!("Bearer {}", token.reveal());
        let answer = self.http.post_and_read(&[("Authorization", &bearer)], &body)?;
        let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
        if answer.get("ok") == Some(&Value::Bool(true)) {
            let name = answer.get("ts").and_then(Value::as_str);
            return Ok(name.map(str::to_owned));
        }
        // The code of an error is a word of Slack's reference.
        let code = answer.get("error").and_then(Value::as_str).unwrap_or("no reason");
        let code: String = code
            .chars()
            .filter(|char| char.is_ascii_lowercase() || *char == '_')
            .take(60)
            .collect();
        Err(SendError::new(format!("Slack refuses the message: {code}")))
    }

    fn kind(&self) -> &'static str {
        "slack"
    }
}

fn blocks(content: &Content) -> Vec<Value> {
    let sign = match content.tone {
        Tone::Bad => "🔴",
        Tone::Good => "🟢",
        Tone::Neutral => "🔵",
    };
    let mut blocks = vec![json!({
        "type": "header",
        "text": plain_text(&format!("{sign} {}", text::subject(content)), HEADER_CHARS),
    })];
    blocks.extend(
        content
            .groups
            .iter()
            .map(|group| json!({"type": "section", "text": plain_text(&group_text(group), SECTION_CHARS)})),
    );
    if content.more > 0 {
        let more = text::more_causes(content.more);
        blocks.push(json!({"type": "context", "elements": [plain_text(&more, SECTION_CHARS)]}));
    }
    if let Some(url) = content
        .url
        .as_ref()
        .filter(|url| url.chars().count() <= URL_CHARS)
    {
        let link = format!("<{}|Open in Assay>", escaped(url));
        blocks.push(json!({"type": "section", "text": {"type": "mrkdwn", "text": link}}));
    }
    blocks
}

fn plain_text(text: &str, chars: usize) -> Value {
    let text: String = text.chars().take(chars).collect();
    json!({"type": "plain_text", "text": text, "emoji": false})
}

fn group_text(group: &Group) -> String {
    let mut lines = vec![group.sentence.clone()];
    lines.extend(group.error.clone());
    lines.extend(group.tests.iter().map(|test| format!("· {test}")));
    if group.more > 0 {
        lines.push(format!("· and {} more", group.more));
    }
    lines.join("\n")
}

/// A text without the three characters that have a meaning in Slack's texts.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
