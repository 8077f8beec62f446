//! `load`: every route and tool over HTTP, with one connection and with many.

use std::time::Duration;

use crate::{
    cases::{self, Case},
    cli::Options,
    client::Measurement,
    dataset::OpenDataset,
    number::float,
    program::{self, Program},
    statements,
    step::step,
    table::Table,
};

/// Connections of the measurements under load.
const MANY: u32 = 32;
const COLUMNS: &str = "Request|statements|bytes|1 conn.: req/s|p50 ms|p99 ms|32 conn.: req/s|p50 of 32|p99 of 32|\
    max of 32|rejected";

/// The figures of one case.
#[derive(Debug)]
pub(crate) struct CaseTimes {
    pub(crate) case: Case,
    pub(crate) alone: Measurement,
    pub(crate) crowd: Measurement,
}

/// Measures the routes and tools whose name contains `only`.
pub(crate) fn load(opened: &OpenDataset, options: &Options, only: &str) -> anyhow::Result<Table> {
    let binary = program::server(options.server.as_deref())?;
    let server = Program::server(&binary, opened, &opened.running.url())?;
    let mut cases = cases::cases(&server.client, &opened.data)?;
    cases.retain(|case| case.name.contains(only));
    let timed = timed(&server, &cases, options.time())?;
    drop(server);
    step("the statements of each route");
    let statements = statements::of_requests(opened, &binary, &cases)?;
    let mut table = Table::new(
        "Every route and tool, warm",
        &COLUMNS.split('|').collect::<Vec<_>>(),
    );
    for (timed, statements) in timed.iter().zip(statements) {
        let (alone, crowd) = (&timed.alone, &timed.crowd);
        let values = [
            Some(float(statements)),
            Some(float(alone.bytes)),
            Some(alone.rate()),
            alone.ms(0.5),
            alone.ms(0.99),
            Some(crowd.rate()),
            crowd.ms(0.5),
            crowd.ms(0.99),
            crowd.ms(1.0),
            Some(float(alone.rejected + crowd.rejected)),
        ];
        table.row(timed.case.name, &values);
    }
    table.note(
        "Statements are those that Postgres logged for one request, without `BEGIN` and `COMMIT`. Figures are of the \
         requests that were answered. Rejected requests got a 503 at once.",
    );
    Ok(table)
}

/// Each case with one connection and with many.
pub(crate) fn timed(server: &Program, cases: &[Case], time: Duration) -> anyhow::Result<Vec<CaseTimes>> {
    let timed = cases.iter().map(|case| {
        step(&format!("{}: 1 and {MANY} connections", case.name));
        let alone = server.client.load(&case.request, 1, time)?;
        anyhow::ensure!(alone.status == 200, "{} answered {}", case.name, alone.status);
        let crowd = server.client.load(&case.request, MANY, time)?;
        Ok(CaseTimes {
            case: case.clone(),
            alone,
            crowd,
        })
    });
    timed.collect()
}
