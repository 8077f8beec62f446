//! Stored verdicts.

use std::collections::HashMap;

use assay_domain::{
    id::RunId,
    project::Project,
    store::StoreError,
    test::{FileSelector, TestLookup, TestName, TestSelector},
    timestamp::Timestamp,
    verdict::{Evidence, Figures, Label, LastRun, Signal, SignalEvidence, StoredVerdict, TestVerdict},
};
use diesel::{
    prelude::*,
    sql_types::{BigInt, Double, Integer, Nullable, SmallInt, Text},
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    db::{
        column::{At, corrupt, file_hash, optional_word, short_hash, status, word},
        period::retention_bounds,
        pool::{Read, in_one_state},
        schema::{project as projects, run, test, verdict_block, verdict_evidence},
        static_sql::static_sql,
    },
    read::{
        observation::final_start,
        test::{TestKey, by_either_name, find as find_test},
        verdict_block::{block_of_test, element_of_test, newest_run},
    },
};

/// An element of the column `bodies`: the parts of a verdict that tests have in common.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Body {
    pub(crate) explanation: String,
    pub(crate) signals: Vec<Signal>,
    pub(crate) labels: Vec<Label>,
    /// Without the figures that have columns.
    pub(crate) figures: Figures,
    /// Without the runs of its signals, and with a `now` of 1970. The time of the judgement is in the project's row, so
    /// that passing time alone changes no block.
    pub(crate) evidence: Evidence,
    /// How many of the test's runs in `verdict_evidence` belong to each signal.
    pub(crate) named_runs: Vec<usize>,
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
        (Some(row), true)
            if !row.has_joins && row.newest().is_some_and(|newest| newest.0 <= project.visible_to) =>
        {
            let (file_path, stored) = row.stored(connection, project)?;
            let name = selector.name.clone();
            Ok(TestLookup::Found(TestVerdict {
                test: TestName { name, file_path },
                stored,
            }))
        }
        (Some(_), _) => in_one_state(connection, |connection| {
            let lookup = find_test(connection, project, selector)?;
            lookup.try_map(|test| {
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
    match rows(connection, project, &TestKey::Numbered(ordinal))?.pop() {
        Some(row) => Ok(row.stored(connection, project)?.1),
        None => Ok(None),
    }
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
            verdict_block::table.on(verdict_block::project_id
                .eq(project_id)
                .and(verdict_block::block.eq(block_of_test()))),
        )
        .left_join(
            verdict_evidence::table.on(verdict_evidence::project_id
                .eq(project_id)
                .and(verdict_evidence::test.eq(test::ordinal))),
        )
        .left_join(
            run::table.on(run::project_id
                .eq(project_id)
                .and(run::number.nullable().eq(element_of_test!("last_run", Integer)))
                .and(run::started_at.between(from, to))),
        )
        .filter(test::project_id.eq(project_id))
        .filter(projects::id.eq(project_id))
        .filter(newest_run().ge(from).or(newest_run().is_null()))
        .select((
            (test::file_path, newest_run()),
            projects::evaluated_at,
            projects::joined_tests.is_not_null(),
            (
                element_of_test!("status", Text),
                element_of_test!("reason", Text),
                static_sql::<Nullable<Text>>(
                    "verdict_block.bodies[verdict_block.body[test.ordinal % 128 + 1]]",
                ),
            ),
            (
                element_of_test!("time_lost_ms", BigInt),
                element_of_test!("flake_score", Double),
                element_of_test!("flake_rate", Double),
                element_of_test!("broken_probability", Double),
                element_of_test!("impact", Double),
            ),
            (
                element_of_test!("last_status", SmallInt),
                element_of_test!("last_offset_ms", Integer),
            ),
            (verdict_evidence::run_numbers, verdict_evidence::failing_on).nullable(),
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
    /// Whether tests of the project are joined.
    has_joins: bool,
    /// Status, reason and body of the verdict. The status is null without a verdict.
    verdict: (Option<String>, Option<String>, Option<String>),
    own: OwnFiguresRow,
    /// The outcome of the last run: the final attempt's status, and the offset of its start from the run's.
    outcome: (Option<i16>, Option<i32>),
    evidence: Option<(Vec<i32>, String)>,
    last_run: Option<RunRow>,
}

/// The elements of the columns of [`super::verdict_block::OwnFigures`].
type OwnFiguresRow = (Option<i64>, Option<f64>, Option<f64>, Option<f64>, Option<f64>);
/// Id, number and start of a run.
type RunRow = (Uuid, i32, At);

impl Row {
    const fn newest(&self) -> Option<At> {
        self.test.1
    }

    /// The test's file, and its verdict.
    fn stored(
        self,
        connection: &mut PgConnection,
        project: &Project,
    ) -> Read<(Option<String>, Option<StoredVerdict>)> {
        let (Some(status), reason, Some(body)) = self.verdict else {
            return Ok((self.test.0, None));
        };
        let unsound = || corrupt("verdict", &body);
        let Body {
            explanation,
            signals,
            labels,
            figures,
            evidence,
            named_runs,
        } = parsed(&body)?;
        let (run_numbers, failing_on) = self.evidence.unwrap_or_default();
        let runs = run_ids(connection, project, &run_numbers)?;
        let failing_on = match failing_on.as_str() {
            "" => Vec::new(),
            listed => serde_json::from_str(listed).map_err(|_| corrupt("verdict", listed))?,
        };
        let evaluated_at = self
            .evaluated_at
            .ok_or_else(|| corrupt("verdict without a time", &body))?
            .0;
        let (time_lost_ms, flake_score, flake_rate, broken_probability, impact) = self.own;
        let (last_status, last_offset) = self.outcome;
        let last = self.last_run.zip(last_status);
        let last = last.map(|(run, code)| last_run(run, code, last_offset));
        let stored = StoredVerdict {
            status: word("verdict", &status)?,
            reason: optional_word("signal", reason.as_deref())?,
            explanation,
            signals,
            labels,
            failing_on,
            figures: Figures {
                time_lost_ms: time_lost_ms.map(i64::cast_unsigned),
                flake_score: flake_score.ok_or_else(unsound)?,
                flake_rate: flake_rate.ok_or_else(unsound)?,
                broken_probability,
                impact: impact.ok_or_else(unsound)?,
                ..figures
            },
            evaluated_at,
            last: last.transpose()?,
            evidence: Evidence {
                now: evaluated_at,
                signals: with_runs(evidence.signals, &named_runs, &runs).ok_or_else(unsound)?,
                ..evidence
            },
        };
        Ok((self.test.0, Some(stored)))
    }
}

/// The ids of the runs with these numbers; none of a run that is gone.
fn run_ids(
    connection: &mut PgConnection,
    project: &Project,
    numbers: &[i32],
) -> QueryResult<Vec<Option<Uuid>>> {
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    let ids: HashMap<i32, Uuid> = run::table
        .filter(run::project_id.eq(project.id.0))
        .filter(run::number.eq_any(numbers))
        .select((run::number, run::id))
        .load(connection)?
        .into_iter()
        .collect();
    Ok(numbers.iter().map(|number| ids.get(number).copied()).collect())
}

/// The signals with their runs, of which each names some. `None` if these are not all of the runs.
fn with_runs(
    mut signals: Vec<SignalEvidence>,
    named: &[usize],
    mut runs: &[Option<Uuid>],
) -> Option<Vec<SignalEvidence>> {
    for (signal, named) in signals.iter_mut().zip(named) {
        let (own, others) = runs.split_at_checked(*named)?;
        signal.runs = own.iter().flatten().map(|run| RunId(*run).to_string()).collect();
        runs = others;
    }
    runs.is_empty().then_some(signals)
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
