//! `prune`: deletes the oldest month during reads. The data set cannot be used for other measurements afterwards.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use assay_domain::store::{Administration as _, PruneReport, Pruned};
use assay_repository::Database;

use crate::{
    cases::{self, STATUS, find},
    client::{Client, Request},
    clock,
    cluster::{self, TableSize},
    dataset::Opened,
    number::float,
    options::Options,
    program::{self, Program},
    progress::step,
    table::Table,
};

/// How many days of results are pruned.
const DAYS: i64 = 30;
/// How many connections read meanwhile.
const READERS: u32 = 4;

/// Prunes a month, as if it were a month later.
pub(crate) fn prune(opened: &mut Opened, options: &Options) -> anyhow::Result<Vec<Table>> {
    let binary = program::server(options.server.as_deref())?;
    let server = Program::server(&binary, &opened.running.url(), &options.server_log, &opened.dir)?;
    let targets = cases::targets(&server.client, &opened.data)?;
    let request = find(&targets.cases, STATUS)?.request(&opened.data, &[]);
    let before = server.client.load(&request, READERS, options.time())?;
    let mut connection = opened.running.connection()?;
    let sizes_before = cluster::tables(&mut connection)?;
    let store = opened.store(1)?;
    opened.data.pruned = true;
    opened.data.store(&opened.dir)?;

    step("pruning a month while reads go on");
    let (pruned, seconds, reads) = pruned_under_load(&store, &server.client, &request)?;
    let sizes_after = cluster::tables(&mut connection)?;
    let mut table = Table::new("prune", "Pruning the oldest month", &["Measured", "value"]);
    let sum = |of: fn(&Pruned) -> u64| float(pruned.projects.iter().map(of).sum::<u64>());
    table.row(vec!["seconds".into(), seconds.into()]);
    table.row(vec!["runs pruned".into(), sum(|pruned| pruned.runs).into()]);
    table.row(vec!["results pruned".into(), sum(|pruned| pruned.results).into()]);
    table.row(vec!["whole periods dropped".into(), float(pruned.periods).into()]);
    table.row(vec!["reads/s before".into(), before.rate().into()]);
    table.row(vec![
        "reads/s meanwhile".into(),
        (reads.requests / seconds.max(0.001)).into(),
    ]);
    table.row(vec!["p99 ms before".into(), before.ms(0.99).into()]);
    table.row(vec!["worst p99 ms meanwhile".into(), reads.worst_p99.into()]);
    table.row(vec!["slowest read meanwhile, ms".into(), reads.slowest.into()]);
    table.row(vec![
        "reads that failed meanwhile".into(),
        float(reads.errors).into(),
    ]);
    table.note(format!(
        "{READERS} connections ask for a test's status all the time. The month is what a plan of 90 days no longer shows {DAYS} days later."
    ));
    Ok(vec![table, sizes(&sizes_before, &sizes_after)])
}

/// What the readers saw.
#[derive(Debug, Default)]
struct Reads {
    requests: f64,
    errors: u64,
    worst_p99: f64,
    slowest: f64,
}

fn pruned_under_load(
    store: &Database,
    client: &Client,
    request: &Request,
) -> anyhow::Result<(PruneReport, f64, Reads)> {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let pruning = scope.spawn(|| {
            let started = Instant::now();
            let pruned = store.prune(clock::now().plus_days(DAYS), false, &mut |_| {});
            done.store(true, Ordering::Release);
            pruned.map(|pruned| (pruned, started.elapsed().as_secs_f64()))
        });
        let mut reads = Reads::default();
        while !done.load(Ordering::Acquire) {
            let measured = client.load(request, READERS, Duration::from_millis(250))?;
            reads.requests += measured.requests() * 1.2;
            reads.errors += measured.errors + u64::from(measured.status != 200);
            reads.worst_p99 = reads.worst_p99.max(measured.ms(0.99).unwrap_or(0.0));
            reads.slowest = reads.slowest.max(measured.ms(1.0).unwrap_or(0.0));
        }
        let (pruned, seconds) = pruning
            .join()
            .map_err(|_| anyhow::anyhow!("pruning panicked"))?
            .context("pruning")?;
        Ok((pruned, seconds, reads))
    })
}

fn sizes(before: &[TableSize], after: &[TableSize]) -> Table {
    let mut table = Table::new(
        "prune-sizes",
        "Tables before and after pruning",
        &[
            "Table",
            "MB before",
            "of it indexes",
            "partitions",
            "MB after",
            "partitions after",
        ],
    );
    for size in before.iter().filter(|size| size.bytes > 1_000_000) {
        let later = after.iter().find(|later| later.name == size.name);
        let mb = |bytes: i64| float(bytes) / 1e6;
        table.row(vec![
            size.name.as_str().into(),
            mb(size.bytes).into(),
            mb(size.indexes).into(),
            float(size.partitions).into(),
            later.map(|later| mb(later.bytes)).into(),
            later.map(|later| float(later.partitions)).into(),
        ]);
    }
    table
}
