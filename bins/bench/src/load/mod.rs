//! `load`: every route over HTTP, and in the same run other implementations of the same work.

mod cold;
mod detail;
mod flaky;
mod limits;
mod packs;
mod rivals;
mod route;

use std::time::Duration;

pub(crate) use self::route::route;

use crate::{
    cases::{self, Case, Targets},
    client::Measured,
    dataset::Opened,
    options::Options,
    program::{self, Program},
    progress::step,
    recorded,
    table::Table,
};

/// Connections of the measurements under load.
pub(crate) const MANY: u32 = 32;

/// What one case came to.
#[derive(Debug)]
pub(crate) struct Timed {
    pub(crate) case: Case,
    pub(crate) alone: Measured,
    pub(crate) crowd: Measured,
}

/// Measures everything. Restarts the database meanwhile.
pub(crate) fn load(opened: Opened, options: &Options) -> anyhow::Result<(Opened, Vec<Table>)> {
    let binary = program::server(options.server.as_deref())?;
    let start =
        |opened: &Opened| Program::server(&binary, &opened.running.url(), &options.server_log, &opened.dir);

    let server = start(&opened)?;
    let targets = cases::targets(&server.client, &opened.data)?;
    drop(server);
    let (opened, cold) = cold::measure(opened, &targets, options, start)?;

    let server = start(&opened)?;
    step("the statements of each route");
    let requests: Vec<_> = targets
        .cases
        .iter()
        .map(|case| case.request(&opened.data, &[]))
        .collect();
    let statements = recorded::of_requests(&opened.running, &binary, &opened.dir, &requests)?;
    let timed = timed(&opened, &server, &targets, options.time())?;
    let mut tables = vec![routes(&timed, &statements)];
    tables.push(limits::table(&opened, &server, &targets, &statements, options)?);
    tables.push(rivals::table(&opened, &server, &targets, options)?);
    tables.push(detail::table(&opened, &server, &targets, &statements, options)?);
    tables.push(flaky::table(&opened, &server, &targets, options)?);
    tables.push(cold.table(&timed));
    tables.push(conditional(&opened, &server, &timed, options)?);
    drop(server);
    Ok((opened, tables))
}

/// Each case with one connection and with many.
pub(crate) fn timed(
    opened: &Opened,
    server: &Program,
    targets: &Targets,
    time: Duration,
) -> anyhow::Result<Vec<Timed>> {
    targets
        .cases
        .iter()
        .map(|case| {
            step(&format!("{}: 1 and {MANY} connections", case.name));
            let request = case.request(&opened.data, &[]);
            let alone = server.client.load(&request, 1, time)?;
            anyhow::ensure!(alone.status == 200, "{} answered {}", case.name, alone.status);
            let crowd = server.client.load(&request, MANY, time)?;
            Ok(Timed {
                case: case.clone(),
                alone,
                crowd,
            })
        })
        .collect()
}

fn routes(timed: &[Timed], statements: &[Vec<recorded::Statement>]) -> Table {
    let mut table = Table::new(
        "routes",
        "Every route, warm",
        &[
            "Route",
            "statements",
            "bytes",
            "1 conn.: req/s",
            "p50 ms",
            "p99 ms",
            "32 conn.: req/s",
            "p50 of 32",
            "p90 of 32",
            "p99 of 32",
            "max of 32",
            "rejected",
        ],
    );
    for (timed, statements) in timed.iter().zip(statements) {
        let (alone, crowd) = (&timed.alone, &timed.crowd);
        table.row(vec![
            timed.case.name.into(),
            crate::number::float(recorded::count(statements)).into(),
            crate::number::float(alone.bytes).into(),
            alone.rate().into(),
            alone.ms(0.5).into(),
            alone.ms(0.99).into(),
            crowd.rate().into(),
            crowd.ms(0.5).into(),
            crowd.ms(0.9).into(),
            crowd.ms(0.99).into(),
            crowd.ms(1.0).into(),
            crate::number::float(alone.errors + crowd.errors).into(),
        ]);
    }
    table.note(
        "Statements are those that Postgres logged for one request, without `BEGIN` and `COMMIT`. Figures are of the \
         requests that were answered. Rejected requests got a 503 at once."
            .to_owned(),
    );
    table
}

/// The same requests by clients that hold the answer already.
fn conditional(
    opened: &Opened,
    server: &Program,
    timed: &[Timed],
    options: &Options,
) -> anyhow::Result<Table> {
    let mut table = Table::new(
        "conditional",
        "Conditional requests",
        &["Route", "200: req/s", "304: req/s", "304: p50 ms", "304: p99 ms"],
    );
    for timed in timed {
        let first = server.client.once(&timed.case.request(&opened.data, &[]))?;
        let Some(etag) = first.etag else { continue };
        let request = timed.case.request(&opened.data, &[("If-None-Match", &etag)]);
        let measured = server.client.load(&request, MANY, options.time())?;
        anyhow::ensure!(
            measured.status == 304,
            "{} answered {} to its own ETag",
            timed.case.name,
            measured.status
        );
        table.row(vec![
            timed.case.name.into(),
            timed.crowd.rate().into(),
            measured.rate().into(),
            measured.ms(0.5).into(),
            measured.ms(0.99).into(),
        ]);
    }
    table.note("32 connections. Routes without an ETag answer whole.");
    Ok(table)
}
