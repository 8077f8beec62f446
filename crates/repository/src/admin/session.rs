//! Sessions of the pages that ended before their time.

use assay_domain::{
    id::{KeyId, SessionId},
    timestamp::Timestamp,
};
use diesel::{dsl::exists, prelude::*, select};

use crate::db::{column::At, schema::ended_session};

/// Stores that a session ended, and deletes the sessions that nobody can use any more.
pub(crate) fn end(
    connection: &mut PgConnection,
    session: SessionId,
    key: Option<KeyId>,
    expires_at: Timestamp,
    now: Timestamp,
) -> QueryResult<()> {
    diesel::delete(ended_session::table.filter(ended_session::expires_at.lt(At(now)))).execute(connection)?;
    diesel::insert_into(ended_session::table)
        .values((
            ended_session::id.eq(session.0),
            ended_session::key_id.eq(key.map(|key| key.0)),
            ended_session::expires_at.eq(At(expires_at)),
        ))
        .on_conflict_do_nothing()
        .execute(connection)?;
    Ok(())
}

/// Whether a session was ended.
pub(crate) fn is_ended(connection: &mut PgConnection, session: SessionId) -> QueryResult<bool> {
    select(exists(ended_session::table.find(session.0))).get_result(connection)
}
