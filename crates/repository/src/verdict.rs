//! Stored verdicts.

mod last;
mod rows;

use std::collections::{BTreeSet, HashMap, HashSet};

use assay_domain::{
    id::RunId,
    project::Project,
    store::StoreError,
    test::{FileSelector, TestLookup, TestName, TestSelector},
    timestamp::Timestamp,
    verdict::{
        ENGINE_WINDOW_DAYS, FailingOn, Figures, Judge, Label, LastRun, Signal, StoredEvidence, StoredVerdict,
        TestVerdict,
    },
};
use diesel::{
    BoolExpressionMethods, ExpressionMethods, JoinOnDsl, NullableExpressionMethods, PgConnection, QueryDsl,
    RunQueryDsl,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use rows::Rows;

use crate::{
    column::{At, corrupt, file_hash, short_hash, status, word},
    observation::{self, Ended, final_start},
    pool::Read,
    schema::{project as projects, run, test, verdict},
    test::{files, seen},
};

/// What the column `body` holds: all of a verdict that nothing searches for.
#[derive(Debug, Serialize, Deserialize)]
struct Body<E> {
    reason: Option<Signal>,
    explanation: String,
    signals: Vec<Signal>,
    labels: Vec<Label>,
    /// Absent from verdicts that were stored before the field existed.
    #[serde(default)]
    failing_on: Vec<FailingOn>,
    figures: Figures,
    /// With a `now` of 1970: the time of the judgement is the project's, so that a row stays as it is while
    /// nothing but time goes by. The last of all, as its lists are the last of it: [`parsed`] relies on that.
    evidence: E,
}

/// A test's stored verdict, in one statement unless the name is ambiguous or the test has no verdict.
pub(crate) fn find(
    connection: &mut PgConnection,
    project: &Project,
    asked: &TestSelector,
) -> Read<TestLookup<TestVerdict>> {
    let project_id = project.id.0;
    let candidates = test::table
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
                .and(run::started_at.ge(At(project.visible_from)))),
        )
        .filter(test::project_id.eq(project_id))
        .filter(projects::id.eq(project_id))
        .filter(test::name_hash.eq(short_hash(&asked.name)))
        .filter(
            verdict::newest
                .ge(At(project.visible_from))
                .or(verdict::newest.is_null()),
        )
        .select((
            (test::ordinal, test::file_path, verdict::newest.nullable()),
            projects::evaluated_at,
            (
                verdict::status,
                verdict::body,
                verdict::last_status,
                verdict::last_offset_ms,
            )
                .nullable(),
            (run::id, run::number, run::started_at).nullable(),
        ));
    let mut rows: Vec<Row> = match &asked.file {
        FileSelector::Any => candidates.load(connection)?,
        FileSelector::Exactly(file) => candidates
            .filter(test::file_hash.eq(file_hash(file.as_deref())))
            .load(connection)?,
    };
    // Results are looked at for a test without a verdict only: a statement that names their many partitions costs
    // about as much as all the rest, whether it comes to read them or not.
    let unsure: Vec<i32> = rows
        .iter()
        .filter(|((.., newest), ..)| newest.is_none())
        .map(|((ordinal, ..), ..)| *ordinal)
        .collect();
    let seen = seen(connection, project, &unsure)?;
    rows.retain(|((ordinal, _, newest), ..)| newest.is_some() || seen.contains(ordinal));
    match (rows.pop(), rows.is_empty()) {
        (None, _) => Ok(TestLookup::Missing),
        (Some(row), true) => Ok(TestLookup::Found(found(row, asked)?)),
        (Some(_), false) => Ok(TestLookup::Ambiguous(files(connection, project, asked)?)),
    }
}

/// The test's number, its file and when its newest run started, when the project was judged, what is stored of its verdict, and the verdict's last run.
type Row = (
    (i32, Option<String>, Option<At>),
    Option<At>,
    Option<StoredRow>,
    Option<RunRow>,
);
/// Status, body, and how the last run ended: the final attempt's status, and its start from the run's.
type StoredRow = (String, String, Option<i16>, Option<i32>);
/// Id, number and start of a run.
type RunRow = (Uuid, i32, At);

fn found(
    ((_, file_path, _), evaluated_at, row, run): Row,
    asked: &TestSelector,
) -> Result<TestVerdict, StoreError> {
    let stored = row.map(|row| stored(row, evaluated_at, run)).transpose()?;
    Ok(TestVerdict {
        test: TestName {
            name: asked.name.clone(),
            file_path,
        },
        stored,
    })
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
        evidence: StoredEvidence {
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

/// A body, with the lists of its evidence unread.
///
/// They end it, and are most of it. Where they begin is found by their first key: within a text of JSON its quotes would be
/// escaped, and what comes before has no such key.
fn parsed(body: &str) -> Result<Body<StoredEvidence>, StoreError> {
    const LISTS: &str = ",\"dropped\":";
    const END: &str = "}}";
    let split = || {
        let start = body.find(LISTS)?;
        let lists = body.get(start + 1..)?.strip_suffix(END)?;
        let head = format!("{}{END}", body.get(..start)?);
        let mut parsed: Body<StoredEvidence> = serde_json::from_str(&head).ok()?;
        parsed.evidence.lists = lists.into();
        Some(parsed)
    };
    split().ok_or_else(|| corrupt("verdict", body))
}

/// What an import wrote, of which nothing stored before tells any more.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// The run.
    pub(crate) run: Option<i32>,
    /// How each of its tests ended in it.
    pub(crate) ended: HashMap<i32, Ended>,
    /// Its tests, those included that it has no longer.
    pub(crate) tests: BTreeSet<i32>,
    /// Whether nothing at all is to be taken over.
    pub(crate) all: bool,
}

/// Judges the whole project as of `now` and stores what changed.
pub(crate) fn judge(
    connection: &mut PgConnection,
    project: Uuid,
    judge: &dyn Judge,
    now: Timestamp,
    touched: &Touched,
) -> Read<usize> {
    let from = now.plus_days(-ENGINE_WINDOW_DAYS);
    let history = observation::load(connection, project, from, now)?;
    let mut rows = Rows::default();
    for judgement in judge.judge(&history, now) {
        rows.push(judgement, &history)?;
    }
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
    let changed = rows.store(connection, project)?;
    diesel::update(projects::table.find(project))
        .set(projects::evaluated_at.eq(At(now)))
        .execute(connection)?;
    Ok(changed)
}

/// Judges the whole project anew, from its results and packs alone, and says how many verdicts changed.
pub(crate) fn rebuild(
    connection: &mut PgConnection,
    project: Uuid,
    engine: &dyn Judge,
    now: Timestamp,
) -> Read<u64> {
    let touched = Touched {
        all: true,
        ..Touched::default()
    };
    let changed = judge(connection, project, engine, now, &touched)?;
    Ok(u64::try_from(changed).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use assay_domain::verdict::{DroppedRun, Evidence};

    use super::*;

    #[test]
    fn a_body_is_split_where_its_lists_begin_whatever_its_texts_say() {
        let now = Timestamp::from_unix_ms(0);
        let evidence = Evidence {
            engine: r#"1,"dropped":[]}}"#.into(),
            now,
            window_days: ENGINE_WINDOW_DAYS,
            runs_seen: 3,
            runs_skipped: 0,
            runs_dropped: 1,
            dropped: vec![DroppedRun {
                run_id: r#"","dropped":}}"#.into(),
                beta: 0.5,
            }],
            signals: Vec::new(),
        };
        let body = serde_json::to_string(&Body {
            reason: None,
            explanation: r#"it said ,"dropped":[1]}}"#.into(),
            signals: vec![Signal::MassFailure],
            labels: Vec::new(),
            failing_on: Vec::new(),
            figures: Figures::default(),
            evidence: evidence.clone(),
        })
        .unwrap();
        let read = parsed(&body).unwrap();
        assert_eq!(read.explanation, r#"it said ,"dropped":[1]}}"#);
        let stored = read.evidence;
        assert_eq!((&stored.engine, stored.runs_dropped), (&evidence.engine, 1));
        let lists: serde_json::Value = serde_json::from_str(&format!("{{{}}}", stored.lists)).unwrap();
        assert_eq!(lists["dropped"], serde_json::to_value(&evidence.dropped).unwrap());
        assert!(lists["signals"].as_array().unwrap().is_empty());
        assert!(parsed(&body.replace("dropped", "lost")).is_err());
        let older = body.replace(r#""failing_on":[],"#, "");
        assert!(older != body && parsed(&older).unwrap().failing_on.is_empty());
    }
}
