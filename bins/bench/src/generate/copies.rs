//! Multiplies runs by copying the rows of imported ones, which is faster than importing.

use assay_domain::id::ProjectId;
use diesel::{Connection as _, PgConnection, connection::SimpleConnection as _};

use super::{ProjectPlan, days_ms};
use crate::{
    cluster::Running,
    number::{float, whole},
    progress::step,
    shape::Shape,
};

/// How a project's runs are copied.
pub(crate) struct Copies<'a> {
    running: &'a Running,
    /// How often each run is to be stored in all, at least once.
    pub(crate) each: u32,
    /// How many milliseconds a copy starts before the previous one. Together they fill the time between two runs.
    step_ms: u64,
}

impl<'a> Copies<'a> {
    pub(crate) fn new(running: &'a Running, plan: &ProjectPlan, shape: &Shape) -> Self {
        let copies = float(plan.runs.len()) * f64::from(shape.copies);
        Self {
            running,
            each: shape.copies,
            step_ms: whole(float(days_ms(plan.days)) / copies.max(1.0)).max(1),
        }
    }

    /// Copies the runs that a project has; the next run is to be numbered `next`.
    pub(crate) fn store(&self, project: ProjectId, next: u64) -> anyhow::Result<()> {
        if self.each < 2 {
            return Ok(());
        }
        step(&format!("{} copies of each run", self.each - 1));
        let runs = next.saturating_sub(1);
        self.running
            .connection()?
            .transaction(|connection: &mut PgConnection| {
                for sql in STATEMENTS {
                    let sql = sql
                        .replace("{project}", &project.to_string())
                        .replace("{runs}", &runs.to_string())
                        .replace("{copies}", &(self.each - 1).to_string())
                        .replace("{earlier}", &format!("copy * interval '{} ms'", self.step_ms));
                    connection.batch_execute(&sql)?;
                }
                Ok(())
            })
    }
}

/// Creates partitions for the copies, copies the rows of each table, and advances the number of runs.
const STATEMENTS: [&str; 8] = [
    "SELECT assay_make_room(min(started_at) - {earlier}, now()) FROM run, (VALUES ({copies})) AS last (copy) \
     WHERE project_id = '{project}' GROUP BY copy",
    "INSERT INTO run SELECT project_id, number + copy * {runs}, md5(id::text || copy)::uuid, sha256(key_hash || int4send(copy)), \
         sharded, branch, commit_sha, commit_message, author_name, tested_revision, pull_request_number, pull_request_title, \
         ci_provider, suite, status, started_at - {earlier}, finished_at - {earlier}, \
         shards_received, shards_expected, total, passed, failed, skipped, recovered \
     FROM run, generate_series(1, {copies}) AS copy WHERE project_id = '{project}'",
    "INSERT INTO run_day SELECT project_id, date_trunc('day', started_at, 'UTC'), coalesce(status, ''), count(*) \
     FROM run WHERE project_id = '{project}' GROUP BY 1, 2, 3 \
     ON CONFLICT (project_id, day, status) DO UPDATE SET runs = excluded.runs",
    "INSERT INTO shard SELECT project_id, run_number + copy * {runs}, slot, md5(id::text || copy)::uuid, index, \
         sha256(content || int4send(copy)), state, status, started_at - {earlier}, \
         finished_at - {earlier}, expected, report_errors \
     FROM shard, generate_series(1, {copies}) AS copy WHERE project_id = '{project}'",
    "INSERT INTO run_pack SELECT project_id, started_at - {earlier}, run_number + copy * {runs}, pack \
     FROM run_pack, generate_series(1, {copies}) AS copy WHERE project_id = '{project}'",
    "INSERT INTO result SELECT project_id, started_at - {earlier}, duration_ms, run_number + copy * {runs}, test, \
         start_offset_ms, browser, attempts, slot, status \
     FROM result, generate_series(1, {copies}) AS copy WHERE project_id = '{project}'",
    "INSERT INTO attempt SELECT project_id, started_at - {earlier}, occurred_at - {earlier}, \
         duration_ms, run_number + copy * {runs}, test, browser, signature, place, retry, slot, status, timed, message, errors, \
         execution, is_final \
     FROM attempt, generate_series(1, {copies}) AS copy WHERE project_id = '{project}'",
    "UPDATE project SET runs = runs * ({copies} + 1) WHERE id = '{project}'",
];
