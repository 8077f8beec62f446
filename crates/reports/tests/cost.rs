//! Bounds the cost of hostile reports: memory within a multiple of their unpacked size, time in proportion to it. This
//! is its own program because it measures the memory of the whole process.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should stop"
)]

use std::{
    io::Write as _,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use assay_reports::{Format, KnownFiles, Memory, Options, ReadError, Report, SourceFile};
use peak_alloc::PeakAlloc;
use rustix::time::{ClockId, clock_gettime};

mod templates;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The memory in MiB (2^20 bytes) that any report may use in addition to a multiple of its size. A test takes about 300
/// bytes even with a short name, 500,000 tests are accepted, and lists grow by doubling.
const BASE_MB: usize = 512;
/// The same for reports of few distinct tests.
const SMALL_BASE_MB: usize = 16;

fn file(name: &str, bytes: impl Into<Vec<u8>>) -> SourceFile {
    SourceFile {
        name: name.to_owned(),
        bytes: bytes.into(),
        modified: None,
    }
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut archive = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    archive.write_all(bytes).unwrap();
    archive.finish().unwrap()
}

/// The processor time of this process so far.
fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap()
}

/// Reads files that unpack to `bytes` bytes. Panics if that takes too much memory or processor time.
fn read(
    name: &str,
    files: Vec<SourceFile>,
    (bytes, base_mb): (usize, usize),
    options: &Options<'_>,
) -> Result<Report, ReadError> {
    MEMORY.reset_peak_usage();
    let (before, began) = (MEMORY.current_usage(), processor_time());
    let report = assay_reports::read(files, options);
    let (took, peak) = (processor_time() - began, MEMORY.peak_usage() - before);
    eprintln!("{name}: {bytes} bytes took {} MB and {took:?}", peak >> 20);
    assert!(
        peak <= 4 * bytes + (base_mb << 20),
        "{name}: {bytes} bytes took {peak} bytes"
    );
    // Unoptimized code stays below this. Quadratic work takes minutes.
    assert!(took < Duration::from_secs(90), "{name}: {took:?}");
    report
}

#[test]
fn the_cost_of_a_report_is_in_proportion_to_its_size() {
    let junit = |case: &str, times: usize| {
        let text = format!("<testsuite name='s'>{}</testsuite>", case.repeat(times));
        (text.len(), vec![file("r.xml.gz", packed(text.as_bytes()))])
    };
    let json = |before: &str, element: &str, times: usize, after: &str| {
        let text = format!("{before}{}{after}", vec![element; times].join(","));
        (text.len(), vec![file("r.json.gz", packed(text.as_bytes()))])
    };
    let cases = [
        (
            "one test many times",
            SMALL_BASE_MB,
            junit("<testcase name='a'/>", 200_000),
        ),
        (
            "one failed test many times",
            SMALL_BASE_MB,
            junit("<testcase name='a'><failure/></testcase>", 100_000),
        ),
        ("one case with half a million failures", SMALL_BASE_MB, {
            let case = format!("<testcase name='a'>{}</testcase>", "<failure/>".repeat(500_000));
            junit(&case, 1)
        }),
        (
            "a million elements of CTRF without anything in them",
            BASE_MB,
            json("{\"results\":{\"tool\":{},\"tests\":[", "{}", 1_000_000, "]}}"),
        ),
        (
            "attempts that are only counted",
            4 * SMALL_BASE_MB,
            json(
                "{\"results\":{\"tool\":{},\"tests\":[",
                "{\"name\":\"a\",\"retries\":999999,\"status\":\"passed\"}",
                100_000,
                "]}}",
            ),
        ),
        (
            "lists in lists",
            BASE_MB,
            json(
                "{\"config\":{},\"suites\":[",
                &format!("{{\"specs\":[{}]}}", vec!["{}"; 10_000].join(",")),
                250,
                "]}",
            ),
        ),
        ("lists in a line of a blob report", BASE_MB, {
            let errors = vec!["{}"; 2_000_000].join(",");
            let text = format!(
                "{{\"method\":\"onBlobReportMetadata\",\"params\":{{}}}}\n\
                 {{\"method\":\"onTestEnd\",\"params\":{{\"result\":{{\"errors\":[{errors}]}}}}}}\n"
            );
            (text.len(), vec![file("r.jsonl", text)])
        }),
        ("a message with a section a test", 2 * SMALL_BASE_MB, {
            let section = |number: usize| format!("  ● t{number}\\n\\n    expected {number}\\n\\n");
            let message: String = (0..20_000).map(section).collect();
            let tests: Vec<String> = (0..20_000)
                .map(|number| {
                    format!("{{\"title\":\"t{number}\",\"status\":\"failed\",\"failureMessages\":[\"x\"]}}")
                })
                .collect();
            let text = format!(
                "{{\"numRuntimeErrorTestSuites\":0,\"testResults\":[{{\"name\":\"a.js\",\"message\":\"{message}\",\
                 \"assertionResults\":[{}]}}]}}",
                tests.join(",")
            );
            (text.len(), vec![file("r.json", text)])
        }),
        ("examples of one name in Cucumber", BASE_MB, {
            let elements: Vec<String> = (1..=150_000).map(|line| format!("{{\"line\":{line}}}")).collect();
            let text = format!("[{{\"uri\":\"a\",\"elements\":[{}]}}]", elements.join(","));
            (text.len(), vec![file("r.json", text)])
        }),
        ("examples of one name in Karate", BASE_MB, {
            let scenarios: Vec<String> = (1..=150_000).map(|line| format!("{{\"line\":{line}}}")).collect();
            let text = format!("{{\"name\":\"f\",\"scenarioResults\":[{}]}}", scenarios.join(","));
            (text.len(), vec![file("r.json", text)])
        }),
        ("a failure of Surefire's with many escapes", SMALL_BASE_MB, {
            let text = format!(
                "<testsuite xsi:noNamespaceSchemaLocation='surefire.xsd'><testcase name='a'><failure>{}</failure>\
                 </testcase></testsuite>",
                "&#x&amp#".repeat(500_000)
            );
            (text.len(), vec![file("r.xml", text)])
        }),
        (
            "a page with elements that are named like a report's root",
            SMALL_BASE_MB,
            {
                let text = format!("<page>{}</page>", "<robot/>".repeat(400_000));
                (text.len(), vec![file("page.xml", text)])
            },
        ),
        ("a Go test below two million others", SMALL_BASE_MB, {
            let name = "/".repeat(2_000_000);
            let text: String = ["run", "pass"]
                .iter()
                .map(|action| format!("{{\"Action\":\"{action}\",\"Package\":\"p\",\"Test\":\"{name}\"}}\n"))
                .collect();
            (text.len(), vec![file("r.jsonl", text)])
        }),
    ];
    for (name, base_mb, (bytes, files)) in cases {
        let _report_or_error = read(name, files, (bytes, base_mb), &Options::default());
    }

    // In each tool's own format: tests of one name. Mocha's number of retries costs attempts without bytes.
    let same = vec![("a".to_owned(), "fail"); 25_000];
    let retried = "{\"currentRetry\":1e9}";
    let mocha = format!(
        "{{\"stats\":{{}},\"passes\":[],\"tests\":[{}]}}",
        vec![retried; 25_000].join(",")
    );
    let has_cases_above = |format| {
        matches!(
            format,
            Format::Playwright | Format::Allure | Format::Ctrf | Format::Jest
        )
    };
    let templates = templates::all().into_iter();
    let files = templates
        .filter(|template| !has_cases_above(template.format))
        .map(|template| (template.format.as_str(), template.files(&same)));
    for (name, files) in files.chain([("mocha, retried", vec![file("mocha", mocha)])]) {
        let bytes = files.iter().map(|file| file.bytes.len()).sum();
        let _report_or_error = read(name, files, (bytes, BASE_MB / 8), &Options::default());
    }

    let known_files: KnownFiles = (0..5_000)
        .map(|number| format!("p{number}/src/index.ts"))
        .collect();
    let options = Options {
        known_files: Some(&known_files),
        ..Options::default()
    };
    let dots = "index.".repeat(2_000);
    let text: String = (0..400)
        .map(|number| format!("<testcase classname='{dots}{number}' name='a'/>"))
        .collect();
    let text = format!("<testsuite>{text}</testsuite>");
    let bytes = text.len();
    let files = vec![file("r.xml", text)];
    let report = read(
        "class names of many dots",
        files,
        (bytes, SMALL_BASE_MB),
        &options,
    )
    .unwrap();
    assert_eq!(report.tests.len(), 400);
    held_memory_is_charged();
}

/// The memory that a reading takes from its caller.
#[derive(Debug, Default)]
struct Charged {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Memory for Charged {
    fn take(&self, bytes: usize) -> bool {
        let now = self.now.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.most.fetch_max(now, Ordering::Relaxed);
        true
    }

    fn give_back(&self, bytes: usize) {
        self.now.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Texts of some MiB in each format: what the reader holds is charged.
fn held_memory_is_charged() {
    let entities = "&#65;&lt;".repeat(1 << 18);
    let escapes = r"\u0041\n".repeat(1 << 18);
    let plain = "long output ".repeat(1 << 17);
    let element = |text: &str| -> Vec<(Format, String)> {
        vec![
            (
                Format::Junit,
                format!(
                    "<testsuite><testcase name='a'><failure message='{text}'>{text}</failure><system-out>{text}</system-out></testcase></testsuite>"
                ),
            ),
            (
                Format::Testng,
                format!(
                    "<testng-results><class name='c'><test-method name='a' status='FAIL'><exception class='E'><message>{text}</message><full-stacktrace>{text}</full-stacktrace></exception></test-method></class></testng-results>"
                ),
            ),
            (
                Format::Robot,
                format!(
                    "<robot><suite name='s'><test name='a'><kw><msg>{text}</msg></kw><status status='FAIL'>{text}</status></test></suite></robot>"
                ),
            ),
            (
                Format::Trx,
                format!(
                    "<TestRun><UnitTestResult testName='a' outcome='Failed'><Output><StdOut>{text}</StdOut><ErrorInfo><Message>{text}</Message><StackTrace>{text}</StackTrace></ErrorInfo></Output></UnitTestResult></TestRun>"
                ),
            ),
            (
                Format::Nunit,
                format!(
                    "<test-run><test-case fullname='a.b' result='Failed'><output>{text}</output><failure><message>{text}</message><stack-trace>{text}</stack-trace></failure></test-case></test-run>"
                ),
            ),
            (
                Format::Xunit,
                format!(
                    "<assemblies><assembly><test name='a' result='Fail'><output>{text}</output><failure><message>{text}</message><stack-trace>{text}</stack-trace></failure></test></assembly></assemblies>"
                ),
            ),
            (
                Format::Ctest,
                format!(
                    "<Site><Testing><Test Status='failed'><Name>a</Name><Results><Measurement><Value>{text}</Value></Measurement></Results></Test></Testing></Site>"
                ),
            ),
        ]
    };
    let object = |text: &str| -> Vec<(Format, String)> {
        vec![
            (
                Format::Ctrf,
                format!(
                    r#"{{"results":{{"tool":{{}},"tests":[{{"name":"a","status":"failed","message":"{text}","trace":"{text}","stdout":["{text}","{text}"],"stderr":["{text}"]}}]}}}}"#
                ),
            ),
            (
                Format::Ctrf,
                format!(
                    r#"{{"results":{{"tool":{{}},"tests":[{{"name":"a","status":"failed","stdout":[{}"x"]}}]}}}}"#,
                    "\"line\",".repeat(text.len() / 7)
                ),
            ),
            (
                Format::Playwright,
                format!(
                    r#"{{"config":{{}},"suites":[{{"specs":[{{"title":"a","tests":[{{"results":[{{"status":"failed","stdout":[{{"text":"{text}"}}],"errors":[{{"message":"{text}","stack":"{text}"}}]}}]}}]}}]}}]}}"#
                ),
            ),
            (
                Format::Jest,
                format!(
                    r#"{{"testResults":[{{"name":"a","message":"{text}","assertionResults":[{{"title":"a","status":"failed","failureMessages":["{text}"]}}]}}]}}"#
                ),
            ),
            (
                Format::Mocha,
                format!(
                    r#"{{"stats":{{}},"passes":[],"tests":[{{"fullTitle":"a","err":{{"message":"{text}","stack":"{text}"}}}}]}}"#
                ),
            ),
            (
                Format::Mochawesome,
                format!(
                    r#"{{"stats":{{}},"results":[{{"tests":[{{"title":"a","fail":true,"err":{{"message":"{text}","estack":"{text}"}}}}]}}]}}"#
                ),
            ),
            (
                Format::Cucumber,
                format!(
                    r#"[{{"uri":"a","elements":[{{"name":"a","steps":[{{"result":{{"status":"failed","error_message":"{text}"}}}}]}}]}}]"#
                ),
            ),
            (
                Format::PytestJson,
                format!(
                    r#"{{"exitcode":1,"root":"/r","tests":[{{"nodeid":"a","outcome":"failed","call":{{"outcome":"failed","stdout":"{text}","longrepr":"{text}"}}}}]}}"#
                ),
            ),
            (
                Format::Rspec,
                format!(
                    r#"{{"summary":{{}},"examples":[{{"full_description":"a","status":"failed","exception":{{"message":"{text}","backtrace":["{text}"]}}}}]}}"#
                ),
            ),
            (
                Format::Karate,
                format!(
                    r#"{{"name":"f","scenarioResults":[{{"name":"a","failed":true,"error":"{text}"}}]}}"#
                ),
            ),
            (
                Format::Libtest,
                format!("{{\"type\":\"test\",\"event\":\"failed\",\"name\":\"a\",\"stdout\":\"{text}\"}}\n"),
            ),
            (
                Format::Dart,
                format!(
                    "{{\"test\":{{\"id\":1,\"name\":\"a\"}},\"type\":\"testStart\"}}\n{{\"testID\":1,\"type\":\"print\",\"message\":\"{text}\"}}\n{{\"testID\":1,\"error\":\"{text}\",\"type\":\"error\"}}\n{{\"testID\":1,\"result\":\"error\",\"type\":\"testDone\"}}\n"
                ),
            ),
            (
                Format::Go,
                format!(
                    "{{\"Action\":\"output\",\"Package\":\"p\",\"Test\":\"a\",\"Output\":\"{text}\"}}\n{{\"Action\":\"fail\",\"Package\":\"p\",\"Test\":\"a\"}}\n"
                ),
            ),
        ]
    };
    let mut reports = element(&entities);
    reports.extend(element(&plain));
    reports.extend(object(&escapes));
    reports.extend(object(&plain));
    let mut beyond = Vec::new();
    for (format, text) in reports {
        let bytes = text.len();
        let files = vec![file("r", text)];
        let charged = Arc::new(Charged::default());
        let memory: Arc<dyn Memory> = Arc::<Charged>::clone(&charged);
        let options = Options {
            format: Some(format),
            memory: Some(&memory),
            ..Options::default()
        };
        MEMORY.reset_peak_usage();
        let before = MEMORY.current_usage();
        let report = assay_reports::read(files, &options);
        let (peak, charged) = (MEMORY.peak_usage() - before, charged.most.load(Ordering::Relaxed));
        let cost = format!(
            "{format}: {} KiB took {} KiB, charged {} KiB",
            bytes >> 10,
            peak >> 10,
            charged >> 10
        );
        eprintln!("{cost}");
        if peak > charged + (2 << 20) {
            beyond.push(cost);
        }
        drop(report);
    }
    assert!(beyond.is_empty(), "{}", beyond.join("\n"));
}
