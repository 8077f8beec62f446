//! The flaky list from packs: from a server's cache, read again after an import, and in this process.

use std::{hint::black_box, time::Instant};

use anyhow::Context as _;
use assay_domain::{
    id::ProjectId,
    store::in_snapshot,
    timestamp::Timestamp,
    verdict::{ENGINE_WINDOW_DAYS, Verdict},
};
use assay_flakiness::Engine;
use diesel::{PgConnection, RunQueryDsl as _, sql_types::Uuid as SqlUuid};

use crate::{
    cases::Case,
    dataset::Opened,
    number::{median, ms},
    program::Program,
};

/// Invalidates a project's packs in every server, as an import does.
fn as_after_an_import(connection: &mut PgConnection, project: ProjectId) -> anyhow::Result<()> {
    diesel::sql_query("UPDATE project SET observed = gen_random_uuid() WHERE id = $1")
        .bind::<SqlUuid, _>(project.0)
        .execute(connection)?;
    Ok(())
}

/// The time of an answer each time after an import, in milliseconds.
pub(super) fn after_imports(
    opened: &Opened,
    server: &Program,
    case: &Case,
    project: ProjectId,
    times: usize,
) -> anyhow::Result<f64> {
    let (mut connection, mut taken) = (opened.running.connection()?, Vec::new());
    for _ in 0..times {
        as_after_an_import(&mut connection, project)?;
        let (took, answer) = server.client.time(&case.request(&opened.data, &[]))?;
        anyhow::ensure!(answer.status == 200, "the flaky list answered {}", answer.status);
        taken.push(ms(took));
    }
    median(taken).context("no time was measured")
}

/// The engine over packs, in this process.
pub(super) struct Packs {
    /// Reading and the engine, in milliseconds.
    pub(super) read: f64,
    pub(super) engine: f64,
    pub(super) verdicts: Vec<Verdict>,
}

impl Packs {
    pub(super) fn measure(
        opened: &Opened,
        project: ProjectId,
        now: Timestamp,
        times: usize,
    ) -> anyhow::Result<Self> {
        let (store, mut connection) = (opened.store(1)?, opened.running.connection()?);
        let known = opened.data.project(&store, project, now)?;
        let (engine, from) = (Engine::default(), now.plus_days(-ENGINE_WINDOW_DAYS));
        let (mut whole, mut alone, mut last) = (Vec::new(), Vec::new(), None);
        for _ in 0..times {
            as_after_an_import(&mut connection, project)?;
            let started = Instant::now();
            let history = in_snapshot(&store, &known, |snapshot| snapshot.observations(from, now))?;
            let read = Instant::now();
            black_box(engine.suspects(&history, now));
            alone.push(ms(read.elapsed()));
            whole.push(ms(started.elapsed()));
            last = Some(history);
        }
        let last = last.context("no history was read")?;
        Ok(Self {
            read: median(whole).context("no time was measured")?,
            engine: median(alone).context("no time was measured")?,
            verdicts: engine.verdicts(&last, now),
        })
    }
}
