//! Other implementations of the flaky list: from the result rows in SQL, from the same rows through diesel, and from
//! packs in memory.

use std::{collections::HashMap, hint::black_box, time::Instant};

use anyhow::Context as _;
use assay_domain::{
    attempt::AttemptStatus,
    execution::TestOutcome,
    id::ProjectId,
    observation::{History, RunFacts, RunObservations},
    timestamp::Timestamp,
    verdict::{ENGINE_WINDOW_DAYS, Verdict, VerdictStatus},
};
use assay_flakiness::Engine;
use diesel::{
    ExpressionMethods as _, PgConnection, QueryDsl as _, QueryableByName, RunQueryDsl as _,
    sql_types::{BigInt, Integer, Timestamptz, Uuid as SqlUuid},
};
use time::OffsetDateTime;
use uuid::Uuid;

use super::packs::{self, Packs};
use crate::{
    cases::{FLAKY, STORM, Targets, find},
    clock,
    dataset::Opened,
    generate::Role,
    number::{float, median, ms},
    options::Options,
    program::Program,
    progress::step,
    table::Table,
};

/// The columns that the two slow ways read.
mod tables {
    diesel::table! {
        result (project_id, run_number, test) {
            project_id -> Uuid, started_at -> Timestamptz, duration_ms -> Nullable<BigInt>, run_number -> Integer,
            test -> Integer, attempts -> Integer, status -> SmallInt,
        }
    }
    diesel::table! {
        attempt (project_id, run_number, test, retry) {
            project_id -> Uuid, started_at -> Timestamptz, duration_ms -> Nullable<BigInt>, run_number -> Integer,
            test -> Integer, retry -> Integer, status -> SmallInt,
        }
    }
    diesel::table! {
        run (project_id, number) {
            project_id -> Uuid, number -> Integer, id -> Uuid, started_at -> Timestamptz, branch -> Nullable<Text>,
            tested_revision -> Nullable<Text>, commit_sha -> Nullable<Text>,
        }
    }
}

use tables::{attempt, result, run};

/// The statement of a simple flaky list: failures and changes between a test's neighbouring runs.
const WINDOWS: &str = "\
WITH seen AS ( \
    SELECT test, status IN (1, 2) AS failed, attempts > 1 AND status = 0 AS recovered, \
           lag(status IN (1, 2)) OVER (PARTITION BY test ORDER BY started_at, run_number) AS before \
    FROM result \
    WHERE project_id = $1 AND started_at BETWEEN $2 AND $3 AND status IN (0, 1, 2) \
) \
SELECT test, count(*) AS runs, count(*) FILTER (WHERE failed OR recovered) AS failures, \
       count(*) FILTER (WHERE failed <> before) AS flips \
FROM seen GROUP BY test HAVING count(*) FILTER (WHERE failed OR recovered) > 0 \
ORDER BY flips DESC, failures DESC, test";

#[derive(QueryableByName)]
#[expect(dead_code, reason = "the columns are read as a service would read them")]
struct WindowRow {
    #[diesel(sql_type = Integer)]
    test: i32,
    #[diesel(sql_type = BigInt)]
    runs: i64,
    #[diesel(sql_type = BigInt)]
    failures: i64,
    #[diesel(sql_type = BigInt)]
    flips: i64,
}

pub(super) fn table(
    opened: &Opened,
    server: &Program,
    targets: &Targets,
    options: &Options,
) -> anyhow::Result<Table> {
    let mut table = Table::new(
        "flaky",
        "The flaky list over 14 days, one connection",
        &["Way", "p50 ms", "times the live list"],
    );
    let large = opened.data.large()?;
    let (case, now) = (find(&targets.cases, FLAKY)?, clock::now());
    step("the flaky list: over HTTP");
    let http = server
        .client
        .load(&case.request(&opened.data, &[]), 1, options.time())?;
    let live = http.ms(0.5).context("no flaky list was answered")?;
    let mut row = |way: &str, time: f64| table.row(vec![way.into(), time.into(), (time / live).into()]);
    row("over HTTP, some tests failing", live);
    if let Ok(storm) = find(&targets.cases, STORM) {
        let measured = server
            .client
            .load(&storm.request(&opened.data, &[]), 1, options.time())?;
        row(
            "over HTTP, every test failing now and then",
            measured.ms(0.5).unwrap_or(f64::NAN),
        );
    }

    step("the flaky list: packs");
    let renewed = packs::after_imports(opened, server, case, large.id, options.repeats(15))?;
    row(
        "over HTTP, after an import each time: all packs read again",
        renewed,
    );
    let packs = Packs::measure(opened, large.id, now, options.repeats(15))?;
    row("packs read and decoded, then the engine", packs.read);
    row("the engine alone, packs in memory", packs.engine);
    if let Some(storm) = opened.data.of(Role::Storm) {
        let packs = Packs::measure(opened, storm.id, now, options.repeats(15))?;
        row(
            "the engine alone, packs in memory, every test failing",
            packs.engine,
        );
    }

    step("the flaky list: the SQL way");
    let mut connection = opened.running.connection()?;
    let sql = sql_way(&mut connection, large.id, now, options.repeats(5))?;
    row("window functions over the result rows, in SQL", sql);
    step("the flaky list: rows through diesel");
    let (diesel, verdicts, rows) = diesel_way(&mut connection, large.id, now, options.repeats(3))?;
    row("result rows through diesel, then the engine", diesel);
    table.note(format!(
        "{:.2} million results in the window. The engine over rows and over packs came to {} verdicts ({} of them flaky or broken).",
        float(rows) / 1e6,
        if verdicts == packs.verdicts { "the same" } else { "DIFFERENT" },
        listed(&packs.verdicts),
    ));
    Ok(table)
}

fn listed(verdicts: &[Verdict]) -> usize {
    let listed = |verdict: &&Verdict| matches!(verdict.status, VerdictStatus::Flaky | VerdictStatus::Broken);
    verdicts.iter().filter(listed).count()
}

fn sql_way(
    connection: &mut PgConnection,
    project: ProjectId,
    now: Timestamp,
    times: usize,
) -> anyhow::Result<f64> {
    let mut taken = Vec::new();
    for _ in 0..times {
        let started = Instant::now();
        let rows: Vec<WindowRow> = diesel::sql_query(WINDOWS)
            .bind::<SqlUuid, _>(project.0)
            .bind::<Timestamptz, _>(date(now.plus_days(-ENGINE_WINDOW_DAYS)))
            .bind::<Timestamptz, _>(date(now))
            .load(connection)?;
        taken.push(ms(started.elapsed()));
        log::debug!("{} tests by window functions", rows.len());
    }
    median(taken).context("no time was measured")
}

fn date(at: Timestamp) -> OffsetDateTime {
    at.into()
}

/// The median time, the verdicts and the rows that were read.
fn diesel_way(
    connection: &mut PgConnection,
    project: ProjectId,
    now: Timestamp,
    times: usize,
) -> anyhow::Result<(f64, Vec<Verdict>, usize)> {
    let (engine, mut taken, mut last) = (Engine::default(), Vec::new(), None);
    for _ in 0..times {
        let started = Instant::now();
        let read = history(connection, project.0, now)?;
        black_box(engine.suspects(&read.0, now));
        taken.push(ms(started.elapsed()));
        last = Some(read);
    }
    let (history, rows) = last.context("no row was read")?;
    let taken = median(taken).context("no time was measured")?;
    Ok((taken, engine.verdicts(&history, now), rows))
}

/// An attempt: how it ended, and its milliseconds.
type Tried = (AttemptStatus, Option<u64>);

/// The engine's input from the rows, and how many results there were.
fn history(connection: &mut PgConnection, project: Uuid, now: Timestamp) -> anyhow::Result<(History, usize)> {
    type Run = (
        i32,
        Uuid,
        OffsetDateTime,
        Option<String>,
        Option<String>,
        Option<String>,
    );
    let (from, to) = (date(now.plus_days(-ENGINE_WINDOW_DAYS)), date(now));
    let runs: Vec<Run> = run::table
        .filter(run::project_id.eq(project))
        .filter(run::started_at.between(from, to))
        .order((run::started_at, run::number))
        .select((
            run::number,
            run::id,
            run::started_at,
            run::branch,
            run::tested_revision,
            run::commit_sha,
        ))
        .load(connection)?;
    let tried: Vec<(i32, i32, i16, Option<i64>)> = attempt::table
        .filter(attempt::project_id.eq(project))
        .filter(attempt::started_at.between(from, to))
        .order((attempt::run_number, attempt::test, attempt::retry))
        .select((
            attempt::run_number,
            attempt::test,
            attempt::status,
            attempt::duration_ms,
        ))
        .load(connection)?;
    let results: Vec<(i32, i32, i32, i16, Option<i64>)> = result::table
        .filter(result::project_id.eq(project))
        .filter(result::started_at.between(from, to))
        .select((
            result::run_number,
            result::test,
            result::attempts,
            result::status,
            result::duration_ms,
        ))
        .load(connection)?;
    let mut attempts: HashMap<(i32, i32), Vec<Tried>> = HashMap::new();
    for (run, test, status, duration) in tried {
        attempts
            .entry((run, test))
            .or_default()
            .push((meant(status), measured(duration)));
    }
    let mut places = HashMap::new();
    let mut observed = Vec::with_capacity(runs.len());
    for (number, id, started_at, branch, tested_revision, commit_sha) in runs {
        places.insert(number, observed.len());
        observed.push(RunObservations::of(RunFacts {
            id: id.to_string().into(),
            number,
            started_at: started_at.into(),
            branch: branch.map(Into::into),
            revision: tested_revision.or(commit_sha).map(Into::into),
            variant: "".into(),
        }));
    }
    let (mut tests, count) = (0, results.len());
    for (run, test, rows, status, duration) in results {
        let Some(of) = places.get(&run).and_then(|place| observed.get_mut(*place)) else {
            continue;
        };
        let ordinal = u32::try_from(test)?;
        tests = tests.max(ordinal + 1);
        match attempts.get(&(run, test)) {
            Some(attempts) if rows > 0 => add(of, ordinal, attempts),
            Some(_) | None => add(of, ordinal, &[(meant(status), measured(duration))]),
        }
    }
    let history = History {
        stable_branch: "main".into(),
        tests,
        runs: observed,
    };
    Ok((history, count))
}

fn add(of: &mut RunObservations, test: u32, attempts: &[Tried]) {
    if let Some(outcome) = TestOutcome::of([attempts.iter().copied()]) {
        of.add(test, &outcome);
    }
}

fn measured(duration: Option<i64>) -> Option<u64> {
    duration.and_then(|ms| u64::try_from(ms).ok())
}

/// What a status's number means.
const fn meant(status: i16) -> AttemptStatus {
    match status {
        0 => AttemptStatus::Passed,
        1 => AttemptStatus::Failed,
        2 => AttemptStatus::TimedOut,
        3 => AttemptStatus::Skipped,
        _ => AttemptStatus::Interrupted,
    }
}
