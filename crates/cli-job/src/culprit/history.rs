//! The runs of a test on the stable branch, from the server's answer about the test.

use serde::Deserialize;
use serde_json::Value;

/// The flake rate of a test of which nothing is known.
pub(crate) const USUAL_RATE: f64 = 0.05;
/// The number of runs with the usual rate that a history counts besides its own.
const USUAL_RUNS: f64 = 20.0;

/// The reason why a history does not say which commits to search.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The answer has other fields.
    #[error("the server's answer is not about a test")]
    Foreign(#[source] serde_json::Error),
    /// There is no breakage.
    #[error(
        "the stable branch has no failed run of this test after a green one in 90 days; give --good and --bad"
    )]
    NoBreakage,
    /// A run is of no commit.
    #[error("the run names no commit; give --good and --bad")]
    NoCommit,
    /// The stored commit is not the name of one. Who sends a report chooses it.
    #[error("{:?} is stored as the commit of a run and is no hash; give --good and --bad", assay_reports::shown_name(.0))]
    NoHash(String),
}

/// The test's runs on the stable branch in the suite that failed last, oldest first.
#[derive(Debug, Clone)]
pub struct History {
    runs: Vec<Occurrence>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TestDetail {
    stable_branch: String,
    occurrences: Vec<Occurrence>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Occurrence {
    branch: Option<String>,
    suite: Option<String>,
    tested_revision: Option<String>,
    commit_sha: Option<String>,
    started_at: String,
    status: String,
    any_failed_attempt: bool,
}

impl Occurrence {
    fn commit(&self) -> Option<&str> {
        self.tested_revision.as_deref().or(self.commit_sha.as_deref())
    }

    fn failed(&self) -> bool {
        !["passed", "skipped"].contains(&self.status.as_str())
    }
}

/// Whether a text is a commit's hash, or the beginning of one.
fn is_hash(commit: &str) -> bool {
    (4..=64).contains(&commit.len()) && commit.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl History {
    /// The runs of the server's answer about a test.
    pub fn of_answer(answer: &Value) -> Result<Self, HistoryError> {
        let detail = TestDetail::deserialize(answer).map_err(HistoryError::Foreign)?;
        let mut runs: Vec<Occurrence> = detail
            .occurrences
            .into_iter()
            .filter(|run| {
                run.branch.as_deref() == Some(detail.stable_branch.as_str()) && run.status != "skipped"
            })
            .collect();
        // RFC 3339 in UTC sorts as text.
        runs.sort_by(|left, right| left.started_at.cmp(&right.started_at));
        // Another variant may be green at the commit that broke this one.
        let last_failed = runs.iter().rev().find(|run| run.failed());
        if let Some(suite) = last_failed.map(|run| run.suite.clone()) {
            runs.retain(|run| run.suite == suite);
        }
        Ok(Self { runs })
    }

    /// The index of the last green run that a failure follows.
    fn last_green(&self) -> Option<usize> {
        let last_failed = self.runs.iter().rposition(Occurrence::failed)?;
        self.runs.iter().take(last_failed).rposition(|run| !run.failed())
    }

    /// The commits of the last green run, and of the first failed one after it.
    pub fn bounds(&self) -> Result<(String, String), HistoryError> {
        let green = self.last_green().ok_or(HistoryError::NoBreakage)?;
        let bad = self.runs.iter().skip(green + 1).find(|run| run.failed());
        let commit = |run: Option<&Occurrence>| {
            let commit = run.and_then(Occurrence::commit).ok_or(HistoryError::NoCommit)?;
            match is_hash(commit) {
                true => Ok(commit.to_owned()),
                false => Err(HistoryError::NoHash(commit.to_owned())),
            }
        };
        Ok((commit(self.runs.get(green))?, commit(bad)?))
    }

    /// The share of runs until the last green one in which an attempt failed, drawn towards the usual rate.
    pub fn flake_rate(&self) -> Option<f64> {
        let green = self.last_green()?;
        let before = self.runs.iter().take(green + 1);
        let (mut failed, mut all) = (USUAL_RUNS * USUAL_RATE, USUAL_RUNS);
        for run in before {
            all += 1.0;
            failed += if run.any_failed_attempt { 1.0 } else { 0.0 };
        }
        Some(failed / all)
    }

    /// The commit and whether it failed, of each run.
    pub(crate) fn results(&self) -> impl Iterator<Item = (&str, bool)> {
        self.runs
            .iter()
            .filter_map(|run| Some((run.commit()?, run.failed())))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(commit: &str, day: u32, status: &str, flaked: bool) -> Value {
        json!({
            "branch": "main", "testedRevision": commit, "commitSha": null,
            "startedAt": format!("2026-11-{day:02}T00:00:00Z"), "status": status, "anyFailedAttempt": flaked,
        })
    }

    fn history(runs: &[Value]) -> History {
        History::of_answer(&json!({ "stableBranch": "main", "occurrences": runs })).unwrap()
    }

    #[test]
    fn the_search_begins_after_the_last_green_run_and_ends_with_the_first_failed_one() {
        let mut other = run("x", 9, "failed", true);
        other["branch"] = json!("feature");
        let history = history(&[
            run("dddd", 4, "failed", true),
            run("cccc", 3, "failed", true),
            run("aaaa", 1, "failed", true),
            run("bbbb", 2, "passed", false),
            run("eeee", 5, "skipped", false),
            other,
        ]);
        assert_eq!(history.bounds().unwrap(), ("bbbb".to_owned(), "cccc".to_owned()));
        let results: Vec<_> = history.results().collect();
        assert_eq!(
            results,
            [("aaaa", true), ("bbbb", false), ("cccc", true), ("dddd", true)]
        );
    }

    #[test]
    fn another_suite_that_is_green_does_not_hide_a_breakage() {
        let of = |commit, day, status, suite: &str| {
            let mut run = run(commit, day, status, false);
            run["suite"] = json!(suite);
            run
        };
        let history = history(&[
            of("aaaa", 1, "passed", "linux"),
            of("aaaa", 2, "passed", "mac"),
            of("bbbb", 3, "failed", "linux"),
            of("bbbb", 4, "passed", "mac"),
        ]);
        assert_eq!(history.bounds().unwrap(), ("aaaa".to_owned(), "bbbb".to_owned()));
    }

    #[test]
    fn only_runs_before_the_breakage_count_as_flakes() {
        let rate = |flaked| {
            let mut runs: Vec<Value> = (1..=20).map(|day| run("g", day, "passed", flaked)).collect();
            runs.extend((21..=25).map(|day| run("b", day, "failed", true)));
            history(&runs).flake_rate().unwrap()
        };
        assert!((rate(false) - 1.0 / 40.0).abs() < 1e-9);
        assert!((rate(true) - 21.0 / 40.0).abs() < 1e-9);
    }

    #[test]
    fn a_history_without_a_breakage_or_commit_is_refused() {
        let green = history(&[run("a", 1, "passed", false)]);
        assert!(matches!(green.bounds(), Err(HistoryError::NoBreakage)));
        assert_eq!(green.flake_rate(), None);
        let mut nameless = run("b", 2, "failed", true);
        nameless["testedRevision"] = Value::Null;
        let nameless = history(&[run("aaaa", 1, "passed", false), nameless]);
        assert!(matches!(nameless.bounds(), Err(HistoryError::NoCommit)));
        for commit in ["--output=/tmp/file", "main", "abc", "HEAD~1"] {
            let foreign = history(&[run(commit, 1, "passed", false), run("bbbb", 2, "failed", true)]);
            let refused = foreign.bounds().unwrap_err();
            assert!(
                matches!(&refused, HistoryError::NoHash(of) if of == commit),
                "{refused}"
            );
        }
        assert!(History::of_answer(&json!({})).is_err());
    }
}
