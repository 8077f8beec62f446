//! Recognizes the format of a text by its content.

use memchr::memmem;

use crate::{json, playwright, report::Format, tap};

/// The format of a text. The error names the format that the text seems to have instead.
pub(crate) fn detect(text: &str) -> Result<Format, String> {
    let head = text.trim_start_matches('\u{feff}').trim_start();
    if head.is_empty() {
        return Err("the file is empty: its reporter crashed or never ran".to_owned());
    }
    if tap::begins(head) {
        return Ok(Format::Tap);
    }
    if playwright::is_blob(head) {
        return Ok(Format::Playwright);
    }
    // A file that the archive only stores is readable text within it.
    if head.starts_with("PK\u{3}\u{4}") {
        return Err(NO_BLOB_REPORT.to_owned());
    }
    if let Some(hint) = unsupported_xml(head) {
        return Err(hint.to_owned());
    }
    let xml = if head.starts_with(['{', '[']) {
        None
    } else {
        xml(text)
    };
    let mut hint = None;
    let before = xml.and_then(|(root, _)| text.get(..root)).unwrap_or(text);
    let json_format = json::find_object(before, |text| match object(text) {
        Ok(format) => Some(format),
        Err(hint_of_object) => {
            hint = hint.or(hint_of_object);
            None
        }
    });
    if let Some((_, format)) = json_format {
        return Ok(format);
    }
    if let Some((_, format)) = xml {
        return Ok(format);
    }
    if tap::is_among_other_text(head) {
        return Ok(Format::Tap);
    }
    if let Some(hint) = hint.or_else(|| hint_about_other_text(head)) {
        return Err(hint.to_owned());
    }
    if json::is_cut_off(head) {
        let line = 1 + text.matches('\n').count();
        return Err(format!(
            "its JSON is cut off in line {line}, before the keys of its format; expected {}",
            Format::all_in_words()
        ));
    }
    Err(format!("expected {}", Format::all_in_words()))
}

/// Whether a text may be the beginning of a report whose reporter crashed: white space alone, JSON that ends within a
/// value, or XML that ends before its outermost element does.
pub(crate) fn is_cut_off(text: &str) -> bool {
    let head = text.trim_start_matches('\u{feff}').trim();
    match head.chars().next() {
        None => true,
        Some('{' | '[') => {
            let values = serde_json::Deserializer::from_str(head).into_iter::<serde::de::IgnoredAny>();
            values
                .take(MOST_VALUES)
                .any(|value| value.is_err_and(|error| error.is_eof()))
        }
        Some('<') => {
            let Some((at, _)) = elements(head).next() else {
                return true;
            };
            let root = head.get(at..).unwrap_or_default();
            let is_end = |c: char| c.is_whitespace() || matches!(c, '>' | '/' | '<');
            let name = root
                .get(1..)
                .and_then(|rest| rest.split(is_end).next())
                .unwrap_or_default();
            let is_empty_element = root.split_once('>').is_some_and(|(tag, _)| tag.ends_with('/'));
            !name.eq_ignore_ascii_case("html") && !is_empty_element && !root.contains(&format!("</{name}"))
        }
        Some(_) => false,
    }
}

/// The most values of a file with several that [`is_cut_off`] reads.
const MOST_VALUES: usize = 100_000;

/// The XML format by its outermost element, and the byte where that begins. Text before it, such as log lines, is
/// skipped.
fn xml(text: &str) -> Option<(usize, Format)> {
    let mut is_first = true;
    elements(text).find_map(|(at, name)| {
        // Other XML also has elements of these names, inside another element. The text is searched only for the root.
        let is_root = std::mem::replace(&mut is_first, false);
        let is_root_with = |part: &str| is_root && text.get(at..).is_some_and(|rest| rest.contains(part));
        let format = match name {
            "testsuites" | "testsuite" | "testcase" => Format::Junit,
            "TestRun" => Format::Trx,
            "testng-results" => Format::Testng,
            "robot" if is_root_with("<suite") => Format::Robot,
            "test-run" | "test-results" if is_root => Format::Nunit,
            "assemblies" if is_root_with("<assembly") => Format::Xunit,
            "assembly" if is_root_with("test-framework") => Format::Xunit,
            "Site" if is_root_with("<Testing") => Format::Ctest,
            "Catch2TestRun" | "Catch" if is_root => Format::Catch2,
            _ => return None,
        };
        Some((at, format))
    })
}

/// The elements that begin in a text, by name without the namespace's prefix.
fn elements(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices('<').filter_map(|(at, _)| {
        let name = text
            .get(at + 1..)?
            .split(|c: char| c.is_whitespace() || matches!(c, '>' | '/' | '<'))
            .next()?;
        let name = name.rsplit(':').next().unwrap_or_default();
        name.starts_with(char::is_alphabetic).then_some((at, name))
    })
}

/// The format of a JSON object by its keys; otherwise the name of its actual format, if known.
fn object(text: &str) -> Result<Format, Option<&'static str>> {
    let mut keys = TopLevelKeys::default();
    for (depth, key) in json::keys(text) {
        if let Some(format) = keys.add(depth, key) {
            return Ok(format);
        }
    }
    match keys.find(HINTS) {
        // An Allure result is short. If it is cut off, only its beginning may be present.
        None if keys.outer.contains(&"uuid") && json::is_cut_off(text) => Ok(Format::Allure),
        hint => Err(hint),
    }
}

/// The keys of the objects of each format, and those of one object inside it, after a dot. The first row that an object
/// has all keys of tells its format.
const FORMATS: &[(&str, Format)] = &[
    ("suites config", Format::Playwright),
    ("suites errors", Format::Playwright),
    ("reportFormat", Format::Ctrf),
    ("results .tests .summary", Format::Ctrf),
    ("results .tests .tool", Format::Ctrf),
    ("testResults", Format::Jest),
    ("elements uri", Format::Cucumber),
    ("elements keyword", Format::Cucumber),
    ("stats results", Format::Mochawesome),
    ("stats tests passes", Format::Mocha),
    ("stats tests failures", Format::Mocha),
    ("featureSummary", Format::Karate),
    ("scenarioResults", Format::Karate),
    ("exitcode collectors", Format::PytestJson),
    ("exitcode tests", Format::PytestJson),
    ("exitcode root", Format::PytestJson),
    ("examples summary", Format::Rspec),
    ("examples summary_line", Format::Rspec),
    ("protocolVersion runnerVersion", Format::Dart),
    ("type testID", Format::Dart),
    ("type time suite", Format::Dart),
    ("type time test", Format::Dart),
    ("type event test_count", Format::Libtest),
    ("type event exec_time", Format::Libtest),
    ("meta .protocolVersion", Format::CucumberMessages),
    ("version kind payload", Format::Swift),
    ("Action Package", Format::Go),
    ("Action ImportPath", Format::Go),
    ("Action Test", Format::Go),
    ("uuid status fullName", Format::Allure),
    ("uuid status start", Format::Allure),
    // A test that never ended has no status.
    ("uuid stage", Format::Allure),
    ("uuid historyId", Format::Allure),
    ("uuid befores", Format::Allure),
    ("uuid afters", Format::Allure),
    ("uuid children", Format::Allure),
    ("attachments errors", Format::Allure),
];

/// The keys of objects that have no reader, and what to do instead.
const HINTS: &[(&str, &str)] = &[
    (
        "$report_type",
        "this is pytest-reportlog's; write `--junitxml` or use pytest-json-report instead",
    ),
    (
        "testsuites environment",
        "this is Zephyr's twister.json; import twister.xml or twister_report.xml beside it",
    ),
    (
        "testsuites",
        "this is GoogleTest's JSON; run the program with --gtest_output=xml:FILE instead",
    ),
    (
        "generator rpa suite",
        "this is Robot Framework's JSON; run it with --output output.xml instead",
    ),
    (
        "SpecReports",
        "this is Ginkgo's JSON; run ginkgo with --junit-report=FILE instead",
    ),
    (
        "testNodes",
        "this is xcresulttool's JSON of Xcode; convert the xcresult bundle to JUnit XML by xcresultparser or xcbeautify",
    ),
    (
        "metrics root_group",
        "this is k6's summary; write JUnit XML by jUnit() of k6-summary in handleSummary instead",
    ),
    (
        "collection run",
        "this is Newman's JSON; run newman with --reporters junit instead",
    ),
    (
        "__version__ elapsed",
        "this is lit's JSON; run lit with --xunit-xml-output FILE instead",
    ),
];

/// The distinguishing keys that were read so far.
#[derive(Default)]
struct TopLevelKeys<'a> {
    outer: Vec<&'a str>,
    inner: Vec<&'a str>,
}

impl<'a> TopLevelKeys<'a> {
    fn add(&mut self, depth: usize, key: &'a str) -> Option<Format> {
        let keys = match depth {
            1 => &mut self.outer,
            2 => &mut self.inner,
            _ => return None,
        };
        let mut rows = FORMATS
            .iter()
            .map(|(keys, _)| *keys)
            .chain(HINTS.iter().map(|(keys, _)| *keys));
        let mut is_distinguishing = || rows.any(|row| row.split([' ', '.']).any(|known| known == key));
        if keys.contains(&key) || !is_distinguishing() {
            return None;
        }
        keys.push(key);
        self.find(FORMATS)
    }

    /// The value of the first row whose keys were all read.
    fn find<T: Copy>(&self, rows: &[(&str, T)]) -> Option<T> {
        let has = |key: &str| match key.strip_prefix('.') {
            Some(inner) => self.inner.contains(&inner),
            None => self.outer.contains(&key),
        };
        let row = rows.iter().find(|(keys, _)| keys.split(' ').all(has))?;
        Some(row.1)
    }
}

/// Recognizes unsupported XML whose elements have the names of a supported format, and returns advice. Without
/// this rule such a document would be an empty report, and the run would pass.
fn unsupported_xml(text: &str) -> Option<&'static str> {
    const BEGINNING: usize = 4_000;
    if !text.starts_with('<') {
        return None;
    }
    let (at, root) = elements(text).next()?;
    let beginning = text.as_bytes().get(at..)?;
    let beginning = beginning.get(..BEGINNING).unwrap_or(beginning);
    let has = |part: &str| memmem::find(beginning, part.as_bytes()).is_some();
    match root {
        "TestRun" if has("<SuccessfulTests") || has("<FailedTests") => Some(
            "this is CppUnit's own XML, which AUnit writes, too; use AUnit.Reporter.JUnit, or convert CppUnit's to JUnit XML",
        ),
        "testsuites" if has("check.sourceforge.net") => {
            Some("this is Check's own XML; set CK_TAP_LOG_FILE_NAME instead")
        }
        "gtester" => Some("this is gtester's log; run the test programs with --tap instead"),
        _ => None,
    }
}

/// What an archive is that is no report.
const NO_BLOB_REPORT: &str =
    "this is an archive without a whole `.jsonl` file; of archives, only Playwright's blob reports are read";

/// The name of the format of a text that is neither a readable report nor JSON, and what to do instead.
fn hint_about_other_text(text: &str) -> Option<&'static str> {
    if text.starts_with("##teamcity[") || text.contains("\n##teamcity[") {
        Some(
            "these are TeamCity's service messages; write the tool's JUnit XML instead, such as by --log-junit of PHPUnit",
        )
    } else if text.starts_with("=== RUN") || text.starts_with("--- ") {
        Some("this is the text of `go test -v`; use `go test -json` instead")
    } else {
        match elements(text).next().map(|(_, name)| name)? {
            "TestLog" | "TestResult" => {
                Some("this is Boost.Test's own XML; run it with --log_format=JUNIT instead")
            }
            "testExecutions" | "unitTest" => {
                Some("this is SonarQube's generic test execution; write the tool's JUnit XML instead")
            }
            "events" | "execution" if text.contains("opentest4j") => Some(
                "this is Open Test Reporting of opentest4j; import JUnit's legacy XML (TEST-*.xml), which the console launcher and build tools write",
            ),
            "doctest" => Some("this is doctest's own XML; run it with --reporters=junit instead"),
            "TestCase" => Some("this is Qt Test's own XML; run it with -o FILE,junitxml instead"),
            "Site" => {
                Some("this file of CTest's holds no tests; import Test.xml beside it, or use --output-junit")
            }
            "testResults" => Some("these are JMeter's samples, not tests"),
            "CUNIT_TEST_RUN_REPORT" => {
                Some("this is CUnit's own XML; call CU_automated_enable_junit_xml(CU_TRUE) instead")
            }
            "unittest-results" => Some("this is UnitTest++'s own XML; convert it to JUnit XML"),
            "TestResults" => Some("this is FPCUnit's own XML; use its unit junittestreport instead"),
            "valgrindoutput" => Some("this is Valgrind's log, which holds no tests"),
            _ => None,
        }
    }
}
