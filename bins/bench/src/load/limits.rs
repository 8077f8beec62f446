//! Cheap routes beside pgbench with the same statements, and beside a server that does nothing.

use crate::{
    cases::{Case, RUNS, Targets},
    dataset::Opened,
    load::MANY,
    number::median,
    options::Options,
    pgbench::Pgbench,
    process::Computed,
    program::Program,
    progress::step,
    recorded::Statement,
    table::Table,
};

pub(super) fn table(
    opened: &Opened,
    server: &Program,
    targets: &Targets,
    statements: &[Vec<Statement>],
    options: &Options,
) -> anyhow::Result<Table> {
    let mut table = Table::new(
        "limits",
        "Cheap routes beside their limits, 32 connections",
        &[
            "Route",
            "req/s",
            "p99 ms",
            "pgbench /s",
            "of pgbench",
            "bare actix-web req/s",
            "both together /s",
            "of both",
            "client µs",
            "server µs",
            "Postgres µs",
        ],
    );
    let pgbench = Pgbench::find(options.pg_bin.as_deref());
    for (case, statements) in targets.cases.iter().zip(statements) {
        if !case.cheap {
            continue;
        }
        step(&format!("{}: its limits", case.name));
        let rounds = rounds(opened, server, case, statements, pgbench.as_ref(), options);
        let rounds = match rounds {
            Ok(rounds) => rounds,
            Err(error) => {
                table.note(format!("{}: {error:#}.", case.name));
                continue;
            }
        };
        let middle = |of: fn(&Round) -> Option<f64>| median(rounds.iter().filter_map(of).collect());
        let (ours, ran, bare) = (
            middle(|round| Some(round.ours)),
            middle(|round| round.pgbench),
            middle(|round| Some(round.bare)),
        );
        let both = ran.zip(bare).map(|(ran, bare)| 1.0 / (1.0 / ran + 1.0 / bare));
        let share = |of: Option<f64>| ours.zip(of).map(|(ours, of)| ours / of);
        table.row(vec![
            case.name.into(),
            ours.into(),
            middle(|round| round.p99).into(),
            ran.into(),
            share(ran).into(),
            bare.into(),
            both.into(),
            share(both).into(),
            middle(|round| round.computed.client).into(),
            middle(|round| round.computed.server).into(),
            middle(|round| round.computed.postgres).into(),
        ]);
    }
    if pgbench.is_none() {
        table.note("pgbench is not at hand on this machine.");
    }
    table.note(format!(
        "Medians of {} rounds, in each of which all three take their turn. pgbench runs what the route has Postgres run, with the same values: `pgbench -M prepared -c {MANY} -j 2`. \"Both together\" is \
         a server that would spend no more than pgbench and an actix-web that answers as many bytes from memory: \
         1 / (1/pgbench + 1/bare). The last columns are the processor's time for one request of the client, of \
         assay-server and of Postgres; all share the machine.",
        options.repeats(ROUNDS)
    ));
    table.note(format!(
        "Asked for: 0.45 of pgbench and 0.75 of both for the status, 0.65 of pgbench for the {RUNS}."
    ));
    Ok(table)
}

/// How often each of the three takes its turn.
const ROUNDS: usize = 3;

/// What the three came to in one round.
struct Round {
    /// Requests a second.
    ours: f64,
    p99: Option<f64>,
    computed: Computed,
    /// Transactions a second.
    pgbench: Option<f64>,
    bare: f64,
}

fn rounds(
    opened: &Opened,
    server: &Program,
    case: &Case,
    statements: &[Statement],
    pgbench: Option<&Pgbench>,
    options: &Options,
) -> anyhow::Result<Vec<Round>> {
    let request = case.request(&opened.data, &[]);
    let bytes = server.client.once(&request)?.bytes.to_string();
    let bare = Program::own(&["serve-bare", "--bytes", &bytes], &opened.dir)?;
    let script = opened.dir.join("pgbench.sql");
    (0..options.repeats(ROUNDS))
        .map(|_| {
            let before = Computed::now(server.pid(), opened.running.pid());
            let ours = server.client.load(&request, MANY, options.time())?;
            let after = Computed::now(server.pid(), opened.running.pid());
            let pgbench = pgbench
                .map(|pgbench| {
                    pgbench.run(
                        &opened.running.url(),
                        statements,
                        MANY,
                        options.whole_seconds(),
                        &script,
                    )
                })
                .transpose()?;
            Ok(Round {
                ours: ours.rate(),
                p99: ours.ms(0.99),
                // The warm-up is a fifth of the time, and as busy.
                computed: Computed::each(before, after, ours.requests() * 1.2),
                pgbench: pgbench.map(|ran| ran.rate),
                bare: bare.client.load(&request, MANY, options.time())?.rate(),
            })
        })
        .collect()
}
