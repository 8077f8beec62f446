//! `assay uploads`: lists the reports that a project got over HTTP, by a read key.

use anyhow::Context as _;
use assay_cli_terminal::{output, table::Cell, uploads};
use assay_domain::{ingest::ProjectUpload, timestamp::Timestamp};
use clap::Args;
use serde::Deserialize;
use serde_json::json;

use crate::{clock, global::Global, server_flags::ProjectFlags};

/// List the reports that a project got over HTTP, the newest first
///
/// Asks the server with a read key. Each upload is recorded for 90 days with its key, and with the gate's decision on it:
/// which failed tests it excused. `assay-admin uploads` also shows the beginning of a key without a name, the client, and what
/// each key stored today.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  assay uploads --project storefront
  assay uploads --project storefront --json | jq '.uploads[].decision | select(.outcome == \"excused\") | .excused'")]
pub(crate) struct UploadsArgs {
    /// How many to list
    #[arg(long, value_name = "N", default_value = "50", value_parser = ["10", "25", "50", "200"])]
    limit: String,
    #[command(flatten)]
    server: ProjectFlags,
}

/// The server's answer, as far as the command needs it.
#[derive(Debug, Deserialize)]
struct UploadList {
    uploads: Vec<ProjectUpload>,
}

/// Runs `assay uploads`.
pub(crate) fn run(global: &Global, args: &UploadsArgs) -> anyhow::Result<()> {
    let (mut api, project) = args.server.open(global)?;
    let answer = api.get(&format!("projects/{project}/uploads?limit={}", args.limit))?;
    let UploadList { uploads } =
        UploadList::deserialize(&answer).context("the server's answer is no list of uploads")?;
    let now = clock::now();
    output::print(global.json, &json!({ "uploads": uploads }), || {
        shown(&uploads, now)
    })
}

fn shown(uploads: &[ProjectUpload], now: Timestamp) -> String {
    if uploads.is_empty() {
        return "No report reached this project over HTTP in the last 90 days".to_owned();
    }
    let rows = uploads.iter().map(|upload| {
        let key = upload
            .key_name
            .clone()
            .unwrap_or_else(|| upload.key_id.to_string());
        uploads::row(upload, Cell::from(key), now)
    });
    output::table(&uploads::HEADINGS, rows)
}
