//! CTest's `Test.xml`, which it writes for CDash.

use std::{borrow::Cow, io::Read as _};

use assay_domain::attempt::{Attempt, AttemptStatus, ErrorDetail};
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use flate2::read::ZlibDecoder;

use crate::{
    collect::{Collector, without_file},
    failure,
    input::Input,
    junit, limits, outcome,
    report::{Format, Report},
    text,
    xml::{Document, Tag, append},
};

/// Reads one file.
#[derive(Default)]
pub(crate) struct Run<'a> {
    start: Cow<'a, str>,
    end: Cow<'a, str>,
    test: Option<Test<'a>>,
    /// The name of the open measurement; empty for the output.
    measurement: Cow<'a, str>,
    tests: Vec<Test<'a>>,
}

#[derive(Default)]
struct Test<'a> {
    status: Cow<'a, str>,
    name: Cow<'a, str>,
    path: Cow<'a, str>,
    exit_code: Cow<'a, str>,
    exit_value: Cow<'a, str>,
    completion: Cow<'a, str>,
    /// Seconds.
    time: Cow<'a, str>,
    output: Cow<'a, str>,
    /// The output is compressed and encoded in base 64.
    is_packed: bool,
}

impl<'a> Document<'a> for Run<'a> {
    const FORMAT: &'static str = "CTest";
    const ROOTS: &'static [&'static str] = &["Site"];

    fn begin_element(&mut self, tag: Tag<'a, '_>, _parent: &str) -> bool {
        match (tag.name, &mut self.test) {
            // The list of tests has elements of the same name without a status.
            ("Test", None) => {
                self.test = tag.attribute("Status").map(|status| Test {
                    status,
                    ..Test::default()
                });
            }
            ("NamedMeasurement" | "Measurement", Some(_)) => self.measurement = tag.value("name"),
            ("Value", Some(test)) => {
                test.is_packed |= self.measurement.is_empty() && tag.value("encoding") == "base64";
            }
            _ => {}
        }
        true
    }

    fn text(&mut self, name: &str, _parent: &str, text: Cow<'a, str>) {
        let target = match (name, &mut self.test) {
            ("StartTestTime", None) => &mut self.start,
            ("EndTestTime", None) => &mut self.end,
            ("Name", Some(test)) => &mut test.name,
            ("Path", Some(test)) => &mut test.path,
            ("Value", Some(test)) => match &*self.measurement {
                "" => &mut test.output,
                "Exit Code" => &mut test.exit_code,
                "Exit Value" => &mut test.exit_value,
                "Completion Status" => &mut test.completion,
                "Execution Time" => &mut test.time,
                _ => return,
            },
            _ => return,
        };
        append(target, text);
    }

    fn end_element(&mut self, name: &str, _parent: &str) {
        if name == "Test" {
            self.tests.extend(self.test.take());
        }
    }

    fn results(&self) -> usize {
        self.tests.len()
    }

    fn finish(self, input: &Input<'a>) -> Report {
        let mut report = Report::empty(Format::Ctest);
        report.widen(input.time(&self.start), None);
        report.widen(input.time(&self.end), None);
        let mut tests = Collector::for_results(self.tests.len());
        for test in &self.tests {
            let name = test.name.trim();
            // The folder of the build in which the test was defined; `.` is its root.
            let path = test.path.trim();
            let folder = if path == "." {
                ""
            } else {
                path.strip_prefix("./").unwrap_or(path)
            };
            let test_name = without_file(text::joined([folder, name]));
            tests.add(test_name, vec![test.attempt(input)]);
        }
        report.tests = tests.finish();
        report
    }
}

/// Whether a test that did not run for this reason is a failure: its program or a file is missing, or its fixture failed.
/// CTest lists it as failed, unless it is disabled or skipped itself.
pub(crate) fn is_failure(reason: &str) -> bool {
    !(reason.is_empty() || reason == "Disabled" || reason.starts_with("SKIP_"))
}

impl Test<'_> {
    fn attempt(&self, input: &Input<'_>) -> Attempt {
        let exit_code = self.exit_code.trim();
        let reported = input.status(outcome::OTHERS, self.status.trim());
        let status = if reported == AttemptStatus::Skipped && is_failure(self.completion.trim()) {
            AttemptStatus::Failed
        } else if reported == AttemptStatus::Failed && exit_code == "Timeout" {
            AttemptStatus::TimedOut
        } else {
            reported
        };
        let errors = if status.is_failure() {
            self.error(input, exit_code).into_iter().collect()
        } else {
            Vec::new()
        };
        failure::attempt(status, errors, input.seconds_to_ms(&self.time), None)
            .skipped_because(text::skip_reason(&self.completion))
    }

    fn error(&self, input: &Input<'_>, exit_code: &str) -> Option<ErrorDetail> {
        let exit_message = match exit_code {
            "" => Some(self.completion.trim().to_owned()),
            "Failed" => Some(format!("Failed with exit value {}", self.exit_value.trim())),
            other => Some(other.to_owned()),
        };
        let of_output = junit::error_of_output(input, &self.text());
        match (of_output, exit_message) {
            // A signal or time limit explains more than the last line of the output.
            (Some(error), Some(exit_message)) if exit_code != "Failed" => Some(ErrorDetail {
                stack: error.stack.or_else(|| error.message.clone()),
                message: Some(exit_message),
                ..error
            }),
            (Some(error), _) => Some(error),
            (None, exit_message) => input.error(exit_message.as_deref(), None, None),
        }
    }

    /// The output. A compressed one is unpacked up to the length that an error keeps.
    fn text(&self) -> Cow<'_, str> {
        if !self.is_packed {
            return Cow::Borrowed(&self.output);
        }
        let packed: String = self.output.split_whitespace().collect();
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
