//! `assay quarantine`: the lists, and real runners that use them.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use assay_testkit::Cli;
use serde_json::Value;

fn cli() -> Cli {
    Cli::new("postgresql://127.0.0.1:1/nowhere")
}

/// A history: the tests of `flaky` fail and pass on one revision, `red` fails from the tenth run on, and the tests of
/// `steady` pass. A test is a name and a file.
fn history(flaky: &[(&str, &str)], steady: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut csv = String::from("test,file,run,started_at,status,branch,revision\n");
    for run in 1..=20_u32 {
        let start = 1_793_520_000 + run * 36_000;
        let mut row = |(name, file): (&str, &str), failed: bool| {
            let status = if failed { "failed" } else { "passed" };
            let revision = run / 2;
            csv += &format!(
                "\"{}\",{file},r{run},{start},{status},main,c{revision}\n",
                name.replace('"', "\"\"")
            );
        };
        for test in flaky {
            row(*test, run % 4 == 1);
        }
        row(("suite > red", "red.test"), run >= 10);
        for test in steady {
            row(*test, false);
        }
    }
    fs::write(folder.path().join("history.csv"), csv).unwrap();
    folder
}

fn quarantine(history: &tempfile::TempDir, arguments: &[&str]) -> Output {
    let path = history.path().join("history.csv").display().to_string();
    cli().run(&[&["quarantine", "--history", &path], arguments].concat())
}

fn list(history: &tempfile::TempDir, arguments: &[&str]) -> String {
    let output = quarantine(history, arguments);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn only_flaky_tests_are_listed_and_missing_names_are_reported() {
    let history = history(
        &[
            ("shop::cart > tests::odd", ""),
            ("alone", ""),
            ("shop::cart > tests::even", ""),
        ],
        &[("shop::cart > tests::steady", "")],
    );
    let output = quarantine(&history, &["--format", "nextest"]);
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "not ((binary_id(=shop::cart) & test(=tests::even)) | (binary_id(=shop::cart) & test(=tests::odd)))\n"
    );
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("not listed: alone"), "{said}");

    let output = quarantine(&history, &["--format", "txt", "--max", "1"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 1);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("2 of 3 flaky tests are not listed"), "{said}");

    let json: Value = serde_json::from_str(&list(&history, &["--format", "nextest", "--json"])).unwrap();
    assert_eq!(json["tests"].as_array().unwrap().len(), 2, "{json}");
    assert_eq!(json["leftOut"][0]["testName"], "alone", "{json}");
    assert_eq!(json["flaky"], 3);
    assert_eq!(
        quarantine(&history, &[]).status.code(),
        Some(2),
        "a format is needed"
    );
}

#[test]
fn a_test_that_has_failed_for_less_than_the_minimum_age_is_not_listed() {
    // 20 runs, 10 hours apart. `late` fails in the runs 13 and 17, 70 hours before the end and later.
    let folder = history(&[("early", "")], &[]);
    let path = folder.path().join("history.csv");
    let mut csv = fs::read_to_string(&path).unwrap();
    for run in 1..=20_u32 {
        let start = 1_793_520_000 + run * 36_000;
        let status = if run == 13 || run == 17 {
            "failed"
        } else {
            "passed"
        };
        csv += &format!("late,,r{run},{start},{status},main,c{}\n", run / 2);
    }
    fs::write(&path, csv).unwrap();
    let listed = |age: &str| list(&folder, &["--format", "txt", "--min-age", age]);
    assert_eq!(listed("0d").lines().count(), 2);
    assert_eq!(listed("70h").lines().count(), 2);
    let older = listed("71h");
    assert!(older.contains("early") && !older.contains("late"), "{older}");
    let output = quarantine(&folder, &["--format", "txt", "--min-age", "71h"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("1 of 2 flaky tests are not listed"), "{said}");
    let refused = quarantine(&folder, &["--format", "txt", "--min-age", "14d"]);
    assert_eq!(refused.status.code(), Some(2));
}

/// The folder with the runners: `venv` with pytest, `js` with @playwright/test, jest and vitest.
fn runners() -> PathBuf {
    std::env::var_os("ASSAY_RUNNERS")
        .expect("ASSAY_RUNNERS names the folder of the runners")
        .into()
}

fn run(folder: &Path, program: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env("PYTHONPATH", folder)
        .env("NO_COLOR", "1")
        .env("CI", "1")
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// The stored names of the tests of a report that were not skipped.
fn ran(report: &Path) -> BTreeSet<String> {
    let csv = cli().json(&["analyze", &report.display().to_string()]);
    let tests = csv["tests"].as_array().unwrap().iter();
    tests
        .filter(|test| test["lastRun"].is_object())
        .map(|test| test["testName"].as_str().unwrap().to_owned())
        .collect()
}

/// Runs a suite without the list, then with lists to leave out and to select, and compares what ran. `runs` runs the suite
/// with a list, and returns its report.
fn tries(format: &str, all: &Path, chosen: &[&str], runs: impl Fn(Option<(&str, &str)>) -> PathBuf) {
    runs(None);
    let before = ran(all);
    let names: BTreeSet<String> = chosen.iter().map(|name| (*name).to_owned()).collect();
    assert!(names.is_subset(&before), "{format}: {before:?}");
    let analysis = cli().json(&["analyze", &all.display().to_string()]);
    let file = |name: &str| {
        let tests = analysis["tests"].as_array().unwrap();
        let test = tests.iter().find(|test| test["testName"] == name).unwrap();
        test["filePath"].as_str().unwrap_or_default().to_owned()
    };
    let files: Vec<(String, String)> = names.iter().map(|name| (name.clone(), file(name))).collect();
    let flaky: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, file)| (name.as_str(), file.as_str()))
        .collect();
    let history = history(&flaky, &[]);
    for list_use in ["deselect", "select"] {
        let text = list(&history, &["--format", format, "--as", list_use]);
        let after = ran(&runs(Some((list_use, &text))));
        let expected: BTreeSet<String> = before
            .iter()
            .filter(|name| names.contains(*name) == (list_use == "select"))
            .cloned()
            .collect();
        assert_eq!(after, expected, "{format} {list_use}");
    }
}

#[test]
#[ignore = "needs pytest in the folder ASSAY_RUNNERS"]
fn pytest_accepts_the_plugin() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("tests")).unwrap();
    let suite = "import pytest\n\nclass TestCart:\n    def test_pays(self): pass\n    def test_pays_twice(self): pass\n\n\
                 @pytest.mark.parametrize('path', ['/', '/a b', 'ü'])\ndef test_route(path): pass\n";
    fs::write(at("tests/test_cart.py"), suite).unwrap();
    fs::write(at("tests/test_other.py"), "def test_route(): pass\n").unwrap();
    let pytest = runners().join("venv/bin/pytest");
    let report = at("junit.xml");
    let chosen = [
        "tests.test_cart.TestCart > test_pays",
        "tests.test_cart > test_route[/]",
    ];
    tries("pytest", &report, &chosen, |list| {
        let flags: &[&str] = match list {
            Some((_, text)) => {
                fs::write(at("assay_quarantine.py"), text).unwrap();
                &["--junitxml=junit.xml", "-p", "assay_quarantine"]
            }
            None => &["--junitxml=junit.xml"],
        };
        run(folder.path(), &pytest, flags);
        report.clone()
    });
}

#[test]
#[ignore = "needs @playwright/test in the folder ASSAY_RUNNERS"]
fn playwright_accepts_the_list() {
    let js = runners().join("js");
    let folder = tempfile::tempdir_in(&js).unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("e2e/ui")).unwrap();
    let config =
        "module.exports = { testDir: './e2e', projects: [{ name: 'chromium' }, { name: 'Mobile Chrome' }] };";
    fs::write(at("playwright.config.js"), config).unwrap();
    let suite = "const { test } = require('@playwright/test');\n\
                 test.describe('home (page)', () => { test('shows', () => {}); test('shows more', () => {}); });\n";
    fs::write(at("e2e/ui/home.spec.js"), suite).unwrap();
    fs::write(at("e2e/other.spec.js"), suite).unwrap();
    let report = at("results.json");
    let chosen = [
        "chromium > ui/home.spec.js > home (page) > shows",
        "Mobile Chrome > other.spec.js > home (page) > shows more",
    ];
    tries("playwright", &report, &chosen, |list| {
        let flag = list.map(|(list_use, text)| {
            fs::write(at("list.txt"), text).unwrap();
            match list_use {
                "select" => "--test-list",
                _ => "--test-list-invert",
            }
        });
        let mut arguments = vec!["test", "--reporter=json"];
        arguments.extend(flag.into_iter().flat_map(|flag| [flag, "list.txt"]));
        let printed = run(
            folder.path(),
            &js.join("node_modules/.bin/playwright"),
            &arguments,
        );
        fs::write(&report, printed).unwrap();
        report.clone()
    });
}

/// Jest and Vitest, whose JSON reports have skipped tests of a pattern as pending.
fn takes_a_pattern(format: &str, suite: &str, file: &str, arguments: &[&str]) {
    let js = runners().join("js");
    let folder = tempfile::tempdir_in(&js).unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("package.json"), "{}").unwrap();
    fs::write(at(file), suite).unwrap();
    let report = at("results.json");
    tries(format, &report, &["cart > adds (up)", "pays $1"], |list| {
        let mut arguments = arguments.to_vec();
        arguments.extend(
            list.iter()
                .flat_map(|(_, text)| ["--testNamePattern", text.trim_end()]),
        );
        let program = js.join("node_modules/.bin").join(format);
        let said = run(folder.path(), &program, &arguments);
        assert!(report.is_file(), "{said}");
        report.clone()
    });
}

const SUITE: &str = "describe('cart', () => { test('adds (up)', () => {}); test('adds (up) twice', () => {}); });\n\
                     test('pays $1', () => {});\ntest('pays $12', () => {});\n";

#[test]
#[ignore = "needs jest in the folder ASSAY_RUNNERS"]
fn jest_accepts_the_pattern() {
    takes_a_pattern(
        "jest",
        SUITE,
        "cart.test.js",
        &["--rootDir=.", "--json", "--outputFile=results.json"],
    );
}

#[test]
#[ignore = "needs vitest in the folder ASSAY_RUNNERS"]
fn vitest_accepts_the_pattern() {
    let suite = format!("import {{ describe, test }} from 'vitest';\n{SUITE}");
    let arguments = ["run", "--root=.", "--reporter=json", "--outputFile=results.json"];
    takes_a_pattern("vitest", &suite, "cart.test.js", &arguments);
}

#[test]
#[ignore = "needs go"]
fn go_accepts_the_patterns() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("go.mod"), "module example.com/s\n\ngo 1.19\n").unwrap();
    for package in ["shop", "cart"] {
        fs::create_dir(at(package)).unwrap();
        let suite = format!(
            "package {package}\n\nimport \"testing\"\n\nfunc TestTotal(t *testing.T) {{}}\nfunc TestTotalMore(t *testing.T) {{}}\n\
             func TestCart(t *testing.T) {{ t.Run(\"a+b\", func(t *testing.T) {{}}); t.Run(\"a+bc\", func(t *testing.T) {{}}) }}\n"
        );
        fs::write(at(package).join("a_test.go"), suite).unwrap();
    }
    let flaky = [
        ("example.com/s/shop > TestTotal", ""),
        ("example.com/s/shop > TestCart/a+b", ""),
    ];
    let history = history(&flaky, &[]);
    let text = list(&history, &["--format", "go", "--as", "select"]);
    let (package, pattern) = text.trim_end().split_once('\t').unwrap();
    let printed = run(
        folder.path(),
        Path::new("go"),
        &["test", "-v", "-run", pattern, package],
    );
    let passed: BTreeSet<&str> = printed
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("--- PASS: ")?.split(' ').next())
        .collect();
    // A subtest runs within its test.
    assert_eq!(
        passed,
        BTreeSet::from(["TestCart", "TestCart/a+b", "TestTotal"]),
        "{printed}"
    );
}

#[test]
#[ignore = "needs cargo-nextest"]
fn nextest_accepts_the_filterset() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("src")).unwrap();
    fs::create_dir_all(at("tests")).unwrap();
    fs::create_dir_all(at(".config")).unwrap();
    fs::write(
        at("Cargo.toml"),
        "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
    )
    .unwrap();
    let suite =
        "#[cfg(test)]\nmod tests {\n    #[test]\n    fn adds() {}\n    #[test]\n    fn adds_up() {}\n}\n";
    fs::write(at("src/lib.rs"), suite).unwrap();
    fs::write(at("tests/orders.rs"), suite).unwrap();
    fs::write(
        at(".config/nextest.toml"),
        "[profile.default.junit]\npath = \"junit.xml\"\n",
    )
    .unwrap();
    let report = at("target/nextest/default/junit.xml");
    tries(
        "nextest",
        &report,
        &["shop > tests::adds", "shop::orders > tests::adds_up"],
        |list| {
            let mut arguments = vec!["nextest", "run", "--offline"];
            arguments.extend(list.iter().flat_map(|(_, text)| ["-E", text.trim_end()]));
            let said = run(folder.path(), Path::new("cargo"), &arguments);
            assert!(report.is_file(), "{said}");
            report.clone()
        },
    );
}
