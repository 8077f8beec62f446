//! Administration: keys, projects, organizations, migrations, deletion, transfer, pruning, messages and the recomputing of
//! derived data.

pub(crate) mod administration;
pub(crate) mod deletion;
pub(crate) mod diagnosis;
pub(crate) mod distribute;
pub(crate) mod export;
pub(crate) mod ingest;
pub(crate) mod key;
pub(crate) mod migrate;
pub(crate) mod organization;
pub(crate) mod outbox;
pub(crate) mod project;
pub(crate) mod prune;
pub(crate) mod rebuild;
pub(crate) mod refingerprint;
pub(crate) mod session;
pub(crate) mod tables;
pub(crate) mod transfer;
