//! Microsoft Teams, by the webhook of a workflow, which takes an Adaptive Card 1.5.
//!
//! Texts of reports are in a `RichTextBlock`, whose runs are plain. A `TextBlock` would interpret Markdown.

use assay_messages::{Channel, Content, Outgoing, Receipt, SendError, Tone, text};
use serde_json::{Value, json};

use crate::targets::{
    Allowed, Secret,
    http::{Endpoint, Http},
    within_limit,
};

/// Sends messages to a channel or a chat of Teams.
#[derive(Debug)]
pub(crate) struct Teams {
    http: Http,
}

impl Teams {
    /// The webhook of a workflow.
    ///
    /// # Errors
    /// If the address is not allowed.
    pub(crate) fn new(address: &Secret, allowed: &Allowed) -> Result<Self, &'static str> {
        Ok(Self {
            http: Http::new(Endpoint::new(address, allowed)?, allowed),
        })
    }
}

impl Channel for Teams {
    fn send(&self, message: &Outgoing<'_>) -> Result<Receipt, SendError> {
        let body = within_limit(message.content, body);
        self.http.post(&[], &body).map(|()| None)
    }

    fn kind(&self) -> &'static str {
        "teams"
    }
}

pub(crate) fn body(content: &Content) -> String {
    json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "content": card(content),
        }],
    })
    .to_string()
}

/// The card.
pub(crate) fn card(content: &Content) -> Value {
    let color = match content.tone {
        Tone::Bad => "attention",
        Tone::Good => "good",
        Tone::Neutral => "default",
    };
    let headline = json!({
        "type": "TextRun", "text": text::subject(content), "weight": "bolder", "size": "medium", "color": color,
    });
    let mut blocks = vec![rich_text(vec![headline])];
    for group in &content.groups {
        let mut lines = vec![run(&group.sentence)];
        lines.extend(
            group.error.as_deref().map(
                |error| json!({"type": "TextRun", "text": format!("\n{error}"), "fontType": "monospace"}),
            ),
        );
        lines.extend(group.tests.iter().map(|test| run(&format!("\n· {test}"))));
        if group.more > 0 {
            lines.push(run(&format!("\n· and {} more", group.more)));
        }
        blocks.push(rich_text(lines));
    }
    if content.more > 0 {
        blocks.push(rich_text(vec![run(&text::more_causes(content.more))]));
    }
    let open = |url: &String| json!({"type": "Action.OpenUrl", "title": "Open in Assay", "url": url});
    let actions: Vec<Value> = content.url.iter().map(open).collect();
    json!({
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.5",
        "body": blocks,
        "actions": actions,
    })
}

fn rich_text(inlines: Vec<Value>) -> Value {
    json!({"type": "RichTextBlock", "inlines": inlines})
}

fn run(text: &str) -> Value {
    json!({"type": "TextRun", "text": text})
}
