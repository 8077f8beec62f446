//! What delivers a message.

use std::time::Duration;

use assay_domain::timestamp::Timestamp;
use uuid::Uuid;

use crate::{Content, content::bounded};

/// Longest reason, in characters.
const REASON_CHARS: usize = 1_000;

/// A message on its way.
#[derive(Debug)]
pub struct Outgoing<'a> {
    /// Its id, the same at each attempt.
    pub id: Uuid,
    /// When it was written.
    pub at: Timestamp,
    /// The time of this attempt.
    pub now: Timestamp,
    /// What it says.
    pub content: &'a Content,
    /// The first message of its thread, with the name that the service gave that one.
    pub thread: Option<(Uuid, Option<String>)>,
}

/// The service's name for a delivered message, for answers in its thread.
pub type Receipt = Option<String>;

/// Why a message was not delivered. The text has no secret, so an address is only named by its host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct SendError {
    /// The reason.
    pub reason: String,
    /// How long the target wants no other attempt.
    pub retry_after: Option<Duration>,
}

impl SendError {
    /// An error of a target that names no time. The reason may have texts of the target, so that it becomes one line
    /// without control characters.
    pub fn new(reason: String) -> Self {
        Self {
            reason: bounded(&reason, REASON_CHARS),
            retry_after: None,
        }
    }
}

/// Delivers messages to one target.
pub trait Channel: Send + Sync {
    /// Sends a message and waits until the target has it.
    ///
    /// # Errors
    /// If the target did not confirm it. It may have it all the same, so a repetition has the same id.
    fn send(&self, message: &Outgoing<'_>) -> Result<Receipt, SendError>;

    /// The kind of the target, such as `slack`.
    fn kind(&self) -> &'static str;
}
