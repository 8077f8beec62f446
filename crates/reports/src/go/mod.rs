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
};

pub(crate) use self::event::Event;
use self::package::Package;
pub(crate) use self::{
    output::failure_text,
    test::{is_goexit, is_timeout},
};
use crate::{
    collect::{Collector, named},
    events::Events,
    failure as failures,
    input::Input,
    limits, memory,
    output::HeadAndTail,
    report::{Format, Report},
    text,
};

/// What a test takes until the end of the file, beside its executions and texts.
const TEST: usize = 384;
/// The same of an execution, which an event may begin.
const EXECUTION: usize = 64;
/// The same of a package.
const PACKAGE: usize = 768;

/// Reads one file.
#[derive(Debug, Default)]
pub(crate) struct Run {
    packages: Vec<Package>,
    package_index: HashMap<String, usize>,
    tests: usize,
    /// The compiler's output, by the import path that later events name.
    builds: HashMap<String, HeadAndTail>,
    /// The import paths whose build failed, in their order.
    failed_builds: Vec<String>,
    /// Lines that are not events and not yet part of an error.
    text: HeadAndTail,
}

impl Events for Run {
    type Event<'e> = Event<'e>;

    const FORMAT: Format = Format::Go;
    const NAME: &'static str = "go test -json";

    fn event(&mut self, input: &Input<'_>, report: &mut Report, event: Event<'_>) -> bool {
        let at = input.time(&event.time);
        report.widen(at, None);
        if !event.import_path.is_empty() {
            self.build_event(event);
            return true;
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
        true
    }

    /// A line that is not an event: `FAIL package [build failed]`, or the compiler's output before it.
    fn other_line(&mut self, report: &mut Report, line: &str) {
        let failed = line.strip_prefix("FAIL\t").map(str::trim);
        if let Some(failed_package) = failed.filter(|rest| !rest.is_empty()) {
            let output = std::mem::take(&mut self.text);
            push_error(report, failed_package, &output.text());
        } else if !line.trim().is_empty() && line.trim() != "FAIL" {
            self.text.push(line);
            self.text.push("\n");
        }
    }

    fn results(&self) -> usize {
        self.tests.max(self.packages.len())
    }

    fn finish(mut self, input: &Input<'_>, report: &mut Report) {
        let packages = std::mem::take(&mut self.packages);
        let mut tests = Collector::default();
        let mut unfinished = 0;
        let is_rerun = packages.iter().all(Package::reruns_failed_tests)
            && !packages.iter().all(Package::reruns_all_tests);
        for package in packages {
            unfinished += usize::from(package.is_unfinished());
            report.is_cached |= package.is_cached();
            if package.is_cut_short() {
                report.state = RunState::Interrupted;
            }
            for failure in package.own_failures() {
                self.failed_builds
                    .retain(|path| failure.build.as_ref() != Some(path));
                let build = failure.build.as_ref().and_then(|path| self.builds.get(path));
                push_error(
                    report,
                    &failure.message,
                    &build.map_or(failure.output, HeadAndTail::text),
                );
                // A package that runs and fails without a failed test fails in TestMain.
                if failure.build.is_none() {
                    let errors = report.errors.last().cloned().into_iter().collect();
                    let set_up = named([package.name(), set_up::NAME], None);
                    let attempt = failures::attempt(AttemptStatus::Failed, errors, None, None);
                    tests.add(set_up, vec![attempt]);
                }
            }
            let results = package.finish(input, is_rerun);
            let named = |test: &str| named([&*results.name, test], None);
            report.add_passed_groups(results.passed_groups.iter().map(|group| named(group)));
            for (test, executions) in results.tests {
                let test = named(&test);
                for execution in executions {
                    tests.add(test.clone(), execution);
                }
            }
        }
        report.tests = tests.finish();
        // A build that failed without an event of its package.
        for path in &self.failed_builds {
            let output = self.builds.get(path).map(HeadAndTail::text).unwrap_or_default();
            push_error(report, &format!("{path}: build failed"), &output);
        }
        for error in &mut report.errors {
            error.location = error.stack.as_deref().and_then(|stack| input.location_in(stack));
        }
        if unfinished > 0 {
            report.state = RunState::Interrupted;
            report.warnings.push(format!(
                "{}: cut off: {unfinished} packages have no result; its complete results were read",
                input.name
            ));
        }
        if let Some(line) = text::first_line(&self.text.text()) {
            report.warnings.push(format!(
                "{}: text between the events: {}",
                input.name,
                text::bounded(line, 300)
            ));
        }
    }
}

impl Run {
    /// The result or the output of a build.
    fn build_event(&mut self, event: Event<'_>) {
        let path = event.import_path;
        if self.builds.len() >= limits::DOCUMENTS && !self.builds.contains_key(&*path) {
            return;
        }
        match &*event.action {
            "build-fail" => self.failed_builds.push(path.into_owned()),
            "build-output" => self
                .builds
                .entry(path.into_owned())
                .or_default()
                .push(&event.output),
            _ => {}
        }
    }
}

fn push_error(report: &mut Report, message: &str, output: &str) {
    if report.errors.len() < limits::REPORT_ERRORS {
        report.errors.push(ErrorDetail {
            message: text::message(message),
            stack: text::stack(output),
            ..ErrorDetail::default()
        });
    }
}
