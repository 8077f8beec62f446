//! `assay run --gate --rerun`: runs unclear failures again in the same job, until the gate can decide.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use assay_console::{message, output, values::duration};
use assay_domain::{attempt::AttemptStatus, decision::GateOutcome, test::TestName};
use assay_gate::{
    judged::JudgedRun,
    plan::reruns::{ProcessOf, RerunKind},
    policy::{self, CommandStatus, Decision},
    reruns::{Bounds, Durations, Reruns, Round},
};
use assay_reports::{Report, SourceFile};
use assay_runners::{
    Runner,
    selection::{self, Selected, Selection},
};
use assay_sources::{checkout::Checkout, written::Before};
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
    let report = read(job, first.files)?;
    let durations = durations(&report);
    let can_run = |test: &TestName, kind: RerunKind| can_run(runner, test, kind, &durations, folder.path());
    let mut session = Session {
        job,
        runner,
        folder: folder.path(),
        startup_s: (first.took.as_secs_f64() - durations.total_s()).max(0.0),
        reruns: Reruns::new(first.judged, &durations, process_of(runner), file_of, can_run),
        durations,
        attempt: job.args.flags.report.run.attempt.unwrap_or(1),
        started: Instant::now(),
        budget,
        answer: None,
    };
    let decision = session.run(first.status);
    kept.restore();
    let answer = session.answer.take();
    Ok(answer.map(|answer| Reran { decision, answer }))
}

/// The reruns of one job.
struct Session<'a> {
    job: &'a Job<'a>,
    runner: Runner,
    folder: &'a Path,
    startup_s: f64,
    reruns: Reruns,
    durations: Durations,
    /// The attempt of the command, for the parts of the run.
    attempt: u32,
    started: Instant,
    budget: Duration,
    answer: Option<Value>,
}

impl Session<'_> {
    /// Runs rounds until the gate can decide.
    fn run(&mut self, status: CommandStatus) -> Decision {
        loop {
            let bounds = self.bounds();
            let rounds = self.reruns.next(bounds);
            let is_over = rounds.is_empty();
            for round in rounds {
                if let Err(error) = self.run_round(&round) {
                    errors::print(&error.context("the tests do not run again"));
                    return self.decision(status);
                }
            }
            let mut decision = self.decision(status);
            if decision.outcome != GateOutcome::Rerun {
                return decision;
            }
            if is_over {
                if decision.reran.is_some() && !self.reruns.may_decide(bounds) {
                    decision.outcome = GateOutcome::Blocked;
                    decision
                        .problems
                        .push("No further rerun could tell whether this change broke the tests".to_owned());
                } else if self.answer.is_none() {
                    message!(
                        "no test runs again: a rerun that decides takes longer than --rerun {} s, or the tests cannot be selected",
                        self.budget.as_secs()
                    );
                }
                return decision;
            }
        }
    }

    fn bounds(&self) -> Bounds {
        Bounds {
            left_s: (self.budget.as_secs_f64() - self.started.elapsed().as_secs_f64()).max(0.0),
            startup_s: self.startup_s,
            risk: self.job.rules.risk,
        }
    }

    fn decision(&self, status: CommandStatus) -> Decision {
        let mut decision = policy::decide(&self.reruns.judged(), self.job.rules, Some(status));
        decision.reran = self.reruns.summary(self.started.elapsed().as_secs_f64());
        decision
    }

    /// Runs the tests of a round once, and sends their results.
    fn run_round(&mut self, round: &Round) -> anyhow::Result<()> {
        let args = self.job.args;
        let selection = select(
            self.runner,
            &round.tests,
            round.kind,
            &self.durations,
            self.folder,
        )
        .map_err(|(test, reason)| anyhow::anyhow!("{}: {reason}", assay_reports::shown_name(&test.name)))?;
        let with = match round.kind {
            RerunKind::Alone => "alone",
            RerunKind::WithFile => "with the tests of its file",
        };
        let count = u64::try_from(round.tests.len()).unwrap_or(u64::MAX);
        message!("running {} again, {with}", output::count(count, "failed test"));
        let before = Before::of(&args.report)?;
        let Selection {
            arguments,
            variables,
            file,
        } = selection;
        if let Some((name, text)) = file {
            fs::write(self.folder.join(name), text).context("the list of tests")?;
        }
        let variables: Vec<(&str, OsString)> = variables
            .iter()
            .map(|variable| {
                let earlier = environment::variable(variable.name).filter(|value| !value.is_empty());
                let value = match earlier {
                    Some(earlier) => format!("{earlier}{}{}", variable.separator, variable.value),
                    None => variable.value.clone(),
                };
                (variable.name, value.into())
            })
            .collect();
        let command = selection::with_arguments(&args.command, &arguments);
        match run_command(&command, &variables, args.flags.report_to)? {
            CommandEnd::With(_) => {}
            CommandEnd::NotRun(_) => anyhow::bail!("the command cannot be run"),
        }
        let files = before.read_written(self.job.global.json, args.flags.report.format.0)?;
        let report = read(self.job, &files)?;
        let failed: HashMap<&TestName, bool> = report
            .tests
            .iter()
            .filter_map(|test| {
                let outcome = test.outcome()?;
                let failed = outcome.status != AttemptStatus::Passed;
                (!outcome.status.is_skip()).then_some((&test.test, failed))
            })
            .collect();
        let passed_before = self.reruns.passed();
        let ran = self.reruns.record(round, |test| failed.get(test).copied());
        // A pass that repeats an earlier one is no independent run, so that it counts in this decision only.
        let new: Vec<TestName> = ran
            .into_iter()
            .filter(|test| failed.get(test) == Some(&true) || !passed_before.contains(test))
            .collect();
        if new.is_empty() {
            self.reruns.judge_again(None);
            return Ok(());
        }
        self.attempt = self.attempt.saturating_add(1);
        let rerun = upload::Rerun {
            attempt: self.attempt,
            tests: &new,
        };
        let job = self.job;
        let answer = upload::send_rerun(job.global, &args.flags, job.server, job.ci, &files, rerun)?;
        self.reruns.judge_again(Some(&JudgedRun::of_answer(&answer)?));
        self.answer = Some(answer);
        Ok(())
    }
}

/// The reports of the first run, which the reruns overwrite.
struct KeptReports {
    /// Each file with its copy.
    copies: Vec<(PathBuf, PathBuf)>,
}

impl KeptReports {
    fn keep(files: Vec<PathBuf>, folder: &Path) -> anyhow::Result<Self> {
        let mut copies = Vec::with_capacity(files.len());
        for (number, file) in files.into_iter().enumerate() {
            let copy = folder.join(format!("report-{number}"));
            fs::copy(&file, &copy).with_context(|| file.display().to_string())?;
            copies.push((file, copy));
        }
        Ok(Self { copies })
    }

    /// Puts the reports back. A failure is printed, because the decision stands.
    fn restore(self) {
        for (file, copy) in self.copies {
            if let Err(error) = fs::copy(&copy, &file) {
                errors::print(
                    &anyhow::Error::new(error)
                        .context(format!("{} is the report of a rerun", file.display())),
                );
            }
        }
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

fn durations(report: &Report) -> Durations {
    let tests = report.tests.iter().map(|test| {
        let milliseconds = test.attempts.iter().filter_map(|attempt| attempt.duration_ms);
        (&test.test, milliseconds.sum::<u64>())
    });
    Durations::new(tests, file_of)
}

/// What a rerun with its file runs: the file, else the class or package.
fn file_of(test: &TestName) -> Option<String> {
    let class = || test.name.split_once(" > ").map(|(class, _)| class.to_owned());
    test.file_path.clone().or_else(class)
}

const fn process_of(runner: Runner) -> ProcessOf {
    match runner {
        Runner::Nextest => ProcessOf::Test,
        Runner::Playwright | Runner::Jest | Runner::Vitest | Runner::Go => ProcessOf::File,
        Runner::Pytest | Runner::Surefire | Runner::Dotnet | Runner::Txt | Runner::Json => ProcessOf::Suite,
    }
}

fn can_run(runner: Runner, test: &TestName, kind: RerunKind, durations: &Durations, folder: &Path) -> bool {
    let is_of_runner = match kind {
        RerunKind::Alone => true,
        RerunKind::WithFile => selection::by_file(runner) || runner == Runner::Go,
    };
    is_of_runner && select(runner, std::slice::from_ref(test), kind, durations, folder).is_ok()
}

/// The selection of tests, alone or with their files.
fn select(
    runner: Runner,
    tests: &[TestName],
    kind: RerunKind,
    durations: &Durations,
    folder: &Path,
) -> Result<Selection, (TestName, &'static str)> {
    match (kind, runner) {
        (RerunKind::Alone, _) => selection::select(runner, tests, Selected::Alone, folder),
        // Go selects by names, so that all tests of the package are named. Subtests run with their test.
        (RerunKind::WithFile, Runner::Go) => {
            let packages: std::collections::BTreeSet<String> = tests.iter().filter_map(file_of).collect();
            let of_packages = packages.iter().flat_map(|package| durations.tests_of(package));
            let whole: Vec<TestName> = of_packages
                .filter(|test| !test.name.contains('/'))
                .cloned()
                .collect();
            selection::select(runner, &whole, Selected::Alone, folder)
        }
        (RerunKind::WithFile, _) => selection::select(runner, tests, Selected::WithFile, folder),
    }
}
