//! Reads the daily reports of Node.js about the failures of its pull requests (`nodejs/reliability`).
//!
//! A report covers about 100 runs of the job `node-test-pull-request`. It has a table for each reason that failed two or
//! more pull requests, with one run for each of them: the newest.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use assay_flakiness::domain::{attempt::ErrorDetail, timestamp::Timestamp};

/// The URL of a run, without its number.
const RUN_URL: &str = "https://ci.nodejs.org/job/node-test-pull-request/";

/// The report of one day.
#[derive(Debug, PartialEq)]
pub(crate) struct Report {
    /// The first and the last run.
    pub(crate) runs: (u32, u32),
    pub(crate) at: Timestamp,
    pub(crate) failures: Vec<ReportedFailure>,
    /// The largest number of a test in the examples, which counts the tests of a suite; 0 if there is none.
    pub(crate) largest_suite: u32,
}

/// What failed, and in which runs.
#[derive(Debug, PartialEq)]
pub(crate) struct ReportedFailure {
    /// The name of the test, or a message.
    pub(crate) reason: String,
    pub(crate) kind: FailureKind,
    pub(crate) runs: Vec<(PullRequest, u32)>,
    /// The fingerprint of the example, which is the failure of one of the runs.
    pub(crate) error: Option<String>,
}

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureKind {
    Test,
    /// A file that the linter rejects. The reports list it as a test.
    LintedFile,
    Build,
    /// CI itself failed: Jenkins, Git or the program that writes the reports.
    Infrastructure,
}

/// A pull request of the public repository, or of the private one for security fixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PullRequest {
    is_private: bool,
    /// Typed by people, and in one report the number of a comment.
    number: u64,
}

/// Reads the reports of a folder in the order of their names, which are dates.
pub(crate) fn read(folder: &Path) -> anyhow::Result<Vec<Report>> {
    let cannot_read = || format!("cannot read {}", folder.display());
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(cannot_read)? {
        let path = entry.with_context(cannot_read)?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            paths.push(path);
        }
    }
    ensure!(!paths.is_empty(), "{} has no reports (*.md)", folder.display());
    paths.sort();
    let report = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).context("cannot read it");
        text.and_then(|text| parse(&text))
            .with_context(|| path.display().to_string())
    };
    paths.iter().map(report).collect()
}

fn parse(text: &str) -> anyhow::Result<Report> {
    let mut parts = Parts::default();
    let mut last = 1;
    for (line, number) in text.lines().zip(1..) {
        parts.add(line).with_context(|| format!("line {number}"))?;
        last = number;
    }
    parts.report().with_context(|| format!("line {last}"))
}

/// The parts of a report so far.
#[derive(Default)]
struct Parts {
    runs: Option<(u32, u32)>,
    at: Option<Timestamp>,
    /// Whether the rows of the times follow.
    in_times: bool,
    reason: Option<String>,
    kind: Option<FailureKind>,
    failures: Vec<ReportedFailure>,
    /// The lines of the example of a failed test.
    example: Option<Vec<String>>,
    largest_suite: u32,
}

impl Parts {
    fn add(&mut self, line: &str) -> anyhow::Result<()> {
        if let Some(mut example) = self.example.take() {
            if line == "```" {
                if let Some(failure) = self.failures.last_mut() {
                    failure.error = fingerprint(&example);
                }
            } else {
                example.push(line.to_owned());
                self.example = Some(example);
            }
        } else if let Some(runs) = line.strip_prefix("Failures in ") {
            self.runs = Some(range(runs)?);
        } else if line.starts_with("| UTC Time ") {
            self.in_times = true;
        } else if self.in_times && !line.starts_with("| ---") {
            self.at = Some(time(line)?);
            self.in_times = false;
        } else if let Some(reason) = row(line, "Reason")? {
            let code = reason.strip_prefix("<code>").unwrap_or(reason);
            self.reason = Some(code.strip_suffix("</code>").unwrap_or(code).trim().to_owned());
            self.kind = None;
        } else if let Some(kind) = row(line, "Type")? {
            let reason = self.reason.as_deref().context("a type without a reason")?;
            self.kind = Some(FailureKind::of(kind, reason)?);
        } else if let Some(runs) = row(line, "Failed PR")? {
            self.failures.push(ReportedFailure {
                reason: self.reason.clone().context("failed runs without a reason")?,
                kind: self.kind.take().context("failed runs without a type")?,
                runs: failed_runs(runs)?,
                error: None,
            });
        } else if let Some(example) = line.strip_prefix("not ok ")
            && let Some((number, name)) = example.split_once(' ')
            && Some(name) == self.reason.as_deref()
        {
            let number = number
                .parse()
                .with_context(|| format!("no number of a test: {number:?}"))?;
            self.largest_suite = self.largest_suite.max(number);
            self.example = Some(Vec::new());
        }
        Ok(())
    }

    fn report(self) -> anyhow::Result<Report> {
        ensure!(self.example.is_none(), "the report ends within an example");
        Ok(Report {
            runs: self.runs.context("the report has no range of runs")?,
            at: self.at.context("the report has no time")?,
            failures: self.failures,
            largest_suite: self.largest_suite,
        })
    }
}

impl FailureKind {
    fn of(kind: &str, reason: &str) -> anyhow::Result<Self> {
        Ok(match kind {
            // Such as `- /home/iojs/build/workspace/node-test-linter/lib/url.js`.
            "JS_TEST_FAILURE" if reason.starts_with("- ") => Self::LintedFile,
            "JS_TEST_FAILURE" | "CC_TEST_FAILURE" => Self::Test,
            "BUILD_FAILURE" => Self::Build,
            "JENKINS_FAILURE" | "GIT_FAILURE" | "NCU_FAILURE" | "RESUME_FAILURE" | "undefined" => {
                Self::Infrastructure
            }
            other => anyhow::bail!("unknown type {other:?}"),
        })
    }
}

/// The fingerprint of an example in TAP, whose last field is `stack`.
fn fingerprint(example: &[String]) -> Option<String> {
    let stack = example
        .iter()
        .skip_while(|line| !line.starts_with("  stack:"))
        .skip(1);
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

/// The value of a row with this name; none for another line.
fn row<'l>(line: &'l str, name: &str) -> anyhow::Result<Option<&'l str>> {
    let value = line.strip_prefix("| ").and_then(|line| line.strip_prefix(name));
    let Some(value) = value.and_then(|value| value.strip_prefix(" | ")) else {
        return Ok(None);
    };
    let value = value.trim_end().strip_suffix('|');
    Ok(Some(value.context("the row does not end with |")?.trim()))
}

/// The time in the first cell of a row, such as `2026-07-15 00:21`.
fn time(row: &str) -> anyhow::Result<Timestamp> {
    let cell = row.trim_start_matches('|').split('|').next().unwrap_or_default();
    let time = format!("{}:00Z", cell.trim().replace(' ', "T"));
    time.parse()
        .with_context(|| format!("no time: {:?}", cell.trim()))
}

/// The runs of `[…](URL of the first) to […](URL of the last) …`.
fn range(text: &str) -> anyhow::Result<(u32, u32)> {
    let mut links = text.split("](").skip(1).map(|link| {
        let url = link.split(')').next().unwrap_or_default();
        run_number(url)
    });
    let (Some(first), Some(last)) = (links.next(), links.next()) else {
        anyhow::bail!("the range needs two runs");
    };
    let runs = (first?, last?);
    ensure!(runs.0 <= runs.1, "the range begins after its end");
    Ok(runs)
}

/// The runs of `2 ([URL of a pull request](URL of a run), …)`.
fn failed_runs(cell: &str) -> anyhow::Result<Vec<(PullRequest, u32)>> {
    let (number, links) = cell.split_once(' ').context("a number and a list expected")?;
    let links = links.strip_prefix('(').and_then(|links| links.strip_suffix(')'));
    let mut runs = Vec::new();
    for link in links.context("the list has no parentheses")?.split("), ") {
        let link = link.strip_prefix('[').context("a link expected")?;
        let (pull_request, url) = link.split_once("](").context("a link expected")?;
        runs.push((
            PullRequest::of(pull_request)?,
            run_number(url.trim_end_matches(')'))?,
        ));
    }
    ensure!(
        number.parse() == Ok(runs.len()),
        "{} runs, not {number}",
        runs.len()
    );
    Ok(runs)
}

fn run_number(url: &str) -> anyhow::Result<u32> {
    let number = url.strip_prefix(RUN_URL).and_then(|url| url.strip_suffix('/'));
    let number = number.and_then(|number| number.parse().ok());
    number.with_context(|| format!("no URL of a run: {url:?}"))
}

impl PullRequest {
    /// Reads the last number of a URL. People type some of them, such as `…/pull/#62401/`.
    fn of(url: &str) -> anyhow::Result<Self> {
        let url = url.trim_end_matches(['/', ' ']);
        let number = url.rsplit(|letter: char| !letter.is_ascii_digit()).next();
        let number = number.and_then(|number| number.parse().ok());
        Ok(Self {
            is_private: url.contains("/node-private/"),
            number: number.with_context(|| format!("no URL of a pull request: {url:?}"))?,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A report with one table of these failed runs, each with its pull request.
    pub(crate) fn report(runs: (u32, u32), time: &str, test: &str, failed: &[(u32, u32)]) -> String {
        let link = |(pull, run): &(u32, u32)| {
            format!("[https://github.com/nodejs/node/pull/{pull}/]({RUN_URL}{run}/)")
        };
        let links: Vec<String> = failed.iter().map(link).collect();
        format!(
            "Failures in [node-test-pull-request/{0}]({RUN_URL}{0}/) to [node-test-pull-request/{1}]({RUN_URL}{1}/) \
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

    const TEST: &str = "parallel/test-fs-watch";

    #[test]
    fn a_report_has_a_range_a_time_and_the_runs_of_each_failure() {
        let text = report(
            (61_855, 61_950),
            "2024-09-05 00:09",
            TEST,
            &[(54_682, 61_858), (7, 61_859)],
        );
        let report = parse(&text).unwrap();
        assert_eq!(report.runs, (61_855, 61_950));
        assert_eq!(report.at, "2024-09-05T00:09:00Z".parse().unwrap());
        assert_eq!(report.largest_suite, 4_100);
        let [failure] = report.failures.as_slice() else {
            panic!("{report:?}");
        };
        assert_eq!((failure.reason.as_str(), failure.kind), (TEST, FailureKind::Test));
        assert!(failure.error.is_some());
        let runs: Vec<(u64, u32)> = failure
            .runs
            .iter()
            .map(|(pull, run)| (pull.number, *run))
            .collect();
        assert_eq!(runs, [(54_682, 61_858), (7, 61_859)]);
    }

    #[test]
    fn kinds_and_typed_urls_are_understood() {
        for (kind, reason, expected) in [
            ("CC_TEST_FAILURE", "UtilTest.Split", FailureKind::Test),
            ("JS_TEST_FAILURE", "- /home/lib/url.js", FailureKind::LintedFile),
            (
                "BUILD_FAILURE",
                "fatal: No rebase in progress?",
                FailureKind::Build,
            ),
            ("GIT_FAILURE", "timeout", FailureKind::Infrastructure),
        ] {
            assert_eq!(FailureKind::of(kind, reason).unwrap(), expected);
        }
        for url in [
            "/pull/#62401/",
            "/pull/62401 /",
            "/pull/https://github.com/nodejs/node/pull/62401/",
        ] {
            let url = format!("https://github.com/nodejs/node{url}");
            let expected = PullRequest {
                is_private: false,
                number: 62_401,
            };
            assert_eq!(PullRequest::of(&url).unwrap(), expected);
        }
        let private = PullRequest::of("https://github.com/nodejs-private/node-private/pull/640/");
        assert!(private.unwrap().is_private);
    }

    #[test]
    fn a_malformed_report_is_refused_with_its_file_and_line() {
        let text = report(
            (61_855, 61_950),
            "2024-09-05 00:09",
            TEST,
            &[(54_682, 61_858), (7, 61_859)],
        );
        for (from, to, line) in [
            ("JS_TEST_FAILURE", "PY_TEST_FAILURE", 11),
            ("2 (", "3 (", 12),
            ("pull/7/", "pull/", 12),
            ("request/61859/", "request/x/", 12),
            ("2024-09-05 00:09", "yesterday", 5),
            ("/61950/)", "/1/)", 1),
            ("Failures in", "Failures", 22),
            ("  ...\n```", "  ...", 21),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let malformed = text.replace(from, to);
            assert_ne!(malformed, text);
            std::fs::write(folder.path().join("2024-09-05.md"), malformed).unwrap();
            let error = format!("{:#}", read(folder.path()).unwrap_err());
            assert!(
                error.contains(&format!("2024-09-05.md: line {line}: ")),
                "{error}"
            );
        }
        assert!(read(tempfile::tempdir().unwrap().path()).is_err());
    }
}
