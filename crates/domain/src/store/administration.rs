//! The operations of an administrator.

use super::StoreError;
use crate::{
    id::{KeyId, OrganizationId, ProjectId},
    ingest::{IngestTerms, KeyDay, UploadEntry},
    key::{KeyEntry, NewKey},
    plan::Plan,
    project::{Organization, ProjectEntry},
    release_branch::BranchPattern,
    settings::{ChatEvent, FlakeBudget},
    signature::Classifier,
    timestamp::Timestamp,
    verdict::Judge,
};

/// The operations of an administrator.
pub trait Administration: Send + Sync {
    /// Creates an organization. Its name must be unique.
    fn create_organization(&self, name: &str, plan: Plan, now: Timestamp) -> Result<Organization, NameError>;

    /// Renames an organization. Its name must be unique.
    fn rename_organization(&self, organization: OrganizationId, name: &str) -> Result<(), NameError>;

    /// Deletes an organization with its projects and keys; none if there is no such organization. `progress` is called
    /// with the number of rows deleted so far.
    ///
    /// Readers and importers stop finding it when the deletion begins. The next call completes a deletion that was
    /// killed.
    fn delete_organization(
        &self,
        organization: OrganizationId,
        now: Timestamp,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Option<DeletionReport>, StoreError>;

    /// Every organization, oldest first.
    fn organizations(&self) -> Result<Vec<Organization>, StoreError>;

    /// Changes a plan; false if there is no such organization.
    fn set_plan(&self, organization: OrganizationId, plan: Plan) -> Result<bool, StoreError>;

    /// Creates a project in an existing organization. Its name must be unique there.
    fn create_project(
        &self,
        organization: OrganizationId,
        name: &str,
        stable_branch: &str,
        now: Timestamp,
    ) -> Result<ProjectEntry, NameError>;

    /// Renames a project. Its name must be unique in its organization.
    fn rename_project(&self, project: ProjectId, name: &str) -> Result<(), NameError>;

    /// Moves a project with its ingest keys to another organization. Its name must be unique there.
    fn move_project(&self, project: ProjectId, organization: OrganizationId) -> Result<(), NameError>;

    /// Deletes a project with all its data, like [`Self::delete_organization`].
    fn delete_project(
        &self,
        project: ProjectId,
        now: Timestamp,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Option<DeletionReport>, StoreError>;

    /// The store's own clock.
    fn clock(&self) -> Result<Timestamp, StoreError>;

    /// The remainder of deletions that were killed. [`Self::prune`] deletes it.
    fn unfinished_deletions(&self) -> Result<UnfinishedDeletions, StoreError>;

    /// The number of a project's stored runs.
    fn stored_runs(&self, project: ProjectId) -> Result<u64, StoreError>;

    /// The projects of an organization, oldest first.
    fn projects_of(&self, organization: OrganizationId) -> Result<Vec<ProjectEntry>, StoreError>;

    /// Every project's id with its name, oldest first.
    fn all_projects(&self) -> Result<Vec<ProjectEntry>, StoreError>;

    /// Changes a project's configuration; false if there is no such project. Changed stable branches also
    /// update the stored verdicts, as of `now`.
    fn set_project(
        &self,
        project: ProjectId,
        change: &ProjectChange,
        judge: &dyn Judge,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Stores a new read key of an organization; false if there is no such organization. Storing the same key again
    /// changes nothing.
    fn create_read_key(
        &self,
        organization: OrganizationId,
        key: &NewKey,
        expires_at: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Stores a new ingest key of a project; false if there is no such project. Storing the same key again changes
    /// nothing.
    fn create_ingest_key(
        &self,
        project: ProjectId,
        key: &NewKey,
        terms: &IngestTerms,
    ) -> Result<bool, StoreError>;

    /// The newest recorded uploads into a project, at most `limit`, newest first.
    fn uploads(&self, project: ProjectId, limit: u32) -> Result<Vec<UploadEntry>, StoreError>;

    /// What each ingest key stored into a project on the day of `now`, those with most tests first.
    fn stored_by_keys(&self, project: ProjectId, now: Timestamp) -> Result<Vec<KeyDay>, StoreError>;

    /// Replaces a valid key with a new one of the same kind, owner, terms and lifetime. The replaced key is valid until
    /// `until` at most. Replacing a key with the same key again changes nothing.
    fn rotate_key(&self, key: KeyId, new: &NewKey, until: Timestamp) -> Result<KeyRotation, StoreError>;

    /// The keys of an organization and its projects, oldest first.
    fn keys(&self, organization: OrganizationId) -> Result<Vec<KeyEntry>, StoreError>;

    /// Changes the name of a key in lists; false if there is no such key.
    fn rename_key(&self, key: KeyId, name: &str) -> Result<bool, StoreError>;

    /// Revokes a key; false if there is no such key. A revoked key keeps its first revocation date.
    fn revoke_key(&self, key: KeyId, now: Timestamp) -> Result<bool, StoreError>;

    /// Deletes a key that is revoked or, at `now`, expired.
    fn delete_key(&self, key: KeyId, now: Timestamp) -> Result<KeyDeletion, StoreError>;

    /// Regroups a project's stored errors in one transaction; none if there is no such project.
    ///
    /// A fingerprint without occurrences becomes an alias of the fingerprint that most of its occurrences received.
    fn refingerprint(
        &self,
        project: ProjectId,
        classifier: &dyn Classifier,
    ) -> Result<Option<RefingerprintCounts>, StoreError>;

    /// Deletes results past each organization's retention as of `now` and records of old uploads, or only counts them.
    /// `progress` is called at each step. Completes deletions that were killed.
    ///
    /// Each step is its own transaction. The next call continues an interrupted one.
    fn prune(
        &self,
        now: Timestamp,
        dry_run: bool,
        progress: &mut dyn FnMut(PruneStep<'_>),
    ) -> Result<PruneReport, StoreError>;
}

/// The error of naming or moving something.
#[derive(Debug, thiserror::Error)]
pub enum NameError {
    /// The name is taken.
    #[error(
        "there is already {what} named {name:?}, with the id {id}; give another name, or rename that one"
    )]
    Taken {
        /// The kind of the thing with the name, with its article.
        what: &'static str,
        /// The name.
        name: String,
        /// The id of the thing with the name.
        id: String,
    },
    /// The thing, or its new owner, does not exist.
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
    /// Runs.
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

/// Hidden organizations and projects that are still partly stored because their deletion was killed. Oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnfinishedDeletions {
    /// Organizations.
    pub organizations: Vec<Organization>,
    /// Projects, including those of these organizations.
    pub projects: Vec<ProjectEntry>,
}

/// The result of deleting a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyDeletion {
    /// It was deleted.
    Deleted,
    /// It is still valid, so it was not deleted.
    StillValid,
    /// There is no such key.
    Missing,
}

/// The result of replacing a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRotation {
    /// A new key replaces it.
    Rotated {
        /// The expiry of the replaced key.
        former_expires_at: Timestamp,
        /// The expiry of the new key; none for a key that is valid until it is revoked.
        expires_at: Option<Timestamp>,
    },
    /// It is revoked or expired, so it was not replaced.
    NotValid,
    /// There is no such key.
    Missing,
}

/// A change of a project's configuration. A field without a value stays unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectChange {
    /// The new stable branch.
    pub stable_branch: Option<String>,
    /// The new release branches.
    pub release_branches: Option<Vec<BranchPattern>>,
    /// The new chat integration: its events, or none to remove it.
    pub chat: Option<Option<Vec<ChatEvent>>>,
    /// Whether pull requests get a comment.
    pub pr_comments: Option<bool>,
    /// Whether names are stored without the parts that change from run to run.
    pub stable_names: Option<bool>,
    /// The new flake budget, or none to remove it.
    pub flake_budget: Option<Option<FlakeBudget>>,
}

/// The progress of pruning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PruneStep<'a> {
    /// Runs of a project were deleted.
    Runs {
        /// The project's name.
        project: &'a str,
        /// Runs deleted so far.
        done: u64,
        /// Runs to delete.
        of: u64,
    },
    /// Whole partitions were dropped with their results.
    Partitions {
        /// Partitions dropped so far.
        done: u64,
        /// Partitions to drop.
        of: u64,
    },
}

/// The result of pruning.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PruneReport {
    /// The projects with deleted data, or data to delete.
    pub projects: Vec<PrunedCounts>,
    /// The number of runs before pruning.
    pub runs_stored: u64,
    /// Partitions that were dropped as a whole, or would be. Their runs are past every plan's retention.
    pub partitions: u64,
    /// Partitions that were busy and remain for the next call. Their results are not visible.
    pub partitions_left: u64,
    /// Organizations and projects whose killed deletion was completed, or would be.
    pub deletions_finished: u64,
    /// Records of uploads that are older than 90 days.
    pub uploads: u64,
}

/// The rows of one project that pruning deleted, or would delete.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PrunedCounts {
    /// The project.
    pub project_id: ProjectId,
    /// Its name.
    pub project: String,
    /// Runs.
    pub runs: u64,
    /// Results of tests in them.
    pub results: u64,
}

/// The result of regrouping a project's errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RefingerprintCounts {
    /// Failed attempts that were checked.
    pub attempts: u64,
    /// Failed attempts with a new fingerprint.
    pub changed: u64,
    /// The number of signatures before.
    pub signatures_before: u64,
    /// The number of signatures after.
    pub signatures_after: u64,
    /// Former fingerprints that are now aliases of another signature.
    pub renamed: u64,
}
