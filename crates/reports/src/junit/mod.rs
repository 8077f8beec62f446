//! JUnit XML, as about thirty tools write it.
//!
//! There is no standard. The reader accepts any order of attributes, suites at any depth, and several outcomes in a
//! case. A [`Dialect`] holds the rules of one tool.

mod attempts;
mod case;
mod dialect;
mod errors;
pub(crate) mod names;
mod playwright;
mod repeats;
mod set_up;
mod suite;

pub(crate) use self::errors::of_output as error_of_output;

use assay_domain::{attempt::Attempt, run::RunState, test::TestName};

use self::{
    case::{Case, Child, ChildKind},
    dialect::Dialect,
    names::Names,
    repeats::Repeats,
    set_up::Subject,
    suite::{Header, Suite},
};
use crate::{
    attempt_output::Collected,
    collect::{LocatedTest, named},
    failure, go,
    header::missing_failures,
    hooks,
    input::Input,
    limits, memory,
    report::{Format, Report},
    retries, tap, text,
    xml::{Document, Element, Part, Tag},
};

/// Reads one file.
#[derive(Default)]
pub(crate) struct Run<'a> {
    suites: Vec<Suite<'a>>,
    /// The set-ups of classes that failed in the open suite.
    set_ups: Vec<FailedSetUp>,
    /// The file of Mocha's latest "Root Suite", to which the suites after it belong.
    root_file: Option<&'a str>,
    suite_count: usize,
    /// The latest case is a nameless one of pytest. As the last case it means that pytest was interrupted.
    pytest_interrupted: bool,
    /// A test of Go ended another one, so that the rest of that one did not run.
    is_cut_short: bool,
    /// The whole duration, an attribute of the root.
    whole_ms: Option<u64>,
    names: Names<'a>,
    tests: Repeats,
    /// What the outermost suites count and show.
    header: Header,
    node: NodeTotals<'a>,
}

/// Node's totals and its errors outside of tests, which it writes as comments.
#[derive(Default)]
struct NodeTotals<'a> {
    /// A comment that says that the run failed.
    failure: &'a str,
    /// Failed and cancelled tests. A test with subtests is a `testsuite` element without a result of its own, and fails
    /// with them.
    failures: u64,
    /// The `testsuite` elements that are no tests.
    suites: u64,
    /// All `testsuite` elements, and those in which a test failed.
    elements: u64,
    failed_elements: u64,
    passed_groups: Vec<TestName>,
}

impl NodeTotals<'_> {
    /// The failures that the results of tests without subtests have to show.
    fn counted(&self) -> u64 {
        let tests = self.elements.saturating_sub(self.suites);
        self.failures.saturating_sub(self.failed_elements.min(tests))
    }
}

/// The set-up of a class that failed.
struct FailedSetUp {
    class: String,
    /// Its name in errors.
    name: String,
    test: LocatedTest,
    attempts: Vec<Attempt>,
    /// Gradle's test-retry ran the class again, and its tests followed.
    has_passed: bool,
}

impl<'a> Document<'a> for Run<'a> {
    const FORMAT: Format = Format::Junit;
    const NAME: &'static str = "JUnit XML";
    const ROOTS: &'static [&'static str] = &["testsuites", "testsuite"];
    const WHOLE: &'static [&'static str] = &["testcase", "property", "error", "failure"];

    fn part(tag: &Tag<'a, '_>, parent: &Element<'a>) -> Part {
        let is_kept = match parent.name {
            "stackTrace" | "system-out" | "system-err" => return Part::Markup,
            outcome if outcome == "property" || ChildKind::of(&parent.tag()).is_some() => match tag.name {
                "system-out" | "system-err" => false,
                "stackTrace" => true,
                _ => return Part::Markup,
            },
            // A case, or an element that no tool is known to write in one.
            _ => tag.name != "properties",
        };
        if is_kept { Part::Kept } else { Part::LeftOut }
    }

    fn begin(&mut self, input: &Input<'a>, report: &mut Report, tag: Tag<'a, '_>, parent: &str) -> bool {
        if is_suite(tag.name, parent) {
            self.open_suite(input, report, tag);
        }
        // Any other element may have cases: Node encloses those after the failed hook of a file in `<undefined>`.
        !matches!(tag.name, "system-out" | "system-err")
    }

    fn comment(&mut self, comment: &'a str) {
        let comment = comment.trim();
        if tap::is_failure_of_run(comment) {
            self.node.failure = comment;
        }
        match tap::total(comment) {
            Some(("fail" | "cancelled", tests)) => self.node.failures += tests,
            Some(("suites", suites)) => self.node.suites = suites,
            _ => {}
        }
    }

    fn element(&mut self, input: &Input<'a>, report: &mut Report, element: Element<'a>) {
        match element.name {
            "testcase" => self.add_case(input, report, element),
            "property" => {
                if let Some(suite) = self.suites.last_mut() {
                    suite.property(&element.value("name"), &element.value("value"));
                }
            }
            _ => self.add_suite_error(input, report, element),
        }
    }

    fn end(&mut self, report: &mut Report, name: &str, parent: &str) {
        if is_suite(name, parent) {
            self.close_suite(report);
        }
    }

    fn results(&self) -> usize {
        self.tests.len()
    }

    fn finish(mut self, input: &Input<'a>, report: &mut Report) {
        // Suites are still open in a file that is cut off.
        while !self.suites.is_empty() {
            self.close_suite(report);
        }
        report.widen(report.started_at, self.whole_ms);
        // A group may be what failed if no result shows a failure.
        if self.node.counted() <= self.header.shown {
            report.add_passed_groups(std::mem::take(&mut self.node.passed_groups));
        }
        let counted = self.header.shown.saturating_add(self.header.missing);
        let counted = counted.max(self.node.counted());
        report
            .errors
            .extend(missing_failures(input.name, counted, self.header.shown));
        let (tests, groups_of_go) = self.tests.finish();
        report.tests = tests;
        report.add_passed_groups(groups_of_go);
        report.check_summary(input.name, !self.node.failure.is_empty(), self.node.failure);
        if self.pytest_interrupted {
            report.warnings.push(format!(
                "{}: pytest was interrupted in a test that the report does not name",
                input.name
            ));
        }
        if self.pytest_interrupted || self.is_cut_short {
            report.state = RunState::Interrupted;
        }
    }
}

fn is_suite(name: &str, parent: &str) -> bool {
    matches!(name, "testsuites" | "testsuite") && parent != "properties"
}

impl<'a> Run<'a> {
    fn open_suite(&mut self, input: &Input<'a>, report: &mut Report, tag: Tag<'a, '_>) {
        let mut suite = Suite::new(tag, self.suites.last(), self.suite_count);
        if self.suites.is_empty() {
            let mut lines = input.text.lines().take(3);
            suite.is_of_testng |= lines.any(|line| line.contains("Generated by org.testng."));
        }
        if suite.dialect == Dialect::Mocha && suite.name == "Root Suite" {
            self.root_file = suite.file;
        } else if suite.dialect == Dialect::Mocha {
            suite.file = suite.file.or(self.root_file);
        }
        self.suite_count += 1;
        let duration = suite.time.and_then(|time| suite.milliseconds(input, time));
        if suite.is_group {
            self.whole_ms = self.whole_ms.max(duration);
        }
        if suite.is_utc && suite.timestamp.is_some() {
            input.notes.times_are_utc();
        }
        let start = suite.timestamp.and_then(|timestamp| input.time(timestamp));
        report.widen(start, duration);
        report.host = report.host.take().or_else(|| text::title(&suite.hostname));
        self.suites.push(suite);
    }

    /// Closes a suite. What it shows and misses counts for the suite around it, too.
    fn close_suite(&mut self, report: &mut Report) {
        self.end_set_ups(report);
        if let Some(suite) = self.suites.pop() {
            if !suite.is_group {
                self.node.elements += 1;
                self.node.failed_elements += u64::from(suite.header.shown > 0);
                if suite.has_run {
                    self.end_group(report, &suite);
                }
            }
            let outer = self.suites.last_mut().map(|outer| &mut outer.header);
            outer.unwrap_or(&mut self.header).add(suite);
        }
    }

    /// Adds what passed of a suite whose tests ran, beside its tests: the test that groups them, or its hooks.
    fn end_group(&mut self, report: &mut Report, suite: &Suite<'a>) {
        if !memory::charge(suite.outer_bytes) {
            return;
        }
        let file = &suite.file_of_run;
        let outer = self.suites.iter().filter(|outer| !outer.is_group);
        let titles = outer.map(|outer| &*outer.name);
        if suite.dialect == Dialect::NodeTest && suite.header.shown == 0 {
            let group = named(titles.chain([&*suite.name]), file.clone());
            self.node.passed_groups.push(group);
        } else if suite.is_of_bun && !suite.is_path {
            // The class has the titles from the innermost one on.
            let inner = self
                .suites
                .iter()
                .rev()
                .filter(|outer| !outer.is_group && !outer.is_path);
            let titles: Vec<&str> = std::iter::once(&*suite.name)
                .chain(inner.map(|outer| &*outer.name))
                .collect();
            let hooks = [assay_domain::set_up::NAME, assay_domain::set_up::TEAR_DOWN];
            let hooks = hooks.map(|hook| named(titles.iter().copied().chain([hook]), file.clone()));
            report.add_passed_groups(hooks);
        }
        if let Some(outer) = self.suites.last_mut() {
            outer.has_run = true;
            outer.file_of_run.clone_from(file);
        }
    }

    fn note_run(&mut self, dialect: Dialect, test: &LocatedTest) {
        let suite = self.suites.last_mut();
        if let Some(suite) = suite.filter(|suite| dialect == Dialect::NodeTest || suite.is_of_bun) {
            suite.has_run = true;
            suite.file_of_run.clone_from(&test.test.file_path);
        }
    }

    fn add_case(&mut self, input: &Input<'a>, report: &mut Report, element: Element<'a>) {
        let (mut case, inner) = Case::of(element);
        for inner in inner {
            self.add_case(input, report, inner);
        }
        let Some(suite) = self.suites.last() else { return };
        // Every outcome of the case may be an attempt, which names the browser.
        if !memory::charge(suite.outer_bytes.saturating_mul(1 + case.children.len())) {
            return;
        }
        if let Some(timestamp) = case.timestamp {
            let duration = case.time.and_then(|time| input.seconds_to_ms(time));
            report.widen(input.time(timestamp), duration);
        }
        let dialect = Dialect::of_case(suite, &case);
        report.hides_retries |= dialect.hides_retries();
        report.has_qualified_names |= dialect.has_qualified_names();
        // pytest writes a nameless case: at the end if it was interrupted, in between if a worker crashed.
        self.pytest_interrupted = dialect == Dialect::Pytest && case.is_nameless();
        if self.pytest_interrupted {
            return;
        }
        // behave stopped before it: `skipped` is what it left out on purpose.
        if case.status.eq_ignore_ascii_case("untested") {
            report.state = RunState::Interrupted;
        }
        case.is_flaky &= suite.counts_flakes;
        if suite.name.starts_with("TestCafe Tests:") {
            case.take_marks_of_testcafe();
        }
        if matches!(dialect, Dialect::Gotestsum | Dialect::GoJunitReport) {
            let mut outcomes = case.children.iter();
            self.is_cut_short |= outcomes.any(|child| child.body().lines().any(go::is_goexit));
        }
        let mut execution = attempts::of(input, dialect, suite, &case);
        // The output of a case is that of its attempts. The last failure is the one that people look at.
        if let Some(failed) = execution.iter_mut().rfind(|attempt| attempt.status.is_failure()) {
            let mut collected = Collected::default();
            collected.console(input, &case.console);
            collected.give_to(failed);
        }
        let failed = retries::failed(&execution);
        let failures = case.failures(dialect).max(usize::from(failed));
        let subject = set_up::subject(input, dialect, suite, &mut case, failed);
        let is_hook = match subject {
            Subject::Test => false,
            Subject::HookOfTest => true,
            Subject::SetUpOfClass(name) => {
                self.count_failures(failures);
                let test = self.names.test(input, dialect, &self.suites, &case);
                self.note_run(dialect, &test);
                self.set_ups.push(FailedSetUp {
                    class: case.class().to_owned(),
                    name,
                    test,
                    attempts: execution,
                    has_passed: false,
                });
                return;
            }
            Subject::Other(name) => {
                self.count_failures(failures);
                if failed {
                    let test = self.names.test(input, dialect, &self.suites, &case);
                    let details = execution.iter().flat_map(|attempt| attempt.errors.clone());
                    let (tests, file) = (&mut self.tests.tests, test.test.file_path.as_deref());
                    hooks::add_to_suite(tests, &mut Vec::new(), &name, file, details.collect());
                    push_error(report, &name, execution);
                }
                return;
            }
        };
        if dialect == Dialect::Gradle {
            let class = case.class();
            let of_class = self.set_ups.iter_mut().filter(|set_up| set_up.class == class);
            of_class.for_each(|set_up| set_up.has_passed = true);
        }
        let test = self.names.test(input, dialect, &self.suites, &case);
        if let Some(error) = case
            .failure_as_flaky()
            .and_then(|child| errors::of(input, dialect, child))
        {
            // The test recovered, and the tool fails its run.
            report.errors.push(failure::error_of(&test.test.name, error));
        }
        if execution.iter().any(|attempt| !attempt.status.is_skip()) {
            self.note_run(dialect, &test);
        }
        let Some(suite) = self.suites.last() else { return };
        if is_hook {
            hooks::add_to_test(&mut self.tests.tests, test, execution);
        } else {
            self.tests.add(dialect, suite, &case, test, execution);
        }
        self.count_failures(failures);
    }

    /// Adds the set-ups of the suite's classes as tests. One that did not pass in the end is an error of the run, too: its
    /// class has no results.
    fn end_set_ups(&mut self, report: &mut Report) {
        for set_up in std::mem::take(&mut self.set_ups) {
            let mut attempts = set_up.attempts;
            if set_up.has_passed {
                attempts.push(assay_domain::set_up::passed());
            } else {
                push_error(report, &set_up.name, attempts.clone());
            }
            self.tests.tests.add(set_up.test, attempts);
        }
    }

    fn count_failures(&mut self, failures: usize) {
        if let Some(suite) = self.suites.last_mut() {
            let failures = u64::try_from(failures).unwrap_or(u64::MAX);
            suite.header.shown = suite.header.shown.saturating_add(failures);
        }
    }

    fn add_suite_error(&mut self, input: &Input<'a>, report: &mut Report, element: Element<'a>) {
        let child = Child::new(ChildKind::Error, element);
        self.count_failures(1);
        let outer_bytes = self.suites.last().map_or(0, |suite| suite.outer_bytes);
        if report.errors.len() >= limits::REPORT_ERRORS || !memory::charge(outer_bytes) {
            return;
        }
        let dialect = self.suites.last().map_or(Dialect::Other, |suite| suite.dialect);
        let mut error = errors::of(input, dialect, &child);
        if let (Some(error), Some(suite)) = (&mut error, self.suites.last())
            && let Some(message) = &mut error.message
            && !suite.name.is_empty()
        {
            *message = format!("{}: {message}", suite.name);
        }
        report.errors.extend(error);
    }
}

/// Adds the failure of something that is not a test.
fn push_error(report: &mut Report, name: &str, execution: Vec<Attempt>) {
    // jest-junit writes a file that did not load twice, in two forms.
    let is_repeated = report
        .errors
        .last()
        .and_then(|last| last.message.as_deref()?.strip_prefix(name))
        .is_some_and(|rest| rest.starts_with(':'));
    let details = execution.into_iter().flat_map(|attempt| attempt.errors);
    if !is_repeated {
        hooks::push_error(&mut report.errors, name, details.collect());
    }
}
