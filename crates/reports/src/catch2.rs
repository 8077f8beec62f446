//! Catch2's XML reporter (`-r xml`), versions 2 and 3.

use assay_domain::attempt::{Attempt, ErrorDetail};

use crate::{
    collect::{Collector, named},
    failure,
    input::Input,
    limits,
    location::at_line,
    outcome,
    report::{Format, Report},
    text,
    xml::{Document, Element, Part, Tag},
};

/// Reads one file.
#[derive(Default)]
pub(crate) struct Run {
    tests: Collector,
    /// Whether the summary counts a failed assertion or test case.
    has_failed: bool,
}

/// An assertion that failed, an exception or an explicit failure.
const FAULTS: &[&str] = &["Expression", "Exception", "FatalErrorCondition", "Failure"];

impl<'a> Document<'a> for Run {
    const FORMAT: Format = Format::Catch2;
    const NAME: &'static str = "Catch2";
    const ROOTS: &'static [&'static str] = &["Catch2TestRun", "Catch"];
    const WHOLE: &'static [&'static str] = &["TestCase"];
    const PARTS: &'static [&'static str] = &[
        "Section",
        "Expression",
        "Original",
        "Expanded",
        "Exception",
        "FatalErrorCondition",
        "Failure",
        "Skip",
        "OverallResult",
    ];

    fn part(tag: &Tag<'a, '_>, _parent: &Element<'a>) -> Part {
        // With `--success` the passed assertions are listed, too.
        let is_passed = tag.name == "Expression" && tag.value("success") == "true";
        match Self::PARTS.contains(&tag.name) && !is_passed {
            true => Part::Kept,
            false => Part::LeftOut,
        }
    }

    fn begin(&mut self, _input: &Input<'a>, _report: &mut Report, tag: Tag<'a, '_>, _parent: &str) -> bool {
        if matches!(tag.name, "OverallResults" | "OverallResultsCases") {
            self.has_failed |= !matches!(&*tag.value("failures"), "" | "0");
        }
        true
    }

    fn element(&mut self, input: &Input<'a>, _report: &mut Report, test: Element<'a>) {
        let name = named(
            [test.value("name").trim()],
            input.stored_file(&test.value("filename")),
        );
        self.tests.add(name, vec![attempt(input, &test)]);
    }

    fn results(&self) -> usize {
        self.tests.len()
    }

    fn finish(self, input: &Input<'a>, report: &mut Report) {
        report.take_tests(self.tests);
        report.check_summary(input.name, self.has_failed, "failed");
    }
}

fn attempt(input: &Input<'_>, test: &Element<'_>) -> Attempt {
    let whole = Element::default();
    let result = test.element("OverallResult").unwrap_or(&whole);
    // Catch2 counts a test case with a skipped section as skipped, unless an assertion failed.
    let success = result.value("success");
    let is_skipped = success == "true" && !matches!(&*result.value("skips"), "" | "0");
    let status = input.status(outcome::CATCH2, if is_skipped { "skipped" } else { &success });
    let mut errors = Vec::new();
    add_faults(input, test, &mut errors);
    let skip = test.descendants().find(|part| part.name == "Skip");
    // Seconds, with `--durations yes`.
    let duration = input.seconds_to_ms(&result.value("durationInSeconds"));
    failure::attempt(status, errors, duration, None)
        .skipped_because(skip.and_then(|skip| text::skip_reason(&skip.text)))
}

/// Adds the errors of a test case and of its sections.
fn add_faults(input: &Input<'_>, outer: &Element<'_>, errors: &mut Vec<ErrorDetail>) {
    for part in &outer.elements {
        if part.name == "Section" {
            add_faults(input, part, errors);
        } else if FAULTS.contains(&part.name) && errors.len() <= limits::ERRORS {
            errors.extend(error(input, part));
        }
    }
}

fn error(input: &Input<'_>, fault: &Element<'_>) -> Option<ErrorDetail> {
    // An exception may be that of an expression.
    let exceptions = fault.elements.iter().filter(|part| FAULTS.contains(&part.name));
    let texts: String = [fault]
        .into_iter()
        .chain(exceptions)
        .map(|part| &*part.text)
        .collect();
    let macro_name = fault.value("type");
    let (original, expanded) = (fault.text_of("Original").trim(), fault.text_of("Expanded").trim());
    let expression = match (original, expanded) {
        ("", _) => String::new(),
        (original, expanded) if expanded.is_empty() || expanded == original => {
            format!("{macro_name}( {original} )")
        }
        (original, expanded) => format!("{macro_name}( {original} )\nwith expansion:\n{expanded}"),
    };
    let message = [&*expression, texts.trim()].join("\n");
    let file = input.stored_file(&fault.value("filename"));
    let location = file.map(|file| at_line(file, fault.value("line").trim().parse().ok()));
    let error = input.error(Some(message.trim()), None, None)?;
    Some(ErrorDetail { location, ..error })
}
