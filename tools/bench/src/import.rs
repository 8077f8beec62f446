//! `import`: imports reports of the large project's size into the full database, including verdicts.

use std::time::Instant;

use anyhow::Context as _;
use assay_domain::{
    id::ProjectId, recording::Recording, store::Recorder as _, timestamp::Timestamp, verdict::Judge,
};
use assay_flakiness::Engine;
use diesel::PgConnection;

use crate::{
    clock, cluster,
    dataset::{OpenDataset, connect},
    generate::{NoJudge, ProjectPlan, recordings},
    number::{float, median},
    statements,
    step::step,
    table::Table,
};

/// The figures of importing one kind of report.
struct ImportFigures {
    seconds: f64,
    statements: usize,
    wal_bytes: f64,
}

/// Imports `times` runs of each kind.
pub(crate) fn import(opened: &OpenDataset, times: u32) -> anyhow::Result<Table> {
    let importer = Importer::new(opened, times)?;
    let mut table = Table::new(
        "One report into the full database",
        &["Report", "tests", "seconds", "statements", "WAL kB"],
    );
    let mut connection = opened.running.connection()?;
    let before = cluster::size(&mut connection)?;

    let (engine, tests) = (Engine::default(), importer.tests());
    let reports: [(&str, &dyn Judge, Kind, usize); 4] = [
        ("a whole run, every verdict judged", &engine, Kind::Whole, tests),
        ("the same without verdicts", &NoJudge, Kind::Whole, tests),
        ("the last of its four shards", &engine, Kind::Shard, tests / 4),
        ("the same report again", &engine, Kind::Again, tests),
    ];
    for (salt, (name, judge, kind, tests)) in (1..).zip(reports) {
        step(&format!("import: {name}"));
        let imported = importer.measure(&mut connection, salt, judge, kind)?;
        let wal_kb = imported.wal_bytes / 1000.0;
        let values = [float(tests), imported.seconds, float(imported.statements), wal_kb];
        table.row(name, &values.map(Some));
    }
    let grew = cluster::size(&mut connection)?.saturating_sub(before);

    table.note(format!(
        "Medians of {times}, each on a new connection, as a command has it. The database grew by {:.1} MB in all.",
        float(grew) / 1e6,
    ));
    Ok(table)
}

/// The measured report of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Whole,
    /// The last of four shards.
    Shard,
    /// The whole report, which is stored already.
    Again,
}

struct Importer<'a> {
    opened: &'a OpenDataset,
    plan: ProjectPlan,
    project: ProjectId,
    times: u32,
}

impl<'a> Importer<'a> {
    fn new(opened: &'a OpenDataset, times: u32) -> anyhow::Result<Self> {
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

    /// Prepares a run that starts now: stores the reports before the measured one, and returns that.
    fn prepare(&self, salt: u64, kind: Kind) -> anyhow::Result<(Recording, Timestamp)> {
        let now = clock::now();
        // The data differ from earlier measurements.
        let salt = now.unix_ms().unsigned_abs() * 1000 + salt;
        let mut run = self.plan.one_more(now.plus_ms(-1000), salt);
        run.sharded = kind == Kind::Shard;
        let mut recordings = recordings(&self.plan, &run, salt);
        let measured = recordings.pop().context("a run without shards")?;
        if kind == Kind::Again {
            recordings.push(measured.clone());
        }
        let store = self.opened.store(1)?;
        for recording in &recordings {
            store.record(self.project, recording, &NoJudge, now)?;
        }
        Ok((measured, now))
    }

    /// Imports runs and measures one report of each.
    fn measure(
        &self,
        connection: &mut PgConnection,
        salt: u64,
        judge: &dyn Judge,
        kind: Kind,
    ) -> anyhow::Result<ImportFigures> {
        let (mut seconds, mut wal) = (Vec::new(), Vec::new());
        // The first one is a warm-up.
        for number in 0..=self.times {
            let (recording, now) = self.prepare(salt * 100 + u64::from(number), kind)?;
            // A command imports once, so its connection has no prepared statements.
            let store = self.opened.store(1)?;
            let bytes_before = written(connection)?;
            let started = Instant::now();
            store.record(self.project, &recording, judge, now)?;
            if number > 0 {
                seconds.push(started.elapsed().as_secs_f64());
                wal.push(float(written(connection)?.saturating_sub(bytes_before)));
            }
        }
        let (recording, now) = self.prepare(salt * 100 + 99, kind)?;
        let statements = statements::of_work(&self.opened.running, |url| {
            connect(url, 1)?.record(self.project, &recording, judge, now)?;
            Ok(())
        })?;
        Ok(ImportFigures {
            seconds: median(seconds).context("nothing was imported")?,
            statements,
            wal_bytes: median(wal).unwrap_or(f64::NAN),
        })
    }
}

/// The total bytes of write-ahead log so far.
fn written(connection: &mut PgConnection) -> anyhow::Result<u64> {
    cluster::number(
        connection,
        "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint AS value",
    )
}

/// The seconds of one whole import, for the growth.
pub(crate) fn seconds(opened: &OpenDataset, times: u32) -> anyhow::Result<f64> {
    let mut connection = opened.running.connection()?;
    Ok(Importer::new(opened, times)?
        .measure(&mut connection, 6, &Engine::default(), Kind::Whole)?
        .seconds)
}
