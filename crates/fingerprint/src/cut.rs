//! Removes code frames, stack lines, logs and banners from clean lines, so that the message remains.

use std::sync::LazyLock;

use regex::{Regex, RegexSet};

use crate::{origin, pattern::pattern, text};

/// Characters of a text that are masked.
const MOST_CHARS: usize = 8_000;

/// A text after cutting.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    /// The remaining lines, without blank ones at either end.
    pub(crate) lines: Vec<String>,
    /// The locator that a cut log waited for.
    pub(crate) locator: Option<String>,
    /// Whether a panic's header was cut.
    pub(crate) panicked: bool,
}

impl Cut {
    /// Whether no remaining line distinguishes errors.
    pub(crate) fn is_hollow(&self) -> bool {
        let mut lines = self
            .lines
            .iter()
            .map(|line| line.trim())
            .filter(|line| !line.is_empty());
        match (lines.next(), lines.next()) {
            (None, _) => true,
            (Some(only), None) => HOLLOW.is_match(only),
            (Some(_), Some(_)) => false,
        }
    }
}

/// Messages without information beyond the failure itself.
static HOLLOW: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?i:failed|failure|error|fail|none|null|undefined|test failed|test failure|collection failure|(?:test )?failure with exit code \d+|assertion failed|(?:[A-Za-z]+::)*MultipleExpectationsNotMetError)[.:]?$|^\S+\.\w+:\d+:\d+ ",
    )
});

/// Lines that are removed at any place.
static NOISE: LazyLock<RegexSet> = LazyLock::new(|| {
    set(&[
        // Stack frames: JavaScript, Java, .NET; Vitest; Ruby; PHP; Go; and bare locations.
        r"^\s*at\s+\S.*(?:\)|:\d+|<anonymous>|\[native code\])\s*$",
        r"^\s*at (?:async )?[\w$.<>]+\s*$",
        r"^\s*at \S+ in \S+",
        r"^\s*❯ .*:\d+",
        r"^\s*\.\.\. \d+ (?:more|common frames omitted)",
        r"^\s*(?:from |# |#\d+ )?\S+:\d+:in [`']",
        r"^\s*#\d+ \S+\(\d+\): ",
        r"^\s*(?:# )?(?:\(in test file )?[\w./\\@+~-]*[\w-]\.\w{1,6}(?::| line |, line )\d+(?::\d+)?\)?:?(?: \w+| Failure| \+0x[0-9a-f]+)?\s*$",
        r"^\s*/\S+:\d+(?::\d+)?:? (?:Failure|\+0x[0-9a-f]+)\s*$",
        // Code frames and their markers.
        r"^\s*>?\s*\d+\s?\|(?:\s|$)",
        r"^\s*\|?\s*[\^~-]*\^[\^~]*\s*$",
        r"^\s*[─━⎯═]{3,}",
        r"^\s*Failure/Error: ",
        r"^\s*[↑↓] \(pos \d+\)\s*$",
        // Playwright's headers of a failed test and its attempts.
        r"^\s*(?:\d+\) )?(?:\[[^\]]*\] › )?\S+:\d+:\d+ › ",
        r"^\s*(?:Retry #\d+ ?─*|attachment #\d+: .*|Error Context: .*)$",
        // Banners of Go, GoogleTest, Rust, bats, behave and Node.
        r"^\s*(?:=== (?:RUN|PAUSE|CONT|NAME)|--- (?:FAIL|PASS|SKIP|BENCH):|FAIL\b|PASS$|ok\s+\S+\s+\d)",
        r"^\[(?: RUN      |  FAILED  |       OK |  PASSED  |-{10}|={10})\]",
        r"^(?:Running main\(\) from |Note: Google Test filter|\s*\d+ FAILED TESTS?$)",
        r"^note: run with `RUST_BACKTRACE",
        r"^\s*(?:Failing step: |Location: \S+:\d+)",
        r"^\s*Serialized Error: ",
        r"^\s*Error Trace:",
        r"^\s*Test:\s+\w+",
        r"^\s*@@ .*@@",
    ])
});

/// Lines that open a block, and the end of the block.
static BLOCK: LazyLock<RegexSet> = LazyLock::new(|| {
    set(&[
        r"^goroutine \d+ \[",
        r"^\s*stack backtrace:\s*$",
        r"^\s*(?:Traceback(?: \(most recent call last\))?:\s*$|.*\bTraceback \(most recent call last\):\s*$)",
        r"^\s*(?:Require|Import) stack:",
        r"^\s*Call log:",
        r"^\s*(?:Ignored nodes: |Here are the (?:accessible|available) roles:|<body\b|<html\b)",
        r"^=+ logs =+",
    ])
});

/// The block of the current line, named by its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    Open,
    ToBlankLine,
    ToUnindented,
    ToNonItem,
    CallLog,
    ToEnd,
}

/// The kind of block that each pattern of [`BLOCK`] opens, in the same order.
const BLOCK_KINDS: [Block; 7] = [
    Block::ToBlankLine,
    Block::ToBlankLine,
    Block::ToUnindented,
    Block::ToNonItem,
    Block::CallLog,
    Block::ToEnd,
    Block::ToEnd,
];

/// The location that Go's testing package puts before each line of a test.
static GO_LOCATION: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*\w[\w.-]*\.go:\d+: ?"));
/// The header of a Rust panic; older ones hold the message itself.
static PANIC: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^\s*thread '[^']*'(?: \(\d+\))? panicked at (?:'(.*)', )?\S+:\d+:\d+:?$"));
/// The first line of a dump of all threads. Each such dump is different.
static DUMP: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r#"\bThread diagnostics:|\bFull thread dump\b|^"[^"]+" (?:#\d+ )?(?:daemon )?prio=\d"#)
});
/// A strict-mode violation lists the elements that it found.
static LISTED_ELEMENT: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s+\d+\) <"));

/// `raw` after cutting.
pub(crate) fn cut(raw: &str) -> Cut {
    let lines = text::lines(raw);
    let mut cut = Cut::default();
    let mut remaining_chars = MOST_CHARS;
    let only_e_lines = lines.iter().any(|line| line.starts_with("E  "));
    let mut block = Block::Open;
    for line in &lines {
        if remaining_chars == 0 {
            break;
        }
        let line = match (only_e_lines, line.strip_prefix("E  ")) {
            (true, None) => continue,
            (true, Some(rest)) => rest.strip_prefix(' ').unwrap_or(rest),
            (false, _) => line.as_str(),
        };
        block = step(block, line, &mut cut.locator);
        if block != Block::Open || NOISE.is_match(line) || LISTED_ELEMENT.is_match(line) {
            continue;
        }
        let mut line = GO_LOCATION.replace(line, "").into_owned();
        if let Some(panic) = PANIC.captures(&line) {
            cut.panicked = true;
            match panic.get(1) {
                Some(message) => line = message.as_str().to_owned(),
                None => continue,
            }
        }
        if let Some(at) = line.find("Call log:") {
            cut.locator = cut.locator.or_else(|| origin::awaited_locator(&line));
            line.truncate(at);
        }
        if let Some(dump) = DUMP.find(&line) {
            line.truncate(dump.start());
            block = Block::ToEnd;
        }
        if cut.lines.is_empty() && line.trim().is_empty() {
            continue;
        }
        let beginning: String = line.chars().take(remaining_chars).collect();
        remaining_chars -= beginning.chars().count();
        cut.lines.push(beginning);
    }
    while cut.lines.last().is_some_and(|line| line.trim().is_empty()) {
        cut.lines.pop();
    }
    cut
}

/// The block that the next line is in, after `line`. Sets `locator` from the first line of a call log that has one.
fn step(block: Block, line: &str, locator: &mut Option<String>) -> Block {
    let goes_on = match block {
        Block::Open => false,
        Block::ToBlankLine => !line.trim().is_empty(),
        Block::ToUnindented => {
            line.trim().is_empty() || line.starts_with([' ', '\t']) || is_pytest_location(line)
        }
        Block::ToNonItem => line.trim_start().starts_with("- "),
        Block::CallLog => {
            if locator.is_none() {
                *locator = origin::awaited_locator(line);
            }
            true
        }
        Block::ToEnd => true,
    };
    if goes_on {
        return block;
    }
    let opened = BLOCK
        .matches(line)
        .iter()
        .next()
        .and_then(|index| BLOCK_KINDS.get(index));
    opened.copied().unwrap_or(Block::Open)
}

/// Short tracebacks of pytest have the location, unindented, before the code: `path/to.py:12: in function`.
fn is_pytest_location(line: &str) -> bool {
    line.split_once(".py:")
        .is_some_and(|(_, rest)| rest.contains(": in "))
}

#[expect(
    clippy::expect_used,
    reason = "the patterns are constants, compiled by every test"
)]
fn set(patterns: &[&str]) -> RegexSet {
    RegexSet::new(patterns).expect("constant patterns compile")
}
