//! Writes lists of tests for test runners: converts stored names to the runners' names.
//!
//! [`list`] writes the input of one runner, which then skips exactly the listed tests or runs only them. A test without
//! an exact name in the runner is not in the list. It is returned with the reason.

mod dotnet;
mod go;
mod javascript;
mod names;
mod nextest;
mod playwright;
mod pytest;
pub mod selection;
mod surefire;

use assay_domain::test::TestName;
use assay_reports::{within_package, without_package};
use serde_json::json;

pub use names::Use;

/// The runner that reads a list, or the form of a list for scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runner {
    /// Playwright's `--test-list-invert` or `--test-list`.
    Playwright,
    /// A plug-in for pytest.
    Pytest,
    /// A filterset of cargo-nextest.
    Nextest,
    /// Patterns for `go test`, one per package.
    Go,
    /// A pattern for Jest's `--testNamePattern`.
    Jest,
    /// A pattern for Vitest's `--testNamePattern`.
    Vitest,
    /// A pattern for Mocha's `--grep`.
    Mocha,
    /// A filter for `dotnet test`.
    Dotnet,
    /// Patterns for Maven's `-Dtest`.
    Surefire,
    /// One line per test: the file, a tab and the name.
    Txt,
    /// A JSON array of objects with `testName` and `filePath`.
    Json,
}

/// A list for a runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerList {
    /// The input of the runner.
    pub text: String,
    /// The listed tests, in the given order.
    pub named: Vec<TestName>,
    /// The tests that have no exact name in the runner, each with the reason in words.
    pub left_out: Vec<(TestName, &'static str)>,
}

/// A test by the name that its runner knows. Lists for scripts have the stored name.
pub(crate) fn in_runner(test: &TestName, runner: Runner) -> TestName {
    let name = match runner {
        Runner::Txt | Runner::Json => &test.name,
        Runner::Playwright
        | Runner::Pytest
        | Runner::Nextest
        | Runner::Go
        | Runner::Jest
        | Runner::Vitest
        | Runner::Mocha
        | Runner::Dotnet
        | Runner::Surefire => without_package(&test.name),
    };
    // Vitest's filter is a part of the path below the folder in which it runs.
    let in_package = |file| match runner == Runner::Vitest {
        true => within_package(file),
        false => file,
    };
    let file = test.file_path.as_deref().map(in_package);
    TestName {
        name: name.to_owned(),
        file_path: file.map(str::to_owned),
    }
}

/// A list of these tests for a runner.
pub fn list(tests: &[TestName], runner: Runner, list_use: Use) -> RunnerList {
    let convert: fn(&TestName) -> Result<String, &'static str> = match runner {
        Runner::Playwright => playwright::entry,
        Runner::Pytest => pytest::entry,
        Runner::Nextest => nextest::entry,
        Runner::Go => go::entry,
        Runner::Jest | Runner::Vitest | Runner::Mocha => javascript::entry,
        Runner::Dotnet => dotnet::entry,
        Runner::Surefire => surefire::entry,
        Runner::Txt => |test| {
            Ok(format!(
                "{}\t{}",
                test.file_path.as_deref().unwrap_or_default(),
                test.name
            ))
        },
        Runner::Json => |_| Ok(String::new()),
    };
    let mut entries = Vec::new();
    let mut named = Vec::new();
    let mut left_out = Vec::new();
    for test in tests {
        let has_breaks = runner != Runner::Json && test.name.contains(['\n', '\r', '\0']);
        match convert(&in_runner(test, runner)) {
            Ok(_) if has_breaks => left_out.push((test.clone(), "its name has a line break")),
            Ok(entry) => {
                entries.push(entry);
                named.push(test.clone());
            }
            Err(reason) => left_out.push((test.clone(), reason)),
        }
    }
    let text = match runner {
        Runner::Playwright | Runner::Txt => lines(&entries),
        Runner::Pytest => pytest::plugin(&entries, list_use),
        Runner::Nextest => nextest::filterset(&entries, list_use),
        Runner::Go => go::patterns(&entries),
        Runner::Jest | Runner::Vitest | Runner::Mocha => javascript::pattern(&entries, list_use),
        Runner::Dotnet => dotnet::filter(&entries, list_use),
        Runner::Surefire => surefire::patterns(&entries, list_use),
        Runner::Json => {
            let tests: Vec<_> = named
                .iter()
                .map(|test| json!({ "testName": test.name, "filePath": test.file_path }))
                .collect();
            format!("{}\n", json!(tests))
        }
    };
    RunnerList {
        text,
        named,
        left_out,
    }
}

/// How to use a list: a shell command in which `LIST` is its file, or words if there is no command.
pub const fn usage(runner: Runner, list_use: Use) -> &'static str {
    match (runner, list_use) {
        (Runner::Playwright, Use::Deselect) => "npx playwright test --test-list-invert LIST",
        (Runner::Playwright, Use::Select) => "npx playwright test --test-list LIST",
        (Runner::Pytest, _) => {
            "save it as assay_quarantine.py, then: PYTHONPATH=. pytest -p assay_quarantine"
        }
        (Runner::Nextest, _) => "cargo nextest run -E \"$(cat LIST)\"",
        (Runner::Go, Use::Deselect) => {
            "(status=0; for package in $(go list ./...); do go test -skip \
             \"$(awk -F'\\t' -v package=\"$package\" '$1 == package { print $2 }' LIST)\" \"$package\" || status=1; done; exit $status)"
        }
        (Runner::Go, Use::Select) => {
            "(status=0; while IFS=$'\\t' read -r package pattern; do go test -run \"$pattern\" \"$package\" || status=1; done < LIST; exit $status)"
        }
        (Runner::Jest, _) => "npx jest --testNamePattern \"$(cat LIST)\"",
        (Runner::Vitest, _) => "npx vitest run --testNamePattern \"$(cat LIST)\"",
        (Runner::Mocha, _) => "npx mocha --grep \"$(cat LIST)\"",
        (Runner::Dotnet, _) => "dotnet test --filter \"$(cat LIST)\"",
        (Runner::Surefire, _) => "mvn test -Dtest=\"$(cat LIST)\" -Dsurefire.failIfNoSpecifiedTests=false",
        (Runner::Txt | Runner::Json, _) => "for scripts",
    }
}

fn lines(entries: &[String]) -> String {
    entries.iter().map(|entry| format!("{entry}\n")).collect()
}

#[cfg(test)]
mod tests;
