//! The rows of the run and of its shards.

use assay_domain::{
    recording::{RecordedTest, Recording, RunContext},
    run::{Counts, Outcome, RunState},
    store::StoreError,
    timestamp::Timestamp,
};
use diesel::{
    AsChangeset, ExpressionMethods, Insertable, OptionalExtension, PgConnection, QueryDsl, QueryResult,
    Queryable, RunQueryDsl, Selectable, SelectableHelper, pg::Pg,
};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::Import;
use crate::{
    db::{
        column::{At, int, optional_word, storable, word},
        schema::{run, shard},
    },
    read::{
        run::StoredCounts,
        shard::{self as shard_rows, StoredShard},
    },
};

/// A run that is already stored.
#[derive(Debug, Queryable, Selectable)]
#[diesel(table_name = run, check_for_backend(Pg))]
pub(super) struct KnownRun {
    pub(super) number: i32,
    pub(super) id: Uuid,
    pub(super) sharded: bool,
    pub(super) status: Option<String>,
    pub(super) started_at: At,
    #[diesel(embed)]
    pub(super) counts: StoredCounts,
    #[diesel(embed)]
    pub(super) context: Context,
}

impl KnownRun {
    /// The run of this key.
    pub(super) fn find(
        connection: &mut PgConnection,
        project: Uuid,
        run_key: RunKey<'_>,
    ) -> QueryResult<Option<Self>> {
        run::table
            .filter(run::project_id.eq(project))
            .filter(run::key_hash.eq(run_key.hash()))
            .select(Self::as_select())
            .first(connection)
            .optional()
    }

    pub(super) fn branch(&self) -> Option<&str> {
        self.context.branch.as_deref()
    }

    /// When the run's first shard arrived.
    pub(super) fn first_shard_at(&self) -> Timestamp {
        first_shard_at(self.id)
    }
}

/// When the first shard of the run with this id arrived: the id is made of that time.
pub(super) fn first_shard_at(run: Uuid) -> Timestamp {
    let created_at = run.get_timestamp().map(|created_at| created_at.to_unix());
    let ms = created_at.and_then(|(seconds, nanos)| {
        let seconds = i64::try_from(seconds).ok()?;
        seconds
            .checked_mul(1_000)?
            .checked_add(i64::from(nanos / 1_000_000))
    });
    // Every run id contains a time. An id without one counts as very old.
    Timestamp::from_unix_ms(ms.unwrap_or(0))
}

/// Identifies a run within a project.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunKey<'a> {
    /// The run key, which all shards of the run share.
    pub(super) text: &'a str,
    pub(super) counts_in_verdicts: bool,
}

impl RunKey<'_> {
    fn hash(self) -> Vec<u8> {
        let mut hash = Sha256::new();
        if !self.counts_in_verdicts {
            // No run key begins like this: it has no control characters except tabs.
            hash.update(b"\0not in verdicts\0");
        }
        hash.update(self.text.as_bytes());
        hash.finalize().to_vec()
    }
}

/// The context of a run, as stored.
#[derive(Debug, Clone, Default, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = run, check_for_backend(Pg), treat_none_as_null = true)]
pub(super) struct Context {
    branch: Option<String>,
    commit_sha: Option<String>,
    commit_message: Option<String>,
    author_name: Option<String>,
    tested_revision: Option<String>,
    pull_request_number: Option<i64>,
    pull_request_title: Option<String>,
    ci_provider: Option<String>,
    suite: Option<String>,
    run_url: Option<String>,
}

impl Context {
    fn of(context: &RunContext) -> Self {
        let text = |text: &Option<String>| text.as_deref().map(storable);
        Self {
            branch: text(&context.branch),
            commit_sha: text(&context.commit_sha),
            commit_message: text(&context.commit_message),
            author_name: text(&context.author_name),
            tested_revision: text(&context.tested_revision),
            pull_request_number: context.pull_request_number,
            pull_request_title: text(&context.pull_request_title),
            ci_provider: context.ci_provider.map(|provider| provider.as_str().to_owned()),
            suite: text(&context.suite),
            run_url: text(&context.run_url),
        }
    }

    /// Whether the report names another commit, whose message, author and pull request may differ.
    ///
    /// Any difference counts, unlike in `is_of_commit` in `crates/ingest/src/context.rs`, which compares the sources of
    /// one report. Here the reported commit replaces the stored one. If a head counted as its merge commit, the merge
    /// commit's message and author would remain beside the head.
    fn is_of_another_commit(&self, reported: &RunContext) -> bool {
        reported.commit_sha.as_deref().is_some_and(|reported| {
            self.commit_sha
                .as_deref()
                .is_some_and(|stored| stored != reported)
        })
    }

    pub(super) fn stored(self) -> Result<RunContext, StoreError> {
        Ok(RunContext {
            branch: self.branch,
            commit_sha: self.commit_sha,
            commit_message: self.commit_message,
            author_name: self.author_name,
            tested_revision: self.tested_revision,
            pull_request_number: self.pull_request_number,
            pull_request_title: self.pull_request_title,
            ci_provider: optional_word("CI provider", self.ci_provider.as_deref())?,
            suite: self.suite,
            run_url: self.run_url,
        })
    }
}

/// The context of a run once this report is stored.
pub(super) fn context(
    stored_run: Option<&KnownRun>,
    recording: &Recording,
) -> Result<RunContext, StoreError> {
    let reported = recording.context.clone();
    match stored_run {
        // If a report lacks a value, the run keeps the value of an earlier report.
        Some(stored_run)
            if recording.shard.is_some() || !stored_run.context.is_of_another_commit(&reported) =>
        {
            Ok(reported.or(stored_run.context.clone().stored()?))
        }
        Some(_) | None => Ok(reported),
    }
}

/// The run as it is to be stored.
#[derive(Debug, Insertable, AsChangeset)]
#[diesel(table_name = run, treat_none_as_null = true)]
pub(super) struct NewRun {
    #[diesel(skip_update)]
    project_id: Uuid,
    #[diesel(skip_update)]
    number: i32,
    pub(super) id: Uuid,
    key_hash: Vec<u8>,
    sharded: bool,
    #[diesel(embed)]
    context: Context,
    status: Option<&'static str>,
    pub(super) started_at: At,
    finished_at: Option<At>,
    shards_received: i32,
    shards_expected: Option<i32>,
    total: i32,
    passed: i32,
    failed: i32,
    skipped: i32,
    recovered: i32,
    counts_in_verdicts: bool,
    complete: bool,
    #[diesel(skip_insertion, skip_update)]
    pub(super) outcome: Option<Outcome>,
}

impl NewRun {
    /// The run with these shards. The last one is being imported.
    pub(super) fn of(
        import: &Import<'_>,
        number: i32,
        stored_run: Option<&KnownRun>,
        context: &RunContext,
        shards: &[&StoredShard],
        counts: Counts,
    ) -> Result<Self, StoreError> {
        let recording = import.recording;
        let id = stored_run.map_or(import.new_id, |stored_run| stored_run.id);
        let started_at = shards.iter().map(|shard| shard.started_at).min();
        let Ending { outcome, complete } = Ending::of(shards)?;
        Ok(Self {
            project_id: import.project,
            number,
            id,
            key_hash: import.run_key().hash(),
            sharded: recording.shard.is_some(),
            context: Context::of(context),
            status: outcome.map(Outcome::as_str),
            started_at: started_at.unwrap_or(At(recording.started_at)),
            finished_at: shards.iter().filter_map(|shard| shard.finished_at).max(),
            shards_received: int(shards.len()),
            shards_expected: expected(shards),
            total: int(counts.total),
            passed: int(counts.passed),
            failed: int(counts.failed),
            skipped: int(counts.skipped),
            recovered: int(counts.recovered),
            counts_in_verdicts: import.rules.counts_in_verdicts(),
            complete,
            outcome,
        })
    }

    pub(super) fn branch(&self) -> Option<&str> {
        self.context.branch.as_deref()
    }

    pub(super) fn store(&self, connection: &mut PgConnection) -> QueryResult<usize> {
        diesel::insert_into(run::table)
            .values(self)
            .on_conflict((run::project_id, run::number))
            .do_update()
            .set(self)
            .execute(connection)
    }
}

/// The expected number of shards, if any of them has it.
fn expected(shards: &[&StoredShard]) -> Option<i32> {
    shards.iter().filter_map(|shard| shard.expected).max()
}

/// How a run with some shards ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ending {
    /// Failed if a shard failed; unknown while a run without failures is not complete.
    pub(crate) outcome: Option<Outcome>,
    /// Whether every expected shard is here and none was interrupted.
    pub(crate) complete: bool,
}

impl Ending {
    pub(crate) fn of(shards: &[&StoredShard]) -> Result<Self, StoreError> {
        let indices = shards.iter().map(|shard| shard.index);
        let mut complete = int(shards.len()) >= shard_rows::expected(expected(shards), indices);
        let mut failed = false;
        let mut unknown = false;
        for shard in shards {
            match optional_word("shard status", shard.status.as_deref())? {
                Some(Outcome::Failed) => failed = true,
                Some(Outcome::Passed) => {}
                None => unknown = true,
            }
            complete &= word::<RunState>("run state", &shard.state)? == RunState::Completed;
        }
        let outcome = match failed {
            true => Some(Outcome::Failed),
            false => (complete && !unknown).then_some(Outcome::Passed),
        };
        Ok(Self { outcome, complete })
    }
}

/// The first slot that no shard has.
pub(super) fn next_slot(shards: &[StoredShard]) -> Result<i16, StoreError> {
    let last = shards.iter().map(|shard| shard.slot).max();
    last.map_or(Some(0), |last| last.checked_add(1))
        .ok_or_else(|| StoreError::Failed {
            doing: "importing a report",
            source: "a run has at most 32,768 shards".into(),
        })
}

/// A new shard row with the content of a recording.
pub(super) fn new_shard(recording: &Recording, slot: i16, id: Uuid, import: Uuid) -> StoredShard {
    let mut outcomes = recording.tests.iter().filter_map(RecordedTest::outcome);
    let failed = !recording.report_errors.is_empty() || outcomes.any(|outcome| outcome.status.is_failure());
    let report_errors = recording
        .report_errors
        .iter()
        .map(super::rows::error_json)
        .collect();
    StoredShard {
        slot,
        id,
        index: recording.shard.map(|shard| int(shard.index)),
        content: recording.content.to_vec(),
        state: recording.state.as_str().to_owned(),
        status: shard_outcome(failed, recording.state).map(|outcome| outcome.as_str().to_owned()),
        started_at: At(recording.started_at),
        finished_at: recording.finished_at.map(|at: Timestamp| At(at)),
        expected: recording.shard.and_then(|shard| shard.total).map(int),
        report_errors: serde_json::Value::Array(report_errors),
        sender_job: recording.sender.job.as_deref().map(storable),
        sender_runner: recording.sender.runner.as_deref().map(storable),
        import_id: Some(import),
    }
}

/// The outcome of a shard; `failed` is whether its tests or its report failed. Unknown if it was interrupted without
/// a failure.
pub(crate) fn shard_outcome(failed: bool, state: RunState) -> Option<Outcome> {
    match state {
        _ if failed => Some(Outcome::Failed),
        RunState::Completed => Some(Outcome::Passed),
        RunState::Interrupted => None,
    }
}

/// Stores a shard, in the place of its former content if there is any.
pub(super) fn store_shard(
    connection: &mut PgConnection,
    project: Uuid,
    run: i32,
    new: &StoredShard,
) -> QueryResult<usize> {
    let derived = (
        shard::content.eq(&new.content),
        shard::state.eq(&new.state),
        shard::status.eq(&new.status),
        shard::started_at.eq(new.started_at),
        shard::finished_at.eq(new.finished_at),
        shard::expected.eq(new.expected),
        shard::report_errors.eq(&new.report_errors),
        shard::sender_job.eq(&new.sender_job),
        shard::sender_runner.eq(&new.sender_runner),
        shard::import_id.eq(new.import_id),
    );
    let key = (
        shard::project_id.eq(project),
        shard::run_number.eq(run),
        shard::slot.eq(new.slot),
        shard::id.eq(new.id),
        shard::index.eq(new.index),
    );
    diesel::insert_into(shard::table)
        .values((key, derived))
        .on_conflict((shard::project_id, shard::run_number, shard::slot))
        .do_update()
        .set(derived)
        .execute(connection)
}
