//! Which results of one name are attempts of one execution: those that a tool says to be retries.
//!
//! Formats with a mark of their own for attempts are read by their readers. Here are the tools that write a retry as one
//! more result of the test. `docs/formats.md` has the table of all marks with their sources. A tool that is in neither
//! has no retries inside a report: its results of one name are executions, and one that failed fails the test.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
};

use assay_domain::{
    attempt::{Attempt, AttemptStatus},
    execution::Executions,
};

use crate::{
    collect::LocatedTest,
    failure::error_saying,
    report::{Report, ReportedTest},
    text,
};

/// A tool that writes a retry as one more result of the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tool {
    /// Gradle's test-retry: it runs the failed methods again after all of their class. Gradle writes results in the order
    /// of their execution.
    TestRetry,
    /// The results of test-retry, as junit-to-ctrf writes them.
    JunitToCtrf,
    /// gotestsum's `--rerun-fails`: it runs root tests or subtests again. Failed results come first in its file.
    Gotestsum,
    /// `openshift-tests`: a flake is a failure and a pass of one name.
    Openshift,
    /// `xcodebuild -retry-tests-on-failure`, as xcbeautify and Bitrise write it: one case for each repetition.
    Xcodebuild,
    /// pytest: an empty case before another of its name, or cases of one name at one file and line.
    Pytest,
    /// TestNG: a skipped case that took time and has no reason.
    Testng,
}

/// A result that may be an attempt.
#[derive(Debug)]
pub(crate) struct RepeatedResult {
    pub(crate) test: LocatedTest,
    pub(crate) attempts: Vec<Attempt>,
    /// A hash of the attributes that tell tests of one name apart.
    pub(crate) attributes: u64,
    /// Whether it has a line; for pytest, whose tests of one file and line are one.
    pub(crate) has_line: bool,
    /// Whether it is skipped with a reason.
    pub(crate) has_reason: bool,
}

impl RepeatedResult {
    /// A result without attributes.
    pub(crate) const fn of_test(test: LocatedTest, attempts: Vec<Attempt>) -> Self {
        Self {
            test,
            attempts,
            attributes: 0,
            has_line: false,
            has_reason: false,
        }
    }
}

/// The results of a suite, and the number of tests that its header counts.
#[derive(Debug, Default)]
struct RepeatedResults {
    counted: u64,
    results: Vec<RepeatedResult>,
}

/// The results of such tools, by suite.
#[derive(Debug, Default)]
pub(crate) struct Retries {
    suites: BTreeMap<(Tool, usize), RepeatedResults>,
    count: usize,
}

impl Retries {
    pub(crate) const fn len(&self) -> usize {
        self.count
    }

    /// Adds a result of a suite whose header counts this number of tests. `go test -count` repeats the tests of all packages,
    /// so those of gotestsum are one suite.
    pub(crate) fn add(&mut self, tool: Tool, suite: usize, counted: u64, result: RepeatedResult) {
        let suite = if tool == Tool::Gotestsum { 0 } else { suite };
        let of_suite = self.suites.entry((tool, suite)).or_default();
        of_suite.counted = counted;
        of_suite.results.push(result);
        self.count += 1;
    }

    /// The executions of all results, with the tool that wrote each.
    pub(crate) fn executions(self) -> impl Iterator<Item = (Tool, LocatedTest, Vec<Attempt>)> {
        self.suites.into_iter().flat_map(|((tool, _), suite)| {
            let RepeatedResults { counted, mut results } = suite;
            if tool == Tool::Pytest {
                join_pytest(&mut results, counted);
            }
            of_suite(tool, results)
                .into_iter()
                .map(move |(test, attempts)| (tool, test, attempts))
        })
    }
}

/// The results of one test with their places in the suite.
type Group = (LocatedTest, Vec<(usize, RepeatedResult)>);

fn of_suite(tool: Tool, results: Vec<RepeatedResult>) -> Vec<(LocatedTest, Vec<Attempt>)> {
    let mut groups: Vec<Group> = Vec::new();
    let mut index_of_test: HashMap<u64, usize> = HashMap::new();
    for (place, result) in results.into_iter().enumerate() {
        let mut hasher = DefaultHasher::new();
        (&result.test, result.attributes).hash(&mut hasher);
        let index = *index_of_test.entry(hasher.finish()).or_insert(groups.len());
        match groups.get_mut(index) {
            Some((_, group)) => group.push((place, result)),
            None => groups.push((result.test.clone(), vec![(place, result)])),
        }
    }
    if tool == Tool::Gotestsum {
        for (_, group) in &mut groups {
            group.sort_by_key(|(_, result)| !failed(&result.attempts));
        }
    }
    let is_on_purpose = tool != Tool::Testng && is_repeated_on_purpose(tool, &groups);
    let single = groups.iter().filter(|(_, group)| group.len() == 1);
    let once: Vec<(LocatedTest, usize)> = single
        .filter_map(|(test, group)| Some((test.clone(), group.first()?.0)))
        .collect();
    let mut executions = Vec::new();
    for (test, group) in groups {
        let is_retried = !is_on_purpose
            && group.len() > 1
            && may_retry(tool, &test, &group)
            && has_place_of_retry(tool, &test, &group, &once);
        let reasons: Vec<bool> = group.iter().map(|(_, result)| result.has_reason).collect();
        let results = group.into_iter().map(|(_, result)| result.attempts);
        let joined = if !is_retried {
            results.collect()
        } else if tool == Tool::Testng {
            of_testng(results.zip(reasons))
        } else {
            of_sequence(results.collect())
        };
        executions.extend(joined.into_iter().map(|attempts| (test.clone(), attempts)));
    }
    executions
}

/// Whether results stand where a retry does. gotestsum and test-retry run failed tests again after all tests of their
/// package or class. `go test -count` repeats each test at its place, and a specification has leaves of one title at any
/// place. So a test that ran once must stand between a failure and its retry, where the file has the order of execution.
fn has_place_of_retry(
    tool: Tool,
    test: &LocatedTest,
    group: &[(usize, RepeatedResult)],
    once: &[(LocatedTest, usize)],
) -> bool {
    let package = |test: &LocatedTest| {
        let parts = test.test.name.split_once(text::JOINT);
        parts.map(|(package, _)| package.to_owned())
    };
    let own = package(test);
    let siblings = || {
        once.iter()
            .filter(|(other, _)| package(other) == own)
            .map(|(_, place)| *place)
    };
    match (tool, group) {
        (Tool::Gotestsum, [.., (last, _)]) => siblings().all(|place| place < *last),
        (Tool::TestRetry, [(first, _), (second, _), ..]) => {
            siblings().any(|place| place > *first) && siblings().all(|place| place < *second)
        }
        _ => true,
    }
}

/// Whether a suite was repeated on purpose: all its tests occur equally often, or a result follows a pass.
fn is_repeated_on_purpose(tool: Tool, groups: &[Group]) -> bool {
    // Of a test of Go, a rerun repeats the subtests that passed, too.
    let is_root = |test: &LocatedTest| tool != Tool::Gotestsum || !own_name(&test.test.name).contains('/');
    let roots = || groups.iter().filter(|(test, _)| is_root(test));
    let mut counts = roots().map(|(_, group)| group.len());
    let first = counts.next().unwrap_or(0);
    // pytest's names are unique within a run, so one name alone does not tell.
    let are_equal =
        first > 1 && counts.all(|count| count == first) && (tool != Tool::Pytest || groups.len() > 1);
    let follows_pass = |(_, group): &Group| {
        let results = group.iter().skip_while(|(_, result)| !passed(&result.attempts));
        results.skip(1).any(|(_, result)| !skipped(&result.attempts))
    };
    are_equal || roots().any(follows_pass)
}

/// Whether a tool could have retried a test, by its name and lines.
fn may_retry(tool: Tool, test: &LocatedTest, group: &[(usize, RepeatedResult)]) -> bool {
    let name = own_name(&test.test.name);
    match tool {
        // A class has a method once. Invocations and leaves of specifications have other names, and share them.
        Tool::TestRetry | Tool::JunitToCtrf => name.ends_with("()"),
        // A function without arguments. Each argument of a test of Swift Testing has the name of the function, or the
        // display name in its place.
        Tool::Xcodebuild => is_identifier(name.strip_suffix("()").unwrap_or(name)),
        Tool::Pytest => group.iter().all(|(_, result)| result.has_line),
        Tool::Gotestsum | Tool::Openshift | Tool::Testng => true,
    }
}

/// The part of a name that is not its class or package.
fn own_name(name: &str) -> &str {
    let name = name.split_once(text::JOINT).map_or(name, |(_, own)| own);
    name.rsplit(": ").next().unwrap_or(name)
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// Whether the last attempt of an execution failed.
pub(crate) fn failed(attempts: &[Attempt]) -> bool {
    attempts.last().is_some_and(|last| last.status.is_failure())
}

/// Whether an execution of a test failed.
pub(crate) fn has_failed(test: &ReportedTest) -> bool {
    test.attempts.executions().any(failed)
}

fn passed(attempts: &[Attempt]) -> bool {
    attempts
        .last()
        .is_some_and(|last| last.status == AttemptStatus::Passed)
}

fn skipped(attempts: &[Attempt]) -> bool {
    attempts.first().is_some_and(|first| first.status.is_skip())
}

/// The executions of results in order that may be retries: one if all but the last failed, because a retry ends at its
/// first pass. Otherwise each result is an execution.
pub(crate) fn of_sequence(results: Vec<Vec<Attempt>>) -> Vec<Vec<Attempt>> {
    let is_one = results
        .split_last()
        .is_some_and(|(last, earlier)| !skipped(last) && earlier.iter().all(|attempts| failed(attempts)));
    if is_one {
        vec![results.into_iter().flatten().collect()]
    } else {
        results
    }
}

/// TestNG writes its attempts in any order. The one with a result comes last.
fn of_testng(results: impl Iterator<Item = (Vec<Attempt>, bool)>) -> Vec<Vec<Attempt>> {
    let is_retried = |(attempts, has_reason): &(Vec<Attempt>, bool)| {
        !has_reason && skipped(attempts) && attempts.iter().any(|attempt| attempt.duration_ms > Some(0))
    };
    let (earlier, mut last): (Vec<_>, Vec<_>) = results.partition(is_retried);
    let mut earlier: Vec<Vec<Attempt>> = earlier.into_iter().map(|(attempts, _)| attempts).collect();
    match last.as_mut_slice() {
        [(last, _)] if !skipped(last) => {
            earlier.iter_mut().for_each(|attempts| fail(attempts));
            earlier.push(std::mem::take(last));
            vec![earlier.into_iter().flatten().collect()]
        }
        _ => {
            earlier.extend(last.into_iter().map(|(attempts, _)| attempts));
            earlier
        }
    }
}

/// Joins the cases of a suite of pytest that are parts or earlier attempts of others. It writes a failure of a test and
/// one of its tear-down as two cases. pytest-rerunfailures and flaky write a failed attempt that is run again as an empty
/// case, which the header does not count. A header that counts all cases therefore has no reruns: a test was selected
/// twice, or xdist's `--dist=each` ran all tests on each worker. The header of version 4 counts reruns, too.
fn join_pytest(results: &mut Vec<RepeatedResult>, counted: u64) {
    let mut joined: Vec<RepeatedResult> = Vec::with_capacity(results.len());
    let mut places: HashMap<LocatedTest, Vec<usize>> = HashMap::new();
    let has_failed_teardown = results.iter().any(|result| is_teardown(&result.attempts));
    for result in results.drain(..) {
        let places = places.entry(result.test.clone()).or_default();
        let last = places
            .last()
            .and_then(|place| joined.get_mut(*place)?.attempts.last_mut());
        if let Some(last) = last.filter(|last| last.status.is_failure() && is_teardown(&result.attempts)) {
            last.errors
                .extend(result.attempts.into_iter().flat_map(|attempt| attempt.errors));
            continue;
        }
        places.push(joined.len());
        joined.push(result);
    }
    // A failed tear-down counts beside the test's own outcome, so that the header says nothing about reruns.
    let has_reruns = if counted > 0 && !has_failed_teardown {
        u64::try_from(joined.len()).is_ok_and(|cases| cases > counted)
    } else {
        let counts: HashSet<usize> = places.values().map(Vec::len).collect();
        counts.len() > 1 || places.len() == 1
    };
    if !has_reruns {
        joined.iter_mut().for_each(|result| result.has_line = false);
    } else {
        for pair in places.values().flat_map(|places| places.windows(2)) {
            let [earlier, later] = *pair else { continue };
            let Some(earlier) = joined
                .get_mut(earlier)
                .filter(|earlier| passed(&earlier.attempts))
            else {
                continue;
            };
            let mut attempts = std::mem::take(&mut earlier.attempts);
            fail(&mut attempts);
            if let Some(later) = joined.get_mut(later) {
                attempts.append(&mut later.attempts);
                later.attempts = attempts;
            }
        }
        joined.retain(|result| !result.attempts.is_empty());
    }
    *results = joined;
}

fn is_teardown(attempts: &[Attempt]) -> bool {
    let message = attempts
        .first()
        .and_then(|attempt| attempt.errors.first()?.message.as_deref());
    message.is_some_and(|message| message.starts_with("failed on teardown with"))
}

/// The message of a failed attempt of which the report has no error.
pub const UNTOLD_ERROR: &str = "failed and was run again; the report does not tell the error of this attempt";

/// Makes a failure of an attempt that its tool marks as one and writes as another status.
fn fail(attempts: &mut [Attempt]) {
    if let Some(last) = attempts.last_mut() {
        last.status = AttemptStatus::Failed;
        last.errors.push(error_saying(UNTOLD_ERROR));
    }
}

/// Joins the executions of each test to the attempts of one, because the sender says that they are retries. A retry ends
/// at its first pass, so what follows is another execution.
pub(crate) fn join_all(report: &mut Report) {
    for test in &mut report.tests {
        let executions =
            std::mem::replace(&mut test.attempts, Executions::with_capacity(0)).into_executions();
        let mut attempts: Vec<Attempt> = Vec::new();
        for mut execution in executions {
            let has_passed = passed(&execution);
            if has_passed || failed(&execution) {
                attempts.append(&mut execution);
            } else {
                test.attempts.push(execution);
            }
            if has_passed {
                test.attempts.push(std::mem::take(&mut attempts));
            }
        }
        test.attempts.push(attempts);
    }
}

/// The attempts of an execution. A test that failed and was skipped when its tool ran it again was not executed in the end:
/// no tool fails its run for it. Its only attempt is the last one.
pub(crate) fn skipped_in_the_end(mut attempts: Vec<Attempt>) -> Vec<Attempt> {
    let is_skipped = attempts
        .split_last()
        .is_some_and(|(last, earlier)| last.status == AttemptStatus::Skipped && failed(earlier));
    if !is_skipped {
        return attempts;
    }
    let Some(last) = attempts.pop() else {
        return attempts;
    };
    let reason = match &last.skip_reason {
        Some(reason) => format!("{reason} (an earlier attempt failed)"),
        None => "an earlier attempt failed".to_owned(),
    };
    vec![Attempt {
        skip_reason: text::skip_reason(&reason),
        ..last
    }]
}

/// The warning about tests with failed and passed executions in one file, which may be retries.
pub(crate) fn warning(report: &Report, file: &str) -> Option<String> {
    let is_doubtful = |test: &&ReportedTest| has_failed(test) && test.attempts.executions().any(passed);
    let mut doubtful = report.tests.iter().filter(is_doubtful);
    let example = &doubtful.next()?.test.name;
    let tests = match 1 + doubtful.count() {
        1 => "1 test".to_owned(),
        count => format!("{count} tests"),
    };
    Some(format!(
        "{file}: {tests} failed and passed, such as {example:?}. The report does not say that one result is a retry of \
         another, so they are executions, and the test failed. If the tool retries failed tests, give \
         --retries-as-attempts, or use the tool's own mark of retries (docs/formats.md#retries)."
    ))
}

/// The name without the number of a retry, and that number, as SpecFlow+ Runner writes it: `Pays (retry #1)`.
pub(crate) fn numbered(name: &str) -> Option<(&str, u32)> {
    let (base, number) = name.trim_end().strip_suffix(')')?.rsplit_once("(retry #")?;
    let number = number.parse().ok().filter(|number| *number > 0)?;
    let base = base.trim_end();
    (!base.is_empty()).then_some((base, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_number_of_a_retry_at_the_end_is_split_off() {
        for (name, expected) in [
            ("Pays by card (retry #1)", Some(("Pays by card", 1))),
            ("Pays by card, retry #12", None),
            ("Pays(\"a\") (retry #2)", Some(("Pays(\"a\")", 2))),
            ("Pays by card", None),
            ("shows retry #2", None),
            ("(retry #2)", None),
            ("Pays (retry #0)", None),
            ("Pays (retry #1) again", None),
        ] {
            assert_eq!(numbered(name), expected, "{name}");
        }
    }
}
