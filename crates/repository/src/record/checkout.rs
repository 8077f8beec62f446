//! The files of a checkout that concern the whole project.
//!
//! Only a trusted run of the stable branch changes them, so that neither a fork nor a branch can. Uploads may arrive in any
//! order: those of the run that started last stay.

use assay_domain::{owners::OwnersFile, recording::Recording, renames::RenamesFile, rules::RecordingRules};
use diesel::prelude::*;
use uuid::Uuid;

use crate::db::{
    column::{At, storable},
    schema::{project, project_owners},
};

/// Whether a report is one of the stable branch, and may change what concerns the whole project.
pub(super) fn is_trusted(recording: &Recording, rules: RecordingRules, stable_branch: &str) -> bool {
    let context = &recording.context;
    let is_stable = context.branch.as_deref() == Some(stable_branch) && context.pull_request_number.is_none();
    is_stable && rules.counts_in_verdicts()
}

/// Stores the files that a report brings, if it may change them. Returns whether the renames file changed.
pub(super) fn store(
    connection: &mut PgConnection,
    project: Uuid,
    recording: &Recording,
    rules: RecordingRules,
    stable_branch: &str,
) -> QueryResult<bool> {
    if !is_trusted(recording, rules, stable_branch) {
        return Ok(false);
    }
    let at = At(recording.started_at);
    if let Some(file) = &recording.checkout.owners {
        store_owners(connection, project, file, at)?;
    }
    match &recording.checkout.renames {
        Some(file) => store_renames(connection, project, file, at),
        None => Ok(false),
    }
}

fn store_renames(connection: &mut PgConnection, of: Uuid, file: &RenamesFile, at: At) -> QueryResult<bool> {
    let text = (!file.text.trim().is_empty()).then(|| storable(&file.text));
    let is_newest = project::table
        .filter(project::id.eq(of))
        .filter(project::renames_at.is_null().or(project::renames_at.le(at)));
    let changed = diesel::update(is_newest)
        .filter(project::renames_text.is_distinct_from(&text))
        .set((project::renames_text.eq(&text), project::renames_at.eq(Some(at))))
        .execute(connection)?;
    if changed == 0 {
        diesel::update(is_newest)
            .set(project::renames_at.eq(Some(at)))
            .execute(connection)?;
    }
    Ok(changed > 0)
}

fn store_owners(connection: &mut PgConnection, of: Uuid, file: &OwnersFile, at: At) -> QueryResult<()> {
    let OwnersFile { path, text, files } = file;
    let stored = |text: &str| (!path.is_empty()).then(|| storable(text));
    diesel::update(
        project_owners::table.filter(project_owners::id.eq(of)).filter(
            project_owners::owners_at
                .is_null()
                .or(project_owners::owners_at.le(at)),
        ),
    )
    .set((
        project_owners::owners_path.eq(stored(path)),
        project_owners::owners_text.eq(stored(text)),
        project_owners::owners_files.eq(stored(files)),
        project_owners::owners_at.eq(Some(at)),
    ))
    .execute(connection)?;
    Ok(())
}
