//! Reads the origin of an error from its text: exception type, matcher, locator.

use std::sync::LazyLock;

use regex::Regex;

use crate::pattern::pattern;

/// `expect(locator).not.toBeVisible`, with any text between the brackets.
static MATCHER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"\bexpect(?:\.\w+)?\((?:[^()\n]|\([^()\n]{0,80}\)){0,80}\)(?:\.(?:not|resolves|rejects|soft|poll))*\.[A-Za-z]\w*",
    )
});

/// A call of Playwright's API that failed: `locator.click: Timeout 500ms exceeded.`
static CALL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:\w*Error: )?((?:locator|page|frame|frameLocator|elementHandle|browser|browserContext|browserType|apiRequestContext|apiResponse|request|keyboard|mouse|download|electron|worker|route|jsHandle|tracing|video|touchscreen)\.\w+): ",
    )
});

/// `java.lang.IllegalStateException: `, `AssertionError [ERR_ASSERTION]: `, `System.Exception : `, `panic: `.
static TYPE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^\s*(?:Uncaught (?:\(in promise\) )?|Unhandled (?:\w+ )?(?:Rejection|Error): )?((?:[A-Za-z_$][\w$]*(?:\.|::|\\))*[A-Za-z_$][\w$]*|fatal error)(?: \[[A-Z_]+\])? ?:(?:\s|$)",
    )
});

/// Last parts of names that distinguish an exception type from other words before a colon.
const TYPE_ENDINGS: [&str; 16] = [
    "Error",
    "Exception",
    "Failure",
    "Failed",
    "Fault",
    "panic",
    "Panic",
    "Interrupt",
    "Exit",
    "Timeout",
    "Abort",
    "Violation",
    "Warning",
    "Throwable",
    "fatal error",
    "StopIteration",
];

/// The wordings of a locator. Each pattern has a text that every match contains. Searching for that text first is fast,
/// and most errors then need none of these patterns, whose compilation is expensive.
static LOCATORS: [(&str, LazyLock<Regex>); 5] = [
    (
        "Locator:",
        LazyLock::new(|| pattern(r"^\s*(?:- )?Locator:\s*(\S.*?)\s*$")),
    ),
    (
        "strict mode violation: ",
        LazyLock::new(|| pattern(r"strict mode violation: (.{1,300}?) resolved to \d+ elements")),
    ),
    (
        "xpected to find element: ",
        LazyLock::new(|| pattern(r"[Ee]xpected to find element: `([^`]{1,300})`")),
    ),
    (
        "element: ",
        LazyLock::new(|| {
            pattern(r"(?:[Uu]nable to locate element: |no such element: .{0,60}?: )(\{.{1,300}?\}|\S{1,300})")
        }),
    ),
    (
        "Unable to find ",
        LazyLock::new(|| {
            pattern(
                r"Unable to find (?:an? )?((?:accessible )?(?:element|role|label)\b.{0,200}?)(?:\. This could|\. Ignored|$)",
            )
        }),
    ),
];

static AWAITED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"\bwaiting for ((?:locator|getBy\w+|get_by_\w+|frameLocator|selector)\b.{0,300}?)(?: to be \w+.*| to \w+$)?\s*$",
    )
});

/// The locator of a log line about waiting.
pub(crate) fn awaited_locator(line: &str) -> Option<String> {
    captured("waiting for ", &AWAITED, line)
}

/// The locator in the lines themselves.
pub(crate) fn locator(lines: &[String]) -> Option<String> {
    let reported = LOCATORS
        .iter()
        .find_map(|(text, pattern)| lines.iter().find_map(|line| captured(text, pattern, line)));
    reported.or_else(|| lines.iter().find_map(|line| awaited_locator(line)))
}

/// The first group of `pattern` in `line`. Every match contains `text`; without it, `pattern` is not compiled.
fn captured(text: &str, pattern: &LazyLock<Regex>, line: &str) -> Option<String> {
    if !line.contains(text) {
        return None;
    }
    Some(pattern.captures(line)?.get(1)?.as_str().trim().to_owned())
}

/// The matcher or API call that failed.
pub(crate) fn matcher(lines: &[String]) -> Option<String> {
    let first = lines.iter().find(|line| !line.trim().is_empty())?;
    if let Some(call) = CALL
        .captures(first.trim_start())
        .and_then(|captures| captures.get(1))
    {
        return Some(call.as_str().to_owned());
    }
    lines
        .iter()
        .filter(|line| line.contains("expect(") || line.contains("expect."))
        .find_map(|line| MATCHER.find(line))
        .map(|captures| captures.as_str().to_owned())
}

/// The exception type at the beginning of a line, and its length in bytes including the colon.
pub(crate) fn exception_type(line: &str) -> Option<(&str, usize)> {
    let captures = TYPE.captures(line)?;
    let name = captures.get(1)?.as_str();
    let qualified = name.contains("::") || name.contains('\\') || name.matches('.').count() >= 2;
    let last = name.rsplit(['.', ':', '\\']).next()?;
    let plausible = TYPE_ENDINGS.iter().any(|ending| name.ends_with(ending))
        || (qualified && last.starts_with(|c: char| c.is_ascii_uppercase()));
    plausible.then(|| (name, captures.get(0).map_or(0, |whole| whole.end())))
}
