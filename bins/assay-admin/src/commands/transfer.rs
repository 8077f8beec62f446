//! `assay-admin org export` and `assay-admin org import`: move an organization to another database.

use std::path::Path;

use assay_cli_terminal::{
    output,
    progress::{self, Unit},
};
use assay_domain::store::{ExportError, OrganizationTransfer};
use assay_flakiness::Engine;
use assay_repository::Database;
use serde_json::json;

use crate::{
    archive::{ArchiveReader, ArchiveWriter},
    clock,
    global::Global,
    lookup,
};

/// Runs `assay-admin org export`.
pub(crate) fn export(global: &Global, store: &Database, org: &str, folder: &Path) -> anyhow::Result<()> {
    let organization = lookup::organization(store, org)?;
    let name = &organization.name;
    let spinner = progress::spinner(global.json, format!("exporting {name}"));
    let mut archive = ArchiveWriter::create(folder, spinner.clone())?;
    let exported = store.export_organization(organization.id, &mut archive);
    let contents = exported.map_err(|error| {
        let is_of_archive = matches!(error, ExportError::Archive(_));
        let error = anyhow::Error::from(error);
        if !is_of_archive {
            return error;
        }
        error.context(format!(
            "the export of {name:?} did not finish; once this is fixed, run the same command again"
        ))
    })?;
    let (projects, rows) = (
        contents.projects.len(),
        contents.tables.iter().map(|table| table.rows).sum::<u64>(),
    );
    let bytes = archive.finish(contents, clock::now())?;
    spinner.finish_and_clear();
    let value = json!({
        "id": organization.id, "name": name, "folder": folder, "projects": projects, "rows": rows, "bytes": bytes,
    });
    output::print(global.json, &value, || {
        format!(
            "Exported the organization {name:?} with {} to {}: {}, {}\nNext: copy the folder to the other database's \
             machine, and there: assay-admin org import {}",
            output::count(projects, "project"),
            folder.display(),
            output::count(rows, "row"),
            output::bytes(i64::try_from(bytes).unwrap_or(i64::MAX)),
            output::shell_word(&folder.display().to_string())
        )
    })
}

/// Runs `assay-admin org import`.
pub(crate) fn import(global: &Global, store: &Database, folder: &Path) -> anyhow::Result<()> {
    let mut archive = ArchiveReader::open(folder)?;
    archive.show(progress::bar(
        global.json,
        "Checking",
        archive.bytes(),
        Unit::Bytes,
    ));
    archive.check()?;
    let bar = progress::bar(global.json, "Importing", archive.bytes(), Unit::Bytes);
    archive.show(bar.clone());
    let contents = archive.contents().clone();
    let imported = store.import_organization(&contents, &mut archive, &Engine::default(), clock::now());
    bar.finish_and_clear();
    let imported = imported?;
    let organization = &contents.organization;
    let projects = contents.projects.len();
    let value = json!({
        "id": organization.id, "name": organization.name, "projects": projects,
        "rows": imported.rows, "verdicts": imported.verdicts,
    });
    output::print(global.json, &value, || {
        format!(
            "Imported the organization {:?} with {} and {}; the engine computes the same {} from the results",
            organization.name,
            output::count(projects, "project"),
            output::count(imported.rows, "row"),
            output::count(imported.verdicts, "verdict"),
        )
    })
}
