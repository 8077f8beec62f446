//! The content of a message about edges, read from the stored results.

mod commits;
mod failures;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use assay_answers::{failures::ExplainedFailure, links::PublicPages};
use assay_domain::{
    attempt::AttemptStatus,
    edge::{Edge, EdgeRun, EdgeSubject},
    project::Project,
    run::SomeTests,
    settings::ChatEvent,
    store::{EdgeNames, Outbox, OutboxProject, Store, StoreError},
    test::TestOrdinal,
    timestamp::Timestamp,
    verdict::VerdictStatus,
};
use assay_flakiness::Diagnose;

use self::commits::Commits;
pub(crate) use self::failures::Failures;
use crate::{
    Content, Group, Tone,
    content::{NAME_CHARS, SENTENCE_CHARS, bounded},
};

/// Most groups in a message.
const MOST_GROUPS: usize = 5;
/// Most tests that the first group names, and those that each other group names.
const NAMED_TESTS: (usize, usize) = (3, 1);

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
    let events: BTreeSet<ChatEvent> = edges.iter().map(|edge| edge.event).collect();
    let names = names(reader, &project.project, edges)?;
    let stable_branch = bounded(&project.stable_branch, NAME_CHARS);
    let mut commits = Commits::of(reader, &project.project);
    let (mut groups, mut more_broken, mut sum) = (Vec::new(), 0, None);
    // The stable branch is first.
    let mut lines: BTreeMap<Option<&str>, Vec<Edge>> = BTreeMap::new();
    for edge in edges {
        let of_line = lines.entry(edge.release_branch.as_deref()).or_default();
        of_line.push(edge.clone());
    }
    for (release_branch, edges) in &lines {
        let failures = Failures::read(reader, &project.project, edges, now)?;
        let (mut failed, more) = failures.groups(&mut commits, now)?;
        let broken = failed.len() + more;
        if release_branch.is_none() && broken > 1 {
            sum = Some((broken, failures.sum(&mut commits)?));
        }
        more_broken += more;
        failed.extend(failures.runs_without_failures(edges, &mut commits)?);
        failed.extend(failures.flaky(&mut commits)?);
        let branch = release_branch.map(|branch| bounded(branch, NAME_CHARS));
        if let Some(branch) = &branch {
            for group in &mut failed {
                group.sentence = format!("{branch}: {}", group.sentence);
            }
        }
        let branch = branch.as_ref().unwrap_or(&stable_branch);
        for group in [
            failed,
            recovered(edges, &names, (&mut commits, branch), now)?,
            failures.new_errors(edges, &names, &mut commits)?,
            of_tests(edges, &names, ChatEvent::FixDidNotHold, &mut commits)?,
            of_tests(edges, &names, ChatEvent::TestFlaky, &mut commits)?,
            of_tests(edges, &names, ChatEvent::TestResolved, &mut commits)?,
            of_tests(edges, &names, ChatEvent::FixHeld, &mut commits)?,
            edges.iter().filter_map(budget).collect(),
        ] {
            groups.extend(group);
        }
    }
    let more = groups.len().saturating_sub(MOST_GROUPS) + more_broken;
    groups.truncate(MOST_GROUPS);
    for (place, group) in groups.iter_mut().enumerate() {
        let named = if place == 0 { NAMED_TESTS.0 } else { NAMED_TESTS.1 };
        group.more += group.tests.len().saturating_sub(named);
        group.tests.truncate(named);
    }
    Ok(Content {
        project_id: project.project.id.to_string(),
        project: bounded(&project.project.name, SENTENCE_CHARS),
        organization: bounded(&project.organization, SENTENCE_CHARS),
        headline: headline(sum, &groups, more, &stable_branch),
        tone: tone(&events),
        events: events.into_iter().collect(),
        groups,
        more,
        url: reader.pages.map(|pages| pages.address(&commits.page())),
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
            EdgeSubject::Test { test, .. } | EdgeSubject::Fix { test } => tests.push(test),
            EdgeSubject::Error { signature } => errors.push(signature),
            EdgeSubject::Suite | EdgeSubject::Breakage | EdgeSubject::Budget { .. } => {}
        }
    }
    if tests.is_empty() && errors.is_empty() {
        return Ok(EdgeNames::default());
    }
    reader.outbox.edge_names(project.id, &tests, &errors)
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

/// The sentence about the flake budget.
fn budget(edge: &Edge) -> Option<Group> {
    let EdgeSubject::Budget { flaky } = edge.subject else {
        return None;
    };
    let flaky = tests(usize::try_from(flaky).unwrap_or_default());
    Some(line(match edge.event == ChatEvent::FlakeBudgetExceeded {
        true => format!("the flake budget is exceeded: {flaky} flaky"),
        false => format!("the flake budget is met again: {flaky} flaky"),
    }))
}

/// The tests that are flaky, that were flaky or broken and pass, or whose fix held or did not. Those of a suite that
/// recovered are its group's.
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
        let number = tests(of_event.len());
        let change = match (event, was_broken, of_event.len()) {
            (_, _, 0) => continue,
            (ChatEvent::TestResolved, true, 1) => format!("{number} passes again"),
            (ChatEvent::TestResolved, true, _) => format!("{number} pass again"),
            (ChatEvent::TestResolved, false, 1) => format!("{number} is not flaky any more"),
            (ChatEvent::TestResolved, false, _) => format!("{number} are not flaky any more"),
            (ChatEvent::FixHeld, ..) => format!("the fix of {number} held"),
            (ChatEvent::FixDidNotHold, ..) => format!("the fix of {number} did not hold"),
            (ChatEvent::TestFlaky, _, 1) => format!("{number} is flaky"),
            (
                ChatEvent::RunFailed
                | ChatEvent::RunRecovered
                | ChatEvent::TestFlaky
                | ChatEvent::TestBroken
                | ChatEvent::NewError
                | ChatEvent::FlakeBudgetExceeded
                | ChatEvent::FlakeBudgetMet
                | ChatEvent::RevertCandidate,
                ..,
            ) => format!("{number} are flaky"),
        };
        let as_of = match newest {
            // No commit made a test flaky.
            Some(run) if event == ChatEvent::TestFlaky => format!(" as of run {}", run.number),
            Some(run) => format!(" as of {}", commits.run_with_commit(run)?),
            None => String::new(),
        };
        groups.push(of_edges(&of_event, names, format!("{change}{as_of}")));
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
    let is_of_suite = |other: &Edge| other.event == ChatEvent::RunRecovered && other.line() == edge.line();
    edge.event == ChatEvent::TestResolved
        && edge.verdict_before() == Some(VerdictStatus::Broken)
        && edges.iter().any(is_of_suite)
}

/// The suites that recovered, with the tests that messages called broken and that pass.
fn recovered(
    edges: &[Edge],
    names: &EdgeNames,
    (commits, branch): (&mut Commits<'_>, &str),
    now: Timestamp,
) -> Result<Vec<Group>, StoreError> {
    let mut groups = Vec::new();
    for edge in edges {
        let (ChatEvent::RunRecovered, Some(run)) = (edge.event, edge.run) else {
            continue;
        };
        let (mut repaired, absent) = recovered_tests(edge, run, commits, now)?;
        let of_suite = |of_test: &&Edge| of_test.line() == edge.line() && is_of_recovered(of_test, edges);
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
        let run = commits.run_with_commit(run)?;
        let repaired_tests = match (repaired.len(), absent) {
            (0, 0) => String::new(),
            (number, 0) => format!(": {} repaired", tests(number)),
            (0, absent) => format!(": {} did not run", tests(absent)),
            (number, absent) => format!(": {} repaired, {absent} did not run", tests(number)),
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

/// The tests of a suite that messages called broken since it failed and not repaired, and that passed in the run with
/// which it recovered; and the number of those that did not run in it. The verdicts say when a message is sent, and not how
/// many tests it is about.
fn recovered_tests(
    recovered: &Edge,
    run: EdgeRun,
    commits: &Commits<'_>,
    now: Timestamp,
) -> Result<(BTreeMap<TestOrdinal, String>, usize), StoreError> {
    let (reader, project) = (commits.reader, commits.project);
    let settled = reader.outbox.settled(project.id)?;
    let of_suite = settled.iter().filter(|edge| edge.line() == recovered.line());
    let earlier = of_suite.filter(|edge| edge.run.is_some_and(|of| of.number < run.number));
    let earlier: Vec<&Edge> = earlier.collect();
    let Some(began) = earlier
        .iter()
        .rposition(|edge| edge.event == ChatEvent::RunFailed)
    else {
        return Ok((BTreeMap::new(), 0));
    };
    let since = earlier.get(began..).unwrap_or_default();
    let is_broken = |edge: &&&Edge| [ChatEvent::RunFailed, ChatEvent::TestBroken].contains(&edge.event);
    let broken: Vec<Edge> = since
        .iter()
        .filter(is_broken)
        .map(|edge| (*edge).clone())
        .collect();
    let reported = Failures::read(reader, project, &broken, now)?.broken;
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
    let reported: BTreeMap<TestOrdinal, ExplainedFailure> = reported
        .into_iter()
        .filter(|failure| !others.contains(&failure.test))
        .map(|failure| (failure.test, failure))
        .collect();
    let of_run = SomeTests::Of(reported.keys().copied().collect());
    let run = reader.store.run_with(project, run.id, &of_run)?;
    let entries = run.into_iter().flat_map(|run| run.tests);
    let passed: HashSet<(String, Option<String>)> = entries
        .filter(|test| test.status == AttemptStatus::Passed)
        .map(|test| (test.test_name, test.file_path))
        .collect();
    let number = reported.len();
    let repaired: BTreeMap<TestOrdinal, String> = reported
        .into_values()
        .filter(|failure| passed.contains(&(failure.test_name.clone(), failure.file_path.clone())))
        .map(|failure| (failure.test, test_name(&failure.test_name)))
        .collect();
    let absent = number.saturating_sub(repaired.len());
    Ok((repaired, absent))
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
        ChatEvent::RunFailed | ChatEvent::TestBroken | ChatEvent::NewError | ChatEvent::RevertCandidate => {
            true
        }
        ChatEvent::RunRecovered
        | ChatEvent::TestFlaky
        | ChatEvent::TestResolved
        | ChatEvent::FlakeBudgetExceeded
        | ChatEvent::FlakeBudgetMet
        | ChatEvent::FixHeld
        | ChatEvent::FixDidNotHold => false,
    };
    if events.iter().any(is_bad) {
        Tone::Bad
    } else if [
        ChatEvent::TestFlaky,
        ChatEvent::FlakeBudgetExceeded,
        ChatEvent::FixDidNotHold,
    ]
    .iter()
    .any(|event| events.contains(event))
    {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settle::tests::edge;

    #[test]
    fn the_flake_budget_is_one_sentence() {
        let sentence = |event, flaky| {
            let group = budget(&edge(0, 0, event, EdgeSubject::Budget { flaky }));
            group.unwrap().sentence
        };
        assert_eq!(
            sentence(ChatEvent::FlakeBudgetExceeded, 21),
            "the flake budget is exceeded: 21 tests flaky"
        );
        assert_eq!(
            sentence(ChatEvent::FlakeBudgetMet, 1),
            "the flake budget is met again: 1 test flaky"
        );
        assert_eq!(
            budget(&edge(0, 0, ChatEvent::RunFailed, EdgeSubject::Suite)),
            None
        );
    }
}
