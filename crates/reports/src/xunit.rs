//! xUnit.net's XML, version 2 and 3.

use std::borrow::Cow;

use assay_domain::{
    attempt::{Attempt, AttemptStatus, ErrorDetail},
    set_up,
};

use crate::{
    collect::{Collector, LocatedTest},
    failure,
    input::Input,
    junit::names,
    limits, outcome,
    report::{Format, Report},
    text,
    xml::{Document, Tag, append},
};

/// Reads one file.
#[derive(Default)]
pub(crate) struct Run<'a> {
    /// The start of each assembly and its duration in seconds.
    assemblies: Vec<(String, Cow<'a, str>)>,
    /// The failures and errors that the assemblies' headers count.
    counted_failures: f64,
    test: Option<Test<'a>>,
    tests: Vec<Test<'a>>,
    /// The open error outside of the tests, with its kind and name.
    error: Option<(String, Failure<'a>)>,
    errors: Vec<(String, Failure<'a>)>,
}

#[derive(Default)]
struct Test<'a> {
    name: Cow<'a, str>,
    class: Cow<'a, str>,
    method: Cow<'a, str>,
    /// Seconds.
    time: Cow<'a, str>,
    result: Cow<'a, str>,
    reason: Cow<'a, str>,
    failure: Failure<'a>,
}

#[derive(Default)]
struct Failure<'a> {
    kind: Cow<'a, str>,
    message: Cow<'a, str>,
    stack: Cow<'a, str>,
}

impl<'a> Document<'a> for Run<'a> {
    const FORMAT: &'static str = "xUnit.net";
    const ROOTS: &'static [&'static str] = &["assemblies", "assembly"];

    fn begin_element(&mut self, tag: Tag<'a, '_>, _parent: &str) -> bool {
        match tag.name {
            "assembly" if self.assemblies.len() < limits::TESTS => {
                let start = format!("{}T{}", tag.value("run-date"), tag.value("run-time"));
                let start = tag.attribute("start-rtf").map_or(start, Cow::into_owned);
                self.assemblies.push((start, tag.value("time")));
                let counts =
                    ["failed", "errors"].map(|name| tag.value(name).trim().parse::<f64>().unwrap_or(0.0));
                self.counted_failures += counts.iter().sum::<f64>();
            }
            "test" => {
                self.test = Some(Test {
                    name: tag.value("name"),
                    class: tag.value("type"),
                    method: tag.value("method"),
                    time: tag.value("time"),
                    result: tag.value("result"),
                    ..Test::default()
                });
            }
            "error" if self.test.is_none() => {
                let name = [tag.value("type"), tag.value("name")].join(" ").trim().to_owned();
                self.error = Some((name, Failure::default()));
            }
            "failure" => {
                if let Some(failure) = self.failure() {
                    failure.kind = tag.value("exception-type");
                }
            }
            _ => {}
        }
        true
    }

    fn text(&mut self, name: &str, _parent: &str, text: Cow<'a, str>) {
        let target = match name {
            "reason" => self.test.as_mut().map(|test| &mut test.reason),
            "message" => self.failure().map(|failure| &mut failure.message),
            "stack-trace" => self.failure().map(|failure| &mut failure.stack),
            _ => None,
        };
        append(target, text);
    }

    fn end_element(&mut self, name: &str, _parent: &str) {
        match name {
            "test" => self.tests.extend(self.test.take()),
            "error" => {
                let error = self.error.take();
                self.errors
                    .extend(error.filter(|_| self.errors.len() < limits::REPORT_ERRORS));
            }
            _ => {}
        }
    }

    fn results(&self) -> usize {
        self.tests.len()
    }

    fn finish(self, input: &Input<'a>) -> Report {
        let mut report = Report::empty(Format::Xunit);
        for (start, seconds) in &self.assemblies {
            report.widen(input.time(start), input.seconds_to_ms(seconds));
        }
        let mut tests = Collector::for_results(self.tests.len());
        for test in &self.tests {
            tests.add(test.name(input), vec![test.attempt(input)]);
        }
        for (name, failure) in &self.errors {
            let error = failure.error(input);
            if let Some(class) = name.strip_prefix("test-class-cleanup ") {
                let test = LocatedTest::of_class(input, class, text::joined([class, set_up::TEAR_DOWN]));
                let errors = error.iter().cloned().collect();
                tests.add(
                    test,
                    vec![failure::attempt(AttemptStatus::Failed, errors, None, None)],
                );
            }
            report
                .errors
                .extend(error.map(|error| failure::error_of(name, error)));
        }
        report.tests = tests.finish();
        report.check_header(input.name, Some(self.counted_failures));
        report
    }
}

impl<'a> Run<'a> {
    fn failure(&mut self) -> Option<&mut Failure<'a>> {
        match &mut self.test {
            Some(test) => Some(&mut test.failure),
            None => self.error.as_mut().map(|(_, failure)| failure),
        }
    }
}

impl Test<'_> {
    fn name(&self, input: &Input<'_>) -> LocatedTest {
        let name = if self.name.trim().is_empty() {
            &*self.method
        } else {
            &self.name
        };
        // The display name of a test begins with its class unless the test has its own name.
        let without_class = name
            .strip_prefix(&*self.class)
            .and_then(|rest| rest.strip_prefix('.'));
        let parts = match without_class {
            Some(without_class) => [&*self.class, without_class],
            None => names::class_and_name(&self.class, name),
        };
        LocatedTest::of_class(input, &self.class, text::joined(parts))
    }

    fn attempt(&self, input: &Input<'_>) -> Attempt {
        let status = input.status(outcome::OTHERS, &self.result);
        let error = self.failure.error(input);
        failure::attempt(
            status,
            error.into_iter().collect(),
            input.seconds_to_ms(&self.time),
            None,
        )
        .skipped_because(text::skip_reason(&self.reason))
    }
}

impl Failure<'_> {
    fn error(&self, input: &Input<'_>) -> Option<ErrorDetail> {
        let message = Some(self.message.trim()).filter(|message| !message.is_empty());
        let kind = Some(self.kind.trim()).filter(|kind| !kind.is_empty());
        input.error(message.or(kind), Some(self.stack.trim()), None)
    }
}
