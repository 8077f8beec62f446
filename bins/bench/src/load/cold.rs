//! The first answer after a restart, with nothing in any cache.

use std::collections::HashMap;

use crate::{
    cases::{self, Targets},
    dataset::Opened,
    load::Timed,
    number::{median, ms},
    options::Options,
    program::Program,
    progress::step,
    table::Table,
};

/// Restarts for each route.
const TIMES: usize = 3;
const MEASURED: [&str; 6] = [
    cases::STATUS,
    cases::RUN,
    cases::LONG_HISTORY,
    cases::FLAKY,
    cases::SIGNATURES,
    cases::SIGNATURE,
];

/// The first answers, in milliseconds.
#[derive(Debug)]
pub(super) struct Cold {
    times: HashMap<&'static str, Vec<f64>>,
    /// Whether the system's caches were emptied too.
    dropped: bool,
}

/// Restarts Postgres and the server before each first answer.
pub(super) fn measure(
    mut opened: Opened,
    targets: &Targets,
    options: &Options,
    start: impl Fn(&Opened) -> anyhow::Result<Program>,
) -> anyhow::Result<(Opened, Cold)> {
    let mut cold = Cold {
        times: HashMap::new(),
        dropped: true,
    };
    for name in MEASURED {
        let Ok(case) = cases::find(&targets.cases, name) else {
            continue;
        };
        step(&format!("{name}: cold"));
        for _ in 0..options.repeats(TIMES) {
            let Opened { dir, data, running } = opened;
            let (running, dropped) = running.restart_cold(!options.keep_caches)?;
            opened = Opened { dir, data, running };
            cold.dropped &= dropped;
            let server = start(&opened)?;
            let (took, answer) = server.client.time(&case.request(&opened.data, &[]))?;
            anyhow::ensure!(answer.status == 200, "{name} answered {}", answer.status);
            cold.times.entry(name).or_default().push(ms(took));
        }
    }
    Ok((opened, cold))
}

impl Cold {
    pub(super) fn table(&self, warm: &[Timed]) -> Table {
        let mut table = Table::new(
            "cold",
            "The first answer after a restart",
            &["Route", "cold ms", "warm p50 ms", "times"],
        );
        for timed in warm {
            let Some(times) = self.times.get(timed.case.name) else {
                continue;
            };
            let (cold, warm) = (median(times.clone()), timed.alone.ms(0.5));
            table.row(vec![
                timed.case.name.into(),
                cold.into(),
                warm.into(),
                cold.zip(warm).map(|(cold, warm)| cold / warm).into(),
            ]);
        }
        table.note(format!(
            "Postgres and the server were started anew before each first request ({} of each route), {}. Connecting and planning the \
             statements are part of the time.",
            self.times.values().map(Vec::len).max().unwrap_or(0),
            if self.dropped {
                "and the system's file caches emptied"
            } else {
                "but the system's file caches were left as they were"
            }
        ));
        table
    }
}
