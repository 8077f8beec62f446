//! Collects results by run.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    sync::Arc,
};

use assay_domain::{
    attempt::ErrorDetail,
    observation::{History, RunEnding, RunFacts, RunObservations},
    recording::Recording,
    run::RunState,
    stable_name::stable_name,
    test::{TestName, TestOrdinal},
    timestamp::Timestamp,
};

use crate::analysis::{
    interner::{Signatures, Tests},
    part::{self, Attempt, Part},
    run_parts::{ReceivedPart, RunParts},
};

/// Collects results by run, reduced to the data that the engine and the page need.
///
/// Runs are numbered by their start. Runs with the same start are numbered in the order of the reports, as if the
/// reports were imported in that order.
#[derive(Debug)]
pub struct Collector {
    stable_branch: Arc<str>,
    pub(crate) tests: Tests,
    pub(crate) signatures: Signatures,
    runs: Vec<Run>,
    keys: HashMap<String, usize>,
    /// The index of each run by its key. `runs` has the variants of these runs.
    identities: HashMap<String, usize>,
    /// The number of runs that were assigned to the stable branch.
    pub(crate) assumed_stable: usize,
    /// Whether the names of a CSV history keep the parts that change from run to run.
    keeps_written_names: bool,
    /// The errors outside of tests, with the index of their run.
    pub(crate) report_errors: Vec<(usize, Timestamp, Box<str>)>,
    /// The names of a CSV history that are one test, by run and test.
    written_names: HashMap<(usize, TestOrdinal), Vec<Box<str>>>,
}

/// A run of one variant.
#[derive(Debug)]
struct Run {
    id: Arc<str>,
    /// The index of the run that this is a variant of.
    identity: usize,
    /// The index of its report; 0 for a CSV history, whose rows may have any order.
    report: usize,
    branch: Option<Arc<str>>,
    revision: Option<Arc<str>>,
    merge: Option<Arc<str>>,
    variant: Arc<str>,
    /// The page of the CI run.
    url: Option<Arc<str>>,
    /// Its reports; none until the first one is added.
    parts: Option<RunParts>,
    /// The expected number of shards, if a report names it.
    expected_shards: u32,
}

impl Run {
    /// How the run with these results ended.
    fn ending(&self, observed: &RunObservations) -> RunEnding {
        let received = self.parts.as_ref().map_or(0, RunParts::shards);
        let (is_cut_short, has_errors) = self.parts.as_ref().map(RunParts::flaws).unwrap_or_default();
        let has_failed_test = observed.failures.iter().any(|failure| !failure.recovered);
        RunEnding {
            complete: received >= self.expected_shards && !is_cut_short,
            // A folder is all there is.
            counts_from: None,
            failed_outside_tests: has_errors && !has_failed_test,
        }
    }
}

/// The run's values in a row of a CSV history.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowRun<'a> {
    /// The file, so that runs of the same name in two files stay distinct.
    pub(crate) file: &'a str,
    pub(crate) id: &'a str,
    pub(crate) branch: Option<&'a str>,
    pub(crate) revision: Option<&'a str>,
    pub(crate) merge: Option<&'a str>,
    pub(crate) variant: &'a str,
}

impl Collector {
    /// Creates an empty collector.
    pub fn new(stable_branch: &str) -> Self {
        Self {
            stable_branch: stable_branch.into(),
            tests: Tests::default(),
            signatures: Signatures::default(),
            runs: Vec::new(),
            keys: HashMap::new(),
            identities: HashMap::new(),
            assumed_stable: 0,
            keeps_written_names: false,
            report_errors: Vec::new(),
            written_names: HashMap::new(),
        }
    }

    /// Keeps the parts that change from run to run in the names of a CSV history.
    pub fn keep_written_names(&mut self) {
        self.keeps_written_names = true;
    }

    /// The stable branch.
    pub fn stable_branch(&self) -> &str {
        &self.stable_branch
    }

    /// The number of runs. The variants of a run count once.
    pub fn runs(&self) -> usize {
        self.identities.len()
    }

    /// The name of the run with an index.
    pub(crate) fn run_name(&self, index: usize) -> Option<&Arc<str>> {
        self.runs.get(index).map(|run| &run.id)
    }

    /// The branches of the runs, each once, by code point.
    pub fn branches(&self) -> Vec<&str> {
        let mut branches: Vec<&str> = self.runs.iter().filter_map(|run| run.branch.as_deref()).collect();
        branches.sort_unstable();
        branches.dedup();
        branches
    }

    /// Assigns the runs without a branch to the stable one if other runs have a branch, and returns their number. If no
    /// run has a branch, the engine judges all of them as runs of the stable one.
    pub fn assume_stable(&mut self) -> usize {
        if self.runs.iter().all(|run| run.branch.is_none()) {
            return 0;
        }
        self.assumed_stable = self.put_on_stable();
        self.assumed_stable
    }

    /// Assigns the runs without a branch to the stable one, and returns their number.
    pub(crate) fn put_on_stable(&mut self) -> usize {
        let mut assigned = HashSet::new();
        for run in self.runs.iter_mut().filter(|run| run.branch.is_none()) {
            run.branch = Some(Arc::clone(&self.stable_branch));
            assigned.insert(run.identity);
        }
        assigned.len()
    }

    /// Adds a report. Evidence refers to it by `name`. A shard joins its run. The same shard or unsharded run again is a
    /// further part of it, as in an import. Returns the run's name: that of its first report.
    pub fn record(&mut self, name: &str, recording: Recording) -> Arc<str> {
        self.record_variant(name, None, recording)
    }

    /// Adds a report as [`Self::record`] does. Reports of one run key and several variants, such as the legs of a matrix,
    /// are variants of one run.
    pub fn record_variant(&mut self, name: &str, variant: Option<&str>, recording: Recording) -> Arc<str> {
        let Recording {
            run_key,
            content,
            shard,
            context,
            sender,
            started_at,
            state,
            report_errors,
            tests,
            passed_groups,
            ..
        } = recording;
        let report = self.runs.len();
        let key = match variant {
            Some(variant) => format!("report\t{run_key}\t{variant}"),
            None => format!("report\t{run_key}"),
        };
        let index = self.entry(&key, &run_key, name, report);
        let mut part = Part::starting(started_at);
        for error in &report_errors {
            let line = error
                .message
                .as_deref()
                .and_then(|message| message.lines().next());
            let line = line.unwrap_or("an error without a message");
            self.report_errors.push((index, started_at, line.into()));
        }
        for recorded in &tests {
            let test = self.tests.number(&recorded.test);
            if let Some(file) = &recorded.shown_as.file_path {
                self.tests.show_file(test, file);
            }
            for (execution, retry, attempt) in recorded.attempts.numbered() {
                let class = attempt.class.as_ref();
                let attempt = &attempt.attempt;
                let signature = class.map(|class| self.signatures.number(class, &attempt.errors));
                part.add(
                    test,
                    Attempt {
                        execution,
                        retry,
                        status: attempt.status,
                        duration_ms: attempt.duration_ms,
                        started_at: attempt.started_at,
                        signature,
                    },
                );
            }
        }
        let mut unknown_groups = Vec::new();
        for group in passed_groups {
            match self.tests.known(&group) {
                Some(test) if part.attempts_of(test) == 0 => part.add(test, Attempt::unreported_pass()),
                Some(_) => {}
                None => unknown_groups.push(self.tests.group_number(&group)),
            }
        }
        let Some(run) = self.runs.get_mut(index) else {
            return name.into();
        };
        run.merge = run.merge.take().or_else(|| context.merge().map(Into::into));
        run.revision = run.revision.take().or_else(|| context.revision().map(Into::into));
        run.branch = run.branch.take().or_else(|| context.branch.map(Into::into));
        if let Some(variant) = variant.map(str::to_owned).or(context.suite) {
            run.variant = variant.into();
        }
        run.url = run.url.take().or_else(|| context.run_url.map(Into::into));
        let received = ReceivedPart {
            shard: shard.map(|shard| shard.index),
            sender,
            content,
            part,
            unknown_groups,
            is_cut_short: state == RunState::Interrupted,
            has_errors: !report_errors.is_empty(),
        };
        match &mut run.parts {
            Some(parts) => parts.add(received),
            None => run.parts = Some(RunParts::of(received)),
        }
        let of_shard = shard.map_or(0, |shard| shard.total.unwrap_or(shard.index));
        run.expected_shards = run.expected_shards.max(of_shard);
        Arc::clone(&run.id)
    }

    /// The number of the signature of an error's message; none if the message identifies no error.
    pub(crate) fn signature(&mut self, message: &str) -> Option<u32> {
        let error = ErrorDetail {
            message: Some(message.to_owned()),
            ..ErrorDetail::default()
        };
        let class = assay_fingerprint::classify(&error)?;
        Some(self.signatures.number(&class, &[error]))
    }

    /// Adds one attempt of a CSV history.
    ///
    /// # Errors
    /// A message if the branch, the revision or the merge differs from that of an earlier row of the run.
    pub(crate) fn row(
        &mut self,
        run: RowRun<'_>,
        test: &TestName,
        retry: Option<u32>,
        attempt: Attempt,
        started_at: Timestamp,
    ) -> Result<(), String> {
        let identity = format!("csv\t{}\t{}", run.file, run.id);
        let index = self.entry(&format!("{identity}\t{}", run.variant), &identity, run.id, 0);
        let mut attempt = attempt;
        let test = match stable_name(&test.name) {
            Cow::Owned(stable) if !self.keeps_written_names => {
                let stable = TestName {
                    name: stable,
                    file_path: test.file_path.clone(),
                };
                let number = self.tests.number(&stable);
                attempt.execution = self.execution(index, number, &test.name, attempt.execution);
                number
            }
            Cow::Owned(_) | Cow::Borrowed(_) => self.tests.number(test),
        };
        let Some(entry) = self.runs.get_mut(index) else {
            return Ok(());
        };
        if entry.parts.is_none() {
            entry.branch = run.branch.map(Into::into);
            entry.revision = run.revision.map(Into::into);
            entry.merge = run.merge.map(Into::into);
            entry.variant = run.variant.into();
        }
        for (column, before, now) in [
            ("branch", entry.branch.as_deref(), run.branch),
            ("revision", entry.revision.as_deref(), run.revision),
            ("merge", entry.merge.as_deref(), run.merge),
        ] {
            if before != now {
                let quoted =
                    |value: Option<&str>| value.map_or("none".to_owned(), |value| format!("{value:?}"));
                return Err(format!(
                    "{column} {}, but the run {:?} has {} above",
                    quoted(now),
                    run.id,
                    quoted(before)
                ));
            }
        }
        let parts = entry.parts.get_or_insert_with(|| RunParts::of_rows(started_at));
        let part = parts.rows();
        part.started_at = part.started_at.min(started_at);
        let so_far = u32::try_from(part.attempts_of(test)).unwrap_or(u32::MAX);
        part.add(
            test,
            Attempt {
                retry: retry.unwrap_or(so_far),
                ..attempt
            },
        );
        Ok(())
    }

    /// The execution of a row whose name has a part that changes from run to run. Rows of a run whose names differ only
    /// there are executions of one test.
    fn execution(&mut self, run: usize, test: TestOrdinal, written: &str, execution: u32) -> u32 {
        /// More executions than a test has in one run.
        const APART: usize = 1 << 16;
        let names = self.written_names.entry((run, test)).or_default();
        let place = names
            .iter()
            .position(|name| **name == *written)
            .unwrap_or_else(|| {
                names.push(written.into());
                names.len() - 1
            });
        let first = u32::try_from(place.saturating_mul(APART)).unwrap_or(u32::MAX);
        first.saturating_add(execution)
    }

    /// The index of the run with this key. `identity` is the key that its variants share.
    fn entry(&mut self, key: &str, identity: &str, id: &str, report: usize) -> usize {
        if let Some(index) = self.keys.get(key) {
            return *index;
        }
        let next = self.identities.len();
        let identity = *self.identities.entry(identity.to_owned()).or_insert(next);
        let index = self.runs.len();
        self.runs.push(Run {
            id: id.into(),
            identity,
            report,
            branch: None,
            revision: None,
            merge: None,
            variant: "".into(),
            url: None,
            parts: None,
            expected_shards: 0,
        });
        self.keys.insert(key.to_owned(), index);
        index
    }

    /// The runs that started within `from..=to`, oldest first, each with its results. The start of a run is that of its
    /// first shard or variant.
    pub(crate) fn window(&self, from: Timestamp, to: Timestamp) -> Vec<RunResults<'_>> {
        let mut starts: HashMap<usize, Timestamp> = HashMap::new();
        for run in &self.runs {
            if let Some(started_at) = run.parts.as_ref().map(RunParts::started_at) {
                let start = starts.entry(run.identity).or_insert(started_at);
                *start = started_at.min(*start);
            }
        }
        let mut runs: Vec<(Timestamp, &Run)> = self
            .runs
            .iter()
            .filter_map(|run| Some((*starts.get(&run.identity)?, run)))
            .collect();
        runs.sort_by(|(a, x), (b, y)| {
            (a, x.report, &x.id, &x.variant).cmp(&(b, y.report, &y.id, &y.variant))
        });
        let mut numbers: HashMap<usize, i32> = HashMap::new();
        let mut results = Vec::new();
        for (started_at, run) in runs {
            let next = i32::try_from(numbers.len()).unwrap_or(i32::MAX).saturating_add(1);
            let number = *numbers.entry(run.identity).or_insert(next);
            if (from..=to).contains(&started_at) {
                results.push(RunResults {
                    run,
                    started_at,
                    number,
                });
            }
        }
        results
    }

    /// The start of the newest run; none without runs.
    pub(crate) fn newest(&self) -> Option<Timestamp> {
        let all_runs = self.window(
            Timestamp::from_unix_ms(i64::MIN),
            Timestamp::from_unix_ms(i64::MAX),
        );
        all_runs.last().map(|run| run.started_at)
    }

    /// The engine's input.
    pub(crate) fn history(&self, runs: &[RunResults<'_>]) -> History {
        let set_ups = self.tests.set_ups();
        let groups = self.tests.groups_as_tests();
        let observations = |run: &RunResults<'_>| {
            let mut observed = run.observations();
            let passed = run.run.parts.iter().flat_map(RunParts::unknown_groups);
            for group in passed.filter_map(|group| groups.get(&group)) {
                if !observed.present.contains(*group) {
                    observed.present.insert(*group);
                    observed.untimed.insert(*group);
                }
            }
            for (set_up, of_class) in &set_ups {
                let ran =
                    |test: TestOrdinal| observed.present.contains(test) && !observed.skipped.contains(test);
                if !observed.present.contains(*set_up) && of_class.iter().any(|test| ran(*test)) {
                    observed.present.insert(*set_up);
                    observed.untimed.insert(*set_up);
                }
            }
            observed
        };
        History {
            stable_branch: Arc::clone(&self.stable_branch),
            tests: self.tests.len(),
            runs: runs.iter().map(observations).collect(),
        }
    }
}

/// The results of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunResults<'a> {
    run: &'a Run,
    pub(crate) started_at: Timestamp,
    number: i32,
}

impl RunResults<'_> {
    /// The run's number, and the page of its CI run if known.
    pub(crate) fn page(self) -> Option<(i32, Arc<str>)> {
        Some((self.number, self.run.url.clone()?))
    }

    fn observations(self) -> RunObservations {
        let Self {
            run,
            started_at,
            number,
        } = self;
        let mut observed = RunObservations::of(RunFacts {
            id: Arc::clone(&run.id),
            number,
            started_at,
            branch: run.branch.clone(),
            revision: run.revision.clone(),
            merge: run.merge.clone(),
            variant: Arc::clone(&run.variant),
            ..RunFacts::default()
        });
        if let Some(part) = run.parts.as_ref().map(RunParts::part) {
            let (plain, untimed) = part.plain();
            observed.present = plain.clone();
            observed.untimed = untimed.clone();
            for (test, outcome) in part.other() {
                observed.add(test, &outcome);
            }
        }
        observed.ending = run.ending(&observed);
        observed
    }

    /// All attempts of a test.
    pub(crate) fn attempts(self, test: TestOrdinal) -> impl Iterator<Item = Attempt> {
        self.executions(test).into_iter().flatten()
    }

    /// A test's final attempt.
    pub(crate) fn last(self, test: TestOrdinal) -> Option<Attempt> {
        let executions = self.executions(test);
        let outcome = part::outcome(executions.iter().map(Vec::as_slice))?;
        let attempts = executions.get(outcome.final_execution)?;
        attempts.get(outcome.final_retry).copied()
    }

    /// A test's executions in the store's order: the worst outcome last.
    fn executions(self, test: TestOrdinal) -> Vec<Vec<Attempt>> {
        let part = self.run.parts.as_ref().map(RunParts::part);
        let mut executions = part.map(|part| part.executions(test)).unwrap_or_default();
        executions.sort_by_cached_key(|attempts| {
            part::outcome([attempts.as_slice()]).map(|outcome| outcome.status.severity())
        });
        executions
    }

    /// The starts of the passed tests.
    pub(crate) fn starts(self) -> HashMap<TestOrdinal, Timestamp> {
        let part = self.run.parts.as_ref().map(RunParts::part);
        part.map(Part::starts).unwrap_or_default()
    }
}
