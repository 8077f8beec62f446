//! Processes an upload: from the received body to the store and the answer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::{Duration, Instant},
};

use actix_web::{
    http::StatusCode,
    web::{self, Payload},
};
use assay_access::ingest::IngestGrant;
use assay_domain::{
    id::ProjectId,
    intake::Upload,
    recording::{Effect, ImportReceipt, VerdictChanges},
    store::{DueJudgement, StoredRecording},
};
use assay_listener::Rejected;
use tokio::runtime::Handle;

use crate::{
    answer::Answer,
    app::{AppState, MemoryPermit},
    body::{self, ReceivedBody},
    error::IntakeError,
    metrics::Phase,
    parse::{Head, ParsedUpload, explain, parse},
    parts,
    queue::QueuePlace,
};

/// How often a judgement checks whether uploads still wait.
const CHECK_EVERY: Duration = Duration::from_millis(50);
/// How long waiting uploads may delay a judgement.
const JUDGED_WITHIN: Duration = Duration::from_secs(60);

/// Receives, parses and stores an upload.
pub(crate) async fn store(
    app: &Arc<AppState>,
    grant: IngestGrant,
    head: Head,
    payload: Payload,
    body_is_read: impl FnOnce(),
) -> Result<(StatusCode, Answer), IntakeError> {
    let began = Instant::now();
    let received = body::receive(app, payload, app.limits.wire_bytes).await?;
    body_is_read();
    app.metrics.spent(Phase::receive, began.elapsed());

    let began = Instant::now();
    let (received, memory) = reserve_memory(app, &head, received).await?;
    let (parsing, grant_of_job) = (Arc::clone(app), grant.clone());
    let mut parsed = blocking(move || parse(&parsing, &grant_of_job, head, &received, memory)).await?;
    app.metrics.spent(Phase::parse, began.elapsed());
    if parsed.includes_failures {
        let (reading, grant_of_job) = (Arc::clone(app), grant.clone());
        // The report is not stored yet, so its run is not compared with itself.
        let explaining = move || explain(&reading, &grant_of_job, parsed);
        parsed = app.explanations.run(grant.project, explaining).await??;
    }
    if parsed.dry_run {
        return Ok((StatusCode::OK, Answer::dry_run(&grant, parsed)));
    }
    in_turn(app, &grant, parsed).await
}

/// Reserves the memory to parse a body.
async fn reserve_memory(
    app: &Arc<AppState>,
    head: &Head,
    received: ReceivedBody,
) -> Result<(ReceivedBody, MemoryPermit), IntakeError> {
    let (measuring, shape) = (Arc::clone(app), head.shape.clone());
    let (received, measured) = blocking(move || {
        let measured = parts::measure(&received.file, &shape, &measuring.limits)?;
        Ok((received, measured))
    })
    .await?;
    let memory = app.memory_for(measured.bytes).await?;
    if !measured.has_zips {
        return Ok((received, memory));
    }
    let (measuring, shape) = (Arc::clone(app), head.shape.clone());
    let (received, bytes) = blocking(move || {
        let _memory = memory;
        let bytes = parts::measure_with_zips(&received.file, &shape, &measuring.limits, measured)?;
        Ok((received, bytes))
    })
    .await?;
    Ok((received, app.memory_for(bytes).await?))
}

/// Stores the upload at its project's turn.
async fn in_turn(
    app: &Arc<AppState>,
    grant: &IngestGrant,
    parsed: ParsedUpload,
) -> Result<(StatusCode, Answer), IntakeError> {
    let project = grant.project;
    let place = app.queue.enter(
        project,
        parsed.prepared.recording.tests.len(),
        app.limits.turn_within,
    )?;
    let _waiting = app.metrics.waiting();
    let turn = Arc::new(Turn::default());
    let (storing, turn_of_job, grant_of_job) = (Arc::clone(app), Arc::clone(&turn), grant.clone());
    let (began, runtime) = (Instant::now(), Handle::current());
    let work = move || {
        if !turn_of_job.begin() {
            return Err(closing());
        }
        storing.metrics.spent(Phase::wait, began.elapsed());
        record(&storing, &grant_of_job, parsed, place, runtime)
    };
    let mut stored = std::pin::pin!(app.turns.run(project, work));
    let StoredUpload {
        imported,
        due,
        parsed,
    } = tokio::select! {
        stored = &mut stored => stored??,
        () = app.closed() => match turn.give_up() {
            true => return Err(closing()),
            false => stored.await??,
        },
    };
    let verdicts_changed = match due {
        Some(due) => judge_now_or_later(due).await?,
        None => VerdictChanges::default(),
    };
    let status = status_of(imported.effect);
    let imported = ImportReceipt {
        verdicts_changed,
        ..imported
    };
    Ok((status, Answer::stored(grant, imported, parsed)))
}

/// The status of an answer: whether something was stored.
pub(crate) const fn status_of(effect: Effect) -> StatusCode {
    match effect {
        Effect::Added | Effect::Replaced => StatusCode::CREATED,
        Effect::Unchanged => StatusCode::OK,
    }
}

/// Judges the project after an upload. If other uploads wait, one judgement after them suffices, and the client does
/// not wait for it.
async fn judge_now_or_later(owed: OwedJudgement) -> Result<VerdictChanges, IntakeError> {
    if owed.app.turns.places_taken(&owed.project) > 0 {
        drop(owed);
        return Ok(VerdictChanges::default());
    }
    let Some(judging) = owed.take() else {
        return Ok(VerdictChanges::default());
    };
    // A spawned task continues after the client disconnects.
    let judged = actix_web::rt::spawn(judging).await;
    judged.map_err(|_| IntakeError::Aborted)?
}

/// The judgement that is due after a stored upload. Dropping it runs the judgement in the background, because a report
/// stays stored after its client has disconnected.
struct OwedJudgement {
    app: Arc<AppState>,
    project: ProjectId,
    /// The judgement, until it is started.
    due: Option<DueJudgement>,
    runtime: Handle,
}

impl OwedJudgement {
    /// The judgement as a future that the caller runs.
    fn take(mut self) -> Option<impl Future<Output = Result<VerdictChanges, IntakeError>> + use<>> {
        let due = self.due.take()?;
        Some(judge_in_turn(Arc::clone(&self.app), self.project, due))
    }
}

impl Drop for OwedJudgement {
    fn drop(&mut self) {
        let Some(due) = self.due.take() else { return };
        let project = self.project;
        let judging = judge_in_turn(Arc::clone(&self.app), project, due);
        self.runtime.spawn(async move {
            if let Err(error) = judging.await {
                log::error!("the verdicts of project {project} are not up to date: {error}");
            }
        });
    }
}

/// Judges the project when no other upload into it waits, or after a minute.
async fn judge_in_turn(
    app: Arc<AppState>,
    project: ProjectId,
    due: DueJudgement,
) -> Result<VerdictChanges, IntakeError> {
    let due = Arc::new(due);
    let began = Instant::now();
    loop {
        while app.turns.places_taken(&project) > 0 && began.elapsed() < JUDGED_WITHIN {
            actix_web::rt::time::sleep(CHECK_EVERY).await;
        }
        let (judging, due) = (Arc::clone(&app), Arc::clone(&due));
        let work = move || {
            let began = Instant::now();
            let judged = judging.recorder.judge_after(&due, &*judging.judge);
            judging.metrics.spent(Phase::judge, began.elapsed());
            judged
        };
        match app.turns.run(project, work).await {
            Ok(judged) => return Ok(judged?),
            // No turn was free. The job did not start.
            Err(Rejected::Overloaded) => actix_web::rt::time::sleep(CHECK_EVERY).await,
            Err(rejected @ (Rejected::TimedOut | Rejected::Panicked)) => return Err(rejected.into()),
        }
    }
}

fn closing() -> IntakeError {
    IntakeError::Busy {
        reason: "The server is stopping",
        after_s: crate::queue::SHORTEST_RETRY_S,
    }
}

/// Whether an upload's turn has begun or was given up. A turn that has begun is finished.
#[derive(Default)]
struct Turn(AtomicU8);

impl Turn {
    const WAITING: u8 = 0;
    const BEGUN: u8 = 1;
    const GIVEN_UP: u8 = 2;

    fn begin(&self) -> bool {
        self.change_to(Self::BEGUN)
    }

    fn give_up(&self) -> bool {
        self.change_to(Self::GIVEN_UP)
    }

    fn change_to(&self, next: u8) -> bool {
        self.0
            .compare_exchange(Self::WAITING, next, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}

/// A stored upload.
struct StoredUpload {
    imported: ImportReceipt,
    due: Option<OwedJudgement>,
    parsed: ParsedUpload,
}

/// Stores the report and records the upload. Blocks.
fn record(
    app: &Arc<AppState>,
    grant: &IngestGrant,
    parsed: ParsedUpload,
    place: QueuePlace,
    runtime: Handle,
) -> Result<StoredUpload, IntakeError> {
    let now = (app.clock)();
    let began = Instant::now();
    let StoredRecording { imported, due } = assay_ingest::store(
        &*app.recorder,
        grant.project,
        &parsed.prepared,
        grant.rules(),
        now,
    )?;
    let due = due.map(|due| OwedJudgement {
        app: Arc::clone(app),
        project: grant.project,
        due: Some(due),
        runtime,
    });
    place.leave(began.elapsed());
    app.metrics.spent(Phase::store, began.elapsed());
    app.metrics.stored(imported.effect.as_str(), grant.project, now);
    let upload = Upload {
        key: grant.key,
        project: grant.project,
        at: now,
        run_id: imported.run_id,
        run_number: imported.run_number,
        shard_id: imported.shard_id,
        effect: imported.effect,
        bytes: parsed.bytes,
        files: parsed.files,
        client: parsed.client.clone(),
    };
    // The report is stored. A failure to list the upload must not make its client send it again.
    if let Err(error) = app.keys.record_upload(&upload) {
        log::error!(
            "an upload into run {} was stored and not listed: {error}",
            imported.run_number
        );
    }
    Ok(StoredUpload {
        imported,
        due,
        parsed,
    })
}

/// Runs work on a blocking thread.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, IntakeError> + Send + 'static,
) -> Result<T, IntakeError> {
    web::block(work).await.map_err(|_| IntakeError::Aborted)?
}
