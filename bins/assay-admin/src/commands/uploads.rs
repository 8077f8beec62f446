//! `assay-admin uploads`: lists the uploads of a project with their keys.

use assay_cli_terminal::{
    output,
    table::{Cell, Tone},
    uploads,
};
use assay_domain::{
    ingest::{KeyDay, UploadEntry},
    store::Administration,
    timestamp::Timestamp,
};
use clap::Args;
use serde_json::json;

use crate::{clock, database, global::Global, lookup};

/// List the reports that a project got over HTTP, the newest first
///
/// Each upload is recorded for 90 days with its key, and with the gate's decision on it: which failed tests it excused. Reports of
/// `assay-admin import` are not uploads.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  assay-admin uploads --project storefront
  assay-admin uploads --project storefront --json | jq '.uploads[] | select(.keyName == \"forks\")'
  assay-admin uploads --project storefront --json | jq '.uploads[].decision | select(.outcome == \"excused\") | .excused'")]
pub(crate) struct UploadsArgs {
    /// The project's id or name
    #[arg(long)]
    project: String,
    /// How many to list
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
}

/// Runs `assay-admin uploads`.
pub(crate) fn run(global: &Global, args: &UploadsArgs) -> anyhow::Result<()> {
    let opened = database::open(global)?;
    let store: &dyn Administration = &opened.database;
    let project = lookup::project(store, &args.project)?;
    let entries = store.uploads(project.id, args.limit)?;
    let now = clock::now();
    let today = store.stored_by_keys(project.id, now)?;
    let shown = json!({ "uploads": entries, "today": today });
    output::print(global.json, &shown, || {
        if entries.is_empty() {
            return format!(
                "No report reached {:?} over HTTP in the last 90 days",
                project.name
            );
        }
        let table = output::table(
            &[&uploads::HEADINGS[..], &["CLIENT", "SENDER"]].concat(),
            entries.iter().map(|entry| row(entry, now)),
        );
        let today = today.iter().map(day).collect::<Vec<_>>();
        [vec![table], today].concat().join("\n")
    })
}

/// What a key stored today.
fn day(day: &KeyDay) -> String {
    let key = match (&day.key_name, &day.key_prefix) {
        (Some(name), _) => name.clone(),
        (None, Some(prefix)) => format!("{prefix}…"),
        (None, None) => format!("{} (deleted)", day.key_id),
    };
    let bytes = output::bytes(i64::try_from(day.bytes).unwrap_or(i64::MAX));
    format!(
        "Today (UTC) {key} stored {} tests in {bytes} of reports",
        day.tests
    )
}

fn row(entry: &UploadEntry, now: Timestamp) -> Vec<Cell> {
    let key = match (&entry.upload.key_name, &entry.key_prefix) {
        (Some(name), _) => Cell::from(name.clone()),
        (None, Some(prefix)) => format!("{prefix}…").into(),
        (None, None) => Cell::new(format!("{} (deleted)", entry.upload.key_id), Tone::Faint),
    };
    let mut row = uploads::row(&entry.upload, key, now);
    row.push(entry.client.clone().unwrap_or_default().into());
    row.push(entry.sender.clone().unwrap_or_default().into());
    row
}
