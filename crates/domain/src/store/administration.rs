//! The operations of an administrator.

use super::StoreError;
use crate::{
    id::{KeyId, OrganizationId, ProjectId},
    intake::{IngestTerms, UploadEntry},
    key::{KeyEntry, NewKey},
    plan::Plan,
    project::{Organization, ProjectEntry},
    settings::ChatEvent,
    signature::Classifier,
    timestamp::Timestamp,
    verdict::Judge,
};

/// The operations of an administrator.
pub trait Administration: Send + Sync {
    /// Makes an organization with a name that no other has.
    fn create_organization(&self, name: &str, plan: Plan, now: Timestamp) -> Result<Organization, NameError>;

    /// Gives an organization a name that no other has.
    fn rename_organization(&self, organization: OrganizationId, name: &str) -> Result<(), NameError>;

    /// Deletes an organization with its projects and keys; none if there is no such organization. `told` is called
    /// with the number of rows deleted so far.
    ///
    /// Readers and importers no longer find it once this has begun. A deletion that was killed is finished by the next
    /// call.
    fn delete_organization(
        &self,
        organization: OrganizationId,
        now: Timestamp,
        told: &mut dyn FnMut(u64),
    ) -> Result<Option<DeletionReport>, StoreError>;

    /// Every organization, oldest first.
    fn organizations(&self) -> Result<Vec<Organization>, StoreError>;

    /// Changes a plan; false where there is no such organization.
    fn set_plan(&self, organization: OrganizationId, plan: Plan) -> Result<bool, StoreError>;

    /// Creates a project in an existing organization, with a name that no other project of it has.
    fn create_project(
        &self,
        organization: OrganizationId,
        name: &str,
        stable_branch: &str,
        now: Timestamp,
    ) -> Result<ProjectEntry, NameError>;

    /// Gives a project a name that no other project of its organization has.
    fn rename_project(&self, project: ProjectId, name: &str) -> Result<(), NameError>;

    /// Moves a project with its ingest keys to an organization in which no project has its name.
    fn move_project(&self, project: ProjectId, organization: OrganizationId) -> Result<(), NameError>;

    /// Deletes a project with all its data, like [`Self::delete_organization`].
    fn delete_project(
        &self,
        project: ProjectId,
        now: Timestamp,
        told: &mut dyn FnMut(u64),
    ) -> Result<Option<DeletionReport>, StoreError>;

    /// The store's own clock.
    fn clock(&self) -> Result<Timestamp, StoreError>;

    /// What is left of deletions that were killed. [`Self::prune`] deletes it.
    fn unfinished_deletions(&self) -> Result<UnfinishedDeletions, StoreError>;

    /// How many runs of a project are stored.
    fn stored_runs(&self, project: ProjectId) -> Result<u64, StoreError>;

    /// The projects of an organization, oldest first.
    fn projects_of(&self, organization: OrganizationId) -> Result<Vec<ProjectEntry>, StoreError>;

    /// Every project's id with its name, oldest first.
    fn all_projects(&self) -> Result<Vec<ProjectEntry>, StoreError>;

    /// Changes a project's configuration; false if there is no such project. A changed stable branch also updates the
    /// stored verdicts, as of `now`.
    fn set_project(
        &self,
        project: ProjectId,
        change: &ProjectChange,
        judge: &dyn Judge,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Stores a new read key of an organization; false where there is no such organization. Storing the same key again
    /// changes nothing.
    fn create_read_key(
        &self,
        organization: OrganizationId,
        key: &NewKey,
        expires_at: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Stores a new ingest key of a project; false where there is no such project. Storing the same key again changes
    /// nothing.
    fn create_ingest_key(
        &self,
        project: ProjectId,
        key: &NewKey,
        terms: &IngestTerms,
    ) -> Result<bool, StoreError>;

    /// The newest uploads into a project that are recorded, at most `limit`, the newest first.
    fn uploads(&self, project: ProjectId, limit: u32) -> Result<Vec<UploadEntry>, StoreError>;

    /// Replaces a valid key by a new one of the same kind, owner, terms and lifetime. The replaced key works until
    /// `until` at most. Replacing a key by the same key again changes nothing.
    fn rotate_key(&self, key: KeyId, new: &NewKey, until: Timestamp) -> Result<KeyRotation, StoreError>;

    /// The keys of an organization and its projects, oldest first.
    fn keys(&self, organization: OrganizationId) -> Result<Vec<KeyEntry>, StoreError>;

    /// Changes what lists call a key; false where there is no such key.
    fn rename_key(&self, key: KeyId, name: &str) -> Result<bool, StoreError>;

    /// Revokes a key; false where there is no such key. A revoked key keeps its first date.
    fn revoke_key(&self, key: KeyId, now: Timestamp) -> Result<bool, StoreError>;

    /// Deletes a key that is revoked, or expired as of `now`.
    fn delete_key(&self, key: KeyId, now: Timestamp) -> Result<KeyDeletion, StoreError>;

    /// Groups a project's stored errors again, in one transaction; none if there is no such project.
    ///
    /// A fingerprint without occurrences becomes an alias of the one that most of its occurrences got.
    fn refingerprint(
        &self,
        project: ProjectId,
        classifier: &dyn Classifier,
    ) -> Result<Option<Refingerprinted>, StoreError>;

    /// Deletes what is past each organization's retention as of `now` and records of old uploads, or only counts them. `told` hears of each step.
    /// Finishes deletions that were killed.
    ///
    /// Each step is its own transaction. The next call continues an interrupted one.
    fn prune(
        &self,
        now: Timestamp,
        dry_run: bool,
        told: &mut dyn FnMut(PruneStep<'_>),
    ) -> Result<PruneReport, StoreError>;
}

/// Why something did not get a name, or another owner.
#[derive(Debug, thiserror::Error)]
pub enum NameError {
    /// Another one has the name.
    #[error(
        "there is already {what} named {name:?}, with the id {id}; give another name, or rename that one"
    )]
    Taken {
        /// The kind of thing that has the name, with its article.
        what: &'static str,
        /// The name.
        name: String,
        /// The id of the one that has the name.
        id: String,
    },
    /// The thing to be named, or its owner, does not exist.
    #[error("there is no such {0}; it may have been deleted meanwhile")]
    Missing(&'static str),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The rows that a deletion deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletionReport {
    /// Projects.
    pub projects: u64,
    /// Logical runs.
    pub runs: u64,
    /// Results of tests in them.
    pub results: u64,
    /// Rows of all tables.
    #[serde(skip)]
    pub rows: u64,
}

impl DeletionReport {
    /// Adds the rows of another deletion.
    pub const fn add(&mut self, other: Self) {
        self.projects += other.projects;
        self.runs += other.runs;
        self.results += other.results;
        self.rows += other.rows;
    }
}

/// Hidden organizations and projects that are still partly stored, because their deletion was killed. Oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnfinishedDeletions {
    /// Organizations.
    pub organizations: Vec<Organization>,
    /// Projects, those of these organizations included.
    pub projects: Vec<ProjectEntry>,
}

/// The result of deleting a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyDeletion {
    /// It was deleted.
    Deleted,
    /// It still works, so it stays.
    StillValid,
    /// There is no such key.
    Missing,
}

/// What became of a key that was to be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRotation {
    /// A new key has its place.
    Rotated {
        /// When the replaced key ceases to work.
        former_expires_at: Timestamp,
        /// When the new key ceases to work; none for a key that works until it is revoked.
        expires_at: Option<Timestamp>,
    },
    /// It is revoked or expired, so nothing has its place.
    NotValid,
    /// There is no such key.
    Missing,
}

/// A change of a project's configuration; a field that is none stays unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectChange {
    /// The new stable branch.
    pub stable_branch: Option<String>,
    /// The new chat integration: its events, or none to remove it.
    pub chat: Option<Option<Vec<ChatEvent>>>,
    /// Whether pull requests get a comment.
    pub pr_comments: Option<bool>,
}

/// How far pruning has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PruneStep<'a> {
    /// Runs of a project were deleted.
    Runs {
        /// The project's name.
        project: &'a str,
        /// Runs deleted so far.
        done: u64,
        /// Runs that are to go.
        of: u64,
    },
    /// Whole periods were dropped with their results.
    Periods {
        /// Periods dropped so far.
        done: u64,
        /// Periods that are to go.
        of: u64,
    },
}

/// The result of pruning.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PruneReport {
    /// The projects of which something was deleted, or would be.
    pub projects: Vec<Pruned>,
    /// Logical runs that were stored before.
    pub runs_stored: u64,
    /// Periods that were dropped whole, or would be: their runs are past every plan's retention.
    pub periods: u64,
    /// Periods that were in use all the time and are left for the next call. Their results are not visible.
    pub periods_left: u64,
    /// Organizations and projects whose killed deletion was finished, or would be.
    pub deletions_finished: u64,
    /// Records of uploads that are older than 90 days.
    pub uploads: u64,
}

/// The rows of one project that pruning deleted, or would delete.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pruned {
    /// The project.
    pub project_id: ProjectId,
    /// Its name.
    pub project: String,
    /// Logical runs.
    pub runs: u64,
    /// Results of tests in them.
    pub results: u64,
}

/// The result of grouping a project's errors again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Refingerprinted {
    /// Failed attempts looked at.
    pub attempts: u64,
    /// Those that got another fingerprint.
    pub changed: u64,
    /// Signatures before.
    pub signatures_before: u64,
    /// Signatures after.
    pub signatures_after: u64,
    /// Former fingerprints that now answer for another signature.
    pub renamed: u64,
}
