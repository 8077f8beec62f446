//! A line of the protocol.

use assay_domain::attempt::AttemptStatus;

/// The kind of a trimmed line.
#[derive(Debug, PartialEq)]
pub(super) enum Line<'a> {
    Version,
    Plan(u64),
    /// A result, its title and the milliseconds that node-tap appends.
    Result(Outcome, &'a str, Option<f64>),
    BailOut(&'a str),
    /// `# Subtest: …`.
    Subtest,
    Comment(&'a str),
    /// `t/orders.t ..`, which prove writes before a script's results.
    Script(&'a str),
    Other,
}

/// The status of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    Failed,
    /// Skipped or to do.
    Skipped,
}

impl Outcome {
    pub(super) const fn status(self) -> AttemptStatus {
        match self {
            Self::Passed => AttemptStatus::Passed,
            Self::Failed => AttemptStatus::Failed,
            Self::Skipped => AttemptStatus::Skipped,
        }
    }
}

impl<'a> Line<'a> {
    pub(super) fn of(line: &'a str) -> Self {
        if let Some(rest) = line.strip_prefix("not ok").filter(|rest| is_end_of_word(rest)) {
            result(Outcome::Failed, rest)
        } else if let Some(rest) = line.strip_prefix("ok").filter(|rest| is_end_of_word(rest)) {
            result(Outcome::Passed, rest)
        } else if let Some(reason) = line.strip_prefix("Bail out!") {
            Self::BailOut(reason.trim())
        } else if let Some(comment) = line.strip_prefix('#') {
            if comment.trim_start().starts_with("Subtest:") {
                Self::Subtest
            } else {
                Self::Comment(comment.strip_prefix(' ').unwrap_or(comment))
            }
        } else if let Some(count) = plan(line) {
            Self::Plan(count)
        } else if line.starts_with("TAP version ") {
            Self::Version
        } else if let Some(script) = script(line) {
            Self::Script(script)
        } else {
            Self::Other
        }
    }
}

/// Whether a line, without its indentation, is certainly a result: `ok 1 - adds up`.
pub(super) fn is_result(line: &str) -> bool {
    let rest = line.strip_prefix("not ").unwrap_or(line).strip_prefix("ok ");
    rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Whether a comment is a total of results, as Node and Mocha write at the end: `tests 12`.
pub(super) fn is_summary(comment: &str) -> bool {
    let Some((word, count)) = comment.trim().split_once(' ') else {
        return false;
    };
    let is_word = matches!(
        word,
        "tests" | "suites" | "pass" | "fail" | "cancelled" | "skipped" | "todo" | "duration_ms"
    );
    is_word && count.trim().parse::<f64>().is_ok()
}

/// `1..5`, also with the reason for skipping all tests.
pub(super) fn plan(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("1..")?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (count, rest) = rest.split_at(end);
    (rest.is_empty() || rest.starts_with(' ')).then_some(())?;
    count.parse().ok()
}

fn is_end_of_word(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with(char::is_whitespace)
}

fn script(line: &str) -> Option<&str> {
    let (script, dots) = line.rsplit_once(' ')?;
    let is_script = script.ends_with(".t") && !script.contains(' ');
    (is_script && dots.len() >= 2 && dots.bytes().all(|byte| byte == b'.')).then_some(script)
}

/// ` 1 - adds up # SKIP no printer`, after `ok` or `not ok`.
fn result(outcome: Outcome, rest: &str) -> Line<'_> {
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (number, rest) = rest.split_at(end);
    let (title, directive) = match directive_at(rest) {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let directive = directive.trim_start().trim_start_matches('#').trim();
    let has = |word: &str| {
        directive
            .get(..word.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    let outcome = if has("skip") || has("todo") {
        Outcome::Skipped
    } else {
        outcome
    };
    let duration = directive
        .strip_prefix("time=")
        .and_then(|time| time.strip_suffix("ms"))
        .and_then(|time| time.parse().ok());
    let title = title.trim();
    let title = title.strip_prefix("- ").unwrap_or(title).trim();
    let title = if title.is_empty() || title == "-" {
        number
    } else {
        title
    };
    Line::Result(outcome, title, duration)
}

/// The byte where a directive begins: a `#` after an unescaped space, followed by a known word.
fn directive_at(rest: &str) -> Option<usize> {
    let is_directive = |after: &str| {
        let after = after.trim_start();
        ["skip", "todo", "time="].iter().any(|word| {
            after
                .get(..word.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(word))
        })
    };
    rest.match_indices('#')
        .filter(|(at, _)| {
            rest.get(..*at)
                .is_some_and(|before| before.is_empty() || before.ends_with(' '))
        })
        .filter(|(at, _)| rest.get(at + 1..).is_some_and(is_directive))
        .map(|(at, _)| at)
        .next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed_as_the_protocol_defines() {
        use Outcome::{Failed, Passed, Skipped};
        for (line, expected) in [
            ("ok", Line::Result(Passed, "", None)),
            ("ok 8", Line::Result(Passed, "8", None)),
            ("ok 1 - adds up", Line::Result(Passed, "adds up", None)),
            (
                "not ok 2 orders adds up",
                Line::Result(Failed, "orders adds up", None),
            ),
            ("ok 3 - a # SKIP no printer", Line::Result(Skipped, "a", None)),
            ("ok 4 # skip", Line::Result(Skipped, "4", None)),
            ("not ok 5 - a # TODO SHOP-99", Line::Result(Skipped, "a", None)),
            ("ok 6 - a # time=4.5ms", Line::Result(Passed, "a", Some(4.5))),
            (
                "ok 7 - issue \\# skip",
                Line::Result(Passed, "issue \\# skip", None),
            ),
            ("ok 7 - see #12", Line::Result(Passed, "see #12", None)),
            ("okay", Line::Other),
            ("1..5", Line::Plan(5)),
            ("1..0 # SKIP only on Windows", Line::Plan(0)),
            ("1..x", Line::Other),
            ("TAP version 14", Line::Version),
            ("Bail out!  no database", Line::BailOut("no database")),
            ("# Subtest: a", Line::Subtest),
            ("#   at t/a.t", Line::Comment("  at t/a.t")),
            ("t/orders.t ..", Line::Script("t/orders.t")),
            ("and so on ..", Line::Other),
        ] {
            assert_eq!(Line::of(line), expected, "{line}");
        }
    }
}
