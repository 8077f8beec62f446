//! The ports of the store: reading, recording, administration, transfer and the outbox of messages.
//!
//! The traits are synchronous. A caller in an asynchronous program makes one hop to a blocking thread. A missing row
//! is an `Option` or a [`crate::test::TestLookup`]. A [`StoreError`] always means that the store failed.

mod administration;
mod outbox;
mod read;
mod record;
mod transfer;

pub use administration::{
    Administration, DeletionReport, KeyDeletion, KeyRotation, NameError, ProjectChange, PruneReport,
    PruneStep, PrunedCounts, RefingerprintCounts, UnfinishedDeletions,
};
pub use outbox::{
    Attempt, Dropped, DueMessage, EdgeNames, MessageHead, MessageKey, MessageKind, NewMessage, Outbox,
    OutboxProject,
};
pub use read::{
    ComputeShared, Connections, FinalResult, JudgedFigures, ProjectFigures, ReadKeys, RecognisedOutcome,
    RecognisedReport, ResultKey, SharedKey, SharedValue, Snapshot, SnapshotWork, Store, in_snapshot, shared,
};
pub use record::{DueJudgement, RecordError, Recorder, StoredRecording};
pub use transfer::{
    ArchiveContents, ArchiveImportError, ArchivedOrganization, ArchivedProject, ArchivedTable, ExportError,
    ImportedOrganization, OrganizationTransfer, RowSink, RowSource,
};

/// A failure of the store. The cause is logged and never sent to a client.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store was not reachable in time: no connection, or none free.
    #[error("the database is unreachable")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The store returned an error.
    #[error("the database failed while {doing}")]
    Failed {
        /// The operation that failed.
        doing: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The store has no disk space or memory for the operation.
    #[error("the database has no disk space or memory left for {doing}")]
    Exhausted {
        /// The operation that failed.
        doing: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The login of this program has no right to the operation.
    #[error(
        "the database's login lacks a right for {doing}; use a login that has it, such as the owner of the tables. If a grant is \
         missing, run `assay-admin migrate` as the owner, or `SELECT assay_grant_roles();` as a superuser"
    )]
    NotPermitted {
        /// The operation that failed.
        doing: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The database has a value that no version of Assay writes.
    #[error("the database holds a {what} that cannot be read: {value:?}")]
    Corrupt {
        /// The kind of value.
        what: &'static str,
        /// Its value, bounded.
        value: String,
    },
}
