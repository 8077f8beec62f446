//! `load`: every case over HTTP, with one connection and with many.

use std::time::Duration;

use crate::{
    cases::{self, Case},
    cli::Options,
    client::Measurement,
    dataset::OpenDataset,
    number::float,
    program::{self, Program},
    table::Table,
};

/// Connections of the measurements under load.
const MANY: u32 = 32;

/// The figures of one case.
#[derive(Debug)]
pub(crate) struct CaseTimes {
    pub(crate) case: Case,
    pub(crate) alone: Measurement,
    pub(crate) crowd: Measurement,
}

/// Measures the cases.
pub(crate) fn load(opened: &OpenDataset, options: &Options) -> anyhow::Result<Table> {
    let server = Program::server(&program::server(options.server.as_deref())?, opened)?;
    let cases = cases::cases(&server.client, &opened.data)?;
    let mut table = Table::new(
        "Routes and tools",
        &[
            "Request",
            "bytes",
            "p50 ms",
            "p99 ms",
            "32 connections: answers/s",
        ],
    );
    for timed in timed(&server, &cases, options.time())? {
        let alone = &timed.alone;
        let values = [
            Some(float(alone.bytes)),
            alone.ms(0.5),
            alone.ms(0.99),
            Some(timed.crowd.rate()),
        ];
        table.row(timed.case.name, &values);
    }
    Ok(table)
}

/// Each case with one connection and with many.
pub(crate) fn timed(server: &Program, cases: &[Case], time: Duration) -> anyhow::Result<Vec<CaseTimes>> {
    let timed = cases.iter().map(|case| {
        eprintln!("assay-bench: {}: 1 and {MANY} connections", case.name);
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
