//! Passes over the outbox: settle, plan, compose, deliver.

mod delivery;
mod preview;

pub use self::preview::{Preview, Sending};

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, PoisonError},
};

use assay_answers::links::PublicPages;
use assay_domain::{
    edge::{Edge, EdgeSubject},
    id::ProjectId,
    settings::ChatEvent,
    store::{MessageHead, MessageKey, MessageKind, NewMessage, Outbox, OutboxProject, Store, StoreError},
    timestamp::Timestamp,
};
use assay_flakiness::Diagnose;
use uuid::Uuid;

use crate::{
    Content, Decision, Period, Reader, Settlement, Target, compose,
    compose::Failures,
    digest, plan, settle,
    settle::{SubjectKey, chains},
};

/// How often the targets of a project are registered again, in milliseconds.
const REGISTERED_EVERY_MS: i64 = 60 * 60_000;
/// How often old edges and messages of a project are deleted, in milliseconds.
const TIDIED_EVERY_MS: i64 = 60 * 60_000;

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

/// A target of a project with the events that it gets, and its messages, the newest first.
type Addressed<'a> = (&'a Target, Vec<ChatEvent>, Vec<MessageHead>);

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

    /// Goes through all projects once. A pass may wait for slow targets, so it reads the clock at each step.
    ///
    /// # Errors
    /// If the store fails. What was done before is kept.
    pub fn pass(&self, clock: &dyn Fn() -> Timestamp) -> Result<PassReport, StoreError> {
        let mut report = PassReport::default();
        // A target that fails is left alone for the rest of the pass, so that it does not delay the others.
        let mut failed: HashSet<&str> = HashSet::new();
        for project in self.store.outbox_projects(clock())? {
            let now = clock();
            self.register(&project, now)?;
            self.tidy(&project, now)?;
            // Before anything settles: a new target whose mark came later would never get what settled before it.
            let addressed = self.addressed(&project, now)?;
            let last_batch = self.settle(&project, now)?;
            let edges = match last_batch {
                0 => Vec::new(),
                _ => self.store.settled(project.project.id)?,
            };
            for (target, events, mut heads) in addressed {
                let now = clock();
                if target.is_quiet(now) {
                    continue;
                }
                self.write(&project, target, &events, (&edges, last_batch), &mut heads, now)?;
                self.write_digest(&project, target, &edges, &heads, now)?;
                if !failed.contains(target.name.as_str())
                    && !self.deliver(&project, target, &mut report, clock)?
                {
                    failed.insert(&target.name);
                }
            }
        }
        Ok(report)
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
            (Some((served, at)), Some(events)) => {
                served == events && (0..REGISTERED_EVERY_MS).contains(&now.since_ms(*at))
            }
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
        if last.is_none_or(|at| !(0..TIDIED_EVERY_MS).contains(&now.since_ms(at))) {
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
        let settlement = self.settlement(project, &edges, now)?;
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

    /// What becomes of the edges. One about a commit to revert counts if the failures of its run name one, and no other did
    /// since the suite began to fail.
    fn settlement(
        &self,
        project: &OutboxProject,
        edges: &[Edge],
        now: Timestamp,
    ) -> Result<Settlement, StoreError> {
        let is_candidate = |edge: &Edge| edge.subject == EdgeSubject::Breakage;
        let (candidates, mut known): (Vec<Edge>, Vec<Edge>) = edges.iter().cloned().partition(is_candidate);
        let mut settlement = settle(&known, project.judged_at, now);
        if !candidates.is_empty() {
            known.extend(self.store.settled(project.project.id)?);
            known.retain(|edge| edge.subject == EdgeSubject::Suite || is_candidate(edge));
        }
        for edge in candidates {
            let earlier = known.iter().filter(|other| other.number < edge.number);
            let of_line = earlier.filter(|other| other.line() == edge.line());
            let last = of_line.max_by_key(|other| other.number);
            let is_open = last.is_some_and(|last| last.event == ChatEvent::RunFailed);
            let of_edge = std::slice::from_ref(&edge);
            let failures = || Failures::read(self.reader(), &project.project, of_edge, now);
            if is_open && !failures()?.broken.is_empty() {
                settlement.settled.push(edge.number);
                known.push(edge);
            } else {
                settlement.cancelled.push(edge.number);
            }
        }
        Ok(settlement)
    }

    /// The targets of a project.
    fn addressed(&self, project: &OutboxProject, now: Timestamp) -> Result<Vec<Addressed<'_>>, StoreError> {
        let of_project = self
            .targets
            .iter()
            .map(|target| (target, target.events_of(project)));
        of_project
            .filter(|(_, events)| !events.is_empty())
            .map(|(target, events)| Ok((target, events, self.heads(project, target, now)?)))
            .collect()
    }

    /// The messages to a target, the newest first. A new target gets a mark: what settles from now on is sent to it, with
    /// what settled in this pass.
    fn heads(
        &self,
        project: &OutboxProject,
        target: &Target,
        now: Timestamp,
    ) -> Result<Vec<MessageHead>, StoreError> {
        let id = project.project.id;
        let mut heads = self.store.messages(id, &target.name)?;
        if heads.is_empty() {
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
            heads.push(head(&mark, now));
        }
        Ok(heads)
    }

    /// Writes the message about new edges, if one is due.
    fn write(
        &self,
        project: &OutboxProject,
        target: &Target,
        events: &[ChatEvent],
        (edges, last_batch): (&[Edge], i32),
        heads: &mut Vec<MessageHead>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let id = project.project.id;
        let Some(newest) = heads.first() else {
            return Ok(());
        };
        match plan(edges, events, newest.through, last_changes(heads), now) {
            Decision::Nothing | Decision::Wait => Ok(()),
            Decision::Cover => {
                let key = MessageKey {
                    project: id,
                    target: &target.name,
                    number: newest.number,
                };
                self.store.cover(key, last_batch)?;
                if let Some(newest) = heads.first_mut() {
                    newest.through = last_batch;
                }
                Ok(())
            }
            Decision::Send(edges_to_send) => {
                let content = compose::changes(self.reader(), project, &edges_to_send, now)?;
                let message = NewMessage {
                    target: &target.name,
                    number: newest.number.saturating_add(1),
                    id: new_id(now),
                    kind: MessageKind::Changes,
                    through: last_batch,
                    content: Some(as_json(&content)?),
                    thread: thread(&edges_to_send, edges, newest.through, heads),
                };
                self.store.add_message(id, &message, now)?;
                heads.insert(0, head(&message, now));
                Ok(())
            }
        }
    }

    /// Writes the digest of a target, if one is due.
    fn write_digest(
        &self,
        project: &OutboxProject,
        target: &Target,
        edges: &[Edge],
        heads: &[MessageHead],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (Some(due), Some(newest)) = (due_digest(target, heads, now), heads.first()) else {
            return Ok(());
        };
        let content = digest(self.reader(), project, edges, due, now)?;
        let message = NewMessage {
            target: &target.name,
            number: newest.number.saturating_add(1),
            id: new_id(now),
            kind: MessageKind::Digest,
            through: newest.through,
            content: content.as_ref().map(as_json).transpose()?,
            thread: None,
        };
        self.store.add_message(project.project.id, &message, now)
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

/// The period of a digest that is due. A new target gets its first one at the next due time.
fn due_digest(target: &Target, heads: &[MessageHead], now: Timestamp) -> Option<Period> {
    let period = target.digest.as_ref()?.last_period(now)?;
    let is_done = |head: &MessageHead| head.kind == MessageKind::Digest && head.created_at >= period.until;
    let is_new = heads.last()?.created_at > period.until;
    (!is_new && !heads.iter().any(is_done)).then_some(period)
}

/// The head of a message that was just stored.
fn head(message: &NewMessage<'_>, now: Timestamp) -> MessageHead {
    MessageHead {
        number: message.number,
        id: message.id,
        kind: message.kind,
        through: message.through,
        created_at: now,
        has_content: message.content.is_some(),
        thread: message.thread,
        receipt: None,
    }
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
    // Messages are deleted earlier than edges of problems that go on.
    let kept_from = heads.last()?.created_at;
    let settled = earlier
        .flat_map(|(_, chain)| chain)
        .filter_map(|edge| edge.settled);
    let batches = settled
        .filter(|settled| settled.at >= kept_from)
        .map(|settled| settled.batch);
    let batch = batches.filter(|batch| *batch <= through).max()?;
    let oldest_first = heads.iter().rev();
    let mut about_it = oldest_first.filter(|head| head.has_content && head.through >= batch);
    let head = about_it.next()?;
    Some(head.thread.unwrap_or(head.id))
}

fn of_json(content: &str) -> Result<Content, StoreError> {
    serde_json::from_str(content).map_err(|error| StoreError::Failed {
        doing: "reading a message",
        source: Box::new(error),
    })
}

fn as_json(content: &Content) -> Result<String, StoreError> {
    serde_json::to_string(content).map_err(|error| StoreError::Failed {
        doing: "writing a message",
        source: Box::new(error),
    })
}
