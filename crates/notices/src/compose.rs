//! The content of a message about edges, read from the stored results.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use assay_domain::{
    edge::{Edge, EdgeSubject},
    id::RunId,
    project::Project,
    settings::ChatEvent,
    store::{EdgeNames, Outbox, OutboxProject, Store, StoreError},
    test::TestOrdinal,
    timestamp::Timestamp,
    verdict::VerdictStatus,
};
use assay_explain::{
    failures::{ExplainedFailure, FailureFilter, joined_failures},
    links::{self, PublicPages},
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
    let branch = &project.stable_branch;
    let mut groups = failures.groups();
    let shown: HashSet<&str> = failures.fingerprints().collect();
    groups.extend(failures.runs_without_failures(edges));
    groups.extend(new_errors(edges, &names, &shown, branch));
    for (event, sentence) in [
        (ChatEvent::TestFlaky, "became flaky"),
        (ChatEvent::TestResolved, "healthy again"),
    ] {
        groups.extend(of_tests(edges, &names, event, sentence));
    }
    groups.extend(edges.iter().filter_map(|edge| recovered(edge, branch)));
    let more = groups.len().saturating_sub(MOST_GROUPS);
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
        headline: headline(&groups, more, branch),
        tone: tone(&events),
        events: events.into_iter().collect(),
        groups,
        more,
        url: reader
            .pages
            .map(|pages| pages.address(&failures.page(&project.project, edges))),
    })
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
    /// In the order of their probability that a change caused them.
    shown: Vec<ExplainedFailure>,
    /// Those beyond the most that are read.
    unread: u64,
    /// Revision and suite of the runs that were read.
    runs: HashMap<RunId, Option<String>>,
    /// The runs with a failure in the message.
    with_failures: HashSet<RunId>,
    /// The runs with a failure, in the message or not.
    with_any: HashSet<RunId>,
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
        let of_suites: BTreeSet<RunId> = runs_of(edges, ChatEvent::RunFailed);
        let broken: HashSet<TestOrdinal> = edges.iter().filter_map(broken_test).collect();
        let mut runs: Vec<RunId> = of_suites.iter().copied().collect();
        let of_tests = runs_of(edges, ChatEvent::TestBroken);
        runs.extend(of_tests.difference(&of_suites));
        runs.truncate(MOST_RUNS);
        let mut found = Self {
            shown: Vec::new(),
            unread: 0,
            runs: HashMap::new(),
            with_failures: HashSet::new(),
            with_any: HashSet::new(),
            read: HashSet::new(),
        };
        if runs.is_empty() {
            return Ok(found);
        }
        let requested = (1, MOST_FAILURES);
        let joined = joined_failures(
            reader.store,
            reader.engine,
            project,
            &runs,
            &FailureFilter::default(),
            requested,
            now,
        )?;
        let is_flaky = |failure: &ExplainedFailure| {
            let status = failure.verdict.map(|verdict| verdict.status);
            status == Some(VerdictStatus::Flaky)
        };
        let mut tests = HashSet::new();
        for (place, failure) in joined.failures {
            let Some(run) = joined.runs.get(place).map(|joined| joined.run.id) else {
                continue;
            };
            if failure.status.is_failure() {
                found.with_any.insert(run);
            }
            let is_shown = match of_suites.contains(&run) {
                true => !is_flaky(&failure) || broken.contains(&failure.test),
                false => broken.contains(&failure.test),
            };
            if is_shown && failure.status.is_failure() {
                found.with_failures.insert(run);
                // Several suites may have the test.
                if tests.insert(failure.test) {
                    found.shown.push(failure);
                }
            }
        }
        found.unread = joined.total.saturating_sub(u64::from(MOST_FAILURES));
        if found.unread == 0 {
            found.read.extend(runs);
        }
        let sha = |run: assay_domain::cause::FailedRun| (run.id, run.commit_sha);
        found.runs = joined.runs.into_iter().map(|joined| sha(joined.run)).collect();
        Ok(found)
    }

    fn fingerprints(&self) -> impl Iterator<Item = &str> {
        self.shown
            .iter()
            .filter_map(|failure| failure.fingerprint.as_deref())
    }

    /// The failures by error and by the run with which they began, the largest group first.
    fn groups(&self) -> Vec<Group> {
        let mut groups: BTreeMap<(Option<&str>, String), Vec<&ExplainedFailure>> = BTreeMap::new();
        for failure in &self.shown {
            let key = (failure.fingerprint.as_deref(), since(failure));
            groups.entry(key).or_default().push(failure);
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(_, failures)| std::cmp::Reverse(failures.len()));
        let mut unread = usize::try_from(self.unread).unwrap_or(usize::MAX);
        let of_group =
            |((fingerprint, since), failures): ((Option<&str>, String), Vec<&ExplainedFailure>)| {
                let number = failures.len();
                // Failures beyond the most that are read count as the largest group's.
                let unread = std::mem::take(&mut unread);
                let one_error = match (number, fingerprint) {
                    (1, _) => "",
                    (_, Some(_)) => " with one error",
                    (_, None) => " without an error text",
                };
                Group {
                    sentence: format!("{} broke{one_error}{since}", tests(number.saturating_add(unread))),
                    error: failures
                        .iter()
                        .find_map(|failure| failure.title.as_deref())
                        .map(error_title),
                    tests: failures
                        .iter()
                        .take(NAMED_TESTS.0)
                        .map(|failure| test_name(&failure.test_name))
                        .collect(),
                    more: number.saturating_sub(NAMED_TESTS.0).saturating_add(unread),
                }
            };
        groups.into_iter().map(of_group).collect()
    }

    /// The failed runs of which the message has no failure: they failed outside of their tests, were deleted, or are more
    /// than are read.
    fn runs_without_failures(&self, edges: &[Edge]) -> Vec<Group> {
        let failed = edges.iter().filter(|edge| edge.event == ChatEvent::RunFailed);
        let without = failed.filter_map(|edge| {
            let run = edge.run?;
            let is_shown = self.with_failures.contains(&run.id);
            (!is_shown).then(|| Group {
                sentence: format!(
                    "run {} failed{}{}",
                    run.number,
                    match (self.with_any.contains(&run.id), self.read.contains(&run.id)) {
                        (_, false) => "",
                        (true, true) => " by tests that are flaky",
                        (false, true) => " with an error outside of its tests",
                    },
                    of_suite(edge)
                ),
                error: None,
                tests: Vec::new(),
                more: 0,
            })
        });
        without.collect()
    }

    /// The page that shows the edges: the commit of a run, else the run, else the project.
    fn page(&self, project: &Project, edges: &[Edge]) -> String {
        let runs = || edges.iter().filter_map(|edge| edge.run);
        let shown = runs()
            .find(|run| self.with_failures.contains(&run.id))
            .or_else(|| runs().next());
        match shown.map(|run| (run, self.runs.get(&run.id).and_then(Option::as_deref))) {
            Some((_, Some(sha))) => links::commit(project.id, sha),
            Some((run, None)) => links::run(project.id, &run.id),
            None => links::project(project.id, ""),
        }
    }
}

fn runs_of(edges: &[Edge], event: ChatEvent) -> BTreeSet<RunId> {
    let edges = edges.iter().filter(|edge| edge.event == event);
    edges.filter_map(|edge| Some(edge.run?.id)).collect()
}

fn broken_test(edge: &Edge) -> Option<TestOrdinal> {
    edge.test().filter(|_| edge.event == ChatEvent::TestBroken)
}

/// Where a failure began, as the end of a sentence.
fn since(failure: &ExplainedFailure) -> String {
    let Some(breakage) = &failure.breakage else {
        return String::new();
    };
    let first = &breakage.first_failed;
    match &first.revision {
        Some(revision) => {
            let sha: String = revision.chars().take(SHA_CHARS).collect();
            format!(" since {}", bounded(&sha, SHA_CHARS))
        }
        None => format!(" since run {}", first.run_number),
    }
}

fn new_errors<'a>(
    edges: &'a [Edge],
    names: &'a EdgeNames,
    shown: &'a HashSet<&str>,
    branch: &'a str,
) -> impl Iterator<Item = Group> + 'a {
    edges.iter().filter_map(move |edge| {
        let EdgeSubject::Error { signature } = edge.subject else {
            return None;
        };
        let (_, fingerprint, title) = names.errors.iter().find(|(number, ..)| *number == signature)?;
        (!shown.contains(fingerprint.as_str())).then(|| Group {
            sentence: format!("a new error occurred on {}", bounded(branch, NAME_CHARS)),
            error: Some(error_title(title)),
            tests: Vec::new(),
            more: 0,
        })
    })
}

fn of_tests(edges: &[Edge], names: &EdgeNames, event: ChatEvent, sentence: &str) -> Option<Group> {
    let of_event: Vec<TestOrdinal> = edges
        .iter()
        .filter(|edge| edge.event == event)
        .filter_map(Edge::test)
        .collect();
    let number = of_event.len();
    let verb = match (event, number) {
        (ChatEvent::TestResolved, 1) => "is ",
        (ChatEvent::TestResolved, _) => "are ",
        (
            ChatEvent::RunFailed
            | ChatEvent::RunRecovered
            | ChatEvent::TestFlaky
            | ChatEvent::TestBroken
            | ChatEvent::NewError,
            _,
        ) => "",
    };
    let names: HashMap<TestOrdinal, &str> = names
        .tests
        .iter()
        .map(|(test, name)| (*test, name.name.as_str()))
        .collect();
    let named = of_event.iter().filter_map(|test| names.get(test));
    let named: Vec<String> = named.take(NAMED_TESTS.0).map(|name| test_name(name)).collect();
    (number > 0).then(|| Group {
        sentence: format!("{} {verb}{sentence}", tests(number)),
        error: None,
        more: number.saturating_sub(named.len()),
        tests: named,
    })
}

fn recovered(edge: &Edge, branch: &str) -> Option<Group> {
    let run = edge.run?;
    (edge.event == ChatEvent::RunRecovered).then(|| Group {
        sentence: format!(
            "{} passes again on {} as of run {}",
            match edge.suite.is_empty() {
                true => "the suite".to_owned(),
                false => bounded(&edge.suite, NAME_CHARS),
            },
            bounded(branch, NAME_CHARS),
            run.number
        ),
        error: None,
        tests: Vec::new(),
        more: 0,
    })
}

fn headline(groups: &[Group], more: usize, branch: &str) -> String {
    let Some(first) = groups.first() else {
        return format!("something changed on {}", bounded(branch, NAME_CHARS));
    };
    let others = groups.len() - 1 + more;
    let sentence = bounded(&first.sentence, SENTENCE_CHARS);
    match others {
        0 => sentence,
        1 => format!("{sentence}, and 1 more change"),
        _ => format!("{sentence}, and {others} more changes"),
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
