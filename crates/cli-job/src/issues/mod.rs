//! Issues about the tests and errors that cost most: which to open, to bring up to date, and to close.
//!
//! [`problem`] says what the server knows of a test or an error, [`text`] writes it as the part of an issue's text that is not
//! a person's, and [`plan`] compares both with the issues that exist.

mod problem;
mod text;

pub use problem::{ErrorEntry, FixAnswer, Place, Problem, State, Subject, TestEntry};
pub use text::Section;

/// An issue that the code host has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExistingIssue {
    /// Its number.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// Its text.
    pub body: String,
    /// Whether it is open.
    pub open: bool,
}

/// One thing to do on the code host.
#[derive(Debug, Clone, PartialEq)]
pub enum Change<'a> {
    /// Opens an issue.
    Create(&'a Problem),
    /// Comments on an issue whose state changed, then brings its text up to date.
    Tell(&'a Problem, &'a ExistingIssue, Section),
    /// The same, and closes it, because the fix held.
    Close(&'a Problem, &'a ExistingIssue, Section),
    /// Closes an issue because an older one has the same subject. Two jobs at the same time may create both.
    CloseSecond(&'a ExistingIssue, u64),
    /// Brings the text of an issue up to date.
    Edit(&'a Problem, &'a ExistingIssue, Section),
}

impl Change<'_> {
    /// The issue, if it exists.
    pub const fn issue(&self) -> Option<&ExistingIssue> {
        match self {
            Self::Create(_) => None,
            Self::Tell(_, issue, _)
            | Self::Close(_, issue, _)
            | Self::CloseSecond(issue, _)
            | Self::Edit(_, issue, _) => Some(issue),
        }
    }

    /// The title of the issue.
    pub fn title(&self) -> String {
        match self {
            Self::Create(problem) => problem.title(),
            Self::Tell(_, issue, _)
            | Self::Close(_, issue, _)
            | Self::CloseSecond(issue, _)
            | Self::Edit(_, issue, _) => issue.title.clone(),
        }
    }

    /// Why the change is made, as a sentence.
    pub fn why(&self) -> String {
        match self {
            Self::Create(problem)
            | Self::Tell(problem, ..)
            | Self::Close(problem, ..)
            | Self::Edit(problem, ..) => problem.sentence.clone(),
            Self::CloseSecond(_, first) => format!("#{first} is about the same."),
        }
    }
}

/// The subjects of open issues, whose problems [`plan`] needs to know.
pub fn open_subjects(issues: &[ExistingIssue]) -> Vec<Subject> {
    let open = issues.iter().filter(|issue| issue.open);
    open.filter_map(|issue| Some(Section::find(&issue.body)?.subject))
        .collect()
}

/// The changes of all problems, the most urgent first: edges, then new issues in the order of the problems, then texts.
/// A closed issue is never opened again. It has a successor only if it was closed here because a fix held.
pub fn plan<'a>(problems: &'a [Problem], issues: &'a [ExistingIssue]) -> Vec<Change<'a>> {
    let mut known: Vec<(Section, &ExistingIssue)> = issues
        .iter()
        .filter_map(|issue| Some((Section::find(&issue.body)?, issue)))
        .collect();
    known.sort_unstable_by_key(|(_, issue)| issue.number);
    let (mut edges, mut new, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    for problem in problems {
        let mut own = known
            .iter()
            .filter(|(section, _)| problem.is_about(&section.subject));
        let mut open = own.clone().filter(|(_, issue)| issue.open);
        let Some((section, issue)) = open.next() else {
            // A person may have removed the section from an issue of this title.
            let is_removed = |issue: &ExistingIssue| {
                issue.title == problem.title() && Section::find(&issue.body).is_none()
            };
            let is_finished = own.all(|(section, _)| section.state == State::Held);
            if problem.state.needs_an_issue() && is_finished && !issues.iter().any(is_removed) {
                new.push(Change::Create(problem));
            }
            continue;
        };
        edges.extend(open.map(|(_, second)| Change::CloseSecond(second, issue.number)));
        let next = section.followed_by(problem);
        if problem.state == section.state {
            if next.written_into(&issue.body, problem) != issue.body.replace("\r\n", "\n") {
                texts.push(Change::Edit(problem, issue, next));
            }
        } else if problem.state == State::Held {
            edges.push(Change::Close(problem, issue, next));
        } else {
            edges.push(Change::Tell(problem, issue, next));
        }
    }
    edges.into_iter().chain(new).chain(texts).collect()
}

#[cfg(test)]
mod tests;
