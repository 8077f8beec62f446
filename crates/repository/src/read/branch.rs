//! The branches of a project, each with the start of its newest run. The time of listing them depends on their number
//! and not on that of the runs.

use assay_domain::{branch::Branches, folding::fold, project::Project};
use diesel::{
    pg::PgRowByRowLoadingMode,
    prelude::*,
    sql_types::{Array, Text, Uuid as SqlUuid},
};
use uuid::Uuid;

use crate::db::{
    period::retention_bounds,
    pool::Read,
    schema::{branch, run},
    sql_statement::ChangedRow,
};

/// Most branches of an answer, and most bytes of their names.
const MOST_BRANCHES: usize = 10_000;
const MOST_NAME_BYTES: usize = 2 << 20;

/// Every branch with a visible run, in case-insensitive alphabetical order; branches that differ only in case by code
/// point. If there are too many, those with the newest runs.
pub(crate) fn list(connection: &mut PgConnection, of: &Project) -> Read<Branches> {
    let (from, to) = retention_bounds(of);
    // Searched only if the newest run of the branch has not started yet.
    let started = run::table
        .filter(run::project_id.eq(of.id.0))
        .filter(run::branch.eq(branch::name.nullable()))
        .filter(run::started_at.between(from, to))
        // In the order of the index, which Postgres may not take otherwise.
        .order((run::started_at.desc(), run::number.desc()))
        .select(run::number)
        .limit(1)
        .single_value();
    let rows = branch::table
        .filter(branch::project_id.eq(of.id.0))
        .filter(branch::newest.ge(from))
        .filter(branch::newest.le(to).or(started.is_not_null()))
        .order((branch::newest.desc(), branch::name))
        .limit(i64::try_from(MOST_BRANCHES).unwrap_or(i64::MAX).saturating_add(1))
        .select(branch::name)
        .load_iter::<String, PgRowByRowLoadingMode>(connection)?;
    let (mut branches, mut bytes_left) = (Branches::default(), MOST_NAME_BYTES);
    for name in rows {
        let name = name?;
        let bytes_after = bytes_left.checked_sub(name.len());
        branches.truncated |= bytes_after.is_none() || branches.names.len() == MOST_BRANCHES;
        if !branches.truncated {
            bytes_left = bytes_after.unwrap_or(0);
            branches.names.push(name);
        }
    }
    branches
        .names
        .sort_by_cached_key(|name| (fold(name), name.clone()));
    Ok(branches)
}

/// Recomputes the rows of these branches from the runs, and returns how many changed. Requires the project's lock. To
/// be called whenever runs of a branch are added, moved in time or deleted.
pub(crate) fn refresh(connection: &mut PgConnection, project: Uuid, names: &[String]) -> QueryResult<usize> {
    if names.is_empty() {
        return Ok(0);
    }
    // Finds one run of each by an index; `not exists` might read all runs instead.
    let any_run = run::table
        .filter(run::project_id.eq(project))
        .filter(run::branch.eq(branch::name.nullable()))
        .select(run::number)
        .limit(1)
        .single_value();
    let deleted = diesel::delete(branch::table)
        .filter(branch::project_id.eq(project))
        .filter(branch::name.eq_any(names))
        .filter(any_run.is_null())
        .execute(connection)?;
    // Raw SQL, because diesel has no insert from arrays.
    let changed = diesel::sql_query(
        "INSERT INTO branch AS stored (project_id, name, newest) \
         SELECT $1, named.name, last.started_at FROM unnest($2) AS named (name), LATERAL (\
             SELECT run.started_at FROM run WHERE run.project_id = $1 AND run.branch = named.name \
             ORDER BY run.started_at DESC LIMIT 1) AS last \
         ON CONFLICT (project_id, name) DO UPDATE SET newest = excluded.newest \
         WHERE stored.newest <> excluded.newest RETURNING true",
    )
    .bind::<SqlUuid, _>(project)
    .bind::<Array<Text>, _>(names)
    .load::<ChangedRow>(connection)?;
    Ok(deleted + changed.len())
}

/// Recomputes the rows of all branches, and returns how many changed.
pub(crate) fn rebuild(connection: &mut PgConnection, project: Uuid) -> Read<u64> {
    let of_runs = run::table
        .filter(run::project_id.eq(project))
        .filter(run::branch.is_not_null())
        .select(run::branch.assume_not_null())
        .distinct();
    let mut names: Vec<String> = of_runs.load(connection)?;
    let branches: Vec<String> = branch::table
        .filter(branch::project_id.eq(project))
        .select(branch::name)
        .load(connection)?;
    names.extend(branches);
    names.sort_unstable();
    names.dedup();
    let changed = refresh(connection, project, &names)?;
    Ok(u64::try_from(changed).unwrap_or(u64::MAX))
}
