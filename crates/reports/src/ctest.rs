//! CTest's `Test.xml`, which it writes for CDash.

use std::{borrow::Cow, io::Read as _};

use assay_domain::{
    attempt::{Attempt, AttemptStatus, ErrorDetail},
    test::TestName,
};
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use flate2::read::ZlibDecoder;

use crate::{
    collect::{Collector, named},
    failure,
    input::Input,
    junit, limits, outcome,
    report::{Format, Report},
    text,
    xml::{Document, Element},
};

/// Reads one file.
#[derive(Default)]
pub(crate) struct Run {
    tests: Collector,
}

impl<'a> Document<'a> for Run {
    const FORMAT: Format = Format::Ctest;
    const NAME: &'static str = "CTest";
    const ROOTS: &'static [&'static str] = &["Site"];
    const WHOLE: &'static [&'static str] = &["StartTestTime", "EndTestTime", "Test"];
    const PARTS: &'static [&'static str] = &[
        "Name",
        "Path",
        "Results",
        "NamedMeasurement",
        "Measurement",
        "Value",
    ];

    fn element(&mut self, input: &Input<'a>, report: &mut Report, element: Element<'a>) {
        match element.name {
            "StartTestTime" | "EndTestTime" => report.widen(input.time(&element.text), None),
            // The list of tests has elements of the same name without a status.
            _ => {
                if let Some(status) = element.attribute("Status") {
                    let test = Test { status, element };
                    self.tests.add(test.name(), vec![test.attempt(input)]);
                }
            }
        }
    }

    fn results(&self) -> usize {
        self.tests.len()
    }

    fn finish(self, _input: &Input<'a>, report: &mut Report) {
        report.take_tests(self.tests);
    }
}

/// Whether a test that did not run for this reason is a failure: its program or a file is missing, or its fixture failed.
/// CTest lists it as failed, unless it is disabled or skipped itself.
pub(crate) fn is_failure(reason: &str) -> bool {
    !(reason.is_empty() || reason == "Disabled" || reason.starts_with("SKIP_"))
}

/// A test with its results.
struct Test<'a> {
    status: Cow<'a, str>,
    element: Element<'a>,
}

impl<'a> Test<'a> {
    fn name(&self) -> TestName {
        // The folder of the build in which the test was defined; `.` is its root.
        let folder = match self.element.text_of("Path").trim() {
            "." => "",
            path => path.strip_prefix("./").unwrap_or(path),
        };
        named([folder, self.element.text_of("Name").trim()], None)
    }

    /// The value of a measurement; that of the output has no name.
    fn measured(&self, name: &str) -> Option<&Element<'a>> {
        let results = self.element.element("Results")?;
        let measurement = results.elements.iter().find(|part| part.value("name") == name)?;
        measurement.element("Value")
    }

    fn text_of(&self, measurement: &str) -> &str {
        self.measured(measurement).map_or("", |value| value.text.trim())
    }

    fn attempt(&self, input: &Input<'_>) -> Attempt {
        let exit_code = self.text_of("Exit Code");
        let completion = self.text_of("Completion Status");
        let reported = input.status(outcome::OTHERS, self.status.trim());
        let status = if reported == AttemptStatus::Skipped && is_failure(completion) {
            AttemptStatus::Failed
        } else if reported == AttemptStatus::Failed && exit_code == "Timeout" {
            AttemptStatus::TimedOut
        } else {
            reported
        };
        let error = self.error(input, exit_code).filter(|_| status.is_failure());
        // Seconds.
        let duration = input.seconds_to_ms(self.text_of("Execution Time"));
        failure::as_reported(status, error.into_iter().collect(), duration, None)
            .skipped_because(text::skip_reason(completion))
    }

    fn error(&self, input: &Input<'_>, exit_code: &str) -> Option<ErrorDetail> {
        let exit_message = match exit_code {
            "" => self.text_of("Completion Status").to_owned(),
            "Failed" => format!("Failed with exit value {}", self.text_of("Exit Value")),
            other => other.to_owned(),
        };
        match junit::error_of_output(input, &self.output()) {
            // A signal or time limit explains more than the last line of the output.
            Some(error) if exit_code != "Failed" => Some(ErrorDetail {
                stack: error.stack.or_else(|| error.message.clone()),
                message: Some(exit_message),
                ..error
            }),
            Some(error) => Some(error),
            None => input.error(Some(&exit_message), None, None),
        }
    }

    /// The output. One that is compressed and encoded in base 64 is unpacked up to the length that an error keeps.
    fn output(&self) -> Cow<'_, str> {
        let Some(value) = self.measured("") else {
            return Cow::Borrowed("");
        };
        if value.value("encoding") != "base64" {
            return Cow::Borrowed(&value.text);
        }
        let packed: String = value.text.split_whitespace().collect();
        let Ok(packed) = BASE64.decode(packed) else {
            return Cow::Borrowed("");
        };
        let mut unpacked = Vec::new();
        let most = u64::try_from(4 * limits::STACK).unwrap_or(u64::MAX);
        // The intact beginning of a broken archive is still useful.
        let _broken = ZlibDecoder::new(packed.as_slice())
            .take(most)
            .read_to_end(&mut unpacked);
        Cow::Owned(String::from_utf8_lossy(&unpacked).into_owned())
    }
}
