//! Deleting what is past its organization's retention.

use assay_domain::{
    id::ProjectId,
    plan::Plan,
    store::{Pruned, StoreError},
    timestamp::Timestamp,
};
use diesel::{
    ExpressionMethods, JoinOnDsl, PgConnection, QueryDsl, RunQueryDsl,
    dsl::{exists, not, sum},
};
use uuid::Uuid;

use crate::{
    Database,
    column::{At, long_count, word},
    pool::Read,
    schema::{attempt, organization, project, result, run, run_pack, shard, test, verdict},
};

/// How many runs, and about how many results, are deleted in one transaction, which holds up the project's imports.
const BATCH_RUNS: i64 = 50;
const BATCH_RESULTS: i64 = 50_000;

/// Deletes what is past each organization's retention, or only counts it. Projects without any are left out.
pub(crate) fn prune(database: &Database, now: Timestamp, dry_run: bool) -> Result<Vec<Pruned>, StoreError> {
    let mut pruned = Vec::new();
    for due in database.run("reading projects", |connection| projects(connection, now))? {
        let counts = if dry_run {
            database.read("counting what is to be pruned", |connection| {
                count(connection, &due)
            })?
        } else {
            due.delete(database)?
        };
        if counts.runs > 0 {
            pruned.push(Pruned {
                project_id: ProjectId(due.project),
                project: due.name,
                runs: counts.runs,
                results: counts.results,
            });
        }
    }
    Ok(pruned)
}

/// A project, and the time before which its runs are past their retention.
struct Due {
    project: Uuid,
    name: String,
    before: At,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    runs: u64,
    results: u64,
}

fn projects(connection: &mut PgConnection, now: Timestamp) -> Read<Vec<Due>> {
    let rows: Vec<(Uuid, String, String)> = project::table
        .inner_join(organization::table.on(organization::id.eq(project::organization_id)))
        .order((project::created_at, project::id))
        .select((project::id, project::name, organization::plan))
        .load(connection)?;
    let due = |(project, name, plan): (Uuid, String, String)| {
        let plan: Plan = word("plan", &plan)?;
        Ok(Due {
            project,
            name,
            before: At(now.plus_days(-plan.retention_days())),
        })
    };
    Ok(rows.into_iter().map(due).collect::<Result<_, StoreError>>()?)
}

fn count(connection: &mut PgConnection, due: &Due) -> Read<Counts> {
    let (runs, results): (i64, Option<i64>) = run::table
        .filter(run::project_id.eq(due.project))
        .filter(run::started_at.lt(due.before))
        .select((diesel::dsl::count_star(), sum(run::total)))
        .first(connection)?;
    Ok(Counts {
        runs: long_count(runs)?,
        results: long_count(results.unwrap_or(0))?,
    })
}

impl Due {
    fn delete(&self, database: &Database) -> Result<Counts, StoreError> {
        let mut all = Counts::default();
        loop {
            let batch = database.write("pruning runs", |connection| delete_batch(connection, self))?;
            if batch == Counts::default() {
                break;
            }
            all.runs += batch.runs;
            all.results += batch.results;
        }
        if all.runs > 0 {
            database.write("pruning tests", |connection| {
                delete_orphans(connection, self.project)
            })?;
        }
        Ok(all)
    }
}

/// Waits for the imports into the project that are under way, and holds up those that come.
fn lock(connection: &mut PgConnection, project: Uuid) -> Read<()> {
    project::table
        .find(project)
        .select(project::id)
        .for_no_key_update()
        .first::<Uuid>(connection)
        .map(drop)
        .map_err(Into::into)
}

/// Deletes the oldest runs that are due with everything in them.
fn delete_batch(connection: &mut PgConnection, due: &Due) -> Read<Counts> {
    lock(connection, due.project)?;
    let oldest: Vec<(i32, i32)> = run::table
        .filter(run::project_id.eq(due.project))
        .filter(run::started_at.lt(due.before))
        .order((run::started_at, run::number))
        .limit(BATCH_RUNS)
        .select((run::number, run::total))
        .load(connection)?;
    let mut results = 0;
    let numbers: Vec<i32> = oldest
        .into_iter()
        .take_while(|(_, total)| {
            let more = results < BATCH_RESULTS;
            results += i64::from(*total);
            more
        })
        .map(|(number, _)| number)
        .collect();
    if numbers.is_empty() {
        return Ok(Counts::default());
    }
    let results = diesel::delete(result::table)
        .filter(result::project_id.eq(due.project))
        .filter(result::run_number.eq_any(&numbers))
        .execute(connection)?;
    diesel::delete(attempt::table)
        .filter(attempt::project_id.eq(due.project))
        .filter(attempt::run_number.eq_any(&numbers))
        .execute(connection)?;
    diesel::delete(run_pack::table)
        .filter(run_pack::project_id.eq(due.project))
        .filter(run_pack::run_number.eq_any(&numbers))
        .execute(connection)?;
    diesel::delete(shard::table)
        .filter(shard::project_id.eq(due.project))
        .filter(shard::run_number.eq_any(&numbers))
        .execute(connection)?;
    let runs = diesel::delete(run::table)
        .filter(run::project_id.eq(due.project))
        .filter(run::number.eq_any(&numbers))
        .execute(connection)?;
    let count = |deleted: usize| u64::try_from(deleted).unwrap_or(u64::MAX);
    Ok(Counts {
        runs: count(runs),
        results: count(results),
    })
}

/// Deletes the tests without results, their verdicts, and the signatures without occurrences. A test or signature that comes
/// back gets a new number: packs of runs that are still there must not come to speak of another test.
fn delete_orphans(connection: &mut PgConnection, project: Uuid) -> Read<()> {
    lock(connection, project)?;
    let results = result::table
        .filter(result::project_id.eq(project))
        .filter(result::test.eq(test::ordinal));
    let gone: Vec<i32> = diesel::delete(test::table)
        .filter(test::project_id.eq(project))
        .filter(not(exists(results)))
        .returning(test::ordinal)
        .get_results(connection)?;
    diesel::delete(verdict::table)
        .filter(verdict::project_id.eq(project))
        .filter(verdict::test.eq_any(gone))
        .execute(connection)?;
    crate::signature::delete_orphans(connection, project)?;
    Ok(())
}
