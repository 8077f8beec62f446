//! `assay run --gate --rerun --burn-in`: runs tests again in the same job, until the gate can decide.

mod flags;

use std::{
    collections::BTreeSet,
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use assay_cli_job::{
    gate::{
        burn_in::BurnIn,
        judged::JudgedRun,
        policy::{Decision, Rules},
        reruns::Session,
        selector::{CommandJob, Repeat, RunEnd, Selector},
    },
    runners::selection::{self, Selection},
};
use assay_cli_local::sources::{git, kept::KeptReports, written::Before};
use assay_cli_terminal::{message, progress::Progress};
use assay_domain::test::TestName;
use assay_reports::SourceFile;
use serde_json::Value;

pub(crate) use self::flags::RerunFlags;
use crate::{
    environment, errors,
    repeated::Repeated,
    sender::{Rerun, Sender},
};

/// A job whose command may run again.
pub(crate) struct Job<'a> {
    pub(crate) sender: Sender<'a>,
    pub(crate) rules: &'a Rules,
    pub(crate) flags: &'a RerunFlags,
    pub(crate) command: &'a [OsString],
    /// The reports that the command writes.
    pub(crate) report: &'a [PathBuf],
}

/// The run that was judged first.
pub(crate) struct FirstRun<'a> {
    pub(crate) judged: JudgedRun,
    pub(crate) files: &'a [SourceFile],
    pub(crate) answer: &'a Value,
    pub(crate) took: Duration,
}

/// Runs tests again where the decision needs it and the flags allow it. Returns the server's answer to the last part; none
/// if nothing was sent.
pub(crate) fn run_again(
    job: &Job<'_>,
    first: FirstRun<'_>,
    decision: &mut Decision,
    before: &Before<'_>,
) -> anyhow::Result<Option<Value>> {
    let (flags, command) = (job.flags, job.command);
    let budget = flags.budget().filter(|_| decision.may_run_again());
    if budget.is_none() && (flags.burn_in().is_none() || !decision.outcome.passes()) {
        return Ok(None);
    }
    let Some(runner) = flags.runner.or_else(|| selection::runner_of(command)) else {
        message!("no test runs again: the command names no runner that Assay knows; name it with --runner");
        return Ok(None);
    };
    if let Some(reason) = selection::unreachable(command, runner) {
        message!("no test runs again: {reason}");
        return Ok(None);
    }
    let folder = tempfile::tempdir().context("a temporary folder")?;
    let kept = KeptReports::keep(before.written()?, folder.path())?;
    let sender = job.sender;
    let of_report = &sender.flags.report;
    let repeated = Repeated {
        global: sender.global,
        command,
        report: job.report,
        format: of_report.format.0,
        root: of_report.root.as_deref(),
        ci: sender.ci,
        reports_to: sender.flags.report_to,
        folder: folder.path(),
        to_stderr: false,
        files: Vec::new(),
    };
    let report = repeated.read(first.files)?;
    let selector = Selector::new(runner, &report, folder.path().to_path_buf());
    let mut again = Again {
        sender,
        repeated,
        attempt: of_report.run.attempt.unwrap_or(1),
        answer: None,
    };
    let mut ended_early = Vec::new();
    if let Some(budget) = budget {
        let ended =
            Session::new(&selector, job.rules, first.judged.clone(), first.took, budget).run(&mut again);
        ended_early.extend(ended.error);
        if let Some(decided) = ended.found {
            *decision = decided;
        }
    }
    if let Some(budget) = flags.burn_in().filter(|_| decision.outcome.passes()) {
        let new = JudgedRun::new_tests(first.answer)?;
        let changed = changed_files(job);
        let burned = BurnIn::new(
            &selector,
            (&report, &first.judged),
            (&new, &changed),
            first.took,
            budget,
        )
        .run(&mut again);
        ended_early.extend(burned.error);
        if let Some(results) = burned.found {
            decision.add_burn_in(results);
        }
    }
    for error in ended_early {
        errors::print(&error.context("the tests do not run again"));
    }
    for (file, error) in kept.restore() {
        let error = anyhow::Error::new(error);
        errors::print(&error.context(format!("{} is the report of a rerun", file.display())));
    }
    Ok(again.answer)
}

/// The files of the change: those of --changed, else those that git names.
fn changed_files(job: &Job<'_>) -> BTreeSet<String> {
    if !job.rules.changed.is_empty() {
        return job.rules.changed.clone();
    }
    git::changed_files(Path::new("."), &environment::variable).unwrap_or_else(|error| {
        message!("only new tests run again, because the files of the change are not known: {error}");
        BTreeSet::new()
    })
}

/// The command of a job, which runs again.
struct Again<'a> {
    sender: Sender<'a>,
    repeated: Repeated<'a>,
    /// The attempt of the command, for the parts of the run.
    attempt: u32,
    /// The server's answer to the last part.
    answer: Option<Value>,
}

impl Repeat for Again<'_> {
    type Error = anyhow::Error;

    fn progress(&self) -> &dyn Progress {
        self.repeated.progress()
    }

    fn run(&mut self, selection: Selection, limit: Duration) -> anyhow::Result<RunEnd> {
        self.repeated.run(selection, limit)
    }
}

impl CommandJob for Again<'_> {
    fn send(&mut self, tests: &[TestName]) -> anyhow::Result<JudgedRun> {
        self.attempt = self.attempt.saturating_add(1);
        let rerun = Rerun {
            attempt: self.attempt,
            tests,
        };
        let answer = self.sender.send_rerun(&self.repeated.files, rerun)?;
        let judged = JudgedRun::of_answer(&answer)?;
        self.answer = Some(answer);
        Ok(judged)
    }
}
