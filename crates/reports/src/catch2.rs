//! Catch2's XML reporter (`-r xml`), versions 2 and 3.

use std::borrow::Cow;

use assay_domain::{
    attempt::{Attempt, ErrorDetail, Location},
    test::TestName,
};

use crate::{
    collect::Collector,
    failure,
    input::Input,
    limits, outcome,
    report::{Format, Report},
    text,
    xml::{Document, Tag, append},
};

/// Reads one file.
#[derive(Default)]
pub(crate) struct Run<'a> {
    test: Option<Test<'a>>,
    tests: Vec<Test<'a>>,
    /// Whether the summary counts a failed assertion or test case.
    has_failed: bool,
}

#[derive(Default)]
struct Test<'a> {
    name: Cow<'a, str>,
    file: Cow<'a, str>,
    faults: Vec<Fault<'a>>,
    skip_reason: Cow<'a, str>,
    /// The attributes of `OverallResult`.
    success: Cow<'a, str>,
    skips: Cow<'a, str>,
    /// Seconds, with `--durations yes`.
    time: Cow<'a, str>,
}

#[derive(Default)]
struct Fault<'a> {
    macro_name: Cow<'a, str>,
    file: Cow<'a, str>,
    line: Cow<'a, str>,
    original: Cow<'a, str>,
    expanded: Cow<'a, str>,
    text: Cow<'a, str>,
}

/// An assertion that failed, an exception or an explicit failure.
const FAULTS: &[&str] = &["Expression", "Exception", "FatalErrorCondition", "Failure"];

impl<'a> Document<'a> for Run<'a> {
    const FORMAT: &'static str = "Catch2";
    const ROOTS: &'static [&'static str] = &["Catch2TestRun", "Catch"];

    fn begin_element(&mut self, tag: Tag<'a, '_>, parent: &str) -> bool {
        match (tag.name, &mut self.test) {
            ("TestCase", None) => {
                self.test = Some(Test {
                    name: tag.value("name"),
                    file: tag.value("filename"),
                    ..Test::default()
                });
            }
            ("OverallResults" | "OverallResultsCases", None) => {
                self.has_failed |= !matches!(&*tag.value("failures"), "" | "0");
            }
            ("OverallResult", Some(test)) => {
                (test.success, test.skips) = (tag.value("success"), tag.value("skips"));
                test.time = tag.value("durationInSeconds");
            }
            // With `--success` the passed assertions are listed, too.
            ("Expression", Some(_)) if tag.value("success") == "true" => return false,
            // An exception may be that of an expression.
            (name, Some(test))
                if FAULTS.contains(&name)
                    && !FAULTS.contains(&parent)
                    && test.faults.len() <= limits::ERRORS =>
            {
                test.faults.push(Fault {
                    macro_name: tag.value("type"),
                    file: tag.value("filename"),
                    line: tag.value("line"),
                    ..Fault::default()
                });
            }
            _ => {}
        }
        true
    }

    fn text(&mut self, name: &str, parent: &str, text: Cow<'a, str>) {
        let Some(test) = &mut self.test else { return };
        let target = match (name, test.faults.last_mut()) {
            ("Skip", _) => Some(&mut test.skip_reason),
            ("Original", Some(fault)) if FAULTS.contains(&parent) => Some(&mut fault.original),
            ("Expanded", Some(fault)) if FAULTS.contains(&parent) => Some(&mut fault.expanded),
            (name, Some(fault)) if FAULTS.contains(&name) => Some(&mut fault.text),
            _ => None,
        };
        append(target, text);
    }

    fn end_element(&mut self, name: &str, _parent: &str) {
        if name == "TestCase" {
            self.tests.extend(self.test.take());
        }
    }

    fn results(&self) -> usize {
        self.tests.len()
    }

    fn finish(self, input: &Input<'a>) -> Report {
        let mut report = Report::empty(Format::Catch2);
        let mut tests = Collector::for_results(self.tests.len());
        for test in &self.tests {
            let test_name = TestName {
                name: text::joined([test.name.trim()]),
                file_path: input.stored_file(&test.file),
            };
            tests.add(test_name, vec![test.attempt(input)]);
        }
        report.tests = tests.finish();
        report.check_summary(input.name, self.has_failed, "failed");
        report
    }
}

impl Test<'_> {
    fn attempt(&self, input: &Input<'_>) -> Attempt {
        // Catch2 counts a test case with a skipped section as skipped, unless an assertion failed.
        let is_skipped = self.success == "true" && !matches!(&*self.skips, "" | "0");
        let word = if is_skipped { "skipped" } else { &self.success };
        let errors = self.faults.iter().filter_map(|fault| fault.error(input));
        failure::attempt(
            input.status(outcome::CATCH2, word),
            errors.collect(),
            input.seconds_to_ms(&self.time),
            None,
        )
        .skipped_because(text::skip_reason(&self.skip_reason))
    }
}

impl Fault<'_> {
    fn error(&self, input: &Input<'_>) -> Option<ErrorDetail> {
        let (original, expanded, text) = (self.original.trim(), self.expanded.trim(), self.text.trim());
        let expression = match (original, expanded) {
            ("", _) => String::new(),
            (original, expanded) if expanded.is_empty() || expanded == original => {
                format!("{}( {original} )", self.macro_name)
            }
            (original, expanded) => {
                format!("{}( {original} )\nwith expansion:\n{expanded}", self.macro_name)
            }
        };
        let message = [&*expression, text].join("\n");
        let location = Location {
            file: input.stored_path(&self.file),
            line: self.line.trim().parse().ok(),
            column: None,
        };
        input
            .error(Some(message.trim()), None, None)
            .map(|error| ErrorDetail {
                location: Some(location).filter(|location| !location.file.is_empty()),
                ..error
            })
    }
}
