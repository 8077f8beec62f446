//! A webhook by the specification Standard Webhooks 1.0 (<https://www.standardwebhooks.com>): an id, a timestamp and a
//! signature with HMAC-SHA256 over `ID.TIMESTAMP.BODY`. While keys are rotated there is a signature by each.

use assay_messages::{Channel, Content, Outgoing, Receipt, SendError};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::hmac;
use serde_json::json;
use uuid::Uuid;

use crate::targets::{
    Allowed, Secret,
    http::{Endpoint, Http},
    within_limit,
};

/// The beginning of a key's text.
const PREFIX: &str = "whsec_";
/// The least and the largest number of bytes of a key, by the specification.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// A key that signs messages.
#[derive(Clone)]
pub(crate) struct SigningKey(hmac::Key);

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

impl SigningKey {
    /// The key of a text: `whsec_` and 24 to 64 bytes in Base64.
    pub(crate) fn parse(text: &Secret) -> Option<Self> {
        let bytes = STANDARD.decode(text.reveal().strip_prefix(PREFIX)?).ok()?;
        KEY_BYTES
            .contains(&bytes.len())
            .then(|| Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    fn signature(&self, signed: &str) -> String {
        format!("v1,{}", STANDARD.encode(hmac::sign(&self.0, signed.as_bytes())))
    }
}

/// Posts messages as JSON.
#[derive(Debug)]
pub(crate) struct Webhook {
    http: Http,
    keys: Vec<SigningKey>,
}

impl Webhook {
    /// A webhook at an address, signed by these keys.
    ///
    /// # Errors
    /// If the address is not allowed.
    pub(crate) fn new(
        address: &Secret,
        keys: Vec<SigningKey>,
        allowed: &Allowed,
    ) -> Result<Self, &'static str> {
        Ok(Self {
            http: Http::new(Endpoint::new(address, allowed)?, allowed),
            keys,
        })
    }
}

impl Channel for Webhook {
    fn send(&self, message: &Outgoing<'_>) -> Result<Receipt, SendError> {
        let id = message_id(message.id);
        let timestamp = (message.now.unix_ms() / 1_000).to_string();
        let body = within_limit(message.content, |content| body(message, content));
        let signed = format!("{id}.{timestamp}.{body}");
        let signatures: Vec<String> = self.keys.iter().map(|key| key.signature(&signed)).collect();
        let headers = [
            ("webhook-id", id.as_str()),
            ("webhook-timestamp", &timestamp),
            ("webhook-signature", &signatures.join(" ")),
        ];
        self.http.post(&headers, &body).map(|()| None)
    }

    fn kind(&self) -> &'static str {
        "webhook"
    }
}

pub(crate) fn body(message: &Outgoing<'_>, content: &Content) -> String {
    let thread = message.thread.as_ref().map(|(id, _)| message_id(*id));
    json!({"type": "assay.changes", "timestamp": message.at, "thread": thread, "data": content}).to_string()
}

fn message_id(id: Uuid) -> String {
    format!("msg_{}", id.simple())
}
