//! The partitions of results and attempts, by the starts of their runs.

use std::{collections::VecDeque, time::Duration};

use assay_domain::{project::Project, store::StoreError, timestamp::Timestamp, window::Window};
use diesel::{
    ExpressionMethods, PgConnection, QueryDsl, QueryResult, RunQueryDsl, define_sql_function, select,
    sql_types::{Text, Timestamptz},
};

use crate::db::{column::At, pool::WorkError, postgres::Postgres, schema::period};

define_sql_function! {
    /// Creates the missing partitions for a run with this start. The migrations define this function.
    fn assay_make_room(at: Timestamptz, now: Timestamptz) -> diesel::sql_types::Bool;
}

define_sql_function! {
    /// Protects the partitions for a run with this start from pruning until the transaction ends; false if there are
    /// none.
    fn assay_hold_room(at: Timestamptz) -> diesel::sql_types::Bool;
}

define_sql_function! {
    /// Counts the rows of each project again, for the planner. The migrations define this function.
    fn assay_count_projects(run_start: Timestamptz) -> diesel::sql_types::Nullable<diesel::sql_types::Text>;
}

/// Bounds of the start of visible runs in a period.
pub(crate) fn visible(project: &Project, window: &Window) -> (At, At) {
    let (from, to) = project.visible_part(window.from, window.to);
    (At(from), At(to))
}

/// Bounds of the start of all visible runs.
pub(crate) const fn retention_bounds(project: &Project) -> (At, At) {
    (At(project.visible_from), At(project.visible_to))
}

/// Prevents pruning from dropping the partition of a run with this start until this transaction ends. False if there is
/// no partition.
pub(crate) fn hold_partition(connection: &mut PgConnection, start: At) -> QueryResult<bool> {
    select(assay_hold_room(start)).get_result(connection)
}

/// Creates the missing partitions for runs with this start, in a transaction of its own.
///
/// In a distributed database no transaction may create tables as their owner and write into them as another role.
pub(crate) fn create_partition(postgres: &Postgres, start: At, now: Timestamp) -> Result<(), StoreError> {
    postgres.on_primary("adding a partition", |connection| {
        let _made: bool = select(assay_make_room(start, At(now))).get_result(connection)?;
        Ok::<_, WorkError<StoreError>>(())
    })
}

/// Counts the rows of each project again, so that Postgres plans the reads of a project that has grown. The tables of
/// results are those of a run with this start.
pub(crate) fn count_projects(postgres: &Postgres, start: At) -> Result<(), StoreError> {
    postgres.on_primary("counting the rows of projects", |connection| {
        select(assay_count_projects(start)).execute(connection)?;
        Ok::<_, WorkError<StoreError>>(())
    })
}

/// Weeks for which [`create_partitions_ahead`] creates partitions, with the present one.
const WEEKS_AHEAD: i64 = 3;

/// Creates the partitions of this week and the next two. A distributed database needs all its machines for that, so
/// imports should find them.
pub(crate) fn create_partitions_ahead(postgres: &Postgres, now: Timestamp) -> Result<(), StoreError> {
    (0..WEEKS_AHEAD).try_for_each(|week| create_partition(postgres, At(now.plus_days(7 * week)), now))
}

/// The first and the last of some starts, as bounds with which any plan can exclude partitions.
pub(crate) fn span(starts: &[At]) -> Option<(At, At)> {
    starts.iter().copied().min().zip(starts.iter().copied().max())
}

define_sql_function! {
    /// Drops the partitions of this name; false if that is not possible now. The migrations define this function.
    fn assay_drop_period(period_name: Text) -> diesel::sql_types::Bool;
}

/// The number of failures in a row after which the remaining periods are left.
const MOST_FAILED_DROPS: u32 = 40;
/// The pause after a failure. Readers and imports continue in it.
const DROP_PAUSE: Duration = Duration::from_millis(250);

/// The names of the periods that end at or before `by`, oldest first, and the end of the last one.
pub(crate) fn ended_periods(connection: &mut PgConnection, by: At) -> QueryResult<(Vec<String>, Option<At>)> {
    let rows: Vec<(String, At)> = period::table
        .filter(period::ends_at.le(by))
        .order(period::ends_at)
        .select((period::name, period::ends_at))
        .load(connection)?;
    let last = rows.last().map(|(_, ends_at)| *ends_at);
    Ok((rows.into_iter().map(|(name, _)| name).collect(), last))
}

/// Drops these periods with all rows in them, and reports their number after each. Periods in which a run still
/// starts, and periods in constant use, are left. A transaction that blocks one period often blocks all, so the
/// periods wait together: a blocked one is tried again after the others.
pub(crate) fn drop_all(
    postgres: &Postgres,
    periods: Vec<String>,
    mut progress: impl FnMut(usize),
) -> Result<usize, StoreError> {
    let (mut remaining, mut dropped, mut failures) = (VecDeque::from(periods), 0, 0);
    while failures < MOST_FAILED_DROPS
        && let Some(name) = remaining.pop_front()
    {
        if drop_now(postgres, &name)? {
            (dropped, failures) = (dropped + 1, 0);
            progress(dropped);
        } else {
            failures += 1;
            remaining.push_back(name);
            std::thread::sleep(DROP_PAUSE);
        }
    }
    Ok(dropped)
}

/// Drops a period; false where a run still starts in it or it is in use.
fn drop_now(postgres: &Postgres, name: &str) -> Result<bool, StoreError> {
    // A separate transaction, whose end releases the function's locks.
    postgres.on_primary("dropping a period", |connection| {
        Ok::<_, WorkError<StoreError>>(select(assay_drop_period(name)).get_result(connection)?)
    })
}
