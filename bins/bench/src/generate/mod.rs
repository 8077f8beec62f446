//! `generate`: a data set of known size, through the import's own code.
//!
//! Every report is stored by the same transaction as a real one, without the judgement. Only the last import of each
//! project judges, because judging after each run would repeat the work thousands of times.

mod copies;
mod errors;
mod plan;
mod run;

use std::{
    fs,
    path::Path,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc::sync_channel,
    },
    thread,
    time::Instant,
};

use anyhow::{Context as _, bail};
use assay_access::{key::mint, lifetime::Lifetime};
use assay_domain::{
    id::ProjectId,
    key::KeyKind,
    observation::History,
    plan::Plan as Paid,
    recording::Recording,
    store::{Administration as _, Recorder as _},
    timestamp::{DAY_MS, Timestamp},
    verdict::{ENGINE_WINDOW_DAYS, Judge, Judgement},
};
use assay_flakiness::Engine;
use assay_repository::Database;
use diesel::connection::SimpleConnection as _;
use indicatif::ProgressBar;

use copies::Copies;
pub(crate) use plan::{ProjectPlan, Role};
use run::recordings;
pub(crate) use run::recordings_of;

use crate::{
    clock,
    cluster::{self, Running, with_settings},
    dataset::{Dataset, Made, connect},
    number::{float, small},
    progress::{advance, bar, step},
    shape::Shape,
};

/// How many recordings are made ahead of the one that is being stored.
const AHEAD: usize = 8;

/// The data set of this shape in this folder: the one that is there, or a new one.
pub(crate) fn generate(
    dir: &Path,
    pg_bin: Option<&Path>,
    shape: &Shape,
    replace: bool,
) -> anyhow::Result<Dataset> {
    if !replace && let Some(former) = Dataset::load(dir)? {
        if former.shape != *shape {
            bail!(
                "{} holds a data set of another shape; give --replace, or another --data-dir",
                dir.display()
            );
        }
        if !former.pruned && is_current(dir, pg_bin)? {
            return Ok(former);
        }
        step("the data set is of an older schema, or was pruned: it is generated again");
    }
    fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    Dataset::forget(dir)?;
    let running = Running::start(dir, pg_bin)?;
    running.recreate()?;
    assay_repository::migrate(&running.url())?;
    let started = Instant::now();
    let mut data = fill(&running, shape)?;
    step("vacuum and analyze");
    let mut connection = running.connection()?;
    connection.batch_execute("VACUUM (ANALYZE)")?;
    connection.batch_execute("CHECKPOINT")?;
    data.bytes = cluster::size(&mut connection)?;
    data.seconds = started.elapsed().as_secs_f64();
    data.store(dir)?;
    Ok(data)
}

fn is_current(dir: &Path, pg_bin: Option<&Path>) -> anyhow::Result<bool> {
    let running = Running::start(dir, pg_bin)?;
    Ok(assay_repository::pending(&running.url())?.is_empty())
}

/// The projects and their history, several at a time.
fn fill(running: &Running, shape: &Shape) -> anyhow::Result<Dataset> {
    let until = clock::now();
    let workers = thread::available_parallelism().map_or(1, Into::into);
    // A crash costs nothing here: the data can be made again.
    let url = with_settings(&running.url(), &[("synchronous_commit", "off")]);
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
    let runs: u64 = plans.iter().map(|(_, plan)| float_free(plan.runs.len())).sum();
    step(&format!("{runs} runs of {} projects", plans.len()));
    let bar = bar(runs);
    let projects = in_parallel(&plans, workers, |(id, plan)| {
        let copies = Copies::new(running, plan, shape);
        project(&database, *id, plan, &copies, &bar)
    })?;
    bar.finish_and_clear();
    Ok(Dataset {
        shape: shape.clone(),
        until,
        organization: organization.id,
        key: secret.reveal().to_owned(),
        projects,
        seconds: 0.0,
        bytes: 0,
        pruned: false,
    })
}

/// So many days in milliseconds.
pub(crate) fn days_ms(days: f64) -> i64 {
    i64::from(small(days * 24.0 * 3600.0)) * 1000
}

fn float_free(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// The results of `work` for each item, in their order; a bounded number at a time, the first ones first.
fn in_parallel<I: Sync, O: Send>(
    items: &[I],
    workers: usize,
    work: impl Fn(&I) -> anyhow::Result<O> + Sync,
) -> anyhow::Result<Vec<O>> {
    let (next, made) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..workers.min(items.len()) {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(place) else { break };
                    let outcome = work(item);
                    made.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push((place, outcome));
                }
            });
        }
    });
    let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    made.sort_by_key(|(place, _)| *place);
    made.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Stores the history of one project. Imports into one project are serial; the next recordings are made meanwhile.
fn project(
    database: &Database,
    id: ProjectId,
    plan: &ProjectPlan,
    copies: &Copies<'_>,
    bar: &ProgressBar,
) -> anyhow::Result<Made> {
    let mut made = Made {
        id,
        role: plan.role,
        tests: float_free(plan.tests.len()),
        runs: float_free(plan.runs.len()),
        results: 0,
        errors: 0,
        window: 0,
    };
    // Before all data, so that the engine's window is empty.
    let early = plan.until.plus_ms(-days_ms(plan.days)).plus_days(-2);
    let window = plan.until.plus_ms(-ENGINE_WINDOW_DAYS * DAY_MS);
    let last = plan.runs.len().saturating_sub(1);
    thread::scope(|scope| {
        let (sender, receiver) = sync_channel::<(usize, Vec<Recording>)>(AHEAD);
        scope.spawn(move || {
            for number in 0..plan.runs.len() {
                // The receiver is dropped after an import has failed.
                if sender.send((number, recordings(plan, number))).is_err() {
                    break;
                }
            }
        });
        for (number, shards) in receiver {
            if number == last {
                copies.store(id, made.runs)?;
                made.multiply(copies.each);
            }
            let final_shard = shards.len().saturating_sub(1);
            for (place, shard) in shards.iter().enumerate() {
                made.count(shard, window);
                let judged = number == last && place == final_shard;
                let (judge, now): (&dyn Judge, Timestamp) = if judged {
                    (&Engine::default(), plan.until)
                } else {
                    (&Later, early)
                };
                database.record(id, shard, judge, now)?;
            }
            advance(bar);
        }
        Ok::<_, anyhow::Error>(())
    })?;
    Ok(made)
}

impl Made {
    fn count(&mut self, recording: &Recording, window: Timestamp) {
        let results = float_free(recording.tests.len());
        self.results += results;
        if recording.started_at >= window {
            self.window += results;
        }
        let attempts = recording.tests.iter().flat_map(|test| &test.attempts);
        self.errors += float_free(attempts.filter(|attempt| attempt.class.is_some()).count());
    }

    /// Counts all of its runs except the last this number of times.
    fn multiply(&mut self, times: u32) {
        let times = u64::from(times);
        self.runs = (self.runs - 1) * times + 1;
        self.results *= times;
        self.errors *= times;
        self.window *= times;
    }

    /// Results in each of its runs, on average.
    pub(crate) fn results_a_run(&self) -> f64 {
        float(self.results) / float(self.runs.max(1))
    }
}

/// Judges nothing: another import will.
struct Later;

impl Judge for Later {
    fn judge(&self, _: &History, _: Timestamp) -> Vec<Judgement> {
        Vec::new()
    }
}
