//! Measures how fast each format is read, in report bytes per second. Allure is missing: its files hold one test each.
//!
//! Every report has 5,000 tests, and every hundredth of them failed with a message and a stack. The time covers
//! everything from the bytes in memory to the neutral report, including recognition of the format.
#![allow(missing_docs, reason = "criterion's macros make public items")]

use std::hint::black_box;

use assay_reports::{Format, Options, SourceFile, looks_like_report, read};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

const TESTS: usize = 5_000;

/// A report of a format: the text before, between and after its tests.
struct SyntheticReport {
    format: Format,
    before: &'static str,
    between: &'static str,
    behind: &'static str,
    test: fn(usize, bool) -> String,
}

impl SyntheticReport {
    fn bytes(&self) -> Vec<u8> {
        let tests: Vec<String> = (0..TESTS)
            .map(|number| (self.test)(number, number % 100 == 7))
            .collect();
        format!("{}{}{}", self.before, tests.join(self.between), self.behind).into_bytes()
    }
}

/// A JavaScript message and stack as JSON text.
const JS: &str = "Error: total is 1250, expected 1350\\n    at total (/r/src/orders.js:8:11)\\n    at Context.<anonymous> (/r/test/orders.js:12:5)";
/// A .NET stack.
const NET: &str = "   at Acme.Shop.OrderTests.KeepsTheDiscount() in /r/OrderTests.cs:line 17";

const REPORTS: &[SyntheticReport] = &[
    SyntheticReport {
        format: Format::Playwright,
        before: r#"{"config":{"rootDir":"/r/tests"},"errors":[],"suites":[{"title":"a.spec.ts","file":"a.spec.ts","specs":["#,
        between: ",",
        behind: "]}]}",
        test: |number, failed| {
            let (status, errors) = if failed {
                ("failed", format!(r#"{{"message":"{JS}"}}"#))
            } else {
                ("passed", String::new())
            };
            format!(
                r#"{{"title":"adds item {number}","file":"a.spec.ts","line":3,"tests":[{{"projectName":"chromium","expectedStatus":"passed","results":[{{"retry":0,"status":"{status}","duration":13,"startTime":"2026-11-20T18:57:52.278Z","errors":[{errors}],"attachments":[]}}]}}]}}"#
            )
        },
    },
    SyntheticReport {
        format: Format::Junit,
        before: "<testsuites><testsuite name='orders' tests='5000'>",
        between: "\n",
        behind: "</testsuite></testsuites>",
        test: |number, failed| {
            let failure = if failed {
                "<failure message='total is 1250, expected 1350'>at org.shop.Order.total(Order.java:8)\nat org.shop.OrderTest.adds(OrderTest.java:12)</failure>"
            } else {
                ""
            };
            format!(
                "<testcase classname='org.shop.OrderTest' name='adds item {number}' time='0.013'>{failure}</testcase>"
            )
        },
    },
    SyntheticReport {
        format: Format::Ctrf,
        before: r#"{"reportFormat":"CTRF","results":{"tool":{"name":"x"},"summary":{},"tests":["#,
        between: ",",
        behind: "]}}",
        test: |number, failed| {
            let (status, error) =
                json_failure(failed, &format!(r#","message":"total is 1250","trace":"{JS}""#));
            format!(
                r#"{{"name":"adds item {number}","status":"{status}","duration":13,"suite":["orders"],"filePath":"/r/test/orders.js"{error}}}"#
            )
        },
    },
    SyntheticReport {
        format: Format::Jest,
        before: r#"{"numTotalTests":5000,"testResults":[{"name":"/r/test/orders.test.js","assertionResults":["#,
        between: ",",
        behind: "]}]}",
        test: |number, failed| {
            let (status, error) = json_failure(failed, &format!(r#""{JS}""#));
            format!(
                r#"{{"ancestorTitles":["orders"],"title":"adds item {number}","status":"{status}","duration":13,"failureMessages":[{error}]}}"#
            )
        },
    },
    SyntheticReport {
        format: Format::Go,
        before: "",
        between: "",
        behind: "{\"Time\":\"2026-11-20T18:57:52Z\",\"Action\":\"fail\",\"Package\":\"shop\",\"Elapsed\":9}\n",
        test: |number, failed| {
            let event = |action: &str, more: &str| {
                format!(
                    "{{\"Time\":\"2026-11-20T18:57:52.27801Z\",\"Action\":\"{action}\",\"Package\":\"shop\",\"Test\":\"TestAdds{number}\"{more}}}\n"
                )
            };
            let output = if failed {
                ",\"Output\":\"    orders_test.go:17: total is 1250\\n\""
            } else {
                ",\"Output\":\"=== RUN\\n\""
            };
            let end = if failed { "fail" } else { "pass" };
            [
                event("run", ""),
                event("output", output),
                event(end, ",\"Elapsed\":0.01"),
            ]
            .concat()
        },
    },
    SyntheticReport {
        format: Format::Trx,
        before: "<TestRun><Results>",
        between: "\n",
        behind: "</Results></TestRun>",
        test: |number, failed| {
            let (outcome, error) = if failed {
                (
                    "Failed",
                    format!(
                        "<Output><ErrorInfo><Message>total is 1250</Message><StackTrace>{NET}</StackTrace></ErrorInfo></Output>"
                    ),
                )
            } else {
                ("Passed", String::new())
            };
            format!(
                "<UnitTestResult testId='{number}' testName='Acme.Shop.OrderTests.Adds{number}' outcome='{outcome}' duration='00:00:00.0130000' startTime='2026-11-20T18:57:52.2780000+00:00'>{error}</UnitTestResult>"
            )
        },
    },
    SyntheticReport {
        format: Format::Testng,
        before: "<testng-results><suite name='s'><test name='t'><class name='org.shop.OrderTest'>",
        between: "\n",
        behind: "</class></test></suite></testng-results>",
        test: |number, failed| {
            let (status, error) = if failed {
                (
                    "FAIL",
                    "<exception class='java.lang.AssertionError'><message><![CDATA[total is 1250]]></message><full-stacktrace><![CDATA[java.lang.AssertionError: total is 1250\n\tat org.shop.OrderTest.adds(OrderTest.java:12)]]></full-stacktrace></exception>",
                )
            } else {
                ("PASS", "")
            };
            format!(
                "<test-method status='{status}' signature='adds()' name='adds{number}' duration-ms='13' started-at='2026-11-20T18:57:52Z'>{error}</test-method>"
            )
        },
    },
    SyntheticReport {
        format: Format::Cucumber,
        before: r#"[{"uri":"features/orders.feature","id":"orders","name":"Orders","keyword":"Feature","elements":["#,
        between: ",",
        behind: "]}]",
        test: |number, failed| {
            let (status, error) = json_failure(failed, &format!(r#","error_message":"{JS}""#));
            format!(
                r#"{{"id":"orders;adds-{number}","name":"adds {number}","line":{number},"type":"scenario","steps":[{{"keyword":"Given ","name":"an order","result":{{"status":"{status}","duration":13000000{error}}}}}]}}"#
            )
        },
    },
    SyntheticReport {
        format: Format::Robot,
        before: "<robot><suite name='Shop' source='/r/shop.robot'>",
        between: "\n",
        behind: "</suite></robot>",
        test: |number, failed| {
            let (status, message) = if failed {
                ("FAIL", "1250 != 1350")
            } else {
                ("PASS", "")
            };
            format!(
                "<test id='s1-t{number}' name='Adds {number}' line='7'><kw name='Total'><status status='{status}' start='2026-11-20T18:57:52.278' elapsed='0.01'/></kw><status status='{status}' start='2026-11-20T18:57:52.278' elapsed='0.013'>{message}</status></test>"
            )
        },
    },
    SyntheticReport {
        format: Format::Mocha,
        before: r#"{"stats":{"start":"2026-11-20T18:57:52.278Z"},"passes":[],"failures":[],"tests":["#,
        between: ",",
        behind: "]}",
        test: |number, failed| {
            let (_, error) = json_failure(failed, &format!(r#""message":"total is 1250","stack":"{JS}""#));
            format!(
                r#"{{"title":"adds {number}","fullTitle":"orders adds {number}","file":"/r/test/orders.js","duration":13,"currentRetry":0,"err":{{{error}}}}}"#
            )
        },
    },
    SyntheticReport {
        format: Format::Mochawesome,
        before: r#"{"stats":{"start":"2026-11-20T18:57:52.278Z"},"results":[{"title":"","file":"/r/test/orders.js","suites":[],"tests":["#,
        between: ",",
        behind: "]}]}",
        test: |number, failed| {
            let (state, error) =
                json_failure(failed, &format!(r#""message":"total is 1250","estack":"{JS}""#));
            format!(
                r#"{{"title":"adds {number}","fullTitle":"orders adds {number}","duration":13,"state":"{state}","pass":{},"fail":{failed},"err":{{{error}}}}}"#,
                !failed
            )
        },
    },
    SyntheticReport {
        format: Format::Karate,
        before: r#"{"name":"Orders","prefixedPath":"classpath:shop/orders.feature","scenarioResults":["#,
        between: ",",
        behind: "]}",
        test: |number, failed| {
            let (status, error) = json_failure(
                failed,
                r#","error":"match failed: EQUALS\n  $ | not equal\n\nclasspath:shop/orders.feature:9""#,
            );
            format!(
                r#"{{"name":"adds {number}","line":{number},"exampleIndex":-1,"failed":{failed},"durationMillis":13.5,"startTime":1795200363120,"stepResults":[{{"step":{{"line":9,"text":"match total == 1350"}},"result":{{"status":"{status}","millis":1.5}}}}]{error}}}"#
            )
        },
    },
    SyntheticReport {
        format: Format::Nunit,
        before: "<test-run start-time='2026-11-20 16:32:51Z'><test-suite type='TestFixture' name='OrderTests'>",
        between: "\n",
        behind: "</test-suite></test-run>",
        test: |number, failed| {
            let (result, error) = if failed {
                (
                    "Failed",
                    format!(
                        "<failure><message><![CDATA[total is 1250]]></message><stack-trace><![CDATA[{NET}]]></stack-trace></failure>"
                    ),
                )
            } else {
                ("Passed", String::new())
            };
            format!(
                "<test-case name='Adds{number}' fullname='Acme.Shop.OrderTests.Adds{number}' result='{result}' start-time='2026-11-20 16:32:53Z' duration='0.013'>{error}</test-case>"
            )
        },
    },
    SyntheticReport {
        format: Format::Xunit,
        before: "<assemblies><assembly name='Acme.dll' run-date='2026-11-20' run-time='16:32:51' test-framework='xUnit.net 2.9.0'><collection name='c'>",
        between: "\n",
        behind: "</collection></assembly></assemblies>",
        test: |number, failed| {
            let (result, error) = if failed {
                (
                    "Fail",
                    format!(
                        "<failure exception-type='E'><message><![CDATA[total is 1250]]></message><stack-trace><![CDATA[{NET}]]></stack-trace></failure>"
                    ),
                )
            } else {
                ("Pass", String::new())
            };
            format!(
                "<test name='Acme.Shop.OrderTests.Adds{number}' type='Acme.Shop.OrderTests' method='Adds{number}' time='0.0123' result='{result}'>{error}</test>"
            )
        },
    },
    SyntheticReport {
        format: Format::PytestJson,
        before: r#"{"created":1795200363.1,"duration":9.1,"exitcode":1,"root":"/r","summary":{},"tests":["#,
        between: ",",
        behind: "]}",
        test: |number, failed| {
            let (outcome, error) = json_failure(
                failed,
                r#","crash":{"path":"/r/tests/test_orders.py","lineno":12,"message":"assert 1250 == 1350"},"longrepr":"tests/test_orders.py:12: AssertionError""#,
            );
            format!(
                r#"{{"nodeid":"tests/test_orders.py::test_adds[{number}]","lineno":9,"outcome":"{outcome}","setup":{{"duration":0.001,"outcome":"passed"}},"call":{{"duration":0.013,"outcome":"{outcome}"{error}}},"teardown":{{"duration":0.001,"outcome":"passed"}}}}"#
            )
        },
    },
    SyntheticReport {
        format: Format::Rspec,
        before: r#"{"version":"3.12.0","summary_line":"5000 examples","examples":["#,
        between: ",",
        behind: "]}",
        test: |number, failed| {
            let (status, error) = json_failure(
                failed,
                r#","exception":{"class":"RSpec::Expectations::ExpectationNotMetError","message":"expected: 1350\n got: 1250","backtrace":["./spec/order_spec.rb:12:in `block'"]}"#,
            );
            format!(
                r#"{{"id":"./spec/order_spec.rb[1:{number}]","description":"adds {number}","full_description":"Order adds {number}","status":"{status}","file_path":"./spec/order_spec.rb","line_number":9,"run_time":0.0131{error}}}"#
            )
        },
    },
    SyntheticReport {
        format: Format::Tap,
        before: "TAP version 13\n1..5000\n",
        between: "",
        behind: "",
        test: |number, failed| {
            let position = number + 1;
            if failed {
                format!(
                    "not ok {position} - orders adds {number}\n  ---\n  duration_ms: 13\n  message: total is 1250\n  stack: |-\n    at total (/r/src/orders.js:8:11)\n  ...\n"
                )
            } else {
                format!("ok {position} - orders adds {number}\n  ---\n  duration_ms: 13\n  ...\n")
            }
        },
    },
    SyntheticReport {
        format: Format::Dart,
        before: "{\"protocolVersion\":\"0.1.1\",\"runnerVersion\":\"1.25.3\",\"pid\":1,\"type\":\"start\",\"time\":0}\n{\"suite\":{\"id\":0,\"platform\":\"vm\",\"path\":\"test/orders_test.dart\"},\"type\":\"suite\",\"time\":0}\n",
        between: "",
        behind: "{\"success\":false,\"type\":\"done\",\"time\":9000}\n",
        test: |number, failed| {
            let id = number + 1;
            let start = format!(
                "{{\"test\":{{\"id\":{id},\"name\":\"adds {number}\",\"suiteID\":0,\"groupIDs\":[],\"metadata\":{{\"skip\":false}},\"line\":9}},\"type\":\"testStart\",\"time\":{number}}}\n"
            );
            let error = if failed {
                format!(
                    "{{\"testID\":{id},\"error\":\"Expected: 1350\\n  Actual: 1250\",\"stackTrace\":\"test/orders_test.dart 10:9  main\",\"isFailure\":true,\"type\":\"error\",\"time\":{number}}}\n"
                )
            } else {
                String::new()
            };
            let result = if failed { "failure" } else { "success" };
            format!(
                "{start}{error}{{\"testID\":{id},\"result\":\"{result}\",\"skipped\":false,\"hidden\":false,\"type\":\"testDone\",\"time\":{id}}}\n"
            )
        },
    },
    SyntheticReport {
        format: Format::Libtest,
        before: "{ \"type\": \"suite\", \"event\": \"started\", \"test_count\": 5000 }\n",
        between: "",
        behind: "{ \"type\": \"suite\", \"event\": \"failed\", \"passed\": 4950, \"failed\": 50, \"ignored\": 0, \"exec_time\": 9.1 }\n",
        test: |number, failed| {
            let (event, output) = if failed {
                (
                    "failed",
                    ", \"stdout\": \"\\nthread 'orders' panicked at src/lib.rs:12:5:\\ntotal is 1250\\n\"",
                )
            } else {
                ("ok", "")
            };
            format!(
                "{{ \"type\": \"test\", \"event\": \"started\", \"name\": \"orders::adds_{number}\" }}\n{{ \"type\": \"test\", \"name\": \"orders::adds_{number}\", \"event\": \"{event}\", \"exec_time\": 0.013{output} }}\n"
            )
        },
    },
    SyntheticReport {
        format: Format::Ctest,
        before: "<Site><Testing><StartTestTime>1795200363</StartTestTime>",
        between: "\n",
        behind: "</Testing></Site>",
        test: |number, failed| {
            let (status, output) = if failed {
                ("failed", "total is 1250, expected 1350")
            } else {
                ("passed", "ok")
            };
            format!(
                "<Test Status='{status}'><Name>adds_{number}</Name><Path>.</Path><FullName>./adds_{number}</FullName><Results><NamedMeasurement type='numeric/double' name='Execution Time'><Value>0.013</Value></NamedMeasurement><Measurement><Value>{output}</Value></Measurement></Results></Test>"
            )
        },
    },
];

/// The status of a test in JSON, and the fields of a failure.
fn json_failure(failed: bool, more: &str) -> (&'static str, String) {
    if failed {
        ("failed", more.to_owned())
    } else {
        ("passed", String::new())
    }
}

fn formats(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("formats");
    group.sample_size(10);
    for report_kind in REPORTS {
        let bytes = report_kind.bytes();
        assert_eq!(looks_like_report(&bytes), Some(report_kind.format));
        let file = || SourceFile {
            name: "report".into(),
            bytes: bytes.clone(),
            modified: None,
        };
        let options = Options {
            root: Some("/r"),
            ..Options::default()
        };
        // Checks the measured work: every test is read, and the failed ones have failed.
        let report = read(vec![file()], &options).map(|report| {
            let failed = report.tests.iter().filter(|test| {
                test.attempts
                    .iter()
                    .any(|attempt| attempt.status.is_failure() && !attempt.errors.is_empty())
            });
            (report.tests.len(), failed.count())
        });
        assert_eq!(report.ok(), Some((TESTS, TESTS / 100)), "{}", report_kind.format);
        group.throughput(Throughput::Bytes(u64::try_from(bytes.len()).unwrap_or(u64::MAX)));
        group.bench_function(report_kind.format.as_str(), |bencher| {
            bencher.iter_batched(
                || vec![file()],
                |files| black_box(read(files, &options)),
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, formats);
criterion_main!(benches);
