//! The text after a result: a block of YAML, comments, indented text.

use assay_domain::attempt::{ErrorDetail, Location};

use crate::{input::Input, limits, output::HeadAndTail, paths};

/// The lines about a result.
#[derive(Debug, Default)]
pub(super) struct Diagnostics {
    /// What the test printed, or its error as comments.
    plain: HeadAndTail,
    /// The first YAML block and what follows.
    yaml: Option<String>,
}

impl Diagnostics {
    pub(super) fn push(&mut self, line: &str) {
        match &mut self.yaml {
            Some(yaml) if yaml.len() + line.len() < 2 * limits::STACK => {
                yaml.push_str(line);
                yaml.push('\n');
            }
            Some(_) => {}
            None => {
                self.plain.push(line);
                self.plain.push("\n");
            }
        }
    }

    pub(super) fn begin_yaml(&mut self) {
        self.yaml.get_or_insert_default();
    }

    pub(super) fn read(&self) -> Diagnosis<'_> {
        Diagnosis {
            plain: self.plain.text(),
            fields: fields(self.yaml.as_deref().unwrap_or_default()),
        }
    }
}

/// Diagnostics in parts.
#[derive(Debug)]
pub(super) struct Diagnosis<'a> {
    plain: String,
    fields: Vec<(&'a str, String)>,
}

impl Diagnosis<'_> {
    fn field(&self, names: &[&str]) -> Option<&str> {
        let pair = names
            .iter()
            .find_map(|name| self.fields.iter().find(|(field, _)| field == name));
        pair.map(|(_, value)| value.as_str())
            .filter(|value| !value.trim().is_empty())
    }

    /// The duration of the test.
    pub(super) fn duration_ms(&self) -> Option<f64> {
        self.field(&["duration_ms"])?.trim().parse().ok()
    }

    /// Whether Node's runner stopped the test.
    pub(super) fn is_timeout(&self) -> bool {
        self.field(&["failureType"]) == Some("testTimeoutFailure")
    }

    /// The error, if the diagnostics have any text.
    pub(super) fn errors(&self, input: &Input<'_>) -> Vec<ErrorDetail> {
        let message = self.field(&["error", "message"]);
        let stack = self.field(&["stack"]);
        let plain = Some(self.plain.trim_end()).filter(|plain| !plain.trim().is_empty());
        let error = match (message, plain) {
            // Node writes the output of a file that failed to load as comments.
            (Some("test failed"), Some(plain)) => input.error_of_stack(&dedented(uncaught(plain)), None),
            (Some(message), _) => {
                let frames = stack.map(|stack| with_frames(message, stack));
                input.error(Some(message), frames.as_deref(), None)
            }
            (None, Some(plain)) => of_plain(input, plain),
            (None, None) => input.error(stack, None, None),
        };
        let located = error.map(|error| ErrorDetail {
            location: error.location.or_else(|| self.location(input)),
            ..error
        });
        located.into_iter().collect()
    }

    /// The file of the test, as written.
    pub(super) fn file(&self) -> Option<&str> {
        self.place().map(|(file, ..)| file)
    }

    /// The parts of `/src/a.test.mjs:7:5`, the location of the test.
    fn place(&self) -> Option<(&str, &str, &str)> {
        let (rest, column) = self.field(&["location"])?.rsplit_once(':')?;
        let (file, line) = rest.rsplit_once(':')?;
        Some((file, line, column))
    }

    fn location(&self, input: &Input<'_>) -> Option<Location> {
        let (file, line, column) = self.place()?;
        let file = input.stored_path(file);
        if input.root.is_some() && paths::is_absolute(&file) {
            return None;
        }
        Some(Location {
            file,
            line: Some(line.parse().ok()?),
            column: column.parse().ok(),
        })
    }
}

/// The uncaught error at the end of an output. Node writes it below its place (`/src/a.test.mjs:7`), the line of the
/// source and a mark.
fn uncaught(output: &str) -> &str {
    let is_place = |line: &str| {
        let place = line.rsplit_once(':');
        place.is_some_and(|(file, line)| line.parse::<u32>().is_ok() && paths::source_file(file).is_some())
    };
    let is_mark = |line: &str| line.contains('^') && line.trim().bytes().all(|byte| byte == b'^');
    let (mut from, mut error) = (output.len(), output.len());
    for line in output.split_inclusive('\n').rev() {
        if is_mark(line) {
            error = from;
        }
        from -= line.len();
        if is_place(line.trim_end()) {
            let error = output.get(error..).filter(|error| !error.trim().is_empty());
            return error.or_else(|| output.get(from..)).unwrap_or(output);
        }
    }
    output
}

/// Node omits the `at ` of frames.
fn with_frames(message: &str, stack: &str) -> String {
    let frames = stack.lines().map(|line| {
        let line = line.trim();
        if line.starts_with("at ") {
            format!("    {line}")
        } else {
            format!("    at {line}")
        }
    });
    let frames: Vec<String> = frames.collect();
    format!("{message}\n{}", frames.join("\n"))
}

/// Mocha's indented message and stack, or Perl's comments.
fn of_plain(input: &Input<'_>, plain: &str) -> Option<ErrorDetail> {
    let text = dedented(plain);
    // Mocha writes the message, then the stack, which begins with the message.
    let stack_with_message = text.lines().next().and_then(|first| {
        let at = text.find(&format!(": {first}"))?;
        let line = text.get(..at)?.rfind('\n')? + 1;
        text.get(line..)
    });
    input.error_of_stack(stack_with_message.unwrap_or(&text), None)
}

fn dedented(text: &str) -> String {
    crate::frame::dedent(text)
}

/// The top-level fields of a YAML block. A library is not needed: tools write only plain, quoted and block texts there.
fn fields(yaml: &str) -> Vec<(&str, String)> {
    let mut fields: Vec<(&str, String)> = Vec::new();
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let outer = yaml
        .lines()
        .find(|line| !line.trim().is_empty())
        .map_or(0, indent);
    let mut is_block = false;
    for line in yaml.lines() {
        let own = indent(line);
        let content = line.trim();
        if own > outer || content.is_empty() {
            if let Some((_, value)) = fields.last_mut().filter(|_| is_block) {
                value.push_str(line.get((outer + 2).min(own)..).unwrap_or_default());
                value.push('\n');
            }
            continue;
        }
        let Some((key, value)) = content.split_once(':') else {
            is_block = false;
            continue;
        };
        let value = value.trim();
        is_block = matches!(value, "|" | "|-" | ">" | ">-" | "|+");
        let value = if is_block { "" } else { unquoted(value) };
        fields.push((key, value.replace("''", "'")));
    }
    for (_, value) in &mut fields {
        value.truncate(value.trim_end().len());
    }
    fields
}

fn unquoted(value: &str) -> &str {
    let inside = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    inside('\'').or_else(|| inside('"')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outermost_fields_are_read() {
        let yaml = "duration_ms: 4.5\nerror: |-\n  first\n    second\n\n  third\nexpected:\n  sku: 'A1'\ncode: 'it''s'\nstack: |-\n  a (b.js:1:2)\n";
        assert_eq!(
            fields(yaml),
            [
                ("duration_ms", "4.5".to_owned()),
                ("error", "first\n  second\n\nthird".to_owned()),
                ("expected", String::new()),
                ("code", "it's".to_owned()),
                ("stack", "a (b.js:1:2)".to_owned()),
            ]
        );
    }
}
