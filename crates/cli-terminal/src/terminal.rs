//! Standard output and standard error: their styles and width, whether they are terminals, and what happens if they are
//! closed.

use std::{
    fmt,
    io::{self, IsTerminal as _, StderrLock, StdoutLock, Write},
};

use anstream::AutoStream;
use console::strip_ansi_codes;
use terminal_size::{Height, Width, terminal_size_of};

use crate::{Program, wrap::wrapped};

/// Prints a message of the running program on standard error, after its name. Std's macro for standard error would panic
/// if it is closed.
#[macro_export]
macro_rules! message {
    ($($text:tt)+) => { $crate::terminal::print_message(format_args!($($text)+)) };
}

/// A stream that drops text instead of returning certain errors. The exit status of a command then depends on its work,
/// and not on the reader of its output.
pub struct Output<W> {
    stream: W,
    /// Whether the text is dropped after this error.
    is_ignored: fn(&io::Error) -> bool,
}

impl<W: Write> Output<W> {
    /// Standard output: its reader may close it early, as `head` does.
    const fn stdout(stream: W) -> Self {
        Self {
            stream,
            is_ignored: |error| error.kind() == io::ErrorKind::BrokenPipe,
        }
    }

    /// Standard error: an error of a message cannot be reported.
    const fn stderr(stream: W) -> Self {
        Self {
            stream,
            // The caller repeats an interrupted write.
            is_ignored: |error| error.kind() != io::ErrorKind::Interrupted,
        }
    }

    fn unless_ignored<T>(&self, result: io::Result<T>, otherwise: T) -> io::Result<T> {
        match result {
            Err(error) if (self.is_ignored)(&error) => Ok(otherwise),
            result => result,
        }
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let written = self.stream.write(text);
        self.unless_ignored(written, text.len())
    }

    fn write_all(&mut self, text: &[u8]) -> io::Result<()> {
        let written = self.stream.write_all(text);
        self.unless_ignored(written, ())
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.stream.flush();
        self.unless_ignored(flushed, ())
    }
}

/// Standard output. Styles are dropped without a terminal, with NO_COLOR, and on a dumb TERM.
pub fn out() -> Output<AutoStream<StdoutLock<'static>>> {
    Output::stdout(AutoStream::auto(io::stdout().lock()))
}

/// Standard output for text that stays as it is, such as JSON.
pub fn plain_out() -> Output<StdoutLock<'static>> {
    Output::stdout(io::stdout().lock())
}

/// Standard error, with the rule of [`out`] for styles. Writing to it does not fail.
pub fn err() -> Output<AutoStream<StderrLock<'static>>> {
    Output::stderr(AutoStream::auto(io::stderr().lock()))
}

/// Prints a message after the program's name, for the macro `message`.
pub fn print_message(text: fmt::Arguments<'_>) {
    let line = format!("{}: {}", Program::running().name(), inert(&text.to_string()));
    print_line(format_args!("{}", wrapped(&line, stderr_width())));
}

/// Prints a line on standard error as it is.
pub fn print_line(line: fmt::Arguments<'_>) {
    let _ = writeln!(Output::stderr(io::stderr().lock()), "{line}");
}

/// The width of standard output in columns; `None` if it is not a terminal.
pub fn width() -> Option<usize> {
    let stdout = io::stdout();
    columns(stdout.is_terminal(), terminal_size_of(&stdout))
}

/// The width of standard error in columns; `None` if it is not a terminal.
pub fn stderr_width() -> Option<usize> {
    let stderr = io::stderr();
    columns(stderr.is_terminal(), terminal_size_of(&stderr))
}

fn columns(is_terminal: bool, size: Option<(Width, Height)>) -> Option<usize> {
    let (Width(columns), _) = size?;
    (is_terminal && columns > 0).then_some(usize::from(columns))
}

/// Whether the program can ask a question: standard input and standard error are terminals.
pub fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Whether standard error is a terminal.
pub fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// A text with spaces in place of control characters, because a report must not move the cursor or colour the terminal,
/// and without the beginnings of commands that CI services read anywhere in a line of a log.
pub fn one_line(text: &str) -> String {
    let line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    COMMANDS.iter().fold(line, |line, command| {
        match line.to_ascii_lowercase().contains(command) {
            true => line.replace("##", "# #"),
            false => line,
        }
    })
}

/// The beginnings of commands of GitHub Actions, Azure Pipelines and TeamCity.
const COMMANDS: [&str; 3] = ["##[", "##vso[", "##teamcity["];

/// A text of several lines, each as by [`one_line`]. Only the first line follows the name of the program, so the others are
/// indented, and `::` at their start, a command of GitHub Actions, is separated. Styles are dropped as a whole, so that no
/// part of them is left.
pub fn inert(text: &str) -> String {
    let text = strip_ansi_codes(text);
    let lines = text.lines().map(one_line).enumerate();
    let lines = lines.map(
        |(number, line)| match number > 0 && line.trim_start().starts_with("::") {
            true => line.replacen("::", ": :", 1),
            false => line,
        },
    );
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_a_server_cannot_command_a_terminal_or_a_ci_service() {
        for (text, right) in [
            ("3 of 4 failed", "3 of 4 failed"),
            ("a\u{1b}[31mb\tc\u{1b}[", "ab c ["),
            (
                "x ##vso[task.setvariable a]b ## c",
                "x # #vso[task.setvariable a]b # # c",
            ),
            ("##[error]a", "# #[error]a"),
            ("##TeamCity[a]", "# #TeamCity[a]"),
            ("## heading", "## heading"),
            (
                "first\n  ::add-mask::a\n::b\nc::d",
                "first\n  : :add-mask::a\n: :b\nc::d",
            ),
        ] {
            assert_eq!(inert(text), right);
        }
    }
}
