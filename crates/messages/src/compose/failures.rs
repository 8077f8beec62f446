//! The failures that a message is about: which broke, by error and by the run with which they began.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use assay_answers::failures::{ExplainedFailure, FailureFilter, joined_failures};
use assay_domain::{
    edge::{Edge, EdgeRun, EdgeSubject},
    id::RunId,
    project::Project,
    settings::ChatEvent,
    store::{EdgeNames, StoreError},
    test::TestOrdinal,
    timestamp::Timestamp,
    verdict::{FailingSince, VerdictStatus},
};

use super::{
    MOST_GROUPS, NAMED_TESTS, Reader,
    commits::{Commits, since},
    error_title, line, of_suite, test_name, tests,
};
use crate::Group;

/// Most failures that are read for one message.
const MOST_FAILURES: u32 = 1_000;
/// Most runs whose failures are read for one message.
const MOST_RUNS: usize = 10;
/// The probability of another cause than the code from which a message names it.
const DOUBTED: f64 = 0.4;

/// The failures of the edges.
pub(crate) struct Failures {
    /// Those that the message calls broken, in the order of their probability that a change caused them.
    pub(crate) broken: Vec<ExplainedFailure>,
    /// The failures of flaky tests in a run that failed.
    pub(super) flaky: Vec<(EdgeRun, ExplainedFailure)>,
    /// The failures with an error that is new.
    with_new_errors: Vec<ExplainedFailure>,
    /// Those beyond the most that are read.
    unread: u64,
    /// The runs of which the message has a failure.
    with_failures: HashSet<RunId>,
    /// The runs whose failures were all read.
    read: HashSet<RunId>,
}

impl Failures {
    pub(crate) fn read(
        reader: Reader<'_>,
        project: &Project,
        edges: &[Edge],
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let of_suites = runs_of(edges, ChatEvent::RunFailed);
        let mut broken: HashSet<TestOrdinal> = edges.iter().filter_map(broken_test).collect();
        // A message about a suite leaves out the edges of the tests that broke with it.
        if !of_suites.is_empty() {
            let settled = reader.outbox.settled(project.id)?;
            let with_suite = settled
                .iter()
                .filter(|edge| edge.run.is_some_and(|run| of_suites.contains_key(&run.id)));
            broken.extend(with_suite.filter_map(broken_test));
        }
        let mut runs: Vec<RunId> = of_suites.keys().copied().collect();
        let of_breakages = runs_of(edges, ChatEvent::RevertCandidate);
        runs.extend(of_breakages.keys().filter(|run| !of_suites.contains_key(run)));
        for event in [ChatEvent::TestBroken, ChatEvent::NewError] {
            let of_event = runs_of(edges, event).into_keys();
            runs.extend(of_event.filter(|run| !of_suites.contains_key(run)));
        }
        let mut known = HashSet::new();
        runs.retain(|run| known.insert(*run));
        runs.truncate(MOST_RUNS);
        let mut found = Self {
            broken: Vec::new(),
            flaky: Vec::new(),
            with_new_errors: Vec::new(),
            unread: 0,
            with_failures: HashSet::new(),
            read: HashSet::new(),
        };
        if runs.is_empty() {
            return Ok(found);
        }
        let requested = (&FailureFilter::default(), (1, MOST_FAILURES));
        let joined = joined_failures(reader.store, reader.engine, project, &runs, requested, now)?;
        let failures: Vec<(RunId, ExplainedFailure)> = joined
            .failures
            .into_iter()
            .filter(|(_, failure)| failure.status.is_failure())
            .filter_map(|(place, failure)| Some((joined.runs.get(place)?.run.id, failure)))
            .collect();
        let with_candidate = failures
            .iter()
            .filter(|(run, failure)| of_breakages.contains_key(run) && candidate(failure).is_some());
        broken.extend(with_candidate.map(|(_, failure)| failure.test));
        let is_flaky = |failure: &ExplainedFailure| {
            let status = failure.verdict.map(|verdict| verdict.status);
            status == Some(VerdictStatus::Flaky) && !broken.contains(&failure.test)
        };
        let errors_of = |is: &dyn Fn(&ExplainedFailure) -> bool| -> HashSet<(RunId, &str)> {
            let failed = failures.iter().filter(|(_, failure)| is(failure));
            failed
                .filter_map(|(run, failure)| Some((*run, failure.fingerprint.as_deref()?)))
                .collect()
        };
        // A flaky test that failed with the error of others did not fail by itself.
        let red = errors_of(&|failure| !is_flaky(failure));
        // A message about some tests of an error counts all that failed with it.
        let of_broken = errors_of(&|failure| broken.contains(&failure.test));
        let known: Vec<(bool, bool)> = failures
            .iter()
            .map(|(run, failure)| {
                let error = failure.fingerprint.as_deref().map(|error| (*run, error));
                let is_in =
                    |errors: &HashSet<(RunId, &str)>| error.is_some_and(|error| errors.contains(&error));
                (!is_flaky(failure) || is_in(&red), is_in(&of_broken))
            })
            .collect();
        let mut tests = HashSet::new();
        for ((run, failure), (is_red, shares_error)) in failures.into_iter().zip(known) {
            let of_suite = of_suites.get(&run);
            let is_broken = broken.contains(&failure.test) || shares_error || of_suite.is_some() && is_red;
            if is_broken || of_suite.is_some() {
                found.with_failures.insert(run);
            }
            match of_suite {
                // Several suites may have the test.
                _ if !tests.insert(failure.test) => {}
                _ if is_broken => found.broken.push(failure),
                Some(of_suite) => found.flaky.push((*of_suite, failure)),
                None => found.with_new_errors.push(failure),
            }
        }
        found.unread = joined.total.saturating_sub(u64::from(MOST_FAILURES));
        if found.unread == 0 {
            found.read.extend(runs);
        }
        Ok(found)
    }

    /// The broken tests by error, those without one by the run with which they began, the largest group first, and the
    /// number of further groups.
    pub(super) fn groups(
        &self,
        commits: &mut Commits<'_>,
        now: Timestamp,
    ) -> Result<(Vec<Group>, usize), StoreError> {
        let mut groups: BTreeMap<(Option<&str>, Option<&str>), Vec<&ExplainedFailure>> = BTreeMap::new();
        for failure in &self.broken {
            let error = failure.fingerprint.as_deref();
            let start = first_failed(failure).filter(|_| error.is_none());
            let key = (error, start.map(|start| start.run_id.as_str()));
            groups.entry(key).or_default().push(failure);
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(_, failures)| std::cmp::Reverse(failures.len()));
        let starts = ErrorStarts::read(groups.iter().map(|(_, failures)| failures), commits, now)?;
        let further = groups.len().saturating_sub(MOST_GROUPS);
        let mut unread = usize::try_from(self.unread).unwrap_or(usize::MAX);
        let mut of_groups = Vec::new();
        for ((fingerprint, _), failures) in groups.into_iter().take(MOST_GROUPS) {
            let number = failures.len();
            // Failures beyond the most that are read count as the largest group's.
            let unread = std::mem::take(&mut unread);
            let one_error = match (number, fingerprint) {
                (1, _) => "",
                (_, Some(_)) => " with one error",
                (_, None) => " without an error text",
            };
            of_groups.push(Group {
                sentence: format!(
                    "{} broke{one_error}{}{}{}",
                    tests(number.saturating_add(unread)),
                    since(starts.of(&failures), commits)?,
                    doubt(&failures),
                    revert_candidate(&failures)
                ),
                error: failures
                    .iter()
                    .find_map(|failure| failure.title.as_deref())
                    .map(error_title),
                tests: named(failures.iter().copied()),
                more: number.saturating_sub(NAMED_TESTS.0).saturating_add(unread),
            });
        }
        Ok((of_groups, further))
    }

    /// All broken tests in one sentence.
    pub(super) fn sum(&self, commits: &mut Commits<'_>) -> Result<String, StoreError> {
        let number = self
            .broken
            .len()
            .saturating_add(usize::try_from(self.unread).unwrap_or(usize::MAX));
        let first = self.broken.first().and_then(first_failed);
        let since = match self.broken.iter().all(|failure| first_failed(failure) == first) {
            true => since(first, commits)?,
            false => String::new(),
        };
        let errors: HashSet<Option<&str>> = self
            .broken
            .iter()
            .map(|failure| failure.fingerprint.as_deref())
            .collect();
        let with = match errors.len() {
            1 => " with one error".to_owned(),
            errors => format!(" with {errors} errors"),
        };
        Ok(format!("{} broke{with}{since}", tests(number)))
    }

    /// The flaky tests that failed in a failed run.
    pub(super) fn flaky(&self, commits: &mut Commits<'_>) -> Result<Vec<Group>, StoreError> {
        let Some((run, _)) = self.flaky.first() else {
            return Ok(Vec::new());
        };
        let number = self.flaky.len();
        let flaky = match number {
            1 => "1 flaky test".to_owned(),
            _ => format!("{number} flaky tests"),
        };
        Ok(vec![Group {
            sentence: format!("{flaky} failed in {}", commits.run_with_commit(*run)?),
            error: None,
            tests: named(self.flaky.iter().map(|(_, failure)| failure)),
            more: number.saturating_sub(NAMED_TESTS.0),
        }])
    }

    /// The failed runs of which the message has no failure: they failed outside of their tests, were deleted, or are more
    /// than are read.
    pub(super) fn runs_without_failures(
        &self,
        edges: &[Edge],
        commits: &mut Commits<'_>,
    ) -> Result<Vec<Group>, StoreError> {
        let failed = edges.iter().filter(|edge| edge.event == ChatEvent::RunFailed);
        let without = failed.filter_map(|edge| Some((edge, edge.run?)));
        without
            .filter(|(_, run)| !self.with_failures.contains(&run.id))
            .map(|(edge, run)| {
                let outside = match self.read.contains(&run.id) {
                    true => " failed with an error outside of its tests",
                    false => " failed",
                };
                let run = commits.run_with_commit(run)?;
                Ok(line(format!("{run}{outside}{}", of_suite(edge))))
            })
            .collect()
    }

    /// The errors that are new, without those of broken tests.
    pub(super) fn new_errors(
        &self,
        edges: &[Edge],
        names: &EdgeNames,
        commits: &mut Commits<'_>,
    ) -> Result<Vec<Group>, StoreError> {
        let shown: HashSet<&str> = self
            .broken
            .iter()
            .filter_map(|failure| failure.fingerprint.as_deref())
            .collect();
        let mut groups = Vec::new();
        for edge in edges {
            let (EdgeSubject::Error { signature }, Some(run)) = (edge.subject, edge.run) else {
                continue;
            };
            let known = names.errors.iter().find(|(number, ..)| *number == signature);
            let Some((_, fingerprint, title)) = known.filter(|(_, error, _)| !shown.contains(error.as_str()))
            else {
                continue;
            };
            let flaky = self.flaky.iter().map(|(_, failure)| failure);
            let failures = flaky.chain(&self.with_new_errors);
            let failures = failures.filter(|failure| failure.fingerprint.as_ref() == Some(fingerprint));
            let failures: Vec<&ExplainedFailure> = failures.collect();
            // Without a failure, the run has other results by now.
            if failures.is_empty() {
                continue;
            }
            groups.push(Group {
                sentence: format!(
                    "{} failed with a new error in {}",
                    tests(failures.len()),
                    commits.run_with_commit(run)?
                ),
                error: Some(error_title(title)),
                more: failures.len().saturating_sub(NAMED_TESTS.0),
                tests: named(failures.into_iter()),
            });
        }
        Ok(groups)
    }
}

fn first_failed(failure: &ExplainedFailure) -> Option<&FailingSince> {
    failure.breakage.as_ref().map(|of| &of.first_failed)
}

/// The runs with which errors began whose tests began to fail in several runs: some failed with another error before.
struct ErrorStarts(HashSet<(String, Option<String>)>);

impl ErrorStarts {
    fn read<'f>(
        groups: impl Iterator<Item = &'f Vec<&'f ExplainedFailure>>,
        commits: &Commits<'_>,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let starts = groups.map(|failures| Self::starts(failures));
        let several = starts.filter(|starts| starts.len() > 1).flatten();
        let runs: BTreeSet<RunId> = several
            .filter_map(|(_, start)| start.run_id.parse().ok())
            .collect();
        let runs: Vec<RunId> = runs.into_iter().take(MOST_RUNS).collect();
        if runs.is_empty() {
            return Ok(Self(HashSet::new()));
        }
        let reader = commits.reader;
        let requested = (&FailureFilter::default(), (1, MOST_FAILURES));
        let joined = joined_failures(
            reader.store,
            reader.engine,
            commits.project,
            &runs,
            requested,
            now,
        )?;
        let failures = joined.failures.into_iter();
        let errors = failures.filter_map(|(place, failure)| {
            Some((joined.runs.get(place)?.run.id.to_string(), failure.fingerprint))
        });
        Ok(Self(errors.collect()))
    }

    fn starts<'f>(failures: &[&'f ExplainedFailure]) -> BTreeMap<i32, &'f FailingSince> {
        let starts = failures.iter().filter_map(|failure| first_failed(failure));
        starts.map(|start| (start.run_number, start)).collect()
    }

    /// The run with which the error of a group began.
    fn of<'f>(&self, failures: &[&'f ExplainedFailure]) -> Option<&'f FailingSince> {
        let starts = Self::starts(failures);
        let error = failures.first().and_then(|failure| failure.fingerprint.as_ref());
        let has_error = |start: &&&FailingSince| self.0.contains(&(start.run_id.clone(), error.cloned()));
        let with_error = starts.values().find(has_error);
        with_error.or(starts.values().next_back()).copied()
    }
}

fn named<'a>(failures: impl Iterator<Item = &'a ExplainedFailure>) -> Vec<String> {
    let names = failures.map(|failure| test_name(&failure.test_name));
    names.take(NAMED_TESTS.0).collect()
}

/// What else than the code may have failed these tests, as the end of a sentence.
fn doubt(failures: &[&ExplainedFailure]) -> &'static str {
    let mean = |part: fn(&ExplainedFailure) -> f64| {
        let sum: f64 = failures.iter().map(|failure| part(failure)).sum();
        sum / f64::from(u32::try_from(failures.len()).unwrap_or(u32::MAX))
    };
    if mean(|failure| failure.probabilities.environment) >= DOUBTED {
        "; it may be the environment"
    } else if mean(|failure| failure.probabilities.flake) >= DOUBTED {
        match failures.len() {
            1 => "; the test may be flaky",
            _ => "; the tests may be flaky",
        }
    } else {
        ""
    }
}

/// The commit to revert, as the end of a sentence.
fn revert_candidate(failures: &[&ExplainedFailure]) -> String {
    let candidate = failures.iter().find_map(|failure| candidate(failure));
    candidate.map_or_else(String::new, |candidate| format!("; revert candidate {candidate}"))
}

fn candidate(failure: &ExplainedFailure) -> Option<String> {
    failure.breakage.as_ref()?.revert.as_ref()?.candidate()
}

fn runs_of(edges: &[Edge], event: ChatEvent) -> BTreeMap<RunId, EdgeRun> {
    let edges = edges.iter().filter(|edge| edge.event == event);
    edges.filter_map(|edge| Some((edge.run?.id, edge.run?))).collect()
}

fn broken_test(edge: &Edge) -> Option<TestOrdinal> {
    edge.test().filter(|_| edge.event == ChatEvent::TestBroken)
}
