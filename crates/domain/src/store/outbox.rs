//! The outbox: edges that judgements wrote, and the messages made of them.

use uuid::Uuid;

use super::StoreError;
use crate::{
    edge::Edge,
    id::ProjectId,
    project::Project,
    settings::ChatEvent,
    test::{TestName, TestOrdinal},
    timestamp::Timestamp,
    vocabulary::vocabulary,
};

vocabulary!(
    /// The kind of a message.
    MessageKind {
        /// The place from which a new target gets edges. It is never sent.
        Mark = "mark",
        /// Edges.
        Changes = "changes",
        /// What changed in a day or a week.
        Digest = "digest",
    }
);

/// A project whose settings have events for messages.
#[derive(Debug, Clone)]
pub struct OutboxProject {
    /// The project.
    pub project: Project,
    /// The name of its organization.
    pub organization: String,
    /// The stable branch.
    pub stable_branch: String,
    /// The events of its settings.
    pub events: Vec<ChatEvent>,
    /// The time of its last judgement.
    pub judged_at: Option<Timestamp>,
    /// The events that were last registered, and when.
    pub served: Option<(Vec<ChatEvent>, Timestamp)>,
    /// The last batch of settled edges; 0 if there is none.
    pub last_batch: i32,
    /// Whether any edge is not settled yet.
    pub has_unsettled: bool,
}

/// A stored message without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageHead {
    /// Its number within project and target, from 0.
    pub number: i32,
    /// Its id, the same at each attempt.
    pub id: Uuid,
    /// Its kind.
    pub kind: MessageKind,
    /// The last batch of edges that this message or one before it covers.
    pub through: i32,
    /// When it was written.
    pub created_at: Timestamp,
    /// Whether there is anything to send.
    pub has_content: bool,
    /// The first message of its thread.
    pub thread: Option<Uuid>,
    /// The name that the service gave it.
    pub receipt: Option<String>,
}

/// A message to store.
#[derive(Debug, Clone)]
pub struct NewMessage<'a> {
    /// The target's name.
    pub target: &'a str,
    /// Its number within project and target: one more than the last.
    pub number: i32,
    /// Its id.
    pub id: Uuid,
    /// Its kind.
    pub kind: MessageKind,
    /// The last batch of edges that this message or one before it covers.
    pub through: i32,
    /// What to send, as JSON; none if there is nothing.
    pub content: Option<String>,
    /// The first message of its thread.
    pub thread: Option<Uuid>,
}

/// A message that is due for an attempt.
#[derive(Debug, Clone)]
pub struct DueMessage {
    /// Its number within project and target.
    pub number: i32,
    /// Its id.
    pub id: Uuid,
    /// When it was written.
    pub created_at: Timestamp,
    /// What to send, as JSON.
    pub content: String,
    /// The first message of its thread, with the name that the service gave that one.
    pub thread: Option<(Uuid, Option<String>)>,
    /// The attempts so far.
    pub attempts: u32,
}

/// Selects a message.
#[derive(Debug, Clone, Copy)]
pub struct MessageKey<'a> {
    /// The project.
    pub project: ProjectId,
    /// The target's name.
    pub target: &'a str,
    /// Its number within both.
    pub number: i32,
}

/// The outcome of an attempt to deliver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attempt {
    /// The receiver took it, and named it so if it names messages.
    Delivered {
        /// The receiver's name for it.
        receipt: Option<String>,
    },
    /// The receiver did not take it.
    Failed {
        /// The reason, without secrets.
        reason: String,
        /// The time of the next attempt; none if there is none.
        next: Option<Timestamp>,
    },
}

/// What was dropped because it could not be delivered in time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Edges that no message was sent about.
    pub edges: u64,
    /// The messages, each with its target and the reason of its last failure.
    pub messages: Vec<(String, Option<String>)>,
}

/// Tests and errors by their numbers.
#[derive(Debug, Clone, Default)]
pub struct EdgeNames {
    /// The names of the tests.
    pub tests: Vec<(TestOrdinal, TestName)>,
    /// Fingerprint and title of the error signatures.
    pub errors: Vec<(i32, String, String)>,
}

/// The outbox. Only one program at a time may change it.
pub trait Outbox: Send + Sync {
    /// The projects whose settings have events for messages, in the order of their creation.
    fn outbox_projects(&self, now: Timestamp) -> Result<Vec<OutboxProject>, StoreError>;

    /// Registers the events for which there are targets, which the settings of the project show; none if there is no
    /// target.
    fn register(
        &self,
        project: ProjectId,
        events: Option<&[ChatEvent]>,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// The edges that are not settled, in their order, at most 10,000.
    fn unsettled(&self, project: ProjectId) -> Result<Vec<Edge>, StoreError>;

    /// Settles edges as one batch, and cancels others. Returns the number of the batch.
    fn settle(
        &self,
        project: ProjectId,
        settled: &[i32],
        cancelled: &[i32],
        now: Timestamp,
    ) -> Result<i32, StoreError>;

    /// The settled edges of the last [`KEPT_DAYS`](crate::edge::KEPT_DAYS), with those of problems that go on, the oldest
    /// batch first, at most the newest 10,000.
    fn settled(&self, project: ProjectId) -> Result<Vec<Edge>, StoreError>;

    /// The messages to a target, the newest first, at most 1,000.
    fn messages(&self, project: ProjectId, target: &str) -> Result<Vec<MessageHead>, StoreError>;

    /// Stores a message. Fails if its number is taken: what a program that was killed had begun to write may come later,
    /// and the caller then has to read again what was written.
    fn add_message(
        &self,
        project: ProjectId,
        message: &NewMessage<'_>,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Notes that the last message to a target covers the edges up to this batch, although it has none of them.
    fn cover(&self, key: MessageKey<'_>, through: i32) -> Result<(), StoreError>;

    /// The contents of the messages to a target that are not delivered, the oldest first, at most 20.
    fn undelivered(&self, project: ProjectId, target: &str) -> Result<Vec<String>, StoreError>;

    /// The oldest message to a target that is neither delivered nor given up, if an attempt is due.
    fn due(&self, project: ProjectId, target: &str, now: Timestamp)
    -> Result<Option<DueMessage>, StoreError>;

    /// Notes the outcome of an attempt.
    fn note_attempt(&self, key: MessageKey<'_>, outcome: &Attempt, now: Timestamp) -> Result<(), StoreError>;

    /// Makes every message that was not delivered due again.
    fn retry_all(&self, project: ProjectId, now: Timestamp) -> Result<(), StoreError>;

    /// Deletes what is older than it is kept, and drops what could not be delivered in time.
    fn forget(&self, project: ProjectId, now: Timestamp) -> Result<Dropped, StoreError>;

    /// The names of tests and errors.
    fn edge_names(
        &self,
        project: ProjectId,
        tests: &[TestOrdinal],
        errors: &[i32],
    ) -> Result<EdgeNames, StoreError>;
}
