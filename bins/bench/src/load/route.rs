//! `route`: one route, compared with its limits and with other builds of the server.

use std::path::PathBuf;

use crate::{
    cases,
    dataset::Opened,
    load::limits,
    options::Options,
    program::{self, Program},
    progress::step,
    recorded,
    table::Table,
};

/// Measures the route of this name on the server and on `others`, all in turns.
pub(crate) fn route(
    opened: &Opened,
    name: &str,
    others: &[PathBuf],
    options: &Options,
) -> anyhow::Result<Table> {
    let binary = program::server(options.server.as_deref())?;
    let servers = std::iter::once(&binary)
        .chain(others)
        .map(|binary| {
            let program = Program::server(binary, &opened.running.url(), &options.server_log, &opened.dir)?;
            Ok((binary.display().to_string(), program))
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let client = &servers
        .first()
        .ok_or_else(|| anyhow::anyhow!("no server"))?
        .1
        .client;
    let targets = cases::targets(client, &opened.data)?;
    let case = cases::find(&targets.cases, name)?;
    let requests = [case.request(&opened.data, &[])];
    let statements = recorded::of_requests(&opened.running, &binary, &opened.dir, &requests)?.concat();
    step(&format!("{name}: its limits"));
    limits::of_servers(opened, &servers, case, &statements, options)
}
