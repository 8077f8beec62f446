//! `import`: reports of the large project's size into the full database, verdicts included.

mod junit;

use std::time::Instant;

use anyhow::Context as _;
use assay_domain::{
    id::ProjectId,
    observation::History,
    recording::Recording,
    store::Recorder as _,
    timestamp::Timestamp,
    verdict::{Judge, Judgement},
};
use assay_flakiness::Engine;
use assay_ingest::{Arrival, Files, Flags};
use assay_reports::{SourceFile, ci::CiContext};
use assay_repository::Database;
use diesel::PgConnection;

use crate::{
    clock, cluster,
    dataset::{Opened, connect},
    generate::{ProjectPlan, recordings_of},
    number::{float, median},
    options::Options,
    progress::step,
    recorded,
    table::Table,
};

/// The figures of importing one kind of report.
struct Imported {
    seconds: f64,
    statements: usize,
    attempts: usize,
    wal_bytes: f64,
}

/// Imports `times` runs of each kind.
pub(crate) fn import(opened: &Opened, options: &Options, times: u32) -> anyhow::Result<Vec<Table>> {
    let importer = Importer::new(opened, times)?;
    let mut table = Table::new(
        "import",
        "One report into the full database",
        &[
            "Report",
            "tests",
            "seconds",
            "statements",
            "attempt rows",
            "WAL kB",
        ],
    );
    let mut row = |name: &str, tests: usize, imported: &Imported| {
        table.row(vec![
            name.into(),
            float(tests).into(),
            imported.seconds.into(),
            float(imported.statements).into(),
            float(imported.attempts).into(),
            (imported.wal_bytes / 1000.0).into(),
        ]);
    };
    let mut connection = opened.running.connection()?;
    let before = cluster::size(&mut connection)?;

    step("import: whole runs");
    let whole = importer.measure(&mut connection, 1, &Engine::default(), false)?;
    row("a whole run, every verdict judged", importer.tests(), &whole);
    step("import: without verdicts");
    let unjudged = importer.measure(&mut connection, 2, &Nobody, false)?;
    row("the same without verdicts", importer.tests(), &unjudged);
    step("import: a shard of four");
    let shard = importer.measure(&mut connection, 3, &Engine::default(), true)?;
    row("the last of its four shards", importer.tests() / 4, &shard);
    step("import: the same again");
    let (again, tests) = importer.again()?;
    row("the same report again", tests, &again);
    let grew = cluster::size(&mut connection)?.saturating_sub(before);

    step("import: reading a JUnit file");
    let (read, bytes) = importer.reading(options.repeats(11))?;
    table.note(format!(
        "Medians of {times}, each on a new connection, as a command has it. A report's rows are one in `result` for each test, and one in `attempt` for each attempt of those that failed \
         or were retried. Reading a JUnit file of {:.1} MB with the same tests, recognising its errors and preparing it took {:.3} s \
         beside that. The database grew by {:.1} MB in all.",
        bytes / 1e6,
        read,
        float(grew) / 1e6,
    ));
    Ok(vec![table])
}

struct Importer<'a> {
    opened: &'a Opened,
    plan: ProjectPlan,
    project: ProjectId,
    times: u32,
}

impl<'a> Importer<'a> {
    fn new(opened: &'a Opened, times: u32) -> anyhow::Result<Self> {
        Ok(Self {
            opened,
            plan: ProjectPlan::new(&opened.data.shape, 0, opened.data.until),
            project: opened.data.large()?.id,
            times: times.max(1),
        })
    }

    fn tests(&self) -> usize {
        self.plan.tests.len()
    }

    /// The recordings of a run that starts now.
    fn recordings(&self, kind: u64, number: u32, sharded: bool) -> (Vec<Recording>, Timestamp) {
        let now = clock::now();
        // Different from earlier measurements.
        let salt = now.unix_ms().unsigned_abs() * 1000 + kind * 100 + u64::from(number);
        let mut run = self.plan.one_more(now.plus_ms(-1000), salt);
        run.sharded = sharded;
        (recordings_of(&self.plan, &run, salt), now)
    }

    /// Imports runs, of which the last shard counts.
    fn measure(
        &self,
        connection: &mut PgConnection,
        kind: u64,
        judge: &dyn Judge,
        sharded: bool,
    ) -> anyhow::Result<Imported> {
        let (mut seconds, mut wal, mut attempts) = (Vec::new(), Vec::new(), 0);
        // The first one only warms up.
        for number in 0..=self.times {
            // A command imports once: nothing is prepared on its connection.
            let store = self.opened.store(1)?;
            let (recordings, now) = self.recordings(kind, number, sharded);
            let (last, former) = recordings.split_last().context("a run without shards")?;
            for shard in former {
                store.record(self.project, shard, &Nobody, now)?;
            }
            let written = written(connection)?;
            let started = Instant::now();
            store.record(self.project, last, judge, now)?;
            if number > 0 {
                seconds.push(started.elapsed().as_secs_f64());
                wal.push(float(self::written(connection)?.saturating_sub(written)));
            }
            attempts = rows(last);
        }
        let (recordings, now) = self.recordings(kind, self.times + 1, sharded);
        let (last, former) = recordings.split_last().context("a run without shards")?;
        let store = self.opened.store(1)?;
        for shard in former {
            store.record(self.project, shard, &Nobody, now)?;
        }
        let statements = recorded::of_work(&self.opened.running, |url| {
            connect(url, 1)?.record(self.project, last, judge, now)?;
            Ok(())
        })?;
        Ok(Imported {
            seconds: median(seconds).context("nothing was imported")?,
            statements: recorded::count(&statements),
            attempts,
            wal_bytes: median(wal).unwrap_or(f64::NAN),
        })
    }

    /// The seconds of one import, verdicts included.
    fn one(&self, store: &Database, recordings: &[Recording], now: Timestamp) -> anyhow::Result<f64> {
        let started = Instant::now();
        for recording in recordings {
            store.record(self.project, recording, &Engine::default(), now)?;
        }
        Ok(started.elapsed().as_secs_f64())
    }

    /// A report that is already stored.
    fn again(&self) -> anyhow::Result<(Imported, usize)> {
        let store = self.opened.store(1)?;
        let (recordings, now) = self.recordings(4, 0, false);
        let first = recordings.first().context("a run without shards")?;
        store.record(self.project, first, &Engine::default(), now)?;
        let mut seconds = Vec::new();
        for _ in 0..self.times {
            let started = Instant::now();
            store.record(self.project, first, &Engine::default(), clock::now())?;
            seconds.push(started.elapsed().as_secs_f64());
        }
        let statements = recorded::of_work(&self.opened.running, |url| {
            connect(url, 1)?.record(self.project, first, &Engine::default(), now)?;
            Ok(())
        })?;
        let imported = Imported {
            seconds: median(seconds).context("nothing was imported")?,
            statements: recorded::count(&statements),
            attempts: 0,
            wal_bytes: 0.0,
        };
        Ok((imported, first.tests.len()))
    }

    /// The seconds until a JUnit file of a run is ready to be stored, and its bytes.
    fn reading(&self, times: usize) -> anyhow::Result<(f64, f64)> {
        let (recordings, now) = self.recordings(5, 0, false);
        let bytes = junit::text(recordings.first().context("a run without shards")?).into_bytes();
        let length = float(bytes.len());
        let mut seconds = Vec::new();
        for _ in 0..times {
            let files = vec![SourceFile {
                name: "junit.xml".to_owned(),
                bytes: bytes.clone(),
                modified: Some(now),
            }];
            let started = Instant::now();
            let sums = Files::of(&files);
            let report = assay_reports::read(files, &assay_reports::Options::default())?;
            let arrival = Arrival {
                files: sums,
                report,
                flags: &Flags::default(),
                ci: &CiContext::default(),
                job_started_at: None,
            };
            let prepared = assay_ingest::prepare(arrival, now)?;
            seconds.push(started.elapsed().as_secs_f64());
            log::debug!("{} tests read", prepared.recording.tests.len());
        }
        Ok((median(seconds).context("nothing was read")?, length))
    }
}

/// Attempts that have rows of their own.
fn rows(recording: &Recording) -> usize {
    let told = recording.tests.iter().filter(|test| {
        test.attempts.len() > 1
            || test
                .attempts
                .iter()
                .any(|attempt| attempt.attempt.status.is_failure())
    });
    told.map(|test| test.attempts.len()).sum()
}

/// How many bytes of write-ahead log there ever were.
fn written(connection: &mut PgConnection) -> anyhow::Result<u64> {
    cluster::number(
        connection,
        "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint AS value",
    )
}

/// Judges nothing.
struct Nobody;

impl Judge for Nobody {
    fn judge(&self, _: &History, _: Timestamp) -> Vec<Judgement> {
        Vec::new()
    }
}

/// The seconds of one whole import, for the growth.
pub(crate) fn seconds(opened: &Opened, times: u32) -> anyhow::Result<f64> {
    let mut connection = opened.running.connection()?;
    Ok(Importer::new(opened, times)?
        .measure(&mut connection, 6, &Engine::default(), false)?
        .seconds)
}

/// The seconds of imports, by name, for data sets of other shapes.
pub(crate) fn shapes(opened: &Opened, times: u32) -> anyhow::Result<Vec<(String, f64)>> {
    let importer = Importer::new(opened, times)?;
    step("import: whole runs");
    let mut figures = vec![("import of a run, s".to_owned(), seconds(opened, times)?)];
    step("import: on one connection");
    let store = opened.store(1)?;
    let mut on_one = Vec::new();
    // Postgres makes a plan for all values after five that it made for some.
    for number in 0..times.max(7) {
        let (recordings, now) = importer.recordings(7, number, false);
        on_one.push(importer.one(&store, &recordings, now)?);
    }
    figures.extend(on_one.last().map(|last| {
        (
            "the same, the last of many on one connection, s".to_owned(),
            *last,
        )
    }));
    step("import: older than the window");
    let mut old = Vec::new();
    for number in 0..times {
        let store = opened.store(1)?;
        let (mut recordings, now) = importer.recordings(8, number, false);
        for recording in &mut recordings {
            recording.started_at = recording.started_at.plus_days(-OLD_DAYS);
            recording.context.branch = Some(format!("old-{}-{number}", now.unix_ms()));
        }
        old.push(importer.one(&store, &recordings, now)?);
    }
    figures.extend(median(old).map(|seconds| {
        (
            format!("import of a run of {OLD_DAYS} days ago, on a new branch, s"),
            seconds,
        )
    }));
    Ok(figures)
}

/// Age in days of a report before the engine's window.
const OLD_DAYS: i64 = 40;
