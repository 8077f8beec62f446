//! The partitions of results and attempts, by the starts of their runs.

use std::{collections::VecDeque, time::Duration};

use assay_domain::{store::StoreError, timestamp::Timestamp};
use diesel::{
    prelude::*,
    select,
    sql_types::{Text, Timestamptz},
};

use crate::db::{column::At, postgres::Postgres, schema::partition};

define_sql_function! {
    /// Creates the missing partitions for a run with this start. The migrations define this function.
    fn assay_create_partition(at: Timestamptz, now: Timestamptz) -> diesel::sql_types::Bool;
}

define_sql_function! {
    /// Protects the partitions for a run with this start from pruning until the transaction ends; false if there are
    /// none.
    fn assay_hold_partition(at: Timestamptz) -> diesel::sql_types::Bool;
}

define_sql_function! {
    /// Counts the rows of each project again, for the planner. The migrations define this function.
    fn assay_count_projects(run_start: Timestamptz) -> diesel::sql_types::Nullable<diesel::sql_types::Text>;
}

/// Prevents pruning from dropping the partition of a run with this start until this transaction ends. False if there is
/// no partition.
pub(crate) fn hold_partition(connection: &mut PgConnection, start: At) -> QueryResult<bool> {
    select(assay_hold_partition(start)).get_result(connection)
}

/// Creates the missing partitions for runs with this start, in a transaction of its own.
///
/// In a distributed database no transaction may create tables as their owner and write into them as another role.
pub(crate) fn create_partition(postgres: &Postgres, start: At, now: Timestamp) -> Result<(), StoreError> {
    postgres.query("adding a partition", |connection| {
        select(assay_create_partition(start, At(now)))
            .execute(connection)
            .map(drop)
    })
}

/// Counts the rows of each project again, so that Postgres plans the reads of a project that has grown. The tables of
/// results are those of a run with this start.
pub(crate) fn count_projects(postgres: &Postgres, start: At) -> Result<(), StoreError> {
    postgres.query("counting the rows of projects", |connection| {
        select(assay_count_projects(start)).execute(connection).map(drop)
    })
}

/// Weeks for which [`create_partitions_ahead`] creates partitions, with the present one.
const WEEKS_AHEAD: i64 = 3;

/// Creates the partitions of this week and the next two. A distributed database needs all its machines for that, so
/// imports should find them.
pub(crate) fn create_partitions_ahead(postgres: &Postgres, now: Timestamp) -> Result<(), StoreError> {
    (0..WEEKS_AHEAD).try_for_each(|week| create_partition(postgres, At(now.plus_days(7 * week)), now))
}

define_sql_function! {
    /// Drops the partitions of this name; false if that is not possible now. The migrations define this function.
    fn assay_drop_partition(partition_name: Text) -> diesel::sql_types::Bool;
}

/// The number of failures in a row after which the remaining partitions are left.
const MOST_FAILED_DROPS: u32 = 40;
/// The pause after a failure. Readers and imports continue in it.
const DROP_PAUSE: Duration = Duration::from_millis(250);

/// The names of the partitions that end at or before `by`, oldest first, and the end of the last one.
pub(crate) fn ended_partitions(
    connection: &mut PgConnection,
    by: At,
) -> QueryResult<(Vec<String>, Option<At>)> {
    let rows: Vec<(String, At)> = partition::table
        .filter(partition::ends_at.le(by))
        .order(partition::ends_at)
        .select((partition::name, partition::ends_at))
        .load(connection)?;
    let last = rows.last().map(|(_, ends_at)| *ends_at);
    Ok((rows.into_iter().map(|(name, _)| name).collect(), last))
}

/// Drops these partitions with all rows in them, and reports their number after each. Partitions in which a run still
/// starts, and partitions in constant use, are left. A transaction that blocks one partition often blocks all, so the
/// partitions wait together: a blocked one is tried again after the others.
pub(crate) fn drop_all(
    postgres: &Postgres,
    partitions: Vec<String>,
    mut progress: impl FnMut(usize),
) -> Result<usize, StoreError> {
    let (mut remaining, mut dropped, mut failures) = (VecDeque::from(partitions), 0, 0);
    while failures < MOST_FAILED_DROPS
        && let Some(name) = remaining.pop_front()
    {
        if drop_partition(postgres, &name)? {
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

/// Drops a partition; false where a run still starts in it or it is in use.
fn drop_partition(postgres: &Postgres, name: &str) -> Result<bool, StoreError> {
    // A separate transaction, whose end releases the function's locks.
    postgres.query("dropping a partition", |connection| {
        select(assay_drop_partition(name)).get_result(connection)
    })
}
