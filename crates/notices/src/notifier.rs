//! Passes over the outbox: settle, plan, compose, deliver.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, PoisonError},
};

use assay_domain::{
    edge::Edge,
    id::ProjectId,
    settings::ChatEvent,
    store::{
        Attempt, DueMessage, MessageHead, MessageKey, MessageKind, NewMessage, Outbox, OutboxProject, Store,
        StoreError,
    },
    timestamp::{DAY_MS, Timestamp},
};
use assay_explain::links::PublicPages;
use assay_flakiness::Diagnose;
use uuid::Uuid;

use crate::{
    Content, Decision, Outgoing, Reader, Target, compose, digest, plan, settle,
    settle::{SubjectKey, chains},
};

/// The first pause after a failed attempt, in milliseconds. Each is twice as long as the one before.
const FIRST_PAUSE_MS: i64 = 5_000;
/// The longest pause, in milliseconds.
const LONGEST_PAUSE_MS: i64 = 60 * 60_000;
/// How often the targets of a project are registered again, in milliseconds.
const REGISTERED_EVERY_MS: i64 = 60 * 60_000;
/// How often old edges and messages of a project are deleted, in milliseconds.
const TIDIED_EVERY_MS: i64 = 60 * 60_000;
/// Most messages to one target about one project in a pass.
const MOST_AT_ONCE: usize = 20;

/// Sends messages about the edges of all projects. Only one may work on a database at a time.
pub struct Notifier<'a, S> {
    store: &'a S,
    engine: &'a dyn Diagnose,
    pages: Option<PublicPages>,
    targets: Vec<Target>,
    /// A random number of at least 0 and less than 1, for the pauses between attempts.
    jitter: Box<dyn Fn() -> f64 + 'a>,
    /// When old messages of each project were deleted since the start.
    tidied: Mutex<HashMap<ProjectId, Timestamp>>,
}

impl<S> std::fmt::Debug for Notifier<'_, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Notifier")
            .field("targets", &self.targets)
            .finish_non_exhaustive()
    }
}

/// What a pass did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PassReport {
    /// Messages that targets took.
    pub delivered: u64,
    /// Attempts that failed.
    pub failed: u64,
}

impl<'a, S: Store + Outbox> Notifier<'a, S> {
    /// A notifier for these targets. `jitter` returns a random number of at least 0 and less than 1.
    pub fn new(
        store: &'a S,
        engine: &'a dyn Diagnose,
        pages: Option<PublicPages>,
        targets: Vec<Target>,
        jitter: impl Fn() -> f64 + 'a,
    ) -> Self {
        Self {
            store,
            engine,
            pages,
            targets,
            jitter: Box::new(jitter),
            tidied: Mutex::default(),
        }
    }

    /// Goes through all projects once.
    ///
    /// # Errors
    /// If the store fails. What was done before is kept.
    pub fn pass(&self, now: Timestamp) -> Result<PassReport, StoreError> {
        let mut report = PassReport::default();
        // A target that fails is left alone for the rest of the pass, so that it does not delay the others.
        let mut failed: HashSet<&str> = HashSet::new();
        for project in self.store.outbox_projects(now)? {
            self.register(&project, now)?;
            self.tidy(&project, now)?;
            let last_batch = self.settle(&project, now)?;
            let edges = match last_batch {
                0 => Vec::new(),
                _ => self.store.settled(project.project.id)?,
            };
            for target in &self.targets {
                let events = target.events_of(&project);
                if events.is_empty() || target.quiet.as_ref().is_some_and(|quiet| quiet.have(now)) {
                    continue;
                }
                self.write(&project, target, &events, (&edges, last_batch), now)?;
                self.write_digest(&project, target, &edges, now)?;
                if !failed.contains(target.name.as_str())
                    && !self.deliver(&project, target, &mut report, now)?
                {
                    failed.insert(&target.name);
                }
            }
        }
        Ok(report)
    }

    /// What the next pass would send: for each message the target and the content. Changes nothing.
    ///
    /// # Errors
    /// If the store fails.
    pub fn preview(&self, now: Timestamp) -> Result<Vec<(&str, Content)>, StoreError> {
        let mut messages = Vec::new();
        for project in self.store.outbox_projects(now)? {
            let unsettled = self.store.unsettled(project.project.id)?;
            let due = settle(&unsettled, project.judged_at, now).settled;
            let batch = project.last_batch.saturating_add(1);
            let mut edges = self.store.settled(project.project.id)?;
            edges.extend(
                unsettled
                    .into_iter()
                    .filter(|edge| due.contains(&edge.number))
                    .map(|edge| Edge {
                        settled: Some(assay_domain::edge::Settled { batch, at: now }),
                        ..edge
                    }),
            );
            for target in &self.targets {
                let heads = self.store.messages(project.project.id, &target.name)?;
                let through = heads.first().map_or(project.last_batch, |newest| newest.through);
                let events = target.events_of(&project);
                if let Decision::Send(edges_to_send) =
                    plan(&edges, &events, through, last_changes(&heads), now)
                {
                    messages.push((
                        target.name.as_str(),
                        compose::changes(self.reader(), &project, &edges_to_send, now)?,
                    ));
                }
            }
        }
        Ok(messages)
    }

    /// Registers the events that the project's targets get, if they changed or were registered long ago.
    fn register(&self, project: &OutboxProject, now: Timestamp) -> Result<(), StoreError> {
        let targets: Vec<&Target> = self
            .targets
            .iter()
            .filter(|target| target.scope.has(project))
            .collect();
        let has = |event: &ChatEvent| targets.iter().any(|target| target.events.contains(event));
        let events: Vec<ChatEvent> = ChatEvent::ALL.iter().copied().filter(has).collect();
        let events = (!targets.is_empty()).then_some(events);
        let is_current = match (&project.served, &events) {
            (Some((served, at)), Some(events)) => served == events && now.since_ms(*at) < REGISTERED_EVERY_MS,
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        match is_current {
            true => Ok(()),
            false => self.store.register(project.project.id, events.as_deref(), now),
        }
    }

    /// Deletes what is too old, once an hour. After a start the operator may have corrected a target, so that every message is
    /// tried again.
    fn tidy(&self, project: &OutboxProject, now: Timestamp) -> Result<(), StoreError> {
        let id = project.project.id;
        let tidied = || self.tidied.lock().unwrap_or_else(PoisonError::into_inner);
        let last = tidied().get(&id).copied();
        if last.is_none() {
            self.store.retry_all(id, now)?;
        }
        if last.is_none_or(|at| now.since_ms(at) >= TIDIED_EVERY_MS) {
            self.forget(project, now)?;
            tidied().insert(id, now);
        }
        Ok(())
    }

    fn forget(&self, project: &OutboxProject, now: Timestamp) -> Result<(), StoreError> {
        let dropped = self.store.forget(project.project.id, now)?;
        let name = &project.project.name;
        if dropped.edges > 0 {
            log::warn!(
                "{} edges of {name:?} were dropped, because they are more than three days old",
                dropped.edges
            );
        }
        for (target, reason) in dropped.messages {
            let reason = reason.as_deref().unwrap_or("it was never tried");
            log::warn!("a message about {name:?} to {target:?} was dropped after three days: {reason}");
        }
        Ok(())
    }

    /// Settles what is due, and returns the last batch.
    fn settle(&self, project: &OutboxProject, now: Timestamp) -> Result<i32, StoreError> {
        if !project.has_unsettled {
            return Ok(project.last_batch);
        }
        let edges = self.store.unsettled(project.project.id)?;
        let settlement = settle(&edges, project.judged_at, now);
        if settlement.is_empty() {
            return Ok(project.last_batch);
        }
        self.store.settle(
            project.project.id,
            &settlement.settled,
            &settlement.cancelled,
            now,
        )
    }

    /// Writes the message about new edges, if one is due.
    fn write(
        &self,
        project: &OutboxProject,
        target: &Target,
        events: &[ChatEvent],
        (edges, last_batch): (&[Edge], i32),
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let id = project.project.id;
        let heads = self.store.messages(id, &target.name)?;
        let Some(newest) = heads.first() else {
            // A new target gets what settles from now on, and what settled in this pass.
            let mark = NewMessage {
                target: &target.name,
                number: 0,
                id: new_id(now),
                kind: MessageKind::Mark,
                through: project.last_batch,
                content: None,
                thread: None,
            };
            self.store.add_message(id, &mark, now)?;
            return match last_batch > project.last_batch {
                true => self.write(project, target, events, (edges, last_batch), now),
                false => Ok(()),
            };
        };
        let key = MessageKey {
            project: id,
            target: &target.name,
            number: newest.number,
        };
        match plan(edges, events, newest.through, last_changes(&heads), now) {
            Decision::Nothing | Decision::Wait => Ok(()),
            Decision::Cover => self.store.cover(key, last_batch),
            Decision::Send(edges_to_send) => {
                let content = compose::changes(self.reader(), project, &edges_to_send, now)?;
                let message = NewMessage {
                    target: &target.name,
                    number: newest.number.saturating_add(1),
                    id: new_id(now),
                    kind: MessageKind::Changes,
                    through: last_batch,
                    content: Some(as_json(&content)?),
                    thread: thread(&edges_to_send, edges, newest.through, &heads),
                };
                self.store.add_message(id, &message, now)
            }
        }
    }

    /// Writes the digest of a target, if one is due. A new target gets its first one at the next due time.
    fn write_digest(
        &self,
        project: &OutboxProject,
        target: &Target,
        edges: &[Edge],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let Some((times, due)) = target
            .digest
            .as_ref()
            .and_then(|times| Some((times, times.last_due(now)?)))
        else {
            return Ok(());
        };
        let id = project.project.id;
        let heads = self.store.messages(id, &target.name)?;
        let (Some(newest), Some(oldest)) = (heads.first(), heads.last()) else {
            return Ok(());
        };
        let is_done = heads
            .iter()
            .any(|head| head.kind == MessageKind::Digest && head.created_at >= due);
        if is_done || oldest.created_at > due {
            return Ok(());
        }
        let content = digest(self.reader(), project, edges, (due, times.days()), now)?;
        let message = NewMessage {
            target: &target.name,
            number: newest.number.saturating_add(1),
            id: new_id(now),
            kind: MessageKind::Digest,
            through: newest.through,
            content: content.as_ref().map(as_json).transpose()?,
            thread: None,
        };
        self.store.add_message(id, &message, now)
    }

    /// Sends the due messages of a project to a target, in their order. Returns false if the target did not take one.
    fn deliver(
        &self,
        project: &OutboxProject,
        target: &Target,
        report: &mut PassReport,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        for _ in 0..MOST_AT_ONCE {
            let Some(message) = self.store.due(project.project.id, &target.name, now)? else {
                return Ok(true);
            };
            let key = MessageKey {
                project: project.project.id,
                target: &target.name,
                number: message.number,
            };
            let outcome = self.attempt(target, message, now);
            match &outcome {
                Attempt::Delivered { .. } => report.delivered += 1,
                Attempt::Failed { reason, next } => {
                    report.failed += 1;
                    let name = &target.name;
                    match next {
                        Some(_) => log::warn!("{name:?} did not take a message: {reason}"),
                        None => log::error!(
                            "{name:?} did not take a message for a day, and it is given up: {reason}"
                        ),
                    }
                }
            }
            self.store.note_attempt(key, &outcome, now)?;
            if matches!(outcome, Attempt::Failed { .. }) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn attempt(&self, target: &Target, message: DueMessage, now: Timestamp) -> Attempt {
        let content: Result<Content, _> = serde_json::from_str(&message.content);
        let sent = content
            .map_err(|error| crate::SendError(format!("its content cannot be read: {error}")))
            .and_then(|content| {
                target.channel.send(&Outgoing {
                    id: message.id,
                    at: message.created_at,
                    now,
                    content: &content,
                    thread: message.thread,
                })
            });
        match sent {
            Ok(receipt) => Attempt::Delivered { receipt },
            Err(error) => {
                let next = now.plus_ms(pause(message.attempts, (self.jitter)()));
                // A restart tries it again, until it is dropped.
                let is_in_time = next.since_ms(message.created_at) < DAY_MS;
                Attempt::Failed {
                    reason: error.0,
                    next: is_in_time.then_some(next),
                }
            }
        }
    }

    fn reader(&self) -> Reader<'_> {
        Reader {
            store: self.store,
            outbox: self.store,
            engine: self.engine,
            pages: self.pages.as_ref(),
        }
    }
}

/// The pause after an attempt that failed: between half and the whole of an exponential backoff, in milliseconds.
#[expect(clippy::as_conversions, reason = "an hour in milliseconds fits both types")]
fn pause(attempts: u32, jitter: f64) -> i64 {
    let whole = 2_i64
        .checked_pow(attempts)
        .and_then(|factor| factor.checked_mul(FIRST_PAUSE_MS))
        .map_or(LONGEST_PAUSE_MS, |pause| pause.min(LONGEST_PAUSE_MS));
    let half = whole / 2;
    half + (half as f64 * jitter.clamp(0.0, 1.0)) as i64
}

/// A new id of this time.
fn new_id(now: Timestamp) -> Uuid {
    let ms = u64::try_from(now.unix_ms()).unwrap_or(0);
    let nanos = u32::try_from(ms % 1000).unwrap_or(0) * 1_000_000;
    Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, ms / 1000, nanos))
}

/// The time of the last message about edges.
fn last_changes(heads: &[MessageHead]) -> Option<Timestamp> {
    let changes = heads
        .iter()
        .find(|head| head.kind == MessageKind::Changes && head.has_content);
    changes.map(|head| head.created_at)
}

/// The first message of the thread that a message about these edges continues: the one about the earlier edge of a
/// subject. None if a problem is new.
fn thread(sent: &[Edge], edges: &[Edge], through: i32, heads: &[MessageHead]) -> Option<Uuid> {
    let is_end = |edge: &Edge| matches!(edge.event, ChatEvent::RunRecovered | ChatEvent::TestResolved);
    if !sent.iter().all(is_end) {
        return None;
    }
    let subjects: HashSet<SubjectKey<'_>> = sent.iter().map(SubjectKey::of).collect();
    let earlier = chains(edges)
        .into_iter()
        .filter(|(subject, _)| subjects.contains(subject));
    let batches = earlier.flat_map(|(_, chain)| chain);
    let batches = batches
        .filter_map(|edge| edge.settled)
        .map(|settled| settled.batch);
    let batch = batches.filter(|batch| *batch <= through).max()?;
    let oldest_first = heads.iter().rev();
    let mut about_it = oldest_first.filter(|head| head.has_content && head.through >= batch);
    let head = about_it.next()?;
    Some(head.thread.unwrap_or(head.id))
}

fn as_json(content: &Content) -> Result<String, StoreError> {
    serde_json::to_string(content).map_err(|error| StoreError::Failed {
        doing: "writing a message",
        source: Box::new(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_an_hour_and_vary_by_half() {
        assert_eq!((pause(0, 0.0), pause(0, 1.0)), (2_500, 5_000));
        assert_eq!((pause(3, 0.0), pause(3, 1.0)), (20_000, 40_000));
        for attempts in [10, 62, 63, u32::MAX] {
            assert_eq!(
                (pause(attempts, 0.0), pause(attempts, 1.0)),
                (1_800_000, 3_600_000)
            );
        }
    }
}
