//! Issues about the tests and errors that cost most: which to open, to bring up to date, and to close.
//!
//! `problem` says what the server knows of a test or an error, `text` writes it as the part of an issue's text that is not
//! a person's, and [`plan`] compares both with the issues that exist.

mod problem;
mod text;

use std::time::Duration;

use assay_domain::{
    issue::{Issue, IssueAction},
    signature::Signature,
    test::TestName,
    verdict::VerdictEntry,
};
use serde::Serialize;

pub use problem::{Place, Problem};
use problem::{State, Subject, is_about_test, is_broken};
pub use text::Section;

/// Most tests without an issue whose fixes are looked up in a call.
const MOST_NEW: usize = 50;

/// One thing to do on the code host.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change<'a> {
    /// What is done.
    pub action: IssueAction,
    /// The number of the issue; none if it is to be created.
    pub number: Option<u64>,
    /// The title of the issue.
    pub title: &'a str,
    /// Why the change is made, as a sentence.
    pub why: String,
    /// The test or the error.
    #[serde(skip)]
    pub problem: &'a Problem,
    /// The next section of the issue.
    #[serde(skip)]
    pub section: Section,
}

/// The tests whose fixes [`plan`] needs to know: those with an open issue, and those that cost enough and have none, broken
/// ones first. A test whose issue a person closed gets no other one.
pub fn tests<'l>(
    listed: &'l [VerdictEntry],
    issues: &[Issue],
    least: Duration,
) -> Vec<(TestName, Option<&'l VerdictEntry>)> {
    let known = sections(issues);
    let (mut tests, mut new) = (Vec::new(), Vec::new());
    for entry in listed {
        let is_own = |(section, _): &&(Section, _)| is_about_test(&section.subject, entry);
        let mut own = known.iter().filter(is_own);
        let lost = entry.figures.time_lost_ms.map(Duration::from_millis);
        let is_costly = is_broken(entry) || lost.is_some_and(|lost| lost >= least);
        if own.clone().any(|(_, issue)| issue.is_open()) {
            tests.push((entry.test(), Some(entry)));
        } else if is_costly && own.all(|(section, _)| section.state.is_final()) {
            new.push((entry.test(), Some(entry)));
        }
    }
    new.sort_by_key(|(_, entry)| !entry.is_some_and(is_broken));
    tests.extend(new.into_iter().take(MOST_NEW));
    for (section, _) in known.iter().filter(|(_, issue)| issue.is_open()) {
        if let Subject::Test(test) = &section.subject
            && !listed.iter().any(|entry| is_about_test(&section.subject, entry))
            && !tests.iter().any(|(known, _)| known == test)
        {
            tests.push((test.clone(), None));
        }
    }
    tests
}

/// The errors that several tests had in at least this many runs, and those with an open issue. That of one test belongs to
/// the test.
pub fn errors<'l>(
    listed: &'l [Signature],
    issues: &[Issue],
    least_runs: u64,
) -> impl Iterator<Item = &'l Signature> {
    let known = sections(issues).into_iter();
    let open = known.filter_map(|(section, issue)| issue.is_open().then_some(section.subject));
    let open: Vec<Subject> = open.collect();
    listed.iter().filter(move |error| {
        error.test_count > 1 && error.run_count >= least_runs
            || open.contains(&Subject::Error(error.fingerprint.clone()))
    })
}

/// The issues with a section, the oldest first. A list that was read in pages may have an issue twice.
fn sections(issues: &[Issue]) -> Vec<(Section, &Issue)> {
    let found = issues
        .iter()
        .filter_map(|issue| Some((Section::find(issue.text())?, issue)));
    let mut found: Vec<_> = found.collect();
    found.sort_unstable_by_key(|(_, issue)| issue.number);
    found.dedup_by_key(|(_, issue)| issue.number);
    found
}

/// The changes of all problems, the most urgent first: edges, then new issues in the order of the problems, then texts.
/// A closed issue is never opened again. It has a successor only if it was closed here.
pub fn plan<'a>(problems: &'a [Problem], issues: &'a [Issue]) -> Vec<Change<'a>> {
    let known = sections(issues);
    let mut changes = Vec::new();
    for problem in problems {
        let change = |action, of: Option<&(Section, &'a Issue)>, state, why: &str| Change {
            action,
            number: of.map(|(_, issue)| issue.number),
            title: of.map_or(&problem.title, |(_, issue)| &issue.title),
            why: why.to_owned(),
            problem,
            section: Section::of(problem, state, of.map(|(section, _)| section)),
        };
        let is_own = |(section, _): &&(Section, _)| problem.is_about(&section.subject);
        let own = known.iter().filter(is_own);
        let (open, closed): (Vec<_>, Vec<_>) = own.partition(|(_, issue)| issue.is_open());
        let Some((first, others)) = open.split_first() else {
            // A person may have removed the section from an issue.
            let is_removed =
                |issue: &Issue| problem.has_title(&issue.title) && Section::find(issue.text()).is_none();
            let is_finished = closed.iter().all(|(section, _)| section.state.is_final());
            if problem.state.needs_an_issue() && is_finished && !issues.iter().any(is_removed) {
                changes.push(change(
                    IssueAction::Create,
                    None,
                    problem.state,
                    &problem.sentence,
                ));
            }
            continue;
        };
        let (section, issue) = first;
        // Two jobs at the same time may create both. A person may have opened the second again.
        let new_seconds = others
            .iter()
            .filter(|(section, _)| section.state != State::Second);
        let why = format!("#{} is about the same.", issue.number);
        changes
            .extend(new_seconds.map(|second| change(IssueAction::Close, Some(second), State::Second, &why)));
        let is_edge = problem.state != section.state;
        let action = match (is_edge, problem.state == State::Held) {
            (true, true) => IssueAction::Close,
            (true, false) => IssueAction::Comment,
            (false, _) => IssueAction::Edit,
        };
        let next = change(action, Some(first), problem.state, &problem.sentence);
        let lines = |text: &str| text.replace("\r\n", "\n");
        if is_edge || lines(&next.section.written_into(issue.text(), problem)) != lines(issue.text()) {
            changes.push(next);
        }
    }
    changes.sort_by_key(|change| change.action);
    changes
}

#[cfg(test)]
mod tests;
