//! Sends the reports of old runs to a server.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{Read as _, Write as _},
    path::Path,
};

use anyhow::{Context as _, ensure};
use assay_cli_remote::{
    history::{JobReport, PastReport},
    server::{
        address::MissingSetting,
        body::{Body, Fields},
        ingest::{Server, UploadError},
        sending::send_body,
    },
};
use assay_cli_terminal::{misuse::Misuse, progress::Progress, retry::Backoff};
use assay_ingest::UploadField;
use assay_reports::SourceFile;
use clap::Args;
use serde_json::Value;

use super::counts::Counts;
use crate::{global::Global, upload_flags::IngestFlags};

/// The folder with the list of what was sent.
const STATE: &str = ".assay/backfill";

/// The flags of the server.
#[derive(Debug, Args)]
pub(super) struct ServerTarget {
    #[command(flatten)]
    pub(super) ingest: IngestFlags,
    /// The project that the key must belong to: its id or name
    #[arg(long, help_heading = "The server")]
    project: Option<String>,
}

/// Sends the reports of a history to one project. A file has a line for each report that is stored, so that a backfill that
/// was interrupted goes on where it stopped.
pub(super) struct Sender<'a> {
    progress: &'static dyn Progress,
    flags: &'a ServerTarget,
    server: Server,
    project: String,
    state: File,
    /// The beginning of the lines of this history in this project.
    prefix: String,
    stored: BTreeSet<String>,
    /// The report that was stored last. The state lacks it until the project is judged, so that a repetition after a kill
    /// judges.
    last: Option<Sent>,
}

struct Sent {
    id: String,
    fields: Fields,
    files: Vec<SourceFile>,
}

impl<'a> Sender<'a> {
    /// Asks the server whether the key may send old runs, and reads what was sent already.
    pub(super) fn of(global: &Global, flags: &'a ServerTarget, source: &str) -> anyhow::Result<Self> {
        let server = flags.ingest.server().map_err(|error| match error.downcast::<MissingSetting>() {
            Ok(missing) => anyhow::Error::new(Misuse(format!(
                "{missing}. Set both, with a key of `assay-admin key create-ingest --project P --backfill`; or judge here \
                 with --analyze PAGE.html"
            ))),
            Err(error) => error,
        })?;
        let key = server.key().map_err(anyhow::Error::new)?;
        ensure!(
            key.get("backfill") == Some(&Value::Bool(true)),
            "the key may not send runs of more than 7 days ago; `assay-admin key create-ingest --project P --backfill \
             --days 7` makes one that may"
        );
        let of_key = |place: &str| key.pointer(place).and_then(Value::as_str);
        let named = of_key("/project/id").zip(of_key("/project/name"));
        let (id, project) = named.context("the server names no project")?;
        fs::create_dir_all(STATE).context(STATE)?;
        let mut options = File::options();
        let state = options.read(true).append(true).create(true);
        let mut state = state.open(Path::new(STATE).join("sent")).context(STATE)?;
        let mut text = String::new();
        state.read_to_string(&mut text).context(STATE)?;
        let prefix = format!("{source} in {id}: ");
        // A full disk may have cut the last line.
        if !text.is_empty() && !text.ends_with('\n') {
            writeln!(state).context(STATE)?;
        }
        let lines = text.split_inclusive('\n');
        let ids = lines.filter_map(|line| line.strip_suffix('\n')?.strip_prefix(&prefix));
        Ok(Self {
            progress: global.progress(),
            flags,
            server,
            project: project.to_owned(),
            state,
            stored: ids.map(str::to_owned).collect(),
            prefix,
            last: None,
        })
    }

    /// Whether a report is stored already.
    pub(super) fn has(&self, id: &str) -> bool {
        self.stored.contains(id)
    }

    fn remember(&mut self, id: String) -> anyhow::Result<()> {
        let written = self.state.write_all(format!("{}{id}\n", self.prefix).as_bytes());
        self.stored.insert(id);
        written.context("the state cannot be written")
    }

    /// Sends the report of a job. A later one judges.
    pub(super) fn send(
        &mut self,
        past: &PastReport,
        report: &mut JobReport,
        counts: &mut Counts,
    ) -> anyhow::Result<()> {
        // The machines of CI services are at UTC, so there is no offset.
        let mut fields = report.fields.clone();
        fields.add(UploadField::Project, self.flags.project.as_ref());
        let (id, files) = (past.id.clone(), std::mem::take(&mut report.files));
        let sent = Sent { id, fields, files };
        match self.upload(&sent, "later")? {
            Ok(answer) => {
                let is_known = answer.get("effect").and_then(Value::as_str) == Some("unchanged");
                counts.unchanged += u64::from(is_known);
                counts.stored += u64::from(!is_known);
                if let Some(before) = self.last.replace(sent) {
                    self.remember(before.id)?;
                }
            }
            // The job itself sent it, more than a day ago.
            Err(error) if error.code() == "run_closed" => {
                counts.unchanged += 1;
                self.remember(past.id.clone())?;
            }
            Err(error) if error.is_the_reports_fault() && error.code() != "invalid_parameter" => {
                counts.refused += 1;
                counts.note(&format!("{}: {error}", past.id));
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
            self.remember(last.id)?;
        }
        Ok(self.project)
    }

    fn upload(&self, sent: &Sent, judgement: &str) -> anyhow::Result<Result<Value, UploadError>> {
        let mut fields = sent.fields.clone();
        fields.add(UploadField::Judgement, Some(judgement));
        let body = Body::new(&fields.0, &sent.files, None)?;
        let mut backoff = Backoff::new(self.flags.ingest.connection.retry_for);
        Ok(send_body(self.progress, &self.server, &body, &mut backoff).map_err(|not_sent| not_sent.error))
    }

    fn interrupted(&self, error: UploadError) -> anyhow::Error {
        let stored = self.stored.len();
        anyhow::Error::new(error).context(format!(
            "stopped after {stored} reports; the same command goes on from there, and stores nothing twice"
        ))
    }
}
