//! A target: to whom which messages are sent, and when.

use assay_domain::{settings::ChatEvent, store::OutboxProject};

use crate::{Channel, DigestTimes, QuietHours};

/// To whom messages are sent.
pub struct Target {
    /// Its name in the operator's file.
    pub name: String,
    /// The projects.
    pub scope: Scope,
    /// The events.
    pub events: Vec<ChatEvent>,
    /// The hours without messages.
    pub quiet: Option<QuietHours>,
    /// When a digest is sent, if it is.
    pub digest: Option<DigestTimes>,
    /// How messages are delivered.
    pub channel: Box<dyn Channel>,
}

impl std::fmt::Debug for Target {
    /// Shows no address and no secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target")
            .field("name", &self.name)
            .field("kind", &self.channel.kind())
            .finish_non_exhaustive()
    }
}

/// The projects of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Every project.
    All,
    /// Projects by id, by name, or as `ORGANIZATION/NAME`.
    Named(Vec<String>),
}

impl Scope {
    /// Whether a project is one of them.
    pub fn has(&self, project: &OutboxProject) -> bool {
        let Self::Named(names) = self else { return true };
        let id = project.project.id.to_string();
        let name = &project.project.name;
        names.iter().any(|named| {
            *named == id
                || named == name
                || named
                    .strip_suffix(name.as_str())
                    .and_then(|rest| rest.strip_suffix('/'))
                    .is_some_and(|organization| organization == project.organization)
        })
    }
}

impl Target {
    /// The events of a project that this target gets: those of both; none if the project is not one of its.
    pub fn events_of(&self, project: &OutboxProject) -> Vec<ChatEvent> {
        match self.scope.has(project) {
            true => self
                .events
                .iter()
                .copied()
                .filter(|event| project.events.contains(event))
                .collect(),
            false => Vec::new(),
        }
    }
}
