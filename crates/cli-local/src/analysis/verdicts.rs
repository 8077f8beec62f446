//! The verdicts on a collected history.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use assay_answers::stable_branch::{BranchState, StableBranchState};
use assay_domain::{
    attempt::AttemptStatus,
    observation::{Bitmap, History},
    outcomes::{self, Outcome, Strip},
    signature::Category,
    test::TestOrdinal,
    timestamp::Timestamp,
    verdict::{ENGINE_WINDOW_DAYS, Judge as _, LastRun, VerdictEntry, VerdictStatus},
};
use assay_flakiness::{CALENDAR_DAYS, ENGINE_VERSION, Engine};
use serde::Serialize;

use crate::analysis::{
    causes::Causes,
    collector::{Collector, RunResults},
};

/// The verdicts on every test of a history's window: broken and flaky ones first, then currently failing ones.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Analysis {
    /// The engine's version.
    pub engine: &'static str,
    /// The time of the judgement.
    pub now: Timestamp,
    /// The length of the window in days; it ends at `now`.
    pub window_days: i64,
    /// Runs that started in the window.
    pub runs: usize,
    /// Runs that were read, including those outside of the window.
    pub runs_read: usize,
    /// The stable branch.
    pub stable_branch: Arc<str>,
    /// What fails on the stable branch now, whatever the verdicts.
    pub stable: BranchState,
    /// Runs without a branch that are judged as runs of the stable one, because other runs have a branch.
    pub runs_assumed_stable: usize,
    /// The tests with a result in the window: broken and flaky ones first, then currently failing ones, then the
    /// others. Each group is in the order of the flaky list by time lost.
    pub tests: Vec<AnalyzedTest>,
    /// The errors outside of tests in the window, those of most runs first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub report_errors: Vec<ReportErrorCount>,
    /// The causes of the window's failures, if requested.
    #[serde(flatten)]
    pub causes: Option<Causes>,
    #[serde(skip)]
    history: History,
    /// The index of each history entry's run.
    #[serde(skip)]
    run_indexes: Vec<usize>,
    /// The pages of the CI runs by run number.
    #[serde(skip)]
    urls: HashMap<i32, Arc<str>>,
    /// The newly failing tests of the last days.
    #[serde(skip)]
    newly_failing: Bitmap,
}

/// A test with its verdict, its evidence and its errors.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AnalyzedTest {
    /// The entry of the flaky list, with evidence.
    #[serde(flatten)]
    pub entry: VerdictEntry,
    /// The signatures of its errors in the window, most occurrences first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ErrorCount>,
    #[serde(skip)]
    test: TestOrdinal,
}

/// An error outside of tests: a file that did not load, a failed set-up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportErrorCount {
    /// Its first line.
    pub message: Box<str>,
    /// The number of runs with it.
    pub runs: usize,
    /// The name of the newest of them.
    pub last_run: Arc<str>,
    /// The start of that run.
    pub last_run_at: Timestamp,
}

/// An error signature of a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorCount {
    /// 32 hexadecimal digits.
    pub fingerprint: String,
    /// One line.
    pub title: String,
    /// Its kind.
    pub category: Category,
    /// The number of attempts that ended with it.
    pub occurrences: u64,
    /// The beginning of one occurrence's text.
    #[serde(skip)]
    pub sample: Option<String>,
}

/// A run in the overview.
#[derive(Debug, Clone)]
pub struct RunBar {
    /// Its name.
    pub run: Arc<str>,
    /// Its start.
    pub started_at: Timestamp,
    /// Its branch, if known.
    pub branch: Option<Arc<str>>,
    /// The tested revision, if known.
    pub revision: Option<Arc<str>>,
    /// Tests that were not skipped.
    pub tests: u32,
    /// Tests with a failed final attempt.
    pub failed: u32,
    /// Tests that passed after a failed attempt.
    pub recovered: u32,
    /// The page of the CI run, if known.
    pub url: Option<Arc<str>>,
}

/// There is no run in the window.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NothingToJudge {
    /// No run was read.
    #[error("no run was read; the files contain no results of tests")]
    NoRuns,
    /// All runs are outside of the window.
    #[error(
        "none of the {read} runs started in the {ENGINE_WINDOW_DAYS} days before {now}; the newest started at {newest}; `assay analyze --now TIME` judges another window"
    )]
    NoneInWindow {
        /// Runs that were read.
        read: usize,
        /// The end of the window.
        now: Timestamp,
        /// The start of the newest run.
        newest: Timestamp,
    },
}

impl Collector {
    /// Judges the collected results as of `now`, or as of the newest run's start.
    ///
    /// # Errors
    /// [`NothingToJudge`] if no run is in the window.
    pub fn judge(&self, now: Option<Timestamp>) -> Result<Analysis, NothingToJudge> {
        let newest = self.newest().ok_or(NothingToJudge::NoRuns)?;
        let now = now.unwrap_or(newest);
        // The calendar looks further back than the rest of the engine.
        let read = self.window(now.plus_days(-CALENDAR_DAYS), now);
        let from = now.plus_days(-ENGINE_WINDOW_DAYS);
        let earlier = read.partition_point(|run| run.started_at < from);
        let runs = read.get(earlier..).unwrap_or_default();
        if runs.is_empty() {
            return Err(NothingToJudge::NoneInWindow {
                read: self.runs(),
                now,
                newest,
            });
        }
        let with_earlier = self.history(&read);
        let history = History {
            stable_branch: Arc::clone(&with_earlier.stable_branch),
            tests: with_earlier.tests,
            runs: with_earlier.runs.iter().skip(earlier).cloned().collect(),
        };
        let stable = StableBranchState::of(&history);
        let first_failures = history.first_failures();
        let errors = self.errors(&history, runs);
        let mut last = LastResults {
            runs,
            starts: HashMap::new(),
        };
        let mut tests: Vec<AnalyzedTest> = Engine::default()
            .judge(&with_earlier, now)
            .into_iter()
            .map(|judgement| {
                let test = judgement.verdict.test;
                let last = judgement
                    .verdict
                    .last_run
                    .and_then(|index| last.of(&history, index.checked_sub(earlier)?, test));
                let name = self.tests.name(test);
                AnalyzedTest {
                    entry: VerdictEntry::new(
                        name,
                        judgement.verdict,
                        stable.failing_since(&history, test),
                        first_failures.get(&test).copied(),
                        last,
                        Some(judgement.evidence),
                    ),
                    errors: errors.get(&test).cloned().unwrap_or_default(),
                    test,
                }
            })
            .collect();
        tests.sort_by(|a, b| rank(&a.entry, &b.entry));
        let numbers: HashSet<i32> = history.runs.iter().map(|run| run.run.number).collect();
        Ok(Analysis {
            engine: ENGINE_VERSION,
            now,
            window_days: ENGINE_WINDOW_DAYS,
            runs: numbers.len(),
            runs_read: self.runs(),
            stable_branch: Arc::clone(&history.stable_branch),
            stable: stable.state(&history),
            runs_assumed_stable: self.assumed_stable,
            tests,
            report_errors: self.report_errors_since(from, now),
            causes: None,
            run_indexes: outcomes::run_indexes(&history),
            urls: runs.iter().filter_map(|run| run.page()).collect(),
            newly_failing: outcomes::newly_failing(&history, now.plus_days(-outcomes::NEW_DAYS)),
            history,
        })
    }

    /// The errors outside of tests of the runs in a window.
    fn report_errors_since(&self, from: Timestamp, now: Timestamp) -> Vec<ReportErrorCount> {
        let mut runs_of_error: BTreeMap<&str, BTreeMap<usize, Timestamp>> = BTreeMap::new();
        for (run, at, message) in &self.report_errors {
            if (from..=now).contains(at) {
                runs_of_error.entry(message).or_default().insert(*run, *at);
            }
        }
        let counted = |(message, runs): (&str, BTreeMap<usize, Timestamp>)| {
            let (last, at) = runs.iter().max_by_key(|(run, at)| (**at, **run))?;
            Some(ReportErrorCount {
                message: message.into(),
                runs: runs.len(),
                last_run: Arc::clone(self.run_name(*last)?),
                last_run_at: *at,
            })
        };
        let mut errors: Vec<ReportErrorCount> = runs_of_error.into_iter().filter_map(counted).collect();
        errors.sort_by(|a, b| (Reverse(a.runs), &a.message).cmp(&(Reverse(b.runs), &b.message)));
        errors
    }

    /// The error signatures of each failing test.
    fn errors(&self, history: &History, runs: &[RunResults<'_>]) -> HashMap<TestOrdinal, Vec<ErrorCount>> {
        let mut counts: HashMap<TestOrdinal, BTreeMap<u32, u64>> = HashMap::new();
        for (observed, results) in history.runs.iter().zip(runs) {
            for failure in &observed.failures {
                for signature in results
                    .attempts(failure.test)
                    .filter_map(|attempt| attempt.signature)
                {
                    *counts
                        .entry(failure.test)
                        .or_default()
                        .entry(signature)
                        .or_default() += 1;
                }
            }
        }
        let counted_error = |(number, occurrences): (u32, u64)| {
            let signature = self.signatures.get(number)?;
            Some(ErrorCount {
                fingerprint: signature.fingerprint.clone(),
                title: signature.title.clone(),
                category: signature.category,
                occurrences,
                sample: signature.sample.clone(),
            })
        };
        counts
            .into_iter()
            .map(|(test, counts)| {
                let mut errors: Vec<ErrorCount> = counts.into_iter().filter_map(counted_error).collect();
                errors.sort_by(|a, b| {
                    (Reverse(a.occurrences), &a.fingerprint).cmp(&(Reverse(b.occurrences), &b.fingerprint))
                });
                (test, errors)
            })
            .collect()
    }
}

/// Final results of the newest runs. The starts of passed tests are looked up once per run.
struct LastResults<'a> {
    runs: &'a [RunResults<'a>],
    starts: HashMap<usize, HashMap<TestOrdinal, Timestamp>>,
}

impl LastResults<'_> {
    fn of(&mut self, history: &History, index: usize, test: TestOrdinal) -> Option<(Timestamp, LastRun)> {
        let facts = &history.runs.get(index)?.run;
        let results = self.runs.get(index)?;
        let last = results.last(test)?;
        let start = last.started_at.or_else(|| {
            let starts = self.starts.entry(index).or_insert_with(|| results.starts());
            (last.status == AttemptStatus::Passed)
                .then(|| starts.get(&test).copied())
                .flatten()
        });
        let run = LastRun {
            run_id: facts.id.as_ref().to_owned(),
            run_number: facts.number,
            status: last.status,
            started_at: results.started_at,
        };
        Some((start.unwrap_or(results.started_at), run))
    }
}

/// Orders by group; within a group by time lost, as in the flaky list. The order is total.
fn rank(a: &VerdictEntry, b: &VerdictEntry) -> Ordering {
    let key = |entry: &VerdictEntry| (Group::of(entry), Reverse(entry.figures.time_lost_ms));
    key(a)
        .cmp(&key(b))
        .then_with(|| b.figures.flake_score.total_cmp(&a.figures.flake_score))
        .then_with(|| (&a.test_name, &a.file_path).cmp(&(&b.test_name, &b.file_path)))
}

/// The groups of the list, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    /// Broken or flaky.
    Reported,
    /// Currently failing, but neither broken nor flaky.
    Failing,
    /// Healthy, or with too few runs.
    Other,
}

impl Group {
    const fn of(entry: &VerdictEntry) -> Self {
        match entry.status {
            VerdictStatus::Broken | VerdictStatus::Flaky => Self::Reported,
            VerdictStatus::Failing => Self::Failing,
            VerdictStatus::Healthy | VerdictStatus::InsufficientData => Self::Other,
        }
    }
}

impl Analysis {
    /// The broken and flaky tests.
    pub fn reported(&self) -> &[AnalyzedTest] {
        self.group(Group::Reported)
    }

    /// The tests whose newest runs failed and that are neither broken nor flaky.
    pub fn failing(&self) -> &[AnalyzedTest] {
        self.group(Group::Failing)
    }

    /// All other tests.
    pub fn others(&self) -> &[AnalyzedTest] {
        self.group(Group::Other)
    }

    /// The tests of a group. [`rank`] has made them adjacent.
    fn group(&self, group: Group) -> &[AnalyzedTest] {
        let start = self
            .tests
            .partition_point(|judged| Group::of(&judged.entry) < group);
        let end = self
            .tests
            .partition_point(|judged| Group::of(&judged.entry) <= group);
        self.tests.get(start..end).unwrap_or_default()
    }

    /// The number of tests with this verdict.
    pub fn count(&self, status: VerdictStatus) -> usize {
        self.tests
            .iter()
            .filter(|judged| judged.entry.status == status)
            .count()
    }

    /// The outcomes of a test by branch, the stable one first, and by variant with a failure.
    pub fn strips(&self, judged: &AnalyzedTest) -> Vec<Strip> {
        outcomes::strips(&self.history, &self.run_indexes, judged.test)
    }

    /// The variants in which a test failed or recovered.
    pub fn failing_variants(&self, judged: &AnalyzedTest) -> BTreeSet<Arc<str>> {
        outcomes::failing_variants(&self.history, judged.test)
    }

    /// Whether the test first failed in the last week and ran without a failure before.
    pub fn is_new(&self, judged: &AnalyzedTest) -> bool {
        self.newly_failing.contains(judged.test)
    }

    /// The outcomes of a test in its newest runs on any branch, oldest first: the worst of each run, with the run's
    /// index in [`Self::bars`].
    pub fn recent(&self, judged: &AnalyzedTest, most: usize) -> Vec<(usize, Outcome)> {
        let mut cells = outcomes::worst(&self.history, &self.run_indexes, judged.test);
        cells.drain(..cells.len().saturating_sub(most));
        cells
    }

    /// The runs of the window, oldest first. The variants of a run are one entry.
    pub fn bars(&self) -> Vec<RunBar> {
        let mut bars: Vec<RunBar> = Vec::new();
        let mut results: Vec<(Bitmap, Bitmap, Bitmap)> = Vec::new();
        for (run, index) in self.history.runs.iter().zip(&self.run_indexes) {
            if *index == bars.len() {
                bars.push(RunBar {
                    run: Arc::clone(&run.run.id),
                    started_at: run.run.started_at,
                    branch: run.run.branch.clone(),
                    revision: run.run.revision.clone(),
                    tests: 0,
                    failed: 0,
                    recovered: 0,
                    url: self.urls.get(&run.run.number).cloned(),
                });
                results.push(<(Bitmap, Bitmap, Bitmap)>::default());
            }
            let Some((ran, failed, recovered)) = results.get_mut(*index) else {
                continue;
            };
            for test in run.present.iter().filter(|test| !run.skipped.contains(*test)) {
                ran.insert(test);
            }
            for failure in &run.failures {
                if failure.recovered {
                    recovered.insert(failure.test)
                } else {
                    failed.insert(failure.test)
                }
            }
        }
        for (bar, (ran, failed, recovered)) in bars.iter_mut().zip(&results) {
            bar.tests = ran.len();
            bar.failed = failed.len();
            bar.recovered = u32::try_from(recovered.iter().filter(|test| !failed.contains(*test)).count())
                .unwrap_or(u32::MAX);
        }
        bars
    }
}
