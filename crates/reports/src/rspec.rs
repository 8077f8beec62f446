//! RSpec's JSON.

use assay_domain::{attempt::Attempt, test::TestName};
use serde::Deserialize;

use crate::{
    collect::Collector,
    failure,
    input::Input,
    json::{self, Shape},
    outcome,
    report::{Format, ReadError, Report},
    text, time,
};

/// The report of one run.
pub(crate) fn read(input: &Input<'_>) -> Result<(Report, Option<usize>), ReadError> {
    let shape = Shape::of_list("RSpec JSON", "examples");
    let parsed = json::parse::<Run>(input, shape)?;
    let run = parsed.value;
    let mut report = Report::empty(Format::Rspec);
    let mut tests = Collector::for_results(run.examples.len());
    for example in &run.examples {
        let attempt = example.attempt(input);
        tests.add(example.test(input), vec![attempt]);
    }
    report.tests = tests.finish();
    if run.summary.errors_outside_of_examples_count.unwrap_or(0.0) > 0.0 {
        let messages = run
            .messages
            .iter()
            .filter(|message| message.contains("error occurred"));
        report.errors = messages
            .filter_map(|message| input.error(Some(message), None, None))
            .collect();
        if report.errors.is_empty() {
            let unknown = "An error occurred outside of the examples. The report does not say which.";
            report.errors.extend(input.error(Some(unknown), None, None));
        }
    }
    if parsed.cut_at.is_none() {
        report.check_header(input.name, *run.summary.failure_count);
    }
    report.mark_cut_off(parsed.cut_at);
    Ok((report, parsed.another_at))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Run {
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
        let name = self
            .full_description
            .as_deref()
            .or(self.description.as_deref())
            .unwrap_or_default();
        let path = self.file_path.as_deref().unwrap_or_default();
        // RspecJunitFormatter writes the class in this form.
        let class = path.trim_start_matches("./").replace('/', ".");
        let class = class.strip_suffix(".rb").unwrap_or(&class);
        TestName {
            name: text::joined([class, name]),
            file_path: input.stored_file(path),
        }
    }

    fn attempt(&self, input: &Input<'_>) -> Attempt {
        let status = input.status(outcome::OTHERS, self.status.as_deref().unwrap_or_default());
        let error = self.exception.as_ref().and_then(|exception| {
            let stack = exception.backtrace.join("\n");
            let message = exception
                .message
                .as_deref()
                .filter(|message| !message.trim().is_empty());
            input.error(message.or(exception.class.as_deref()), Some(&stack), None)
        });
        let duration = self.run_time.map(|seconds| seconds * 1000.0);
        failure::attempt(
            status,
            error.into_iter().collect(),
            duration.and_then(time::duration_ms),
            None,
        )
        .skipped_because(self.pending_message.as_deref().and_then(text::skip_reason))
    }
}
