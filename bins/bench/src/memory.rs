//! `memory`: the server's memory when idle, under load, and for its largest answers.

use anyhow::Context as _;

use crate::{
    cases::{self, FLAKY, RUN, STATUS, STORM, find},
    dataset::Opened,
    load::MANY,
    number::float,
    options::Options,
    process,
    program::{self, Program},
    progress::step,
    table::Table,
};

/// Measures one server from its start on.
pub(crate) fn memory(opened: &Opened, options: &Options) -> anyhow::Result<Vec<Table>> {
    let binary = program::server(options.server.as_deref())?;
    let start = || Program::server(&binary, &opened.running.url(), &options.server_log, &opened.dir);
    let targets = cases::targets(&start()?.client, &opened.data)?;
    let server = start()?;
    let mut table = Table::new(
        "memory",
        "Memory of assay-server",
        &["When", "resident MB", "peak MB", "answer MB"],
    );
    let mut row = |when: &str, bytes: Option<f64>| -> anyhow::Result<()> {
        let memory = process::memory(server.pid()).context("this system does not show a process's memory")?;
        table.row(vec![
            when.into(),
            memory.resident.into(),
            memory.peak.into(),
            bytes.map(|bytes| bytes / 1e6).into(),
        ]);
        Ok(())
    };
    step("memory: idle, then each load");
    row("idle", None)?;
    let status = find(&targets.cases, STATUS)?.request(&opened.data, &[]);
    server.client.load(&status, MANY, options.time())?;
    row("after a load of cheap requests, 32 connections", None)?;
    let mut reset = true;
    for (name, when) in [
        (RUN, "run detail"),
        (FLAKY, "flaky list"),
        (STORM, "flaky list, every test failing"),
    ] {
        let Ok(case) = find(&targets.cases, name) else {
            continue;
        };
        let request = case.request(&opened.data, &[]);
        reset &= process::reset_peak(server.pid());
        let answer = server.client.once(&request)?;
        row(&format!("after one {when}"), Some(float(answer.bytes)))?;
        reset &= process::reset_peak(server.pid());
        server.client.load(&request, MANY, options.time())?;
        row(
            &format!("after a load of them, 32 connections: {when}"),
            Some(float(answer.bytes)),
        )?;
    }
    table.note(if reset {
        "The peak is that of the row's own requests: it was reset before each."
    } else {
        "The peak could not be reset by this user: it is that since the start."
    });
    Ok(vec![table])
}
