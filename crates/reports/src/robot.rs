//! Robot Framework's `output.xml`, of versions 3 to 7.

mod log;

use std::{borrow::Cow, rc::Rc, sync::LazyLock};

use assay_domain::{
    attempt::{Attempt, AttemptStatus, ErrorDetail},
    run::RunState,
    test::TestName,
    timestamp::Timestamp,
};
use log::{Log, Message};
use regex::Regex;

use crate::{
    collect::{Collector, named},
    failure,
    input::Input,
    limits,
    location::at_line,
    memory, outcome,
    report::{Format, Report},
    text::{self, pattern},
    xml::{Document, RESULT, Tag, append},
};

/// The tag of tests that Robot Framework fails because an earlier one ended the run.
const LEFT_OUT: &str = "robot:exit";

/// Reads one file.
#[derive(Default)]
pub(crate) struct Run<'a> {
    suites: Vec<Suite>,
    test: Option<Test<'a>>,
    status: Status<'a>,
    /// Whether the suite that ended last failed.
    has_failed: bool,
    message: Message<'a>,
    tests: Vec<Test<'a>>,
    /// The suites whose tear-down failed, with the messages.
    broken: Vec<(Rc<str>, Cow<'a, str>)>,
    /// The failures of the totals; the larger number where critical tests are counted beside all tests.
    counted_failures: f64,
}

/// The texts that a suite shares with its tests.
#[derive(Clone, Default)]
struct Suite {
    /// Its name after those of the enclosing suites, joined with dots as in Robot Framework.
    full_name: Rc<str>,
    /// The part of its full name that leads the names of its tests.
    lead: Rc<str>,
    is_root: bool,
    source: Rc<str>,
    /// The number of tests before it.
    first_test: usize,
}

impl Suite {
    /// The suites around a file depend on the command line: `robot tests` names the folder, `robot a.robot b.robot` all
    /// files, and `robot a.robot` none. The file therefore leads its tests by its own name alone. Without a source the
    /// suite's folder is unknown, and all names but that of the root lead.
    fn new(outer: Option<&Self>, name: &str, source: &str) -> Self {
        let joined = |outer: &str| match outer {
            "" => Rc::from(name),
            outer => Rc::from([outer, name].join(".")),
        };
        Self {
            full_name: joined(outer.map_or("", |outer| &*outer.full_name)),
            lead: match outer {
                Some(outer) if source.trim().is_empty() && !outer.is_root => joined(&outer.lead),
                Some(_) | None => Rc::from(name),
            },
            is_root: outer.is_none(),
            source: Rc::from(source),
            first_test: 0,
        }
    }
}

#[derive(Default)]
struct Test<'a> {
    suite: Suite,
    name: Cow<'a, str>,
    line: Option<u32>,
    status: Status<'a>,
    /// Whether the tool counts its pass as a failure, because the tear-down of a suite around it failed.
    has_broken_suite: bool,
    /// Whether it did not start, because an earlier test ended the run.
    is_left_out: bool,
    /// The messages, if it failed.
    log: Log,
}

#[derive(Default)]
struct Status<'a> {
    word: Cow<'a, str>,
    start: Cow<'a, str>,
    end: Cow<'a, str>,
    /// Seconds, from version 7 on.
    elapsed: Cow<'a, str>,
    message: Cow<'a, str>,
}

impl<'a> Document<'a> for Run<'a> {
    const FORMAT: Format = Format::Robot;
    const NAME: &'static str = "Robot Framework";
    const ROOTS: &'static [&'static str] = &["robot"];
    // Keywords call each other up to a hundred levels deep, each with one or two elements around it.
    const DEPTH: usize = 1_000;

    fn begin(&mut self, _input: &Input<'a>, _report: &mut Report, tag: Tag<'a, '_>, parent: &str) -> bool {
        match (parent, tag.name) {
            // Statistics have elements of these names, too.
            ("statistics", "suite" | "test") => return false,
            (_, "suite") => {
                let mut suite = Suite::new(self.suites.last(), &tag.value("name"), &tag.value("source"));
                suite.first_test = self.tests.len();
                memory::charge(suite.full_name.len());
                self.suites.push(suite);
            }
            (_, "test") => {
                let suite = self.suites.last().cloned().unwrap_or_default();
                memory::charge(suite.full_name.len() + suite.source.len());
                self.test = Some(Test {
                    suite,
                    name: tag.value("name"),
                    line: tag.value("line").trim().parse().ok(),
                    ..Test::default()
                });
            }
            ("suite" | "test", "status") => {
                self.status = Status {
                    word: tag.value("status"),
                    start: tag.attribute("start").unwrap_or_else(|| tag.value("starttime")),
                    end: tag.value("endtime"),
                    elapsed: tag.value("elapsed"),
                    message: Cow::Borrowed(""),
                };
            }
            (_, "msg") if self.test.is_some() => self.message = Message::begin(&tag),
            ("total", "stat") => {
                let failures = tag.value("fail").trim().parse().unwrap_or(0.0);
                self.counted_failures = self.counted_failures.max(failures);
            }
            (_, "msg") => return false,
            _ => {}
        }
        true
    }

    fn text(&mut self, name: &str, parent: &str, text: Cow<'a, str>) {
        match (parent, name) {
            ("suite" | "test", "status") => append(&mut self.status.message, text),
            ("test" | "tags", "tag") => {
                if let Some(test) = &mut self.test {
                    test.is_left_out |= text.trim() == LEFT_OUT;
                }
            }
            (_, "msg") => self.message.append(text),
            _ => {}
        }
    }

    fn end(&mut self, _report: &mut Report, name: &str, parent: &str) {
        match (parent, name) {
            ("suite" | "test", "status") => {
                let status = std::mem::take(&mut self.status);
                match &mut self.test {
                    Some(test) => test.status = status,
                    None => self.close_suite(status),
                }
            }
            (_, "msg") => {
                let message = std::mem::take(&mut self.message);
                if let Some(test) = &mut self.test {
                    test.log.add(&message);
                }
            }
            (_, "test") => {
                if let Some(test) = &mut self.test
                    && test.status.word == "PASS"
                {
                    test.log = Log::default();
                }
                memory::hold(RESULT);
                self.tests.extend(self.test.take());
            }
            (_, "suite") => {
                self.suites.pop();
            }
            _ => {}
        }
    }

    fn results(&self) -> usize {
        self.tests.len()
    }

    fn finish(self, input: &Input<'a>, report: &mut Report) {
        let mut tests = Collector::for_results(self.tests.len());
        let is_counted_only = |test: &&Test<'_>| test.has_broken_suite || test.is_left_out;
        let counted_only = self.tests.iter().filter(is_counted_only).count();
        let failures = self.counted_failures - f64::from(u32::try_from(counted_only).unwrap_or(u32::MAX));
        if self.tests.iter().any(|test| test.is_left_out) {
            report.state = RunState::Interrupted;
        }
        for mut test in self.tests {
            let file = input.stored_file(&test.suite.source);
            let mut attempts = test.attempts(input, file.as_deref());
            if let Some(last) = attempts.last_mut() {
                std::mem::take(&mut test.log).collected(input).give_to(last);
            }
            tests.add(test.name(file), attempts);
        }
        report.take_tests(tests);
        for (suite, message) in &self.broken {
            let message = format!("{suite}: {}", message.trim());
            report.errors.extend(input.error(Some(&message), None, None));
        }
        report.check_header(input.name, Some(failures.max(0.0)));
        report.check_summary(input.name, self.has_failed, "FAIL");
    }
}

impl<'a> Run<'a> {
    /// Keeps the message of a suite's failed tear-down. A failed set-up also fails the suite's tests.
    fn close_suite(&mut self, status: Status<'a>) {
        // The outermost suite ends last.
        self.has_failed = status.word == "FAIL";
        let is_teardown = status.message.trim_start().starts_with("Suite teardown failed");
        if !self.has_failed || !is_teardown {
            return;
        }
        let suite = self.suites.last().cloned().unwrap_or_default();
        for test in self.tests.iter_mut().skip(suite.first_test) {
            test.has_broken_suite |= test.status.word == "PASS";
        }
        if self.broken.len() < limits::REPORT_ERRORS {
            self.broken.push((suite.full_name, status.message));
        }
    }
}

impl Test<'_> {
    fn name(&self, file: Option<String>) -> TestName {
        named([&*self.suite.lead, &*self.name], file)
    }

    /// The attempts: the last one, and those that `rebot --merge` put into its message.
    fn attempts(&self, input: &Input<'_>, file: Option<&str>) -> Vec<Attempt> {
        let message = self.status.message.trim();
        let merged = merged_attempts(message);
        if merged.is_empty() {
            return vec![self.attempt(input, file, (&self.status.word, message), true)];
        }
        let last = merged.len() - 1;
        let attempts = merged.iter().enumerate();
        attempts
            .map(|(index, (word, message))| self.attempt(input, file, (word, message), index == last))
            .collect()
    }

    /// One attempt by its status and message. The report has the times of the last attempt only.
    fn attempt(
        &self,
        input: &Input<'_>,
        file: Option<&str>,
        (word, message): (&str, &str),
        is_last: bool,
    ) -> Attempt {
        let status = match word {
            // The file ends within the test.
            "" => AttemptStatus::Interrupted,
            _ if self.is_left_out && is_last => AttemptStatus::Skipped,
            word => input.status(outcome::OTHERS, word),
        };
        let error = input.error(Some(message), None, None).map(|error| ErrorDetail {
            location: error
                .location
                .or_else(|| Some(at_line(file?.to_owned(), Some(self.line?)))),
            ..error
        });
        let errors = error.into_iter().collect();
        let (start, end) = (
            parse_time(input, &self.status.start),
            parse_time(input, &self.status.end),
        );
        let duration = input
            .seconds_to_ms(&self.status.elapsed)
            .or_else(|| u64::try_from(end?.since_ms(start?)).ok());
        let (duration, start) = if is_last { (duration, start) } else { (None, None) };
        failure::attempt(status, errors, duration, start).skipped_because(text::skip_reason(message))
    }
}

/// Status and message of each attempt that `rebot --merge` merged, oldest first. Empty for a test that was not merged.
fn merged_attempts(message: &str) -> Vec<(String, String)> {
    if !message.starts_with("*HTML*") || !message.contains("re-executed and results merged") {
        return Vec::new();
    }
    let sections = message.split("<hr>").take(2 * limits::COUNTED_ATTEMPTS);
    let mut attempts: Vec<(String, String)> = sections
        .filter_map(|section| {
            let status = MERGED_STATUS.captures(section)?.get(1)?.as_str().to_owned();
            let message = MERGED_MESSAGE
                .find(section)
                .and_then(|heading| section.get(heading.end()..))
                .map(|html| {
                    let html = html.trim_end().trim_end_matches("<br>").replace("<br>", "\n");
                    html.replace("&lt;", "<")
                        .replace("&gt;", ">")
                        .replace("&amp;", "&")
                });
            Some((status, message.unwrap_or_default()))
        })
        .collect();
    attempts.reverse();
    attempts
}

static MERGED_STATUS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?:New|Old) status:(?:</span>)?\s*(?:<[^>]*>)?\s*(PASS|FAIL|SKIP|NOT RUN)"));
static MERGED_MESSAGE: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?:New|Old) message:(?:</span>)?\s?"));

/// `20261123 11:52:55.940`, the format until version 6, or ISO 8601.
fn parse_time(input: &Input<'_>, text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let (day, hour) = match text.split_once(' ') {
        Some((day, hour)) if day.len() == 8 && day.bytes().all(|byte| byte.is_ascii_digit()) => (day, hour),
        _ => return input.time(text),
    };
    let (year, month, day) = (day.get(..4)?, day.get(4..6)?, day.get(6..)?);
    input.time(&format!("{year}-{month}-{day}T{hour}"))
}
