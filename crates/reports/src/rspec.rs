//! RSpec's JSON.

use assay_domain::{attempt::Attempt, test::TestName};
use serde::Deserialize;

use crate::{
    collect::{Collector, named},
    failure,
    input::Input,
    json::{self, Shape},
    outcome,
    report::{Format, Report},
    text,
};

impl json::Document for Run {
    const FORMAT: Format = Format::Rspec;
    const SHAPE: Shape = Shape::of_list("RSpec JSON", "examples");

    fn add_to(self, input: &Input<'_>, report: &mut Report) {
        let mut tests = Collector::for_results(self.examples.len());
        for example in &self.examples {
            tests.add(example.test(input), vec![example.attempt(input)]);
        }
        report.take_tests(tests);
        if self.summary.errors_outside_of_examples_count.unwrap_or(0.0) > 0.0 {
            let messages = self
                .messages
                .iter()
                .filter(|text| text.contains("error occurred"));
            let errors = messages.filter_map(|message| input.error(Some(message), None, None));
            report.errors.extend(errors);
            if report.errors.is_empty() {
                let unknown = "An error occurred outside of the examples. The report does not say which.";
                report.errors.push(failure::error_saying(unknown));
            }
        }
        report.check_header(input.name, *self.summary.failure_count);
    }
}

/// The report of one run.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Run {
    messages: json::Texts,
    examples: json::List<Example>,
    summary: Summary,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Summary {
    errors_outside_of_examples_count: json::Number,
    failure_count: json::Number,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Example {
    description: json::Text,
    full_description: json::Text,
    status: json::Text,
    file_path: json::Text,
    /// Seconds.
    run_time: json::Number,
    pending_message: json::Text,
    exception: Option<Exception>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Exception {
    class: json::Text,
    message: json::Text,
    backtrace: json::Texts,
}

impl Example {
    fn test(&self, input: &Input<'_>) -> TestName {
        let name = self.full_description.as_deref().or(self.description.as_deref());
        let path = self.file_path.or_empty();
        // RspecJunitFormatter writes the class in this form.
        let class = path.trim_start_matches("./").replace('/', ".");
        let class = class.strip_suffix(".rb").unwrap_or(&class);
        named([class, name.unwrap_or_default()], input.stored_file(path))
    }

    fn attempt(&self, input: &Input<'_>) -> Attempt {
        let status = input.status(outcome::OTHERS, self.status.or_empty());
        let error = self.exception.as_ref().and_then(|exception| {
            let stack = exception.backtrace.join("\n");
            let message = exception.message.not_blank().or(exception.class.as_deref());
            input.error(message, Some(&stack), None)
        });
        failure::attempt(
            status,
            error.into_iter().collect(),
            self.run_time.seconds_ms(),
            None,
        )
        .skipped_because(text::skip_reason(self.pending_message.or_empty()))
    }
}
