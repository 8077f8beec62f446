//! A run, as stored.

use assay_domain::{
    id::RunId,
    merge_queue::MergeQueue,
    run::{Counts, RunRow, ShardCount},
    store::StoreError,
};
use diesel::{
    Queryable, Selectable,
    dsl::{AsSelect, SqlTypeOf},
    pg::Pg,
};
use uuid::Uuid;

use crate::db::{
    column::{At, count, optional_word},
    schema::run,
    sql_statement::SqlRow,
};

/// A run, as stored.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = run, check_for_backend(Pg))]
pub(crate) struct StoredRun {
    pub(crate) number: i32,
    pub(crate) id: Uuid,
    pub(crate) sharded: bool,
    pub(crate) branch: Option<String>,
    pub(crate) commit_sha: Option<String>,
    pub(crate) tested_revision: Option<String>,
    pub(crate) base_branch: Option<String>,
    pub(crate) pull_request_number: Option<i64>,
    pub(crate) status: Option<String>,
    pub(crate) started_at: At,
    pub(crate) finished_at: Option<At>,
    pub(crate) duration_ms: Option<i64>,
    pub(crate) shards_received: i32,
    pub(crate) shards_expected: Option<i32>,
    pub(crate) suite: Option<String>,
    pub(crate) pull_request_title: Option<String>,
    pub(crate) commit_message: Option<String>,
    pub(crate) author_name: Option<String>,
    pub(crate) run_url: Option<String>,
    pub(crate) counts_in_verdicts: bool,
    pub(crate) complete: bool,
    #[diesel(embed)]
    pub(crate) counts: StoredCounts,
}

impl SqlRow for StoredRun {
    type Sql = SqlTypeOf<AsSelect<Self, Pg>>;
}

/// The counts of a run's outcomes, as stored.
#[derive(Debug, Clone, Copy, Queryable, Selectable)]
#[diesel(table_name = run, check_for_backend(Pg))]
pub(crate) struct StoredCounts {
    total: i32,
    passed: i32,
    failed: i32,
    skipped: i32,
    recovered: i32,
}

impl StoredCounts {
    pub(crate) fn counts(&self) -> Result<Counts, StoreError> {
        Ok(Counts {
            total: count(self.total)?,
            passed: count(self.passed)?,
            failed: count(self.failed)?,
            skipped: count(self.skipped)?,
            recovered: count(self.recovered)?,
        })
    }
}

impl StoredRun {
    /// The run as a row of the runs list.
    pub(crate) fn row(self) -> Result<RunRow, StoreError> {
        let shards = if self.sharded {
            Some(ShardCount {
                received: count(self.shards_received)?,
                expected: self.shards_expected.map(count).transpose()?,
            })
        } else {
            None
        };
        let branch = self.branch.as_deref();
        Ok(RunRow {
            queue: branch.and_then(|branch| MergeQueue::of(branch, self.pull_request_title.as_deref())),
            id: RunId(self.id),
            run_number: self.number,
            status: outcome(self.status.as_deref())?,
            started_at: self.started_at.0,
            finished_at: self.finished_at.map(|at| at.0),
            duration_ms: self.duration_ms,
            counts: self.counts.counts()?,
            shards,
            suite: self.suite,
            pull_request_title: self.pull_request_title,
            commit_message: self.commit_message,
            author_name: self.author_name,
            run_url: self.run_url,
            trusted: self.counts_in_verdicts,
            complete: self.complete,
            branch: self.branch,
            commit_sha: self.commit_sha,
            tested_revision: self.tested_revision,
            base_branch: self.base_branch,
            pull_request_number: self.pull_request_number,
        })
    }
}

/// The status of a run, as stored.
pub(crate) fn outcome(status: Option<&str>) -> Result<Option<assay_domain::run::Outcome>, StoreError> {
    optional_word("run status", status)
}
