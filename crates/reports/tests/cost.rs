//! Bounds the cost of hostile reports: memory within a multiple of their unpacked size, time in proportion to it. This
//! is its own program because it measures the memory of the whole process.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should stop"
)]

use std::{io::Write as _, time::Duration};

use assay_reports::{Format, KnownFiles, Options, ReadError, Report, SourceFile};
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
            junit("<testcase name='a'/>", 400_000),
        ),
        (
            "one failed test many times",
            SMALL_BASE_MB,
            junit("<testcase name='a'><failure/></testcase>", 200_000),
        ),
        ("one case with a million failures", SMALL_BASE_MB, {
            let case = format!("<testcase name='a'>{}</testcase>", "<failure/>".repeat(1_000_000));
            junit(&case, 1)
        }),
        (
            "two million elements of CTRF without anything in them",
            BASE_MB,
            json("{\"results\":{\"tool\":{},\"tests\":[", "{}", 2_000_000, "]}}"),
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
                500,
                "]}",
            ),
        ),
        ("lists in a line of a blob report", BASE_MB, {
            let errors = vec!["{}"; 4_000_000].join(",");
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
            let elements: Vec<String> = (1..=300_000).map(|line| format!("{{\"line\":{line}}}")).collect();
            let text = format!("[{{\"uri\":\"a\",\"elements\":[{}]}}]", elements.join(","));
            (text.len(), vec![file("r.json", text)])
        }),
        ("examples of one name in Karate", BASE_MB, {
            let scenarios: Vec<String> = (1..=300_000).map(|line| format!("{{\"line\":{line}}}")).collect();
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
    let same = vec![("a".to_owned(), "fail"); 50_000];
    let retried = "{\"currentRetry\":1e9}";
    let mocha = format!(
        "{{\"stats\":{{}},\"passes\":[],\"tests\":[{}]}}",
        vec![retried; 50_000].join(",")
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
    let text: String = (0..800)
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
    assert_eq!(report.tests.len(), 800);
}
