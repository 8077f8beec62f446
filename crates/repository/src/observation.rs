//! What the engine reads, and how a test ended in a run.

use std::{collections::HashMap, sync::Arc};

use assay_domain::{
    observation::{History, RunFacts, RunObservations},
    project::Project,
    store::{FinalResult, ResultKey, StoreError},
    timestamp::Timestamp,
};
use diesel::{
    BoolExpressionMethods, ExpressionMethods, JoinOnDsl, PgConnection, QueryDsl, QueryResult, Queryable,
    QueryableByName, RunQueryDsl,
    sql_types::{Array, Integer, Nullable, SmallInt, Timestamptz, Uuid as SqlUuid},
};
use uuid::Uuid;

use crate::{
    column::{At, corrupt, count, int, status},
    pack::Pack,
    period::span,
    pool::Read,
    schema::{project as projects, run, run_pack},
};

#[derive(Debug, Queryable)]
struct Row {
    id: Uuid,
    number: i32,
    started_at: At,
    branch: Option<String>,
    tested_revision: Option<String>,
    commit_sha: Option<String>,
    suite: Option<String>,
    pack: Vec<u8>,
}

/// What the engine judges by: the runs of a project that started within `from..=to`, oldest first.
pub(crate) fn load(
    connection: &mut PgConnection,
    project: Uuid,
    from: Timestamp,
    to: Timestamp,
) -> Read<History> {
    let (tests, stable_branch): (i32, String) = projects::table
        .find(project)
        .select((projects::tests, projects::stable_branch))
        .first(connection)?;
    let rows: Vec<Row> = run_pack::table
        .inner_join(
            run::table.on(run::project_id
                .eq(run_pack::project_id)
                .and(run::number.eq(run_pack::run_number))),
        )
        .filter(run_pack::project_id.eq(project))
        .filter(run::project_id.eq(project))
        // Not said of runs as well: a plan for any period takes both for few then, and compares each with each.
        .filter(run_pack::started_at.between(At(from), At(to)))
        .order((run_pack::started_at, run_pack::run_number))
        .select((
            run::id,
            run::number,
            run_pack::started_at,
            run::branch,
            run::tested_revision,
            run::commit_sha,
            run::suite,
            run_pack::pack,
        ))
        .load(connection)?;
    let tests = count(tests)?;
    let mut texts = Texts::default();
    let runs = rows
        .into_iter()
        .map(|row| row.observations(tests, &mut texts))
        .collect::<Result<_, _>>()?;
    Ok(History {
        stable_branch: Arc::from(stable_branch),
        tests,
        runs,
    })
}

impl Row {
    fn observations(self, tests: u32, texts: &mut Texts) -> Result<RunObservations, StoreError> {
        let pack = Pack::decode(&self.pack, tests)
            .map_err(|bad| corrupt("run pack", &format!("of run {}: {bad}", self.number)))?;
        Ok(RunObservations {
            run: RunFacts {
                id: Arc::from(&*self.id.hyphenated().encode_lower(&mut Uuid::encode_buffer())),
                number: self.number,
                started_at: self.started_at.0,
                branch: self.branch.map(|branch| texts.shared(branch)),
                revision: self
                    .tested_revision
                    .or(self.commit_sha)
                    .map(|revision| texts.shared(revision)),
                variant: texts.shared(self.suite.unwrap_or_default()),
            },
            present: pack.present,
            skipped: pack.skipped,
            untimed: pack.untimed,
            failures: pack.failures,
        })
    }
}

/// Texts that many runs have in common, each held once.
#[derive(Default)]
struct Texts(HashMap<String, Arc<str>>);

impl Texts {
    fn shared(&mut self, text: String) -> Arc<str> {
        if let Some(shared) = self.0.get(&text) {
            return Arc::clone(shared);
        }
        let shared: Arc<str> = Arc::from(text.as_str());
        self.0.insert(text, Arc::clone(&shared));
        shared
    }
}

/// How these tests ended in these runs, in the same order.
pub(crate) fn final_results(
    connection: &mut PgConnection,
    project: &Project,
    asked: &[ResultKey],
) -> Read<Vec<FinalResult>> {
    let keys: Vec<(i32, i32, At)> = asked
        .iter()
        .map(|key| (int(key.test), key.run_number, At(key.run_started_at)))
        .collect();
    let found = ended(connection, project.id.0, &keys)?;
    let answer = |key: &ResultKey| {
        let ended = found.get(&(int(key.test), key.run_number)).ok_or_else(|| {
            corrupt(
                "pack with a test that has no result",
                &format!("test {} in run {}", key.test, key.run_number),
            )
        })?;
        Ok(FinalResult {
            status: status(ended.status)?,
            started_at: final_start(At(key.run_started_at), ended.offset_ms),
        })
    };
    Ok(asked.iter().map(answer).collect::<Result<_, StoreError>>()?)
}

/// How a test ended in a run, as stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    pub(crate) status: i16,
    pub(crate) offset_ms: Option<i32>,
}

/// How a test ended in a run, as read.
#[derive(QueryableByName)]
struct EndedRow {
    #[diesel(sql_type = Integer)]
    test: i32,
    #[diesel(sql_type = Integer)]
    run_number: i32,
    #[diesel(sql_type = SmallInt)]
    status: i16,
    #[diesel(sql_type = Nullable<Integer>)]
    start_offset_ms: Option<i32>,
}

/// How these tests ended in these runs, by test and run; each is a test, a run's number and its start.
pub(crate) fn ended(
    connection: &mut PgConnection,
    project: Uuid,
    keys: &[(i32, i32, At)],
) -> QueryResult<HashMap<(i32, i32), Ended>> {
    let (tests, (numbers, starts)): (Vec<i32>, (Vec<i32>, Vec<At>)) = keys
        .iter()
        .map(|(test, number, start)| (*test, (*number, *start)))
        .unzip();
    let Some((oldest, newest)) = span(&starts) else {
        return Ok(HashMap::new());
    };
    // By hand, because the query language has no rows from arrays, and lists of tests and of runs would be all of the one
    // in all of the other. The bounds follow from the starts, and keep other partitions out of the plan.
    let rows: Vec<EndedRow> = diesel::sql_query(
        "SELECT result.test, result.run_number, result.status, result.start_offset_ms \
         FROM unnest($2, $3, $4) AS asked (test, run_number, started_at) \
         JOIN result ON result.project_id = $1 AND result.test = asked.test AND result.started_at = asked.started_at \
             AND result.run_number = asked.run_number AND result.started_at BETWEEN $5 AND $6",
    )
    .bind::<SqlUuid, _>(project)
    .bind::<Array<Integer>, _>(tests)
    .bind::<Array<Integer>, _>(numbers)
    .bind::<Array<Timestamptz>, _>(starts)
    .bind::<Timestamptz, _>(oldest)
    .bind::<Timestamptz, _>(newest)
    .load(connection)?;
    let ended = |row: EndedRow| {
        let ended = Ended {
            status: row.status,
            offset_ms: row.start_offset_ms,
        };
        ((row.test, row.run_number), ended)
    };
    Ok(rows.into_iter().map(ended).collect())
}

/// When the final attempt started: by itself where that is known, else with the run.
pub(crate) fn final_start(run_started_at: At, offset_ms: Option<i32>) -> Timestamp {
    run_started_at.0.plus_ms(i64::from(offset_ms.unwrap_or(0)))
}
