//! A target: to whom which messages are sent, and when.

use std::collections::BTreeSet;

use assay_domain::{settings::ChatEvent, store::OutboxProject, timestamp::Timestamp};

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
        names.iter().any(|named| is_named(named, project))
    }

    /// The names with which the operator probably means something else: those of no project, and those of projects of
    /// several organizations.
    pub(crate) fn unclear(&self, projects: &[OutboxProject]) -> Vec<String> {
        let Self::Named(names) = self else {
            return Vec::new();
        };
        let unclear = names.iter().filter_map(|named| {
            let meant = projects.iter().filter(|project| is_named(named, project));
            let organizations: BTreeSet<&str> = meant.map(|project| project.organization.as_str()).collect();
            match organizations.len() {
                0 => Some(format!(
                    "{named:?} is no project with events for messages; `assay-admin project list` shows the names, and \
                     `assay-admin project set NAME --chat-events` chooses events"
                )),
                1 => None,
                _ => Some(format!(
                    "{named:?} is a project of several organizations, and the target gets the messages of all of them; \
                     write ORGANIZATION/NAME or the id for one"
                )),
            }
        });
        unclear.collect()
    }
}

/// Whether a name of the operator's file is that of a project: its id, its name, or `ORGANIZATION/NAME`.
fn is_named(named: &str, project: &OutboxProject) -> bool {
    let name = &project.project.name;
    let with_organization = named
        .strip_suffix(name.as_str())
        .and_then(|rest| rest.strip_suffix('/'))
        .is_some_and(|organization| organization == project.organization);
    with_organization || named == name || named == project.project.id.to_string()
}

impl Target {
    /// Whether a time is in its quiet hours.
    pub(crate) fn is_quiet(&self, now: Timestamp) -> bool {
        self.quiet.as_ref().is_some_and(|quiet| quiet.have(now))
    }

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
