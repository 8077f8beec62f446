//! Cheap routes, compared with pgbench on the same statements and with a server that does nothing.

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
    table::{Cell, Table},
};

/// Rounds, in each of which all three are measured.
const ROUNDS: usize = 3;

pub(super) fn table(
    opened: &Opened,
    server: &Program,
    targets: &Targets,
    statements: &[Vec<Statement>],
    options: &Options,
) -> anyhow::Result<Table> {
    let mut table = empty(
        "limits",
        "Cheap routes beside their limits, 32 connections",
        "Route",
    );
    let pgbench = Pgbench::find(options.pg_bin.as_deref());
    for (case, statements) in targets.cases.iter().zip(statements) {
        if !case.cheap {
            continue;
        }
        step(&format!("{}: its limits", case.name));
        match rounds(opened, &[server], case, statements, pgbench.as_ref(), options) {
            Ok(rounds) => table.row(row(case.name, &rounds, 0)),
            Err(error) => table.note(format!("{}: {error:#}.", case.name)),
        }
    }
    if pgbench.is_none() {
        table.note("pgbench is not at hand on this machine.");
    }
    table.note(format!(
        "Medians of {} rounds, in each of which all three take their turn. pgbench runs what the route has Postgres run, with the same values: `pgbench -M prepared -c {MANY} -j 2`, from its second second on. \"Both together\" is \
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

/// One route of several servers, compared with its limits, all in turns.
pub(super) fn of_servers(
    opened: &Opened,
    servers: &[(String, Program)],
    case: &Case,
    statements: &[Statement],
    options: &Options,
) -> anyhow::Result<Table> {
    let title = format!("{} beside its limits, 32 connections", case.name);
    let mut table = empty("route", &title, "Server");
    let pgbench = Pgbench::find(options.pg_bin.as_deref());
    let programs: Vec<&Program> = servers.iter().map(|(_, program)| program).collect();
    let rounds = rounds(opened, &programs, case, statements, pgbench.as_ref(), options)?;
    for (place, (name, _)) in servers.iter().enumerate() {
        table.row(row(name, &rounds, place));
    }
    Ok(table)
}

fn empty(id: &str, title: &str, first: &str) -> Table {
    let columns = [
        first,
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
    ];
    Table::new(id, title, &columns)
}

/// The medians of the rounds, for the server at this place.
fn row(name: &str, rounds: &[Round], place: usize) -> Vec<Cell> {
    let middle = |of: &dyn Fn(&Round) -> Option<f64>| median(rounds.iter().filter_map(of).collect());
    let of_server =
        |of: fn(&Ours) -> Option<f64>| middle(&|round: &Round| round.ours.get(place).and_then(of));
    let (ours, ran, bare) = (
        of_server(|ours| Some(ours.rate)),
        middle(&|round| round.pgbench),
        middle(&|round| Some(round.bare)),
    );
    let both = ran.zip(bare).map(|(ran, bare)| 1.0 / (1.0 / ran + 1.0 / bare));
    let share = |of: Option<f64>| ours.zip(of).map(|(ours, of)| ours / of);
    vec![
        name.into(),
        ours.into(),
        of_server(|ours| ours.p99).into(),
        ran.into(),
        share(ran).into(),
        bare.into(),
        both.into(),
        share(both).into(),
        of_server(|ours| ours.computed.client).into(),
        of_server(|ours| ours.computed.server).into(),
        of_server(|ours| ours.computed.postgres).into(),
    ]
}

/// What they came to in one round.
struct Round {
    /// One of each server.
    ours: Vec<Ours>,
    /// Transactions a second.
    pgbench: Option<f64>,
    /// Requests a second.
    bare: f64,
}

/// The figures of a server in one round.
struct Ours {
    /// Requests a second.
    rate: f64,
    p99: Option<f64>,
    computed: Computed,
}

fn rounds(
    opened: &Opened,
    servers: &[&Program],
    case: &Case,
    statements: &[Statement],
    pgbench: Option<&Pgbench>,
    options: &Options,
) -> anyhow::Result<Vec<Round>> {
    let request = case.request(&opened.data, &[]);
    let first = servers.first().map(|server| server.client.once(&request));
    let bytes = first.transpose()?.map_or(0, |answer| answer.bytes).to_string();
    let bare = Program::own(&["serve-bare", "--bytes", &bytes], &opened.dir)?;
    let script = opened.dir.join("pgbench.sql");
    (0..options.repeats(ROUNDS))
        .map(|_| {
            let ours = servers
                .iter()
                .map(|server| {
                    let before = Computed::now(server.pid(), opened.running.pid());
                    let ours = server.client.load(&request, MANY, options.time())?;
                    let after = Computed::now(server.pid(), opened.running.pid());
                    anyhow::ensure!(ours.status == 200, "{} answered {}", case.name, ours.status);
                    Ok(Ours {
                        rate: ours.rate(),
                        p99: ours.ms(0.99),
                        // The warm-up is a fifth of the time, and as busy.
                        computed: Computed::each(before, after, ours.requests() * 1.2),
                    })
                })
                .collect::<anyhow::Result<_>>()?;
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
                ours,
                pgbench: pgbench.map(|ran| ran.rate),
                bare: bare.client.load(&request, MANY, options.time())?.rate(),
            })
        })
        .collect()
}
