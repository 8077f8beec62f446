//! A line of the protocol.

use assay_domain::attempt::AttemptStatus;

/// The kind of a trimmed line.
#[derive(Debug, PartialEq)]
pub(super) enum Line<'a> {
    Version,
    Plan(u64),
    Result(TapResult<'a>),
    BailOut(&'a str),
    /// `# Subtest: …`.
    Subtest,
    Comment(&'a str),
    /// `t/orders.t ..`, which prove writes before a script's results.
    Script(&'a str),
    /// A line by which prove or Perl's Test::More says that a script failed.
    Failure(&'a str),
    Other,
}

/// A line of `ok` or `not ok`.
#[derive(Debug, PartialEq)]
pub(super) struct TapResult<'a> {
    pub(super) outcome: Outcome,
    pub(super) title: &'a str,
    /// The milliseconds that node-tap appends.
    pub(super) duration_ms: Option<f64>,
    /// The text after `SKIP` or `TODO`.
    pub(super) reason: &'a str,
}

/// The status of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    Failed,
    /// Skipped or to do.
    Skipped,
    /// The same, written as `not ok`.
    FailedTodo,
}

impl Outcome {
    pub(super) const fn status(self) -> AttemptStatus {
        match self {
            Self::Passed => AttemptStatus::Passed,
            Self::Failed => AttemptStatus::Failed,
            Self::Skipped | Self::FailedTodo => AttemptStatus::Skipped,
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
        } else if line == "Result: FAIL" || line.starts_with("# Looks like your test exited with ") {
            Self::Failure(line.trim_start_matches("# "))
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

/// A total of results in a comment, such as `fail 2`, with its word. Node counts cancelled tests apart from others that
/// failed.
pub(crate) fn total(comment: &str) -> Option<(&str, u64)> {
    let (word, count) = comment.trim().split_once(' ')?;
    Some((word, count.trim().parse().ok()?))
}

/// Whether a comment about the whole run says that it failed: Node's errors after the end of a test, and coverage below a
/// threshold.
pub(crate) fn is_failure_of_run(comment: &str) -> bool {
    comment.starts_with("Error: ") || comment.contains("would have caused the test to fail")
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
    let mut parts = directives(rest);
    let title = parts.next().unwrap_or_default().trim();
    let mut result = TapResult {
        outcome,
        title: "",
        duration_ms: None,
        reason: "",
    };
    for directive in parts {
        let (word, reason) = directive
            .split_once(char::is_whitespace)
            .unwrap_or((directive, ""));
        if is_skip(word) {
            result.outcome = match result.outcome {
                Outcome::Failed | Outcome::FailedTodo => Outcome::FailedTodo,
                Outcome::Passed | Outcome::Skipped => Outcome::Skipped,
            };
            result.reason = reason.trim();
        } else if let Some(ms) = milliseconds(word) {
            result.duration_ms = Some(ms);
        }
    }
    let title = title.strip_prefix("- ").unwrap_or(title).trim();
    result.title = if title.is_empty() || title == "-" {
        number
    } else {
        title
    };
    Line::Result(result)
}

/// The browser, the duration in milliseconds and the title in a title of testem:
/// `Chrome 119.0 - [52 ms] - Unit | Cart: adds up`.
pub(super) fn testem(title: &str) -> Option<(&str, f64, &str)> {
    // Few titles have a bracket, and a search for several bytes is slower.
    memchr::memchr(b'[', title.as_bytes())?;
    let (browser, rest) = title.split_once(" - [")?;
    let (duration, title) = rest.split_once(" ms] - ")?;
    Some((browser.trim(), duration.parse().ok()?, title.trim())).filter(|(browser, ..)| !browser.is_empty())
}

/// The title of a result, then the text of each directive after its `#`. A directive is a known word behind ` # `; any
/// other `#` is part of the text before it.
fn directives(rest: &str) -> impl Iterator<Item = &str> {
    let mut starts = rest.match_indices('#').filter_map(move |(at, _)| {
        let before = rest.get(..at)?;
        let after = rest.get(at + 1..)?;
        let word = after.split_whitespace().next()?;
        let is_apart = (before.is_empty() || before.ends_with([' ', '\t'])) && after.starts_with([' ', '\t']);
        (is_apart && (is_skip(word) || milliseconds(word).is_some())).then_some(at)
    });
    let mut next = Some(0);
    std::iter::from_fn(move || {
        let from = next?;
        next = starts.next();
        let part = rest.get(from..next.unwrap_or(rest.len()))?;
        Some(if from == 0 && !part.starts_with('#') {
            part
        } else {
            part.trim_start_matches('#').trim()
        })
    })
}

/// Whether a word skips a result: `SKIP`, `skipped:`, `TODO`.
fn is_skip(word: &str) -> bool {
    let word = word.trim_end_matches(':');
    ["skip", "skipped", "skipping", "todo"]
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known))
}

/// The milliseconds of `time=4.5ms`.
fn milliseconds(word: &str) -> Option<f64> {
    word.strip_prefix("time=")?.strip_suffix("ms")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed_as_the_protocol_defines() {
        use Outcome::{Failed, FailedTodo, Passed, Skipped};
        let result = |outcome, title, duration_ms, reason| {
            Line::Result(TapResult {
                outcome,
                title,
                duration_ms,
                reason,
            })
        };
        for (line, expected) in [
            ("ok", result(Passed, "", None, "")),
            ("ok 8", result(Passed, "8", None, "")),
            ("ok 1 - adds up", result(Passed, "adds up", None, "")),
            (
                "not ok 2 orders adds up",
                result(Failed, "orders adds up", None, ""),
            ),
            (
                "ok 3 - a # SKIP no printer",
                result(Skipped, "a", None, "no printer"),
            ),
            ("ok 4 # skip", result(Skipped, "4", None, "")),
            (
                "ok 4 # Skipped: no printer",
                result(Skipped, "4", None, "no printer"),
            ),
            (
                "not ok 5 - a # TODO SHOP-99",
                result(FailedTodo, "a", None, "SHOP-99"),
            ),
            ("ok 6 - a # time=4.5ms", result(Passed, "a", Some(4.5), "")),
            (
                "ok 6 - a # SKIP later # time=4.5ms",
                result(Skipped, "a", Some(4.5), "later"),
            ),
            (
                "ok 6 - a # SKIP see # 7 of it",
                result(Skipped, "a", None, "see # 7 of it"),
            ),
            (
                "ok 7 - issue \\# skip",
                result(Passed, "issue \\# skip", None, ""),
            ),
            ("ok 7 - see #12", result(Passed, "see #12", None, "")),
            ("ok 7 - see # 12", result(Passed, "see # 12", None, "")),
            (
                "ok 8 - Range#skip takes",
                result(Passed, "Range#skip takes", None, ""),
            ),
            (
                "not ok 8 - Range #todo list",
                result(Failed, "Range #todo list", None, ""),
            ),
            (
                "ok 8 - shows # skipper",
                result(Passed, "shows # skipper", None, ""),
            ),
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
