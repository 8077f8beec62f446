//! What a pass would do.

use assay_domain::{
    edge::{Edge, Settled},
    settings::ChatEvent,
    store::{Outbox, OutboxProject, Store, StoreError},
    timestamp::Timestamp,
};

use super::{Notifier, due_digest, last_changes, of_json};
use crate::{Content, Decision, Target, compose, digest, plan};

/// What would be sent to a target about a project.
#[derive(Debug)]
pub struct Preview<'a> {
    /// The target's name.
    pub target: &'a str,
    /// The project's name.
    pub project: String,
    /// When the messages would be sent.
    pub sending: Sending,
    /// What would be sent.
    pub messages: Vec<Content>,
    /// Whether changes wait until they are certain, or until the last message is long enough ago.
    pub is_waiting: bool,
}

/// When messages would be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sending {
    /// With the next pass.
    Now,
    /// After the target's quiet hours.
    AfterQuietHours,
}

impl<S: Store + Outbox> Notifier<'_, S> {
    /// What the next pass would send, and what waits for the end of quiet hours. Changes nothing.
    ///
    /// # Errors
    /// If the store fails.
    pub fn preview(&self, now: Timestamp) -> Result<Vec<Preview<'_>>, StoreError> {
        let mut previews = Vec::new();
        for project in self.store.outbox_projects(now)? {
            let unsettled = self.store.unsettled(project.project.id)?;
            let due = self.settlement(&project, &unsettled, now)?.settled;
            let batch = project.last_batch.saturating_add(1);
            let mut edges = self.store.settled(project.project.id)?;
            edges.extend(
                unsettled
                    .iter()
                    .filter(|edge| due.contains(&edge.number))
                    .map(|edge| Edge {
                        settled: Some(Settled { batch, at: now }),
                        ..edge.clone()
                    }),
            );
            for target in &self.targets {
                let events = target.events_of(&project);
                if events.is_empty() {
                    continue;
                }
                let (messages, holds_back) = self.contents(&project, target, &events, &edges, now)?;
                let is_uncertain = |edge: &&Edge| !due.contains(&edge.number) && events.contains(&edge.event);
                previews.push(Preview {
                    target: &target.name,
                    project: project.project.name.clone(),
                    sending: match target.is_quiet(now) {
                        true => Sending::AfterQuietHours,
                        false => Sending::Now,
                    },
                    messages,
                    is_waiting: holds_back || unsettled.iter().any(|edge| is_uncertain(&edge)),
                });
            }
        }
        Ok(previews)
    }

    /// What a target would get: what is stored and not delivered, then what would be written. Also returns whether other
    /// changes wait.
    fn contents(
        &self,
        project: &OutboxProject,
        target: &Target,
        events: &[ChatEvent],
        edges: &[Edge],
        now: Timestamp,
    ) -> Result<(Vec<Content>, bool), StoreError> {
        let stored = self.store.undelivered(project.project.id, &target.name)?;
        let mut contents: Vec<Content> = stored
            .iter()
            .map(|content| of_json(content))
            .collect::<Result<_, _>>()?;
        let heads = self.store.messages(project.project.id, &target.name)?;
        let through = heads.first().map_or(project.last_batch, |newest| newest.through);
        let decision = plan(edges, events, through, last_changes(&heads), now);
        if let Decision::Send(sent) = &decision {
            contents.push(compose::changes(self.reader(), project, sent, now)?);
        }
        if let Some(due) = due_digest(target, &heads, now) {
            contents.extend(digest(self.reader(), project, edges, due, now)?);
        }
        Ok((contents, decision == Decision::Wait))
    }

    /// What is unclear about the projects that the targets name, as sentences.
    ///
    /// # Errors
    /// If the store fails.
    pub fn unclear(&self, now: Timestamp) -> Result<Vec<String>, StoreError> {
        let projects = self.store.outbox_projects(now)?;
        let of_target = |target: &Target| {
            let name = target.name.clone();
            let unclear = target.scope.unclear(&projects).into_iter();
            unclear.map(move |problem| format!("target {name:?}: {problem}"))
        };
        Ok(self.targets.iter().flat_map(of_target).collect())
    }
}
