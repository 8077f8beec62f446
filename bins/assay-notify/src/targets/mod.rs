//! The targets of messages: the operator's file `notify.toml`, and delivery by Slack, Teams, webhook, request,
//! mail or file.
//!
//! Each connection goes to an address of the file, by the rules of `assay_outbound`.

mod config;
mod http;
mod relay;
mod request;
mod secret;
mod slack;
mod smtp;
mod teams;
#[cfg(test)]
mod tests;
mod webhook;

pub(crate) use assay_outbound::Allowed;
pub(crate) use config::read;
pub(crate) use request::{Request, RequestEntry};
pub(crate) use secret::Secret;
pub(crate) use slack::{Slack, SlackAddress};
pub(crate) use smtp::{Encryption, Mail};
pub(crate) use teams::Teams;
pub(crate) use webhook::{SigningKey, Webhook};

/// The bytes that a body stays below.
const MOST_BYTES: usize = 20_000;

/// The largest form of a message that stays below the limit of a body: groups are left out, and counted, until it does.
fn within_limit(
    content: &assay_messages::Content,
    body: impl Fn(&assay_messages::Content) -> String,
) -> String {
    let mut content = content.clone();
    loop {
        let written = body(&content);
        if written.len() < MOST_BYTES || content.groups.pop().is_none() {
            return written;
        }
        content.more += 1;
    }
}
