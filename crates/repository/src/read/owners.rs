//! The owners file of a project.

use assay_domain::owners::OwnersFile;
use diesel::prelude::*;
use uuid::Uuid;

use crate::db::schema::project;

/// Path, text and files.
type Row = (Option<String>, Option<String>, Option<String>);

/// The project's owners file, if it has one.
pub(crate) fn find(connection: &mut PgConnection, of: Uuid) -> QueryResult<Option<OwnersFile>> {
    let row: Option<Row> = project::table
        .filter(project::id.eq(of))
        .select((project::owners_path, project::owners_text, project::owners_files))
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
