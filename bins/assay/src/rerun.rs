//! `assay run --gate --rerun`: runs unclear failures again in the same job, until the gate can decide.

use std::{ffi::OsString, fs, path::Path, time::Duration};

use anyhow::Context as _;
use assay_console::{message, values::duration};
use assay_domain::test::TestName;
use assay_gate::{
    judged::JudgedRun,
    policy::{CommandStatus, Decision},
    reruns::Session,
    selector::{CommandJob, Selector},
};
use assay_reports::{Report, SourceFile};
use assay_runners::{
    Runner,
    selection::{self, Selection},
};
use assay_sources::{checkout::Checkout, kept::KeptReports, written::Before};
use clap::Args;
use serde_json::Value;

use crate::{
    clock,
    commands::{
        run::{CommandEnd, Job, run_command},
        upload,
    },
    environment, errors, runner_flag,
};

/// Heading of the help.
const GATE: &str = "The gate";

/// How failed tests run again.
#[derive(Debug, Args)]
pub(crate) struct RerunFlags {
    /// Run tests again whose failure is unclear, for at most this time, and decide then: 90s, 5m
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "gate", help_heading = GATE)]
    rerun: Option<Duration>,
    /// The runner of the command, if its words do not name it
    #[arg(long, value_name = "RUNNER", value_parser = runner_flag::runners(), requires = "rerun", help_heading = GATE)]
    runner: Option<Runner>,
}

impl RerunFlags {
    /// The time for reruns; none without reruns.
    pub(crate) fn budget(&self) -> Option<Duration> {
        self.rerun.filter(|budget| !budget.is_zero())
    }
}

/// A run key for a run that CI does not name.
pub(crate) fn run_key() -> String {
    format!("rerun-{}-{}", clock::now().unix_ms(), std::process::id())
}

/// The run that was judged first.
pub(crate) struct FirstRun<'a> {
    pub(crate) judged: JudgedRun,
    pub(crate) files: &'a [SourceFile],
    pub(crate) status: CommandStatus,
    pub(crate) took: Duration,
}

/// The decision after reruns.
pub(crate) struct Reran {
    pub(crate) decision: Decision,
    /// The server's answer to the last rerun.
    pub(crate) answer: Value,
}

/// Runs tests again until the gate can decide or the time is over. None if no test ran again; the reason is printed.
pub(crate) fn until_decided(
    job: &Job<'_>,
    first: FirstRun<'_>,
    budget: Duration,
    before: &Before<'_>,
) -> anyhow::Result<Option<Reran>> {
    let command = &job.args.command;
    let named = job.args.reruns.runner;
    let Some(runner) = named.or_else(|| selection::runner_of(command)) else {
        message!("no test runs again: the command names no runner that Assay knows; name it with --runner");
        return Ok(None);
    };
    if let Some(reason) = selection::unreachable(command, runner) {
        message!("no test runs again: {reason}");
        return Ok(None);
    }
    let folder = tempfile::tempdir().context("a temporary folder")?;
    let kept = KeptReports::keep(before.written()?, folder.path())?;
    let selector = Selector::new(runner, &read(job, first.files)?, folder.path().to_path_buf());
    let end = (first.status, first.took);
    let mut again = Again {
        job,
        folder: folder.path(),
        attempt: job.args.flags.report.run.attempt.unwrap_or(1),
        files: Vec::new(),
        answer: None,
    };
    let ended = Session::new(&selector, job.rules, first.judged, end, budget).run(&mut again);
    if let Some(error) = ended.error {
        errors::print(&error.context("the tests do not run again"));
    }
    for (file, error) in kept.restore() {
        let error = anyhow::Error::new(error);
        errors::print(&error.context(format!("{} is the report of a rerun", file.display())));
    }
    Ok(ended
        .decision
        .zip(again.answer)
        .map(|(decision, answer)| Reran { decision, answer }))
}

/// The command of a job, which runs again.
struct Again<'a> {
    job: &'a Job<'a>,
    /// The folder of files that selections read.
    folder: &'a Path,
    /// The attempt of the command, for the parts of the run.
    attempt: u32,
    /// The reports of the last run.
    files: Vec<SourceFile>,
    /// The server's answer to the last part.
    answer: Option<Value>,
}

impl CommandJob for Again<'_> {
    type Error = anyhow::Error;

    fn run(&mut self, selection: Selection) -> anyhow::Result<Report> {
        let args = self.job.args;
        let before = Before::of(&args.report)?;
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
        let command = selection::with_arguments(&args.command, &selection.arguments);
        match run_command(&command, &variables, args.flags.report_to)? {
            CommandEnd::With(_) => {}
            CommandEnd::NotRun(_) => anyhow::bail!("the command cannot be run"),
        }
        self.files = before.read_written(self.job.global.json, args.flags.report.format.0)?;
        read(self.job, &self.files)
    }

    fn send(&mut self, tests: &[TestName]) -> anyhow::Result<JudgedRun> {
        let job = self.job;
        self.attempt = self.attempt.saturating_add(1);
        let rerun = upload::Rerun {
            attempt: self.attempt,
            tests,
        };
        let answer = upload::send_rerun(
            job.global,
            &job.args.flags,
            job.server,
            job.ci,
            &self.files,
            rerun,
        )?;
        let judged = JudgedRun::of_answer(&answer)?;
        self.answer = Some(answer);
        Ok(judged)
    }
}

/// Reads reports as the server does.
fn read(job: &Job<'_>, files: &[SourceFile]) -> anyhow::Result<Report> {
    let flags = &job.args.flags.report;
    let checkout = Checkout::of(flags.root.as_deref(), job.ci)?;
    Ok(assay_reports::read(
        files,
        &checkout.options(flags.format.0, None),
    )?)
}
