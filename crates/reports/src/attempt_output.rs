//! What a report has beside the errors of a failed attempt: the files that it names, and what the test printed.

use assay_domain::attempt::{Attachment, Attempt, AttemptOutput};

use crate::{input::Input, limits, paths, text};

/// How Jenkins, GitLab and Playwright name a file in the output of a test: `[[ATTACHMENT|path]]`.
const MARK: &str = "[[ATTACHMENT|";

/// Collects the output of an attempt.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    attachments: Vec<Attachment>,
    console: String,
    /// The time that the test may take, in milliseconds.
    pub(crate) timeout_ms: Option<u64>,
}

impl Collected {
    /// Adds a file. Beyond the limit it is left out.
    pub(crate) fn file(
        &mut self,
        input: &Input<'_>,
        name: Option<&str>,
        kind: Option<&str>,
        path: Option<&str>,
    ) {
        if self.attachments.len() >= limits::ATTACHMENTS {
            return;
        }
        let path = path
            .and_then(text::title)
            .filter(|path| path.chars().count() <= limits::ATTACHMENT);
        let path = path.map(|path| match paths::is_address(&path) {
            true => path,
            false => input.stored_path(&path),
        });
        let last = path.as_deref().and_then(|path| path.rsplit('/').next());
        let short = |text: &str| Some(text::bounded(&text::title(text)?, limits::ATTACHMENT).into_owned());
        let name = name.and_then(short).or_else(|| last.and_then(short));
        self.attachments.extend(name.map(|name| Attachment {
            name,
            kind: kind.and_then(short),
            path,
            url: None,
        }));
    }

    /// Adds what the test printed.
    pub(crate) fn print(&mut self, printed: &str) {
        // Only the end is kept, so a long text is cut before and in between.
        self.console.push_str(match printed.len() > limits::OUTPUT_BYTES {
            true => end(printed),
            false => printed,
        });
        if self.console.len() > 4 * limits::OUTPUT_BYTES {
            self.console = end(&self.console).to_owned();
        }
    }

    /// Adds what the test printed, and the files that are named in it.
    pub(crate) fn console(&mut self, input: &Input<'_>, printed: &str) {
        if !printed.contains(MARK) {
            return self.print(printed);
        }
        for line in printed.split_inclusive('\n') {
            let path = line
                .trim()
                .strip_prefix(MARK)
                .and_then(|rest| rest.strip_suffix("]]"));
            match path {
                Some(path) => self.file(input, None, None, Some(path)),
                None => self.print(line),
            }
        }
    }

    /// Gives it to an attempt, if that failed.
    pub(crate) fn give_to(self, attempt: &mut Attempt) {
        if !attempt.status.is_failure() {
            return;
        }
        let console = text::stored(end(&self.console), limits::OUTPUT_BYTES);
        if console.is_some() || !self.attachments.is_empty() || self.timeout_ms.is_some() {
            attempt.output = Some(Box::new(AttemptOutput {
                attachments: self.attachments,
                console,
                timeout_ms: self.timeout_ms,
            }));
        }
    }
}

/// The end of a text, from the beginning of a line if it is cut.
fn end(text: &str) -> &str {
    let surplus = text.len().saturating_sub(limits::OUTPUT_BYTES);
    let from = (surplus..=text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(surplus);
    let cut = text.get(from..).unwrap_or_default();
    match cut.split_once('\n') {
        Some((_, lines)) if surplus > 0 && !lines.is_empty() => lines,
        _ => cut,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_output_the_end_is_kept_from_the_beginning_of_a_line() {
        let lines: String = (0..20_000)
            .map(|number| format!("line {number} \u{e9}\n"))
            .collect();
        let mut collected = Collected::default();
        for line in lines.split_inclusive('\n') {
            collected.print(line);
        }
        let kept = end(&collected.console);
        assert!(kept.len() <= limits::OUTPUT_BYTES && kept.len() > limits::OUTPUT_BYTES - 100);
        assert!(
            kept.starts_with("line ") && lines.ends_with(kept),
            "{}",
            &kept[..40]
        );
        let one_line = "x".repeat(limits::OUTPUT_BYTES + 5);
        assert_eq!(end(&one_line).len(), limits::OUTPUT_BYTES);
        assert_eq!(end("short\ntext"), "short\ntext");
    }
}
