//! Deletes results past their organization's retention.

use std::collections::BTreeSet;

use assay_domain::{
    id::ProjectId,
    plan::Plan,
    store::{PruneReport, PruneStep, PrunedCounts, StoreError},
    timestamp::Timestamp,
};
use diesel::{dsl::sum, pg::Pg, prelude::*};
use uuid::Uuid;

use crate::{
    Database,
    admin::{deletion, ingest, outbox},
    db::{
        column::{At, long_count, word},
        partition,
        pool::{Read, WorkError, converted},
        schema::{
            attempt, attempt_texts, organization, part, project_entry, result_block, run, run_pack, test,
            verdict_block,
        },
    },
    read::{
        branch, daily_counts, joins, observation,
        result_block::newest_starts,
        verdict_block::{block_of_test, newest_run},
    },
    record::verdict,
};

/// How many runs, and about how many results, are deleted in one transaction, which delays the project's imports.
const BATCH_RUNS: i64 = 50;
const BATCH_RESULTS: i64 = 50_000;
/// The same where dropping the partition deletes the results.
const BATCH_BARE_RUNS: i64 = 500;

/// Deletes results past each organization's retention, or only counts them. Projects without any are left out.
///
/// Runs are deleted first, so that no stored run lacks results. Results that no plan shows any longer are dropped
/// with their whole partition. Other results are deleted with their run.
pub(crate) fn prune(
    database: &Database,
    now: Timestamp,
    dry_run: bool,
    progress: &mut dyn FnMut(PruneStep<'_>),
) -> Result<PruneReport, StoreError> {
    let longest = Plan::ALL.iter().map(|plan| plan.retention_days()).max();
    let horizon = At(now.plus_days(-longest.unwrap_or(0)));
    let (partitions, bare_before) = database.query("reading partitions", |connection| {
        partition::ended_partitions(connection, horizon)
    })?;
    let mut report = PruneReport {
        deletions_finished: finish_deletions(database, now, dry_run)?,
        uploads: ingest::prune(database, now, dry_run)?,
        ..PruneReport::default()
    };
    if !dry_run {
        outbox::prune(database, now)?;
    }
    let projects_due = database.on_primary("reading projects", |connection| {
        projects(connection, now, bare_before)
    })?;
    for expiring in &projects_due {
        let (due_counts, stored) = database.in_snapshot("counting what is to be pruned", |connection| {
            count(connection, expiring)
        })?;
        report.runs_stored += stored;
        let counts = if dry_run {
            due_counts
        } else {
            expiring.delete(database, now, due_counts.runs, progress)?
        };
        if counts.runs > 0 {
            report.projects.push(PrunedCounts {
                project_id: ProjectId(expiring.project),
                project: expiring.name.clone(),
                runs: counts.runs,
                results: counts.results,
            });
        }
    }
    report.partitions = amount(partitions.len());
    if !dry_run {
        let partitions_due = report.partitions;
        let dropped = partition::drop_all(database, partitions, |dropped| {
            progress(PruneStep::Partitions {
                done: amount(dropped),
                of: partitions_due,
            });
        })?;
        report.partitions = amount(dropped);
        report.partitions_left = partitions_due - report.partitions;
        partition::create_partitions_ahead(database, now)?;
        for expiring in &projects_due {
            database.in_transaction("pruning tests", |connection| {
                delete_orphans(connection, expiring, database.new_id(now))
            })?;
        }
    }
    Ok(report)
}

/// Finishes deletions that were killed, or only counts them.
fn finish_deletions(database: &Database, now: Timestamp, dry_run: bool) -> Result<u64, StoreError> {
    let unfinished = database.on_primary("reading unfinished deletions", deletion::unfinished)?;
    if !dry_run {
        for project in &unfinished.projects {
            deletion::delete_project(database, project.id, now, &mut |_| ())?;
        }
        for organization in &unfinished.organizations {
            deletion::delete_organization(database, organization.id, now, &mut |_| ())?;
        }
    }
    Ok(amount(unfinished.projects.len() + unfinished.organizations.len()))
}

/// A project, and the time before which its runs are past their retention.
struct ExpiringProject {
    project: Uuid,
    name: String,
    before: At,
    /// The time before which results are deleted with their whole partition.
    bare_before: Option<At>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    runs: u64,
    results: u64,
}

fn projects(
    connection: &mut PgConnection,
    now: Timestamp,
    bare_before: Option<At>,
) -> Read<Vec<ExpiringProject>> {
    let rows: Vec<(Uuid, String, String)> = project_entry::table
        .inner_join(organization::table.on(organization::id.eq(project_entry::organization_id)))
        .filter(project_entry::deleted_at.is_null())
        .order((project_entry::created_at, project_entry::id))
        .select((project_entry::id, project_entry::name, organization::plan))
        .load(connection)?;
    let expiring = |(project, name, plan): (Uuid, String, String)| {
        let plan: Plan = word("plan", &plan)?;
        Ok(ExpiringProject {
            project,
            name,
            before: At(now.plus_days(-plan.retention_days())),
            bare_before,
        })
    };
    converted(rows, expiring)
}

/// The counts of a project's runs and results that are due, and the number of its runs.
fn count(connection: &mut PgConnection, expiring: &ExpiringProject) -> Read<(Counts, u64)> {
    let (runs, results): (i64, Option<i64>) = run::table
        .filter(run::project_id.eq(expiring.project))
        .filter(run::started_at.lt(expiring.before))
        .select((diesel::dsl::count_star(), sum(run::total)))
        .first(connection)?;
    let stored: i64 = run::table
        .filter(run::project_id.eq(expiring.project))
        .count()
        .get_result(connection)?;
    let counts = Counts {
        runs: long_count(runs)?,
        results: long_count(results.unwrap_or(0))?,
    };
    Ok((counts, long_count(stored)?))
}

impl ExpiringProject {
    fn delete(
        &self,
        database: &Database,
        now: Timestamp,
        of: u64,
        progress: &mut dyn FnMut(PruneStep<'_>),
    ) -> Result<Counts, StoreError> {
        let mut deleted = Counts::default();
        loop {
            let batch = database.in_transaction("pruning runs", |connection| {
                let batch = delete_batch(connection, self, now)?;
                if batch.runs > 0 {
                    observation::mark_changed_but_judged(connection, self.project, database.new_id(now))?;
                }
                Ok::<_, WorkError<StoreError>>(batch)
            })?;
            if batch == Counts::default() {
                break;
            }
            deleted.runs += batch.runs;
            deleted.results += batch.results;
            progress(PruneStep::Runs {
                project: &self.name,
                done: deleted.runs,
                of: of.max(deleted.runs),
            });
        }
        Ok(deleted)
    }
}

/// Waits for the imports into the project that are under way, and blocks later ones. Returns the project's retention,
/// because its plan may have changed since pruning began.
fn lock(connection: &mut PgConnection, project: Uuid) -> Read<Option<i64>> {
    let Some(organization) = crate::admin::project::lock(connection, project)? else {
        return Ok(None);
    };
    let plan: String = organization::table
        .find(organization)
        .select(organization::plan)
        .for_share()
        .first(connection)?;
    Ok(Some(word::<Plan>("plan", &plan)?.retention_days()))
}

/// Deletes a batch of the oldest runs that are due. Their results are deleted with them, or with their whole partition
/// (see [`ExpiringProject::bare_before`]).
fn delete_batch(connection: &mut PgConnection, expiring: &ExpiringProject, now: Timestamp) -> Read<Counts> {
    let Some(days) = lock(connection, expiring.project)? else {
        return Ok(Counts::default());
    };
    let before = expiring.before.min(At(now.plus_days(-days)));
    let oldest_due = |runs: run::BoxedQuery<'static, Pg>, limit: i64| {
        runs.filter(run::project_id.eq(expiring.project))
            .filter(run::started_at.lt(before))
            .order((run::started_at, run::number))
            .limit(limit)
            .select((run::number, run::started_at, run::total))
    };
    if let Some(bare_before) = expiring.bare_before {
        let bare = run::table.into_boxed().filter(run::started_at.lt(bare_before));
        let runs: Vec<(i32, At, i32)> = oldest_due(bare, BATCH_BARE_RUNS).load(connection)?;
        if !runs.is_empty() {
            return delete_runs(connection, expiring.project, &runs);
        }
    }
    let oldest: Vec<(i32, At, i32)> = oldest_due(run::table.into_boxed(), BATCH_RUNS).load(connection)?;
    let mut results = 0;
    let batch: Vec<(i32, At, i32)> = oldest
        .into_iter()
        .take_while(|(.., total)| {
            let take_more = results < BATCH_RESULTS;
            results += i64::from(*total);
            take_more
        })
        .collect();
    // The batch is in the order of the starts.
    let (Some((_, from, _)), Some((_, to, _))) = (batch.first().copied(), batch.last().copied()) else {
        return Ok(Counts::default());
    };
    let numbers: Vec<i32> = batch.iter().map(|(number, ..)| *number).collect();
    diesel::delete(result_block::table)
        .filter(result_block::project_id.eq(expiring.project))
        .filter(result_block::run_number.eq_any(&numbers))
        .filter(result_block::started_at.between(from, to))
        .execute(connection)?;
    diesel::delete(attempt_texts::table)
        .filter(attempt_texts::project_id.eq(expiring.project))
        .filter(attempt_texts::run_number.eq_any(&numbers))
        .filter(attempt_texts::started_at.between(from, to))
        .execute(connection)?;
    diesel::delete(attempt::table)
        .filter(attempt::project_id.eq(expiring.project))
        .filter(attempt::run_number.eq_any(&numbers))
        .filter(attempt::started_at.between(from, to))
        .execute(connection)?;
    delete_runs(connection, expiring.project, &batch)
}

/// Deletes runs with all their rows except results. Each run has its number, start and number of results.
fn delete_runs(connection: &mut PgConnection, project: Uuid, runs: &[(i32, At, i32)]) -> Read<Counts> {
    let numbers: &Vec<i32> = &runs.iter().map(|(number, ..)| *number).collect();
    let results = runs.iter().map(|(.., total)| i64::from(*total)).sum();
    diesel::delete(run_pack::table)
        .filter(run_pack::project_id.eq(project))
        .filter(run_pack::run_number.eq_any(numbers))
        .execute(connection)?;
    diesel::delete(part::table)
        .filter(part::project_id.eq(project))
        .filter(part::run_number.eq_any(numbers))
        .execute(connection)?;
    let runs: Vec<(Option<String>, At)> = diesel::delete(run::table)
        .filter(run::project_id.eq(project))
        .filter(run::number.eq_any(numbers))
        .returning((run::branch, run::started_at))
        .get_results(connection)?;
    let deleted = amount(runs.len());
    let days: BTreeSet<At> = runs
        .iter()
        .map(|(_, start)| daily_counts::day_of(*start))
        .collect();
    let branches: BTreeSet<String> = runs.into_iter().filter_map(|(branch, _)| branch).collect();
    branch::refresh(connection, project, &Vec::from_iter(branches))?;
    daily_counts::refresh(connection, project, &Vec::from_iter(days))?;
    Ok(Counts {
        runs: deleted,
        results: long_count(results)?,
    })
}

fn amount(rows: usize) -> u64 {
    u64::try_from(rows).unwrap_or(u64::MAX)
}

/// Deletes the tests without results, their verdicts, and the signatures without occurrences. A test or signature
/// that returns gets a new number, so that a number in an existing pack never means another test.
fn delete_orphans(connection: &mut PgConnection, expiring: &ExpiringProject, observed: Uuid) -> Read<()> {
    let project = expiring.project;
    if lock(connection, project)?.is_none() {
        return Ok(());
    }
    // By their verdicts, these tests may have no result left. Only their results are searched.
    let candidates: Vec<i32> = test::table
        .left_join(
            verdict_block::table.on(verdict_block::project_id
                .eq(project)
                .and(verdict_block::block.eq(block_of_test()))),
        )
        .filter(test::project_id.eq(project))
        .filter(newest_run().is_null().or(newest_run().lt(expiring.before)))
        .select(test::ordinal)
        .load(connection)?;
    let with_results = newest_starts(connection, project, &candidates, None)?;
    let orphans: BTreeSet<i32> = candidates
        .into_iter()
        .filter(|test| !with_results.contains_key(test))
        .collect();
    if !orphans.is_empty() {
        diesel::delete(test::table)
            .filter(test::project_id.eq(project))
            .filter(test::ordinal.eq_any(&orphans))
            .execute(connection)?;
        verdict::delete(connection, project, &orphans)?;
        if joins::refresh(connection, project)? {
            observation::mark_changed(connection, project, observed)?;
        }
        // An import that has judged and not yet stored its verdicts must not store one of these again.
        observation::mark_changed_but_judged(connection, project, observed)?;
    }
    crate::read::signature::delete_orphans(connection, project)?;
    Ok(())
}
