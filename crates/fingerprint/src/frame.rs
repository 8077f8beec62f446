//! The first frame of a stack in the project's own code.

use std::sync::LazyLock;

use assay_domain::frame::is_jvm_library;
use regex::Regex;

use crate::{pattern::pattern, text};

/// Java and other JVM languages: `at org.shop.OrderTest.total(OrderTest.java:3)`.
static JVM: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^\s*at (?:[^\s()]*/)?([\w.$]+)\.([\w$<>]+)\([\w$-]+\.(?:java|kt|scala|groovy)(?::\d+)?\)")
});
/// .NET: `at Shop.OrderTests.Total() in /src/OrderTests.cs:line 17`.
static DOTNET: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*at ([\w.`+<>]+)\([^()]*\) in \S"));
/// JavaScript: `at total (/src/a.spec.ts:3:5)`, `❯ src/a.spec.ts:3:5`.
static JAVASCRIPT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^\s*(?:at|❯) (?:.*[ (])?([^\s()]+):\d+:\d+\)?\s*$"));
/// Python: `File "tests/a.py", line 3`, `tests/a.py:3: AssertionError`.
static PYTHON: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"^\s*(?:File "([^"]+\.py)", line \d|(\S+\.py):\d+: )"#));
/// Most other languages: a location at the beginning of a line.
static PLAIN: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^\s*(?:# |from |#\d+ )?(\S+\.(?:rb|php|go|rs|cs|c|cc|cpp|h|hpp|swift|dart|exs?|t|robot|feature))[:(]\d",
    )
});

/// Namespaces of .NET outside of a project's own code.
const DOTNET_LIBRARIES: [&str; 6] = [
    "System.",
    "Microsoft.",
    "Xunit.",
    "NUnit.",
    "FluentAssertions.",
    "Moq.",
];

/// Parts of paths outside of a project's own code.
const LIBRARY_PATHS: [&str; 14] = [
    "node_modules/",
    "node:",
    "internal/",
    "site-packages/",
    "dist-packages/",
    "/lib/python",
    "/usr/lib/",
    "/usr/local/go/",
    "/src/testing/",
    "/rustc/",
    "/.cargo/registry/",
    "/gems/",
    "/rubygems/",
    "/vendor/",
];

/// The frame of the project's own code that is nearest to the error: a class and its method, or a file's name. The line
/// number is omitted, because lines move with every edit.
pub(crate) fn nearest_own(stack: &str) -> Option<String> {
    let lines = text::lines(stack);
    // Python writes the newest frame last.
    let python = lines.iter().rev().find_map(|line| {
        let captures = PYTHON.captures(line)?;
        file_name(captures.get(1).or_else(|| captures.get(2))?.as_str())
    });
    python.or_else(|| lines.iter().find_map(|line| frame(line)))
}

fn frame(line: &str) -> Option<String> {
    if let Some(captures) = JVM.captures(line) {
        let (class, method) = (captures.get(1)?.as_str(), captures.get(2)?.as_str());
        let is_library = is_jvm_library(class);
        let class = class.rsplit('.').next()?;
        return (!is_library).then(|| format!("{class}.{method}"));
    }
    if let Some(method) = DOTNET.captures(line).and_then(|captures| captures.get(1)) {
        let method = method.as_str();
        let is_library = DOTNET_LIBRARIES.iter().any(|library| method.starts_with(library));
        return (!is_library).then(|| method.to_owned());
    }
    let captures = JAVASCRIPT.captures(line).or_else(|| PLAIN.captures(line))?;
    file_name(captures.get(1)?.as_str())
}

fn file_name(path: &str) -> Option<String> {
    let path = path.replace('\\', "/");
    let is_library = path.starts_with('<') || LIBRARY_PATHS.iter().any(|part| path.contains(part));
    let name = path.rsplit('/').next().filter(|name| !name.is_empty())?;
    (!is_library).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_own_frame_is_named_without_its_line() {
        for (stack, expected) in [
            (
                "java.lang.AssertionError\n\tat org.junit.Assert.fail(Assert.java:88)\n\tat app//org.shop.OrderTest$Inner.total(OrderTest.java:12)",
                Some("OrderTest$Inner.total"),
            ),
            (
                "   at Xunit.Assert.True() in /x/A.cs:line 3\n   at Shop.OrderTests.Total() in /r/O.cs:line 17",
                Some("Shop.OrderTests.Total"),
            ),
            (
                "Error\n    at a (node:internal/x:1:2)\n    at f (/r/node_modules/a.js:1:2)\n    at Object.<anonymous> (C:\\r\\a.spec.ts:3:4)",
                Some("a.spec.ts"),
            ),
            (" ❯ test/orders.test.js:7:3", Some("orders.test.js")),
            (
                "  File \"/r/a.py\", line 3, in x\n  File \"/r/tests/b.py\", line 9, in y\n  File \"/v/site-packages/c.py\", line 1, in z",
                Some("b.py"),
            ),
            ("    orders_test.go:17: wrong", Some("orders_test.go")),
            ("no frame at all", None),
        ] {
            assert_eq!(nearest_own(stack).as_deref(), expected, "{stack}");
        }
    }
}
