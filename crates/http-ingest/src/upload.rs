//! Processes an upload: from the received body to the store and the answer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use actix_web::{http::StatusCode, web::Payload};
use assay_access::check::IngestGrant;
use assay_domain::{
    id::ProjectId,
    ingest::Upload,
    recording::{Effect, VerdictChanges},
    rules::UploadBudget,
    store::{DueJudgement, StoredRecording},
};
use assay_http::{GaugeGuard, Problem, Rejected};
use tokio::runtime::Handle;

use crate::{
    answer::Answer,
    app::{self, AppState},
    body::{self, ReceivedBody},
    error::IngestError,
    fields::BackfillJudgement,
    memory::UploadMemory,
    parse::{Head, ParsedUpload, explain, parse},
    parts::{self, PartHeads},
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
) -> Result<(StatusCode, Answer), IngestError> {
    let began = Instant::now();
    let holder = app::holder(&grant);
    let heads = PartHeads::of(&head.shape);
    let received = body::receive(app, holder, payload, app.limits.wire_bytes, heads).await?;
    body_is_read();
    app.count_phase("receive", began.elapsed());

    let began = Instant::now();
    let mut parsed = read(app, &grant, head, received).await?;
    app.count_phase("parse", began.elapsed());
    if parsed.includes_failures {
        let (reading, grant_of_job) = (Arc::clone(app), grant.clone());
        // The report is not stored yet, so its run is not compared with itself.
        let explaining = move || explain(&reading, &grant_of_job, parsed);
        let explained = app
            .explanations
            .run_after(grant.project, holder.precedence, explaining);
        parsed = explained.await??;
    }
    if parsed.dry_run {
        return Ok((StatusCode::OK, Answer::dry_run(&grant, parsed)));
    }
    in_turn(app, &grant, parsed).await
}

/// Reads a body, at its key's turn and within its key's memory.
async fn read(
    app: &Arc<AppState>,
    grant: &IngestGrant,
    head: Head,
    received: ReceivedBody,
) -> Result<ParsedUpload, IngestError> {
    let holder = app::holder(grant);
    let (head, received) = (Arc::new(head), Arc::new(received));
    let (measuring, shape, body) = (Arc::clone(app), head.shape.clone(), Arc::clone(&received));
    let measure = move || parts::measure(&body.file, &shape, &measuring.limits);
    let turn = app.readers.run_after(holder.key, holder.precedence, measure);
    let bytes = turn.await??;
    let mut guess = UploadMemory::first_guess(bytes);
    loop {
        let memory = Arc::new(app.memory_for(holder, guess).await?);
        let (reading, grant, head, body) = (
            Arc::clone(app),
            grant.clone(),
            Arc::clone(&head),
            Arc::clone(&received),
        );
        let memory_of_job = Arc::clone(&memory);
        let work = move || parse(&reading, &grant, &head, (&body, bytes), memory_of_job);
        let turn = app.readers.run_after(holder.key, holder.precedence, work);
        match turn.await? {
            Ok(parsed) => return Ok(parsed),
            Err(error) => guess = memory.next_guess()?.ok_or(error)?,
        }
    }
}

/// Stores the upload at its project's turn.
async fn in_turn(
    app: &Arc<AppState>,
    grant: &IngestGrant,
    parsed: ParsedUpload,
) -> Result<(StatusCode, Answer), IngestError> {
    let project = grant.project;
    let holder = app::holder(grant);
    let tests = parsed.prepared.recording.tests.len();
    let place = app.queue.enter(project, holder, tests, &app.limits)?;
    let _waiting = GaugeGuard::of(&app.metrics.ingest_uploads_waiting);
    let turn = Arc::new(Turn::default());
    let (storing, turn_of_job, grant_of_job) = (Arc::clone(app), Arc::clone(&turn), grant.clone());
    let (began, runtime) = (Instant::now(), Handle::current());
    let work = move || {
        if !turn_of_job.take() {
            return Err(closing());
        }
        storing.count_phase("wait", began.elapsed());
        record(&storing, &grant_of_job, parsed, place, runtime)
    };
    let mut stored = std::pin::pin!(app.turns.run_after(project, holder.precedence, work));
    let StoredUpload { status, answer, due } = tokio::select! {
        stored = &mut stored => stored??,
        () = app.closed() => match turn.take() {
            true => return Err(closing()),
            false => stored.await??,
        },
    };
    let answer = match due {
        Some(due) => answer.with_verdicts(judge_now_or_later(due).await?),
        None => answer,
    };
    Ok((status, answer))
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
async fn judge_now_or_later(owed: OwedJudgement) -> Result<VerdictChanges, IngestError> {
    if owed.app.turns.places_taken(&owed.project) > 0 {
        drop(owed);
        return Ok(VerdictChanges::default());
    }
    let Some(judging) = owed.take() else {
        return Ok(VerdictChanges::default());
    };
    // A spawned task continues after the client disconnects.
    let judged = actix_web::rt::spawn(judging).await;
    judged.map_err(|_| Problem::Panicked)?
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
    fn take(mut self) -> Option<impl Future<Output = Result<VerdictChanges, IngestError>> + use<>> {
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
) -> Result<VerdictChanges, IngestError> {
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
            judging.count_phase("judge", began.elapsed());
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

fn closing() -> IngestError {
    IngestError::Busy {
        reason: "The server is stopping",
        after_s: crate::queue::SHORTEST_RETRY_S,
    }
}

/// The turn of an upload, which either its job or the end of the server takes. A turn that has begun is finished.
#[derive(Default)]
struct Turn(AtomicBool);

impl Turn {
    /// Whether it was still free.
    fn take(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}

/// A stored upload, without its report.
struct StoredUpload {
    status: StatusCode,
    /// The answer, without the verdicts that change.
    answer: Answer,
    due: Option<OwedJudgement>,
}

/// What the key may store on this day, and what this upload would add.
fn budget(app: &AppState, grant: &IngestGrant, parsed: &ParsedUpload) -> UploadBudget {
    UploadBudget {
        key: grant.id,
        bytes: parsed.unpacked_bytes,
        of_day: if grant.terms.pull_requests_only {
            app.limits.of_public_day
        } else {
            app.limits.of_day
        },
    }
}

/// Stores the report and records the upload. Blocks.
fn record(
    app: &Arc<AppState>,
    grant: &IngestGrant,
    parsed: ParsedUpload,
    place: QueuePlace,
    runtime: Handle,
) -> Result<StoredUpload, IngestError> {
    let now = (app.clock)();
    let began = Instant::now();
    let StoredRecording { imported, due } = assay_ingest::store(
        &*app.recorder,
        grant.project,
        &parsed.prepared,
        grant.rules().within(budget(app, grant, &parsed)),
        now,
    )
    .inspect_err(|error| app.count_refused(error))?;
    let is_silent = parsed.judgement == Some(BackfillJudgement::Silent);
    let due = due.filter(|_| parsed.judgement != Some(BackfillJudgement::Later));
    let due = due.map(|mut due| {
        due.is_silent = is_silent;
        OwedJudgement {
            app: Arc::clone(app),
            project: grant.project,
            due: Some(due),
            runtime,
        }
    });
    place.leave(began.elapsed());
    app.count_phase("store", began.elapsed());
    app.count_stored(imported.effect.as_str(), grant.project, now);
    let upload = Upload {
        key: grant.id,
        project: grant.project,
        at: now,
        run_id: imported.run_id,
        run_number: imported.run_number,
        shard_id: imported.shard_id,
        effect: imported.effect,
        bytes: parsed.bytes,
        files: parsed.files,
        client: parsed.client.clone(),
        sender: grant.sender.clone(),
    };
    // The report is stored. A failure to list the upload must not make its client send it again.
    if let Err(error) = app.keys.record_upload(&upload) {
        log::error!(
            "an upload into run {} was stored and not listed: {error}",
            imported.run_number
        );
    }
    let url = app.page_of(grant.project, imported.run_id);
    Ok(StoredUpload {
        status: status_of(imported.effect),
        answer: Answer::stored(grant, imported, parsed, url),
        due,
    })
}
