//! One error signature: its figures, the tests it hits and the runs it occurred in.

use std::collections::HashMap;

use assay_domain::{
    id::RunId,
    project::Project,
    signature::{SignatureDetail, SignatureRun, SignatureTest},
    store::StoreError,
    test::TestName,
    window::Window,
};
use diesel::{
    ExpressionMethods, OptionalExtension, PgConnection, QueryDsl, QueryResult, RunQueryDsl,
    dsl::{count_star, max},
};
use uuid::Uuid;

use crate::{
    column::{At, corrupt, count, long_count, status},
    pool::Read,
    schema::{attempt, run},
    signature::{Figures, counted, named_by, seen},
    test::{named, names_by_ordinal},
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
    let from = At(window.from.max(project.visible_from));
    let mut period = (from, At(window.to));
    let mut hits = hits(connection, project.id.0, ordinal, period)?;
    let window_empty = hits.is_empty();
    if window_empty {
        period = (At(project.visible_from), seen.last_run);
        hits = self::hits(connection, project.id.0, ordinal, period)?;
    }
    let mut ordinals: Vec<i32> = hits.iter().map(|hit| hit.test).collect();
    ordinals.sort_unstable();
    ordinals.dedup();
    let message = latest_message(connection, project.id.0, ordinal, &hits)?;
    let shown = Shown {
        names: names_by_ordinal(connection, project.id.0, &ordinals)?,
        outcomes: outcomes(connection, project.id.0, &ordinals, period)?,
        runs: runs_of(connection, project.id.0, &hits, period)?,
    };
    let tests = tests(&hits, &shown.names)?;
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
    started_at: At,
    occurrences: i64,
    latest: At,
}

/// Where the signature occurred in a period. An index has it all.
fn hits(
    connection: &mut PgConnection,
    project: Uuid,
    signature: i32,
    (from, to): (At, At),
) -> Read<Vec<Hit>> {
    type Row = (i32, i32, At, i64, Option<At>);
    let rows: Vec<Row> = attempt::table
        .filter(attempt::project_id.eq(project))
        .filter(attempt::signature.eq(signature))
        .filter(attempt::started_at.between(from, to))
        .group_by((attempt::test, attempt::run_number, attempt::started_at))
        .select((
            attempt::test,
            attempt::run_number,
            attempt::started_at,
            count_star(),
            max(attempt::occurred_at),
        ))
        .load(connection)?;
    let hit = |(test, run_number, started_at, occurrences, latest): Row| Hit {
        test,
        run_number,
        started_at,
        occurrences,
        latest: latest.unwrap_or(started_at),
    };
    Ok(rows.into_iter().map(hit).collect())
}

/// How often each of these tests was tried in each run of a period, and how it ended, by test and run: where a test has
/// rows of its own for its attempts. An index has it all.
fn outcomes(
    connection: &mut PgConnection,
    project: Uuid,
    tests: &[i32],
    (from, to): (At, At),
) -> QueryResult<HashMap<(i32, i32), (i32, i16)>> {
    let rows: Vec<(i32, i32, i32, i16)> = attempt::table
        .filter(attempt::project_id.eq(project))
        .filter(attempt::test.eq_any(tests))
        .filter(attempt::started_at.between(from, to))
        .select((
            attempt::test,
            attempt::run_number,
            attempt::retry,
            attempt::status,
        ))
        .load(connection)?;
    let mut outcomes: HashMap<(i32, i32), (i32, i16)> = HashMap::with_capacity(rows.len() / 2);
    for (test, run_number, retry, status) in rows {
        let outcome = outcomes.entry((test, run_number)).or_insert((retry, status));
        if retry > outcome.0 {
            *outcome = (retry, status);
        }
    }
    Ok(outcomes)
}

/// Ids and branches of the hits' runs, which started in a period, by number.
fn runs_of(
    connection: &mut PgConnection,
    project: Uuid,
    hits: &[Hit],
    (from, to): (At, At),
) -> QueryResult<HashMap<i32, (Uuid, Option<String>)>> {
    let mut numbers: Vec<i32> = hits.iter().map(|hit| hit.run_number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let rows: Vec<(i32, Uuid, Option<String>)> = run::table
        .filter(run::project_id.eq(project))
        .filter(run::number.eq_any(numbers))
        // Follows from the numbers; it keeps Postgres from reading all runs while it does not know how many there are.
        .filter(run::started_at.between(from, to))
        .select((run::number, run::id, run::branch))
        .load(connection)?;
    Ok(rows
        .into_iter()
        .map(|(number, id, branch)| (number, (id, branch)))
        .collect())
}

/// What the hits are shown with.
struct Shown {
    names: HashMap<i32, TestName>,
    outcomes: HashMap<(i32, i32), (i32, i16)>,
    runs: HashMap<i32, (Uuid, Option<String>)>,
}

impl Shown {
    fn run(&self, hit: &Hit) -> Result<SignatureRun, StoreError> {
        let test = named(&self.names, hit.test)?;
        let (run_id, branch) = self
            .runs
            .get(&hit.run_number)
            .ok_or_else(|| corrupt("attempt in an unknown run", &hit.run_number.to_string()))?;
        let (last_retry, final_status) = self
            .outcomes
            .get(&(hit.test, hit.run_number))
            .ok_or_else(|| corrupt("attempt that is none of its test's", &hit.test.to_string()))?;
        Ok(SignatureRun {
            run_id: RunId(*run_id),
            run_number: hit.run_number,
            branch: branch.clone(),
            started_at: hit.started_at.0,
            test_name: test.name,
            file_path: test.file_path,
            attempts: count(last_retry.saturating_add(1))?,
            occurrences: long_count(hit.occurrences)?,
            final_status: status(*final_status)?,
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

/// The message of the latest occurrence; of several at once that of the newest run, then the last test, then the last
/// attempt.
fn latest_message(
    connection: &mut PgConnection,
    project: Uuid,
    signature: i32,
    hits: &[Hit],
) -> QueryResult<Option<String>> {
    let Some(hit) = hits
        .iter()
        .max_by_key(|hit| (hit.latest, hit.run_number, hit.test))
    else {
        return Ok(None);
    };
    let latest: Option<Option<String>> = attempt::table
        .filter(attempt::project_id.eq(project))
        .filter(attempt::test.eq(hit.test))
        .filter(attempt::started_at.eq(hit.started_at))
        .filter(attempt::run_number.eq(hit.run_number))
        .filter(attempt::signature.eq(signature))
        .filter(attempt::occurred_at.eq(hit.latest))
        .order(attempt::retry.desc())
        .select(attempt::message)
        .first(connection)
        .optional()?;
    Ok(latest.flatten())
}
