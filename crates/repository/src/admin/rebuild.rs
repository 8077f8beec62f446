//! Recomputes derived data from results.

use assay_domain::{id::ProjectId, store::StoreError, timestamp::Timestamp, verdict::Judge};
use diesel::prelude::*;
use uuid::Uuid;

use crate::{
    Database,
    admin::project,
    db::{
        column::At,
        pool::{Read, WorkError},
        schema::{run, run_pack},
    },
    read::{branch, daily_counts, joins, observation, pack::Pack, part},
    record::{self, DerivedRun, RunContents, verdict},
};

/// The result of recomputing derived rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RebuildCounts {
    /// Runs looked at.
    pub runs: u64,
    /// Runs whose rows, pack, counts or status differed from the attempts and parts.
    pub runs_changed: u64,
    /// Stored verdicts that changed; time alone may change some.
    pub verdicts_changed: u64,
    /// Branches that were missing or wrong.
    pub branches_changed: u64,
    /// Daily counts that were missing or wrong, one for each day and outcome.
    pub days_changed: u64,
    /// Whether other tests count as one than the renames file says.
    pub joins_changed: bool,
}

impl Database {
    /// Recomputes all data derived from a project's results: the outcomes of tests and parts, then counts, status and
    /// pack of each run. Branches, days and the verdicts as of `now` follow. `progress` is called with the number of
    /// finished runs and of all. None if there is no such project.
    ///
    /// Correct rows are not written. Each run is a separate transaction, so that imports wait for one run at most.
    pub fn rebuild(
        &self,
        project: ProjectId,
        judge: &dyn Judge,
        now: Timestamp,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Option<RebuildCounts>, StoreError> {
        let numbers: Vec<i32> = self.query("reading runs", |connection| {
            run::table
                .filter(run::project_id.eq(project.0))
                .order(run::number)
                .select(run::number)
                .load(connection)
        })?;
        let total = u64::try_from(numbers.len()).unwrap_or(u64::MAX);
        let mut rebuilt = RebuildCounts::default();
        for number in numbers {
            let outcome = self.in_transaction("rebuilding a run", |connection| {
                rebuild_run(connection, project.0, number, self.new_id(now))
            })?;
            rebuilt.runs += u64::from(outcome.is_some());
            rebuilt.runs_changed += u64::from(outcome == Some(true));
            progress(rebuilt.runs, total);
        }
        rebuilt.branches_changed = self.in_transaction("rebuilding branches", |connection| {
            if !lock(connection, project.0)? {
                return Ok(0);
            }
            branch::rebuild(connection, project.0)
        })?;
        rebuilt.days_changed = self.in_transaction("rebuilding days", |connection| {
            if !lock(connection, project.0)? {
                return Ok(0);
            }
            daily_counts::rebuild(connection, project.0)
        })?;
        rebuilt.joins_changed = self.in_transaction("rebuilding joined tests", |connection| {
            let is_wrong = lock(connection, project.0)? && joins::refresh(connection, project.0)?;
            if is_wrong {
                observation::mark_changed(connection, project.0, self.new_id(now))?;
            }
            Ok::<_, WorkError<StoreError>>(is_wrong)
        })?;
        let changed = self.in_transaction("rebuilding verdicts", |connection| {
            if !lock(connection, project.0)? {
                return Ok(None);
            }
            verdict::rebuild(connection, project.0, judge, now).map(Some)
        })?;
        Ok(changed.map(|verdicts_changed| RebuildCounts {
            verdicts_changed,
            ..rebuilt
        }))
    }
}

/// Takes the same lock as imports; false if there is no such project.
fn lock(connection: &mut PgConnection, project: Uuid) -> Read<bool> {
    Ok(project::lock(connection, project)?.is_some())
}

/// Recomputes a run. Returns whether anything changed; none if the run was pruned meanwhile.
fn rebuild_run(
    connection: &mut PgConnection,
    project: Uuid,
    number: i32,
    observed: Uuid,
) -> Read<Option<bool>> {
    if !lock(connection, project)? {
        return Ok(None);
    }
    let stored: Option<(At, bool, DerivedRun)> = run::table
        .find((project, number))
        .select((run::started_at, run::counts_in_verdicts, DerivedRun::as_select()))
        .first(connection)
        .optional()?;
    let Some((started_at, counts_in_verdicts, stored)) = stored else {
        return Ok(None);
    };
    let mut contents = RunContents::load(connection, project, number, started_at)?;
    let mut parts = part::of_run(connection, project, number)?;
    let roles = contents.merge(&parts)?;
    let were_rows_wrong = record::correct(connection, project, number, started_at, &contents)?;
    let wrong_parts = record::set_derived(&mut parts, &contents, &roles)?;
    let corrected: Vec<_> = parts
        .iter()
        .filter(|part| wrong_parts.contains(&part.number))
        .collect();
    record::store_derived(connection, project, number, &corrected)?;
    let expected = counts_in_verdicts.then(|| contents.pack());
    let is_packed = correct_pack(connection, project, number, started_at, expected)?;
    if !is_packed {
        observation::mark_changed(connection, project, observed)?;
    }
    let derived = DerivedRun::of(&parts, contents.counts())?;
    let is_derived = stored == derived;
    if !is_derived {
        diesel::update(run::table.find((project, number)))
            .set(&derived)
            .execute(connection)?;
    }
    Ok(Some(
        were_rows_wrong || !corrected.is_empty() || !is_packed || !is_derived,
    ))
}

/// Stores the pack of a run, or deletes it. Returns whether the stored one was correct.
fn correct_pack(
    connection: &mut PgConnection,
    project: Uuid,
    run: i32,
    started_at: At,
    expected: Option<Pack>,
) -> Read<bool> {
    let stored: Option<(At, Vec<u8>)> = run_pack::table
        .find((project, run))
        .select((run_pack::started_at, run_pack::pack))
        .first(connection)
        .optional()?;
    match (stored, expected) {
        (None, None) => Ok(true),
        (Some((at, bytes)), Some(expected)) if at == started_at && bytes == expected.encode() => Ok(true),
        (_, Some(expected)) => {
            record::store_pack(connection, project, run, started_at, &expected)?;
            Ok(false)
        }
        (Some(_), None) => {
            diesel::delete(run_pack::table.find((project, run))).execute(connection)?;
            Ok(false)
        }
    }
}
