//! One error signature: its figures, the tests it hits and the runs it occurred in.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use assay_domain::{
    id::RunId,
    project::Project,
    signature::{SignatureDetail, SignatureRun, SignatureTest},
    store::StoreError,
    test::TestName,
    window::Window,
};
use diesel::{ExpressionMethods, PgConnection, QueryDsl, QueryResult, RunQueryDsl};
use uuid::Uuid;

use crate::{
    column::{At, array_agg, corrupt, count, long_count, status},
    period::visible,
    pool::Read,
    schema::{attempt, run},
    signature::{Figures, Latest, counted, latest_messages, named_by, seen},
    test::{names_by_ordinal, unknown_test},
};

/// An error signature over a period, or over everything visible where it did not occur in the period.
pub(crate) fn find(
    connection: &mut PgConnection,
    project: &Project,
    fingerprint: &str,
    window: &Window,
) -> Read<Option<SignatureDetail>> {
    if fingerprint.contains('\0') {
        return Ok(None);
    }
    let Some((ordinal, head)) = named_by(connection, project.id.0, fingerprint)? else {
        return Ok(None);
    };
    let Some(seen) = seen(connection, project, &[ordinal])?.remove(&ordinal) else {
        return Ok(None);
    };
    let mut period = visible(project, window);
    let (from, _) = period;
    let mut hits = hits(connection, project.id.0, ordinal, period)?;
    let window_empty = hits.is_empty();
    if window_empty {
        period = (At(project.visible_from), seen.last_run);
        hits = self::hits(connection, project.id.0, ordinal, period)?;
    }
    let mut ordinals: Vec<i32> = hits.iter().map(|hit| hit.test).collect();
    ordinals.sort_unstable();
    ordinals.dedup();
    let runs = runs_of(connection, project.id.0, &hits, period)?;
    let message = latest_message(connection, project.id.0, ordinal, &hits, &runs)?;
    let names = names_by_ordinal(connection, project.id.0, &ordinals)?;
    let tests = tests(&hits, &names)?;
    let shown = Shown {
        names: names.into_iter().map(shared).collect(),
        outcomes: outcomes(connection, project.id.0, &ordinals, &hits, period)?,
        runs,
    };
    let signature = Figures {
        tests: &tests,
        message,
        runs: u64::try_from(shown.runs.len()).unwrap_or(u64::MAX),
        first_seen: seen.first.0,
        last_seen: hits.iter().map(|hit| hit.latest).max().unwrap_or(seen.last).0,
        is_new: !window_empty && seen.first_run >= from,
    }
    .signature(head);
    let mut runs = hits
        .iter()
        .map(|hit| shown.run(hit))
        .collect::<Result<Vec<SignatureRun>, StoreError>>()?;
    runs.sort_unstable_by(|a, b| {
        let newest_first = (b.started_at, b.run_number).cmp(&(a.started_at, a.run_number));
        newest_first.then_with(|| (&a.test_name, &a.file_path).cmp(&(&b.test_name, &b.file_path)))
    });
    Ok(Some(SignatureDetail {
        signature,
        window_empty,
        tests,
        runs,
    }))
}

/// A test in a run that the signature hit.
#[derive(Debug)]
struct Hit {
    test: i32,
    run_number: i32,
    occurrences: i64,
    latest: At,
}

impl Hit {
    fn latest(&self) -> Latest {
        Latest {
            at: self.latest,
            run_number: self.run_number,
            test: self.test,
        }
    }
}

/// Where the signature occurred in a period, by test and run. An index has it all.
///
/// One row with all occurrences, to be grouped here: Postgres takes three fifths of the time for it that it takes to group
/// them and have a row for each hit.
fn hits(
    connection: &mut PgConnection,
    project: Uuid,
    signature: i32,
    (from, to): (At, At),
) -> QueryResult<Vec<Hit>> {
    type Row = (Option<Vec<i32>>, Option<Vec<i32>>, Option<Vec<At>>);
    let (tests, runs, times): Row = attempt::table
        .filter(attempt::project_id.eq(project))
        .filter(attempt::signature.eq(signature))
        .filter(attempt::started_at.between(from, to))
        .select((
            array_agg(attempt::test),
            array_agg(attempt::run_number),
            array_agg(attempt::occurred_at),
        ))
        .first(connection)?;
    let places = tests.into_iter().flatten().zip(runs.into_iter().flatten());
    let mut occurrences: Vec<((i32, i32), At)> = places.zip(times.into_iter().flatten()).collect();
    occurrences.sort_unstable();
    let hits = occurrences.chunk_by(|one, next| one.0 == next.0);
    let hits = hits.filter_map(|of_one| {
        let ((test, run_number), latest) = *of_one.last()?;
        Some(Hit {
            test,
            run_number,
            occurrences: i64::try_from(of_one.len()).unwrap_or(i64::MAX),
            latest,
        })
    });
    Ok(hits.collect())
}

/// How often a test was tried in a run, less one, and how it ended.
type Outcome = (i32, i16);

/// How the tests of the hits, which were in a period, ended there, by test and run. An index has it all, and it is read as the
/// hits are.
fn outcomes(
    connection: &mut PgConnection,
    project: Uuid,
    tests: &[i32],
    hits: &[Hit],
    (from, to): (At, At),
) -> QueryResult<HashMap<(i32, i32), Option<Outcome>>> {
    type Row = (
        Option<Vec<i32>>,
        Option<Vec<i32>>,
        Option<Vec<i32>>,
        Option<Vec<i16>>,
    );
    let (tests, runs, retries, statuses): Row = attempt::table
        .filter(attempt::project_id.eq(project))
        .filter(attempt::test.eq_any(tests))
        .filter(attempt::started_at.between(from, to))
        .select((
            array_agg(attempt::test),
            array_agg(attempt::run_number),
            array_agg(attempt::retry),
            array_agg(attempt::status),
        ))
        .first(connection)?;
    // Most of what is read are other failures of these tests.
    let mut outcomes: HashMap<(i32, i32), Option<Outcome>> = hits
        .iter()
        .map(|hit| ((hit.test, hit.run_number), None))
        .collect();
    let places = tests.into_iter().flatten().zip(runs.into_iter().flatten());
    let ends = retries.into_iter().flatten().zip(statuses.into_iter().flatten());
    for (place, outcome) in places.zip(ends) {
        if let Some(last) = outcomes.get_mut(&place) {
            *last = Some(outcome).max(*last);
        }
    }
    Ok(outcomes)
}

/// The run of hits.
struct HitRun {
    id: Uuid,
    branch: Option<Arc<str>>,
    started_at: At,
}

/// The runs of the hits, which started in a period, by number.
fn runs_of(
    connection: &mut PgConnection,
    project: Uuid,
    hits: &[Hit],
    (from, to): (At, At),
) -> QueryResult<HashMap<i32, HitRun>> {
    let mut numbers: Vec<i32> = hits.iter().map(|hit| hit.run_number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let rows: Vec<(i32, Uuid, Option<String>, At)> = run::table
        .filter(run::project_id.eq(project))
        .filter(run::number.eq_any(numbers))
        // Follows from the numbers; it keeps Postgres from reading all runs while it does not know how many there are.
        .filter(run::started_at.between(from, to))
        .select((run::number, run::id, run::branch, run::started_at))
        .load(connection)?;
    let run = |(number, id, branch, started_at): (i32, Uuid, Option<String>, At)| {
        let run = HitRun {
            id,
            branch: branch.map(Arc::from),
            started_at,
        };
        (number, run)
    };
    Ok(rows.into_iter().map(run).collect())
}

/// The name and file of a test, which many hits show.
type Name = (Arc<str>, Option<Arc<str>>);

fn shared((test, name): (i32, TestName)) -> (i32, Name) {
    (test, (name.name.into(), name.file_path.map(Arc::from)))
}

/// What the hits are shown with.
struct Shown {
    names: HashMap<i32, Name>,
    outcomes: HashMap<(i32, i32), Option<Outcome>>,
    runs: HashMap<i32, HitRun>,
}

impl Shown {
    fn run(&self, hit: &Hit) -> Result<SignatureRun, StoreError> {
        let (test_name, file_path) = self.names.get(&hit.test).ok_or_else(|| unknown_test(hit.test))?;
        let run = self
            .runs
            .get(&hit.run_number)
            .ok_or_else(|| corrupt("attempt in an unknown run", &hit.run_number.to_string()))?;
        let (last_retry, final_status) = self
            .outcomes
            .get(&(hit.test, hit.run_number))
            .copied()
            .flatten()
            .ok_or_else(|| corrupt("attempt that is none of its test's", &hit.test.to_string()))?;
        Ok(SignatureRun {
            run_id: RunId(run.id),
            run_number: hit.run_number,
            branch: run.branch.clone(),
            started_at: run.started_at.0,
            test_name: Arc::clone(test_name),
            file_path: file_path.clone(),
            attempts: count(last_retry.saturating_add(1))?,
            occurrences: long_count(hit.occurrences)?,
            final_status: status(final_status)?,
        })
    }
}

/// The tests of the hits, most occurrences first.
fn tests(hits: &[Hit], names: &HashMap<i32, TestName>) -> Result<Vec<SignatureTest>, StoreError> {
    let mut counts: HashMap<i32, i64> = HashMap::new();
    for hit in hits {
        *counts.entry(hit.test).or_default() += hit.occurrences;
    }
    counted(counts, names)
}

/// The message of the latest occurrence.
fn latest_message(
    connection: &mut PgConnection,
    project: Uuid,
    signature: i32,
    hits: &[Hit],
    runs: &HashMap<i32, HitRun>,
) -> QueryResult<Option<String>> {
    let latest = hits.iter().map(Hit::latest).max();
    let Some((latest, run)) = latest.and_then(|latest| Some((latest, runs.get(&latest.run_number)?))) else {
        return Ok(None);
    };
    let latest = BTreeMap::from([(signature, latest)]);
    let mut messages = latest_messages(connection, project, &latest, &[run.started_at])?;
    Ok(messages.remove(&signature).flatten())
}
