//! Sends the reports of old runs to a server.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, ensure};
use assay_cli_local::history::{report::JobReport, state::State};
use assay_cli_remote::server::{
    body::{Body, Facts, Field},
    ingest::{Server, UploadError},
    sending::send_body,
};
use assay_cli_terminal::retry::Backoff;
use assay_reports::{SourceFile, ci::CiContext};
use clap::Args;
use serde_json::Value;

use super::{counts::Counts, misuse};
use crate::{server_flags::ConnectionFlags, upload_flags};

/// Heading of the help.
const SERVER: &str = "The server";
/// Where states are kept.
const FOLDER: &str = ".assay/backfill";

/// The flags of the server.
#[derive(Debug, Args)]
pub(super) struct ServerTarget {
    /// The address of the server's ingest listener; without it ASSAY_URL
    #[arg(long, value_name = "https://HOST", env = "ASSAY_INGEST_URL", hide_env_values = true, help_heading = SERVER)]
    url: Option<String>,
    /// The file with a key for old runs; without it the variable ASSAY_INGEST_KEY
    #[arg(long, value_name = "FILE", help_heading = SERVER)]
    key_file: Option<PathBuf>,
    /// The project that the key must belong to: its id or name
    #[arg(long, help_heading = SERVER)]
    project: Option<String>,
    /// Which reports are sent already; without it, a file in .assay/backfill
    #[arg(long, value_name = "FILE", help_heading = SERVER)]
    state: Option<PathBuf>,
    #[command(flatten)]
    pub(super) connection: ConnectionFlags,
}

/// Sends the reports of a history to one project.
pub(super) struct Sender {
    json: bool,
    server: Server,
    project: String,
    named_project: Option<String>,
    retry_for: Duration,
    state: State,
    /// The report that was stored last. The state lacks it until the project is judged, so that a repetition after a kill
    /// judges.
    last: Option<Sent>,
}

struct Sent {
    id: String,
    fields: Vec<Field>,
    files: Vec<SourceFile>,
}

impl Sender {
    /// Asks the server whether the key may send old runs, and reads what was sent already.
    pub(super) fn of(json: bool, flags: &ServerTarget, source: &str) -> anyhow::Result<Self> {
        let server = upload_flags::server_of(flags.url.as_deref(), flags.key_file.as_deref(), &flags.connection)
            .map_err(|error| {
                match error.downcast::<assay_cli_remote::server::address::MissingSetting>() {
                    Ok(missing) => misuse(format!(
                        "{missing}. Set both, with a key of `assay-admin key create-ingest --project P --backfill`; or judge \
                         here with --analyze PAGE.html"
                    )),
                    Err(error) => error,
                }
            })?;
        let key = server.key().map_err(anyhow::Error::new)?;
        ensure!(
            key.get("backfill") == Some(&Value::Bool(true)),
            "the key may not send runs of more than 7 days ago; `assay-admin key create-ingest --project P --backfill \
             --days 7` makes one that may"
        );
        let text = |pointer: &str| key.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let (id, project) = text("/project/id")
            .zip(text("/project/name"))
            .context("the server names no project")?;
        let file = flags.state.clone().unwrap_or_else(|| {
            let name: String = source
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
                .collect();
            Path::new(FOLDER).join(format!("{name}-{id}.json"))
        });
        Ok(Self {
            json,
            state: State::open(&file, &format!("{source} in {id}"))?,
            server,
            project,
            named_project: flags.project.clone(),
            retry_for: flags.connection.retry_for,
            last: None,
        })
    }

    /// Whether a report is sent already.
    pub(super) fn has(&self, id: &str) -> bool {
        self.state.has(id)
    }

    /// Sends the report of a job. A later one judges.
    pub(super) fn send(
        &mut self,
        id: &str,
        ci: &CiContext,
        report: &mut JobReport,
        counts: &mut Counts,
    ) -> anyhow::Result<()> {
        let facts = Facts {
            flags: &report.flags,
            format: None,
            root: report.root.as_deref(),
            ci,
            known_files: None,
            rerun: None,
            owners: None,
            renames: None,
            project: self.named_project.as_deref(),
            retries_as_attempts: false,
            skip_cached: false,
            dry_run: false,
            judgement: None,
            failures: false,
            // The machines of CI services are at UTC.
            utc_offset_minutes: None,
        };
        let sent = Sent {
            id: id.to_owned(),
            fields: facts.fields().0,
            files: std::mem::take(&mut report.files),
        };
        match self.upload(&sent, "later")? {
            Ok(answer) => {
                match answer.get("effect").and_then(Value::as_str) {
                    Some("unchanged") => counts.unchanged += 1,
                    Some(_) | None => counts.stored += 1,
                }
                if let Some(before) = self.last.replace(sent) {
                    self.state.add(&before.id)?;
                }
            }
            // The job itself sent it, more than a day ago.
            Err(error) if error.code() == Some("run_closed") => {
                counts.unchanged += 1;
                self.state.add(id)?;
            }
            Err(error) if error.is_the_reports_fault() && error.code() != Some("invalid_parameter") => {
                counts.refused(&format!("{id}: {error}"))
            }
            Err(error) => return Err(self.interrupted(error)),
        }
        Ok(())
    }

    /// Lets the server judge the project once, without messages. Returns the project's name.
    pub(super) fn judge(mut self) -> anyhow::Result<String> {
        if let Some(last) = self.last.take() {
            self.upload(&last, "silent")?
                .map_err(|error| self.interrupted(error))?;
            self.state.add(&last.id)?;
        }
        Ok(self.project)
    }

    fn upload(&self, sent: &Sent, judgement: &str) -> anyhow::Result<Result<Value, UploadError>> {
        let mut fields = sent.fields.clone();
        fields.push(("judgement", judgement.to_owned()));
        let body = Body::new(&fields, &sent.files)?;
        let mut backoff = Backoff::new(self.retry_for);
        Ok(send_body(self.json, &self.server, &body, &mut backoff).map_err(|not_sent| not_sent.error))
    }

    fn interrupted(&self, error: UploadError) -> anyhow::Error {
        let stored = self.state.len();
        anyhow::Error::new(error).context(format!(
            "stopped after {stored} reports; the same command goes on from there, and stores nothing twice"
        ))
    }
}
