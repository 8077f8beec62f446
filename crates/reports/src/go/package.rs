//! The tests of a package.

use std::collections::{HashMap, HashSet};

use assay_domain::{
    attempt::{Attempt, AttemptStatus},
    timestamp::Timestamp,
};

use super::{
    event::Event,
    output::failure_text,
    test::{Execution, Test, is_goexit, is_timeout, status_of},
};
use crate::{input::Input, limits, outcome, output::HeadAndTail, retries::failed, text};

/// A package with each run of its tests, in order.
#[derive(Debug)]
pub(super) struct Package {
    name: String,
    runs: Vec<PackageRun>,
}

/// A failure of the package outside of its tests.
pub(super) struct OwnFailure {
    pub(super) message: String,
    pub(super) output: String,
    /// The import path of the build that failed.
    pub(super) build: Option<String>,
}

#[derive(Debug, Default)]
struct PackageRun {
    tests: Vec<Test>,
    test_index: HashMap<String, usize>,
    output: HeadAndTail,
    /// The first line of a panic.
    panic: Option<String>,
    /// The package's own result. `None` while it runs.
    status: Option<AttemptStatus>,
    failed_build: Option<String>,
    /// Whether the test binary wrote its result, after its last test.
    has_result: bool,
    /// Whether its results are from the cache.
    is_cached: bool,
    /// Whether a test was open when the package ended.
    stopped_a_test: bool,
    /// Whether a test ended another one, so that later parts of it did not run.
    has_goexit: bool,
}

impl Package {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            runs: vec![PackageRun::default()],
        }
    }

    /// Whether `go test` took results from its cache.
    pub(super) fn is_cached(&self) -> bool {
        self.runs.iter().any(|run| run.is_cached)
    }

    /// Adds an event. Returns the number of tests that it added.
    pub(super) fn event(&mut self, input: &Input<'_>, event: &Event<'_>, at: Option<Timestamp>) -> usize {
        let has_ended = self.runs.last().is_none_or(|run| run.status.is_some());
        if has_ended && matches!(&*event.action, "start" | "run") {
            self.runs.push(PackageRun::default());
        }
        self.runs.last_mut().map_or(0, |run| {
            if event.test.is_empty() {
                run.own_event(input, event, at);
                0
            } else {
                run.test_event(event, at)
            }
        })
    }

    /// Its import path.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether the last run of the package has no result.
    pub(super) fn is_unfinished(&self) -> bool {
        self.runs.last().is_some_and(|run| run.status.is_none())
    }

    /// Whether a panic, an exit, a signal or a failure of another test ended tests early, so that later ones did not run.
    pub(super) fn is_cut_short(&self) -> bool {
        self.runs.iter().any(|run| {
            let failed = run.status.is_some_and(AttemptStatus::is_failure);
            failed && (run.has_goexit || !run.has_result && (run.panic.is_some() || run.stopped_a_test))
        })
    }

    /// The failures of the package's runs that failed without a failed test.
    pub(super) fn own_failures(&self) -> impl Iterator<Item = OwnFailure> + '_ {
        self.runs
            .iter()
            .filter(|run| run.status.is_some_and(AttemptStatus::is_failure) && !run.has_failed_test())
            .map(|run| {
                let output = run.output.text();
                let text = match (&run.failed_build, failure_text(&output)) {
                    (Some(_), _) => "build failed".to_owned(),
                    (None, text) if text.is_empty() => "failed".to_owned(),
                    (None, text) => text,
                };
                OwnFailure {
                    message: format!("{}: {text}", self.name),
                    output,
                    build: run.failed_build.clone(),
                }
            })
    }

    /// Whether each later run of the package ran only tests that had failed before. gotestsum does that with
    /// `--rerun-fails`. Other later runs have other flags, or another version of Go.
    pub(super) fn reruns_failed_tests(&self) -> bool {
        let mut failed: HashMap<&str, bool> = HashMap::new();
        self.runs.iter().enumerate().all(|(at, run)| {
            let mut roots = run.tests.iter().filter(|test| !test.name.contains('/'));
            roots.all(|test| {
                let before = failed.insert(&test.name, test.failed() || !test.has_passed);
                at == 0 || before == Some(true)
            })
        })
    }

    /// Whether a later run of the package has all of its tests, as with other flags.
    pub(super) fn reruns_all_tests(&self) -> bool {
        match self.runs.as_slice() {
            [] | [_] => self.runs.iter().all(|run| run.tests.is_empty()),
            [first, later @ ..] => later.iter().any(|run| run.tests.len() >= first.tests.len()),
        }
    }

    /// Its tests with their executions. Executions by `-count` are not retries. `is_rerun` is whether a later run of a
    /// package repeats what failed in the one before.
    pub(super) fn finish(self, input: &Input<'_>, is_rerun: bool) -> PackageResults {
        let mut tests: Vec<(String, Executions)> = Vec::new();
        let mut test_index: HashMap<String, usize> = HashMap::new();
        let runs: Vec<RunResults> = self.runs.into_iter().map(|run| run.finish(input)).collect();
        let all = runs.iter().flat_map(|run| &run.tests);
        let known: HashSet<String> = all
            .filter(|_| runs.len() > 1)
            .map(|(name, _)| name.clone())
            .collect();
        let mut passed_groups: Vec<String> = Vec::new();
        for run in runs {
            // A group that failed by itself in one run is a test in all of them.
            let (known_groups, groups): (Vec<Finished>, Vec<Finished>) = run
                .passed_groups
                .into_iter()
                .partition(|(name, _)| known.contains(name));
            passed_groups.extend(groups.into_iter().map(|(name, _)| name));
            for (name, attempts) in run.tests.into_iter().chain(known_groups) {
                let executions = attempts.into_iter().map(|attempt| vec![attempt]);
                match test_index.get(&name).and_then(|index| tests.get_mut(*index)) {
                    Some((_, earlier)) => {
                        for mut execution in executions {
                            let last_failed = earlier.iter_mut().rfind(|earlier| failed(earlier));
                            match last_failed.filter(|_| is_rerun) {
                                Some(failed) => failed.append(&mut execution),
                                None => earlier.push(execution),
                            }
                        }
                    }
                    None => {
                        test_index.insert(name.clone(), tests.len());
                        tests.push((name, executions.collect()));
                    }
                }
            }
        }
        PackageResults {
            name: self.name,
            tests,
            passed_groups,
        }
    }
}

/// The attempts of each execution of a test.
type Executions = Vec<Vec<Attempt>>;
/// The name of a test and its executions, each of one attempt.
type Finished = (String, Vec<Attempt>);

/// What a package shows.
pub(super) struct PackageResults {
    pub(super) name: String,
    pub(super) tests: Vec<(String, Executions)>,
    pub(super) passed_groups: Vec<String>,
}

/// What a run of a package shows. A group of tests fails with its members, so it counts as a test only if it failed by
/// itself.
#[derive(Default)]
struct RunResults {
    tests: Vec<Finished>,
    passed_groups: Vec<Finished>,
}

impl PackageRun {
    fn own_event(&mut self, input: &Input<'_>, event: &Event<'_>, at: Option<Timestamp>) {
        match &*event.action {
            "output" => {
                self.note_panic(&event.output);
                self.has_result |= event.output == "FAIL\n";
                self.is_cached |= event.output.starts_with("ok") && event.output.contains("\t(cached)");
                self.output.push(&event.output);
            }
            "pass" | "fail" | "skip" => {
                let status = status_of(&event.action);
                let ended_before = std::mem::replace(&mut self.status, status).is_some();
                if !event.failed_build.is_empty() {
                    self.failed_build = Some(event.failed_build.to_string());
                }
                if !ended_before {
                    self.close_open_tests(input, status.unwrap_or(AttemptStatus::Failed), at);
                }
            }
            _ => {}
        }
    }

    fn test_event(&mut self, event: &Event<'_>, at: Option<Timestamp>) -> usize {
        let before = self.tests.len();
        if event.action == "output" {
            self.note_panic(&event.output);
            self.has_goexit |= is_goexit(&event.output);
        }
        let index = match self.test_index.get(&*event.test) {
            Some(index) => *index,
            None => {
                self.test_index.insert(event.test.to_string(), before);
                self.tests.push(Test {
                    name: event.test.to_string(),
                    executions: vec![Execution::default()],
                    has_passed: false,
                });
                before
            }
        };
        if let Some(test) = self.tests.get_mut(index) {
            test.event(event, at);
        }
        self.tests.len() - before
    }

    fn note_panic(&mut self, output: &str) {
        if self.panic.is_none() && output.starts_with("panic: ") {
            self.panic = text::message(output);
        }
    }

    fn has_timed_out(&self) -> bool {
        self.panic.as_deref().is_some_and(is_timeout)
    }

    /// Gives a status to each test that is open when its package ends: a panic, a timeout or an exit stopped it. A
    /// result in the test's own output takes precedence: `go test` misses a result after output without a line break.
    fn close_open_tests(&mut self, input: &Input<'_>, package: AttemptStatus, at: Option<Timestamp>) {
        let stop_status = if package.is_failure() && self.has_timed_out() {
            AttemptStatus::TimedOut
        } else {
            package
        };
        for test in &mut self.tests {
            let name = &test.name;
            for execution in test
                .executions
                .iter_mut()
                .filter(|execution| execution.status.is_none())
            {
                let output = execution.output.text();
                let has_result_line = |word: &str| output.contains(&format!("--- {word}: {name} ("));
                execution.status = Some(if let Some(action) = &execution.unknown_action {
                    input.status(outcome::OTHERS, action)
                } else if has_result_line("PASS") {
                    AttemptStatus::Passed
                } else if has_result_line("SKIP") {
                    AttemptStatus::Skipped
                } else if has_result_line("FAIL") {
                    AttemptStatus::Failed
                } else {
                    self.stopped_a_test = true;
                    stop_status
                });
                execution.duration_ms = at
                    .zip(execution.started_at)
                    .and_then(|(end, start)| u64::try_from(end.since_ms(start)).ok());
            }
        }
    }

    fn has_failed_test(&self) -> bool {
        self.tests.iter().any(Test::failed)
    }

    fn finish(self, input: &Input<'_>) -> RunResults {
        // Whether each group contains a failed test.
        let mut groups: HashMap<usize, bool> = HashMap::new();
        for test in &self.tests {
            for (slash, _) in test.name.match_indices('/').take(limits::DEPTH) {
                let group = test.name.get(..slash).and_then(|name| self.test_index.get(name));
                if let Some(index) = group {
                    *groups.entry(*index).or_default() |= test.failed();
                }
            }
        }
        let panic = self.panic;
        let mut results = RunResults::default();
        for (index, test) in self.tests.into_iter().enumerate() {
            let list = match groups.get(&index) {
                None => &mut results.tests,
                Some(true) => continue,
                Some(false) if test.failed() => &mut results.tests,
                Some(false) if test.passed() => &mut results.passed_groups,
                Some(false) => continue,
            };
            list.push(test.finish(input, panic.as_deref()));
        }
        results
    }
}
