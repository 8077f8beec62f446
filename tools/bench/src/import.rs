//! `import`: imports reports of the large project's size into the full database, with and without verdicts.

use std::time::Instant;

use anyhow::Context as _;
use assay_domain::{store::Recorder as _, verdict::Judge};
use assay_flakiness::Engine;
use diesel::PgConnection;

use crate::{
    clock, cluster,
    dataset::OpenDataset,
    generate::{NoJudge, ProjectPlan, recordings},
    number::{float, median},
    table::Table,
};

/// Imports this many runs with verdicts and as many without.
pub(crate) fn import(opened: &OpenDataset, times: u32) -> anyhow::Result<Table> {
    let mut table = Table::new(
        "One report into the full database",
        &["Report", "tests", "seconds", "WAL kB"],
    );
    let tests = ProjectPlan::new(&opened.data.shape, 0, opened.data.until)
        .tests
        .len();
    let kinds: [(&str, &dyn Judge); 2] = [
        ("with verdicts", &Engine::default()),
        ("without verdicts", &NoJudge),
    ];
    for (salt, (name, judge)) in (1..).zip(kinds) {
        eprintln!("assay-bench: imports {name}");
        let (seconds, wal_bytes) = measure(opened, times, salt, judge)?;
        table.row(name, &[float(tests), seconds, wal_bytes / 1000.0].map(Some));
    }
    table.note(format!(
        "Medians of {times}, each on a new connection, as a command has it."
    ));
    Ok(table)
}

/// Imports runs; the medians of the seconds and of the bytes of write-ahead log.
fn measure(opened: &OpenDataset, times: u32, salt: u64, judge: &dyn Judge) -> anyhow::Result<(f64, f64)> {
    let plan = ProjectPlan::new(&opened.data.shape, 0, opened.data.until);
    let project = opened.data.large()?.id;
    let mut connection = opened.running.connection()?;
    let (mut seconds, mut wal) = (Vec::new(), Vec::new());
    // The first one is a warm-up.
    for number in 0..=times.max(1) {
        let now = clock::now();
        // The data differ from earlier measurements.
        let salt = now.unix_ms().unsigned_abs() * 1000 + salt * 100 + u64::from(number);
        let run = plan.one_more(now.plus_ms(-1000), salt);
        let recording = recordings(&plan, &run, salt)
            .pop()
            .context("a run without a report")?;
        // A command imports once, so its connection has no prepared statements.
        let store = opened.store(1)?;
        let bytes_before = written(&mut connection)?;
        let started = Instant::now();
        store.record(project, &recording, judge, now)?;
        if number > 0 {
            seconds.push(started.elapsed().as_secs_f64());
            wal.push(float(written(&mut connection)?.saturating_sub(bytes_before)));
        }
    }
    Ok((
        median(seconds).context("nothing was imported")?,
        median(wal).unwrap_or(f64::NAN),
    ))
}

/// The total bytes of write-ahead log so far.
fn written(connection: &mut PgConnection) -> anyhow::Result<u64> {
    cluster::number(
        connection,
        "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint AS value",
    )
}

/// The seconds of one import with verdicts, for the growth.
pub(crate) fn seconds(opened: &OpenDataset, times: u32) -> anyhow::Result<f64> {
    Ok(measure(opened, times, 6, &Engine::default())?.0)
}
