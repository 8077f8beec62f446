//! One history of runs from the daily reports of Node.js about the failures of its pull requests (`nodejs/reliability`).
//!
//! A report covers about 100 runs of the job `node-test-pull-request`. It has a table for each reason that failed two or
//! more pull requests, with one run for each of them: the newest. Reports overlap.

use std::{collections::BTreeMap, fs, ops::RangeInclusive, path::Path};

use anyhow::{Context as _, bail, ensure};
use assay_flakiness::{
    ErrorTexts,
    domain::{
        attempt::ErrorDetail,
        observation::{Failure, History, RunFacts, RunObservations},
        timestamp::Timestamp,
    },
};
use regex::Regex;

/// The runs of all reports.
#[derive(Debug)]
pub(crate) struct NodeHistory {
    /// By number, and so by time.
    pub(crate) runs: Vec<NodeRun>,
    /// The number of tests. Those that failed come first.
    pub(crate) tests: u32,
    /// The number of texts.
    pub(crate) texts: u32,
}

/// A run of a pull request.
#[derive(Debug)]
pub(crate) struct NodeRun {
    pub(crate) number: u32,
    /// Interpolated: the last run of a report is as old as the report.
    pub(crate) started_at: Timestamp,
    /// The pull request, numbered from 1. A run whose pull request no report names has one of its own.
    pub(crate) pull_request: u32,
    /// The failed tests, each with its text.
    pub(crate) failed: BTreeMap<u32, Option<u32>>,
}

impl NodeHistory {
    /// The runs as those of one branch, each with a revision of its own.
    pub(crate) fn as_branch(&self) -> (History, ErrorTexts) {
        let mut texts = ErrorTexts::new();
        let mut runs = Vec::new();
        for (place, reported) in self.runs.iter().enumerate() {
            let mut observed = RunObservations::of(RunFacts {
                id: reported.number.to_string().into(),
                number: i32::try_from(place).unwrap_or(i32::MAX).saturating_add(1),
                started_at: reported.started_at,
                branch: Some("main".into()),
                revision: Some(reported.number.to_string().into()),
                ..RunFacts::default()
            });
            observed.present = (0..self.tests).collect();
            for (test, text) in &reported.failed {
                observed.failures.push(Failure {
                    test: *test,
                    recovered: false,
                    failed_attempts: 1,
                    lost_ms: None,
                });
                if let Some(text) = text {
                    texts.insert(place, *test, *text);
                }
            }
            runs.push(observed);
        }
        let history = History {
            stable_branch: "main".into(),
            tests: self.tests,
            runs,
        };
        (history, texts)
    }
}

/// The report of one day.
struct Report {
    runs: RangeInclusive<u32>,
    at: Timestamp,
    failures: Vec<ReportedFailure>,
    /// The largest number of a test in the examples, which counts the tests of a suite; 0 if there is none.
    largest_suite: u32,
}

/// What failed, and in which runs.
struct ReportedFailure {
    /// The name of the test, or a message.
    reason: String,
    kind: FailureKind,
    runs: Vec<(PullRequest, u32)>,
    /// The fingerprint of the example, which is the failure of one of the runs.
    error: Option<String>,
}

/// The kind of a failure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FailureKind {
    Test,
    Build,
    /// CI itself failed, or the linter.
    Other,
}

/// Whether it is of the private repository for security fixes, and the number that people typed.
type PullRequest = (bool, u64);

/// The history of a folder of reports, in the order of their names, which are dates.
pub(crate) fn read(folder: &Path) -> anyhow::Result<NodeHistory> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let entries = entries.with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths: Vec<_> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.sort();
    ensure!(!paths.is_empty(), "{} has no reports (*.md)", folder.display());
    let links = Regex::new(r"\[([^\]]*)\]\(https://ci\.nodejs\.org/job/node-test-pull-request/(\d+)/\)")?;
    let reports = paths.iter().map(|path| {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        parse(&text, &links).with_context(|| path.display().to_string())
    });
    Ok(history(&reports.collect::<Result<Vec<_>, _>>()?))
}

/// The texts of links to runs, and the numbers of the runs.
fn linked<'l>(links: &Regex, line: &'l str) -> anyhow::Result<Vec<(&'l str, u32)>> {
    let linked = links.captures_iter(line).map(|link| {
        let (_, [text, number]) = link.extract();
        Ok((text, number.parse()?))
    });
    linked.collect()
}

fn parse(text: &str, links: &Regex) -> anyhow::Result<Report> {
    let mut lines = text.lines();
    let range = lines.find(|line| line.starts_with("Failures in "));
    let range = linked(links, range.context("no range of runs")?)?;
    let [(_, first), (_, last)] = range.as_slice() else {
        bail!("the range needs two runs");
    };
    let mut times = lines.by_ref().skip_while(|line| !line.starts_with("| UTC Time "));
    let time = times.nth(2).context("no time")?;
    let mut report = Report {
        runs: *first..=*last,
        at: parse_time(time)?,
        failures: Vec::new(),
        largest_suite: 0,
    };
    let (mut reason, mut kind) = (String::new(), None);
    while let Some(line) = lines.next() {
        if let Some(cell) = cell(line, "Reason") {
            let code = cell.strip_prefix("<code>").unwrap_or(cell);
            reason = code.strip_suffix("</code>").unwrap_or(code).trim().to_owned();
        } else if let Some(cell) = cell(line, "Type") {
            kind = Some(kind_of(cell, &reason)?);
        } else if let Some(cell) = cell(line, "Failed PR") {
            let runs = linked(links, cell)?.into_iter();
            let runs = runs.map(|(url, run)| Ok((pull_request(url)?, run)));
            let runs = runs.collect::<anyhow::Result<Vec<_>>>()?;
            let number = cell.split(' ').next().unwrap_or_default();
            ensure!(number.parse() == Ok(runs.len()), "not {number} runs: {cell}");
            report.failures.push(ReportedFailure {
                reason: reason.clone(),
                kind: kind.take().context("failed runs without a type")?,
                runs,
                error: None,
            });
        } else if let Some((number, name)) =
            line.strip_prefix("not ok ").and_then(|rest| rest.split_once(' '))
            && name == reason
            && let Some(failure) = report.failures.last_mut()
        {
            report.largest_suite = report
                .largest_suite
                .max(number.parse().context(number.to_owned())?);
            failure.error = fingerprint(lines.by_ref().take_while(|line| *line != "```"));
        }
    }
    Ok(report)
}

/// The value of a row with this name; none for another line.
fn cell<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    let value = line.strip_prefix("| ")?.strip_prefix(name)?.strip_prefix(" | ")?;
    Some(value.trim_end().strip_suffix('|')?.trim())
}

/// The time in the first cell of a row, such as `2026-07-15 00:21`.
fn parse_time(row: &str) -> anyhow::Result<Timestamp> {
    let cell = row.trim_start_matches('|').split('|').next().unwrap_or_default();
    let time = format!("{}:00Z", cell.trim().replace(' ', "T"));
    time.parse().with_context(|| format!("no time: {row}"))
}

fn kind_of(kind: &str, reason: &str) -> anyhow::Result<FailureKind> {
    Ok(match kind {
        // A file that the linter rejects, such as `- /home/iojs/build/workspace/node-test-linter/lib/url.js`.
        "JS_TEST_FAILURE" if reason.starts_with("- ") => FailureKind::Other,
        "JS_TEST_FAILURE" | "CC_TEST_FAILURE" => FailureKind::Test,
        "BUILD_FAILURE" => FailureKind::Build,
        "JENKINS_FAILURE" | "GIT_FAILURE" | "NCU_FAILURE" | "RESUME_FAILURE" | "undefined" => {
            FailureKind::Other
        }
        other => bail!("unknown type {other:?}"),
    })
}

/// Reads the last number of a URL. People type some of them, such as `…/pull/#62401/`.
fn pull_request(url: &str) -> anyhow::Result<PullRequest> {
    let trimmed = url.trim_end_matches(['/', ' ']);
    let number = trimmed.rsplit(|letter: char| !letter.is_ascii_digit()).next();
    let number = number.unwrap_or_default().parse();
    let number = number.with_context(|| format!("no URL of a pull request: {url}"))?;
    Ok((url.contains("/node-private/"), number))
}

/// The fingerprint of an example in TAP, whose last field is `stack`.
fn fingerprint<'l>(example: impl Iterator<Item = &'l str>) -> Option<String> {
    let stack = example.skip_while(|line| !line.starts_with("  stack:")).skip(1);
    let lines: Vec<&str> = stack
        .take_while(|line| *line != "  ...")
        .map(|line| line.strip_prefix("    ").unwrap_or(line))
        .collect();
    let error = ErrorDetail {
        message: Some(lines.join("\n")),
        stack: None,
        snippet: None,
        location: None,
    };
    assay_fingerprint::classify(&error).map(|class| class.fingerprint)
}

/// What the reports have of a run.
#[derive(Default)]
struct Reported {
    pull_request: Option<PullRequest>,
    failed: BTreeMap<u32, Option<u32>>,
    has_build_failure: bool,
    has_other_failure: bool,
}

/// Joins the reports. A run with nothing but build failures is left out, because its tests did not run.
fn history(reports: &[Report]) -> NodeHistory {
    let covered = reports.iter().flat_map(|report| report.runs.clone());
    let mut runs: BTreeMap<u32, Reported> = covered.map(|number| (number, Reported::default())).collect();
    let (mut tests, mut texts) = (Numbers::default(), Numbers::default());
    for failure in reports.iter().flat_map(|report| &report.failures) {
        let test = (failure.kind == FailureKind::Test).then(|| tests.of(failure.reason.as_str()));
        let text = failure.error.as_deref().map(|error| texts.of(error));
        for (pull_request, number) in &failure.runs {
            let Some(run) = runs.get_mut(number) else { continue };
            run.pull_request = Some(*pull_request);
            if let Some(test) = test {
                run.failed.entry(test).or_insert(text);
            }
            let is_build = failure.kind == FailureKind::Build;
            run.has_build_failure |= is_build;
            run.has_other_failure |= !is_build;
        }
    }
    runs.retain(|_, run| run.has_other_failure || !run.has_build_failure);
    let times = times(reports);
    let mut pull_requests = Numbers::default();
    let runs = runs.into_iter().map(|(number, run)| NodeRun {
        number,
        started_at: time_of(&times, number),
        pull_request: 1 + pull_requests.of((run.pull_request, run.pull_request.is_none().then_some(number))),
        failed: run.failed,
    });
    NodeHistory {
        runs: runs.collect(),
        tests: reports
            .iter()
            .map(|report| report.largest_suite)
            .fold(tests.count(), u32::max),
        texts: texts.count(),
    }
}

/// Numbers values in the order of their first use, from 0.
struct Numbers<T>(BTreeMap<T, u32>);

impl<T> Default for Numbers<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Ord> Numbers<T> {
    fn of(&mut self, value: T) -> u32 {
        let next = self.count();
        *self.0.entry(value).or_insert(next)
    }

    fn count(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }
}

/// The known times of runs, ascending by number.
fn times(reports: &[Report]) -> Vec<(u32, Timestamp)> {
    let mut times: Vec<(u32, Timestamp)> = Vec::new();
    for report in reports {
        let last = *report.runs.end();
        if times.last().is_none_or(|(number, _)| *number < last) {
            times.push((last, report.at));
        }
    }
    times
}

/// Runs before the first known time have the mean distance.
fn time_of(times: &[(u32, Timestamp)], number: u32) -> Timestamp {
    let next = times.partition_point(|(known, _)| *known < number);
    let [from, to] = match next {
        0 => [times.first(), times.last()],
        next => [times.get(next - 1), times.get(next).or(times.last())],
    };
    let (Some((from, from_at)), Some((to, to_at))) = (from, to) else {
        return Timestamp::from_unix_ms(0);
    };
    let distance = to_at.since_ms(*from_at) / i64::from(to - from).max(1);
    from_at.plus_ms(distance * (i64::from(number) - i64::from(*from)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const RUN_URL: &str = "https://ci.nodejs.org/job/node-test-pull-request";

    /// A report with one table of these failed runs, each with its pull request.
    pub(crate) fn report(runs: (u32, u32), time: &str, test: &str, failed: &[(u32, u32)]) -> String {
        let link = |(pull, run): &(u32, u32)| {
            format!("[https://github.com/nodejs/node/pull/{pull}/]({RUN_URL}/{run}/)")
        };
        let links: Vec<String> = failed.iter().map(link).collect();
        format!(
            "Failures in [node-test-pull-request/{0}]({RUN_URL}/{0}/) to [node-test-pull-request/{1}]({RUN_URL}/{1}/) \
             that failed 2 or more PRs\n\n\
             | UTC Time         | RUNNING | SUCCESS |\n| ---------------- | ------- | ------- |\n\
             | {time} | 8       | 3       |\n\n### JSTest Failure\n\n\
             | Reason | <code>{test}</code> |\n| - | :- |\n| Type | JS_TEST_FAILURE |\n\
             | Failed PR | {2} ({3}) |\n| Appeared | [a-machine](https://ci.nodejs.org/job/x/1/console) |\n\n\
             ```\nnot ok 4100 {test}\n  ---\n  duration_ms: 188.01\n  stack: |-\n    Error: {test} of {0}\n  ...\n```\n",
            runs.0,
            runs.1,
            failed.len(),
            links.join(", ")
        )
    }

    /// The history of these reports.
    fn read_all(reports: &[String]) -> anyhow::Result<NodeHistory> {
        let folder = tempfile::tempdir().unwrap();
        for (number, report) in reports.iter().enumerate() {
            fs::write(folder.path().join(format!("{number}.md")), report).unwrap();
        }
        read(folder.path())
    }

    #[test]
    fn overlapping_reports_are_one_history_with_interpolated_times() {
        let history = read_all(&[
            report((100, 110), "2024-09-05 00:00", "a", &[(1, 105), (2, 107)]),
            report((105, 120), "2024-09-06 00:00", "b", &[(1, 115), (2, 107)])
                .replace("/pull/1/", "/pull/#1/"),
            report((119, 121), "2024-09-06 12:00", "c", &[(3, 119), (4, 120)]).replace("JS_TEST", "BUILD"),
        ]);
        let history = history.unwrap();
        assert_eq!(history.tests, 4_100);
        // Those that were not built are left out.
        assert_eq!(history.runs.len(), 20);
        let run = |number: u32| history.runs.iter().find(|run| run.number == number).unwrap();
        assert_eq!(run(107).failed, BTreeMap::from([(0, Some(0)), (1, Some(1))]));
        assert_eq!(run(115).failed, BTreeMap::from([(1, Some(1))]));
        assert_eq!(run(105).pull_request, run(115).pull_request);
        assert_ne!(run(105).pull_request, run(107).pull_request);
        assert_ne!(run(101).pull_request, run(102).pull_request);
        assert_eq!(run(115).started_at, "2024-09-05T12:00:00Z".parse().unwrap());
        assert_eq!(run(121).started_at, "2024-09-06T12:00:00Z".parse().unwrap());
        assert!(run(100).started_at < run(101).started_at);
        assert!(run(109).started_at < "2024-09-05T00:00:00Z".parse().unwrap());
    }

    #[test]
    fn a_malformed_report_is_refused_with_its_file() {
        let text = report((100, 110), "2024-09-05 00:09", "a", &[(1, 105), (2, 107)]);
        for (from, to) in [
            ("JS_TEST_FAILURE", "PY_TEST_FAILURE"),
            ("2 (", "3 ("),
            ("pull/2/", "pull/"),
            ("request/107/", "request/x/"),
            ("2024-09-05 00:09", "yesterday"),
            ("Failures in", "Failures"),
        ] {
            let error = format!("{:#}", read_all(&[text.replace(from, to)]).unwrap_err());
            assert!(error.contains("0.md: "), "{error}");
        }
        assert!(read_all(&[]).is_err());
    }
}
