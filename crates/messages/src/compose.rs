//! The content of a message about edges, read from the stored results.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, hash_map::Entry};

use assay_answers::{
    failures::{ExplainedFailure, FailureFilter, joined_failures},
    links::{self, PublicPages},
};
use assay_domain::{
    edge::{Edge, EdgeRun, EdgeSubject},
    id::RunId,
    project::Project,
    revision::tested_or_commit,
    run::{Run, RunDetail, SomeTests},
    settings::ChatEvent,
    store::{EdgeNames, Outbox, OutboxProject, Store, StoreError},
    test::TestOrdinal,
    timestamp::Timestamp,
    verdict::{FailingSince, VerdictStatus},
};
use assay_flakiness::Diagnose;

use crate::{
    Content, Group, Tone,
    content::{NAME_CHARS, SENTENCE_CHARS, bounded},
};

/// Most failures that are read for one message.
const MOST_FAILURES: u32 = 1_000;
/// Most runs whose failures are read for one message.
const MOST_RUNS: usize = 10;
/// Most groups in a message.
const MOST_GROUPS: usize = 5;
/// Most tests that the first group names, and those that each other group names.
const NAMED_TESTS: (usize, usize) = (3, 1);
/// Characters of a commit that are shown.
const SHA_CHARS: usize = 8;
/// Longest name of an author in a message, in characters.
const AUTHOR_CHARS: usize = 40;
/// The probability of another cause than the code from which a message names it.
const DOUBTED: f64 = 0.4;

/// What composing reads.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    /// The stored results.
    pub store: &'a dyn Store,
    /// The outbox.
    pub outbox: &'a dyn Outbox,
    /// The engine.
    pub engine: &'a dyn Diagnose,
    /// The public address of the pages.
    pub pages: Option<&'a PublicPages>,
}

impl std::fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("pages", &self.pages)
            .finish_non_exhaustive()
    }
}

/// The content of a message about these edges.
///
/// # Errors
/// If the store fails.
pub fn changes(
    reader: Reader<'_>,
    project: &OutboxProject,
    edges: &[Edge],
    now: Timestamp,
) -> Result<Content, StoreError> {
    let names = names(reader, &project.project, edges)?;
    let failures = Failures::read(reader, &project.project, edges, now)?;
    let branch = bounded(&project.stable_branch, NAME_CHARS);
    let mut commits = Commits::of(reader, &project.project, &branch);
    let (mut groups, more_broken) = failures.groups(&mut commits, now)?;
    let broken = groups.len() + more_broken;
    let sum = match broken {
        0 | 1 => None,
        _ => Some((broken, failures.sum(&mut commits)?)),
    };
    for group in [
        failures.runs_without_failures(edges, &mut commits)?,
        recovered(edges, &names, &mut commits, now)?,
        failures.flaky(&mut commits)?,
        failures.new_errors(edges, &names, &mut commits)?,
        of_tests(edges, &names, ChatEvent::TestFlaky, &mut commits)?,
        of_tests(edges, &names, ChatEvent::TestResolved, &mut commits)?,
    ] {
        groups.extend(group);
    }
    let more = groups.len().saturating_sub(MOST_GROUPS) + more_broken;
    groups.truncate(MOST_GROUPS);
    for (place, group) in groups.iter_mut().enumerate() {
        let named = if place == 0 { NAMED_TESTS.0 } else { NAMED_TESTS.1 };
        group.more += group.tests.len().saturating_sub(named);
        group.tests.truncate(named);
    }
    let events: BTreeSet<ChatEvent> = edges.iter().map(|edge| edge.event).collect();
    Ok(Content {
        project_id: project.project.id.to_string(),
        project: bounded(&project.project.name, SENTENCE_CHARS),
        organization: bounded(&project.organization, SENTENCE_CHARS),
        headline: headline(sum, &groups, more, &branch),
        tone: tone(&events),
        events: events.into_iter().collect(),
        groups,
        more,
        url: reader.pages.map(|pages| pages.address(&commits.page())),
    })
}

/// The runs that a message names, with their commits and authors.
struct Commits<'a> {
    reader: Reader<'a>,
    project: &'a Project,
    branch: &'a str,
    runs: HashMap<RunId, Option<RunDetail>>,
    /// The page of the first run that was named.
    page: Option<String>,
}

impl<'a> Commits<'a> {
    fn of(reader: Reader<'a>, project: &'a Project, branch: &'a str) -> Self {
        Self {
            reader,
            project,
            branch,
            runs: HashMap::new(),
            page: None,
        }
    }

    fn run(&mut self, id: RunId) -> Result<Option<&RunDetail>, StoreError> {
        if let Entry::Vacant(unknown) = self.runs.entry(id) {
            unknown.insert(
                self.reader
                    .store
                    .run_with(self.project, id, &SomeTests::Of(Vec::new()))?,
            );
        }
        let run = self.runs.get(&id).and_then(Option::as_ref);
        if let (None, Some(detail)) = (&self.page, run) {
            self.page = Some(match revision(&detail.run) {
                Some(revision) => links::commit(self.project.id, revision),
                None => links::run(self.project.id, &id),
            });
        }
        Ok(run)
    }

    /// The commit of a run with its author, such as `3fa9c1d2 by Ada`; none if it is unknown.
    fn commit(&mut self, id: RunId) -> Result<Option<String>, StoreError> {
        Ok(self.run(id)?.and_then(|detail| {
            let sha: String = revision(&detail.run)?.chars().take(SHA_CHARS).collect();
            let sha = bounded(&sha, SHA_CHARS);
            Some(match &detail.run.author_name {
                Some(author) => format!("{sha} by {}", bounded(author, AUTHOR_CHARS)),
                None => sha,
            })
        }))
    }

    /// A run with its commit, such as `run 12 (3fa9c1d2 by Ada)`.
    fn run_with_commit(&mut self, run: EdgeRun) -> Result<String, StoreError> {
        Ok(match self.commit(run.id)? {
            Some(commit) => format!("run {} ({commit})", run.number),
            None => format!("run {}", run.number),
        })
    }

    fn page(self) -> String {
        let project = || links::project(self.project.id, "");
        self.page.unwrap_or_else(project)
    }
}

fn revision(run: &Run) -> Option<&str> {
    tested_or_commit(run.tested_revision.as_deref(), run.commit_sha.as_deref())
}

/// The content of a message that only shows that a target works.
pub fn test_message(pages: Option<&PublicPages>) -> Content {
    Content {
        project_id: String::new(),
        project: "Assay".to_owned(),
        organization: String::new(),
        headline: "this is a test message; messages about your tests arrive here".to_owned(),
        tone: Tone::Neutral,
        events: Vec::new(),
        groups: Vec::new(),
        more: 0,
        url: pages.map(|pages| pages.address("/")),
    }
}

pub(crate) fn names(reader: Reader<'_>, project: &Project, edges: &[Edge]) -> Result<EdgeNames, StoreError> {
    let mut tests = Vec::new();
    let mut errors = Vec::new();
    for edge in edges {
        match edge.subject {
            EdgeSubject::Test { test, .. } => tests.push(test),
            EdgeSubject::Error { signature } => errors.push(signature),
            EdgeSubject::Suite => {}
        }
    }
    if tests.is_empty() && errors.is_empty() {
        return Ok(EdgeNames::default());
    }
    reader.outbox.edge_names(project.id, &tests, &errors)
}

/// The failures of the edges.
struct Failures {
    /// Those that the message calls broken, in the order of their probability that a change caused them.
    broken: Vec<ExplainedFailure>,
    /// The failures of flaky tests in a run that failed.
    flaky: Vec<(EdgeRun, ExplainedFailure)>,
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
    fn read(
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
        for event in [ChatEvent::TestBroken, ChatEvent::NewError] {
            let of_event = runs_of(edges, event).into_keys();
            runs.extend(of_event.filter(|run| !of_suites.contains_key(run)));
        }
        runs.dedup();
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
        let joined = joined_failures(
            reader.store,
            reader.engine,
            project,
            &runs,
            &FailureFilter::default(),
            (1, MOST_FAILURES),
            now,
        )?;
        let is_flaky = |failure: &ExplainedFailure| {
            let status = failure.verdict.map(|verdict| verdict.status);
            status == Some(VerdictStatus::Flaky) && !broken.contains(&failure.test)
        };
        let failures: Vec<(RunId, ExplainedFailure)> = joined
            .failures
            .into_iter()
            .filter(|(_, failure)| failure.status.is_failure())
            .filter_map(|(place, failure)| Some((joined.runs.get(place)?.run.id, failure)))
            .collect();
        // A flaky test that failed with the error of others did not fail by itself.
        let red: HashSet<(RunId, &str)> = failures
            .iter()
            .filter(|(_, failure)| !is_flaky(failure))
            .filter_map(|(run, failure)| Some((*run, failure.fingerprint.as_deref()?)))
            .collect();
        let is_red = |run: RunId, failure: &ExplainedFailure| {
            let error = failure.fingerprint.as_deref();
            !is_flaky(failure) || error.is_some_and(|error| red.contains(&(run, error)))
        };
        let is_red: Vec<bool> = failures
            .iter()
            .map(|(run, failure)| is_red(*run, failure))
            .collect();
        // A message about some tests of an error counts all that failed with it.
        let of_broken: HashSet<(RunId, &str)> = failures
            .iter()
            .filter(|(_, failure)| broken.contains(&failure.test))
            .filter_map(|(run, failure)| Some((*run, failure.fingerprint.as_deref()?)))
            .collect();
        let shares_error: Vec<bool> = failures
            .iter()
            .map(|(run, failure)| {
                let error = failure.fingerprint.as_deref();
                error.is_some_and(|error| of_broken.contains(&(*run, error)))
            })
            .collect();
        let mut tests = HashSet::new();
        for (((run, failure), is_red), shares_error) in failures.into_iter().zip(is_red).zip(shares_error) {
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
    fn groups(&self, commits: &mut Commits<'_>, now: Timestamp) -> Result<(Vec<Group>, usize), StoreError> {
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
                    "{} broke{one_error}{}{}",
                    tests(number.saturating_add(unread)),
                    since(starts.of(&failures), commits)?,
                    doubt(&failures)
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
    fn sum(&self, commits: &mut Commits<'_>) -> Result<String, StoreError> {
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
    fn flaky(&self, commits: &mut Commits<'_>) -> Result<Vec<Group>, StoreError> {
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
    fn runs_without_failures(
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
    fn new_errors(
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
        let (reader, all) = (commits.reader, FailureFilter::default());
        let page = (1, MOST_FAILURES);
        let joined = joined_failures(
            reader.store,
            reader.engine,
            commits.project,
            &runs,
            &all,
            page,
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

/// A group of one sentence.
const fn line(sentence: String) -> Group {
    Group {
        sentence,
        error: None,
        tests: Vec::new(),
        more: 0,
    }
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

fn runs_of(edges: &[Edge], event: ChatEvent) -> BTreeMap<RunId, EdgeRun> {
    let edges = edges.iter().filter(|edge| edge.event == event);
    edges.filter_map(|edge| Some((edge.run?.id, edge.run?))).collect()
}

fn broken_test(edge: &Edge) -> Option<TestOrdinal> {
    edge.test().filter(|_| edge.event == ChatEvent::TestBroken)
}

/// Where failures began, as the end of a sentence.
fn since(first_failed: Option<&FailingSince>, commits: &mut Commits<'_>) -> Result<String, StoreError> {
    let Some(first_failed) = first_failed else {
        return Ok(String::new());
    };
    let commit = match first_failed.run_id.parse() {
        Ok(run) => commits.commit(run)?,
        Err(_) => None,
    };
    Ok(match commit {
        Some(commit) => format!(" since {commit}"),
        None => format!(" since run {}", first_failed.run_number),
    })
}

/// The tests that became flaky, or that were flaky or broken and pass. Those of a suite that recovered are its group's.
fn of_tests(
    edges: &[Edge],
    names: &EdgeNames,
    event: ChatEvent,
    commits: &mut Commits<'_>,
) -> Result<Vec<Group>, StoreError> {
    let mut groups = Vec::new();
    for was_broken in [true, false] {
        let of_event: Vec<&Edge> = edges
            .iter()
            .filter(|edge| edge.event == event && !is_of_recovered(edge, edges))
            .filter(|edge| (edge.verdict_before() == Some(VerdictStatus::Broken)) == was_broken)
            .collect();
        let newest = of_event
            .iter()
            .filter_map(|edge| edge.run)
            .max_by_key(|run| run.number);
        let words = match (event, was_broken, of_event.len()) {
            (_, _, 0) => continue,
            (ChatEvent::TestResolved, true, 1) => "passes again",
            (ChatEvent::TestResolved, true, _) => "pass again",
            (ChatEvent::TestResolved, false, 1) => "is not flaky any more",
            (ChatEvent::TestResolved, false, _) => "are not flaky any more",
            (
                ChatEvent::RunFailed
                | ChatEvent::RunRecovered
                | ChatEvent::TestFlaky
                | ChatEvent::TestBroken
                | ChatEvent::NewError,
                ..,
            ) => "became flaky",
        };
        let as_of = match newest {
            Some(run) => format!(" as of {}", commits.run_with_commit(run)?),
            None => String::new(),
        };
        groups.push(of_edges(
            &of_event,
            names,
            format!("{} {words}{as_of}", tests(of_event.len())),
        ));
    }
    Ok(groups)
}

/// A group with the names of the tests of edges.
fn of_edges(edges: &[&Edge], names: &EdgeNames, sentence: String) -> Group {
    let known: HashMap<TestOrdinal, &str> = names
        .tests
        .iter()
        .map(|(test, name)| (*test, name.name.as_str()))
        .collect();
    let named = edges.iter().filter_map(|edge| known.get(&edge.test()?));
    let named: Vec<String> = named.take(NAMED_TESTS.0).map(|name| test_name(name)).collect();
    Group {
        sentence,
        error: None,
        more: edges.len().saturating_sub(named.len()),
        tests: named,
    }
}

/// Whether an edge is about a broken test that passes again with its suite.
fn is_of_recovered(edge: &Edge, edges: &[Edge]) -> bool {
    let is_of_suite = |other: &Edge| other.event == ChatEvent::RunRecovered && other.suite == edge.suite;
    edge.event == ChatEvent::TestResolved
        && edge.verdict_before() == Some(VerdictStatus::Broken)
        && edges.iter().any(is_of_suite)
}

/// The suites that recovered, with the tests that were told broken and pass.
fn recovered(
    edges: &[Edge],
    names: &EdgeNames,
    commits: &mut Commits<'_>,
    now: Timestamp,
) -> Result<Vec<Group>, StoreError> {
    let mut groups = Vec::new();
    for edge in edges {
        let (ChatEvent::RunRecovered, Some(run)) = (edge.event, edge.run) else {
            continue;
        };
        let mut repaired = told_broken(edge, run, commits, now)?;
        let of_suite = |of_test: &&Edge| of_test.suite == edge.suite && is_of_recovered(of_test, edges);
        let tests_of_edges = edges.iter().filter(of_suite).filter_map(Edge::test);
        for test in tests_of_edges {
            let known = names.tests.iter().find(|(known, _)| *known == test);
            repaired.extend(known.map(|(test, name)| (*test, test_name(&name.name))));
        }
        let suite = match edge.suite.is_empty() {
            true => "the suite".to_owned(),
            false => bounded(&edge.suite, NAME_CHARS),
        };
        let failed = commits.run(run.id)?.map_or(0, |detail| detail.counts.failed);
        let (run, branch) = (commits.run_with_commit(run)?, commits.branch);
        let repaired_tests = match repaired.len() {
            0 => String::new(),
            number => format!(": {} repaired", tests(number)),
        };
        let sentence = match failed {
            0 => format!("{suite} passes again on {branch} as of {run}{repaired_tests}"),
            _ => format!("what broke in {suite} is repaired on {branch} as of {run}{repaired_tests}"),
        };
        groups.push(Group {
            more: repaired.len().saturating_sub(NAMED_TESTS.0),
            tests: repaired.into_values().take(NAMED_TESTS.0).collect(),
            ..line(sentence)
        });
    }
    Ok(groups)
}

/// The tests of a suite that were told broken since it failed, that were not told repaired, and that do not fail in the run
/// with which it recovered. The verdicts say when a message is sent, and not how many tests it is about.
fn told_broken(
    recovered: &Edge,
    run: EdgeRun,
    commits: &Commits<'_>,
    now: Timestamp,
) -> Result<BTreeMap<TestOrdinal, String>, StoreError> {
    let (reader, project) = (commits.reader, commits.project);
    let settled = reader.outbox.settled(project.id)?;
    let of_suite = settled.iter().filter(|edge| edge.suite == recovered.suite);
    let earlier = of_suite.filter(|edge| edge.run.is_some_and(|of| of.number < run.number));
    let earlier: Vec<&Edge> = earlier.collect();
    let Some(began) = earlier
        .iter()
        .rposition(|edge| edge.event == ChatEvent::RunFailed)
    else {
        return Ok(BTreeMap::new());
    };
    let since = earlier.get(began..).unwrap_or_default();
    let is_broken = |edge: &&&Edge| [ChatEvent::RunFailed, ChatEvent::TestBroken].contains(&edge.event);
    let told: Vec<Edge> = since
        .iter()
        .filter(is_broken)
        .map(|edge| (*edge).clone())
        .collect();
    let told = Failures::read(reader, project, &told, now)?.broken;
    let of_run = Edge {
        event: ChatEvent::RunFailed,
        ..recovered.clone()
    };
    let still = Failures::read(reader, project, &[of_run], now)?;
    let flaky = still.flaky.iter().map(|(_, failure)| failure.test);
    let mut others: HashSet<TestOrdinal> = still
        .broken
        .iter()
        .map(|failure| failure.test)
        .chain(flaky)
        .collect();
    let resolved = since.iter().filter(|edge| edge.event == ChatEvent::TestResolved);
    others.extend(resolved.filter_map(|edge| edge.test()));
    let repaired = told.into_iter().filter(|failure| !others.contains(&failure.test));
    Ok(repaired
        .map(|failure| (failure.test, test_name(&failure.test_name)))
        .collect())
}

/// The first sentence, and the number of changes that it does not say. `sum` is the sentence of several groups.
fn headline(sum: Option<(usize, String)>, groups: &[Group], more: usize, branch: &str) -> String {
    let first = groups.first().map(|group| (1, group.sentence.clone()));
    let Some((said, sentence)) = sum.or(first) else {
        return format!("something changed on {branch}");
    };
    let sentence = bounded(&sentence, SENTENCE_CHARS);
    match (groups.len() + more).saturating_sub(said) {
        0 => sentence,
        1 => format!("{sentence}, and 1 more change"),
        others => format!("{sentence}, and {others} more changes"),
    }
}

fn tone(events: &BTreeSet<ChatEvent>) -> Tone {
    let is_bad = |event: &ChatEvent| match event {
        ChatEvent::RunFailed | ChatEvent::TestBroken | ChatEvent::NewError => true,
        ChatEvent::RunRecovered | ChatEvent::TestFlaky | ChatEvent::TestResolved => false,
    };
    if events.iter().any(is_bad) {
        Tone::Bad
    } else if events.contains(&ChatEvent::TestFlaky) {
        Tone::Neutral
    } else {
        Tone::Good
    }
}

fn of_suite(edge: &Edge) -> String {
    match edge.suite.is_empty() {
        true => String::new(),
        false => format!(" ({})", bounded(&edge.suite, NAME_CHARS)),
    }
}

pub(crate) fn tests(number: usize) -> String {
    match number {
        1 => "1 test".to_owned(),
        _ => format!("{number} tests"),
    }
}

pub(crate) fn test_name(name: &str) -> String {
    bounded(name, NAME_CHARS)
}

pub(crate) fn error_title(title: &str) -> String {
    bounded(title, SENTENCE_CHARS)
}
