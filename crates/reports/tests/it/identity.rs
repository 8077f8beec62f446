//! The identity of tests and results: which names are one test, and which results are one result written twice.

use assay_domain::attempt::AttemptStatus;
use assay_reports::{Options, Report};

use crate::support::{inline, plain};

fn junit(text: &str) -> Report {
    plain(vec![inline("r.xml", text)]).unwrap()
}

/// Name, file and number of attempts of each test.
fn tests(report: &Report) -> Vec<(&str, Option<&str>, usize)> {
    report
        .tests
        .iter()
        .map(|test| {
            (
                &*test.test.name,
                test.test.file_path.as_deref(),
                test.attempts.len(),
            )
        })
        .collect()
}

#[test]
fn a_suite_named_by_a_path_is_the_file() {
    let report = junit(
        "<testsuites name='jest tests'><testsuite name='atoms/a.test.tsx'><testcase classname='' name='renders'/></testsuite>\
         <testsuite name='atoms/b.test.tsx'><testcase classname='' name='renders'/></testsuite>\
         <testsuite name='tests/test_a.py'><testcase classname='' name='adds'/></testsuite>\
         <testsuite name='my orders.js'><testcase classname='' name='adds'/></testsuite></testsuites>",
    );
    assert_eq!(
        tests(&report),
        [
            ("renders", Some("atoms/a.test.tsx"), 1),
            ("renders", Some("atoms/b.test.tsx"), 1),
            ("adds", Some("tests/test_a.py"), 1),
            ("my orders.js > adds", None, 1),
        ]
    );
}

#[test]
fn without_a_class_name_the_suites_name_the_class() {
    let report = junit(
        "<testsuites><testsuite name='all'><testsuite name='packet'><testsuite name='TestA'><testcase classname='' name='A'/>\
         </testsuite><testsuite name='TestB'><testcase classname='' name='A'/></testsuite><testcase classname='' name='A'/>\
         </testsuite></testsuite></testsuites>",
    );
    assert_eq!(
        tests(&report),
        [
            ("all > packet > TestA > A", None, 1),
            ("all > packet > TestB > A", None, 1),
            ("all > packet > A", None, 1)
        ]
    );
}

#[test]
fn a_suite_leads_the_names_of_its_tests() {
    let report = junit(
        "<testsuites><testsuite name='s1'><testcase classname='C' name='a'/><testcase classname='C' name='b'/></testsuite>\
         <testsuite name='s2'><testcase classname='C' name='a'><failure/></testcase></testsuite>\
         <testsuite name='s1'><testcase classname='C' name='a'/></testsuite></testsuites>",
    );
    assert_eq!(
        tests(&report),
        [
            ("s1 > C > a", None, 2),
            ("s1 > C > b", None, 1),
            ("s2 > C > a", None, 1)
        ]
    );
    // A name with the time of the run differs in each run.
    let report = junit(
        "<testsuites><testsuite name='s-20261120184603'><testcase classname='C' name='a'/></testsuite>\
         <testsuite name='s-20261120184604'><testcase classname='C' name='a'/></testsuite></testsuites>",
    );
    assert_eq!(tests(&report), [("C > a", None, 2)]);
}

#[test]
fn a_browser_named_by_the_suite_is_the_variant() {
    let report = junit(
        "<testsuites><testsuite name='Firefox - a.cy.js'><testcase classname='page' name='opens'/></testsuite>\
         <testsuite name='FiltersTest: internet explorer 11'><testsuite name='FiltersTest::opens'>\
         <testcase classname='page' name='opens'/></testsuite></testsuite>\
         <testsuite name='Chrome'><testcase classname='page' name='opens'><failure/></testcase></testsuite>\
         <testsuite name='Chromed: parts'><testcase classname='page' name='closes'/></testsuite></testsuites>",
    );
    let names_and_browsers: Vec<_> = report
        .tests
        .iter()
        .map(|test| (&*test.test.name, test.attempts[0].browser.as_deref()))
        .collect();
    assert_eq!(
        names_and_browsers,
        [
            ("Firefox > page > opens", Some("Firefox")),
            (
                "internet explorer 11 > page > opens",
                Some("internet explorer 11")
            ),
            ("Chrome > page > opens", Some("Chrome")),
            ("Chromed: parts > page > closes", None),
        ]
    );
    assert_eq!(report.tests[0].test.file_path.as_deref(), Some("a.cy.js"));
    // Without a class name, the rest of the suite's name distinguishes two tests of one title.
    let report = junit(
        "<testsuites><testsuite name='FiltersTest: chrome'><testcase name='opens'/>\
         <testsuite name='FiltersTest::byNull'><testcase name='byNull with data set #0'/></testsuite></testsuite>\
         <testsuite name='OrdersTest: chrome'><testcase name='opens'/></testsuite></testsuites>",
    );
    let names: Vec<&str> = report.tests.iter().map(|test| &*test.test.name).collect();
    assert_eq!(
        names,
        [
            "chrome > FiltersTest > opens",
            "chrome > FiltersTest > byNull with data set #0",
            "chrome > OrdersTest > opens"
        ]
    );
}

#[test]
fn a_test_that_ran_on_several_machines_of_ci_is_one_without_a_root() {
    let jest = |path: &str| {
        let text = format!(
            r#"{{"numTotalTests": 1, "testResults": [{{"name": "{path}", "assertionResults": [{{"title": "adds up", "status": "passed"}}]}}]}}"#
        );
        inline(path, text)
    };
    let report = plain(vec![
        jest("/home/runner/work/shop/shop/src/a.test.js"),
        jest("/Users/runner/work/shop/shop/src/a.test.js"),
        jest("D:/a/shop/shop/src/a.test.js"),
        jest("/srv/runner-7/_work/shop/shop/src/a.test.js"),
    ])
    .unwrap();
    assert_eq!(tests(&report), [("adds up", Some("src/a.test.js"), 4)]);
}

#[test]
fn a_playwright_report_from_windows_has_the_test_names_of_other_systems() {
    let text = r#"{"config": {}, "suites": [{"title": "critical\\a.spec.ts", "file": "critical/a.spec.ts", "specs": [{"title": "t\\u",
        "file": "critical/a.spec.ts", "tests": [{"projectName": "chromium", "results": [{"status": "passed"}]}]}]}]}"#;
    let report = plain(vec![inline("r.json", text)]).unwrap();
    assert_eq!(
        tests(&report),
        [(
            "chromium > critical/a.spec.ts > t\\u",
            Some("critical/a.spec.ts"),
            1
        )]
    );
}

#[test]
fn results_that_testng_writes_beside_surefires_count_once() {
    let surefire = "<testsuite xsi:noNamespaceSchemaLocation='https://maven.apache.org/surefire/maven-surefire-plugin/xsd/\
                    surefire-test-report-3.0.xsd' name='TestSuite'><testcase classname='A' name='one' time='5.1'/></testsuite>";
    let by = |reporter: &str, time: &str| {
        format!(
            "<!-- Generated by org.testng.reporters.{reporter} --><testsuite name='A'><testcase classname='A' name='one' \
             time='{time}'/></testsuite>"
        )
    };
    let own = [
        inline("out/junitreports/TEST-A.xml", by("JUnitReportReporter", "5.1")),
        inline("out/Suite/Test.xml", by("JUnitXMLReporter", "2.8")),
    ];
    let all = [&[inline("out/TEST-TestSuite.xml", surefire)], &own[..]].concat();
    for (files, warned) in [(all, 2), (own.to_vec(), 1)] {
        let report = plain(files).unwrap();
        assert_eq!(tests(&report), [("A > one", None, 1)]);
        let repetitions = report
            .warnings
            .iter()
            .filter(|warning| warning.ends_with("; counted once"));
        assert_eq!(repetitions.count(), warned, "{:?}", report.warnings);
    }
    // Results of another module are distinct.
    let apart = vec![
        inline("a/TEST-TestSuite.xml", surefire),
        inline("b/junitreports/TEST-A.xml", by("JUnitReportReporter", "5.1")),
    ];
    assert_eq!(tests(&plain(apart).unwrap()), [("A > one", None, 2)]);
    let copies = vec![inline("a.xml", surefire), inline("copy of a.xml", surefire)];
    assert_eq!(tests(&plain(copies).unwrap()), [("A > one", None, 1)]);
}

#[test]
fn the_same_results_in_another_file_of_a_folder_count_once() {
    let case = |name: &str, time: &str| format!("<testcase classname='A' name='{name}' time='{time}'/>");
    let suite = |more: &str, cases: &str| format!("<testsuite name='s'{more}>{cases}</testsuite>");
    let all = suite("", &[case("one", "5.1"), case("two", "0.3")].concat());
    let read = |part: String, path: &str| {
        let files = vec![inline("out/all.xml", &*all), inline(path, part)];
        let report = plain(files).unwrap();
        let repetitions = report
            .warnings
            .iter()
            .filter(|warning| warning.ends_with("repeats the results of out/all.xml; counted once"))
            .count();
        (report.tests[0].attempts.len(), repetitions)
    };
    let one = case("one", "5.1");
    assert_eq!(read(suite("", &one), "out/A.xml"), (1, 1));
    assert_eq!(read(suite("", &one), "out/classes/A.xml"), (1, 1));
    // Another duration, status, test or folder means another execution. Results too short to compare are also kept.
    for (part, path) in [
        (suite("", &case("one", "5.2")), "out/A.xml"),
        (
            suite("", &one.replace("/>", "><skipped/></testcase>")),
            "out/A.xml",
        ),
        (suite("", &[&*one, &case("three", "0.1")].concat()), "out/A.xml"),
        (suite("", &one), "other/A.xml"),
    ] {
        assert_eq!(read(part.clone(), path), (2, 0), "{path}: {part}");
    }
    let short = suite("", &case("one", "0.001"));
    let two = vec![
        inline("out/a.xml", &*short),
        inline("out/b.xml", short.replace("<testsuite ", "<testsuite id='2' ")),
    ];
    assert_eq!(plain(two).unwrap().tests[0].attempts.len(), 2);
    // A later time means another execution, too.
    let at = |minute: u32| suite(&format!(" timestamp='2026-11-20T10:{minute:02}:00Z'"), &one);
    let runs = vec![inline("out/1.xml", at(1)), inline("out/2.xml", at(2))];
    assert_eq!(plain(runs).unwrap().tests[0].attempts.len(), 2);
}

#[test]
fn odd_ways_to_write_a_result_are_read() {
    let report = junit(
        "<testsuites time='1967986371'><testsuite><testcase name='a' time='999638317'/><testcase name='b' time='0'/>\
         </testsuite></testsuites>",
    );
    assert_eq!(report.tests[0].attempts[0].duration_ms, Some(1_000));
    let report = junit("<testsuite time='00:00:00.823'><testcase name='a' time='00:00:00.121'/></testsuite>");
    assert_eq!(report.tests[0].attempts[0].duration_ms, Some(121));
    let report =
        junit("<testsuite><testcase name='a' status='run' result='skipped' classname='S'/></testsuite>");
    assert_eq!(report.tests[0].attempts[0].status, AttemptStatus::Skipped);
    let report = junit(
        "<testsuites name='pytest tests'><testsuite name='pytest'><testcase classname='t' name='a'>\
         <failure message='#x1B[31mred#x1B[0m #x07bell'/></testcase></testsuite></testsuites>",
    );
    assert_eq!(
        report.tests[0].attempts[0].errors[0].message.as_deref(),
        Some("red bell")
    );
    // Before version 6, pytest wrote no element around the suite.
    let report = junit(
        "<testsuite errors='0' failures='1' hostname='vm' name='pytest' skipped='0' tests='1' time='1'>\
         <testcase classname='t' name='a'><failure message='#x1B[1m#x1B[31mred#x1B[0m'/></testcase></testsuite>",
    );
    assert_eq!(
        report.tests[0].attempts[0].errors[0].message.as_deref(),
        Some("red")
    );
    let report = junit(
        "<testsuite><testcase name='a'><failure message='\u{feff}[36m&lt;body&gt;[39m [5m] is kept'/></testcase></testsuite>",
    );
    assert_eq!(
        report.tests[0].attempts[0].errors[0].message.as_deref(),
        Some("<body> [5m] is kept")
    );
    let text = r#"{"numRuntimeErrorTestSuites": 0, "testResults": [{"testFilePath": "/r/a.test.js", "failureMessage": null,
        "testResults": [{"ancestorTitles": ["s"], "title": "t", "status": "failed", "duration": 3,
        "failureMessages": ["\u001b[1m  ● \u001b[1ms › t\u001b[22m\n\n    Error: x\n\u001b[2m      at f (a.test.js:3:5)"]}]}]}"#;
    let report = plain(vec![inline("r.json", text)]).unwrap();
    assert_eq!(tests(&report), [("s > t", Some("/r/a.test.js"), 1)]);
    assert_eq!(
        report.tests[0].attempts[0].errors[0].message.as_deref(),
        Some("Error: x")
    );
    let windows = r#"<testsuites><testsuite name="critical\a.spec.ts" timestamp="2025-12-08T10:59:05.269Z" hostname="chromium" tests="1"
        failures="0" skipped="0" time="1" errors="0"><testcase name="s › t" classname="critical\a.spec.ts" time="1"/></testsuite></testsuites>"#;
    assert_eq!(
        tests(&junit(windows)),
        [(
            "chromium > critical/a.spec.ts > s > t",
            Some("critical/a.spec.ts"),
            1
        )]
    );
}

/// Name and file of each test, as `name [file]`.
fn named(name: &str, text: &str) -> Vec<String> {
    let report = plain(vec![inline(name, text)]).unwrap();
    let tests = report.tests.iter();
    tests
        .map(|test| match &test.test.file_path {
            Some(file) => format!("{} [{file}]", test.test.name),
            None => test.test.name.clone(),
        })
        .collect()
}

#[test]
fn a_test_of_junit_xml_has_one_name_whichever_others_are_in_the_report() {
    let suite = |name: &str, class: &str| {
        format!("<testsuite name='{name}'><testcase {class} name='loads' time='1'/></testsuite>")
    };
    for (class, expected) in [
        ("", ["checkout > loads", "profile > loads"]),
        ("classname=''", ["checkout > loads", "profile > loads"]),
        (
            "classname='Page'",
            ["checkout > Page > loads", "profile > Page > loads"],
        ),
        // A qualified class identifies its tests.
        (
            "classname='shop.Page'",
            ["shop.Page > loads", "shop.Page > loads"],
        ),
        (
            r"classname='Shop\Page'",
            [r"Shop\Page > loads", r"Shop\Page > loads"],
        ),
        (
            "classname='shop::page'",
            ["shop::page > loads", "shop::page > loads"],
        ),
    ] {
        let both = [suite("checkout", class), suite("profile", class)];
        let one_file = named("r.xml", &format!("<testsuites>{}</testsuites>", both.concat()));
        let alone = both.clone().map(|suite| named("r.xml", &suite).remove(0));
        let files = both.iter().enumerate();
        let files = files.map(|(index, suite)| inline(&format!("{index}.xml"), suite.as_str()));
        let over_files = plain(files.collect()).unwrap();
        let mut expected_tests = expected.to_vec();
        expected_tests.dedup();
        assert_eq!(one_file, expected_tests, "{class}");
        assert_eq!(alone, expected, "{class}");
        let names: Vec<&str> = over_files.tests.iter().map(|test| &*test.test.name).collect();
        assert_eq!(names, expected_tests, "{class}");
    }
}

#[test]
fn a_suite_that_repeats_the_class_or_the_tools_word_is_no_part_of_the_name() {
    for (suite, case, expected) in [
        (
            "name='LoginTests'",
            "classname='LoginTests' name='opens'",
            "LoginTests > opens",
        ),
        (
            "name='Stock'",
            "classname='StockTests - Linux' name='counts'",
            "StockTests - Linux > counts",
        ),
        (
            "name='StockSpec'",
            "classname='Stock' name='counts'",
            "Stock > counts",
        ),
        (
            "name='Stock'",
            "classname='Stockists' name='counts'",
            "Stock > Stockists > counts",
        ),
        (
            "name='LoginTests::opens'",
            "classname='LoginTests' name='opens with data'",
            "LoginTests > opens with data",
        ),
        (
            "name='Cart'",
            "classname='Cart adds' name='Cart adds'",
            "Cart adds",
        ),
        ("name='Cart'", "name='Cart adds'", "Cart adds"),
        ("name='Root Suite'", "name='adds'", "adds"),
        (
            "name='cucumber-js'",
            "classname='Cart' name='adds'",
            "Cart > adds",
        ),
        ("name='s-20261120184603'", "name='adds'", "adds"),
        ("name=''", "name='adds'", "adds"),
        (
            "name='openshift-tests' tests='1' skipped='0' failures='0' time='8'",
            "name='[sig-shop] adds'",
            "[sig-shop] adds",
        ),
        (
            "name='openshift-tests-upgrade' tests='1' skipped='0' failures='0' time='8'",
            "name='[sig-shop] adds'",
            "openshift-tests-upgrade > [sig-shop] adds",
        ),
        (
            "name='Carts'",
            "classname='Cart' name='adds'",
            "Carts > Cart > adds",
        ),
    ] {
        let text = format!("<testsuites><testsuite {suite}><testcase {case}/></testsuite></testsuites>");
        assert_eq!(named("r.xml", &text), [expected], "{suite} {case}");
    }
}

#[test]
fn examples_without_a_row_are_executions_of_their_outline() {
    let example = |line: u32, status: &str| {
        format!(
            r#"{{"id": "checkout;pays", "name": "Pays", "line": {line}, "keyword": "Scenario Outline",
            "steps": [{{"result": {{"status": "{status}"}}}}]}}"#
        )
    };
    let text = format!(
        r#"[{{"id": "checkout", "uri": "a.feature", "name": "Checkout", "elements": [{}, {}]}}]"#,
        example(7, "failed"),
        example(8, "passed")
    );
    let report = plain(vec![inline("r.json", text)]).unwrap();
    assert_eq!(tests(&report), [("Checkout > Pays", Some("a.feature"), 2)]);
    assert_eq!(report.tests[0].attempts.executions().count(), 2);
    assert_eq!(report.tests[0].attempts[1].status, AttemptStatus::Failed);
    assert!(report.warnings[0].contains("2 examples"), "{:?}", report.warnings);
}

#[test]
fn a_test_of_testng_and_a_folder_of_ctest_always_lead_the_name() {
    let testng = |tests: &[&str]| {
        let all: String = tests
            .iter()
            .map(|test| {
                format!("<test name='{test}'><class name='shop.Cart'><test-method name='adds' status='PASS'/></class></test>")
            })
            .collect();
        named(
            "testng-results.xml",
            &format!("<testng-results><suite name='s'>{all}</suite></testng-results>"),
        )
    };
    assert_eq!(
        testng(&["chrome", "firefox"]),
        ["chrome > shop.Cart > adds", "firefox > shop.Cart > adds"]
    );
    assert_eq!(testng(&["chrome"]), ["chrome > shop.Cart > adds"]);
    for constant in ["Command line test", "Default test", "Surefire test", ""] {
        assert_eq!(testng(&[constant]), ["shop.Cart > adds"], "{constant}");
    }
    let ctest = |folders: &[&str]| {
        let all: String = folders
            .iter()
            .map(|folder| format!("<Test Status='passed'><Name>adds</Name><Path>{folder}</Path></Test>"))
            .collect();
        named("Test.xml", &format!("<Site><Testing>{all}</Testing></Site>"))
    };
    assert_eq!(ctest(&["./cart", "./pay"]), ["cart > adds", "pay > adds"]);
    assert_eq!(ctest(&["./cart"]), ["cart > adds"]);
    assert_eq!(ctest(&["../cart"]), ["../cart > adds"]);
    assert_eq!(ctest(&["."]), ["adds"]);
}

#[test]
fn paths_in_names_have_slashes_and_other_back_slashes_stay() {
    let ctrf = |file: &str| {
        let text = format!(
            r#"{{"results": {{"tool": {{"name": "playwright"}}, "tests": [{{"name": "adds \\d", "status": "passed",
            "suite": ["chromium", "{file}", "cart"], "filePath": "{file}"}}]}}}}"#
        );
        named("r.json", &text)
    };
    let expected = [r"chromium > e2e/cart.spec.ts > cart > adds \d [e2e/cart.spec.ts]"];
    assert_eq!(ctrf("e2e/cart.spec.ts"), expected);
    assert_eq!(ctrf(r"e2e\\cart.spec.ts"), expected);
    let junit = r"<testsuite name='s'><testcase classname='tests\cart.py' name='adds'/>
        <testcase classname='Shop\Cart' name='adds'/><testcase classname='shop.x' name='splits a\b.py and c'/></testsuite>";
    assert_eq!(
        named("r.xml", junit),
        [
            "tests/cart.py > adds",
            r"Shop\Cart > adds",
            r"shop.x > splits a\b.py and c"
        ]
    );
}

#[test]
fn a_script_of_prove_is_a_file() {
    let tap = "t/cart.t ..\nok 1 - adds\n    ok 1 - inner\n    1..1\nok 2 - group\n1..2\n";
    assert_eq!(
        named("r.tap", tap),
        [
            "t/cart.t > adds [t/cart.t]",
            "t/cart.t > group > inner [t/cart.t]"
        ]
    );
    let junit = "<testsuites><testsuite name='t/cart.t'><testcase name='1 - adds'/></testsuite></testsuites>";
    assert_eq!(named("r.xml", junit), ["t/cart.t > 1 - adds [t/cart.t]"]);
}

#[test]
fn parts_of_names_that_change_from_run_to_run_are_replaced_in_every_format() {
    let run = |address: &str, version: &str, ms: u32| {
        let name = format!("is #&lt;Cart:0x{address}&gt;");
        let plain_name = format!("is #<Cart:0x{address}>");
        [
            (
                "r.xml",
                format!(
                    "<testsuite name='rspec'><testcase classname='spec.cart_spec' name='{name}'/></testsuite>"
                ),
            ),
            (
                "r.trx",
                format!(
                    "<TestRun><Results><UnitTestResult testName='{name}' outcome='Passed'/></Results></TestRun>"
                ),
            ),
            (
                "r.json",
                format!(
                    r#"{{"results": {{"tool": {{"name": "x"}}, "tests": [{{"name": "{plain_name}", "status": "passed"}}]}}}}"#
                ),
            ),
            ("r.tap", format!("1..1\nok 1 - {plain_name}\n")),
            (
                "t.tap",
                format!("1..1\nok 1 Chrome {version} - [{ms} ms] - Unit | adds\n"),
            ),
            (
                "k.xml",
                format!(
                    "<testsuite name='Chrome Headless {version} (Linux x86_64)'><testcase name='Cart adds' \
                     classname='Chrome_Headless_{}_(Linux_x86_64).Cart'/></testsuite>",
                    version.replace('.', "_")
                ),
            ),
            (
                "testng-results.xml",
                format!(
                    "<testng-results><suite><test name='Default test'><class name='shop.Cart'><test-method name='adds' \
                     status='PASS'><params><param><value>shop.Money@{}</value></param></params></test-method></class></test>\
                     </suite></testng-results>",
                    &address[4..12]
                ),
            ),
        ]
    };
    let (first, second) = (
        run("00007f1c21a3b4c5", "119.0.6045", 52),
        run("000055d29c0a1b27", "120.0.1", 3),
    );
    let expected = [
        "spec.cart_spec > is #<Cart:<address>>",
        "is #<Cart:<address>>",
        "is #<Cart:<address>>",
        "is #<Cart:<address>>",
        "Chrome <version> > Unit | adds",
        "Chrome Headless <version> (Linux x86_64) > Cart adds",
        "shop.Cart > adds(shop.Money@<hash>)",
    ];
    for ((one, other), expected) in first.iter().zip(&second).zip(expected) {
        for (name, text) in [one, other] {
            let report = plain(vec![inline(name, text.as_str())]).unwrap();
            let [test] = report.tests.as_slice() else {
                panic!("{text}")
            };
            assert_eq!(test.test.name, expected, "{text}");
            assert!(test.shown_as.name.is_some());
            let counted = report
                .warnings
                .iter()
                .filter(|warning| warning.starts_with("1 name has a part that changes"));
            assert_eq!(counted.count(), 1, "{:?}", report.warnings);
            let options = Options {
                keeps_written_names: true,
                ..Options::default()
            };
            let written = assay_reports::read(vec![inline(name, text.as_str())], &options).unwrap();
            assert_eq!(Some(&written.tests[0].test.name), test.shown_as.name.as_ref());
            assert_eq!(written.warnings.len() + 1, report.warnings.len());
        }
    }
    let testem = plain(vec![inline("t.tap", first[4].1.as_str())]).unwrap();
    let attempt = &testem.tests[0].attempts[0];
    assert_eq!(
        (attempt.duration_ms, attempt.browser.as_deref()),
        (Some(52), Some("Chrome 119.0.6045"))
    );
}

#[test]
fn names_of_one_report_that_differ_only_in_such_a_part_are_executions_of_one_test() {
    let case = |hash: &str, inner: &str| {
        format!("<testcase classname='shop.Cart' name='adds shop.Money@{hash}' time='0.1'>{inner}</testcase>")
    };
    let text = format!(
        "<testsuite name='shop.Cart'>{}{}</testsuite>",
        case("1b2c6ec2", "<failure/>"),
        case("4edde6e5", "")
    );
    let report = plain(vec![inline("r.xml", text)]).unwrap();
    let [test] = report.tests.as_slice() else { panic!() };
    assert_eq!(test.attempts.executions().count(), 2, "not a retry");
    assert!(test.attempts.last().unwrap().status.is_failure());
    let warning = &report.warnings[0];
    assert!(
        warning.contains("executions of one test, here 1 more") && warning.contains("Money@<hash>"),
        "{warning}"
    );
}

#[test]
fn packages_of_a_monorepo_are_told_apart_where_they_share_a_name() {
    let report = |inner: &str, file: &str| {
        format!(
            "<testsuites name='jest tests'><testsuite name='App'><testcase classname='App renders' name='App renders' {file} \
             time='0.01'>{inner}</testcase></testsuite></testsuites>"
        )
    };
    let read = |one: &str, other: &str, file: &str| {
        let files = vec![
            inline(one, report("<failure>Error: x</failure>", file)),
            inline(other, report("", file)),
        ];
        let report = plain(files).unwrap();
        let names: Vec<String> = report.tests.iter().map(|test| test.test.name.clone()).collect();
        (
            names,
            report
                .warnings
                .iter()
                .any(|warning| warning.contains("packages/admin, packages/shop")),
        )
    };
    let (shop, admin) = ("packages/shop/out/junit.xml", "packages/admin/out/junit.xml");
    let apart = ["packages/shop > App renders", "packages/admin > App renders"];
    assert_eq!(read(shop, admin, ""), (apart.map(str::to_owned).to_vec(), true));
    // Legs of a matrix, one package, and tests whose files are known.
    let one = vec!["App renders".to_owned()];
    assert_eq!(
        read("linux/junit.xml", "windows/junit.xml", ""),
        (one.clone(), false)
    );
    assert_eq!(read(shop, "packages/shop/b/junit.xml", ""), (one.clone(), false));
    assert_eq!(read(shop, admin, "file='src/App.test.js'"), (one, false));
}
