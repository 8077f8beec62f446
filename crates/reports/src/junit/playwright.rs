//! Rules of Playwright's reporter only: project and titles in other attributes, and one text for all errors.

use assay_domain::test::TestName;

use super::{case::Case, names, suite::Suite};
use crate::{collect::LocatedTest, frame, input::Input, paths, text};

/// Playwright's separator between titles.
const SEPARATOR: &str = " › ";

/// The name as in Playwright's JSON: project, file, titles.
pub(super) fn test(input: &Input<'_>, suite: Option<&Suite<'_>>, case: &Case<'_>) -> LocatedTest {
    if let Some(old) = OldClassName::of(case.class()) {
        let name = text::joined([old.project, old.file, &names::rejoined(old.titles, SEPARATOR)]);
        return located(input, name, Some(old.file));
    }
    let project = suite.map_or("", |suite| &*suite.hostname);
    // `includeProjectInTestName` also puts it before the titles.
    let titles = case
        .name
        .strip_prefix('[')
        .and_then(|name| name.strip_prefix(project)?.strip_prefix("] "))
        .unwrap_or(&case.name);
    // On Windows the file has backslashes. Its history is shared with other systems.
    let file = match paths::source_file(case.class()) {
        Some(file) => file.replace('\\', "/"),
        None => case.class().to_owned(),
    };
    let name = text::joined([project, &file, &names::rejoined(titles, SEPARATOR)]);
    located(input, name, paths::source_file(case.class()))
}

/// A test in this file. The report has a path relative to the folder of the tests, and the checkout may have the file.
fn located(input: &Input<'_>, name: String, file: Option<&str>) -> LocatedTest {
    let known_file = input.known_files.and_then(|files| files.of_path(file?));
    LocatedTest {
        test: TestName {
            name,
            file_path: file.map(|file| input.stored_path(file)),
        },
        found_file: known_file.map(str::to_owned),
    }
}

/// The project of a case, which names the browser.
pub(super) fn project(suite: &Suite<'_>, case: &Case<'_>) -> Option<String> {
    text::title(OldClassName::of(case.class()).map_or(&suite.hostname, |old| old.project))
}

/// The class name up to 1.30: `[project] › file:line:column › titles`.
struct OldClassName<'a> {
    project: &'a str,
    file: &'a str,
    titles: &'a str,
}

impl<'a> OldClassName<'a> {
    fn of(class: &'a str) -> Option<Self> {
        let (project, rest) = match class.strip_prefix('[').and_then(|class| class.split_once("] › ")) {
            Some(split) => split,
            None => ("", class),
        };
        let (location, titles) = rest.split_once(SEPARATOR)?;
        let (location, column) = location.rsplit_once(':')?;
        let (file, line) = location.rsplit_once(':')?;
        let numbers = [line, column]
            .iter()
            .all(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
        numbers.then_some(Self {
            project,
            file,
            titles,
        })
    }
}

/// The parts of a failure's text, which joins all attempts and all errors of each.
#[derive(Debug)]
pub(super) struct Parts {
    /// The text of the first attempt without indentation; the text of all attempts if they have no elements of their
    /// own.
    pub(super) stack: String,
    /// The first code frame.
    pub(super) snippet: Option<String>,
    /// The message of the first error, as the JSON report has it.
    pub(super) message: Option<String>,
}

/// Splits a text. `first_attempt` is set if the other attempts have their own elements.
pub(super) fn parts(body: &str, first_attempt: bool) -> Parts {
    let clean = text::plain(body);
    let mut lines: Vec<&str> = clean
        .trim_matches('\n')
        .lines()
        .map(|line| line.strip_prefix("    ").unwrap_or(line))
        .collect();
    // `  [project] › file:1:2 › titles ────` repeats the case's attributes.
    if lines
        .first()
        .is_some_and(|line| line.contains(SEPARATOR) && line.ends_with(['─', '=', ' ']))
    {
        lines.remove(0);
    }
    if first_attempt && let Some(end) = lines.iter().position(|line| is_retry_rule(line)) {
        lines.truncate(end);
    }
    let stack = lines.join("\n");
    let frame = frame::Parts::of(&stack);
    let snippet = text::snippet(frame.snippet);
    let message = first_error(frame.message);
    Parts {
        snippet,
        message,
        stack,
    }
}

/// The message of the first error of a text. A time-out has neither a code frame nor a stack. A blank line separates it
/// from the next error, if any.
fn first_error(message: &str) -> Option<String> {
    let message = message.trim();
    let has_no_stack = [
        "Test timeout of ",
        "Test was interrupted",
        "Test finished within timeout of ",
    ]
    .iter()
    .any(|beginning| message.starts_with(beginning));
    let end = message
        .lines()
        .scan(0, |at, line| {
            let start = *at;
            *at += line.len() + 1;
            Some((start, line))
        })
        .find(|(_, line)| {
            (has_no_stack && line.trim().is_empty()) || is_behind_message(line) || is_retry_rule(line)
        })
        .map_or(message.len(), |(start, _)| start);
    let message = message.get(..end).unwrap_or(message).trim_end();
    if message == "Expected to fail, but passed." {
        return Some(crate::playwright::UNEXPECTED_PASS.to_owned());
    }
    (!message.is_empty()).then(|| message.to_owned())
}

/// `attachment #1: trace (application/zip) ───`, `Error Context: test-results/…`, and a stack frame without its
/// indentation.
fn is_behind_message(line: &str) -> bool {
    let is_frame = || line.starts_with("at ") && line.ends_with(|c: char| c.is_ascii_digit() || c == ')');
    line.starts_with("attachment #") || line.starts_with("Error Context: ") || is_frame()
}

/// `Retry #1 ─────`.
fn is_retry_rule(line: &str) -> bool {
    line.strip_prefix("Retry #")
        .is_some_and(|rest| rest.trim_end().ends_with(['─', '-']))
}
