//! The test command of a job, which runs again with a selection of its tests.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::Context as _;
use assay_cli_job::{
    gate::selector::{Repeat, RunEnd},
    runners::selection::{self, Selection},
};
use assay_cli_local::sources::{checkout::Checkout, written::Before};
use assay_cli_remote::{codehost::ReportTo, server::body::path_below};
use assay_cli_terminal::progress::Progress;
use assay_ingest::ci::CiContext;
use assay_reports::{Format, Report, SourceFile};

use crate::{
    environment,
    forwarding::{Ended, Place},
    global::Global,
    test_command::{CommandEnd, code_of, run_command},
};

/// A command that runs again, with its reports.
pub(crate) struct Repeated<'a> {
    pub(crate) global: &'a Global,
    pub(crate) command: &'a [OsString],
    /// The reports that the command writes.
    pub(crate) report: &'a [PathBuf],
    pub(crate) format: Option<Format>,
    pub(crate) root: Option<&'a Path>,
    pub(crate) ci: &'a CiContext,
    pub(crate) reports_to: ReportTo,
    /// The folder of files that selections read.
    pub(crate) folder: &'a Path,
    /// Whether standard output is this program's own.
    pub(crate) to_stderr: bool,
    /// The reports of the last run.
    pub(crate) files: Vec<SourceFile>,
}

impl Repeated<'_> {
    /// Reads reports as the server does.
    pub(crate) fn read(&self, files: &[SourceFile]) -> anyhow::Result<Report> {
        let checkout = Checkout::of(self.root, self.ci)?;
        let in_checkout = |file: &SourceFile| {
            let name = checkout
                .folder()
                .and_then(|folder| path_below(folder, &file.name));
            SourceFile {
                name: name.unwrap_or_else(|| file.name.clone()),
                ..file.clone()
            }
        };
        let files: Vec<SourceFile> = files.iter().map(in_checkout).collect();
        Ok(assay_reports::read(files, &checkout.options(self.format, None))?)
    }
}

impl Repeat for Repeated<'_> {
    type Error = anyhow::Error;

    fn progress(&self) -> &dyn Progress {
        self.global.progress()
    }

    fn run(&mut self, selection: Selection, limit: Duration) -> anyhow::Result<RunEnd> {
        let before = Before::of(self.report)?;
        let is_unchanged = selection == Selection::default();
        if let Some((name, text)) = selection.file {
            fs::write(self.folder.join(name), text).context("the list of tests")?;
        }
        let variables = selection.variables.iter();
        let variables: Vec<(&str, OsString)> = variables
            .map(|variable| {
                let value = variable.after(environment::variable(variable.name));
                (variable.name, value.into())
            })
            .collect();
        let command = selection::with_arguments(self.command, &selection.arguments);
        let stdout = match self.to_stderr {
            true => std::io::stderr().into(),
            false => Stdio::inherit(),
        };
        let place = Place::Group(Some(limit));
        let status = match run_command(&command, &variables, self.reports_to, stdout, place)? {
            CommandEnd::With(Ended {
                signal: Some(signal), ..
            }) => anyhow::bail!("the command was ended by signal {signal}"),
            CommandEnd::With(Ended { timed_out: true, .. }) => return Ok(RunEnd::TimedOut),
            CommandEnd::With(Ended { status, .. }) => code_of(status),
            CommandEnd::NotRun(_) => anyhow::bail!("the command cannot be run"),
        };
        if before.written()?.is_empty() {
            return Ok(RunEnd::Unreported);
        }
        self.files = before.read_written(self.progress(), self.format)?;
        if is_unchanged {
            self.files.extend(before.missing());
        }
        Ok(RunEnd::Reported(Box::new(self.read(&self.files)?), status))
    }
}
