//! `shapes`: every route and the import over data sets of unusual shapes.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::ValueEnum;

use crate::{
    cases, cluster,
    dataset::{Opened, Summary},
    generate::generate,
    import,
    number::float,
    options::Options,
    program::{self, Program},
    progress::step,
    shape::Shape,
    table::{Cell, Table},
};

/// A request that takes longer is sent once, because the next may exceed the server's time limit.
const LONG: Duration = Duration::from_secs(3);

/// A shape in which one number is far larger than usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Other {
    /// 1,000 projects of 500 tests
    Projects,
    /// One test in a million runs
    Runs,
    /// 100,000 tests in a run
    Tests,
    /// 10,000 branches
    Branches,
}

impl Other {
    const fn name(self) -> &'static str {
        match self {
            Self::Projects => "1,000 projects",
            Self::Runs => "a million runs",
            Self::Tests => "100,000 tests",
            Self::Branches => "10,000 branches",
        }
    }

    const fn folder(self) -> &'static str {
        match self {
            Self::Projects => "projects",
            Self::Runs => "runs",
            Self::Tests => "tests",
            Self::Branches => "branches",
        }
    }

    const fn shape(self) -> Shape {
        let usual = Shape {
            projects: 1,
            tests: 20,
            runs_per_day: 20_000.0 / 90.0,
            days: 90.0,
            storm_days: 0.0,
            failing: 0.05,
            first_tests: 1.0,
            alike: true,
            copies: 1,
            branches: 400,
            sharded: 0.0,
            seed: 1,
        };
        match self {
            Self::Projects => Shape {
                projects: 1_000,
                tests: 500,
                runs_per_day: 1.0 / 9.0,
                ..usual
            },
            Self::Runs => Shape {
                tests: 1,
                runs_per_day: 10_001.0 / 90.0,
                copies: 100,
                failing: 1.0,
                ..usual
            },
            Self::Tests => Shape {
                tests: 100_000,
                runs_per_day: 1.0 / 3.0,
                ..usual
            },
            // About 12,000 runs are on another branch than the stable one. Most of the branches have no run.
            Self::Branches => Shape {
                branches: 40_000,
                ..usual
            },
        }
    }
}

/// Measures these shapes, or all if none is named. The last data set stays open.
pub(crate) fn shapes(options: &Options, only: &[Other]) -> anyhow::Result<(Opened, Summary, Vec<Table>)> {
    let chosen: &[Other] = if only.is_empty() {
        Other::value_variants()
    } else {
        only
    };
    let mut rows: Vec<(String, Vec<Cell>)> = Vec::new();
    let mut whole = Summary::default();
    let mut last = None;
    for (place, other) in chosen.iter().enumerate() {
        step(other.name());
        let own = Options {
            data_dir: options.data_dir.join(other.folder()),
            ..options.clone()
        };
        let dir = own.dir();
        let shape = other.shape().scaled(own.size);
        generate(&dir, own.pg_bin.as_deref(), &shape, false)?;
        drop(last.take());
        let opened = Opened::open(&dir, own.pg_bin.as_deref())?;
        whole.add(&opened.data.summary());
        for (name, value) in measured(&opened, &own)? {
            let at = rows.iter().position(|(known, _)| *known == name);
            let at = at.unwrap_or_else(|| {
                rows.push((name, Vec::new()));
                rows.len() - 1
            });
            if let Some((_, values)) = rows.get_mut(at) {
                values.resize(place, Cell::Nothing(()));
                values.push(value);
            }
        }
        last = Some(opened);
    }
    let columns: Vec<&str> = ["Measured"]
        .into_iter()
        .chain(chosen.iter().map(|other| other.name()))
        .collect();
    let mut table = Table::new("shapes", "Other shapes", &columns);
    for (name, mut values) in rows {
        values.resize(chosen.len(), Cell::Nothing(()));
        values.insert(0, name.into());
        table.row(values);
    }
    table.note("Routes are medians of one connection, in milliseconds, and the first answer alone where it takes over 3 s; a status instead says that the server gave up.");
    Ok((last.context("no shape is named")?, whole, vec![table]))
}

fn measured(opened: &Opened, options: &Options) -> anyhow::Result<Vec<(String, Cell)>> {
    let data = opened.data.summary();
    let (id, tests) = opened.data.large().map(|large| (large.id, large.tests))?;
    let branches = cluster::number(
        &mut opened.running.connection()?,
        &format!("SELECT count(*) AS value FROM branch WHERE project_id = '{id}'"),
    )?;
    let mut figures: Vec<(String, Cell)> = vec![
        ("projects in all".to_owned(), float(data.projects).into()),
        ("tests of a project".to_owned(), float(tests).into()),
        ("runs in all".to_owned(), float(data.runs).into()),
        ("branches of a project".to_owned(), float(branches).into()),
        ("results, millions".to_owned(), (float(data.results) / 1e6).into()),
        ("database, GB".to_owned(), (float(data.bytes) / 1e9).into()),
    ];
    let binary = program::server(options.server.as_deref())?;
    let server = Program::server(&binary, &opened.running.url(), &options.server_log, &opened.dir)?;
    for case in cases::targets(&server.client, &opened.data)?.cases {
        step(case.name);
        let request = case.request(&opened.data, &[]);
        let began = Instant::now();
        let first = server.client.once(&request)?;
        let took = began.elapsed();
        if first.status != 200 {
            // An answer above the server's limits is reported by its status.
            figures.push((case.name.to_owned(), first.status.to_string().into()));
            continue;
        }
        if took > LONG {
            figures.push((case.name.to_owned(), (took.as_secs_f64() * 1e3).into()));
            continue;
        }
        let measured = server.client.load(&request, 1, options.time())?;
        figures.push((case.name.to_owned(), measured.ms(0.5).into()));
        if float(measured.bytes) > 1e6 {
            figures.push((format!("{}, MB", case.name), (float(measured.bytes) / 1e6).into()));
        }
    }
    drop(server);
    let imports = import::shapes(opened, if options.seconds < 1.0 { 1 } else { 3 })?;
    figures.extend(imports.into_iter().map(|(name, seconds)| (name, seconds.into())));
    Ok(figures)
}
