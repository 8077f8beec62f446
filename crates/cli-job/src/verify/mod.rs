//! Whether a flaky test is fixed: repetitions until its rate is known to be low, it fails, or the time is over.

mod known;
mod show;

use std::time::Duration;

use assay_cli_terminal::terminal;
use assay_domain::{
    attempt::{AttemptStatus, ErrorDetail},
    fix::{FixCheck, FixOutcome, RunMode},
    signature::{Classifier as _, ErrorClass},
    test::TestName,
};
use assay_fingerprint::Fingerprinter;
use assay_flakiness::plan::{
    fix::{CleanRuns, bound},
    reruns::RerunKind,
};
use assay_reports::{Report, ReportedTest};

pub use self::known::{ForeignAnswer, KnownFlake};
use crate::{
    gate::selector::{Budget, NotSelected, Repeat, RunEnd, Selector, file_of},
    runners::{Runner, selection::Selection},
};

/// A pass is long if it takes more than this many times as long as usual, and some milliseconds.
const LONGER: u64 = 2;
/// The milliseconds if half of the passes are long, as by a pause.
const PAUSE_MS: u64 = 100;
/// The milliseconds if [`LATE`] are long, as by a longer time-out.
const TIME_OUT_MS: u64 = 1_000;
/// Long passes as a part of the rate before: about .6 of it if each is a former failure.
const LATE: f64 = 0.25;

/// Longest text of an error, in characters.
const LONGEST_MESSAGE: usize = 500;
const SKIPPED: &str = "the test was skipped, and a test that does not run is not fixed";
const NO_DURATIONS: &str = "its duration before or now is unknown, so a longer time-out or a pause would not be seen; look at the change";
const HIDES_RETRIES: &str = "this report writes a pass on retry like any other pass; use one that shows retries, such as the runner's JSON \
                             (docs/formats.md#retries)";
const ALONE: &str = "the command ran no other test, so it was no run in its suite; run the whole suite";
const CACHED: &str =
    "the results are from a cache, so the tests did not run; turn the cache off, in Go by -count=1";
/// So many equal reports in a row, with each duration, are copies of one.
const COPIES: u32 = 20;
/// From this number of failures without a pass on, an earlier run may have left their cause.
const EACH_RUN: u32 = 5;
const NO_RESULT: &str = "a repetition has no result of the test: the runner did not find it, or crashed";

/// What verify was asked to do.
#[derive(Debug, Clone)]
pub struct Plan<'a> {
    /// The test, by its stored name.
    pub test: &'a TestName,
    /// What is known of it.
    pub known: &'a KnownFlake,
    /// With which tests it runs; none for those with which it is known to fail.
    pub mode: Option<RunMode>,
    /// The time for all runs.
    pub budget: Duration,
    /// The runner, for modes that need its selection.
    pub runner: Option<Runner>,
}

impl Plan<'_> {
    fn mode(&self) -> RunMode {
        self.mode.unwrap_or(self.known.mode)
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum NotVerified<E> {
    /// The command cannot be run, or its report cannot be read.
    #[error(transparent)]
    Command(E),
    /// The command wrote no report.
    #[error("the command wrote no report; name the reports that it writes by --report")]
    NoReport,
    /// The report lacks the test.
    #[error(
        "the report of the command has no test {0:?}; check its stored name and --file, and whether it still exists"
    )]
    NoTest(String),
    /// The mode needs a runner.
    #[error("--mode {0} needs the selection of a runner, and the command names none; name it with --runner")]
    NoRunner(&'static str),
}

/// The answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Verified {
    /// The test.
    pub test: TestName,
    /// The figures. The mode of a failure is the one that a fix needs.
    pub check: FixCheck,
    /// With which tests it ran.
    pub ran: RunMode,
    /// The rate before.
    pub rate_before: f64,
    /// The rate that is low enough.
    pub bound: f64,
    /// The clean builds that would prove it as well.
    pub builds_needed: u32,
    /// The failure.
    pub failure: Option<Failure>,
    /// The titles of the errors before.
    pub errors_before: Vec<String>,
    /// What limits the answer, one sentence each.
    pub remarks: Vec<String>,
}

/// The failure that ended the repetitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Its fingerprint; none without a text.
    pub fingerprint: Option<String>,
    /// One line.
    pub title: String,
    /// The beginning of its message.
    pub message: String,
}

/// One run of the test.
#[derive(Debug)]
enum Result {
    /// Every execution of it passed at once; with the duration of the last one.
    Passed {
        executions: u32,
        ms: Option<u64>,
    },
    Failed(Failure),
    Skipped,
    /// It passed in a run that proves nothing, for this reason.
    PassedInVain(String),
}

/// Repeats a test by the job's command. The first run is that of the whole command.
pub fn verify<J: Repeat>(
    plan: &Plan<'_>,
    job: &mut J,
    selector: impl FnOnce(Runner, &Report) -> Selector,
) -> std::result::Result<Verified, NotVerified<J::Error>> {
    let mut session = Session::new(plan);
    if let Some(obstacle) = &plan.known.obstacle {
        return Ok(session.not_provable(obstacle));
    }
    let Some(end) = session.run(job, Selection::default())? else {
        return Ok(session.not_provable("the budget ended before the first run of the command did"));
    };
    session.add(&end, session.mode == RunMode::InSuite);
    let report = match end {
        RunEnd::Reported(report, _) if session.last.is_some() => report,
        RunEnd::Reported(..) => return Err(NotVerified::NoTest(plan.test.name.clone())),
        RunEnd::Unreported | RunEnd::TimedOut => return Err(NotVerified::NoReport),
    };
    if let Some(verified) = session.verified() {
        return Ok(verified);
    }
    let selector = match (session.mode, plan.runner) {
        (RunMode::InSuite, _) => None,
        (_, None) if session.failed > 0 => return Ok(session.ended()),
        (mode, None) => return Err(NotVerified::NoRunner(mode.as_str())),
        (_, Some(runner)) => Some(selector(runner, &report)),
    };
    let selection = match session.selection(selector.as_ref()) {
        Ok(selection) => selection,
        Err(refused) => return Ok(session.not_provable(&format!("the runner cannot select {refused}"))),
    };
    job.progress().note(&session.plan_in_words());
    loop {
        let Some(end) = session.run(job, selection.clone())? else {
            return Ok(session.ended());
        };
        session.add(&end, true);
        if let Some(verified) = session.verified() {
            return Ok(verified);
        }
    }
}

/// The repetitions so far.
struct Session<'a> {
    plan: &'a Plan<'a>,
    mode: RunMode,
    bound: f64,
    budget: Budget,
    /// Clean runs in this mode.
    runs: u32,
    /// Failed ones.
    failed: u32,
    last: Option<Result>,
    /// The seconds of the longest run in this mode; none before the first.
    longest_s: Option<f64>,
    durations: Vec<u64>,
    /// How many tests usually run in this mode; none before the first run.
    usual_tests: Option<u32>,
    /// With which tests the unchanged command runs it.
    command_mode: RunMode,
    /// The last report, and how many equal ones there were in a row.
    repeated: Option<(Report, u32)>,
}

impl<'a> Session<'a> {
    fn new(plan: &'a Plan<'a>) -> Self {
        Self {
            plan,
            mode: plan.mode(),
            bound: bound(plan.known.rate),
            budget: Budget::of(plan.budget),
            runs: 0,
            failed: 0,
            last: None,
            longest_s: None,
            durations: Vec::new(),
            usual_tests: None,
            command_mode: RunMode::InSuite,
            repeated: None,
        }
    }

    /// Runs the command once; none if the time is over or it was ended.
    fn run<J: Repeat>(
        &mut self,
        job: &mut J,
        selection: Selection,
    ) -> std::result::Result<Option<RunEnd>, NotVerified<J::Error>> {
        if self.budget.left_s() <= self.longest_s.unwrap_or(0.0) {
            return Ok(None);
        }
        let before = self.budget.spent_s();
        let end = job
            .run(selection, self.budget.left())
            .map_err(NotVerified::Command)?;
        let took = self.budget.spent_s() - before;
        self.longest_s = Some(self.longest_s.unwrap_or(0.0).max(took));
        Ok(match end {
            RunEnd::Reported(..) | RunEnd::Unreported => Some(end),
            RunEnd::TimedOut => None,
        })
    }

    /// Adds the test's result in a report. A pass counts in the chosen mode only, and with its usual tests.
    fn add(&mut self, end: &RunEnd, counts: bool) {
        if !counts {
            // The runs that follow take another time.
            self.longest_s = None;
        }
        let test = self.plan.test;
        let is_it = |reported: &&ReportedTest| {
            let names = [Some(&reported.test.name), reported.shown_as.name.as_ref()];
            let files = [&reported.test.file_path, &reported.shown_as.file_path];
            names.contains(&Some(&test.name))
                && (test.file_path.is_none() || files.contains(&&test.file_path))
        };
        let reported = match end {
            RunEnd::Reported(report, status) => {
                let found = report.tests.iter().find(is_it);
                found.map(|reported| (reported, report, *status))
            }
            RunEnd::Unreported | RunEnd::TimedOut => None,
        };
        self.last = reported.map(|(reported, report, status)| {
            let in_vain = self.in_vain(&reported.test, report, status);
            match (result(reported), in_vain) {
                (Result::Passed { .. }, Some(reason)) if counts => Result::PassedInVain(reason),
                (result, _) => result,
            }
        });
        match (&self.last, counts) {
            (Some(Result::Failed(_)), false) if self.is_experiment() => {
                self.last = Some(Result::Passed {
                    executions: 0,
                    ms: None,
                });
            }
            // A failure of the first run is one of the unchanged command.
            (Some(Result::Failed(_)), false) => self.mode = self.command_mode,
            _ => {}
        }
        self.failed += u32::from(self.failure().is_some());
        if let (true, Some(Result::Passed { executions, ms })) = (counts, &self.last) {
            self.runs = self.runs.saturating_add(*executions);
            self.durations.extend(*ms);
        }
    }

    /// Whether a report is that of an earlier run, which the command took from a cache.
    fn is_copy(&mut self, report: &Report) -> bool {
        let last = self.repeated.take().filter(|(last, _)| last == report);
        let (last, count) = last.map_or_else(|| (report.clone(), 1), |(last, count)| (last, count + 1));
        self.repeated = Some((last, count));
        let attempts = report.tests.iter().flat_map(|test| test.attempts.iter());
        let has_durations = attempts
            .filter_map(|attempt| attempt.duration_ms)
            .any(|ms| ms > 0);
        has_durations && count >= COPIES
    }

    /// Why a pass in this run proves nothing: its report hides retries or is none of this run, the command failed, or other
    /// tests are missing.
    fn in_vain(&mut self, test: &TestName, report: &Report, status: u8) -> Option<String> {
        let is_of_mode = |other: &TestName| match self.mode {
            RunMode::Alone => other == test,
            RunMode::WithFile => file_of(other) == file_of(test),
            RunMode::InSuite => true,
        };
        let (mut ran, mut of_mode, mut failed) = (0_u32, 0_u32, 0_u32);
        for other in &report.tests {
            let status = other.outcome().map(|outcome| outcome.status);
            if status.is_some_and(|status| !status.is_skip()) {
                ran += 1;
                of_mode += u32::from(is_of_mode(&other.test));
            }
            failed += u32::from(status.is_some_and(AttemptStatus::is_failure));
        }
        let of_suite = self.plan.known.suite_tests;
        let is_unchanged = self.usual_tests.is_none() || self.mode == RunMode::InSuite;
        let usual = *self.usual_tests.get_or_insert_with(|| match self.mode {
            RunMode::InSuite => of_suite.unwrap_or(0).max(ran),
            RunMode::Alone | RunMode::WithFile => of_mode,
        });
        if is_unchanged && ran == 1 && of_suite != Some(1) {
            self.command_mode = RunMode::Alone;
            self.mode = self.mode.min(self.command_mode);
        }
        let is_copy = self.is_copy(report);
        let is_explained = report.format.fails_with(status, u64::from(failed));
        if report.hides_retries {
            Some(HIDES_RETRIES.to_owned())
        } else if report.is_cached {
            Some(CACHED.to_owned())
        } else if is_copy {
            Some(format!(
                "{COPIES} reports in a row were equal, as those from a cache are, so they prove nothing; turn the cache off"
            ))
        } else if status != 0 && !is_explained {
            Some(format!(
                "the command ended with status {status}, which no failed test explains"
            ))
        } else if let Some(error) = report.errors.first() {
            let message = error.message.as_deref().unwrap_or("it has no text");
            let line: String = terminal::inert(message).lines().take(1).collect();
            Some(format!("a run had an error outside of tests: {line}"))
        } else if self.mode < self.plan.mode() {
            Some(ALONE.to_owned())
        } else if of_mode * 10 < usual * 9 {
            Some(format!(
                "a run had {of_mode} of the usual {usual} tests {}, without skipped ones, so it proves nothing",
                show::mode_in_words(self.mode)
            ))
        } else if failed * 2 > ran {
            Some(format!(
                "{failed} of the {ran} tests of a run failed, so it proves nothing"
            ))
        } else {
            None
        }
    }

    const fn failure(&self) -> Option<&Failure> {
        match &self.last {
            Some(Result::Failed(failure)) => Some(failure),
            _ => None,
        }
    }

    fn selection(&self, selector: Option<&Selector>) -> std::result::Result<Selection, NotSelected> {
        let tests = std::slice::from_ref(self.plan.test);
        match (self.mode, selector) {
            (RunMode::InSuite, _) | (_, None) => Ok(Selection::default()),
            (RunMode::Alone, Some(selector)) => selector.select(tests, RerunKind::Alone),
            (RunMode::WithFile, Some(selector)) => selector.select(tests, RerunKind::WithFile),
        }
    }

    /// Whether unfixed code runs with fewer tests than those with which it is known to fail, to learn whether it fails so.
    fn is_experiment(&self) -> bool {
        self.mode < self.plan.known.mode
    }

    /// What an experiment showed, once it did. A failure may be of what an earlier run left, and rare ones of a part of the
    /// flake, so they do not show that a fix is proved by runs with these tests.
    fn learned(&self) -> Option<Verified> {
        let all = self.runs.saturating_add(self.failed);
        let is_as_often = 2.0 * f64::from(self.failed) >= self.plan.known.rate * f64::from(all);
        if self.failed > 1 && self.runs > 0 && is_as_often {
            return Some(self.answer(FixOutcome::StillFlaky, None));
        }
        let is_over = self.runs == 0 && self.failed >= EACH_RUN || self.runs >= self.needed();
        (is_over && self.failed > 0).then(|| self.ended())
    }

    fn needed(&self) -> u32 {
        CleanRuns::Repetitions.needed(self.bound)
    }

    fn plan_in_words(&self) -> String {
        if self.is_experiment() {
            return format!(
                "it is only known to fail {}; before a fix, two failures beside a pass {}, and half the rate, show that it fails \
                 so, too",
                show::mode_in_words(self.plan.known.mode),
                show::mode_in_words(self.mode),
            );
        }
        format!(
            "{} clean runs {} prove that it fails in at most {} % of runs; its rate before is {} %",
            self.needed(),
            show::mode_in_words(self.mode),
            show::percent(self.bound),
            show::percent(self.plan.known.rate),
        )
    }

    /// The answer, if more repetitions cannot change it.
    fn verified(&self) -> Option<Verified> {
        match &self.last {
            None => Some(self.not_provable(NO_RESULT)),
            Some(Result::Skipped) => Some(self.not_provable(SKIPPED)),
            Some(Result::PassedInVain(reason)) => Some(self.not_provable(reason)),
            Some(Result::Failed(failure)) if self.plan.known.has_error(failure) => match self.is_experiment()
            {
                true => self.learned(),
                false => Some(self.answer(FixOutcome::StillFlaky, None)),
            },
            Some(Result::Failed(_)) => Some(self.answer(FixOutcome::Differs, None)),
            Some(Result::Passed { .. }) if self.failed > 0 => self.learned(),
            Some(Result::Passed { .. }) => (self.runs >= self.needed()).then(|| self.ended()),
        }
    }

    /// The answer after the last repetition. None failed, but of an experiment.
    fn ended(&self) -> Verified {
        let (known, ran) = (
            show::mode_in_words(self.plan.known.mode),
            show::mode_in_words(self.mode),
        );
        if self.is_experiment() && self.failed == 0 {
            return self.not_provable(&format!(
                "it is only known to fail {known}, so runs {ran} prove nothing"
            ));
        }
        if self.is_experiment() {
            let mut failed = self.answer(
                FixOutcome::StillFlaky,
                Some(&format!(
                    "{} of {} runs {ran} failed, which may be a part of the flake or of what an earlier run left; a fix needs runs \
                     {known}",
                    self.failed,
                    self.runs.saturating_add(self.failed),
                )),
            );
            failed.check.mode = self.plan.known.mode;
            return failed;
        }
        let has_durations = self.plan.known.usual_ms.is_some() && !self.durations.is_empty();
        match (self.runs >= self.needed(), self.longer()) {
            (true, None) if has_durations => self.answer(FixOutcome::Proved, None),
            (true, None) => self.answer(FixOutcome::Proved, Some(NO_DURATIONS)),
            (_, longer) => self.answer(FixOutcome::NotProvable, longer.as_deref()),
        }
    }

    fn not_provable(&self, reason: &str) -> Verified {
        self.answer(FixOutcome::NotProvable, Some(reason))
    }

    fn answer(&self, outcome: FixOutcome, remark: Option<&str>) -> Verified {
        let known = self.plan.known;
        Verified {
            test: self.plan.test.clone(),
            check: FixCheck {
                outcome,
                mode: self.mode,
                runs: self.runs.saturating_add(self.failed),
                needed: self.needed(),
                largest_rate: match self.failure() {
                    Some(_) => 1.0,
                    None if self.is_experiment() => 1.0,
                    None => CleanRuns::Repetitions.largest_rate(self.runs),
                },
                seconds: self.budget.spent_s(),
            },
            ran: self.mode,
            rate_before: known.rate,
            bound: self.bound,
            builds_needed: CleanRuns::Builds.needed(self.bound),
            failure: self.failure().cloned(),
            errors_before: known.errors.iter().map(|error| error.title.clone()).collect(),
            remarks: remark.map(str::to_owned).into_iter().collect(),
        }
    }

    /// A sentence if passes take much longer than before: half of them, or as many as the former failures could be.
    fn longer(&self) -> Option<String> {
        let usual = self.plan.known.usual_ms?;
        let count = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
        let all = self.durations.len();
        let limits = [(PAUSE_MS, 0.5), (TIME_OUT_MS, LATE * self.plan.known.rate)];
        limits.into_iter().find_map(|(margin, share)| {
            let limit = usual.saturating_mul(LONGER).saturating_add(margin);
            let mut long: Vec<u64> = self.durations.iter().copied().filter(|ms| *ms > limit).collect();
            long.sort_unstable();
            let now = *long.get(long.len() / 2)?;
            (count(long.len()) >= share * count(all)).then(|| {
                format!(
                    "it takes {} times as long as usual in {} of {all} passes ({now} ms, not {usual} ms), so a longer time-out \
                     or a pause may hide the flake",
                    now / usual.max(1),
                    long.len(),
                )
            })
        })
    }
}

/// The result of a test in a report. A pass on retry is a failure.
fn result(reported: &ReportedTest) -> Result {
    let Some(outcome) = reported.outcome() else {
        return Result::Skipped;
    };
    if outcome.status.is_skip() {
        return Result::Skipped;
    }
    let attempts = reported.attempts.executions().flatten();
    if outcome.failed_attempts == 0 {
        let ms = attempts.filter_map(|attempt| attempt.duration_ms).last();
        return Result::Passed {
            executions: outcome.executions.max(1),
            ms,
        };
    }
    let failed = attempts.filter(|attempt| attempt.status.is_failure()).last();
    Result::Failed(failed.map_or_else(|| failure(&[]), |attempt| failure(&attempt.errors)))
}

fn failure(errors: &[ErrorDetail]) -> Failure {
    let is_told = |error: &&ErrorDetail| error.message.as_deref() != Some(assay_reports::UNTOLD_ERROR);
    let errors: Vec<ErrorDetail> = errors.iter().filter(is_told).cloned().collect();
    let class: Option<ErrorClass> = Fingerprinter.classify(&errors);
    let (fingerprint, title) = class.map(|class| (class.fingerprint, class.title)).unzip();
    let message = errors.iter().find_map(|error| error.message.as_deref());
    let message: String = message
        .unwrap_or_default()
        .chars()
        .take(LONGEST_MESSAGE)
        .collect();
    Failure {
        fingerprint,
        title: title.unwrap_or_else(|| "an error without a text".to_owned()),
        message: terminal::inert(&message),
    }
}

#[cfg(test)]
mod tests;
