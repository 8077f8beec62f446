//! Deletes edges and messages that are too old.

use assay_domain::{
    edge::{DROPPED_AFTER_DAYS, KEPT_DAYS, PROBLEM_KEPT_DAYS},
    id::ProjectId,
    settings::ChatEvent,
    store::{Dropped, Outbox as _, StoreError},
    timestamp::Timestamp,
};
use diesel::{
    dsl::{exists, max, not},
    prelude::*,
};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    Database,
    db::{
        column::At,
        schema::{edge, message, project_entry},
    },
};

/// Deletes the edges and messages of a project that are too old. The caller is in a transaction.
pub(super) fn forget(connection: &mut PgConnection, project: Uuid, now: Timestamp) -> QueryResult<Dropped> {
    let kept_from = At(now.plus_days(-KEPT_DAYS));
    let dropped_before = At(now.plus_days(-DROPPED_AFTER_DAYS));
    let of_project = || edge::table.filter(edge::project_id.eq(project));
    delete_settled(connection, project, now)?;
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
    let targets: Vec<String> = message::table
        .filter(message::project_id.eq(project))
        .filter(message::created_at.lt(kept_from))
        .select(message::target)
        .distinct()
        .load(connection)?;
    for target in targets {
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

/// Deletes the settled edges that are too old. The last edge of a test's verdict stays longer if the test has a problem by
/// it.
fn delete_settled(connection: &mut PgConnection, project: Uuid, now: Timestamp) -> QueryResult<usize> {
    let later = diesel::alias!(edge as later);
    let is_followed = later
        .filter(later.field(edge::project_id).eq(project))
        .filter(later.field(edge::test).eq(edge::test))
        .filter(
            later
                .field(edge::event)
                .ne_all(ChatEvent::OF_FIXES.map(ChatEvent::as_str)),
        )
        .filter(later.field(edge::number).gt(edge::number))
        .filter(later.field(edge::settled).is_not_null())
        .filter(not(later.field(edge::is_cancelled)));
    let problems = [ChatEvent::TestBroken, ChatEvent::TestFlaky].map(ChatEvent::as_str);
    let goes_on = edge::event
        .eq_any(problems)
        .and(not(edge::is_cancelled))
        .and(edge::settled_at.ge(At(now.plus_days(-PROBLEM_KEPT_DAYS))))
        .and(not(exists(is_followed)));
    let old = edge::table
        .filter(edge::project_id.eq(project))
        .filter(edge::settled_at.lt(At(now.plus_days(-KEPT_DAYS))));
    diesel::delete(old.filter(not(goes_on.assume_not_null()))).execute(connection)
}

/// The same for every project, where no `assay-notify` runs. What is dropped gets a line in the log.
pub(crate) fn prune(database: &Database, now: Timestamp) -> Result<(), StoreError> {
    let projects: Vec<Uuid> = database.query("reading projects", |connection| {
        project_entry::table.select(project_entry::id).load(connection)
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
