//! Removes frames of the test framework's own packages from a stack.

use std::fmt::Write as _;

/// Paths of test frameworks' packages.
const PATHS: [&str; 21] = [
    "node_modules/@playwright/",
    "node_modules/playwright",
    "node_modules/@jest/",
    "node_modules/jest",
    "node_modules/expect/",
    "node_modules/@vitest/",
    "node_modules/vitest/",
    "node_modules/mocha/",
    "node_modules/jasmine",
    "node_modules/cypress/",
    "node_modules/@cucumber/",
    "node_modules/ava/",
    "node:internal/test_runner",
    "/_pytest/",
    "/pluggy/",
    "/unittest/",
    "/gems/rspec-",
    "/gems/minitest-",
    "vendor/phpunit/",
    "/src/testing/testing.go",
    "/robot/running/",
];

/// Prefixes of their classes and functions in frames of Java, .NET and Go.
const NAMES: [&str; 14] = [
    "org.junit.",
    "junit.framework.",
    "org.testng.",
    "org.spockframework.",
    "io.kotest.",
    "org.apache.maven.surefire.",
    "org.gradle.api.internal.tasks.testing.",
    "worker.org.gradle.",
    "Xunit.",
    "NUnit.",
    "Microsoft.VisualStudio.TestPlatform.",
    "Microsoft.VisualStudio.TestTools.",
    "testing.tRunner(",
    "testing.(*",
];

/// A stack without the frames of test frameworks, with the number of removed frames.
pub(super) fn without_framework(stack: &str) -> String {
    let (mut lines, mut left_out) = (Vec::new(), 0);
    // The indentation of the last removed frame. Lines with more indentation belong to it.
    let mut inside = None;
    for line in stack.lines() {
        let indent = line.len() - line.trim_start().len();
        if is_frame(line) {
            inside = is_of_framework(line).then_some(indent);
            left_out += usize::from(inside.is_some());
        } else if inside.is_some_and(|frame| indent <= frame) {
            inside = None;
        }
        if inside.is_none() {
            lines.push(line);
        }
    }
    let mut remaining = lines.join("\n");
    if left_out > 0 {
        let separator = if remaining.is_empty() { "" } else { "\n" };
        // Writing to a String cannot fail.
        let _ = write!(
            remaining,
            "{separator}[{left_out} frame(s) of the test framework left out]"
        );
    }
    remaining
}

/// Whether a line is a frame of the stack.
fn is_frame(line: &str) -> bool {
    let line = line.trim_start();
    ["at ", "File \"", "from ", "#", "testing.", "created by testing."]
        .iter()
        .any(|begin| line.starts_with(begin))
        || [".rb:", ".php:", ".py:"].iter().any(|place| line.contains(place))
}

fn is_of_framework(line: &str) -> bool {
    let line = line.trim_start().replace('\\', "/");
    let name = line.strip_prefix("at ").unwrap_or(&line);
    let name = name.strip_prefix("created by ").unwrap_or(name);
    // Java writes the module or loader first, as in `app//org.junit.Assert.fail`.
    let name = match name.split_once('(') {
        Some((before, _)) => before
            .rfind('/')
            .map_or(name, |slash| name.get(slash + 1..).unwrap_or(name)),
        None => name,
    };
    PATHS.iter().any(|path| line.contains(path)) || NAMES.iter().any(|begin| name.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_frames_of_frameworks_are_left_out() {
        for (stack, expected) in [
            (
                "Error: x\n    at pay (src/cart.ts:12:3)\n    at /r/node_modules/playwright/lib/worker.js:1:2\n    at \
                 next (/r/node_modules/.pnpm/playwright-core@1.5/node_modules/playwright-core/lib/a.js:1:2)\n    at \
                 get (/r/node_modules/axios/lib/axios.js:4:5)",
                "Error: x\n    at pay (src/cart.ts:12:3)\n    at get (/r/node_modules/axios/lib/axios.js:4:5)\n[2 \
                 frame(s) of the test framework left out]",
            ),
            (
                "    at fail (C:\\r\\node_modules\\jest-circus\\build\\run.js:5:6)",
                "[1 frame(s) of the test framework left out]",
            ),
            (
                "Traceback (most recent call last):\n  File \"/v/site-packages/_pytest/runner.py\", line 3, in call\n    \
                 return func()\n           ^^^^\n  File \"tests/t.py\", line 9, in test_x\n    assert 1 == 2\nAssertionError",
                "Traceback (most recent call last):\n  File \"tests/t.py\", line 9, in test_x\n    assert 1 == \
                 2\nAssertionError\n[1 frame(s) of the test framework left out]",
            ),
            (
                "java.lang.AssertionError\n\tat app//org.junit.Assert.fail(Assert.java:88)\n\tat \
                 org.shop.OrderTest.total(OrderTest.java:12)\n\tat org.junit.runners.Suite.run(Suite.java:1)",
                "java.lang.AssertionError\n\tat org.shop.OrderTest.total(OrderTest.java:12)\n[2 frame(s) of the test \
                 framework left out]",
            ),
            (
                "shop.Pay(...)\n\t/r/pay.go:3 +0x1\ntesting.tRunner(0xc0)\n\t/usr/local/go/src/testing/testing.go:1595 \
                 +0xff\ncreated by testing.(*T).Run in goroutine 1\n\t/usr/local/go/src/testing/testing.go:1648 +0x3ad",
                "shop.Pay(...)\n\t/r/pay.go:3 +0x1\n[2 frame(s) of the test framework left out]",
            ),
            (
                "   at Shop.Tests.Total() in /src/Tests.cs:line 3\n   at Xunit.Sdk.TestRunner.Run()",
                "   at Shop.Tests.Total() in /src/Tests.cs:line 3\n[1 frame(s) of the test framework left out]",
            ),
            (
                "./spec/a_spec.rb:3:in `total'\n/g/gems/rspec-core-3.12/lib/rspec/core/example.rb:5:in `run'",
                "./spec/a_spec.rb:3:in `total'\n[1 frame(s) of the test framework left out]",
            ),
            (
                "cannot load node_modules/jest/index.js\n    at src/a.ts:1:1",
                "cannot load node_modules/jest/index.js\n    at src/a.ts:1:1",
            ),
            ("", ""),
        ] {
            assert_eq!(without_framework(stack), expected);
        }
    }
}
