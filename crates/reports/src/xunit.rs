//! xUnit.net's XML, version 2 and 3.

use assay_domain::{
    attempt::{AttemptStatus, ErrorDetail},
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
    xml::{Document, Element, Tag},
};

/// Reads one file.
#[derive(Default)]
pub(crate) struct Run {
    /// The failures and errors that the assemblies' headers count.
    counted_failures: f64,
    tests: Collector,
}

impl<'a> Document<'a> for Run {
    const FORMAT: Format = Format::Xunit;
    const NAME: &'static str = "xUnit.net";
    const ROOTS: &'static [&'static str] = &["assemblies", "assembly"];
    const WHOLE: &'static [&'static str] = &["test", "error"];
    const PARTS: &'static [&'static str] = &["failure", "message", "stack-trace", "reason"];

    fn begin(&mut self, input: &Input<'a>, report: &mut Report, tag: Tag<'a, '_>, _parent: &str) -> bool {
        if tag.name == "assembly" {
            let start = format!("{}T{}", tag.value("run-date"), tag.value("run-time"));
            let start = tag.attribute("start-rtf").map_or(start, Into::into);
            report.widen(input.time(&start), input.seconds_to_ms(&tag.value("time")));
            let counts =
                ["failed", "errors"].map(|name| tag.value(name).trim().parse::<f64>().unwrap_or(0.0));
            self.counted_failures += counts.iter().sum::<f64>();
        }
        true
    }

    fn element(&mut self, input: &Input<'a>, report: &mut Report, element: Element<'a>) {
        let failure = element.element("failure");
        let error = failure.and_then(|failure| error(input, failure));
        if element.name == "test" {
            let reported = input.status(outcome::OTHERS, &element.value("result"));
            let status = match reported.is_skip() && failure.is_some() {
                true => AttemptStatus::Failed,
                false => reported,
            };
            let duration = input.seconds_to_ms(&element.value("time"));
            let attempt = failure::attempt(status, error.into_iter().collect(), duration, None);
            let attempt = attempt.skipped_because(text::skip_reason(element.text_of("reason")));
            return self.tests.add(test(input, &element), vec![attempt]);
        }
        if report.errors.len() >= limits::REPORT_ERRORS {
            return;
        }
        let (kind, name) = (element.value("type"), element.value("name"));
        if kind == "test-class-cleanup" {
            let test = LocatedTest::of_class(input, &name, [&*name, set_up::TEAR_DOWN]);
            let errors = error.iter().cloned().collect();
            self.tests.add(
                test,
                vec![failure::attempt(AttemptStatus::Failed, errors, None, None)],
            );
        }
        let title = [kind, name].join(" ");
        report
            .errors
            .extend(error.map(|error| failure::error_of(title.trim(), error)));
    }

    fn results(&self) -> usize {
        self.tests.len()
    }

    fn finish(self, input: &Input<'a>, report: &mut Report) {
        report.take_tests(self.tests);
        report.check_header(input.name, Some(self.counted_failures));
    }
}

fn test(input: &Input<'_>, test: &Element<'_>) -> LocatedTest {
    let (class, mut name) = (test.value("type"), test.value("name"));
    if name.trim().is_empty() {
        name = test.value("method");
    }
    // The display name of a test begins with its class unless the test has its own name.
    let without_class = name.strip_prefix(&*class).and_then(|rest| rest.strip_prefix('.'));
    let parts = match without_class {
        Some(without_class) => [&*class, without_class],
        None => names::class_and_name(&class, &name),
    };
    LocatedTest::of_class(input, &class, parts)
}

fn error(input: &Input<'_>, failure: &Element<'_>) -> Option<ErrorDetail> {
    let kind = failure.value("exception-type");
    let texts = [failure.text_of("message"), &*kind].map(str::trim);
    let message = texts.into_iter().find(|text| !text.is_empty());
    input.error(message, Some(failure.text_of("stack-trace").trim()), None)
}
