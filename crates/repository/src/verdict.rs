//! Stored verdicts.

mod last;
mod rows;

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap, HashSet},
};

use assay_domain::{
    cause::VerdictTag,
    id::RunId,
    observation::History,
    project::Project,
    recording::{VerdictChange, VerdictChanges},
    store::StoreError,
    test::{FileSelector, TestLookup, TestName, TestOrdinal, TestSelector},
    timestamp::Timestamp,
    verdict::{
        ENGINE_WINDOW_DAYS, Evidence, FailingOn, Figures, Judge, Label, LastRun, Signal, StoredVerdict,
        TestVerdict, VerdictStatus,
    },
};
use diesel::{
    BoolExpressionMethods, ExpressionMethods, JoinOnDsl, NullableExpressionMethods, PgConnection, QueryDsl,
    QueryResult, Queryable, RunQueryDsl,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use rows::Rows;

use crate::{
    column::{At, corrupt, file_hash, int, short_hash, status, word},
    observation::{self, Ended, final_start},
    period::ever_visible,
    pool::Read,
    replica::in_one_state,
    schema::{project as projects, run, test, verdict},
    test::{Asked, find as find_test, named, names_of_many, then},
};

/// The column `body`: the parts of a verdict that no query filters by.
#[derive(Debug, Serialize, Deserialize)]
struct Body {
    reason: Option<Signal>,
    explanation: String,
    signals: Vec<Signal>,
    labels: Vec<Label>,
    /// Absent from verdicts that were stored before the field existed.
    #[serde(default)]
    failing_on: Vec<FailingOn>,
    figures: Figures,
    /// With a `now` of 1970. The time of the judgement is in the project's row, so that passing time alone does not
    /// change this row.
    evidence: Evidence,
}

/// A test's stored verdict: in one statement, or in one transaction where the name is shared or the test has no
/// verdict.
pub(crate) fn find(
    connection: &mut PgConnection,
    project: &Project,
    asked: &TestSelector,
) -> Read<TestLookup<TestVerdict>> {
    let mut rows = rows(connection, project, &Asked::Named(asked))?;
    match (rows.pop(), rows.is_empty()) {
        (None, _) => Ok(TestLookup::Missing),
        (Some(row), true) if row.newest().is_some_and(|newest| newest.0 <= project.visible_to) => {
            let (file_path, stored) = row.stored()?;
            let name = asked.name.clone();
            Ok(TestLookup::Found(TestVerdict {
                test: TestName { name, file_path },
                stored,
            }))
        }
        (Some(_), _) => in_one_state(connection, |connection| {
            let found = find_test(connection, project, asked)?;
            then(found, |found| {
                Ok(TestVerdict {
                    stored: of_test(connection, project, found.ordinal)?,
                    test: found.name,
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
    let row = rows(connection, project, &Asked::Numbered(ordinal))?.pop();
    let stored = row.map(|row| Ok::<_, StoreError>(row.stored()?.1)).transpose()?;
    Ok(stored.flatten())
}

/// At most two of the selected tests, with their verdicts. Tests whose newest result is not visible are left out.
/// Whether a test without a verdict has a visible result is unknown here. The statement does not use results: naming
/// their many partitions would double its cost, even without reading them.
fn rows(connection: &mut PgConnection, project: &Project, asked: &Asked<'_>) -> QueryResult<Vec<Row>> {
    let project_id = project.id.0;
    let (from, to) = ever_visible(project);
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
    match asked {
        Asked::Numbered(ordinal) => query.filter(test::ordinal.eq(*ordinal)),
        Asked::Named(TestSelector { name, file }) => {
            let query = query.filter(test::name_hash.eq(short_hash(name)));
            match file {
                FileSelector::Any => query,
                FileSelector::Exactly(file) => query.filter(test::file_hash.eq(file_hash(file.as_deref()))),
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

/// The verdicts on these tests in short, in the same order.
pub(crate) fn tags(
    connection: &mut PgConnection,
    project: &Project,
    tests: &[TestOrdinal],
) -> Read<Vec<Option<VerdictTag>>> {
    let ordinals: Vec<i32> = tests.iter().map(|test| int(*test)).collect();
    let (from, to) = ever_visible(project);
    let rows: Vec<(i32, String, String, Option<At>)> = verdict::table
        .inner_join(projects::table.on(projects::id.eq(verdict::project_id)))
        .filter(verdict::project_id.eq(project.id.0))
        .filter(projects::id.eq(project.id.0))
        .filter(verdict::test.eq_any(&ordinals))
        .filter(verdict::newest.between(from, to))
        .select((
            verdict::test,
            verdict::status,
            verdict::body,
            projects::evaluated_at,
        ))
        .load(connection)?;
    let mut tags = HashMap::with_capacity(rows.len());
    for (test, verdict_status, body, evaluated_at) in rows {
        let body = parsed(&body)?;
        let evaluated_at =
            evaluated_at.ok_or_else(|| corrupt("verdict without a time", &body.explanation))?;
        let tag = VerdictTag {
            status: word("verdict", &verdict_status)?,
            status_reason: body.reason,
            evaluated_at: evaluated_at.0,
        };
        tags.insert(test, tag);
    }
    Ok(ordinals.iter().map(|test| tags.get(test).copied()).collect())
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

fn parsed(body: &str) -> Result<Body, StoreError> {
    serde_json::from_str(body).map_err(|_| corrupt("verdict", body))
}

/// The rows that an import wrote, so that earlier verdicts do not cover them.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// The run.
    pub(crate) run: Option<i32>,
    /// How each of its tests ended in it.
    pub(crate) ended: HashMap<i32, Ended>,
    /// Its tests, those included that it has no longer.
    pub(crate) tests: BTreeSet<i32>,
    /// Whether no stored row can be reused.
    pub(crate) all: bool,
}

impl Touched {
    /// Takes nothing over from stored verdicts.
    pub(crate) fn everything() -> Self {
        Self {
            all: true,
            ..Self::default()
        }
    }
}

/// Judges the whole project as of `now` and stores what changed. The caller holds the project's lock.
pub(crate) fn judge(
    connection: &mut PgConnection,
    project: Uuid,
    judge: &dyn Judge,
    now: Timestamp,
    touched: &Touched,
) -> Read<VerdictUpdate> {
    let history = observation::load(connection, project, now.plus_days(-ENGINE_WINDOW_DAYS), now)?;
    let update = ProjectJudgement::of(history, judge, now)?.compare(connection, project, touched)?;
    update.store(connection, project)?;
    Ok(update)
}

/// What the engine says of a state of a project. Made without the database, so that no lock is held meanwhile.
pub(crate) struct ProjectJudgement {
    now: Timestamp,
    history: History,
    rows: Rows,
}

impl ProjectJudgement {
    /// Judges a history as of `now`.
    pub(crate) fn of(history: History, judge: &dyn Judge, now: Timestamp) -> Result<Self, StoreError> {
        let mut rows = Rows::default();
        for judgement in judge.judge(&history, now) {
            rows.push(judgement, &history)?;
        }
        Ok(Self { now, history, rows })
    }

    /// Compares the judgements with the verdicts that are stored. Reads only.
    pub(crate) fn compare(
        self,
        connection: &mut PgConnection,
        project: Uuid,
        touched: &Touched,
    ) -> Read<VerdictUpdate> {
        let Self {
            now,
            history,
            mut rows,
        } = self;
        let stored = last::stored(connection, project)?;
        last::complete(connection, project, &mut rows, &history, &stored, touched)?;
        // The tests with a verdict but without a result in the window, as far as that is new or an import concerns them.
        let judged: HashSet<i32> = rows.tests.iter().copied().collect();
        let unseen = stored.iter().filter(|(test, stored)| {
            (stored.in_window || touched.all || touched.tests.contains(test)) && !judged.contains(test)
        });
        let unseen = unseen.map(|(test, _)| *test).collect();
        for unseen in last::unseen(connection, project, unseen)? {
            let engine = parsed(&unseen.body)?.evidence.engine;
            rows.push_unseen(unseen.test, engine, unseen.newest)?;
        }
        let before = |test| {
            let stored = stored.get(test);
            stored.map_or(VerdictStatus::InsufficientData, |stored| stored.status)
        };
        let changes = rows.tests.iter().zip(&rows.statuses);
        let changes = changes.map(|(test, to)| (*test, before(test), *to));
        Ok(VerdictUpdate {
            now,
            changes: changes.filter(|(_, from, to)| from != to).collect(),
            rows: rows.without_stored(connection, project)?,
        })
    }
}

/// What a judgement changes.
pub(crate) struct VerdictUpdate {
    now: Timestamp,
    /// The verdicts of which anything is not as it is stored.
    rows: Rows,
    /// The tests with another verdict: what it was, and what it is.
    changes: Vec<(i32, VerdictStatus, VerdictStatus)>,
}

impl VerdictUpdate {
    /// Stores what changed. The caller holds the project's lock, and what was judged and compared is still what is stored.
    pub(crate) fn store(&self, connection: &mut PgConnection, project: Uuid) -> QueryResult<()> {
        self.rows.store(connection, project)?;
        diesel::update(projects::table.find(project))
            .set((
                projects::evaluated_at.eq(At(self.now)),
                projects::judged.eq(projects::observed.nullable()),
            ))
            .execute(connection)?;
        Ok(())
    }

    /// The changed verdicts with the names of their tests.
    pub(crate) fn changes(&self, connection: &mut PgConnection, project: Uuid) -> Read<VerdictChanges> {
        let mut changes = self.changes.clone();
        let total = u64::try_from(changes.len()).unwrap_or(u64::MAX);
        changes.sort_unstable_by_key(|(test, from, to)| (Reverse((*to, *from)), *test));
        changes.truncate(VerdictChanges::MOST_LISTED);
        if changes.is_empty() {
            return Ok(VerdictChanges::default());
        }
        let ordinals: Vec<i32> = changes.iter().map(|(test, ..)| *test).collect();
        let names = names_of_many(connection, project, &ordinals)?;
        let change = |(test, from, to): (i32, VerdictStatus, VerdictStatus)| {
            let name = named(&names, test)?;
            Ok(VerdictChange {
                test_name: name.name,
                file_path: name.file_path,
                from,
                to,
            })
        };
        let mut listed = changes
            .into_iter()
            .map(change)
            .collect::<Result<Vec<_>, StoreError>>()?;
        listed.sort_by(|a, b| {
            (b.to, b.from)
                .cmp(&(a.to, a.from))
                .then_with(|| (&a.test_name, &a.file_path).cmp(&(&b.test_name, &b.file_path)))
        });
        Ok(VerdictChanges { total, listed })
    }
}

/// Judges the whole project again, from its results and packs alone, and returns how many verdicts changed.
pub(crate) fn rebuild(
    connection: &mut PgConnection,
    project: Uuid,
    engine: &dyn Judge,
    now: Timestamp,
) -> Read<u64> {
    let update = judge(connection, project, engine, now, &Touched::everything())?;
    Ok(u64::try_from(update.rows.tests.len()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_of_before_a_field_existed_is_read() {
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
