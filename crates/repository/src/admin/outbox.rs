//! Implements the port `Outbox`: edges, and the messages made of them.

use std::collections::HashMap;

use assay_domain::{
    edge::{DROPPED_AFTER_DAYS, Edge, EdgeRun, EdgeSubject, KEPT_DAYS, Settled},
    id::{ProjectId, RunId},
    plan::Plan,
    project::Project,
    settings::ChatEvent,
    store::{
        Attempt, Dropped, DueMessage, EdgeNames, MessageHead, MessageKey, NewMessage, Outbox, OutboxProject,
        StoreError,
    },
    test::TestOrdinal,
    timestamp::Timestamp,
};
use diesel::{
    BoolExpressionMethods, ExpressionMethods, Insertable, OptionalExtension, PgConnection, QueryDsl,
    QueryResult, Queryable, QueryableByName, RunQueryDsl, Selectable, SelectableHelper,
    dsl::{exists, max, min, select},
    sql_query,
    sql_types::Bool,
};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    Database,
    db::{
        column::{At, corrupt, count, int, optional_word, storable, word},
        connection_string::establish,
        pool::{Read, WorkError},
        schema::{edge, message, organization, project as projects, project_entry, signature},
    },
    read::test,
};

/// Most edges that are read at once.
const MOST_EDGES: i64 = 10_000;
/// Most messages to a target that are read at once.
const MOST_MESSAGES: i64 = 1_000;
/// Longest stored reason of a failed attempt, in characters.
const LONGEST_REASON: usize = 500;

/// Makes a program the only one that changes the outbox: an advisory lock of a connection of its own.
pub struct OutboxLock(PgConnection);

impl std::fmt::Debug for OutboxLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OutboxLock")
    }
}

#[derive(QueryableByName)]
struct IsLocked {
    #[diesel(sql_type = Bool)]
    locked: bool,
}

impl OutboxLock {
    /// Takes the lock in the database of this connection string; none if another program has it.
    ///
    /// # Errors
    /// If the database does not answer.
    pub fn acquire(url: &str) -> Result<Option<Self>, StoreError> {
        let mut connection = establish(url)?;
        let taken: IsLocked = sql_query("SELECT pg_try_advisory_lock(x'61737361796e'::bigint) AS locked")
            .get_result(&mut connection)
            .map_err(|error| WorkError::Query(error).during("taking the lock of the outbox"))?;
        Ok(taken.locked.then_some(Self(connection)))
    }

    /// Whether the connection still has the lock.
    pub fn is_held(&mut self) -> bool {
        select(diesel::dsl::sql::<Bool>("true"))
            .get_result::<bool>(&mut self.0)
            .unwrap_or(false)
    }
}

impl Outbox for Database {
    fn outbox_projects(&self, now: Timestamp) -> Result<Vec<OutboxProject>, StoreError> {
        self.on_primary("reading projects with messages", |connection| {
            outbox_projects(connection, now)
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
        self.on_primary("registering the targets of a project", |connection| {
            diesel::update(projects::table.find(project.0))
                .set((
                    projects::chat_served.eq(&events),
                    projects::chat_served_at.eq(events.as_ref().map(|_| At(now))),
                ))
                .execute(connection)?;
            Ok::<_, WorkError<StoreError>>(())
        })
    }

    fn unsettled(&self, project: ProjectId) -> Result<Vec<Edge>, StoreError> {
        self.on_primary("reading edges", |connection| {
            let rows: Vec<Row> = edge::table
                .filter(edge::project_id.eq(project.0))
                .filter(edge::settled.is_null())
                .order(edge::number)
                .limit(MOST_EDGES)
                .select(Row::as_select())
                .load(connection)?;
            edges(rows)
        })
    }

    fn settle(
        &self,
        project: ProjectId,
        settled: &[i32],
        cancelled: &[i32],
        now: Timestamp,
    ) -> Result<i32, StoreError> {
        self.in_transaction("settling edges", |connection| {
            Ok::<_, WorkError<StoreError>>(settle(connection, project.0, settled, cancelled, now)?)
        })
    }

    fn settled(&self, project: ProjectId) -> Result<Vec<Edge>, StoreError> {
        self.on_primary("reading edges", |connection| {
            let mut rows: Vec<Row> = edge::table
                .filter(edge::project_id.eq(project.0))
                .filter(
                    edge::settled
                        .is_not_null()
                        .and(diesel::dsl::not(edge::is_cancelled)),
                )
                .order((edge::settled.desc(), edge::number.desc()))
                .limit(MOST_EDGES)
                .select(Row::as_select())
                .load(connection)?;
            rows.reverse();
            edges(rows)
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
            Ok(rows
                .into_iter()
                .map(HeadRow::head)
                .collect::<Result<_, StoreError>>()?)
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
                .on_conflict_do_nothing()
                .execute(connection)?;
            Ok::<_, WorkError<StoreError>>(())
        })
    }

    fn cover(&self, key: MessageKey<'_>, through: i32) -> Result<(), StoreError> {
        self.on_primary("noting covered edges", |connection| {
            diesel::update(by_key(key))
                .set(message::through.eq(through))
                .execute(connection)?;
            Ok::<_, WorkError<StoreError>>(())
        })
    }

    fn due(
        &self,
        project: ProjectId,
        target: &str,
        now: Timestamp,
    ) -> Result<Option<DueMessage>, StoreError> {
        self.on_primary("reading a message", |connection| {
            due(connection, project.0, target, now)
        })
    }

    fn note_attempt(&self, key: MessageKey<'_>, outcome: &Attempt, now: Timestamp) -> Result<(), StoreError> {
        self.on_primary("noting an attempt", |connection| {
            note_attempt(connection, key, outcome, now)?;
            Ok::<_, WorkError<StoreError>>(())
        })
    }

    fn retry_all(&self, project: ProjectId, now: Timestamp) -> Result<(), StoreError> {
        self.on_primary("making messages due", |connection| {
            diesel::update(message::table)
                .filter(message::project_id.eq(project.0))
                .filter(message::content.is_not_null())
                .filter(message::delivered_at.is_null())
                .set(message::next_attempt_at.eq(At(now)))
                .execute(connection)?;
            Ok::<_, WorkError<StoreError>>(())
        })
    }

    fn forget(&self, project: ProjectId, now: Timestamp) -> Result<Dropped, StoreError> {
        self.in_transaction("deleting old messages", |connection| {
            Ok::<_, WorkError<StoreError>>(forget(connection, project.0, now)?)
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
            let names = test::names_of_many(connection, project.0, &ordinals)?;
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

/// Selects the message of this key.
#[diesel::dsl::auto_type]
fn by_key<'a>(key: MessageKey<'a>) -> _ {
    let project: Uuid = key.project.0;
    let (target, number): (&'a str, i32) = (key.target, key.number);
    message::table.find((project, target, number))
}

#[derive(Queryable)]
struct ProjectRow {
    id: Uuid,
    name: String,
    organization_id: Uuid,
    stable_branch: String,
    events: Option<Vec<String>>,
    judged_at: Option<At>,
    served: Option<Vec<String>>,
    served_at: Option<At>,
    settled: Option<i32>,
    covered: Option<i32>,
    has_unsettled: bool,
}

fn outbox_projects(connection: &mut PgConnection, now: Timestamp) -> Read<Vec<OutboxProject>> {
    // These statements read all projects. Only this program waits for them.
    let rows: Vec<ProjectRow> = projects::table
        .filter(
            projects::chat_events
                .is_not_null()
                .or(projects::chat_served.is_not_null()),
        )
        .filter(projects::deleted_at.is_null())
        .order((projects::created_at, projects::id))
        .select((
            projects::id,
            projects::name,
            projects::organization_id,
            projects::stable_branch,
            projects::chat_events,
            projects::evaluated_at,
            projects::chat_served,
            projects::chat_served_at,
            edge::table
                .filter(edge::project_id.eq(projects::id))
                .select(max(edge::settled))
                .single_value(),
            message::table
                .filter(message::project_id.eq(projects::id))
                .select(max(message::through))
                .single_value(),
            exists(
                edge::table
                    .filter(edge::project_id.eq(projects::id))
                    .filter(edge::settled.is_null()),
            ),
        ))
        .load(connection)?;
    let organizations: Vec<(Uuid, String, String)> = organization::table
        .filter(organization::deleted_at.is_null())
        .select((organization::id, organization::name, organization::plan))
        .load(connection)?;
    let organizations: HashMap<Uuid, (String, String)> = organizations
        .into_iter()
        .map(|(id, name, plan)| (id, (name, plan)))
        .collect();
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        // The organization is being deleted.
        let Some((organization, plan)) = organizations.get(&row.organization_id) else {
            continue;
        };
        let plan: Plan = word("plan", plan)?;
        let served = row.served.as_deref().zip(row.served_at);
        found.push(OutboxProject {
            project: Project::of_row(ProjectId(row.id), row.name, plan, now),
            organization: organization.clone(),
            stable_branch: row.stable_branch,
            events: events(row.events.as_deref().unwrap_or_default())?,
            judged_at: row.judged_at.map(|at| at.0),
            served: served
                .map(|(served, at)| Ok::<_, StoreError>((events(served)?, at.0)))
                .transpose()?,
            last_batch: last_batch(row.settled, row.covered),
            has_unsettled: row.has_unsettled,
        });
    }
    Ok(found)
}

/// Parses stored events.
pub(crate) fn events(words: &[String]) -> Result<Vec<ChatEvent>, StoreError> {
    words.iter().map(|event| word("chat event", event)).collect()
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = edge)]
struct Row {
    number: i32,
    judged_at: At,
    event: String,
    suite: String,
    test: Option<i32>,
    signature: Option<i32>,
    from_status: Option<String>,
    to_status: Option<String>,
    run_id: Option<Uuid>,
    run_number: Option<i32>,
    since_run: Option<i32>,
    is_red: bool,
    settled: Option<i32>,
    settled_at: Option<At>,
}

fn edges(rows: Vec<Row>) -> Read<Vec<Edge>> {
    Ok(rows
        .into_iter()
        .map(Row::edge)
        .collect::<Result<_, StoreError>>()?)
}

impl Row {
    fn edge(self) -> Result<Edge, StoreError> {
        let from = optional_word("verdict", self.from_status.as_deref())?;
        let to = optional_word("verdict", self.to_status.as_deref())?;
        let subject = match (self.test, from, to, self.signature) {
            (Some(test), Some(from), Some(to), _) => EdgeSubject::Test {
                test: count(test)?,
                from,
                to,
            },
            (None, _, _, Some(signature)) => EdgeSubject::Error { signature },
            (None, _, _, None) => EdgeSubject::Suite,
            (Some(_), None, _, _) | (Some(_), _, None, _) => {
                return Err(corrupt("edge", "a test without its verdicts"));
            }
        };
        let settled = self.settled.zip(self.settled_at);
        Ok(Edge {
            number: self.number,
            judged_at: self.judged_at.0,
            event: word("chat event", &self.event)?,
            suite: self.suite,
            subject,
            run: self.run_id.zip(self.run_number).map(|(id, number)| EdgeRun {
                id: RunId(id),
                number,
            }),
            since_run: self.since_run,
            is_red: self.is_red,
            settled: settled.map(|(batch, at)| Settled { batch, at: at.0 }),
        })
    }
}

/// The last batch of a project. Edges are deleted after a while, and the messages then still say how far they were.
fn last_batch(settled: Option<i32>, covered: Option<i32>) -> i32 {
    settled.max(covered).unwrap_or(0)
}

fn settle(
    connection: &mut PgConnection,
    project: Uuid,
    settled: &[i32],
    cancelled: &[i32],
    now: Timestamp,
) -> QueryResult<i32> {
    let settled_before: Option<i32> = edge::table
        .filter(edge::project_id.eq(project))
        .select(max(edge::settled))
        .first(connection)?;
    let covered: Option<i32> = message::table
        .filter(message::project_id.eq(project))
        .select(max(message::through))
        .first(connection)?;
    let batch = last_batch(settled_before, covered).saturating_add(1);
    for (numbers, is_cancelled) in [(settled, false), (cancelled, true)] {
        diesel::update(edge::table)
            .filter(edge::project_id.eq(project))
            .filter(edge::number.eq_any(numbers))
            .filter(edge::settled.is_null())
            .set((
                edge::settled.eq(batch),
                edge::settled_at.eq(At(now)),
                edge::is_cancelled.eq(is_cancelled),
            ))
            .execute(connection)?;
    }
    Ok(batch)
}

#[derive(Queryable)]
struct HeadRow {
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
    fn head(self) -> Result<MessageHead, StoreError> {
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
struct NewRow<'a> {
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
    fn of(project: ProjectId, new: &NewMessage<'a>, now: Timestamp) -> Result<Self, StoreError> {
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

fn due(
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

fn note_attempt(
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

/// Deletes the edges and messages of a project that are too old. The caller is in a transaction.
pub(crate) fn forget(connection: &mut PgConnection, project: Uuid, now: Timestamp) -> QueryResult<Dropped> {
    let kept_from = At(now.plus_days(-KEPT_DAYS));
    let dropped_before = At(now.plus_days(-DROPPED_AFTER_DAYS));
    let of_project = || edge::table.filter(edge::project_id.eq(project));
    diesel::delete(of_project().filter(edge::settled_at.lt(kept_from))).execute(connection)?;
    let unsettled = of_project().filter(edge::settled.is_null().and(edge::judged_at.lt(dropped_before)));
    let edges = diesel::delete(unsettled).execute(connection)?;
    let undelivered = message::table
        .filter(message::project_id.eq(project))
        .filter(
            message::content
                .is_not_null()
                .and(message::delivered_at.is_null()),
        )
        .filter(message::created_at.lt(dropped_before));
    let messages: Vec<(String, Option<String>)> = undelivered
        .order((message::target, message::number))
        .select((message::target, message::error))
        .load(connection)?;
    if !messages.is_empty() {
        // The rows stay without their content, because they hold how far their targets are.
        diesel::update(undelivered)
            .set((
                message::content.eq(None::<Value>),
                message::next_attempt_at.eq(None::<At>),
            ))
            .execute(connection)?;
    }
    let targets: Vec<(String, Option<i32>)> = message::table
        .filter(message::project_id.eq(project))
        .filter(message::created_at.lt(kept_from))
        .group_by(message::target)
        .select((message::target, min(message::number)))
        .load(connection)?;
    for (target, _) in targets {
        let of_target = message::table
            .filter(message::project_id.eq(project))
            .filter(message::target.eq(target));
        let newest: Option<i32> = of_target.clone().select(max(message::number)).first(connection)?;
        let old = of_target
            .filter(message::created_at.lt(kept_from))
            .filter(message::number.lt(newest.unwrap_or(0)));
        diesel::delete(old).execute(connection)?;
    }
    Ok(Dropped {
        edges: u64::try_from(edges).unwrap_or(u64::MAX),
        messages,
    })
}

/// The same for every project, where no `assay-notify` runs. What is dropped gets a line in the log.
pub(crate) fn prune(database: &Database, now: Timestamp) -> Result<(), StoreError> {
    let projects: Vec<Uuid> = database.on_primary("reading projects", |connection| {
        let ids = project_entry::table.select(project_entry::id).load(connection);
        Ok::<_, WorkError<StoreError>>(ids?)
    })?;
    for project in projects {
        let Dropped { edges, messages } = database.forget(ProjectId(project), now)?;
        if edges > 0 || !messages.is_empty() {
            let messages = messages.len();
            log::warn!(
                "of project {project}, {edges} edges and {messages} messages were dropped, because assay-notify did not \
                 deliver them within three days"
            );
        }
    }
    Ok(())
}
