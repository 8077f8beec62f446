//! A recording as a JUnit file.

use assay_domain::recording::Recording;

use crate::number::float;

/// The file's text.
pub(super) fn text(recording: &Recording) -> String {
    let mut text = String::from("<?xml version=\"1.0\"?>\n<testsuites>\n<testsuite name=\"all\">\n");
    for test in &recording.tests {
        let seconds = test
            .attempts
            .iter()
            .filter_map(|attempt| attempt.attempt.duration_ms)
            .sum::<u64>();
        text.push_str(&format!(
            "<testcase name=\"{}\" file=\"{}\" time=\"{:.3}\">",
            escaped(&test.test.name),
            escaped(test.test.file_path.as_deref().unwrap_or_default()),
            float(seconds) / 1000.0
        ));
        let last = test.attempts.last();
        if let Some(error) = last.and_then(|last| last.attempt.errors.first()) {
            text.push_str(&format!(
                "<failure message=\"{}\">{}</failure>",
                escaped(error.message.as_deref().unwrap_or_default()),
                escaped(error.stack.as_deref().unwrap_or_default())
            ));
        } else if last.is_some_and(|last| last.attempt.status.is_skip()) {
            text.push_str("<skipped/>");
        }
        text.push_str("</testcase>\n");
    }
    text.push_str("</testsuite>\n</testsuites>\n");
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\n', "&#10;")
}
