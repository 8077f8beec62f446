//! The rows of the run and of its parts.

use std::collections::{BTreeSet, HashMap};

use assay_domain::{
    attempt::{AttemptStatus, ErrorDetail},
    part::PartRole,
    recording::{Recording, RunContext, Sender, SentReport, ShardIndex},
    release_branch::BranchPattern,
    run::{Counts, Outcome, RunState},
    store::StoreError,
    timestamp::Timestamp,
};
use diesel::{
    pg::Pg,
    prelude::*,
    sql_types::{Array, Bool, Integer, Nullable, SmallInt, Text, Uuid as SqlUuid},
};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{Import, RunContents};
use crate::{
    db::{
        column::{At, bigint, count, int, optional_word, storable, word},
        schema::{part, run},
    },
    read::{
        part::{self as part_rows, StoredPart},
        run::StoredCounts,
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

/// Most reports of a CI run with which a backfilled one is compared.
const MOST_SENT: i64 = 100;

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

    /// A run of the CI run with this page that started within a day of this report.
    pub(super) fn find_of_page(
        connection: &mut PgConnection,
        project: Uuid,
        page: &str,
        recording: &Recording,
        counts_in_verdicts: bool,
    ) -> QueryResult<Option<Self>> {
        let at = recording.started_at;
        run::table
            .filter(run::project_id.eq(project))
            .filter(run::started_at.between(At(at.plus_days(-1)), At(at.plus_days(1))))
            .filter(run::run_url.eq(page))
            .filter(run::counts_in_verdicts.eq(counts_in_verdicts))
            .select(Self::as_select())
            .order(run::number)
            .first(connection)
            .optional()
    }

    /// The parts of the runs of the CI run with this page that started within a day of this report.
    pub(super) fn parts_of_page(
        connection: &mut PgConnection,
        project: Uuid,
        page: &str,
        recording: &Recording,
    ) -> QueryResult<Vec<(Context, StoredPart)>> {
        let at = recording.started_at;
        run::table
            .inner_join(part::table.on(part::project_id.eq(project).and(part::run_number.eq(run::number))))
            .filter(run::project_id.eq(project))
            .filter(run::started_at.between(At(at.plus_days(-1)), At(at.plus_days(1))))
            .filter(run::run_url.eq(page))
            .order((part::run_number, part::number))
            .limit(MOST_SENT)
            .select((Context::as_select(), StoredPart::as_select()))
            .load(connection)
    }

    pub(super) fn branch(&self) -> Option<&str> {
        self.context.branch.as_deref()
    }

    /// When the run's first part arrived.
    pub(super) fn first_part_at(&self) -> Timestamp {
        first_part_at(self.id)
    }
}

/// When the first part of the run with this id arrived: the id is made of that time.
pub(super) fn first_part_at(run: Uuid) -> Timestamp {
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
    /// The run key, which all parts of the run share.
    pub(super) text: &'a str,
    pub(super) counts_in_verdicts: bool,
    /// The number of earlier runs with this key. A job that runs again after its run was closed begins another one.
    pub(super) closed_runs: u32,
}

impl RunKey<'_> {
    fn hash(self) -> Vec<u8> {
        let mut hash = Sha256::new();
        if !self.counts_in_verdicts {
            // No run key begins like this: it has no control characters except tabs.
            hash.update(b"\0not in verdicts\0");
        }
        hash.update(self.text.as_bytes());
        if self.closed_runs > 0 {
            hash.update(format!("\0after {} closed runs", self.closed_runs).as_bytes());
        }
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
    merge_base: Option<String>,
    base_branch: Option<String>,
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
            merge_base: text(&context.merge_base),
            base_branch: text(&context.base_branch),
        }
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
            merge_base: self.merge_base,
            base_branch: self.base_branch,
        })
    }
}

/// The context of a run once this report is stored. If the report lacks a value, the run keeps the value of an earlier
/// part, and every value that a part has if the CI service was asked later. A report of another revision can only replace the whole run, and then nothing of it remains.
pub(super) fn context(
    stored_run: Option<&KnownRun>,
    recording: &Recording,
    (stable_branch, release_branches): (&str, &[BranchPattern]),
) -> Result<RunContext, StoreError> {
    let reported = recording.context.clone();
    let reported = reported.of_pull_request(stable_branch, release_branches);
    let Some(stored_run) = stored_run else {
        return Ok(reported);
    };
    let stored = stored_run.context.clone().stored()?;
    match stored.may_have_revision_of(&reported) {
        true if recording.is_backfilled => Ok(stored.or(reported)),
        true => Ok(reported.or(stored)),
        false => Ok(reported),
    }
}

/// What identifies a part of a run with this context.
pub(super) fn sent_report((context, part): (Context, StoredPart)) -> Result<SentReport, StoreError> {
    let index = part.index.map(count).transpose()?;
    let total = part.expected.map(count).transpose()?;
    Ok(SentReport {
        context: context.stored()?,
        shard: index.map(|index| ShardIndex { index, total }),
        sender: part.sender()?,
        content: part.content,
    })
}

/// What is derived of a run's parts and of its results.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = run, check_for_backend(Pg), treat_none_as_null = true)]
pub(crate) struct DerivedRun {
    status: Option<String>,
    finished_at: Option<At>,
    duration_ms: Option<i64>,
    shards_received: i32,
    shards_expected: Option<i32>,
    total: i32,
    passed: i32,
    failed: i32,
    skipped: i32,
    recovered: i32,
    complete: bool,
}

impl DerivedRun {
    pub(crate) fn of(parts: &[StoredPart], counts: Counts) -> Result<Self, StoreError> {
        let (outcome, complete) = ending(parts)?;
        Ok(Self {
            status: outcome.map(|outcome| outcome.as_str().to_owned()),
            finished_at: parts.iter().filter_map(|part| part.finished_at).max(),
            duration_ms: duration_ms(parts),
            shards_received: int(part_rows::received(parts.iter().map(|part| part.index))),
            shards_expected: expected(parts),
            total: int(counts.total),
            passed: int(counts.passed),
            failed: int(counts.failed),
            skipped: int(counts.skipped),
            recovered: int(counts.recovered),
            complete,
        })
    }

    pub(super) fn outcome(&self) -> Result<Option<Outcome>, StoreError> {
        optional_word("run status", self.status.as_deref())
    }
}

/// The run as it is to be stored.
#[derive(Debug, Insertable, AsChangeset)]
#[diesel(table_name = run, treat_none_as_null = true)]
pub(super) struct NewRun {
    #[diesel(skip_update)]
    pub(super) project_id: Uuid,
    #[diesel(skip_update)]
    pub(super) number: i32,
    pub(super) id: Uuid,
    key_hash: Vec<u8>,
    sharded: bool,
    pub(super) started_at: At,
    counts_in_verdicts: bool,
    #[diesel(embed)]
    context: Context,
    #[diesel(embed)]
    pub(super) derived: DerivedRun,
}

impl NewRun {
    /// The run with these parts, one of which is being imported.
    pub(super) fn of(
        import: &Import<'_>,
        run_key: RunKey<'_>,
        (id, number): (Uuid, i32),
        context: &RunContext,
        parts: &[StoredPart],
        counts: Counts,
    ) -> Result<Self, StoreError> {
        let recording = import.recording;
        let started_at = parts.iter().map(|part| part.started_at).min();
        Ok(Self {
            project_id: import.project,
            number,
            id,
            key_hash: run_key.hash(),
            sharded: recording.shard.is_some(),
            started_at: started_at.unwrap_or(At(recording.started_at)),
            counts_in_verdicts: import.rules.counts_in_verdicts(),
            context: Context::of(context),
            derived: DerivedRun::of(parts, counts)?,
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

/// The expected number of shards, if any of the parts has it.
fn expected(parts: &[StoredPart]) -> Option<i32> {
    parts.iter().filter_map(|part| part.expected).max()
}

/// The time in which some part ran: the union of their intervals. None if no part has an end.
fn duration_ms(parts: &[StoredPart]) -> Option<i64> {
    let mut intervals: Vec<(Timestamp, Timestamp)> = parts
        .iter()
        .filter_map(|part| Some((part.started_at.0, part.finished_at?.0)))
        .collect();
    intervals.sort_unstable();
    let (mut until, _) = *intervals.first()?;
    let mut covered_ms = 0;
    for (start, end) in intervals {
        covered_ms += end.since_ms(start.max(until)).max(0);
        until = until.max(end);
    }
    Some(covered_ms)
}

/// How a run with these parts ended: failed if a part failed, unknown while a run without failures is not complete. It is
/// complete if every expected shard is here, and no part was interrupted whose tests did not run again.
fn ending(parts: &[StoredPart]) -> Result<(Option<Outcome>, bool), StoreError> {
    let indexes = || parts.iter().map(|part| part.index);
    let mut complete = int(part_rows::received(indexes())) >= part_rows::expected(expected(parts), indexes());
    let mut outcome = Some(Outcome::Passed);
    for part in parts {
        let status = optional_word("part status", part.status.as_deref())?;
        outcome = part_rows::worse(outcome, status);
        let is_whole = part.superseded || word::<RunState>("run state", &part.state)? == RunState::Completed;
        complete &= is_whole && part.status.is_some();
    }
    if !complete {
        outcome = part_rows::worse(outcome, None);
    }
    Ok((outcome, complete))
}

/// The first number that no part has.
pub(super) fn next_part(parts: &[StoredPart]) -> Result<i16, StoreError> {
    let last = parts.iter().map(|part| part.number).max();
    last.map_or(Some(0), |last| last.checked_add(1))
        .ok_or_else(|| StoreError::Failed {
            doing: "importing a report",
            source: "a run has at most 32,768 parts".into(),
        })
}

/// A new part with the content of a recording. Its derived values are set by [`set_derived`].
pub(super) fn new_part(
    recording: &Recording,
    number: i16,
    (id, shard_id): (Uuid, Uuid),
    import: Uuid,
) -> StoredPart {
    let sender = &recording.sender;
    StoredPart {
        number,
        id,
        shard_id,
        index: recording.shard.map(|shard| int(shard.index)),
        content: recording.content.to_vec(),
        state: recording.state.as_str().to_owned(),
        status: None,
        superseded: false,
        started_at: At(recording.started_at),
        finished_at: recording.finished_at.map(|at: Timestamp| At(at)),
        expected: recording.shard.and_then(|shard| shard.total).map(int),
        report_errors: errors_json(&recording.report_errors),
        sender_job: sender.job.as_deref().map(storable),
        sender_id: sender.id.as_deref().map(storable),
        sender_runner: sender.runner.as_deref().map(storable),
        report_path: sender.report_path.as_deref().map(storable),
        report_files: int(sender.report_files),
        job_attempt: bigint(sender.attempt.of_job),
        command_attempt: int(sender.attempt.of_command),
        import_id: Some(import),
    }
}

/// Errors that belong to no test, as stored.
pub(super) fn errors_json(errors: &[ErrorDetail]) -> serde_json::Value {
    serde_json::Value::Array(errors.iter().map(super::rows::error_json).collect())
}

/// The senders of some parts of a run, each once. `places` counts its parts from 0.
pub(super) fn senders_at(parts: &[StoredPart], places: &BTreeSet<usize>) -> Result<Vec<Sender>, StoreError> {
    let mut senders = Vec::new();
    for part in places.iter().filter_map(|place| parts.get(*place)) {
        let sender = part.sender()?;
        if !senders.contains(&sender) {
            senders.push(sender);
        }
    }
    Ok(senders)
}

/// Sets what is derived of each part, and returns the numbers of the parts whose values changed.
pub(crate) fn set_derived(
    parts: &mut [StoredPart],
    contents: &RunContents<'_>,
    roles: &HashMap<i16, PartRole>,
) -> Result<Vec<i16>, StoreError> {
    let failed = contents.parts_with(AttemptStatus::is_failure);
    let interrupted = contents.parts_with(|status| status == AttemptStatus::Interrupted);
    let mut changed = Vec::new();
    for part in parts {
        let superseded = roles.get(&part.number).is_some_and(|role| role.is_superseded);
        let has_failed = failed.contains(&part.number) || part.has_errors() && !superseded;
        let state = match superseded {
            _ if interrupted.contains(&part.number) => RunState::Interrupted,
            true => RunState::Completed,
            false => word("run state", &part.state)?,
        };
        let status = part_outcome(has_failed, state).map(|outcome| outcome.as_str().to_owned());
        if (&part.status, part.superseded) != (&status, superseded) {
            part.status = status;
            part.superseded = superseded;
            changed.push(part.number);
        }
    }
    Ok(changed)
}

/// The outcome of a part; `failed` is whether one of its executions or its report failed. Unknown if it was interrupted
/// without a failure.
fn part_outcome(failed: bool, state: RunState) -> Option<Outcome> {
    match state {
        _ if failed => Some(Outcome::Failed),
        RunState::Completed => Some(Outcome::Passed),
        RunState::Interrupted => None,
    }
}

/// Stores what is derived of these parts.
pub(crate) fn store_derived(
    connection: &mut PgConnection,
    project: Uuid,
    run: i32,
    parts: &[&StoredPart],
) -> QueryResult<()> {
    if parts.is_empty() {
        return Ok(());
    }
    // Raw SQL, because diesel has no update from arrays.
    diesel::sql_query(
        "UPDATE part SET status = derived.status, superseded = derived.superseded \
         FROM unnest($3, $4, $5) AS derived (number, status, superseded) \
         WHERE part.project_id = $1 AND part.run_number = $2 AND part.number = derived.number",
    )
    .bind::<SqlUuid, _>(project)
    .bind::<Integer, _>(run)
    .bind::<Array<SmallInt>, _>(parts.iter().map(|part| part.number).collect::<Vec<_>>())
    .bind::<Array<Nullable<Text>>, _>(parts.iter().map(|part| part.status.clone()).collect::<Vec<_>>())
    .bind::<Array<Bool>, _>(parts.iter().map(|part| part.superseded).collect::<Vec<_>>())
    .execute(connection)
    .map(drop)
}

/// Deletes replaced parts.
pub(super) fn delete_parts(
    connection: &mut PgConnection,
    project: Uuid,
    run: i32,
    numbers: &[i16],
) -> QueryResult<()> {
    if numbers.is_empty() {
        return Ok(());
    }
    diesel::delete(part::table)
        .filter(part::project_id.eq(project))
        .filter(part::run_number.eq(run))
        .filter(part::number.eq_any(numbers))
        .execute(connection)
        .map(drop)
}

/// Stores a new part.
pub(super) fn store_part(
    connection: &mut PgConnection,
    project: Uuid,
    run: i32,
    new: &StoredPart,
) -> QueryResult<usize> {
    diesel::insert_into(part::table)
        .values((part::project_id.eq(project), part::run_number.eq(run), new))
        .execute(connection)
}
