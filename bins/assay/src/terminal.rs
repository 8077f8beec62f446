//! What standard output and standard error are connected to, and what follows from it.

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

/// How many columns standard output has, where it is a terminal.
pub(crate) fn width() -> Option<usize> {
    let stdout = io::stdout();
    let (Width(columns), _) = terminal_size_of(&stdout)?;
    (stdout.is_terminal() && columns > 0).then_some(usize::from(columns))
}

/// Whether somebody sits there to answer a question.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Whether somebody watches standard error.
pub(crate) fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// A text on one line. Text of a report must neither move the cursor nor colour the terminal.
pub(crate) fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}
