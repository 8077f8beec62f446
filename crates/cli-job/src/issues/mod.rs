//! Issues about the tests and errors that cost most: which to open, to bring up to date, and to close.
//!
//! `problem` says what the server knows of a test or an error, `text` writes it as the part of an issue's text that is not
//! a person's, and [`plan`] compares both with the issues that exist.

mod problem;
mod text;

use assay_domain::issue::Issue;

pub use problem::{ErrorEntry, FixAnswer, Place, Problem, State, Subject, TestEntry};
pub use text::Section;

/// One thing to do on the code host.
#[derive(Debug, Clone, PartialEq)]
pub struct Change<'a> {
    /// What is done.
    pub action: Action,
    /// The test or the error.
    pub problem: &'a Problem,
    /// The issue with its next section; none if it is to be created.
    pub issue: Option<(&'a Issue, Section)>,
}

/// What is done with an issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It is opened.
    Create,
    /// A comment says that the state changed, then the text is brought up to date.
    Comment,
    /// The same, and it is closed, because the fix held.
    Close,
    /// The same, because the issue of this number has the same subject. Two jobs at the same time may create both.
    CloseSecond(u64),
    /// Its text is brought up to date.
    Edit,
}

impl Action {
    /// The word of the JSON answer.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Comment => "comment",
            Self::Close | Self::CloseSecond(_) => "close",
            Self::Edit => "edit",
        }
    }
}

impl Change<'_> {
    /// The number of the issue; none if it is to be created.
    pub fn number(&self) -> Option<u64> {
        self.issue.as_ref().map(|(issue, _)| issue.number)
    }

    /// The title of the issue.
    pub fn title(&self) -> &str {
        let issue = self.issue.as_ref();
        issue.map_or(&self.problem.title, |(issue, _)| &issue.title)
    }

    /// Why the change is made, as a sentence.
    pub fn why(&self) -> String {
        match self.action {
            Action::CloseSecond(first) => format!("#{first} is about the same."),
            Action::Create | Action::Comment | Action::Close | Action::Edit => self.problem.sentence.clone(),
        }
    }
}

/// The subjects of open issues, whose problems [`plan`] needs to know.
pub fn open_subjects(issues: &[Issue]) -> Vec<Subject> {
    let open = sections(issues).into_iter().filter(|(_, issue)| issue.open);
    open.map(|(section, _)| section.subject).collect()
}

/// The subjects of issues that people closed. They get no other issue.
pub fn dismissed_subjects(issues: &[Issue]) -> Vec<Subject> {
    let closed = sections(issues).into_iter().filter(|(_, issue)| !issue.open);
    let dismissed = closed.filter(|(section, _)| !section.state.is_final());
    dismissed.map(|(section, _)| section.subject).collect()
}

/// The issues with a section, the oldest first. A list that was read in pages may have an issue twice.
fn sections(issues: &[Issue]) -> Vec<(Section, &Issue)> {
    let found = issues
        .iter()
        .filter_map(|issue| Some((Section::find(&issue.body)?, issue)));
    let mut found: Vec<_> = found.collect();
    found.sort_unstable_by_key(|(_, issue)| issue.number);
    found.dedup_by_key(|(_, issue)| issue.number);
    found
}

/// The changes of all problems, the most urgent first: edges, then new issues in the order of the problems, then texts.
/// A closed issue is never opened again. It has a successor only if it was closed here.
pub fn plan<'a>(problems: &'a [Problem], issues: &'a [Issue]) -> Vec<Change<'a>> {
    let known = sections(issues);
    let (mut edges, mut new, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    for problem in problems {
        let mut own = known
            .iter()
            .filter(|(section, _)| problem.is_about(&section.subject));
        let mut open = own.clone().filter(|(_, issue)| issue.open);
        let change = |action, issue| Change {
            action,
            problem,
            issue,
        };
        let Some((section, issue)) = open.next() else {
            // A person may have removed the section from an issue.
            let is_removed =
                |issue: &Issue| problem.has_title(&issue.title) && Section::find(&issue.body).is_none();
            let is_finished = own.all(|(section, _)| section.state.is_final());
            if problem.state.needs_an_issue() && is_finished && !issues.iter().any(is_removed) {
                new.push(change(Action::Create, None));
            }
            continue;
        };
        // A person may have opened it again.
        let seconds = open.filter(|(section, _)| section.state != State::Second);
        edges.extend(seconds.map(|(section, second)| {
            let next = section.followed_by(problem, State::Second);
            change(Action::CloseSecond(issue.number), Some((*second, next)))
        }));
        let next = section.followed_by(problem, problem.state);
        let lines = |text: &str| text.replace("\r\n", "\n");
        if problem.state != section.state {
            let action = match problem.state == State::Held {
                true => Action::Close,
                false => Action::Comment,
            };
            edges.push(change(action, Some((*issue, next))));
        } else if lines(&next.written_into(&issue.body, problem)) != lines(&issue.body) {
            texts.push(change(Action::Edit, Some((*issue, next))));
        }
    }
    edges.into_iter().chain(new).chain(texts).collect()
}

#[cfg(test)]
mod tests;
