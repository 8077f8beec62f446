//! Moving an organization between databases: its rows in archives.

use std::io;

use serde::{Deserialize, Serialize};

use super::StoreError;
use crate::{
    id::{KeyId, OrganizationId, ProjectId},
    plan::Plan,
    timestamp::Timestamp,
    verdict::Judge,
};

/// Writes the rows of organizations to archives, and stores the rows of archives.
pub trait OrganizationTransfer: Send + Sync {
    /// Writes every row of an organization, in one state of the database.
    ///
    /// Refused while an import into one of its projects runs. Imports that begin meanwhile wait for the end.
    fn export_organization(
        &self,
        organization: OrganizationId,
        sink: &mut dyn RowSink,
    ) -> Result<ArchiveContents, ExportError>;

    /// Stores all rows of an archive with their ids and keys, in one transaction. Before it commits, the stored
    /// verdicts are compared with those that `judge` computes from the stored results.
    fn import_organization(
        &self,
        contents: &ArchiveContents,
        source: &mut dyn RowSource,
        judge: &dyn Judge,
        now: Timestamp,
    ) -> Result<ImportedOrganization, ArchiveImportError>;
}

/// Writes the rows of an export, one table after the other.
pub trait RowSink {
    /// Begins a table. Discards rows of a table of this name, because an export may start again after a lost
    /// connection.
    fn begin_table(&mut self, table: &'static str) -> io::Result<()>;

    /// Writes one row of the current table, in Postgres' text format of `COPY`.
    fn write_row(&mut self, row: &[u8]) -> io::Result<()>;
}

/// Returns the rows of an archive.
pub trait RowSource {
    /// The rows of a table from the first one on, as they were written.
    fn open_table(&mut self, table: &str) -> io::Result<Box<dyn io::Read + '_>>;
}

/// The table of contents of an archive: everything in it except the rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArchiveContents {
    /// The name of the newest migration of the database that the rows are from.
    pub schema: String,
    /// The organization.
    pub organization: ArchivedOrganization,
    /// Its projects, oldest first.
    pub projects: Vec<ArchivedProject>,
    /// The ids of its keys and of its projects' keys.
    pub keys: Vec<KeyId>,
    /// The days, in UTC, on which runs with results started. The importing database needs a partition for each.
    pub days: Vec<Timestamp>,
    /// The tables in the order in which they are stored.
    pub tables: Vec<ArchivedTable>,
}

impl ArchiveContents {
    /// The number of rows of a table; 0 for one that the archive does not have.
    pub fn rows_of(&self, table: &str) -> u64 {
        let entry = self.tables.iter().find(|entry| entry.table == table);
        entry.map_or(0, |entry| entry.rows)
    }
}

/// The organization of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedOrganization {
    /// Its id.
    pub id: OrganizationId,
    /// Its name.
    pub name: String,
    /// Its plan.
    pub plan: Plan,
}

/// A project of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedProject {
    /// Its id.
    pub id: ProjectId,
    /// Its name.
    pub name: String,
}

/// A table of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedTable {
    /// Its name.
    pub table: String,
    /// The number of its rows.
    pub rows: u64,
}

/// The result of importing an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ImportedOrganization {
    /// Rows of all tables.
    pub rows: u64,
    /// Verdicts that equal those of the engine.
    pub verdicts: u64,
}

/// Why an organization was not exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// There is no such organization.
    #[error("the organization was deleted meanwhile")]
    Missing,
    /// An import, or another export, holds the lock of a project.
    #[error(
        "an import into the project {0:?} is running, or another export of it; \
         stop its reports, wait for the end, and run the command again"
    )]
    ImportRuns(String),
    /// The verdicts are older than the results: an import is running or was killed.
    #[error(
        "the verdicts of the project {name:?} are older than its results, because an import is running or was killed; \
         wait for the import, or run `assay-admin rebuild --project {id}`, and run the command again"
    )]
    NotJudged {
        /// The project.
        id: ProjectId,
        /// Its name.
        name: String,
    },
    /// The schema has migrations that this program does not know.
    #[error(
        "a newer version migrated this database (it has {0}), so this one does not know all columns; \
         run the newer version of assay"
    )]
    NewerSchema(String),
    /// The archive could not be written.
    #[error(transparent)]
    Archive(io::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why an archive was not imported. Nothing of it is stored.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveImportError {
    /// The rows are of another schema than this database.
    #[error(
        "the archive has the schema {archive:?}, and this database has {database}; bring both databases to one version \
         (`assay-admin migrate`), and export again"
    )]
    OtherSchema {
        /// The newest migration of the archive.
        archive: String,
        /// The newest migration of the database.
        database: String,
    },
    /// The organization is stored already.
    #[error(
        "the organization {name:?} ({id}) is already in this database; to replace it by the archive, run \
         `assay-admin org delete {id}` first"
    )]
    OrganizationExists {
        /// Its id.
        id: OrganizationId,
        /// Its name here.
        name: String,
    },
    /// Another organization has the name.
    #[error(
        "another organization of this database is named {name:?}, with the id {id}; rename that one \
         (`assay-admin org rename {id} NAME`), or rename this one where it is from and export again"
    )]
    NameTaken {
        /// The name.
        name: String,
        /// The id of the organization with the name.
        id: OrganizationId,
    },
    /// A project of the archive is stored already, in another organization.
    #[error(
        "the project {name:?} ({id}) is already in this database, in the organization {organization}; \
         delete it first: `assay-admin project delete {id}`"
    )]
    ProjectExists {
        /// Its id.
        id: ProjectId,
        /// Its name here.
        name: String,
        /// The organization that it belongs to here.
        organization: OrganizationId,
    },
    /// A key of the archive is stored already.
    #[error(
        "the key {0} of the archive is already in this database; revoke it and delete it first: \
         `assay-admin key revoke {0}`, `assay-admin key delete {0}`"
    )]
    KeyExists(KeyId),
    /// The text of a key is stored already, under another id.
    #[error(
        "a key of the archive has the same text as another key of this database; replace it where it is from \
         (`assay-admin key rotate`), and export again"
    )]
    KeyTextExists,
    /// The rows do not match the archive's contents.
    #[error("the archive contradicts itself: {0}; export the organization again")]
    Damaged(String),
    /// The engine computes other verdicts from the results.
    #[error(
        "this version of assay computes {differing} other verdicts from the results of the project {name:?} than the \
         archive has; run `assay-admin rebuild --project {id}` with this version where the archive is from, and export again"
    )]
    OtherVerdicts {
        /// The project.
        id: ProjectId,
        /// Its name.
        name: String,
        /// The number of verdicts that differ.
        differing: u64,
    },
    /// The archive could not be read.
    #[error(transparent)]
    Archive(io::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
