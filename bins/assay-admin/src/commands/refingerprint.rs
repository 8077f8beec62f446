//! `assay-admin refingerprint`: groups stored errors again.

use anyhow::bail;
use assay_cli_terminal::{
    output,
    progress::{self, Unit},
};
use assay_domain::store::{Administration, RefingerprintCounts};
use assay_fingerprint::{Fingerprinter, VERSION};
use clap::Args;
use serde_json::json;

use crate::{database, global::Global, lookup};

/// Group stored errors again with this version's algorithm
///
/// A new version of Assay may recognise errors differently, but does not regroup stored errors by itself. This command
/// does, in one transaction per project. Old fingerprints keep working.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  assay-admin refingerprint
  assay-admin refingerprint --project storefront")]
pub(crate) struct RefingerprintArgs {
    /// The project's id or name; without it, every project
    #[arg(long)]
    project: Option<String>,
}

/// Runs `assay-admin refingerprint`.
pub(crate) fn run(global: &Global, args: &RefingerprintArgs) -> anyhow::Result<()> {
    let opened = database::open(global)?;
    let store: &dyn Administration = &opened.database;
    let projects = lookup::projects(store, args.project.as_deref())?;
    let mut done = Vec::new();
    let bar = progress::bar(
        global.json,
        "regrouping",
        u64::try_from(projects.len())?,
        Unit::Items("projects"),
    );
    for project in projects {
        let Some(result) = store.refingerprint(project.id, &Fingerprinter)? else {
            bail!("the project {:?} was deleted meanwhile", project.name);
        };
        done.push((project, result));
        bar.inc(1);
    }
    bar.finish_and_clear();
    let entries: Vec<_> = done
        .iter()
        .map(
            |(project, result)| json!({ "projectId": project.id, "project": project.name, "result": result }),
        )
        .collect();
    let value = json!({ "algorithm": VERSION, "projects": entries });
    output::print(global.json, &value, || {
        output::table(
            &["PROJECT", "FAILED ATTEMPTS", "REGROUPED", "SIGNATURES", "RENAMED"],
            done.iter().map(|(project, result)| row(&project.name, result)),
        )
    })
}

fn row(project: &str, result: &RefingerprintCounts) -> Vec<String> {
    vec![
        project.to_owned(),
        result.attempts.to_string(),
        result.changed.to_string(),
        format!("{} -> {}", result.signatures_before, result.signatures_after),
        result.renamed.to_string(),
    ]
}
