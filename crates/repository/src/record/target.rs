//! The run to which a report belongs, and the parts that it already has.

use std::collections::BTreeSet;

use assay_domain::{
    attempt::ErrorDetail,
    recording::Recording,
    rules::RecordingRules,
    store::{RecordError, StoreError},
    timestamp::Timestamp,
};
use diesel::PgConnection;
use uuid::Uuid;

use super::{
    contents::RunContents,
    run::{KnownRun, RunKey},
    work::Work,
};
use crate::{
    db::{
        column::{bigint, int},
        pool::{Read, WorkError},
    },
    read::{
        part::{self, StoredPart},
        test::{name_of, names_by_ordinal},
    },
};

/// The run of a report.
pub(super) struct Target<'a> {
    pub(super) key: RunKey<'a>,
    /// None if it is not stored yet.
    pub(super) run: Option<KnownRun>,
    /// Its parts.
    pub(super) parts: Vec<StoredPart>,
    /// The run of the key that was closed last, if the report does not belong to it, and its parts.
    closed: Option<(KnownRun, Vec<StoredPart>)>,
}

impl<'a> Target<'a> {
    /// The run of the report's key. A run that is closed stays as it is: a later attempt of one of its jobs belongs to
    /// another run of the same key.
    ///
    /// Runs that do not count in verdicts have separate keys. An ingest key for such runs alone can thus neither change
    /// another run nor take its key.
    pub(super) fn find(
        connection: &mut PgConnection,
        project: Uuid,
        recording: &'a Recording,
        rules: RecordingRules,
        now: Timestamp,
    ) -> Read<Self> {
        let mut key = RunKey {
            text: &recording.run_key,
            counts_in_verdicts: rules.counts_in_verdicts(),
            closed_runs: 0,
        };
        let page = recording.context.run_url.as_deref();
        let page = page.filter(|_| recording.is_of_unknown_jobs());
        let mut closed = None;
        loop {
            let mut known = KnownRun::find(connection, project, key)?;
            if let (None, Some(page)) = (&known, page) {
                // A job that named its suite has another key.
                known = KnownRun::find_of_page(connection, project, page, recording, key.counts_in_verdicts)?;
            }
            let Some(run) = known else {
                return Ok(Self {
                    key,
                    run: None,
                    parts: Vec::new(),
                    closed,
                });
            };
            let parts = part::of_run(connection, project, run.number)?;
            let is_open = rules.check_open(run.number, run.first_part_at(), now).is_ok();
            if is_open || !is_later_attempt(recording, &parts) {
                return Ok(Self {
                    key,
                    run: Some(run),
                    parts,
                    closed,
                });
            }
            closed = Some((run, parts));
            // At most one run a day of retention, as each is open for a day.
            key.closed_runs += 1;
        }
    }

    /// The number of tests that the report's job left failed in the closed run, and that are not among those of the report,
    /// and an error that says so; none if there are none, or if the report's run exists. A re-run of some tests days later
    /// is thus not green.
    pub(super) fn left_failed(
        &self,
        connection: &mut PgConnection,
        project: Uuid,
        recording: &Recording,
        reported: &BTreeSet<i32>,
    ) -> Read<Option<(usize, ErrorDetail)>> {
        let (None, Some((closed, parts))) = (&self.run, &self.closed) else {
            return Ok(None);
        };
        let mut contents = RunContents::load(connection, project, closed.number, closed.started_at)?;
        contents.merge(parts)?;
        let of_job = parts
            .iter()
            .filter(|part| part.sender_job == recording.sender.job);
        let of_job: BTreeSet<i16> = of_job.map(|part| part.number).collect();
        let left = contents
            .failed_in(&of_job)
            .filter(|test| !reported.contains(test));
        let left: Vec<i32> = left.collect();
        let Some(first) = left.first() else {
            return Ok(None);
        };
        let names = names_by_ordinal(connection, project, &[*first])?;
        let tests = if left.len() == 1 { "test" } else { "tests" };
        let message = format!(
            "{} {tests} failed in an earlier attempt of this job, in run {}, and did not run again, such as {}",
            left.len(),
            closed.number,
            name_of(&names, *first)?.name
        );
        let error = ErrorDetail {
            message: Some(message),
            ..ErrorDetail::default()
        };
        Ok(Some((left.len(), error)))
    }

    /// The part with the same content from the same sender. If a CI service does not know the sender, the part that a job sent
    /// itself in the attempt.
    pub(super) fn same_part(&self, recording: &Recording) -> Result<Option<&StoredPart>, StoreError> {
        if recording.is_of_unknown_jobs() && self.may_have_revision_of(recording)? {
            let attempt = bigint(recording.sender.attempt.of_job);
            for part in &self.parts {
                if part.sender()?.is_known() && (attempt == 0 || part.job_attempt == attempt) {
                    return Ok(Some(part));
                }
            }
        }
        for part in of_slot(&self.parts, recording) {
            if part.content == recording.content && part.sender()?.is_same_instance(&recording.sender) {
                let is_only_part = of_slot(&self.parts, recording).count() == 1;
                return Ok((is_only_part || !recording.replaces).then_some(part));
            }
        }
        Ok(None)
    }

    /// The parts that remain beside the report.
    pub(super) fn others(&self, recording: &Recording) -> impl Iterator<Item = &StoredPart> {
        let index = index(recording);
        let replaces = recording.replaces;
        self.parts
            .iter()
            .filter(move |part| !replaces || part.index != index)
    }

    fn may_have_revision_of(&self, recording: &Recording) -> Result<bool, StoreError> {
        let Some(run) = &self.run else { return Ok(true) };
        let stored = run.context.clone().stored()?;
        Ok(stored.may_have_revision_of(&recording.context))
    }

    /// Rejects a report with a shard for a run without, and the reverse, and a report of another revision.
    pub(super) fn check(&self, recording: &Recording) -> Work<()> {
        let refused = |error| Err(WorkError::Refused(error));
        let Some(run) = &self.run else { return Ok(()) };
        if run.sharded != recording.shard.is_some() {
            return refused(RecordError::ShardingDiffers {
                run_number: run.number,
                stored_sharded: run.sharded,
            });
        }
        if self.others(recording).next().is_none() || self.may_have_revision_of(recording)? {
            return Ok(());
        }
        let stored = run.context.clone().stored()?;
        let name = |revision: Option<&str>| revision.unwrap_or("unknown").to_owned();
        refused(RecordError::RevisionDiffers {
            run_number: run.number,
            run_key: recording.run_key.replace('\t', " "),
            stored: name(stored.revision()),
            reported: name(recording.context.revision()),
        })
    }
}

/// The stored index of a report's shard.
pub(super) fn index(recording: &Recording) -> Option<i32> {
    recording.shard.map(|shard| int(shard.index))
}

/// The parts of the report's shard.
pub(super) fn of_slot<'p>(
    parts: &'p [StoredPart],
    recording: &Recording,
) -> impl Iterator<Item = &'p StoredPart> {
    let index = index(recording);
    parts.iter().filter(move |part| part.index == index)
}

/// Whether the report is of a later attempt of its job than all parts of that job and shard. If that shard has none, the
/// parts of the job's other shards count.
fn is_later_attempt(recording: &Recording, parts: &[StoredPart]) -> bool {
    let of_job = || {
        parts
            .iter()
            .filter(|part| part.sender_job == recording.sender.job)
    };
    let last = |attempts: &mut dyn Iterator<Item = &StoredPart>| attempts.map(|part| part.job_attempt).max();
    let index = index(recording);
    let last = last(&mut of_job().filter(|part| part.index == index)).or_else(|| last(&mut of_job()));
    last.is_some_and(|last| last < bigint(recording.sender.attempt.of_job))
}
