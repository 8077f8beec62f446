//! `assay-admin migrate`: brings the schema up to date.

use assay_cli_terminal::output;
use serde_json::json;

use crate::{database, global::Global};

/// Runs `assay-admin migrate`.
pub(crate) fn run(global: &Global) -> anyhow::Result<()> {
    let migrated = database::migrate(global)?;
    let value = json!({
        "applied": migrated.applied,
        "distributed": migrated.distributed,
        "rolesToDo": migrated.roles,
    });
    output::print(global.json, &value, || {
        let mut done = if migrated.applied.is_empty() {
            "The schema is up to date".to_owned()
        } else {
            format!("Brought the schema up to date: {}", migrated.applied.join(", "))
        };
        if !migrated.distributed.is_empty() {
            done += &format!(
                "\nDistributed over the nodes: {}",
                migrated.distributed.join(", ")
            );
        }
        match &migrated.roles {
            None => done,
            Some(todo) => format!(
                "{done}\nThe roles assay_server, assay_importer, assay_ingester and assay_notifier have no rights yet, which only matters to logins that are \
                 members of them. To give them, run this in the database as a superuser: {todo}"
            ),
        }
    })
}
