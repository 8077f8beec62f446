//! Rows of edges, and the projects that have some.

use std::collections::HashMap;

use assay_domain::{
    edge::{Edge, EdgeRun, EdgeSubject, Settled},
    id::{ProjectId, RunId},
    plan::Plan,
    project::Project,
    settings::ChatEvent,
    store::{OutboxProject, StoreError},
    timestamp::Timestamp,
};
use diesel::{
    dsl::{exists, max},
    prelude::*,
};
use uuid::Uuid;

use crate::db::{
    column::{At, corrupt, count, optional_word, word},
    pool::{Read, converted},
    schema::{edge, message, organization, project as projects},
};

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

pub(super) fn projects(connection: &mut PgConnection, now: Timestamp) -> Read<Vec<OutboxProject>> {
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
pub(super) struct Row {
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
    flaky_tests: Option<i32>,
    release_branch: Option<String>,
}

pub(super) fn of_rows(rows: Vec<Row>) -> Read<Vec<Edge>> {
    converted(rows, Row::edge)
}

impl Row {
    fn edge(self) -> Result<Edge, StoreError> {
        let from = optional_word("verdict", self.from_status.as_deref())?;
        let to = optional_word("verdict", self.to_status.as_deref())?;
        let event = word("chat event", &self.event)?;
        let subject = match (self.test, from, to, self.signature) {
            (Some(test), Some(from), Some(to), _) => EdgeSubject::Test {
                test: count(test)?,
                from,
                to,
            },
            (Some(test), None, None, _) => EdgeSubject::Fix { test: count(test)? },
            (None, _, _, Some(signature)) => EdgeSubject::Error { signature },
            (None, _, _, None) => match self.flaky_tests {
                Some(flaky) => EdgeSubject::Budget { flaky },
                None if event == ChatEvent::RevertCandidate => EdgeSubject::Breakage,
                None => EdgeSubject::Suite,
            },
            (Some(_), None, Some(_), _) | (Some(_), Some(_), None, _) => {
                return Err(corrupt("edge", "a test with one verdict of two"));
            }
        };
        let settled = self.settled.zip(self.settled_at);
        Ok(Edge {
            number: self.number,
            judged_at: self.judged_at.0,
            event,
            release_branch: self.release_branch,
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

pub(super) fn settle(
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
