//! Stored verdicts.

use std::collections::HashMap;

use assay_domain::{
    id::RunId,
    observation::History,
    project::Project,
    store::StoreError,
    test::{TestLookup, TestSelector},
    timestamp::Timestamp,
    verdict::{
        ENGINE_WINDOW_DAYS, Evidence, Figures, Judge, Judgement, Label, LastRun, Signal, StoredVerdict,
        TestVerdict, VerdictStatus,
    },
};
use diesel::{
    BoolExpressionMethods, ExpressionMethods, JoinOnDsl, NullableExpressionMethods, OptionalExtension,
    PgConnection, QueryDsl, QueryResult, RunQueryDsl,
    sql_types::{Array, Bool, Integer, Nullable, Text, Uuid as SqlUuid},
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    column::{At, corrupt, int, status, storable, word},
    observation::{self, final_start},
    pool::Read,
    schema::{project as projects, result, run, verdict},
    test,
};

/// What the column `body` holds: all of a verdict that nothing searches for.
#[derive(Debug, Serialize, Deserialize)]
struct Body {
    reason: Option<Signal>,
    explanation: String,
    signals: Vec<Signal>,
    labels: Vec<Label>,
    figures: Figures,
    /// With a `now` of 1970: the time of the judgement is the project's, so that a row stays as it is while
    /// nothing but time goes by.
    evidence: Evidence,
}

/// A test's stored verdict.
pub(crate) fn find(
    connection: &mut PgConnection,
    project: &Project,
    asked: &TestSelector,
) -> Read<TestLookup<TestVerdict>> {
    let found = test::find(connection, project, asked)?;
    test::then(found, |found| {
        let stored = stored(connection, project, found.ordinal)?;
        Ok(TestVerdict {
            test: found.name,
            stored,
        })
    })
}

/// Id, number and start of a verdict's last run, the test's status in it and its final attempt's offset.
type LastRow = (Uuid, i32, At, i16, Option<i32>);

fn stored(connection: &mut PgConnection, project: &Project, ordinal: i32) -> Read<Option<StoredVerdict>> {
    let found: Option<(String, String, Option<At>, Option<LastRow>)> = verdict::table
        .inner_join(projects::table.on(projects::id.eq(verdict::project_id)))
        .left_join(
            result::table
                .inner_join(
                    run::table.on(run::project_id
                        .eq(result::project_id)
                        .and(run::number.eq(result::run_number))),
                )
                .on(result::project_id
                    .eq(project.id.0)
                    .and(run::project_id.eq(project.id.0))
                    .and(result::test.eq(ordinal))
                    .and(verdict::last_run.eq(result::run_number.nullable()))
                    .and(result::started_at.ge(At(project.visible_from)))),
        )
        .filter(verdict::project_id.eq(project.id.0))
        .filter(projects::id.eq(project.id.0))
        .filter(verdict::test.eq(ordinal))
        .select((
            verdict::status,
            verdict::body,
            projects::evaluated_at,
            (
                run::id,
                run::number,
                run::started_at,
                result::status,
                result::start_offset_ms,
            )
                .nullable(),
        ))
        .first(connection)
        .optional()?;
    let Some((verdict_status, body, evaluated_at, last)) = found else {
        return Ok(None);
    };
    let body = parsed(&body)?;
    let evaluated_at = evaluated_at
        .ok_or_else(|| corrupt("verdict without a time", &body.explanation))?
        .0;
    Ok(Some(StoredVerdict {
        status: word("verdict", &verdict_status)?,
        reason: body.reason,
        explanation: body.explanation,
        signals: body.signals,
        labels: body.labels,
        figures: body.figures,
        evaluated_at,
        last: last.map(last_run).transpose()?,
        evidence: Evidence {
            now: evaluated_at,
            ..body.evidence
        },
    }))
}

fn last_run((id, run_number, started_at, code, offset): LastRow) -> Result<(Timestamp, LastRun), StoreError> {
    let run = LastRun {
        run_id: RunId(id).to_string(),
        run_number,
        status: status(code)?,
        started_at: started_at.0,
    };
    Ok((final_start(started_at, offset), run))
}

fn parsed(body: &str) -> Result<Body, StoreError> {
    serde_json::from_str(body).map_err(|_| corrupt("verdict", body))
}

/// Judges the whole project as of `now` and stores what changed.
pub(crate) fn judge(
    connection: &mut PgConnection,
    project: Uuid,
    stable_branch: &str,
    judge: &dyn Judge,
    now: Timestamp,
) -> Read<()> {
    let from = now.plus_days(-ENGINE_WINDOW_DAYS);
    let history = observation::load(connection, project, stable_branch, from, now)?;
    let mut rows = Rows::default();
    for judgement in judge.judge(&history, now) {
        rows.push(judgement, &history)?;
    }
    for (ordinal, engine) in left_window(connection, project, &rows.tests)? {
        rows.push_unseen(ordinal, engine)?;
    }
    rows.store(connection, project)?;
    diesel::update(projects::table.find(project))
        .set(projects::evaluated_at.eq(At(now)))
        .execute(connection)?;
    Ok(())
}

/// The tests with a verdict from when they had results in the window, and the engine that made it.
fn left_window(connection: &mut PgConnection, project: Uuid, judged: &[i32]) -> Read<HashMap<i32, String>> {
    let rows: Vec<(i32, String)> = verdict::table
        .filter(verdict::project_id.eq(project))
        .filter(verdict::in_window)
        .filter(verdict::test.ne_all(judged))
        .select((verdict::test, verdict::body))
        .load(connection)?;
    Ok(rows
        .into_iter()
        .map(|(ordinal, body)| Ok((ordinal, parsed(&body)?.evidence.engine)))
        .collect::<Result<_, StoreError>>()?)
}

/// Rows of the table, column by column.
#[derive(Debug, Default)]
struct Rows {
    tests: Vec<i32>,
    statuses: Vec<&'static str>,
    in_window: Vec<bool>,
    last_runs: Vec<Option<i32>>,
    bodies: Vec<String>,
}

impl Rows {
    fn push(&mut self, judgement: Judgement, history: &History) -> Result<(), StoreError> {
        let Judgement { verdict, evidence } = judgement;
        let last_run = verdict
            .last_run
            .and_then(|index| history.runs.get(index))
            .map(|seen| seen.run.number);
        let body = Body {
            reason: verdict.reason,
            explanation: verdict.explanation,
            signals: verdict.signals,
            labels: verdict.labels,
            figures: verdict.figures,
            evidence,
        };
        self.push_body(int(verdict.test), verdict.status, true, last_run, body)
    }

    /// The verdict on a test none of whose results lies in the window any more.
    fn push_unseen(&mut self, test: i32, engine: String) -> Result<(), StoreError> {
        let body = Body {
            reason: None,
            explanation: format!("No runs in the last {ENGINE_WINDOW_DAYS} days"),
            signals: Vec::new(),
            labels: Vec::new(),
            figures: Figures {
                time_lost_ms: None,
                flake_score: 0.0,
                flake_rate: 0.0,
                flip_rate: 0.0,
                failure_rate: None,
                broken_probability: None,
                runs_in_window: 0,
                runs_considered: 0,
                failure_streak: 0,
                impact: 0.0,
            },
            evidence: Evidence {
                engine,
                now: Timestamp::from_unix_ms(0),
                window_days: ENGINE_WINDOW_DAYS,
                runs_seen: 0,
                runs_skipped: 0,
                runs_dropped: 0,
                dropped: Vec::new(),
                signals: Vec::new(),
            },
        };
        self.push_body(test, VerdictStatus::InsufficientData, false, None, body)
    }

    fn push_body(
        &mut self,
        test: i32,
        status: VerdictStatus,
        in_window: bool,
        last_run: Option<i32>,
        mut body: Body,
    ) -> Result<(), StoreError> {
        body.evidence.now = Timestamp::from_unix_ms(0);
        let body = serde_json::to_string(&body).map_err(|source| StoreError::Failed {
            doing: "writing verdicts",
            source: Box::new(source),
        })?;
        self.tests.push(test);
        self.statuses.push(status.as_str());
        self.in_window.push(in_window);
        self.last_runs.push(last_run);
        self.bodies.push(storable(&body));
        Ok(())
    }

    /// Stores the rows that differ from what is stored.
    ///
    /// By hand, because the query language has no insert from arrays; one statement whatever the number of tests.
    fn store(&self, connection: &mut PgConnection, project: Uuid) -> QueryResult<usize> {
        diesel::sql_query(
            "INSERT INTO verdict AS stored (project_id, test, status, in_window, last_run, body) \
             SELECT $1, * FROM unnest($2, $3, $4, $5, $6) \
             ON CONFLICT (project_id, test) DO UPDATE \
             SET status = excluded.status, in_window = excluded.in_window, last_run = excluded.last_run, \
                 body = excluded.body \
             WHERE (stored.status, stored.in_window, stored.last_run, stored.body) \
                 IS DISTINCT FROM (excluded.status, excluded.in_window, excluded.last_run, excluded.body)",
        )
        .bind::<SqlUuid, _>(project)
        .bind::<Array<Integer>, _>(&self.tests)
        .bind::<Array<Text>, _>(&self.statuses)
        .bind::<Array<Bool>, _>(&self.in_window)
        .bind::<Array<Nullable<Integer>>, _>(&self.last_runs)
        .bind::<Array<Text>, _>(&self.bodies)
        .execute(connection)
    }
}
