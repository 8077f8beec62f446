//! Stored verdicts.

use assay_domain::{
    id::RunId,
    project::Project,
    store::StoreError,
    test::{FileSelector, TestLookup, TestName, TestSelector},
    timestamp::Timestamp,
    verdict::{Evidence, FailingOn, Figures, Label, LastRun, Signal, StoredVerdict, TestVerdict},
};
use diesel::{
    BoolExpressionMethods, ExpressionMethods, JoinOnDsl, NullableExpressionMethods, PgConnection,
    PgExpressionMethods, QueryDsl, QueryResult, Queryable, RunQueryDsl,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    db::{
        column::{At, corrupt, file_hash, short_hash, status, word},
        period::retention_bounds,
        pool::Read,
        schema::{project as projects, run, test, verdict},
        standbys::in_one_state,
    },
    read::{
        observation::final_start,
        test::{TestKey, by_either_name, find as find_test, map_found},
    },
};

/// The column `body`: the parts of a verdict that no query filters by.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Body {
    pub(crate) reason: Option<Signal>,
    pub(crate) explanation: String,
    pub(crate) signals: Vec<Signal>,
    pub(crate) labels: Vec<Label>,
    /// Absent from verdicts that were stored before the field existed.
    #[serde(default)]
    pub(crate) failing_on: Vec<FailingOn>,
    pub(crate) figures: Figures,
    /// With a `now` of 1970. The time of the judgement is in the project's row, so that passing time alone does not
    /// change this row.
    pub(crate) evidence: Evidence,
}

/// A test's stored verdict: in one statement, or in one transaction where the name is shared or the test has no
/// verdict.
pub(crate) fn find(
    connection: &mut PgConnection,
    project: &Project,
    selector: &TestSelector,
) -> Read<TestLookup<TestVerdict>> {
    by_either_name(selector, |selector| find_named(connection, project, selector))
}

fn find_named(
    connection: &mut PgConnection,
    project: &Project,
    selector: &TestSelector,
) -> Read<TestLookup<TestVerdict>> {
    let mut rows = rows(connection, project, &TestKey::Named(selector))?;
    match (rows.pop(), rows.is_empty()) {
        (None, _) => Ok(TestLookup::Missing),
        (Some(row), true) if row.newest().is_some_and(|newest| newest.0 <= project.visible_to) => {
            let (file_path, stored) = row.stored()?;
            let name = selector.name.clone();
            Ok(TestLookup::Found(TestVerdict {
                test: TestName { name, file_path },
                stored,
            }))
        }
        (Some(_), _) => in_one_state(connection, |connection| {
            let lookup = find_test(connection, project, selector)?;
            map_found(lookup, |test| {
                Ok(TestVerdict {
                    stored: of_test(connection, project, test.ordinal)?,
                    test: test.name,
                })
            })
        }),
    }
}

/// The stored verdict on the test of this number.
pub(crate) fn of_test(
    connection: &mut PgConnection,
    project: &Project,
    ordinal: i32,
) -> Read<Option<StoredVerdict>> {
    let row = rows(connection, project, &TestKey::Numbered(ordinal))?.pop();
    let stored = row.map(|row| Ok::<_, StoreError>(row.stored()?.1)).transpose()?;
    Ok(stored.flatten())
}

/// At most two of the selected tests, with their verdicts. Tests whose newest result is not visible are left out.
/// Whether a test without a verdict has a visible result is unknown here. The statement does not use results: naming
/// their many partitions would double its cost, even without reading them.
fn rows(connection: &mut PgConnection, project: &Project, selector: &TestKey<'_>) -> QueryResult<Vec<Row>> {
    let project_id = project.id.0;
    let (from, to) = retention_bounds(project);
    let query = test::table
        .inner_join(projects::table.on(projects::id.eq(test::project_id)))
        .left_join(
            verdict::table.on(verdict::project_id
                .eq(project_id)
                .and(verdict::test.eq(test::ordinal))),
        )
        .left_join(
            run::table.on(run::project_id
                .eq(project_id)
                .and(verdict::last_run.eq(run::number.nullable()))
                .and(run::started_at.between(from, to))),
        )
        .filter(test::project_id.eq(project_id))
        .filter(projects::id.eq(project_id))
        .filter(verdict::newest.ge(from).or(verdict::newest.is_null()))
        .select((
            (test::file_path, verdict::newest.nullable()),
            projects::evaluated_at,
            (
                verdict::status,
                verdict::body,
                verdict::last_status,
                verdict::last_offset_ms,
            )
                .nullable(),
            (run::id, run::number, run::started_at).nullable(),
        ))
        .limit(2)
        .into_boxed();
    match selector {
        TestKey::Numbered(ordinal) => query.filter(test::ordinal.eq(*ordinal)),
        TestKey::Named(TestSelector { name, file }) => {
            let query = query.filter(test::name_hash.eq(short_hash(name)));
            match file {
                FileSelector::Any => query,
                FileSelector::Exactly(None) => query.filter(test::file_hash.eq(file_hash(None))),
                FileSelector::Exactly(Some(file)) => query.filter(
                    test::file_hash
                        .eq(file_hash(Some(file)))
                        .or(test::file_path.is_not_distinct_from(file)),
                ),
            }
        }
    }
    .load(connection)
}

/// A test with its stored verdict.
#[derive(Debug, Queryable)]
struct Row {
    /// The test's file, and when its newest run started.
    test: (Option<String>, Option<At>),
    /// When the project was judged.
    evaluated_at: Option<At>,
    verdict: Option<StoredRow>,
    last_run: Option<RunRow>,
}

/// Status, body, and the outcome of the last run: the final attempt's status, and the offset of its start from the
/// run's.
type StoredRow = (String, String, Option<i16>, Option<i32>);
/// Id, number and start of a run.
type RunRow = (Uuid, i32, At);

impl Row {
    const fn newest(&self) -> Option<At> {
        self.test.1
    }

    /// The test's file, and its verdict.
    fn stored(self) -> Result<(Option<String>, Option<StoredVerdict>), StoreError> {
        let stored = self
            .verdict
            .map(|row| stored(row, self.evaluated_at, self.last_run));
        Ok((self.test.0, stored.transpose()?))
    }
}

fn stored(
    (verdict_status, body, last_status, last_offset): StoredRow,
    evaluated_at: Option<At>,
    run: Option<RunRow>,
) -> Result<StoredVerdict, StoreError> {
    let body = parsed(&body)?;
    let evaluated_at = evaluated_at
        .ok_or_else(|| corrupt("verdict without a time", &body.explanation))?
        .0;
    let last = run
        .zip(last_status)
        .map(|(run, code)| last_run(run, code, last_offset));
    Ok(StoredVerdict {
        status: word("verdict", &verdict_status)?,
        reason: body.reason,
        explanation: body.explanation,
        signals: body.signals,
        labels: body.labels,
        failing_on: body.failing_on,
        figures: body.figures,
        evaluated_at,
        last: last.transpose()?,
        evidence: Evidence {
            now: evaluated_at,
            ..body.evidence
        },
    })
}

fn last_run(
    (id, run_number, started_at): RunRow,
    code: i16,
    offset: Option<i32>,
) -> Result<(Timestamp, LastRun), StoreError> {
    let run = LastRun {
        run_id: RunId(id).to_string(),
        run_number,
        status: status(code)?,
        started_at: started_at.0,
    };
    Ok((final_start(started_at, offset), run))
}

pub(crate) fn parsed(body: &str) -> Result<Body, StoreError> {
    serde_json::from_str(body).map_err(|_| corrupt("verdict", body))
}

#[cfg(test)]
mod tests {
    use assay_domain::verdict::ENGINE_WINDOW_DAYS;

    use super::*;

    #[test]
    fn a_stored_body_without_a_newer_field_is_read() {
        let body = Body {
            reason: None,
            explanation: String::new(),
            signals: vec![Signal::MassFailure],
            labels: Vec::new(),
            failing_on: Vec::new(),
            figures: Figures::default(),
            evidence: Evidence {
                engine: "1".to_owned(),
                now: Timestamp::from_unix_ms(0),
                window_days: ENGINE_WINDOW_DAYS,
                runs_seen: 3,
                runs_skipped: 0,
                runs_dropped: 0,
                dropped: Vec::new(),
                signals: Vec::new(),
            },
        };
        let body = serde_json::to_string(&body).unwrap();
        let older = body.replace(r#""failing_on":[],"#, "");
        assert!(older != body && parsed(&older).unwrap().failing_on.is_empty());
    }
}
