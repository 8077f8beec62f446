//! Implements the port `Outbox`: edges, and the messages made of them.

mod edges;
mod messages;
mod retention;

use assay_domain::{
    edge::Edge,
    id::ProjectId,
    settings::ChatEvent,
    store::{
        Attempt, Dropped, DueMessage, EdgeNames, MessageHead, MessageKey, NewMessage, Outbox, OutboxProject,
        StoreError,
    },
    test::TestOrdinal,
    timestamp::Timestamp,
};
use diesel::prelude::*;
use serde_json::Value;

pub(crate) use self::{edges::events, retention::prune};

use self::messages::{HeadRow, NewRow, by_key};
use crate::{
    Database,
    db::{
        column::{At, int},
        connection_string::establish,
        pool::{During, WorkError, converted},
        schema::{edge, message, project as projects, signature},
        sql_statement::SqlStatement,
    },
    read::test,
};

/// Most edges that are read at once.
const MOST_EDGES: i64 = 10_000;
/// Most messages to a target that are read at once.
const MOST_MESSAGES: i64 = 1_000;

/// Most messages that are not delivered of which the contents are read.
const MOST_UNDELIVERED: i64 = 20;

/// Makes a program the only one that changes the outbox: an advisory lock of a connection of its own.
pub struct OutboxLock(PgConnection);

impl std::fmt::Debug for OutboxLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OutboxLock")
    }
}

impl OutboxLock {
    /// Takes the lock in the database of this connection string; none if another program has it.
    ///
    /// # Errors
    /// If the database does not answer.
    pub fn acquire(url: &str) -> Result<Option<Self>, StoreError> {
        let mut connection = establish(url)?;
        let is_taken: bool = SqlStatement::new("SELECT pg_try_advisory_lock(x'61737361796e'::bigint)")
            .get_result(&mut connection)
            .during("taking the lock of the outbox")?;
        Ok(is_taken.then_some(Self(connection)))
    }

    /// Whether the connection still has the lock.
    pub fn is_held(&mut self) -> bool {
        SqlStatement::new("SELECT true")
            .get_result(&mut self.0)
            .unwrap_or(false)
    }
}

impl Outbox for Database {
    fn outbox_projects(&self, now: Timestamp) -> Result<Vec<OutboxProject>, StoreError> {
        self.on_primary("reading projects with messages", |connection| {
            edges::projects(connection, now)
        })
    }

    fn register(
        &self,
        project: ProjectId,
        events: Option<&[ChatEvent]>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let events: Option<Vec<&str>> =
            events.map(|events| events.iter().map(|event| event.as_str()).collect());
        self.query("registering the targets of a project", |connection| {
            diesel::update(projects::table.find(project.0))
                .set((
                    projects::chat_served.eq(&events),
                    projects::chat_served_at.eq(events.as_ref().map(|_| At(now))),
                ))
                .execute(connection)
                .map(drop)
        })
    }

    fn unsettled(&self, project: ProjectId) -> Result<Vec<Edge>, StoreError> {
        self.on_primary("reading edges", |connection| {
            let rows: Vec<edges::Row> = edge::table
                .filter(edge::project_id.eq(project.0))
                .filter(edge::settled.is_null())
                .order(edge::number)
                .limit(MOST_EDGES)
                .select(edges::Row::as_select())
                .load(connection)?;
            edges::of_rows(rows)
        })
    }

    fn settle(
        &self,
        project: ProjectId,
        settled: &[i32],
        cancelled: &[i32],
        now: Timestamp,
    ) -> Result<i32, StoreError> {
        self.query_in_transaction("settling edges", |connection| {
            edges::settle(connection, project.0, settled, cancelled, now)
        })
    }

    fn settled(&self, project: ProjectId) -> Result<Vec<Edge>, StoreError> {
        self.on_primary("reading edges", |connection| {
            let mut rows: Vec<edges::Row> = edge::table
                .filter(edge::project_id.eq(project.0))
                .filter(
                    edge::settled
                        .is_not_null()
                        .and(diesel::dsl::not(edge::is_cancelled)),
                )
                .order((edge::settled.desc(), edge::number.desc()))
                .limit(MOST_EDGES)
                .select(edges::Row::as_select())
                .load(connection)?;
            rows.reverse();
            edges::of_rows(rows)
        })
    }

    fn messages(&self, project: ProjectId, target: &str) -> Result<Vec<MessageHead>, StoreError> {
        self.on_primary("reading messages", |connection| {
            let rows: Vec<HeadRow> = message::table
                .filter(message::project_id.eq(project.0))
                .filter(message::target.eq(target))
                .order(message::number.desc())
                .limit(MOST_MESSAGES)
                .select((
                    message::number,
                    message::id,
                    message::kind,
                    message::through,
                    message::created_at,
                    message::content.is_not_null(),
                    message::thread,
                    message::receipt,
                ))
                .load(connection)?;
            converted(rows, HeadRow::head)
        })
    }

    fn add_message(
        &self,
        project: ProjectId,
        message: &NewMessage<'_>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.on_primary("storing a message", |connection| {
            let row = NewRow::of(project, message, now)?;
            diesel::insert_into(message::table)
                .values(row)
                .execute(connection)?;
            Ok::<_, WorkError<StoreError>>(())
        })
    }

    fn cover(&self, key: MessageKey<'_>, through: i32) -> Result<(), StoreError> {
        self.query("noting covered edges", |connection| {
            diesel::update(by_key(key))
                .set(message::through.eq(through))
                .execute(connection)
                .map(drop)
        })
    }

    fn undelivered(&self, project: ProjectId, target: &str) -> Result<Vec<String>, StoreError> {
        self.on_primary("reading messages", |connection| {
            let contents: Vec<Option<Value>> = message::table
                .filter(message::project_id.eq(project.0))
                .filter(message::target.eq(target))
                .filter(message::content.is_not_null())
                .filter(message::delivered_at.is_null())
                .order(message::number)
                .limit(MOST_UNDELIVERED)
                .select(message::content)
                .load(connection)?;
            let contents = contents.into_iter().flatten();
            Ok::<_, WorkError<StoreError>>(contents.map(|content| content.to_string()).collect())
        })
    }

    fn due(
        &self,
        project: ProjectId,
        target: &str,
        now: Timestamp,
    ) -> Result<Option<DueMessage>, StoreError> {
        self.on_primary("reading a message", |connection| {
            messages::due(connection, project.0, target, now)
        })
    }

    fn note_attempt(&self, key: MessageKey<'_>, outcome: &Attempt, now: Timestamp) -> Result<(), StoreError> {
        self.query("noting an attempt", |connection| {
            messages::note_attempt(connection, key, outcome, now).map(drop)
        })
    }

    fn retry_all(&self, project: ProjectId, now: Timestamp) -> Result<(), StoreError> {
        self.query("making messages due", |connection| {
            diesel::update(message::table)
                .filter(message::project_id.eq(project.0))
                .filter(message::content.is_not_null())
                .filter(message::delivered_at.is_null())
                .set(message::next_attempt_at.eq(At(now)))
                .execute(connection)
                .map(drop)
        })
    }

    fn forget(&self, project: ProjectId, now: Timestamp) -> Result<Dropped, StoreError> {
        self.query_in_transaction("deleting old messages", |connection| {
            retention::forget(connection, project.0, now)
        })
    }

    fn edge_names(
        &self,
        project: ProjectId,
        tests: &[TestOrdinal],
        errors: &[i32],
    ) -> Result<EdgeNames, StoreError> {
        self.on_primary("reading names", |connection| {
            let ordinals: Vec<i32> = tests.iter().map(|test| int(*test)).collect();
            let names = test::names_by_ordinal(connection, project.0, &ordinals)?;
            let named = names.into_iter();
            let named = named.filter_map(|(ordinal, name)| Some((u32::try_from(ordinal).ok()?, name)));
            Ok::<_, WorkError<StoreError>>(EdgeNames {
                tests: named.collect(),
                errors: signature::table
                    .filter(signature::project_id.eq(project.0))
                    .filter(signature::ordinal.eq_any(errors))
                    .select((signature::ordinal, signature::fingerprint, signature::title))
                    .load(connection)?,
            })
        })
    }
}
