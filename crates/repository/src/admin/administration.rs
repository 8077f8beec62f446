//! Implements the port `Administration`.

use assay_domain::{
    id::{KeyId, OrganizationId, ProjectId},
    ingest::{IngestTerms, KeyDay, UploadEntry},
    key::{KeyEntry, NewKey},
    plan::Plan,
    project::{Organization, ProjectEntry},
    signature::Classifier,
    store::{
        Administration, DeletionReport, KeyDeletion, KeyRotation, NameError, ProjectChange, PruneReport,
        PruneStep, RefingerprintCounts, StoreError, UnfinishedDeletions,
    },
    timestamp::Timestamp,
    verdict::Judge,
};
use diesel::{prelude::*, select};

use crate::{
    Database,
    admin::{deletion, ingest, key, organization, project, prune, refingerprint},
    db::{
        column::{At, long_count},
        pool::{Read, WorkError},
        schema::{project as projects, run},
    },
    record::verdict,
};

define_sql_function! {
    /// The time now, by the server's clock.
    fn clock_timestamp() -> Timestamptz;
}

impl Administration for Database {
    fn create_organization(&self, name: &str, plan: Plan, now: Timestamp) -> Result<Organization, NameError> {
        let new = organization::new(self.new_id(now), name, plan, now);
        self.in_transaction("making an organization", |connection| {
            organization::insert(connection, &new)
        })?;
        Ok(new)
    }

    fn rename_organization(&self, organization: OrganizationId, name: &str) -> Result<(), NameError> {
        self.in_transaction("renaming an organization", |connection| {
            organization::rename(connection, organization, name)
        })
    }

    fn delete_organization(
        &self,
        organization: OrganizationId,
        now: Timestamp,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Option<DeletionReport>, StoreError> {
        deletion::delete_organization(self, organization, now, progress)
    }

    fn organizations(&self) -> Result<Vec<Organization>, StoreError> {
        self.on_primary("reading organizations", |connection| {
            organization::all(connection, false)
        })
    }

    fn set_plan(&self, organization: OrganizationId, plan: Plan) -> Result<bool, StoreError> {
        self.query("changing a plan", |connection| {
            organization::set_plan(connection, organization, plan)
        })
    }

    fn create_project(
        &self,
        organization: OrganizationId,
        name: &str,
        stable_branch: &str,
        now: Timestamp,
    ) -> Result<ProjectEntry, NameError> {
        let new = project::new(self.new_id(now), name, stable_branch, now);
        self.in_transaction("making a project", |connection| {
            project::insert(connection, organization, &new)
        })?;
        Ok(new)
    }

    fn rename_project(&self, project: ProjectId, name: &str) -> Result<(), NameError> {
        self.in_transaction("renaming a project", |connection| {
            project::rename(connection, project, name)
        })
    }

    fn move_project(&self, project: ProjectId, organization: OrganizationId) -> Result<(), NameError> {
        self.in_transaction("moving a project", |connection| {
            project::move_to(connection, project, organization)
        })
    }

    fn delete_project(
        &self,
        project: ProjectId,
        now: Timestamp,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Option<DeletionReport>, StoreError> {
        deletion::delete_project(self, project, now, progress)
    }

    fn clock(&self) -> Result<Timestamp, StoreError> {
        self.on_primary("reading the clock", |connection| {
            let At(now) = select(clock_timestamp()).get_result(connection)?;
            Ok::<_, WorkError<StoreError>>(now)
        })
    }

    fn unfinished_deletions(&self) -> Result<UnfinishedDeletions, StoreError> {
        self.on_primary("reading unfinished deletions", deletion::unfinished)
    }

    fn stored_runs(&self, project: ProjectId) -> Result<u64, StoreError> {
        self.on_primary("counting runs", |connection| {
            let runs: i64 = run::table
                .filter(run::project_id.eq(project.0))
                .count()
                .get_result(connection)?;
            Ok(long_count(runs)?)
        })
    }

    fn projects_of(&self, organization: OrganizationId) -> Result<Vec<ProjectEntry>, StoreError> {
        self.on_primary("reading projects", |connection| {
            project::of_organization(connection, organization)
        })
    }

    fn all_projects(&self) -> Result<Vec<ProjectEntry>, StoreError> {
        self.on_primary("reading projects", |connection| project::all(connection, false))
    }

    fn set_project(
        &self,
        id: ProjectId,
        change: &ProjectChange,
        judge: &dyn Judge,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.in_transaction("changing a project", |connection| {
            set_project(connection, id, change, judge, now)
        })
    }

    fn create_read_key(
        &self,
        organization: OrganizationId,
        key: &NewKey,
        expires_at: Timestamp,
    ) -> Result<bool, StoreError> {
        self.query_in_transaction("storing a key", |connection| {
            key::insert_read(connection, organization, key, expires_at)
        })
    }

    fn create_ingest_key(
        &self,
        project: ProjectId,
        key: &NewKey,
        terms: &IngestTerms,
    ) -> Result<bool, StoreError> {
        self.query_in_transaction("storing a key", |connection| {
            key::insert_ingest(connection, project, key, terms)
        })
    }

    fn uploads(&self, project: ProjectId, limit: u32) -> Result<Vec<UploadEntry>, StoreError> {
        self.on_primary("reading uploads", |connection| {
            ingest::list(connection, project, limit)
        })
    }

    fn stored_by_keys(&self, project: ProjectId, now: Timestamp) -> Result<Vec<KeyDay>, StoreError> {
        self.on_primary("reading what keys stored", |connection| {
            ingest::stored_by_keys(connection, project, now)
        })
    }

    fn rotate_key(&self, key: KeyId, new: &NewKey, until: Timestamp) -> Result<KeyRotation, StoreError> {
        self.in_transaction("replacing a key", |connection| {
            key::rotate(connection, key, new, until)
        })
    }

    fn keys(&self, organization: OrganizationId) -> Result<Vec<KeyEntry>, StoreError> {
        self.on_primary("reading keys", |connection| key::list(connection, organization))
    }

    fn rename_key(&self, key: KeyId, name: &str) -> Result<bool, StoreError> {
        self.query("renaming a key", |connection| key::rename(connection, key, name))
    }

    fn revoke_key(&self, key: KeyId, now: Timestamp) -> Result<bool, StoreError> {
        self.query("revoking a key", |connection| key::revoke(connection, key, now))
    }

    fn delete_key(&self, key: KeyId, now: Timestamp) -> Result<KeyDeletion, StoreError> {
        // If the answer to a commit was lost, the second attempt finds that the first one deleted the key.
        let mut was_deleted = false;
        let deletion = self.in_transaction("deleting a key", |connection| {
            let deletion = key::delete(connection, key, now)?;
            was_deleted |= deletion == KeyDeletion::Deleted;
            Ok::<_, WorkError<StoreError>>(deletion)
        })?;
        Ok(if was_deleted {
            KeyDeletion::Deleted
        } else {
            deletion
        })
    }

    fn refingerprint(
        &self,
        project: ProjectId,
        classifier: &dyn Classifier,
    ) -> Result<Option<RefingerprintCounts>, StoreError> {
        self.in_transaction("grouping errors again", |connection| {
            refingerprint::refingerprint(connection, project, classifier)
        })
    }

    fn prune(
        &self,
        now: Timestamp,
        dry_run: bool,
        progress: &mut dyn FnMut(PruneStep<'_>),
    ) -> Result<PruneReport, StoreError> {
        prune::prune(self, now, dry_run, progress)
    }
}

fn set_project(
    connection: &mut PgConnection,
    id: ProjectId,
    change: &ProjectChange,
    judge: &dyn Judge,
    now: Timestamp,
) -> Read<bool> {
    let stable_branches = (projects::stable_branch, projects::release_branches);
    // Takes the same lock as imports, so that no verdict overwrites a later one.
    let locked: Option<(String, Vec<String>)> = projects::table
        .find(id.0)
        .filter(projects::deleted_at.is_null())
        .select(stable_branches)
        .for_no_key_update()
        .first(connection)
        .optional()?;
    let Some(former) = locked else { return Ok(false) };
    project::change(connection, id, change)?;
    let new: (String, Vec<String>) = projects::table
        .find(id.0)
        .select(stable_branches)
        .first(connection)?;
    if new != former {
        verdict::judge(
            connection,
            id.0,
            judge,
            now,
            &verdict::ImportChanges::everything(),
            verdict::EdgeRecording::KeepState,
        )?;
    }
    Ok(true)
}
