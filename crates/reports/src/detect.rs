//! Which format a text is of, by its content.

use crate::{json, report::Format};

/// The format of a text, or what else it seems to be.
pub(crate) fn detect(text: &str) -> Result<Format, String> {
    let head = text.trim_start_matches('\u{feff}').trim_start();
    if head.is_empty() {
        return Err("the file is empty: its reporter crashed or never ran".to_owned());
    }
    let xml = if head.starts_with(['{', '[']) {
        None
    } else {
        xml(text)
    };
    let mut hint = None;
    let before = xml.and_then(|(root, _)| text.get(..root)).unwrap_or(text);
    let found = json::find_object(before, |text| match object(text) {
        Ok(format) => Some(format),
        Err(known) => {
            hint = hint.or(known);
            None
        }
    });
    if let Some((_, format)) = found {
        return Ok(format);
    }
    if let Some((_, format)) = xml {
        return Ok(format);
    }
    if let Some(hint) = hint.or_else(|| other(head)) {
        return Err(hint.to_owned());
    }
    if json::is_cut_off(head) {
        let line = 1 + text.matches('\n').count();
        return Err(format!(
            "its JSON is cut off in line {line}, before it tells its format; expected {KNOWN}"
        ));
    }
    Err(format!("expected {KNOWN}"))
}

/// What can be read, for messages.
pub(crate) const KNOWN: &str = "Playwright JSON, JUnit XML, CTRF, Jest or Vitest JSON, `go test -json`, TRX, TestNG results or an Allure results folder";

/// The XML format by its outermost element, and where that begins; text before it, such as log lines, is skipped.
fn xml(text: &str) -> Option<(usize, Format)> {
    text.match_indices('<').find_map(|(at, _)| {
        let name = text
            .get(at + 1..)?
            .split(|c: char| c.is_whitespace() || matches!(c, '>' | '/' | '<'))
            .next()?;
        // A namespace prefix may stand before a name.
        match name.rsplit(':').next().unwrap_or_default() {
            "testsuites" | "testsuite" | "testcase" => Some((at, Format::Junit)),
            "TestRun" => Some((at, Format::Trx)),
            "testng-results" => Some((at, Format::Testng)),
            _ => None,
        }
    })
}

/// The format of a JSON object by its keys; otherwise what it is instead, where that is known.
fn object(text: &str) -> Result<Format, Option<&'static str>> {
    let mut seen = Seen::default();
    for (depth, key) in json::keys(text) {
        if let Some(format) = seen.add(depth, key) {
            return Ok(format);
        }
    }
    match seen.hint() {
        // An Allure result is short: one that is cut off may have nothing but its beginning.
        None if seen.outer.contains(&"uuid") && json::is_cut_off(text) => Ok(Format::Allure),
        hint => Err(hint),
    }
}

/// The keys that tell formats apart.
const TELLING: &[&str] = &[
    "suites",
    "config",
    "errors",
    "reportFormat",
    "results",
    "tests",
    "summary",
    "tool",
    "testResults",
    "Action",
    "Package",
    "ImportPath",
    "Test",
    "uuid",
    "status",
    "historyId",
    "fullName",
    "start",
    "stats",
    "passes",
    "failures",
    "examples",
    "type",
    "event",
    "collectors",
    "exitcode",
    "befores",
    "afters",
    "children",
];

/// The keys seen so far that matter.
#[derive(Default)]
struct Seen<'a> {
    outer: Vec<&'a str>,
    inner: Vec<&'a str>,
}

impl<'a> Seen<'a> {
    fn add(&mut self, depth: usize, key: &'a str) -> Option<Format> {
        let keys = match depth {
            1 => &mut self.outer,
            2 => &mut self.inner,
            _ => return None,
        };
        if !TELLING.contains(&key) || keys.contains(&key) {
            return None;
        }
        keys.push(key);
        self.format()
    }

    fn format(&self) -> Option<Format> {
        let has = |key: &str| self.outer.contains(&key);
        let inside = |key: &str| self.inner.contains(&key);
        if has("suites") && (has("config") || has("errors")) {
            Some(Format::Playwright)
        } else if has("reportFormat")
            || (has("results") && inside("tests") && (inside("summary") || inside("tool")))
        {
            Some(Format::Ctrf)
        } else if has("testResults") {
            Some(Format::Jest)
        } else if has("Action") && (has("Package") || has("ImportPath") || has("Test")) {
            Some(Format::Go)
        } else if has("uuid") && has("status") && (has("historyId") || has("fullName") || has("start")) {
            Some(Format::Allure)
        } else {
            None
        }
    }

    fn hint(&self) -> Option<&'static str> {
        let has = |key: &str| self.outer.contains(&key);
        if has("stats") && (has("passes") || has("failures")) {
            Some(
                "this is Mocha's JSON, which keeps no attempts; write mocha-junit-reporter's XML or CTRF instead",
            )
        } else if has("stats") && has("results") {
            Some("this is mochawesome's JSON; write mocha-junit-reporter's XML or CTRF instead")
        } else if has("examples") && has("summary") {
            Some("this is RSpec's JSON; write RspecJunitFormatter's XML instead")
        } else if has("type") && has("event") {
            Some("this is libtest's JSON; use the JUnit XML of a nextest profile instead")
        } else if has("collectors") || (has("exitcode") && has("tests")) {
            Some("this is pytest-json-report's; write `--junitxml` or CTRF instead")
        } else if has("uuid") && (has("befores") || has("afters") || has("children")) {
            Some("this is an Allure container, which holds no results; import the folder that it lies in")
        } else {
            None
        }
    }
}

/// What a text without any report in it seems to be.
fn other(text: &str) -> Option<&'static str> {
    if text.starts_with("PK") {
        Some("this is an archive; a Playwright blob report is imported as the JSON of each shard instead")
    } else if text.starts_with("TAP version") || text.starts_with("1..") || text.starts_with("ok 1") {
        Some("this is TAP, which tells neither times nor files; write JUnit XML instead")
    } else if text.starts_with("=== RUN") || text.starts_with("--- ") {
        Some("this is the text of `go test -v`; use `go test -json` instead")
    } else {
        None
    }
}
