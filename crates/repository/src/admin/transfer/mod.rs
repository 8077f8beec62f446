//! The port of moving an organization between databases.

pub(super) mod copy;
mod export;
mod import;

use assay_domain::{
    id::OrganizationId,
    store::{
        ArchiveContents, ArchiveImportError, ExportError, ImportedOrganization, OrganizationTransfer,
        RowSink, RowSource,
    },
    timestamp::Timestamp,
    verdict::Judge,
};

use crate::Database;

impl OrganizationTransfer for Database {
    fn export_organization(
        &self,
        organization: OrganizationId,
        sink: &mut dyn RowSink,
    ) -> Result<ArchiveContents, ExportError> {
        export::export(self, organization, sink)
    }

    fn import_organization(
        &self,
        contents: &ArchiveContents,
        source: &mut dyn RowSource,
        judge: &dyn Judge,
        now: Timestamp,
    ) -> Result<ImportedOrganization, ArchiveImportError> {
        import::import(self, contents, source, judge, now)
    }
}
