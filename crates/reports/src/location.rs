//! Finds the location of an error in its stack trace.

use std::sync::LazyLock;

use assay_domain::{attempt::Location, frame::is_jvm_library};
use regex::{Captures, Regex};

use crate::{input::Input, paths, text::pattern};

/// A line of a file.
pub(crate) const fn at_line(file: String, line: Option<u32>) -> Location {
    let column = None;
    Location { file, line, column }
}

impl Input<'_> {
    /// The location in the checkout nearest to the origin of the error: the first frame outside of the framework and of
    /// libraries. Python writes the newest frame last, so there it is the last such frame.
    pub(crate) fn location_in(&self, stack: &str) -> Option<Location> {
        let newest_last = stack.contains("File \"") || stack.contains(".py:");
        let mut frames = stack
            .lines()
            .filter(|line| line.len() <= LONGEST_FRAME)
            .filter_map(|line| self.frame(line));
        if newest_last {
            frames.next_back()
        } else {
            frames.next()
        }
    }

    fn frame(&self, line: &str) -> Option<Location> {
        let line = line.trim_start();
        if let Some(frame) = javascript_frame(line) {
            return self.in_checkout(frame);
        }
        if let Some(java) = JAVA.captures(line) {
            return self.java_frame(&java);
        }
        let frame = QUOTED
            .captures(line)
            .or_else(|| PLAIN.captures(line))
            .or_else(|| DART.captures(line))
            .or_else(|| WORDED.captures(line))?;
        self.in_checkout((
            frame.name("file")?.as_str(),
            number(&frame, "line"),
            number(&frame, "column"),
        ))
    }

    fn in_checkout(&self, (file, line, column): (&str, Option<u32>, Option<u32>)) -> Option<Location> {
        let is_library = LIBRARY_PATHS
            .iter()
            .any(|part| file.replace('\\', "/").contains(part))
            || file.starts_with('<');
        let inside = match self.root {
            Some(root) if paths::is_absolute(file) || file.starts_with("file:") => {
                paths::within(file, Some(root)).is_some()
            }
            _ => true,
        };
        (!is_library && inside).then(|| Location {
            file: self.stored_path(file),
            line,
            column,
        })
    }

    fn java_frame(&self, frame: &Captures<'_>) -> Option<Location> {
        let class = frame.name("class")?.as_str();
        if is_jvm_library(class) || JVM_CLIENTS.iter().any(|package| class.starts_with(package)) {
            return None;
        }
        let known_file = self.known_files.and_then(|files| files.of_dotted(class));
        let file = known_file.unwrap_or(frame.name("file")?.as_str()).to_owned();
        Some(at_line(file, number(frame, "line")))
    }
}

/// The most bytes of a line that is read as a frame. A longer line is data.
const LONGEST_FRAME: usize = 2_000;

/// `at name (file:1:2)`, `at async file:1:2`, `❯ file:1:2`; the path may contain spaces.
fn javascript_frame(line: &str) -> Option<(&str, Option<u32>, Option<u32>)> {
    let frame = line
        .strip_prefix("at ")
        .or_else(|| line.strip_prefix("❯ "))?
        .trim_end();
    let location = match frame.strip_suffix(')') {
        Some(frame) => frame.rsplit_once('(')?.1,
        None => frame.strip_prefix("async ").unwrap_or(frame),
    };
    let (rest, column) = location.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    // Vitest writes the function's name before the file.
    let file = if is_vitest_frame(frame, file) {
        file.rsplit(' ').next()?
    } else {
        file
    };
    Some((file, Some(line.parse().ok()?), Some(column.parse().ok()?)))
}

fn is_vitest_frame(frame: &str, file: &str) -> bool {
    !frame.ends_with(')') && file.contains(' ') && !paths::is_absolute(file) && !file.starts_with("file:")
}

fn number(captures: &Captures<'_>, name: &str) -> Option<u32> {
    captures.name(name)?.as_str().parse().ok()
}

/// Parts of a path that belong to libraries, runtimes and frameworks.
const LIBRARY_PATHS: &[&str] = &[
    "node_modules/",
    "node:",
    "internal/process/",
    "site-packages/",
    "dist-packages/",
    "/lib/python",
    "/usr/lib/",
    "/usr/share/",
    "/usr/local/lib/",
    "/usr/local/go/",
    "/usr/include/",
    "/go/pkg/mod/",
    "/src/testing/",
    "/src/runtime/",
    "_testmain.go",
    "/.cargo/registry/",
    "/rustc/",
    "/gems/",
    "/rubygems/",
    "vendor/bundle/",
    "vendor/phpunit/",
    "<frozen ",
    "/libexec/bats",
];

/// Packages of drivers and clients, whose errors are located at the call in the test.
const JVM_CLIENTS: &[&str] = &[
    "org.openqa.selenium.",
    "com.codeborne.selenide.",
    "com.microsoft.playwright.",
    "io.restassured.",
    "io.cucumber.",
    "com.intuit.karate.",
    "org.awaitility.",
];

const SUFFIXES: &str = "js|jsx|ts|tsx|mjs|cjs|mts|cts|vue|svelte|py|rb|go|rs|java|kt|kts|scala|groovy|cs|fs|vb|php|c|cc|\
                        cpp|cxx|h|hh|hpp|m|mm|swift|dart|ex|exs|erl|clj|lua|pl|pm|t|sh|bash|bats|jl|hs|robot|feature";

/// Python: `File "tests/a.py", line 3, in total`.
static QUOTED: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"File "(?P<file>[^"]+)", line (?P<line>\d{1,9})"#));
/// Most others: `tests/a.py:3: Error`, `in /src/A.cs:line 3`, `panicked at src/a.rs:3:5`.
static PLAIN: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&format!(
        r#"(?P<file>(?:file://)?(?:[A-Za-z]:[\\/])?[^\s"'`()\[\]<>|:,=]+\.(?:{SUFFIXES})):(?:line )?(?P<line>\d{{1,9}})(?::(?P<column>\d{{1,9}}))?"#
    ))
});
/// Dart: `test/orders_test.dart 10:9  main.<fn>`. A library's file is `package:matcher`.
static DART: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(?P<file>[^\s:]+\.dart) (?P<line>\d{1,9}):(?P<column>\d{1,9})(?:\s|$)"));
/// Perl and bats: `at t/orders.t line 3`, `in test file a.bats, line 3`.
static WORDED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&format!(
        r"(?P<file>[^\s()]+\.(?:{SUFFIXES})),? line (?P<line>\d{{1,9}})"
    ))
});
/// Java: `at org.shop.OrderTest.total(OrderTest.java:3)`.
static JAVA: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^at (?:[^\s/]+/)*(?P<class>[\w.$]+)\.[\w$<>]+\((?P<file>[\w$-]+\.(?:java|kt|scala|groovy)):(?P<line>\d{1,9})\)",
    )
});

#[cfg(test)]
mod tests {
    use super::*;

    fn located(stack: &str) -> Option<String> {
        let input = Input {
            name: "r",
            text: "",
            root: Some("/repo"),
            known_files: None,
            lines_before: 0,
            notes: Box::leak(Box::default()),
        };
        input.location_in(stack).map(|at| {
            format!(
                "{}:{}:{}",
                at.file,
                at.line.unwrap_or_default(),
                at.column.unwrap_or_default()
            )
        })
    }

    #[test]
    fn the_nearest_own_frame_counts() {
        for (stack, expected) in [
            (
                "Error: x\n    at fn (/repo/node_modules/a/i.js:1:2)\n    at Object.<anonymous> (/repo/src/a b.test.js:10:5)",
                "src/a b.test.js:10:5",
            ),
            ("Error\n    at async /repo/src/a.mjs:10:5", "src/a.mjs:10:5"),
            (
                "AssertionError\n    at file:///repo/test/a.mjs:3:4",
                "test/a.mjs:3:4",
            ),
            (" ❯ test/orders.test.js:7:3", "test/orders.test.js:7:3"),
            (" ❯ total src/orders.js:7:3", "src/orders.js:7:3"),
            (
                "Traceback\n  File \"/usr/lib/python3/unittest.py\", line 5, in run\n  File \"/repo/tests/t.py\", line 9, in test_x\n  File \"/repo/venv/lib/python3.11/site-packages/x.py\", line 1",
                "tests/t.py:9:0",
            ),
            (
                "tests/test_orders.py:12: in total\ntests/helper.py:3: AssertionError",
                "tests/helper.py:3:0",
            ),
            (
                "java.lang.AssertionError\n\tat org.junit.Assert.fail(Assert.java:88)\n\tat app//org.shop.OrderTest.total(OrderTest.java:12)",
                "OrderTest.java:12:0",
            ),
            (
                "org.openqa.selenium.TimeoutException: Expected condition failed\n\tat org.openqa.selenium.support.ui.WebDriverWait.timeoutException(WebDriverWait.java:84)\n\tat pages.Login.open(Login.java:31)",
                "Login.java:31:0",
            ),
            (
                "   at Shop.OrderTests.Total() in /repo/tests/OrderTests.cs:line 17",
                "tests/OrderTests.cs:17:0",
            ),
            (
                "Failure/Error: x\n# ./spec/order_spec.rb:12:in `block'",
                "spec/order_spec.rb:12:0",
            ),
            ("    orders_test.go:17: total is 3", "orders_test.go:17:0"),
            ("thread 'x' panicked at src/lib.rs:12:5:", "src/lib.rs:12:5"),
            (
                "# (in test file suite/orders.bats, line 4)",
                "suite/orders.bats:4:0",
            ),
            ("#   at t/orders.t line 12.", "t/orders.t:12:0"),
            (
                "package:matcher/expect.dart 5:1  expect\ntest/orders_test.dart 10:9  main.<fn>",
                "test/orders_test.dart:10:9",
            ),
        ] {
            assert_eq!(located(stack).as_deref(), Some(expected), "{stack}");
        }
        for stack in [
            "connect ECONNREFUSED 127.0.0.1:9",
            "at fn (/elsewhere/a.js:1:2)",
            "",
            "see https://example.com:443/a",
        ] {
            assert_eq!(located(stack), None, "{stack}");
        }
    }
}
