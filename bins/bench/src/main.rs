//! `assay-bench`: makes a data set of known size and measures the service on it.
//!
//! A subcommand measures and returns a [`section::Section`] of tables, which is printed and saved beside the data
//! set. `report` writes it into docs/performance.md.

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
mod memory;
mod number;
mod options;
mod pgbench;
mod process;
mod program;
mod progress;
mod prune;
mod recorded;
mod report;
mod rivals;
mod section;
mod shape;
mod shapes;
mod table;
mod targets;

use std::{path::PathBuf, process::ExitCode};

use clap::Parser as _;

use crate::{
    cli::{Cli, Command},
    dataset::{Opened, Summary},
    machine::Machine,
    number::float,
    options::Options,
    section::Section,
    shape::{Shape, Size},
    shapes::Other,
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
        Command::Generate { shape, replace } => generate(options, &shape, replace),
        Command::Load => load(options),
        Command::Route { name, against } => route(options, &name, &against),
        Command::Import { times } => import(options, times),
        Command::Memory => memory(options),
        Command::Growth { shape, sizes } => growth(options, &shape, &sizes),
        Command::Shapes { only } => shapes(options, &only),
        Command::Prune => prune(options),
        Command::Report { docs } => report(options, &docs),
        Command::All {
            shape,
            growth: grow,
            keep,
            docs,
        } => {
            generate(options, &shape, false)?;
            load(options)?;
            memory(options)?;
            import(options, 15)?;
            if grow {
                let part = |share: f64| Size(options.size.0 * share);
                growth(options, &shape, &[part(1.0 / 16.0), part(0.25), part(1.0)])?;
            }
            if !keep {
                prune(options)?;
            }
            docs.map_or(Ok(()), |docs| report(options, &docs))
        }
        Command::ServeBare { listen, bytes } => rivals::bare(listen, bytes),
        Command::ServeTextbook { listen, url } => rivals::textbook(listen, &url),
    }
}

fn generate(options: &Options, shape: &Shape, replace: bool) -> anyhow::Result<()> {
    let dir = options.dir();
    let shape = shape.scaled(options.size);
    let data = generate::generate(&dir, options.pg_bin.as_deref(), &shape, replace)?;
    let mut table = Table::new(
        "data",
        "The data set",
        &[
            "Project",
            "tests",
            "runs",
            "results",
            "results a run",
            "failed attempts",
        ],
    );
    for (number, made) in (0_u32..).zip(&data.projects) {
        table.row(vec![
            format!("{number}: {:?}", made.role).into(),
            float(made.tests).into(),
            float(made.runs).into(),
            float(made.results).into(),
            made.results_a_run().into(),
            float(made.errors).into(),
        ]);
    }
    table.note(format!(
        "Made in {:.0} s: {:.0} results a second, {:.0} bytes of database a result.",
        data.seconds,
        float(data.summary().results) / data.seconds,
        float(data.bytes) / float(data.summary().results.max(1)),
    ));
    let opened = Opened::open(&dir, options.pg_bin.as_deref())?;
    publish(options, "generate", &opened, vec![table])
}

fn load(options: &Options) -> anyhow::Result<()> {
    let (opened, tables) = load::load(open(options)?, options)?;
    publish(options, "load", &opened, tables)
}

fn route(options: &Options, name: &str, against: &[PathBuf]) -> anyhow::Result<()> {
    let opened = open(options)?;
    let table = load::route(&opened, name, against, options)?;
    publish(options, "route", &opened, vec![table])
}

fn import(options: &Options, times: u32) -> anyhow::Result<()> {
    let opened = open(options)?;
    let tables = import::import(&opened, options, times)?;
    publish(options, "import", &opened, tables)
}

fn memory(options: &Options) -> anyhow::Result<()> {
    let opened = open(options)?;
    let tables = memory::memory(&opened, options)?;
    publish(options, "memory", &opened, tables)
}

fn growth(options: &Options, shape: &Shape, sizes: &[Size]) -> anyhow::Result<()> {
    let tables = growth::growth(options, shape, sizes)?;
    let largest = sizes
        .iter()
        .copied()
        .max_by(|left, right| left.0.total_cmp(&right.0));
    let options = Options {
        size: largest.unwrap_or(options.size),
        ..options.clone()
    };
    publish(&options, "growth", &open(&options)?, tables)
}

fn shapes(options: &Options, only: &[Other]) -> anyhow::Result<()> {
    let (opened, data, tables) = shapes::shapes(options, only)?;
    publish_all(options, "shapes", &opened, data, tables)
}

fn prune(options: &Options) -> anyhow::Result<()> {
    let mut opened = open(options)?;
    let tables = prune::prune(&mut opened, options)?;
    publish(options, "prune", &opened, tables)
}

fn report(options: &Options, docs: &std::path::Path) -> anyhow::Result<()> {
    let written = report::report(options, docs)?;
    progress::step(&format!("{written} places of {} written", docs.display()));
    Ok(())
}

fn open(options: &Options) -> anyhow::Result<Opened> {
    Opened::open(&options.dir(), options.pg_bin.as_deref())
}

/// Prints and saves the measurements of a subcommand on a data set.
fn publish(options: &Options, name: &str, opened: &Opened, tables: Vec<Table>) -> anyhow::Result<()> {
    publish_all(options, name, opened, opened.data.summary(), tables)
}

/// Prints and saves the measurements of a subcommand on data of this size.
fn publish_all(
    options: &Options,
    name: &str,
    opened: &Opened,
    data: Summary,
    tables: Vec<Table>,
) -> anyhow::Result<()> {
    let section = Section {
        name: name.to_owned(),
        command: std::env::args().collect::<Vec<_>>().join(" "),
        at: clock::now(),
        machine: Machine::here(),
        postgres: cluster::version(&mut opened.running.connection()?)?,
        data,
        tables,
    };
    section.publish(&options.dir(), options.json)
}
