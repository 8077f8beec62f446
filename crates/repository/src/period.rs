//! The partitions of results and attempts, by the starts of their runs.

use std::time::Duration;

use assay_domain::{store::StoreError, timestamp::Timestamp};
use diesel::{
    ExpressionMethods, PgConnection, QueryDsl, QueryResult, RunQueryDsl, define_sql_function, select,
    sql_types::{Text, Timestamptz},
};

use crate::{Database, column::At, pool::WorkError, schema::period};

define_sql_function! {
    /// Makes the partitions that a run with this start lies in, unless they are there, and keeps them until the
    /// transaction ends; the migrations say more.
    fn assay_make_room(at: Timestamptz, now: Timestamptz) -> diesel::sql_types::Bool;
}

/// Makes sure that rows of a run with this start can be written, and that pruning does not take their place away
/// before this transaction ends.
pub(crate) fn make_room(connection: &mut PgConnection, start: At, now: Timestamp) -> QueryResult<bool> {
    select(assay_make_room(start, At(now))).get_result(connection)
}

/// The first and the last of some starts: bounds by which any plan can tell which partitions they lie in.
pub(crate) fn span(starts: &[At]) -> Option<(At, At)> {
    starts.iter().copied().min().zip(starts.iter().copied().max())
}

define_sql_function! {
    /// Drops the partitions of this name; false where that is not possible now. The migrations say more.
    fn assay_drop_period(period_name: Text) -> diesel::sql_types::Bool;
}

/// How often a period is tried to be dropped, and how long readers and imports go on in between.
const ATTEMPTS: u32 = 40;
const PAUSE: Duration = Duration::from_millis(250);

/// The names of the periods that end at a time or before, oldest first, and when the last of them ends.
pub(crate) fn over(connection: &mut PgConnection, by: At) -> QueryResult<(Vec<String>, Option<At>)> {
    let rows: Vec<(String, At)> = period::table
        .filter(period::ends_at.le(by))
        .order(period::ends_at)
        .select((period::name, period::ends_at))
        .load(connection)?;
    let last = rows.last().map(|(_, ends_at)| *ends_at);
    Ok((rows.into_iter().map(|(name, _)| name).collect(), last))
}

/// Drops a period with all rows in it; false where a run still starts in it or it was in use all the time.
pub(crate) fn drop(database: &Database, name: &str) -> Result<bool, StoreError> {
    for _ in 0..ATTEMPTS {
        // A transaction of its own, because the function gives up what it holds at its end.
        let dropped = database.run("dropping a period", |connection| {
            Ok::<_, WorkError<StoreError>>(select(assay_drop_period(name)).get_result::<bool>(connection)?)
        })?;
        if dropped {
            return Ok(true);
        }
        std::thread::sleep(PAUSE);
    }
    Ok(false)
}
