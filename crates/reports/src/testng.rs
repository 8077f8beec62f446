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
    xml::{Document, Tag, append},
};

/// Reads one file.
#[derive(Default)]
pub(crate) struct Run<'a> {
    /// The open `<test>` of the configuration and the open class.
    test: Rc<str>,
    class: Rc<str>,
    method: Option<Method<'a>>,
    methods: Vec<Method<'a>>,
    /// The failed results that the header counts.
    counted_failures: Option<f64>,
}

/// A `test-method`: one execution of a method.
#[derive(Debug, Default)]
struct Method<'a> {
    test: Rc<str>,
    class: Rc<str>,
    name: Cow<'a, str>,
    status: Cow<'a, str>,
    started_at: Cow<'a, str>,
    duration: Cow<'a, str>,
    /// Whether the method sets up or tears down.
    is_configuration: bool,
    /// TestNG 7 marks the attempts that were run again.
    retried: bool,
    values: Vec<Cow<'a, str>>,
    exception: Cow<'a, str>,
    message: Cow<'a, str>,
    stack: Cow<'a, str>,
}

impl<'a> Document<'a> for Run<'a> {
    const FORMAT: &'static str = "TestNG";
    const ROOTS: &'static [&'static str] = &["testng-results"];

    fn begin_element(&mut self, tag: Tag<'a, '_>, _parent: &str) -> bool {
        match (tag.name, &mut self.method) {
            ("testng-results", None) => self.counted_failures = tag.value("failed").trim().parse().ok(),
            ("test", None) => self.test = Rc::from(tag.value("name")),
            ("class", None) => self.class = Rc::from(tag.value("name")),
            ("test-method", None) => {
                memory::charge(self.test.len() + self.class.len());
                self.method = Some(Method {
                    test: Rc::clone(&self.test),
                    class: Rc::clone(&self.class),
                    name: tag.value("name"),
                    status: tag.value("status"),
                    started_at: tag.value("started-at"),
                    duration: tag.value("duration-ms"),
                    is_configuration: tag.value("is-config") == "true",
                    retried: tag.value("retried") == "true",
                    ..Method::default()
                });
            }
            ("value", Some(method)) if method.values.len() < MOST_VALUES => {
                let is_null = tag.value("is-null") == "true";
                method
                    .values
                    .push(Cow::Borrowed(if is_null { "null" } else { "" }));
            }
            ("value", _) => return false,
            ("exception", Some(method)) => method.exception = tag.value("class"),
            _ => {}
        }
        true
    }

    fn text(&mut self, name: &str, _parent: &str, text: Cow<'a, str>) {
        let Some(method) = &mut self.method else { return };
        let target = match name {
            "value" => method.values.last_mut(),
            "message" => Some(&mut method.message),
            "full-stacktrace" => Some(&mut method.stack),
            _ => None,
        };
        append(target, text);
    }

    fn end_element(&mut self, name: &str, _parent: &str) {
        if name == "test-method" {
            self.methods.extend(self.method.take());
        }
    }

    fn results(&self) -> usize {
        self.methods.len()
    }

    fn finish(self, input: &Input<'a>) -> Report {
        let mut report = Report::empty(Format::Testng);
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
        report
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
        .partition(|method| method.retried || (has_result && method.is_run_again()));
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

    /// Whether TestNG skipped the attempt because it ran the test again. The exceptions below mean that the test or a
    /// dependency skipped it.
    fn is_run_again(&self) -> bool {
        self.status == "SKIP"
            && !self.exception.is_empty()
            && !self.exception.ends_with("SkipException")
            && self.exception != "java.lang.Throwable"
    }

    /// Whether it is a test that a failed configuration method of its class kept from running.
    fn is_skipped_after(&self, configuration: &Self) -> bool {
        !self.is_configuration
            && self.status == "SKIP"
            && (&self.test, &self.class) == (&configuration.test, &configuration.class)
            && self.started_at >= configuration.started_at
    }

    fn test(&self, input: &Input<'_>) -> LocatedTest {
        let values: Vec<&str> = self.values.iter().map(|value| value.trim()).collect();
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
        LocatedTest::of_class(input, &self.class, text::joined([prefix, &*self.class, name]))
    }

    fn attempt(&self, input: &Input<'_>, status: AttemptStatus) -> Attempt {
        let errors: Vec<ErrorDetail> = self
            .error(input)
            .into_iter()
            .filter(|_| status.is_failure())
            .collect();
        let timed_out = self.exception.ends_with("ThreadTimeoutException")
            || failure::status(&errors) == AttemptStatus::TimedOut;
        let status = if status == AttemptStatus::Failed && timed_out {
            AttemptStatus::TimedOut
        } else {
            status
        };
        let duration = self.duration.trim().parse().ok().and_then(time::duration_ms);
        failure::as_reported(status, errors, duration, input.time(&self.started_at))
            .skipped_because(text::skip_reason(&self.message))
    }

    fn error(&self, input: &Input<'_>) -> Option<ErrorDetail> {
        let message = Some(self.message.trim())
            .filter(|message| !message.is_empty())
            .or(Some(&*self.exception).filter(|class| !class.is_empty()));
        input.error(message, Some(self.stack.trim()), None)
    }
}
