//! `go test -json`: one event per line, between lines that `go` itself prints.

mod event;
mod output;
mod package;
mod test;

use std::collections::HashMap;

use assay_domain::{
    attempt::{AttemptStatus, ErrorDetail},
    run::RunState,
    set_up,
    timestamp::Timestamp,
};

use self::{event::Event, output::Output, package::Package};
pub(crate) use self::{
    output::failure_text,
    test::{is_goexit, is_timeout},
};
use crate::{
    collect::{Collector, named},
    failure as failures,
    input::Input,
    limits, memory,
    report::{Format, ReadError, Report},
    text,
};

/// The format's name in messages.
const FORMAT: &str = "go test -json";

/// Reads a file. Fails if no line is an event, or if the first line that begins with `{` is none. A file that is cut
/// off returns its whole events.
pub(crate) fn read(input: &Input<'_>) -> Result<Report, ReadError> {
    let mut reader = GoReader::default();
    let mut lines = input.text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        if !line.trim_start().starts_with('{') {
            reader.text_line(line);
            continue;
        }
        memory::hold(line.len());
        memory::check(input.name)?;
        match Event::read(line) {
            Ok(event) => reader.event(input, event)?,
            Err(_) if lines.peek().is_none() && reader.events > 0 => reader.cut_off = true,
            Err(error) if reader.events == 0 => {
                return Err(input.broken(
                    number + 1,
                    FORMAT,
                    format!("expected an object with an Action on each line ({error})"),
                ));
            }
            Err(_) => reader.text_line(line),
        }
    }
    if reader.events == 0 {
        return Err(input.broken(
            1,
            FORMAT,
            "expected an object with an Action on each line, found none",
        ));
    }
    Ok(reader.finish(input))
}

/// What a test takes until the end of the file, beside its executions and texts.
const TEST: usize = 384;
/// The same of an execution, which an event may begin.
const EXECUTION: usize = 64;
/// The same of a package.
const PACKAGE: usize = 768;

/// Reads one file.
#[derive(Debug, Default)]
struct GoReader {
    events: usize,
    packages: Vec<Package>,
    package_index: HashMap<String, usize>,
    tests: usize,
    /// The compiler's output, by the import path that later events name.
    builds: HashMap<String, Output>,
    /// The import paths whose build failed, in their order.
    failed_builds: Vec<String>,
    /// Lines that are not events and not yet part of an error.
    text: Output,
    errors: Vec<ErrorDetail>,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    cut_off: bool,
}

impl GoReader {
    fn event(&mut self, input: &Input<'_>, event: Event<'_>) -> Result<(), ReadError> {
        self.events += 1;
        let at = input.time(&event.time);
        self.first = self.first.or(at);
        self.last = at.or(self.last);
        if !event.import_path.is_empty() {
            let has_room =
                self.builds.len() < limits::DOCUMENTS || self.builds.contains_key(&*event.import_path);
            if event.action == "build-fail" && has_room {
                self.failed_builds.push(event.import_path.into_owned());
            } else if event.action == "build-output" && has_room {
                self.builds
                    .entry(event.import_path.into_owned())
                    .or_default()
                    .push(&event.output);
            }
            return Ok(());
        }
        let index = match self.package_index.get(&*event.package) {
            Some(index) => *index,
            None => {
                self.package_index
                    .insert(event.package.to_string(), self.packages.len());
                memory::hold(PACKAGE);
                self.packages.push(Package::new(&event.package));
                self.packages.len() - 1
            }
        };
        if let Some(package) = self.packages.get_mut(index) {
            let tests = package.event(input, &event, at);
            memory::hold(TEST.saturating_mul(tests) + EXECUTION);
            self.tests += tests;
        }
        if self.tests.max(self.packages.len()) > limits::TESTS {
            return Err(ReadError::too_large(
                input.name,
                "the number of tests",
                limits::TESTS,
            ));
        }
        Ok(())
    }

    /// A line that is not an event: `FAIL package [build failed]`, or the compiler's output before it.
    fn text_line(&mut self, line: &str) {
        let failed = line
            .strip_prefix("FAIL\t")
            .map(str::trim)
            .filter(|rest| !rest.is_empty());
        match failed {
            Some(failed_package) => {
                let output = std::mem::take(&mut self.text);
                self.error(failed_package, &output.text());
            }
            None if line.trim().is_empty() || line.trim() == "FAIL" => {}
            None => {
                self.text.push(line);
                self.text.push("\n");
            }
        }
    }

    fn error(&mut self, message: &str, output: &str) {
        if self.errors.len() < limits::REPORT_ERRORS {
            self.errors.push(ErrorDetail {
                message: text::message(message),
                stack: text::stack(output),
                snippet: None,
                location: None,
            });
        }
    }

    fn finish(mut self, input: &Input<'_>) -> Report {
        let packages = std::mem::take(&mut self.packages);
        let mut tests = Collector::default();
        let mut unfinished = 0;
        let mut is_cut_short = false;
        let is_rerun = packages.iter().all(Package::reruns_failed_tests)
            && !packages.iter().all(Package::reruns_all_tests);
        for package in packages {
            unfinished += usize::from(package.is_unfinished());
            is_cut_short |= package.is_cut_short();
            for failure in package.own_failures() {
                self.failed_builds
                    .retain(|path| failure.build.as_ref() != Some(path));
                let build = failure.build.as_ref().and_then(|path| self.builds.get(path));
                self.error(&failure.message, &build.map_or(failure.output, Output::text));
                // A package that runs and fails without a failed test fails in TestMain.
                if failure.build.is_none() {
                    let errors = self.errors.last().cloned().into_iter().collect();
                    let set_up = named([package.name(), set_up::NAME], None);
                    let attempt = failures::attempt(AttemptStatus::Failed, errors, None, None);
                    tests.add(set_up, vec![attempt]);
                }
            }
            let (name, executed) = package.finish(input, is_rerun);
            for (test, executions) in executed {
                let test = named([&*name, &*test], None);
                for execution in executions {
                    tests.add(test.clone(), execution);
                }
            }
        }
        // A build that failed without an event of its package.
        for path in std::mem::take(&mut self.failed_builds) {
            let output = self.builds.get(&path).map(Output::text).unwrap_or_default();
            self.error(&format!("{path}: build failed"), &output);
        }
        for error in &mut self.errors {
            error.location = error.stack.as_deref().and_then(|stack| input.location_in(stack));
        }
        let mut warnings = Vec::new();
        if self.cut_off || unfinished > 0 {
            warnings.push(format!(
                "{}: cut off: {unfinished} packages have no result; its complete results were read",
                input.name
            ));
        }
        if let Some(line) = text::first_line(&self.text.text()) {
            warnings.push(format!(
                "{}: text between the events: {}",
                input.name,
                text::bounded(line, 300)
            ));
        }
        Report {
            started_at: self.first,
            finished_at: self.last,
            state: if self.cut_off || unfinished > 0 || is_cut_short {
                RunState::Interrupted
            } else {
                RunState::Completed
            },
            errors: self.errors,
            tests: tests.finish(),
            warnings,
            ..Report::empty(Format::Go)
        }
    }
}
