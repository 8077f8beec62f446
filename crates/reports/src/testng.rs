//! TestNG's own results, `testng-results.xml`.

use std::{borrow::Cow, collections::HashMap, rc::Rc};

use assay_domain::{
    attempt::{Attempt, AttemptStatus, ErrorDetail},
    set_up,
};

use crate::{
    collect::{Collector, LocatedTest},
    failure,
    input::Input,
    junit::names,
    limits, memory, outcome,
    report::{Format, Report},
    text, time,
    xml::{Document, Element, RESULT, Tag},
};

/// Reads one file.
#[derive(Default)]
pub(crate) struct Run<'a> {
    /// The open `<test>` of the configuration and the open class.
    test: Rc<str>,
    class: Rc<str>,
    methods: Vec<Method<'a>>,
    /// The failed results that the header counts.
    counted_failures: Option<f64>,
}

/// A `test-method`: one execution of a method.
#[derive(Debug)]
struct Method<'a> {
    test: Rc<str>,
    class: Rc<str>,
    name: Cow<'a, str>,
    status: Cow<'a, str>,
    started_at: Cow<'a, str>,
    /// Whether the method sets up or tears down.
    is_configuration: bool,
    element: Element<'a>,
}

impl<'a> Document<'a> for Run<'a> {
    const FORMAT: Format = Format::Testng;
    const NAME: &'static str = "TestNG";
    const ROOTS: &'static [&'static str] = &["testng-results"];
    const WHOLE: &'static [&'static str] = &["test-method"];
    const PARTS: &'static [&'static str] = &[
        "params",
        "param",
        "value",
        "exception",
        "message",
        "full-stacktrace",
    ];

    fn begin(&mut self, _input: &Input<'a>, _report: &mut Report, tag: Tag<'a, '_>, _parent: &str) -> bool {
        match tag.name {
            "testng-results" => self.counted_failures = tag.value("failed").trim().parse().ok(),
            "test" => self.test = Rc::from(tag.value("name")),
            "class" => self.class = Rc::from(tag.value("name")),
            _ => {}
        }
        true
    }

    fn element(&mut self, _input: &Input<'a>, _report: &mut Report, element: Element<'a>) {
        memory::hold(RESULT);
        memory::charge(self.test.len() + self.class.len());
        self.methods.push(Method {
            test: Rc::clone(&self.test),
            class: Rc::clone(&self.class),
            name: element.value("name"),
            status: element.value("status"),
            started_at: element.value("started-at"),
            is_configuration: element.value("is-config") == "true",
            element,
        });
    }

    fn results(&self) -> usize {
        self.methods.len()
    }

    fn finish(self, input: &Input<'a>, report: &mut Report) {
        let mut groups: Vec<(LocatedTest, Vec<&Method<'_>>)> = Vec::new();
        let mut set_ups = Vec::new();
        let mut index_of_test: HashMap<LocatedTest, usize> = HashMap::new();
        for method in &self.methods {
            let attempt = method.attempt(input, AttemptStatus::Failed);
            report.widen(attempt.started_at, attempt.duration_ms);
            if method.is_configuration {
                if method.status == "FAIL" && report.errors.len() < limits::REPORT_ERRORS {
                    report.errors.extend(method.error(input));
                    let kind = match self.methods.iter().any(|test| test.is_skipped_after(method)) {
                        true => set_up::NAME,
                        false => set_up::TEAR_DOWN,
                    };
                    set_ups.push((method.test_named(input, kind), attempt));
                }
                continue;
            }
            let test = method.test(input);
            let index = *index_of_test.entry(test.clone()).or_insert_with(|| {
                groups.push((test, Vec::new()));
                groups.len() - 1
            });
            if let Some((_, executions)) = groups.get_mut(index) {
                executions.push(method);
            }
        }
        drop(index_of_test);
        let mut tests = Collector::for_results(groups.len());
        for (test, attempt) in set_ups {
            tests.add(test, vec![attempt]);
        }
        for (test, executions) in groups {
            for attempts in attempts(input, &executions) {
                tests.add(test.clone(), attempts);
            }
        }
        report.tests = tests.finish();
        report.check_header(input.name, self.counted_failures);
    }
}

/// Parameters of a method that are read.
const MOST_VALUES: usize = 20;

/// The executions of a test. TestNG writes a failed attempt that is run again as skipped, with its exception, and in
/// any order. Those attempts come before the first execution with a result.
fn attempts(input: &Input<'_>, executions: &[&Method<'_>]) -> Vec<Vec<Attempt>> {
    let has_result = executions.iter().any(|method| method.status != "SKIP");
    let (earlier, last): (Vec<&&Method<'_>>, Vec<_>) = executions
        .iter()
        .partition(|method| method.is_marked() || (has_result && method.is_run_again()));
    let mut attempts: Vec<Attempt> = earlier
        .into_iter()
        .map(|method| method.attempt(input, AttemptStatus::Failed))
        .collect();
    let mut last = last
        .into_iter()
        .map(|method| method.attempt(input, method.final_status(input)));
    attempts.extend(last.next());
    std::iter::once(attempts)
        .chain(last.map(|attempt| vec![attempt]))
        .filter(|attempts| !attempts.is_empty())
        .collect()
}

impl Method<'_> {
    fn final_status(&self, input: &Input<'_>) -> AttemptStatus {
        input.status(outcome::TESTNG, &self.status)
    }

    /// Whether TestNG 7 marks it as an attempt that was run again.
    fn is_marked(&self) -> bool {
        self.element.value("retried") == "true"
    }

    fn exception(&self) -> Cow<'_, str> {
        let exception = self.element.element("exception");
        exception.map_or(Cow::Borrowed(""), |exception| exception.value("class"))
    }

    /// Whether TestNG skipped the attempt because it ran the test again. The exceptions below mean that the test or a
    /// dependency skipped it.
    fn is_run_again(&self) -> bool {
        let exception = self.exception();
        self.status == "SKIP"
            && !exception.is_empty()
            && !exception.ends_with("SkipException")
            && exception != "java.lang.Throwable"
    }

    /// Whether it is a test that a failed configuration method of its class kept from running.
    fn is_skipped_after(&self, configuration: &Self) -> bool {
        !self.is_configuration
            && self.status == "SKIP"
            && (&self.test, &self.class) == (&configuration.test, &configuration.class)
            && self.started_at >= configuration.started_at
    }

    fn test(&self, input: &Input<'_>) -> LocatedTest {
        let values: Vec<&str> = self
            .element
            .descendants()
            .filter(|part| part.name == "value")
            .map(|value| match &*value.value("is-null") {
                "true" => "null",
                _ => value.text.trim(),
            })
            .take(MOST_VALUES)
            .collect();
        let name = if values.is_empty() {
            self.name.to_string()
        } else {
            format!("{}({})", self.name, values.join(", "))
        };
        self.test_named(input, &name)
    }

    fn test_named(&self, input: &Input<'_>, name: &str) -> LocatedTest {
        // The same class in several `<test>`s is tested with different settings.
        let prefix = match names::is_constant_suite(&self.test) {
            true => "",
            false => &*self.test,
        };
        LocatedTest::of_class(input, &self.class, [prefix, &*self.class, name])
    }

    fn attempt(&self, input: &Input<'_>, status: AttemptStatus) -> Attempt {
        let errors: Vec<ErrorDetail> = self
            .error(input)
            .into_iter()
            .filter(|_| status.is_failure())
            .collect();
        let timed_out = self.exception().ends_with("ThreadTimeoutException")
            || failure::status(&errors) == AttemptStatus::TimedOut;
        let status = if status == AttemptStatus::Failed && timed_out {
            AttemptStatus::TimedOut
        } else {
            status
        };
        let duration = self
            .element
            .value("duration-ms")
            .trim()
            .parse()
            .ok()
            .and_then(time::duration_ms);
        failure::as_reported(status, errors, duration, input.time(&self.started_at))
            .skipped_because(text::skip_reason(self.text_of("message")))
    }

    fn text_of(&self, part: &str) -> &str {
        let exception = self.element.element("exception");
        exception.map_or("", |exception| exception.text_of(part).trim())
    }

    fn error(&self, input: &Input<'_>) -> Option<ErrorDetail> {
        let class = self.exception();
        let message = [self.text_of("message"), &*class]
            .into_iter()
            .find(|text| !text.is_empty());
        input.error(message, Some(self.text_of("full-stacktrace")), None)
    }
}
