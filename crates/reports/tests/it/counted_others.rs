//! The independent count of `counted` for formats of several tools and for Playwright, Jest, Go, TestNG and Allure. It
//! compares the last title of each test and the statuses of its attempts.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    counted::{Element, all, items, letter, test_of_hook, text, tree},
    support::{self, rooted},
};

/// The end of a test's last title, and the sorted statuses of its attempts, one letter each.
type TitleAndStatuses = Vec<(String, String)>;

/// Reports without tests: Vitest's JUnit reporter was killed before it wrote.
const EMPTY: &[&str] = &["vitest/junit-crashed.xml"];

#[test]
fn readers_agree_with_an_independent_count_of_the_other_formats() {
    let (mut compared, mut differences_of_all) = (0, Vec::new());
    for directory in [
        "bats",
        "ctest",
        "ctrf",
        "cucumber",
        "go",
        "jest",
        "mocha",
        "nextest",
        "playwright",
        "pytest",
        "python-others",
        "rspec",
        "samples",
        "surefire",
        "tap",
        "testng",
        "vitest",
    ] {
        for file in support::files_in(directory) {
            let bytes = String::from_utf8_lossy(&file.bytes).into_owned();
            let Some(expected) = counted(&file.name, &bytes).filter(|_| !EMPTY.contains(&&*file.name)) else {
                continue;
            };
            differences_of_all.extend(differences(&file.name.clone(), vec![file], expected));
            compared += 1;
        }
    }
    assert!(compared > 70, "{compared} reports");
    for directory in ["allure-playwright", "allure-pytest"] {
        let files = support::files_in(directory);
        let results = files.iter().filter(|file| file.name.ends_with("-result.json"));
        let results: Vec<Value> = results
            .map(|file| serde_json::from_slice(&file.bytes).unwrap())
            .collect();
        differences_of_all.extend(differences(directory, files.clone(), allure(&results)));
    }
    assert!(differences_of_all.is_empty(), "{}", differences_of_all.join("\n"));
}

/// Pairs each counted test with one of the report whose name and outcome match. Returns the tests without a partner.
fn differences(
    what: &str,
    files: Vec<assay_reports::SourceFile>,
    mut expected: TitleAndStatuses,
) -> Vec<String> {
    let vitest = what.starts_with("vitest/");
    let sorted = |letters: String| {
        let mut letters: Vec<char> = letters.chars().collect();
        letters.sort_unstable();
        if vitest {
            // Vitest does not write the number of attempts.
            letters.dedup();
        }
        letters.into_iter().collect::<String>()
    };
    let report = rooted(files, "/home/runner/work/acme-shop");
    let mut read: TitleAndStatuses = Vec::new();
    // A set-up of a class exists only if it failed.
    let tests = report.tests.iter();
    for test in tests.filter(|test| !test.test.name.ends_with("(set-up)")) {
        let attempts = test.attempts.iter().map(|attempt| letter(attempt.status));
        read.push((test.test.name.clone(), sorted(attempts.collect())));
    }
    // Longer titles match fewer names.
    expected.sort_by_key(|(title, _)| std::cmp::Reverse(title.len()));
    let mut missing = Vec::new();
    for (title, letters) in expected {
        let letters = sorted(letters);
        let fits = |(name, ends): &(String, String)| *ends == letters && name.trim_end().ends_with(&title);
        match read.iter().position(fits) {
            Some(index) => drop(read.remove(index)),
            None => missing.push(format!("{what}: counted, not read: {title:?} {letters:?}")),
        }
    }
    let others = read
        .iter()
        .map(|(name, letters)| format!("{what}: read, not counted: {name:?} {letters:?}"));
    missing.extend(others);
    missing
}

/// The part of a title that every format writes the same way: its last words.
fn end_of(title: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ' ');
    let title = title.trim_end();
    let end = title.rsplit(|c: char| !is_plain(c)).next().unwrap_or_default();
    end.trim_start().to_owned()
}

/// The tests of a file; none if it has none of these formats.
fn counted(path: &str, content: &str) -> Option<TitleAndStatuses> {
    let (directory, name) = path.split_once('/').unwrap();
    let json = || serde_json::from_str::<Value>(content).unwrap();
    let tests = match (directory, name) {
        ("playwright", name) if name.starts_with("github") => return None,
        ("playwright", "blob-same-run.json") => playwright(&json()),
        ("playwright", name) if name.ends_with(".json") => playwright(&json()),
        ("ctrf", _) => ctrf(&json()),
        ("jest" | "vitest", name) if name.ends_with(".json") => jest(&json()),
        ("go", name) if name.ends_with(".jsonl") => go(content),
        ("testng", _) => testng(&tree(content)),
        ("samples", "mstest.trx") => trx(&tree(content)),
        ("samples", "nunit3.xml" | "xunit2.xml") | ("ctest", "Test.xml") => return None,
        (_, name) if name.ends_with(".xml") => junit(directory, content),
        _ => return None,
    };
    Some(
        tests
            .into_iter()
            .map(|(title, ends)| (end_of(&title), ends))
            .collect(),
    )
}

/// Joins the entries of one test, in the order of the report.
fn joined<K: Ord>(tests: impl IntoIterator<Item = (K, String, String)>) -> Vec<(String, Vec<String>)> {
    let mut by_key: BTreeMap<K, (String, Vec<String>)> = BTreeMap::new();
    for (key, title, letters) in tests {
        by_key.entry(key).or_insert((title, Vec::new())).1.push(letters);
    }
    by_key.into_values().collect()
}

fn together(tests: Vec<(String, Vec<String>)>) -> TitleAndStatuses {
    tests
        .into_iter()
        .map(|(title, executions)| (title, executions.concat()))
        .collect()
}

fn junit(directory: &str, content: &str) -> TitleAndStatuses {
    // The tree keeps numbered references.
    let content = content.replace("&#x22;", "&quot;");
    let (root, outside) = (tree(&content), Element::default());
    let mut cases = Vec::new();
    in_suites(&root, &outside, &mut cases);
    // These exist only if they failed, and are errors of the run.
    cases.retain(|(_, case)| !is_set_up(directory, case));
    let tests = joined(cases.into_iter().map(|(suite, case)| {
        // Playwright's project, and the file in Mocha's report.
        let around = [suite.attribute("hostname"), suite.attribute("file")];
        let own = ["classname", "name", "file"].map(|key| case.attribute(key));
        let count = |names: [&str; 2]| {
            let children = case.children.iter().filter(|child| names.contains(&&*child.name));
            children.count()
        };
        let skipped_by_attribute = matches!(case.attribute("status"), "disabled" | "notrun")
            || matches!(case.attribute("result"), "suppressed" | "skipped");
        // CTest writes a test whose program is missing as skipped, and lists it as failed.
        let is_missing = (case.child("skipped"))
            .is_some_and(|skipped| skipped.attribute("message") == "Unable to find executable");
        let last = if is_missing {
            "f"
        } else if case.child("skipped").is_some() || skipped_by_attribute {
            "s"
        } else if count(["failure", "error"]) > 0 {
            "f"
        } else {
            "p"
        };
        let earlier = count(["flakyFailure", "flakyError"]) + count(["rerunFailure", "rerunError"]);
        ((around, own), own[1].to_owned(), "f".repeat(earlier) + last)
    }));
    match directory {
        // A repeated case is a retry, or a failure of the tear-down. pytest writes the first attempt of a retry as
        // passed.
        "pytest" => tests
            .into_iter()
            .map(|(title, cases)| {
                let again = cases.iter().skip(1).any(|case| case == "f") && cases[0] == "f";
                let earlier = if again { 0 } else { cases.len() - 1 };
                (title, "f".repeat(earlier) + cases.last().unwrap())
            })
            .collect(),
        "go" => without_groups(together(tests)),
        // Old versions of Playwright put the titles of the groups into the name.
        "playwright" => together(tests)
            .into_iter()
            .map(|(title, ends)| (title.rsplit(' ').next().unwrap_or_default().to_owned(), ends))
            .collect(),
        "mocha" => with_hooks(together(tests)),
        _ => together(tests),
    }
}

/// Whether a failed case is a package, a file that did not load, or the set-up of a class.
fn is_set_up(directory: &str, case: &Element) -> bool {
    match directory {
        "jest" => case.attribute("classname") == "Test suite failed to run",
        "go" => case.attribute("classname").is_empty(),
        "pytest" => case
            .child("error")
            .is_some_and(|error| error.is("message", "collection failure")),
        "surefire" => case.attribute("classname") == case.attribute("name"),
        _ => false,
    }
}

/// The tests after their hooks failed. A hook of Mocha names its test in its title.
fn with_hooks(tests: TitleAndStatuses) -> TitleAndStatuses {
    let (hooks, mut tests): (TitleAndStatuses, TitleAndStatuses) = tests
        .into_iter()
        .partition(|(title, _)| title.contains("\" hook"));
    for (title, _) in hooks {
        let Some(test) = test_of_hook(&title) else {
            continue;
        };
        match tests.iter_mut().find(|(title, _)| *title == test) {
            Some((_, letters)) => letters.replace_range(letters.len() - 1.., "f"),
            None => tests.push((test, "f".to_owned())),
        }
    }
    tests
}

fn in_suites<'e>(element: &'e Element, suite: &'e Element, into: &mut Vec<(&'e Element, &'e Element)>) {
    for child in &element.children {
        match &*child.name {
            "testcase" => into.push((suite, child)),
            "testsuite" | "testsuites" => in_suites(child, child, into),
            _ => {}
        }
    }
}

/// A test with subtests counts only if it failed and none of them did. Repeats of `-count` may differ.
fn without_groups(tests: TitleAndStatuses) -> TitleAndStatuses {
    let below = |name: &str| format!("{name}/");
    let leaves = tests.iter().filter(|(name, letters)| {
        let mut inner = tests
            .iter()
            .filter(|(other, _)| other.starts_with(&below(name)))
            .peekable();
        inner.peek().is_none() || (letters.contains('f') && !inner.any(|(_, ends)| ends.contains('f')))
    });
    leaves.cloned().collect()
}

fn playwright(report: &Value) -> TitleAndStatuses {
    fn walk(suite: &Value, around: &str, into: &mut Vec<(String, String, String)>) {
        let around = format!("{around}\0{}", suite["title"]);
        for inner in items(&suite["suites"]) {
            walk(inner, &around, into);
        }
        for spec in items(&suite["specs"]) {
            for test in items(&spec["tests"]) {
                let key = format!("{}\0{around}\0{}", test["projectName"], spec["title"]);
                let should_fail = text(&test["expectedStatus"]) == "failed";
                let letters: String = items(&test["results"])
                    .map(|result| match (text(&result["status"]), should_fail) {
                        ("passed", false) | ("failed", true) => 'p',
                        ("skipped", _) => 's',
                        ("interrupted", _) => 'i',
                        _ => 'f',
                    })
                    .collect();
                let letters = if letters.is_empty() {
                    "s".to_owned()
                } else {
                    letters
                };
                into.push((key, text(&spec["title"]).to_owned(), letters));
            }
        }
    }
    let mut tests = Vec::new();
    for suite in items(&report["suites"]) {
        walk(suite, "", &mut tests);
    }
    together(joined(tests))
}

fn ctrf(report: &Value) -> TitleAndStatuses {
    let letter = |status: &Value| match text(status) {
        "passed" => "p",
        "failed" => "f",
        _ => "s",
    };
    let tests = items(&report["results"]["tests"]).map(|test| {
        let attempts: String = items(&test["retryAttempts"])
            .map(|attempt| letter(&attempt["status"]))
            .collect();
        let retries = usize::try_from(test["retries"].as_u64().unwrap_or(0)).unwrap();
        let earlier = if attempts.is_empty() {
            "f".repeat(retries)
        } else {
            attempts
        };
        let key = ["filePath", "suite", "browser", "name"].map(|part| test[part].to_string());
        let title = text(&test["name"]);
        let last = match text(&test["rawStatus"]) {
            "interrupted" => "i",
            _ => letter(&test["status"]),
        };
        (key, title.to_owned(), earlier + last)
    });
    // Some writers put the titles of the suites into the name.
    let last_word = |title: String| title.rsplit(' ').next().unwrap_or_default().to_owned();
    with_hooks(together(joined(tests)))
        .into_iter()
        .map(|(title, letters)| (last_word(title), letters))
        .collect()
}

fn jest(report: &Value) -> TitleAndStatuses {
    let mut tests = Vec::new();
    for file in items(&report["testResults"]) {
        for test in items(&file["assertionResults"]) {
            let earlier = test["invocations"].as_u64().unwrap_or(1).saturating_sub(1);
            let recovered = usize::from(test["invocations"].is_null() && text(&test["status"]) == "passed")
                * items(&test["failureMessages"]).count();
            let last = match text(&test["status"]) {
                "passed" => "p",
                "failed" => "f",
                _ => "s",
            };
            let key = format!("{}\0{}\0{}", file["name"], test["ancestorTitles"], test["title"]);
            let earlier = "f".repeat(usize::try_from(earlier).unwrap() + recovered);
            tests.push((key, text(&test["title"]).to_owned(), earlier + last));
        }
    }
    together(joined(tests))
}

fn go(events: &str) -> TitleAndStatuses {
    let events = events
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut open: BTreeMap<String, String> = BTreeMap::new();
    let mut tests = Vec::new();
    for event in events.filter(|event| event["Test"].is_string()) {
        let name = format!("{}\0{}", text(&event["Package"]), text(&event["Test"]));
        let letter = match text(&event["Action"]) {
            "pass" => "p",
            "fail" => "f",
            "skip" => "s",
            // Output without a line break hides the end from the tool.
            "output" if text(&event["Output"]).contains("here--- PASS: ") => "p",
            "run" => {
                open.insert(name, text(&event["Test"]).to_owned());
                continue;
            }
            _ => continue,
        };
        open.remove(&name);
        tests.push((name.clone(), name, letter.to_owned()));
    }
    // Without an end, the program ended first.
    tests.extend(open.into_keys().map(|name| (name.clone(), name, "f".to_owned())));
    without_groups(together(joined(tests)))
}

fn testng(root: &Element) -> TitleAndStatuses {
    let methods = all(root, "test-method").into_iter().map(|(_, method)| method);
    let tests = methods
        .filter(|method| !method.is("is-config", "true"))
        .map(|method| {
            let values: String = all(method, "value")
                .iter()
                .map(|(_, value)| value.text.trim())
                // The address of an object differs in each run.
                .filter(|value| !value.contains("Object@"))
                .collect();
            let failed = method.child("exception");
            let letter = match (method.attribute("status"), failed) {
                ("PASS", _) => "p",
                ("FAIL", _) => "f",
                // An attempt that is run again is skipped, with its error.
                (_, Some(exception)) if exception.attribute("class") == "java.lang.AssertionError" => "f",
                _ => "s",
            };
            let key = format!("{}\0{values}", method.attribute("signature"));
            (key, method.attribute("name").to_owned(), letter.to_owned())
        });
    // The values of a data provider follow the name.
    let tests = together(joined(tests)).into_iter();
    tests.map(|(_, letters)| (String::new(), letters)).collect()
}

fn trx(root: &Element) -> TitleAndStatuses {
    let mut inner = Vec::new();
    let results = all(root, "UnitTestResult");
    for (_, result) in &results {
        inner.extend(all(result, "UnitTestResult"));
    }
    let outer = results
        .iter()
        .filter(|(_, result)| all(result, "UnitTestResult").is_empty());
    let tests = outer.chain(&inner).map(|(_, result)| {
        let letter = match result.attribute("outcome") {
            "Passed" | "PassedButRunAborted" | "Warning" | "Completed" => "p",
            // An absent outcome is `Error`, the default of the schema.
            "Failed" | "Error" | "Timeout" | "" => "f",
            "Aborted" | "InProgress" | "Disconnected" => "i",
            _ => "s",
        };
        (
            result.attribute("testName").to_owned(),
            String::new(),
            letter.to_owned(),
        )
    });
    together(joined(tests))
}

fn allure(results: &[Value]) -> TitleAndStatuses {
    let tests = results.iter().map(|result| {
        let letter = match text(&result["status"]) {
            "passed" => "p",
            "failed" | "broken" => "f",
            _ => "s",
        };
        // A repetition is another execution of the test.
        let settings = items(&result["parameters"])
            .filter(|parameter| !matches!(text(&parameter["name"]), "Repetition" | "Retry"))
            .map(Value::to_string);
        let key = settings.fold(result["fullName"].to_string(), |key, next| key + &next);
        (key, String::new(), letter.to_owned())
    });
    together(joined(tests))
}
