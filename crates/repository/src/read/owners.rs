//! The owners file of a project.

use assay_domain::owners::OwnersFile;
use diesel::prelude::*;
use uuid::Uuid;

use crate::db::schema::project_owners;

/// Path, text and files.
type Row = (Option<String>, Option<String>, Option<String>);

/// The project's owners file, if it has one.
pub(crate) fn find(connection: &mut PgConnection, of: Uuid) -> QueryResult<Option<OwnersFile>> {
    let row: Option<Row> = project_owners::table
        .filter(project_owners::id.eq(of))
        .select((
            project_owners::owners_path,
            project_owners::owners_text,
            project_owners::owners_files,
        ))
        .first(connection)
        .optional()?;
    let file = |(path, text, files): Row| {
        Some(OwnersFile {
            path: path?,
            text: text?,
            files: files?,
        })
    };
    Ok(row.and_then(file))
}
