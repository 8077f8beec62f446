//! Sends the reports of a job to a server.

use std::path::Path;

use anyhow::Context as _;
use assay_cli_local::sources::{checkout::Checkout, clocks, git, owners, renames, report_flags::ReportFlags};
use assay_cli_remote::server::{
    answer,
    body::{Body, Field, Fields},
    ingest::Server,
    sending::{send_body, send_waiting},
    spool::Spool,
};
use assay_cli_terminal::{message, output, retry::Backoff};
use assay_domain::test::TestName;
use assay_ingest::{Flags, UploadField, ci::CiContext, values::utc_offset_text};
use assay_reports::SourceFile;
use serde_json::{Value, json};

use crate::{clock, environment, global::Global, upload_flags::UploadFlags};

/// A job that sends reports, with what CI says about it.
#[derive(Clone, Copy)]
pub(crate) struct Sender<'a> {
    pub(crate) global: &'a Global,
    pub(crate) flags: &'a UploadFlags,
    pub(crate) server: &'a Server,
    pub(crate) ci: &'a CiContext,
}

/// The purpose of a request.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Purpose<'a> {
    /// Nothing is stored.
    pub(crate) dry_run: bool,
    /// The answer explains the failures.
    pub(crate) failures: bool,
    /// The exit status of the command that wrote the reports.
    pub(crate) command_status: Option<u8>,
    /// Only these tests of the report are stored.
    pub(crate) rerun: Option<Rerun<'a>>,
}

/// A rerun of some tests, whose results continue those of the first report.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rerun<'a> {
    /// The attempt of the command within its job.
    pub(crate) attempt: u32,
    /// The tests.
    pub(crate) tests: &'a [TestName],
}

impl Sender<'_> {
    /// Sends the entries of the spool, then the files. Files that cannot be sent now are added to the spool. With
    /// `failures`, the answer explains the report's failures. `command_status` is that of the command that wrote them.
    pub(crate) fn send_or_spool(
        &self,
        files: &[SourceFile],
        failures: bool,
        command_status: Option<u8>,
    ) -> anyhow::Result<Value> {
        let Self {
            global,
            flags,
            server,
            ..
        } = *self;
        let purpose = Purpose {
            dry_run: flags.dry_run,
            failures,
            command_status,
            rerun: None,
        };
        let (_, body) = self.request(files, purpose)?;
        let spool = flags.spool.as_deref().map(Spool::open).transpose();
        let spool = spool.context("nothing was stored")?;
        let mut backoff = Backoff::new(flags.ingest.connection.retry_for);
        let spool = spool.filter(|_| !flags.dry_run);
        if let Some(spool) = &spool {
            // The spool's failures are not this report's.
            if let Err(problem) = send_waiting(global.progress(), server, spool, false, &mut backoff) {
                message!("warning: the spool's uploads are not sent: {problem:#}");
            }
        }
        let answer = match send_body(global.progress(), server, &body, &mut backoff) {
            Ok(answer) => answer,
            Err(not_sent) => {
                let spooled = spool.filter(|_| not_sent.error.is_worth_spooling()).map(|spool| {
                    (
                        spool.add(&body, &server.key_identifier(), clock::now()),
                        spool.name(),
                    )
                });
                return Err(not_sent.with_context(flags.dry_run, spooled));
            }
        };
        output::print_warnings(&answer::warnings(&answer));
        Ok(answer)
    }

    /// Describes the answer to an upload.
    pub(crate) fn in_words(&self, answer: &Value) -> String {
        match self.flags.dry_run {
            true => answer::of_dry_run(answer),
            false => answer::in_words(answer),
        }
    }

    /// Asks the server why the tests of a report failed. Nothing is stored.
    pub(crate) fn explain(&self, files: &[SourceFile]) -> anyhow::Result<Value> {
        let answer = self.ask(
            files,
            Purpose {
                dry_run: true,
                failures: true,
                command_status: None,
                rerun: None,
            },
        )?;
        output::print_warnings(&answer::warnings(&answer));
        Ok(answer)
    }

    /// Stores a rerun as a part of the run of its first report. The answer explains the failures.
    pub(crate) fn send_rerun(&self, files: &[SourceFile], rerun: Rerun<'_>) -> anyhow::Result<Value> {
        self.ask(
            files,
            Purpose {
                dry_run: false,
                failures: true,
                command_status: None,
                rerun: Some(rerun),
            },
        )
    }

    /// Sends reports and returns the answer. Nothing is spooled.
    fn ask(&self, files: &[SourceFile], purpose: Purpose<'_>) -> anyhow::Result<Value> {
        let (_, body) = self.request(files, purpose)?;
        let mut backoff = Backoff::new(self.flags.ingest.connection.retry_for);
        let sent = send_body(self.global.progress(), self.server, &body, &mut backoff);
        Ok(sent.map_err(|not_sent| not_sent.error)?)
    }

    /// The fields of a request and its body. Prints warnings.
    pub(crate) fn request(
        &self,
        files: &[SourceFile],
        purpose: Purpose<'_>,
    ) -> anyhow::Result<(Vec<Field>, Body)> {
        let Self { flags, ci, .. } = *self;
        let ReportFlags {
            format, root, run, ..
        } = &flags.report;
        let checkout = Checkout::of(root.as_deref(), ci)?;
        let is_of_pull_request = run.pr.or(ci.context.pull_request_number).is_some();
        let folder = checkout.folder().unwrap_or(Path::new("."));
        let ((owners, mut warnings), (renames, of_renames)) =
            match purpose.dry_run || purpose.rerun.is_some() || is_of_pull_request {
                true => Default::default(),
                // The server takes them from runs of the stable branch only.
                false => (owners::owners(folder)?, renames::renames(folder)?),
            };
        warnings.extend(of_renames);
        let mut of_run = Flags::from(run);
        match purpose.rerun {
            None => {
                let known = [&of_run.context, &ci.context];
                of_run.context.merge_base = git::merge_base(folder, &environment::variable, known);
            }
            Some(rerun) => {
                of_run.attempt = Some(rerun.attempt);
                // It is that of the first report, as the merge base is.
                of_run.replace = false;
            }
        }
        let mut fields = Fields::of(&of_run, ci);
        fields.add(UploadField::Project, flags.project.as_ref());
        fields.add(UploadField::Format, format.0);
        // Without the flag the server takes it from CI's variables.
        fields.add(UploadField::Root, root.as_ref().and_then(|_| checkout.root()));
        warnings.extend(fields.add_known_files(checkout.file_names(format.0, files)));
        fields.add(UploadField::Rerun, purpose.rerun.map(|rerun| json!(rerun.tests)));
        if let Some(owners) = owners {
            let given = |text: String| Some(text).filter(|text| !text.is_empty());
            fields.add(UploadField::Owners, Some(owners.text));
            fields.add(UploadField::OwnersPath, given(owners.path));
            fields.add(UploadField::OwnersFiles, given(owners.files));
        }
        fields.add(UploadField::Renames, renames.map(|renames| renames.text));
        fields.switch(UploadField::RetriesAsAttempts, flags.report.retries_as_attempts);
        fields.switch(UploadField::SkipCached, flags.skip_cached);
        fields.add(UploadField::CommandStatus, purpose.command_status);
        fields.switch(UploadField::DryRun, purpose.dry_run);
        fields.switch(UploadField::Failures, purpose.failures);
        let offset = clocks::utc_offset_minutes();
        fields.add(UploadField::UtcOffset, offset.map(utc_offset_text));
        output::print_warnings(&warnings);
        let body = Body::new(&fields.0, files, checkout.folder())?;
        Ok((fields.0, body))
    }
}
