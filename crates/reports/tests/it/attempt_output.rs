//! What reports have beside the errors of failed attempts.

use assay_domain::attempt::{Attempt, AttemptOutput};
use assay_reports::{Options, SourceFile};

use crate::support::{self, SHOP, rooted};

fn read(name: &str, text: &str) -> Vec<Attempt> {
    let file = SourceFile {
        name: name.to_owned(),
        bytes: text.as_bytes().to_vec(),
        modified: None,
    };
    let report = assay_reports::read(vec![file], &Options::default()).unwrap();
    let tests = report.tests.into_iter();
    tests
        .flat_map(|test| test.attempts.iter().cloned().collect::<Vec<_>>())
        .collect()
}

fn output(attempt: &Attempt) -> AttemptOutput {
    attempt.output.as_deref().cloned().unwrap_or_default()
}

/// Name, kind and path of each file.
fn files(attempt: &Attempt) -> Vec<(String, Option<String>, Option<String>)> {
    let files = output(attempt).attachments.into_iter();
    files.map(|file| (file.name, file.kind, file.path)).collect()
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn real_reports_of_playwright_name_their_files_below_the_checkout() {
    for (report, kind, timeout_ms) in [
        ("playwright/full.json", text("text/markdown"), Some(2_000)),
        ("ctrf/playwright-full.json", text("text/markdown"), None),
    ] {
        let report_files = vec![support::file(report)];
        let tests = rooted(report_files, SHOP).tests;
        let test = tests
            .iter()
            .find(|test| test.test.name.ends_with("answers in time"))
            .unwrap();
        let last = test.attempts.last().unwrap();
        let path = "test-results/api-cart-basket-answers-in-time-api-retry2/error-context.md";
        assert_eq!(
            files(last),
            [("error-context".to_owned(), kind, text(path))],
            "{report}"
        );
        assert_eq!(output(last).timeout_ms, timeout_ms, "{report}");
        let passed = tests.iter().flat_map(|test| test.attempts.iter());
        assert!(
            passed
                .filter(|attempt| !attempt.status.is_failure())
                .all(|attempt| attempt.output.is_none())
        );
    }
    let junit = rooted(vec![support::file("playwright/full.xml")], SHOP).tests;
    let all = junit
        .iter()
        .flat_map(|test| test.attempts.iter())
        .flat_map(files)
        .map(|(name, ..)| name);
    assert!(all.into_iter().any(|name| name == "error-context.md"));
}

#[test]
fn a_real_allure_result_names_the_files_beside_it() {
    let report = rooted(
        support::files_in("allure-pytest"),
        "/home/runner/work/acme-shop/acme-py",
    );
    let test = report
        .tests
        .iter()
        .find(|test| test.test.name.ends_with("test_subtests"))
        .unwrap();
    let (name, kind, path) = files(test.attempts.last().unwrap()).remove(0);
    assert_eq!((name.as_str(), kind), ("stdout", text("text/plain")));
    assert!(
        path.unwrap()
            .ends_with("allure-pytest/d4972c97-1eb8-482b-a5f9-92dcd92fe7a0-attachment.txt")
    );
}

#[test]
fn a_real_report_of_mochawesome_names_the_files_of_its_context() {
    let report = rooted(
        vec![support::file("mochawesome/files.json")],
        "/home/runner/work/acme-shop/acme-mocha",
    );
    let of_test = |name: &str| {
        let test = report
            .tests
            .iter()
            .find(|test| test.test.name.ends_with(name))
            .unwrap();
        files(test.attempts.last().unwrap())
    };
    assert_eq!(
        of_test("pays"),
        [
            ("screenshot".to_owned(), None, text("shots/cart-pays.png")),
            ("page.png".to_owned(), None, text("shots/page.png")),
            (
                "cart.mp4".to_owned(),
                None,
                text("https://files.test/videos/cart.mp4")
            ),
        ]
    );
    assert_eq!(of_test("adds"), []);
}

#[test]
fn a_real_report_of_robot_framework_names_the_files_that_its_keywords_logged() {
    let report = rooted(
        vec![support::file("robot/screenshots.xml")],
        "/home/runner/work/acme-shop/acme-robot",
    );
    let of_test = |name: &str| {
        let mut tests = report.tests.iter();
        let test = tests.find(|test| test.test.name.ends_with(name)).unwrap();
        test.attempts.last().unwrap()
    };
    let file = |name: &str, path: &str| (name.to_owned(), None, text(path));
    let total = of_test("Shows the total");
    assert_eq!(
        files(total),
        [file(
            "selenium-screenshot-1.png",
            "robot/selenium-screenshot-1.png"
        )],
        "a link and its picture are one file"
    );
    let console = output(total).console.unwrap();
    assert!(
        console.contains("Verifying element 'id:total' contains exact text '42.00 EUR'."),
        "{console}"
    );
    assert!(!console.contains("<img"), "{console}");
    let receipt = of_test("Sends a receipt");
    assert_eq!(
        files(receipt),
        [
            file("mail.log", "mail.log"),
            file("mail.log", "robot/mail.log"),
            file("mail?id=7&all=1", "https://shop.example.org/mail?id=7&all=1"),
        ]
    );
    let console = output(receipt).console.unwrap();
    for expected in ["sending\nno route to mail\n", "Saved mail.log, see the outbox"] {
        assert!(console.contains(expected), "{expected}: {console}");
    }
    assert!(
        !console.contains("3 != 0"),
        "the error is not repeated: {console}"
    );
    assert_eq!(of_test("Opens the shop").output, None);
}

#[test]
fn only_links_to_files_and_addresses_of_a_robot_message_are_kept() {
    let message = |html: &str, text: &str| format!("<msg level='INFO' html='{html}'>{text}</msg>");
    let messages = [
        message(
            "yes",
            "&lt;a href='javascript:alert(1)'&gt;x&lt;/a&gt; &lt;a href='#top'&gt;up&lt;/a&gt; \
             &lt;img src=\"data:image/png;base64,AAAA\"&gt; &lt;img src='my%20shot%231.png?v=2#left'&gt; &lt;video controls&gt;&lt;source src='v/a b.webm'/&gt;&lt;/video&gt;",
        ),
        message("true", "1 &lt; 2 &lt;b&gt;bold&lt;/b&gt; &amp;amp; more"),
        message("false", "&lt;img src='written.png'&gt;"),
        "<msg level='TRACE'>Arguments: []</msg><msg level='FAIL'>no</msg>".to_owned(),
    ];
    let attempts = read(
        "out/output.xml",
        &format!(
            "<robot><suite name='S'><kw><msg level='INFO'>of the suite</msg></kw><test name='t'><kw><for><iter><kw>{}</kw></iter></for></kw>\
             <status status='FAIL'>no</status></test><status status='FAIL'/></suite></robot>",
            messages.concat()
        ),
    );
    let names: Vec<_> = files(&attempts[0]).into_iter().map(|(_, _, path)| path).collect();
    assert_eq!(names, [text("out/my shot#1.png"), text("out/v/a b.webm")]);
    assert_eq!(
        output(&attempts[0]).console,
        text("x up\n1 < 2 bold & more\n<img src='written.png'>")
    );
}

#[test]
fn the_output_of_a_junit_case_is_that_of_its_failure_without_the_named_files() {
    let attempts = read(
        "r.xml",
        "<testsuites><testsuite name='a'>\
         <testcase name='fails' classname='a'><failure message='no'>at a.js:1:1</failure>\
         <system-out>first\n[[ATTACHMENT|out/shot.png]]\nlast</system-out><system-err>oops</system-err></testcase>\
         <testcase name='passes' classname='a'><system-out>quiet\n[[ATTACHMENT|out/other.png]]</system-out></testcase>\
         </testsuite></testsuites>",
    );
    assert_eq!(
        files(&attempts[0]),
        [("shot.png".to_owned(), None, text("out/shot.png"))]
    );
    assert_eq!(output(&attempts[0]).console, text("first\nlastoops"));
    assert_eq!(attempts[1].output, None);
}

#[test]
fn trx_mochawesome_and_playwright_keep_files_and_output() {
    let trx = read(
        "r.trx",
        r#"<TestRun><TestSettings><Deployment runDeploymentRoot="run_1" /></TestSettings><Results>
        <UnitTestResult testId="t" testName="Adds" outcome="Failed" relativeResultsDirectory="e1">
        <Output><StdOut>printed</StdOut><ErrorInfo><Message>no</Message></ErrorInfo></Output>
        <ResultFiles><ResultFile path="runner-1\shot.png" /></ResultFiles></UnitTestResult></Results></TestRun>"#,
    );
    assert_eq!(
        files(&trx[0]),
        [("shot.png".to_owned(), None, text("run_1/In/e1/runner-1/shot.png"))]
    );
    assert_eq!(output(&trx[0]).console, text("printed"));

    let context =
        r#"[\"https://files.test/a\", {\"title\": \"shot\", \"value\": \"shots/a.png\"}, \"a note.\"]"#;
    let mochawesome = read(
        "r.json",
        &format!(
            r#"{{"stats": {{"suites": 1, "tests": 1}}, "results": [{{"title": "", "suites": [], "tests": [{{
            "title": "adds", "fullTitle": "adds", "state": "failed", "err": {{"message": "no"}}, "context": "{context}"}}]}}],
            "meta": {{"mochawesome": {{"version": "7"}}}}}}"#
        ),
    );
    assert_eq!(
        files(&mochawesome[0]),
        [
            ("a".to_owned(), None, text("https://files.test/a")),
            ("shot".to_owned(), None, text("shots/a.png"))
        ]
    );

    let playwright = read(
        "r.json",
        r#"{"config": {}, "suites": [{"title": "a.spec.ts", "file": "a.spec.ts", "specs": [{"title": "pays", "tests": [{
        "status": "unexpected", "results": [{"status": "failed", "errors": [{"message": "no"}],
        "stdout": [{"text": "one\n"}, {"buffer": "AAAA"}], "stderr": [{"text": "two"}],
        "attachments": [{"name": "body", "contentType": "text/plain", "body": "AAAA"}]}]}]}]}]}"#,
    );
    assert_eq!(
        files(&playwright[0]),
        [("body".to_owned(), text("text/plain"), None)]
    );
    assert_eq!(output(&playwright[0]).console, text("one\ntwo"));
}

#[test]
fn files_and_output_are_bounded() {
    let marks: String = (0..50)
        .map(|number| format!("[[ATTACHMENT|{number}.png]]\n"))
        .collect();
    let long = format!("[[ATTACHMENT|{}.png]]\n", "x".repeat(2_000));
    let printed = format!("{long}{marks}{}the end", "more\n".repeat(100_000));
    let attempts = read(
        "r.xml",
        &format!(
            "<testsuites><testsuite name='a'><testcase name='fails' classname='a'><failure message='no'/>\
             <system-err>{printed}</system-err></testcase></testsuite></testsuites>"
        ),
    );
    let kept = output(&attempts[0]);
    assert_eq!(kept.attachments.len(), 20);
    assert_eq!(kept.attachments[0].path, text("0.png"));
    let console = kept.console.unwrap();
    assert!(
        console.len() <= 64_000 && console.ends_with("more\nthe end"),
        "{}",
        console.len()
    );
}
