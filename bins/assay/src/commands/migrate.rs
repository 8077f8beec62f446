//! `assay migrate`: brings the schema up to date.

use serde_json::json;

use crate::{cli::Global, database, output};

/// Runs `assay migrate`.
pub(crate) fn run(global: &Global) -> anyhow::Result<()> {
    let applied = database::migrate(global)?;
    output::print(global.json, &json!({ "applied": applied }), || {
        if applied.is_empty() {
            "The schema is up to date".to_owned()
        } else {
            format!("Brought the schema up to date: {}", applied.join(", "))
        }
    })
}
