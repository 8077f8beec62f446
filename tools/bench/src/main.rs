//! `assay-bench`: generates a data set of known size and measures the service on it.

mod cases;
mod cli;
mod client;
mod clock;
mod cluster;
mod dataset;
mod generate;
mod growth;
mod import;
mod load;
mod machine;
mod number;
mod program;
mod shape;
mod table;

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use clap::Parser as _;

use crate::{
    cli::{Cli, Command, Options},
    dataset::OpenDataset,
    number::float,
    shape::{Shape, Size},
    table::Table,
};

fn main() -> ExitCode {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn")).init();
    let Cli { options, command } = Cli::parse();
    match run(&options, command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("assay-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options, command: Command) -> anyhow::Result<()> {
    match command {
        Command::Generate { shape } => generate(options, &shape),
        Command::Load => {
            let opened = open(options)?;
            publish(&opened, &load::load(&opened, options)?)
        }
        Command::Import { times } => {
            let opened = open(options)?;
            publish(&opened, &import::import(&opened, times)?)
        }
        Command::Growth { shape, sizes } => growth(options, &shape, &sizes),
        Command::All { shape, growth: grow } => {
            generate(options, &shape)?;
            run(options, Command::Load)?;
            run(options, Command::Import { times: 15 })?;
            if grow {
                let part = |share: f64| Size(options.size.0 * share);
                growth(options, &shape, &[part(1.0 / 16.0), part(0.25), part(1.0)])?;
            }
            Ok(())
        }
    }
}

fn generate(options: &Options, shape: &Shape) -> anyhow::Result<()> {
    let shape = shape.scaled(options.size);
    let data = generate::generate(&options.dir(), options.pg_bin.as_deref(), &shape)?;
    let columns = ["Project", "tests", "runs", "results"];
    let mut table = Table::new("The data set", &columns);
    for (number, made) in (0_u32..).zip(&data.projects) {
        let counts = [made.tests, made.runs, made.results];
        table.row(
            &format!("{number}: {:?}", made.role),
            &counts.map(|count| Some(float(count))),
        );
    }
    table.note(format!(
        "Made in {:.0} s: {:.0} results a second, {:.0} bytes of database a result.",
        data.seconds,
        data.sum(|made| made.results) / data.seconds,
        float(data.bytes) / data.sum(|made| made.results).max(1.0),
    ));
    publish(&open(options)?, &table)
}

fn growth(options: &Options, shape: &Shape, sizes: &[Size]) -> anyhow::Result<()> {
    let table = growth::growth(options, shape, sizes)?;
    let largest = sizes
        .iter()
        .copied()
        .max_by(|left, right| left.0.total_cmp(&right.0));
    let options = Options {
        size: largest.unwrap_or(options.size),
        ..options.clone()
    };
    publish(&open(&options)?, &table)
}

fn open(options: &Options) -> anyhow::Result<OpenDataset> {
    OpenDataset::open(&options.dir(), options.pg_bin.as_deref())
}

/// Prints a table with the command, the machine, the data and the time.
fn publish(opened: &OpenDataset, table: &Table) -> anyhow::Result<()> {
    let command = std::env::args().collect::<Vec<_>>().join(" ");
    let postgres = cluster::version(&mut opened.running.connection()?)?;
    let (machine, data, at) = (machine::description(), opened.data.description(), clock::now());
    let mut out = io::stdout().lock();
    writeln!(out, "{}", table.markdown())?;
    writeln!(
        out,
        "`{command}` on {machine}; PostgreSQL {postgres}; {data}. Measured {at}."
    )?;
    Ok(out.flush()?)
}
