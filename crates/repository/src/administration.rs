//! The port of the administrator.

use assay_domain::{
    id::{KeyId, OrganizationId, ProjectId},
    key::{KeyEntry, NewKey},
    plan::Plan,
    project::{Organization, ProjectEntry},
    signature::Classifier,
    store::{
        Administration, KeyDeletion, ProjectChange, PruneReport, PruneStep, Refingerprinted, StoreError,
    },
    timestamp::Timestamp,
    verdict::Judge,
};
use diesel::{OptionalExtension, PgConnection, QueryDsl, RunQueryDsl};

use crate::{
    Database, key, organization,
    pool::{Read, WorkError},
    project, prune, refingerprint,
    schema::project as projects,
    verdict,
};

impl Administration for Database {
    fn create_organization(
        &self,
        name: &str,
        plan: Plan,
        now: Timestamp,
    ) -> Result<Organization, StoreError> {
        let new = organization::new(self.new_id(now), name, plan, now);
        self.run("making an organization", |connection| {
            Ok::<_, WorkError<StoreError>>(organization::insert(connection, &new)?)
        })?;
        Ok(new)
    }

    fn organizations(&self) -> Result<Vec<Organization>, StoreError> {
        self.run("reading organizations", organization::all)
    }

    fn set_plan(&self, organization: OrganizationId, plan: Plan) -> Result<bool, StoreError> {
        self.run("changing a plan", |connection| {
            Ok(organization::set_plan(connection, organization, plan)?)
        })
    }

    fn create_project(
        &self,
        organization: OrganizationId,
        name: &str,
        stable_branch: &str,
        now: Timestamp,
    ) -> Result<ProjectEntry, StoreError> {
        let new = project::new(self.new_id(now), name, stable_branch, now);
        self.run("making a project", |connection| {
            Ok::<_, WorkError<StoreError>>(project::insert(connection, organization, &new)?)
        })?;
        Ok(new)
    }

    fn projects_of(&self, organization: OrganizationId) -> Result<Vec<ProjectEntry>, StoreError> {
        self.run("reading projects", |connection| {
            project::of_organization(connection, organization)
        })
    }

    fn all_projects(&self) -> Result<Vec<ProjectEntry>, StoreError> {
        self.run("reading projects", project::all)
    }

    fn set_project(
        &self,
        id: ProjectId,
        change: &ProjectChange,
        judge: &dyn Judge,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.write("changing a project", |connection| {
            set_project(connection, id, change, judge, now)
        })
    }

    fn create_read_key(
        &self,
        organization: OrganizationId,
        key: &NewKey,
        expires_at: Timestamp,
    ) -> Result<bool, StoreError> {
        self.write("storing a key", |connection| {
            Ok(key::insert_read(connection, organization, key, expires_at)?)
        })
    }

    fn create_ingest_key(&self, project: ProjectId, key: &NewKey) -> Result<bool, StoreError> {
        self.write("storing a key", |connection| {
            Ok(key::insert_ingest(connection, project, key)?)
        })
    }

    fn keys(&self, organization: OrganizationId) -> Result<Vec<KeyEntry>, StoreError> {
        self.run("reading keys", |connection| key::list(connection, organization))
    }

    fn revoke_key(&self, key: KeyId, now: Timestamp) -> Result<bool, StoreError> {
        self.run("revoking a key", |connection| {
            Ok(key::revoke(connection, key, now)?)
        })
    }

    fn delete_key(&self, key: KeyId, now: Timestamp) -> Result<KeyDeletion, StoreError> {
        // A second attempt, after a commit that was not answered, finds that the first one deleted the key.
        let mut was_deleted = false;
        let deletion = self.write("deleting a key", |connection| {
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
    ) -> Result<Option<Refingerprinted>, StoreError> {
        self.write("grouping errors anew", |connection| {
            refingerprint::refingerprint(connection, project, classifier)
        })
    }

    fn prune(
        &self,
        now: Timestamp,
        dry_run: bool,
        told: &mut dyn FnMut(PruneStep<'_>),
    ) -> Result<PruneReport, StoreError> {
        prune::prune(self, now, dry_run, told)
    }
}

fn set_project(
    connection: &mut PgConnection,
    id: ProjectId,
    change: &ProjectChange,
    judge: &dyn Judge,
    now: Timestamp,
) -> Read<bool> {
    // The lock that imports take, too: a verdict must not be stored over a later one.
    let locked: Option<String> = projects::table
        .find(id.0)
        .select(projects::stable_branch)
        .for_no_key_update()
        .first(connection)
        .optional()?;
    let Some(former) = locked else { return Ok(false) };
    project::change(connection, id, change)?;
    if change
        .stable_branch
        .as_ref()
        .is_some_and(|branch| *branch != former)
    {
        verdict::judge(connection, id.0, judge, now, &verdict::Touched::default())?;
    }
    Ok(true)
}
