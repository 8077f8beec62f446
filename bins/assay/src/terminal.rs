//! Standard output and standard error: their styles and width, and whether they are terminals.

use std::io::{self, IsTerminal as _, StderrLock, StdoutLock};

use anstream::AutoStream;
use terminal_size::{Width, terminal_size_of};

/// Standard output. Styles are dropped without a terminal, with NO_COLOR, and on a dumb TERM.
pub(crate) fn out() -> AutoStream<StdoutLock<'static>> {
    AutoStream::auto(io::stdout().lock())
}

/// Standard error, with the rule of [`out`] for styles.
pub(crate) fn err() -> AutoStream<StderrLock<'static>> {
    AutoStream::auto(io::stderr().lock())
}

/// The width of standard output in columns; `None` if it is not a terminal.
pub(crate) fn width() -> Option<usize> {
    let stdout = io::stdout();
    let (Width(columns), _) = terminal_size_of(&stdout)?;
    (stdout.is_terminal() && columns > 0).then_some(usize::from(columns))
}

/// Whether the program can ask a question: standard input and standard error are terminals.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Whether standard error is a terminal.
pub(crate) fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// A text with spaces in place of control characters, because a report must not move the cursor or colour the terminal.
pub(crate) fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}
