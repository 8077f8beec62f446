//! The detail of a large run, compared with its necessary parts: Postgres sends the rows, serde_json writes them.

use std::time::Instant;

use anyhow::Context as _;
use assay_domain::{run::RunDetail, store::Store as _};

use crate::{
    cases::{RUN, Targets, find},
    clock,
    dataset::Opened,
    number::{median, ms},
    options::Options,
    pgbench::Pgbench,
    program::Program,
    progress::step,
    recorded::Statement,
    table::Table,
};

/// Repetitions of work that takes milliseconds.
const TIMES: usize = 41;

pub(super) fn table(
    opened: &Opened,
    server: &Program,
    targets: &Targets,
    statements: &[Vec<Statement>],
    options: &Options,
) -> anyhow::Result<Table> {
    step("run detail beside its parts");
    let mut table = Table::new(
        "run-detail",
        "The detail of a large run, one connection",
        &["Part", "ms", "of the parts"],
    );
    let case = find(&targets.cases, RUN)?;
    let whole = server
        .client
        .load(&case.request(&opened.data, &[]), 1, options.time())?;
    let whole_ms = whole.ms(0.5);
    let statements = targets
        .cases
        .iter()
        .zip(statements)
        .find_map(|(case, statements)| (case.name == RUN).then_some(statements))
        .context("no statements of the run detail")?;
    let script = opened.dir.join("pgbench.sql");
    let sent = match Pgbench::find(options.pg_bin.as_deref()) {
        Some(pgbench) => {
            let ran = pgbench.run(
                &opened.running.url(),
                statements,
                1,
                options.whole_seconds(),
                &script,
            );
            match ran {
                Ok(ran) => Some(ran.ms),
                Err(error) => {
                    table.note(format!("{error:#}."));
                    None
                }
            }
        }
        None => None,
    };
    let detail = read(opened, &targets.run)?;
    let mut times = Vec::new();
    let mut bytes = 0;
    for _ in 0..TIMES {
        let started = Instant::now();
        bytes = serde_json::to_vec(&(&detail.run, &detail.counts, &detail.tests))?.len();
        times.push(ms(started.elapsed()));
    }
    let written = median(times);
    let parts = sent.zip(written).map(|(sent, written)| sent + written);
    table.row(vec![
        "Postgres sends the same rows to libpq (`pgbench -M prepared -c 1`)".into(),
        sent.into(),
        None::<f64>.into(),
    ]);
    table.row(vec![
        "serde_json writes them".into(),
        written.into(),
        None::<f64>.into(),
    ]);
    table.row(vec!["both parts".into(), parts.into(), 1.0.into()]);
    table.row(vec![
        "over HTTP, median".into(),
        whole_ms.into(),
        whole_ms.zip(parts).map(|(whole, parts)| whole / parts).into(),
    ]);
    table.note(format!(
        "{} tests, {} bytes of JSON ({bytes} of them the rows).",
        detail.tests.len(),
        whole.bytes
    ));
    Ok(table)
}

fn read(opened: &Opened, run: &str) -> anyhow::Result<RunDetail> {
    let store = opened.store(1)?;
    let project = opened
        .data
        .project(&store, opened.data.large()?.id, clock::now())?;
    store.run(&project, run.parse()?)?.context("the run is gone")
}
