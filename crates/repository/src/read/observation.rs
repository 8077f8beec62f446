//! Reads the engine's input, and a test's outcome in a run.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use assay_domain::{
    attempt::AttemptStatus,
    joins::Joins,
    merge_queue::tested_pull_requests,
    observation::{History, RunEnding, RunFacts, RunObservations},
    project::Project,
    release_branch::{BranchPattern, release_branch_of},
    revision::{checked_out_merge, tested_or_commit},
    run::Outcome,
    store::{FinalResult, ResultKey, StoreError},
    timestamp::Timestamp,
};
use diesel::{prelude::*, result::Error as QueryError};
use uuid::Uuid;

use crate::{
    db::{
        column::{At, branch_patterns, corrupt, count, int, status},
        period::span,
        pool::Read,
        schema::project as projects,
        sql_statement::{SqlStatement, sql_row},
    },
    read::{
        history_cache::{HistoryCache, HistoryVersion},
        joins,
        pack::Pack,
        result_block::result_of,
        run::outcome,
    },
};

sql_row! {
    #[derive(Debug)]
    struct Row {
        id: Uuid,
        number: i32,
        started_at: At,
        branch: Option<String>,
        base_branch: Option<String>,
        tested_revision: Option<String>,
        commit_sha: Option<String>,
        merge_base: Option<String>,
        pull_request_number: Option<i64>,
        /// Of a merge queue's run.
        title: Option<String>,
        suite: Option<String>,
        complete: bool,
        /// The end of its newest part, else its start.
        last_seen: At,
        status: Option<String>,
        failed: i32,
        duration_ms: Option<i64>,
        pack: Vec<u8>,
    }
}

/// A history, and the joined tests that it has.
pub(crate) type JoinedHistory = (Arc<History>, Arc<Joins>);

/// The engine's input: the runs of a project that started within `from..=to`, oldest first.
pub(crate) fn load(
    connection: &mut PgConnection,
    project: Uuid,
    from: Timestamp,
    to: Timestamp,
) -> Read<History> {
    let state = State::find(connection, project)?.ok_or(QueryError::NotFound)?;
    let (mut history, _) = state.history(connection, project, from)?;
    history.runs.retain(|observed| observed.run.started_at <= to);
    Ok(history)
}

/// Like [`load`], with the state of the history and the joined tests. Packs are read only if the cached history has
/// another state. A deleted project has no state.
pub(crate) fn cached_or_read(
    connection: &mut PgConnection,
    cache: &HistoryCache,
    project: Uuid,
    from: Timestamp,
    to: Timestamp,
) -> Read<(Option<HistoryVersion>, JoinedHistory)> {
    let Some(state) = State::find(connection, project)? else {
        // The project was deleted after the caller's look-up.
        let nothing = History {
            stable_branch: Arc::from(""),
            tests: 0,
            runs: Vec::new(),
        };
        return Ok((None, (Arc::new(nothing), Arc::default())));
    };
    let history = match cache.get(project, state.observed, &state.stable_branch, (from, to)) {
        Some(history) => history,
        None => {
            let (history, joins) = state.history(connection, project, from)?;
            cache.insert(project, state.observed, (from, to), history, joins)
        }
    };
    Ok((Some(state.observed), history))
}

/// Passes the runs that started from a time on to `each`, oldest first, each with the milliseconds from its start to its
/// end. They are read row by row, so that the memory does not depend on their number. Returns the joined tests. A project
/// that was deleted after the caller's look-up has no runs.
pub(crate) fn each_run(
    connection: &mut PgConnection,
    project: Uuid,
    from: Timestamp,
    each: impl FnMut(RunObservations, Option<u64>),
) -> Read<Joins> {
    let Some(state) = State::find(connection, project)? else {
        return Ok(Joins::default());
    };
    state.each_run(connection, project, (from, true), each)
}

/// Marks a project's history as changed. `observed` is an id that was never used for the project before.
///
/// No import of a report follows this change and judges, so `judged` becomes null. An import that waits for its turn
/// must then judge itself.
pub(crate) fn mark_changed(
    connection: &mut PgConnection,
    project: Uuid,
    observed: Uuid,
) -> QueryResult<usize> {
    diesel::update(projects::table.find(project))
        .set((projects::observed.eq(observed), projects::judged.eq(None::<Uuid>)))
        .execute(connection)
}

/// Like [`mark_changed`], after a change that affects no verdict: runs past their retention were deleted, or errors
/// were grouped again. Verdicts that were up to date still are.
pub(crate) fn mark_changed_but_judged(
    connection: &mut PgConnection,
    project: Uuid,
    observed: Uuid,
) -> QueryResult<usize> {
    let judged = diesel::update(projects::table.find(project))
        .filter(projects::judged.eq(projects::observed.nullable()))
        .set((projects::observed.eq(observed), projects::judged.eq(observed)))
        .execute(connection)?;
    if judged > 0 {
        return Ok(judged);
    }
    mark_changed(connection, project, observed)
}

/// Identifies a state of a project's runs and verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Queryable)]
pub(crate) struct Mark {
    /// A new id with every change of what the engine reads.
    pub(crate) observed: Uuid,
    /// The value of `observed` from which the stored verdicts were judged. Null if the next import has to judge.
    pub(crate) judged: Option<Uuid>,
    /// When they were judged.
    pub(crate) evaluated_at: Option<At>,
}

impl Mark {
    /// Whether the stored verdicts were judged from the present history.
    pub(crate) fn is_judged(&self) -> bool {
        self.judged == Some(self.observed)
    }

    /// The mark of a project that is not deleted.
    pub(crate) fn find(connection: &mut PgConnection, project: Uuid) -> QueryResult<Option<Self>> {
        projects::table
            .find(project)
            .filter(projects::deleted_at.is_null())
            .select((projects::observed, projects::judged, projects::evaluated_at))
            .first(connection)
            .optional()
    }
}

/// The state of a project's history, from its row.
struct State {
    tests: u32,
    stable_branch: String,
    release_branches: Vec<BranchPattern>,
    observed: HistoryVersion,
    /// Whether tests are joined.
    has_joins: bool,
}

impl State {
    fn find(connection: &mut PgConnection, project: Uuid) -> Read<Option<Self>> {
        let row: Option<(i32, String, Vec<String>, HistoryVersion, bool)> = projects::table
            .find(project)
            .select((
                projects::tests,
                projects::stable_branch,
                projects::release_branches,
                (projects::observed, projects::evaluated_at),
                projects::joined_tests.is_not_null(),
            ))
            .first(connection)
            .optional()?;
        let Some((tests, stable_branch, release_branches, observed, has_joins)) = row else {
            return Ok(None);
        };
        Ok(Some(Self {
            tests: count(tests)?,
            stable_branch,
            release_branches: branch_patterns(&release_branches)?,
            observed,
            has_joins,
        }))
    }

    /// The runs that started from a time on, oldest first, and the joined tests that they have.
    fn history(
        &self,
        connection: &mut PgConnection,
        project: Uuid,
        from: Timestamp,
    ) -> Read<(History, Joins)> {
        let mut runs = Vec::new();
        let joins = self.each_run(connection, project, (from, false), |observed, _| {
            runs.push(observed)
        })?;
        runs.sort_unstable_by_key(|observed| (observed.run.started_at, observed.run.number));
        let history = History {
            stable_branch: Arc::from(&*self.stable_branch),
            tests: self.tests,
            runs,
        };
        Ok((history, joins))
    }

    /// Passes the runs that started from a time on to `each`, oldest first if it needs that.
    fn each_run(
        &self,
        connection: &mut PgConnection,
        project: Uuid,
        (from, is_ordered): (Timestamp, bool),
        mut each: impl FnMut(RunObservations, Option<u64>),
    ) -> Read<Joins> {
        let joins = match self.has_joins {
            true => joins::load(connection, project)?,
            false => Joins::default(),
        };
        let mut packs = rows("run_pack AS packed")
            .sql(" AND packed.started_at >= {from}")
            .bind("project", project)
            .bind("from", At(from));
        if is_ordered {
            packs = packs.sql(" ORDER BY packed.started_at, packed.run_number");
        }
        let mut texts = Texts::default();
        // Row by row, so that a pack is decoded while Postgres searches the next ones.
        for row in packs.load_iter(connection)? {
            let row: Row = row?;
            let duration = row.duration_ms.and_then(|ms| u64::try_from(ms).ok());
            let pack = row.pack(self.tests);
            match pack.and_then(|pack| row.observations(pack, self, &mut texts)) {
                Ok(mut observed) => {
                    joins.apply(&mut observed);
                    each(observed, duration);
                }
                // Every page of the project reads the packs. Without this run they are nearly right.
                Err(error) => {
                    log::error!("a run is left out of verdicts: {error}; `assay-admin rebuild` repairs it");
                }
            }
        }
        Ok(joins)
    }
}

/// The runs of these packs. Looks each run up by its key. Any other join reads all runs of the project, or becomes a nested
/// loop. Diesel cannot express this.
fn rows(packed: &'static str) -> SqlStatement<'static, Row> {
    SqlStatement::new(
        "SELECT run.id, packed.run_number, packed.started_at, run.branch, run.base_branch, \
         run.tested_revision, run.commit_sha, run.merge_base, run.pull_request_number, run.title, run.suite, \
         run.complete, run.last_seen, run.status, run.failed, run.duration_ms, packed.pack FROM ",
    )
    .sql(packed)
    .sql(
        " CROSS JOIN LATERAL ( \
         SELECT id, branch, base_branch, tested_revision, commit_sha, merge_base, \
         pull_request_number, CASE WHEN branch LIKE 'mergify/%' THEN pull_request_title END AS title, suite, complete, \
         coalesce(finished_at, started_at) AS last_seen, status, failed, duration_ms \
         FROM run WHERE run.number = packed.run_number AND run.project_id = {project} \
         LIMIT 1) AS run WHERE packed.project_id = {project}",
    )
}

/// A run with these results in place of its pack; none if it was deleted.
pub(crate) fn run_with_results(
    connection: &mut PgConnection,
    project: Uuid,
    number: i32,
    results: Pack,
) -> Read<Option<RunObservations>> {
    let Some(state) = State::find(connection, project)? else {
        return Ok(None);
    };
    let row =
        rows("(SELECT project_id, number AS run_number, started_at, ''::bytea AS pack FROM run) AS packed")
            .sql(" AND packed.run_number = {number}")
            .bind("project", project)
            .bind("number", number)
            .get_result(connection)
            .optional()?;
    let observed = |row: Row| row.observations(results, &state, &mut Texts::default());
    Ok(row.map(observed).transpose()?)
}

impl Row {
    fn pack(&self, tests: u32) -> Result<Pack, StoreError> {
        let bad = |bad| corrupt("run pack", &format!("of run {}: {bad}", self.number));
        Pack::decode(&self.pack, tests).map_err(bad)
    }

    fn observations(self, pack: Pack, of: &State, texts: &mut Texts) -> Result<RunObservations, StoreError> {
        let ending = ending(
            (self.complete, self.last_seen),
            self.status.as_deref(),
            self.failed,
        )?;
        let (branch, base) = (self.branch.as_deref(), self.base_branch.as_deref());
        let release_branch = release_branch_of(&of.release_branches, branch, base);
        let run = RunFacts {
            pull_requests: tested_pull_requests(branch, self.title.as_deref(), self.pull_request_number),
            id: Arc::from(&*self.id.hyphenated().encode_lower(&mut Uuid::encode_buffer())),
            number: self.number,
            started_at: self.started_at.0,
            release_branch: release_branch.map(|branch| texts.shared(branch)),
            branch: self.branch.map(|branch| texts.shared(&branch)),
            merge: checked_out_merge(self.tested_revision.as_deref(), self.commit_sha.as_deref())
                .map(|merge| texts.shared(merge)),
            revision: tested_or_commit(self.tested_revision, self.commit_sha)
                .map(|revision| texts.shared(&revision)),
            variant: texts.shared(&self.suite.unwrap_or_default()),
            merge_base: self.merge_base.map(|base| texts.shared(&base)),
        };
        Ok(pack.observed(run, ending))
    }
}

/// How a run ended, from its row.
fn ending(
    (complete, last_seen): (bool, At),
    status: Option<&str>,
    failed_tests: i32,
) -> Result<RunEnding, StoreError> {
    let ending = if complete {
        RunEnding::default()
    } else {
        RunEnding::incomplete(last_seen.0)
    };
    Ok(RunEnding {
        failed_outside_tests: outcome(status)? == Some(Outcome::Failed) && failed_tests == 0,
        ..ending
    })
}

/// Texts that many rows share, each kept once.
#[derive(Debug, Default)]
pub(crate) struct Texts(HashSet<Arc<str>>);

impl Texts {
    pub(crate) fn shared(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known);
        }
        let shared: Arc<str> = text.into();
        self.0.insert(Arc::clone(&shared));
        shared
    }
}

/// The outcomes of these tests in these runs, in the same order.
pub(crate) fn final_results(
    connection: &mut PgConnection,
    project: &Project,
    joins: &Joins,
    requested: &[ResultKey],
) -> Read<Vec<FinalResult>> {
    let keys: Vec<(i32, i32, At)> = requested
        .iter()
        .map(|key| (int(key.test), key.run_number, At(key.run_started_at)))
        .collect();
    let stored_results = stored_final_results(connection, project.id.0, joins, &keys)?;
    let answer = |key: &ResultKey| {
        let stored = stored_results.get(&(int(key.test), key.run_number));
        let known = stored.and_then(|stored| Some((status(stored.status).ok()?, stored.offset_ms)));
        if known.is_none() {
            let (test, run) = (key.test, key.run_number);
            log::error!(
                "the result of test {test} in run {run} is damaged; `assay-admin doctor` checks all results"
            );
        }
        // A list of tests is not lost for one of them.
        let (status, offset_ms) = known.unwrap_or((AttemptStatus::Interrupted, None));
        FinalResult {
            status,
            started_at: final_start(At(key.run_started_at), offset_ms),
        }
    };
    Ok(requested.iter().map(answer).collect())
}

/// The result of a test in a run, as stored: the status of its final attempt, and how many milliseconds after the run's
/// start that attempt started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredFinalResult {
    pub(crate) status: i16,
    pub(crate) offset_ms: Option<i32>,
}

/// The results of these tests in these runs, by test and run number. Results that are not stored are left out. Each
/// key is a test, a run's number and its start.
pub(crate) fn stored_final_results(
    connection: &mut PgConnection,
    project: Uuid,
    joins: &Joins,
    keys: &[(i32, i32, At)],
) -> Read<HashMap<(i32, i32), StoredFinalResult>> {
    if joins.is_empty() {
        return Ok(results_of(connection, project, keys)?);
    }
    let mut named: BTreeSet<(i32, i32, At)> = BTreeSet::new();
    for (test, run_number, start) in keys {
        let names = joins::stored_as(joins, count(*test)?);
        named.extend(names.into_iter().map(|name| (name, *run_number, *start)));
    }
    let stored = results_of(connection, project, &Vec::from_iter(named))?;
    let mut results = HashMap::new();
    for (test, run_number, start) in keys {
        let result = joins.result_of(count(*test)?, start.0, |name| {
            stored.get(&(int(name), *run_number))
        });
        results.extend(result.map(|result| ((*test, *run_number), *result)));
    }
    Ok(results)
}

/// The results that are stored for these tests, without their other names.
fn results_of(
    connection: &mut PgConnection,
    project: Uuid,
    keys: &[(i32, i32, At)],
) -> QueryResult<HashMap<(i32, i32), StoredFinalResult>> {
    let (tests, (numbers, starts)): (Vec<i32>, (Vec<i32>, Vec<At>)) = keys
        .iter()
        .map(|(test, number, start)| (*test, (*number, *start)))
        .unzip();
    let Some((oldest, newest)) = span(&starts) else {
        return Ok(HashMap::new());
    };
    // Diesel has no rows from arrays, and two lists would match every test with every run. The bounds follow from the
    // starts, and exclude other partitions from the plan.
    let rows: Vec<(i32, i32, i16, Option<i32>)> = SqlStatement::new(concat!(
        "SELECT requested.test, requested.run_number, result.status, result.start_offset_ms \
         FROM unnest({tests}, {numbers}, {starts}) AS requested (test, run_number, started_at) \
         JOIN result_block AS block ON block.block = requested.test / 512 \
         AND block.started_at = requested.started_at AND block.run_number = requested.run_number \
         AND block.project_id = {project} AND block.started_at BETWEEN {oldest} AND {newest}",
        result_of!("requested.test")
    ))
    .bind("tests", &*tests)
    .bind("numbers", &*numbers)
    .bind("starts", &*starts)
    .bind("project", project)
    .bind("oldest", oldest)
    .bind("newest", newest)
    .load(connection)?;
    let result_by_key =
        |(test, run_number, status, offset_ms)| ((test, run_number), StoredFinalResult { status, offset_ms });
    Ok(rows.into_iter().map(result_by_key).collect())
}

/// The final attempt's start if it is known, else the run's.
pub(crate) fn final_start(run_started_at: At, offset_ms: Option<i32>) -> Timestamp {
    run_started_at.0.plus_ms(i64::from(offset_ms.unwrap_or(0)))
}
