//! `generate`: creates a data set of known size through the import's own code.
//!
//! The transaction of real imports stores every report, without the judgement. Only the last import of each project
//! judges, because judging after each run would repeat the work thousands of times.

mod errors;
mod plan;
mod run;

use std::{fs, path::Path, thread, time::Instant};

use anyhow::{Context as _, bail};
use assay_domain::{
    id::ProjectId,
    key::{KeyKind, Lifetime, mint},
    observation::History,
    plan::Plan as Paid,
    store::{Administration as _, Recorder as _},
    timestamp::Timestamp,
    verdict::{Judge, Judgement},
};
use assay_flakiness::Engine;
use assay_repository::Database;
use diesel::connection::SimpleConnection as _;
use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};

pub(crate) use plan::ProjectPlan;
pub(crate) use run::recordings;

use crate::{
    clock,
    cluster::{self, Running},
    dataset::{Dataset, DatasetProject, connect},
    number::small,
    shape::Shape,
};

/// The data set of this shape in this folder: an existing one, or a new one.
pub(crate) fn generate(dir: &Path, pg_bin: Option<&Path>, shape: &Shape) -> anyhow::Result<Dataset> {
    if let Some(former) = Dataset::load(dir)? {
        if former.shape != *shape {
            bail!(
                "{} holds a data set of another shape; remove it, or give another --data-dir",
                dir.display()
            );
        }
        return Ok(former);
    }
    fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    let running = Running::start(dir, pg_bin)?;
    running.recreate()?;
    assay_repository::migrate(&running.url())?;
    let started = Instant::now();
    let mut data = fill(&running, shape)?;
    let mut connection = running.connection()?;
    connection.batch_execute("VACUUM (ANALYZE)")?;
    connection.batch_execute("CHECKPOINT")?;
    data.bytes = cluster::size(&mut connection)?;
    data.seconds = started.elapsed().as_secs_f64();
    data.store(dir)?;
    Ok(data)
}

/// The projects with their histories. Several are generated in parallel.
fn fill(running: &Running, shape: &Shape) -> anyhow::Result<Dataset> {
    let until = clock::now();
    let workers = thread::available_parallelism().map_or(1, Into::into);
    // A crash loses nothing: the data can be generated again.
    let url = format!("{}&options=-c%20synchronous_commit%3Doff", running.url());
    let database = connect(&url, u32::try_from(workers)?)?;
    let began = until.plus_ms(-days_ms(shape.days + 1.0));
    let organization = database.create_organization("Benchmark", Paid::Pro, began)?;
    let (secret, key) = mint(KeyKind::Read, until);
    database.create_read_key(organization.id, &key, Lifetime::HundredEighty.expiry(until))?;
    let mut plans = Vec::new();
    for index in 0..shape.projects {
        let entry = database.create_project(organization.id, &format!("project-{index}"), "main", began)?;
        plans.push((entry.id, ProjectPlan::new(shape, index, until)));
    }
    let runs: u64 = plans.iter().map(|(_, plan)| count(plan.runs.len())).sum();
    eprintln!("assay-bench: {runs} runs of {} projects", plans.len());
    let stored = plans.par_iter().map(|(id, plan)| {
        let dataset_project = project(&database, *id, plan)?;
        Ok(dataset_project)
    });
    let projects = stored.collect::<anyhow::Result<Vec<_>>>()?;
    Ok(Dataset {
        shape: shape.clone(),
        until,
        key: secret.reveal().to_owned(),
        projects,
        seconds: 0.0,
        bytes: 0,
    })
}

/// A number of days in milliseconds.
pub(crate) fn days_ms(days: f64) -> i64 {
    i64::from(small(days * 24.0 * 3600.0)) * 1000
}

fn count(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Stores the history of one project. Imports into one project are serial.
fn project(database: &Database, id: ProjectId, plan: &ProjectPlan) -> anyhow::Result<DatasetProject> {
    let mut dataset_project = DatasetProject {
        id,
        role: plan.role,
        tests: count(plan.tests.len()),
        runs: count(plan.runs.len()),
        results: 0,
    };
    // Before all data, so that the engine's window is empty.
    let early = plan.until.plus_ms(-days_ms(plan.days)).plus_days(-2);
    for (number, run) in (0..).zip(&plan.runs) {
        let shards = recordings(plan, run, number);
        for (place, shard) in (1..).zip(&shards) {
            dataset_project.results += count(shard.tests.len());
            if number + 1 == dataset_project.runs && place == shards.len() {
                database.record(id, shard, &Engine::default(), plan.until)?;
            } else {
                database.record(id, shard, &NoJudge, early)?;
            }
        }
    }
    Ok(dataset_project)
}

/// Judges nothing, because another import will.
pub(crate) struct NoJudge;

impl Judge for NoJudge {
    fn judge(&self, _: &History, _: Timestamp) -> Vec<Judgement> {
        Vec::new()
    }

    fn builds_needed(&self, _: Option<f64>) -> u32 {
        u32::MAX
    }
}
