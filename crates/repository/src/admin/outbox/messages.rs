//! Rows of messages: what is stored, what is due, and what happened to an attempt.

use assay_domain::{
    id::ProjectId,
    store::{Attempt, DueMessage, MessageHead, MessageKey, NewMessage, StoreError},
    timestamp::Timestamp,
};
use diesel::prelude::*;
use serde_json::Value;
use uuid::Uuid;

use crate::db::{
    column::{At, count, storable, word},
    pool::Read,
    schema::message,
};

/// Longest stored reason of a failed attempt, in characters.
const LONGEST_REASON: usize = 500;

/// Selects the message of this key.
#[diesel::dsl::auto_type]
pub(super) fn by_key<'a>(key: MessageKey<'a>) -> _ {
    let project: Uuid = key.project.0;
    let (target, number): (&'a str, i32) = (key.target, key.number);
    message::table.find((project, target, number))
}

#[derive(Queryable)]
pub(super) struct HeadRow {
    number: i32,
    id: Uuid,
    kind: String,
    through: i32,
    created_at: At,
    has_content: bool,
    thread: Option<Uuid>,
    receipt: Option<String>,
}

impl HeadRow {
    pub(super) fn head(self) -> Result<MessageHead, StoreError> {
        Ok(MessageHead {
            number: self.number,
            id: self.id,
            kind: word("kind of a message", &self.kind)?,
            through: self.through,
            created_at: self.created_at.0,
            has_content: self.has_content,
            thread: self.thread,
            receipt: self.receipt,
        })
    }
}

#[derive(Insertable)]
#[diesel(table_name = message)]
pub(super) struct NewRow<'a> {
    project_id: Uuid,
    target: &'a str,
    number: i32,
    id: Uuid,
    kind: &'static str,
    through: i32,
    created_at: At,
    content: Option<Value>,
    thread: Option<Uuid>,
    next_attempt_at: Option<At>,
}

impl<'a> NewRow<'a> {
    pub(super) fn of(project: ProjectId, new: &NewMessage<'a>, now: Timestamp) -> Result<Self, StoreError> {
        let content = new.content.as_deref().map(|content| {
            serde_json::from_str(&content.replace("\\u0000", "\\ufffd")).map_err(|error| StoreError::Failed {
                doing: "writing a message",
                source: Box::new(error),
            })
        });
        Ok(Self {
            project_id: project.0,
            target: new.target,
            number: new.number,
            id: new.id,
            kind: new.kind.as_str(),
            through: new.through,
            created_at: At(now),
            next_attempt_at: content.as_ref().map(|_| At(now)),
            content: content.transpose()?,
            thread: new.thread,
        })
    }
}

#[derive(Queryable)]
struct DueRow {
    number: i32,
    id: Uuid,
    created_at: At,
    content: Option<Value>,
    thread: Option<Uuid>,
    attempts: i32,
    next_attempt_at: Option<At>,
}

pub(super) fn due(
    connection: &mut PgConnection,
    project: Uuid,
    target: &str,
    now: Timestamp,
) -> Read<Option<DueMessage>> {
    let row: Option<DueRow> = message::table
        .filter(message::project_id.eq(project))
        .filter(message::target.eq(target))
        .filter(message::content.is_not_null())
        .filter(message::delivered_at.is_null())
        // Without a next attempt it is given up, and later messages pass it.
        .filter(message::next_attempt_at.is_not_null())
        .order(message::number)
        .select((
            message::number,
            message::id,
            message::created_at,
            message::content,
            message::thread,
            message::attempts,
            message::next_attempt_at,
        ))
        .first(connection)
        .optional()?;
    let Some(row) = row.filter(|row| row.next_attempt_at.is_some_and(|at| at.0 <= now)) else {
        return Ok(None);
    };
    let root: Option<Option<String>> = match row.thread {
        Some(thread) => message::table
            .filter(message::project_id.eq(project))
            .filter(message::target.eq(target))
            .filter(message::id.eq(thread))
            .select(message::receipt)
            .first(connection)
            .optional()?,
        None => None,
    };
    Ok(Some(DueMessage {
        number: row.number,
        id: row.id,
        created_at: row.created_at.0,
        content: row.content.map(|content| content.to_string()).unwrap_or_default(),
        thread: row.thread.map(|thread| (thread, root.flatten())),
        attempts: count(row.attempts)?,
    }))
}

pub(super) fn note_attempt(
    connection: &mut PgConnection,
    key: MessageKey<'_>,
    outcome: &Attempt,
    now: Timestamp,
) -> QueryResult<usize> {
    let tried = message::attempts.eq(message::attempts + 1);
    match outcome {
        Attempt::Delivered { receipt } => diesel::update(by_key(key))
            .set((
                tried,
                message::next_attempt_at.eq(None::<At>),
                message::delivered_at.eq(At(now)),
                message::receipt.eq(receipt.as_deref().map(storable)),
                message::error.eq(None::<String>),
            ))
            .execute(connection),
        Attempt::Failed { reason, next } => {
            let reason: String = storable(reason).chars().take(LONGEST_REASON).collect();
            diesel::update(by_key(key))
                .set((
                    tried,
                    message::next_attempt_at.eq(next.map(At)),
                    message::error.eq(reason),
                ))
                .execute(connection)
        }
    }
}
