//! Organizations and their projects.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    id::{OrganizationId, ProjectId},
    plan::Plan,
    timestamp::Timestamp,
};

/// Longest name of an organization, a project or a branch, and longest text of a filter, in characters.
pub const NAME_CHARS: usize = 200;

/// An organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Organization {
    /// Its id.
    pub id: OrganizationId,
    /// Its name, which no other organization has.
    pub name: String,
    /// Its plan.
    pub plan: Plan,
    /// Its creation time.
    pub created_at: Timestamp,
}

/// A project in the list of its organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProjectEntry {
    /// Its id.
    pub id: ProjectId,
    /// Its name.
    pub name: String,
    /// The stable branch.
    pub stable_branch: String,
    /// Its creation time.
    pub created_at: Timestamp,
}

/// The organization of a checked key, with its plan. Only the check of a key creates one for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The organization.
    pub organization: OrganizationId,
    /// The organization's current plan.
    pub plan: Plan,
    /// The only projects that a person may read; none for all.
    pub only: Option<Arc<[ProjectId]>>,
}

impl Caller {
    /// Whether a project of the organization may be read.
    pub fn may_read(&self, id: &ProjectId) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(id))
    }
}

/// A project that the caller may read.
///
/// Every read below the project list takes one, and only a look-up within an organization returns one. A read is
/// therefore always limited to the caller's data. The type has no configuration, such as the stable branch:
/// configuration is read together with the data that depend on it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Project {
    /// Its id.
    pub id: ProjectId,
    /// Its name.
    pub name: String,
    /// The organization's plan, as of the check of the caller's key.
    pub plan: Plan,
    /// Runs that started before this are past the plan's retention. No route shows them.
    pub visible_from: Timestamp,
    /// The time of the request. No route shows runs that start later.
    pub visible_to: Timestamp,
}

impl Project {
    /// The project of a row that a store looked up within the caller's organization.
    pub fn of_row(id: ProjectId, name: String, plan: Plan, now: Timestamp) -> Self {
        Self {
            id,
            name,
            plan,
            visible_from: visible_from(plan, now),
            visible_to: now,
        }
    }

    /// The same project as its organization sees it under `plan` at `now`.
    #[must_use]
    pub fn seen(self, plan: Plan, now: Timestamp) -> Self {
        Self {
            plan,
            visible_from: visible_from(plan, now),
            visible_to: now,
            ..self
        }
    }

    /// The visible part of a span of starts.
    pub fn visible_part(&self, from: Timestamp, to: Timestamp) -> (Timestamp, Timestamp) {
        (from.max(self.visible_from), to.min(self.visible_to))
    }

    /// Its tag, which every response has.
    pub fn tag(&self) -> ProjectTag {
        ProjectTag {
            id: self.id,
            name: self.name.clone(),
        }
    }
}

const fn visible_from(plan: Plan, now: Timestamp) -> Timestamp {
    now.plus_days(-plan.retention_days())
}

/// The `project` field of every response but the project list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProjectTag {
    /// Its id.
    pub id: ProjectId,
    /// Its name.
    pub name: String,
}
