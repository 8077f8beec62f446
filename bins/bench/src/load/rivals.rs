//! The status of a test, as other ways of writing the same service answer it.

use std::{fs, process::Command};

use anyhow::Context as _;
use diesel::connection::SimpleConnection as _;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::{
    cases::{STATUS, Targets, encoded, find},
    client::{Measured, Request},
    dataset::Opened,
    load::MANY,
    options::Options,
    program::{self, Program},
    progress::step,
    table::Table,
};

pub(super) fn table(
    opened: &Opened,
    server: &Program,
    targets: &Targets,
    options: &Options,
) -> anyhow::Result<Table> {
    let mut table = Table::new(
        "rivals",
        "The status of a test, 32 connections",
        &["Way", "req/s", "p50 ms", "p99 ms", "bytes", "Assay is faster by"],
    );
    step("the status route beside its rivals");
    let status = find(&targets.cases, STATUS)?;
    let ours = server
        .client
        .load(&status.request(&opened.data, &[]), MANY, options.time())?;
    let mut row = |name: &str, measured: &Measured| {
        table.row(vec![
            name.into(),
            measured.rate().into(),
            measured.ms(0.5).into(),
            measured.ms(0.99).into(),
            crate::number::float(measured.bytes).into(),
            (ours.rate() / measured.rate()).into(),
        ]);
    };
    row("assay-server", &ours);

    let binary = program::server(options.server.as_deref())?;
    let logging = Program::server(
        &binary,
        &opened.running.url(),
        "info,actix_server=warn",
        &opened.dir,
    )?;
    let logging = logging
        .client
        .load(&status.request(&opened.data, &[]), MANY, options.time())?;
    row("assay-server with its access log", &logging);

    let url = opened.running.url();
    let textbook = Program::own(&["serve-textbook", "--url", &url], &opened.dir)?;
    let path = format!(
        "/projects/{}/tests/{}/status",
        opened.data.large()?.id,
        encoded(&targets.test)
    );
    let authorization = format!("Bearer {}", opened.data.key);
    let request = Request::get(&path, &[("Authorization", &authorization)]);
    let measured = textbook.client.load(&request, MANY, options.time())?;
    anyhow::ensure!(
        measured.status == 200,
        "the textbook server answered {}",
        measured.status
    );
    row(
        "the textbook way: diesel, five statements, pools as they come",
        &measured,
    );
    drop(textbook);

    match postgrest(opened, targets, options)? {
        Some(measured) if measured.status == 200 => row("PostgREST", &measured),
        Some(measured) => table.note(format!("PostgREST answered {}.", measured.status)),
        None => table.note("PostgREST is not at hand on this machine."),
    }
    Ok(table)
}

/// PostgREST over a function with the same look-ups, if its program is on the path.
fn postgrest(opened: &Opened, targets: &Targets, options: &Options) -> anyhow::Result<Option<Measured>> {
    let Some(program) = program::find("postgrest", None) else {
        return Ok(None);
    };
    opened.running.connection()?.batch_execute(
        "CREATE SCHEMA IF NOT EXISTS bench_api; \
         CREATE OR REPLACE FUNCTION bench_api.status(key text, project uuid, test text) RETURNS json \
         LANGUAGE sql STABLE AS $$ \
             SELECT json_build_object('project', p.name, 'plan', o.plan, 'test', t.name, 'status', v.status, \
                 'verdict', v.body::json) \
             FROM public.api_key k \
             JOIN public.organization o ON o.id = k.organization_id \
             JOIN public.project p ON p.organization_id = o.id AND p.id = status.project \
             JOIN public.test t ON t.project_id = status.project \
                 AND t.name_hash = substring(sha256(convert_to(status.test, 'UTF8')) FROM 1 FOR 16) \
             JOIN public.verdict v ON v.project_id = status.project AND v.test = t.ordinal \
             WHERE k.hash = sha256(convert_to(status.key, 'UTF8')) AND k.kind = 'read' AND k.revoked_at IS NULL \
         $$",
    )?;
    let listen = program::free_address()?;
    let path = opened.dir.join("postgrest.conf");
    fs::write(
        &path,
        format!(
            "db-uri = \"{}\"\ndb-schemas = \"bench_api\"\ndb-anon-role = \"assay\"\ndb-pool = 10\nserver-host = \"127.0.0.1\"\n\
             server-port = {}\nlog-level = \"crit\"\n",
            opened.running.url(),
            listen.port()
        ),
    )
    .context("writing PostgREST's configuration")?;
    let mut command = Command::new(program);
    command.arg(&path);
    let server = Program::foreign(command, &opened.dir, listen)?;
    let part = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let path = format!(
        "/rpc/status?key={}&project={}&test={}",
        part(&opened.data.key),
        opened.data.large()?.id,
        part(&targets.test)
    );
    Ok(Some(server.client.load(
        &Request::get(&path, &[]),
        MANY,
        options.time(),
    )?))
}
