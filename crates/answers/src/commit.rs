//! A commit: the newest run of each of its suites, joined.

use std::{cmp::Reverse, collections::BTreeSet};

use assay_domain::{
    id::RunId,
    page::{Page, PerPage},
    period::{Days, Period},
    plan::Plan,
    project::{Project, ProjectTag},
    release_branch::release_branch_of,
    revision::{RevisionOrder, revision_order},
    run::{Counts, Outcome, RunQuery, RunRow, RunStatus, ShardCount, ShardDurations},
    store::{Store, StoreError},
    timestamp::Timestamp,
};
use assay_flakiness::Diagnose;
use serde::Serialize;

use crate::failures::{ExplainedFailure, FailureFilter, Gate, JoinedFailures, joined_failures};

/// Selects a commit: the newest one that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitSelector {
    /// A commit or tested revision, or its beginning, in lower case.
    Sha(String),
    /// A pull request.
    PullRequest(i64),
    /// A branch.
    Branch(String),
}

/// A commit or its beginning in lower case; none if the text is not 4 to 64 hexadecimal digits.
pub fn sha_of(text: &str) -> Option<String> {
    let is_sha = (4..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_sha.then(|| text.to_ascii_lowercase())
}

/// Which runs are joined. A run of a public key may be anyone's, so the two kinds never mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Trusted runs; those of public keys only if no trusted run matches.
    Preferred,
    /// Only trusted runs, or only those of public keys.
    Only(bool),
}

/// The runs of a commit.
#[derive(Debug, Clone)]
pub struct CommitRuns {
    /// The newest run of each suite, the newest first, among the 50 newest runs that match.
    pub runs: Vec<RunRow>,
    /// A run of each other commit that matches, the newest commit first. It has the outcome of the commit's suites together.
    pub other_commits: Vec<RunRow>,
    /// Of a pull request: the newest run of each suite in a merge queue, if no commit was pushed since.
    pub queued: Vec<RunRow>,
}

/// The longest period that a plan keeps, until now.
pub fn longest_period(plan: Plan, now: Timestamp) -> Period {
    Period::ending(now, Days::within(plan, 90).unwrap_or(Days::Thirty))
}

/// The runs of the newest commit that matches; none if no run matches.
pub fn newest_commit(
    store: &dyn Store,
    project: &Project,
    selector: &CommitSelector,
    trust: Trust,
    now: Timestamp,
) -> Result<Option<CommitRuns>, StoreError> {
    let (sha, pull_request, branch) = match selector.clone() {
        CommitSelector::Sha(sha) => (Some(sha), None, None),
        CommitSelector::PullRequest(number) => (None, Some(number), None),
        CommitSelector::Branch(branch) => (None, None, Some(branch)),
    };
    let query = RunQuery {
        branch,
        sha,
        pull_request,
        trusted: Some(match trust {
            Trust::Preferred => true,
            Trust::Only(trusted) => trusted,
        }),
        ..RunQuery::newest(longest_period(project.plan, now), PerPage::Fifty)
    };
    let mut rows = store.runs(project, &query)?.runs;
    if rows.is_empty() && trust == Trust::Preferred {
        let of_public_keys = RunQuery {
            trusted: Some(false),
            ..query
        };
        rows = store.runs(project, &of_public_keys)?.runs;
    }
    Ok(match selector {
        CommitSelector::PullRequest(_) => of_pull_request(rows),
        CommitSelector::Sha(_) | CommitSelector::Branch(_) => joined(rows),
    })
}

/// The newest commit of a pull request, and what its merge queue did with it. A run of a queue is no commit of the pull
/// request, unless only the queue ran its tests.
fn of_pull_request(rows: Vec<RunRow>) -> Option<CommitRuns> {
    let (queued, own): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.queue.is_some());
    let own = since_last_push(own);
    let first_run = order(&own).into_iter().map(|((first_run, _), _)| first_run).max();
    let mut queued = joined(queued).map_or_else(Vec::new, |queued| queued.runs);
    let is_current = |row: &RunRow| first_run.is_none_or(|first| row.started_at >= first);
    if !queued.first().is_some_and(is_current) {
        queued.clear();
    }
    let mut commit = joined(own).or_else(|| joined(queued.clone()))?;
    commit.queued = queued;
    Some(commit)
}

/// Leaves out the runs of a commit before the push that made it the head again. GitHub and GitLab number their builds in
/// the order of pushes and test only the head of a pull request.
fn since_last_push(rows: Vec<RunRow>) -> Vec<RunRow> {
    let build = |row: &RunRow| -> Option<u64> {
        let (page, number) = row.run_url.as_deref()?.rsplit_once('/')?;
        let is_numbered = page.ends_with("/actions/runs") || page.ends_with("/-/pipelines");
        number.parse().ok().filter(|_| is_numbered)
    };
    let is_superseded = |old: &RunRow| {
        let of_others = rows.iter().filter(|row| row.revision() != old.revision());
        let Some(other) = of_others
            .filter_map(build)
            .filter(|other| build(old) < Some(*other))
            .min()
        else {
            return false;
        };
        let of_suite = |new: &&RunRow| new.revision() == old.revision() && new.suite == old.suite;
        build(old).is_some() && rows.iter().filter(of_suite).any(|new| build(new) > Some(other))
    };
    let superseded: Vec<bool> = rows.iter().map(is_superseded).collect();
    let kept = rows
        .into_iter()
        .zip(superseded)
        .filter(|(_, is_superseded)| !is_superseded);
    kept.map(|(row, _)| row).collect()
}

/// The places of runs in the order of revisions: a late job or another run of an older commit makes it no newer one.
fn order(rows: &[RunRow]) -> Vec<RevisionOrder> {
    revision_order(
        rows.iter()
            .map(|row| (row.revision(), (row.started_at, row.run_number))),
    )
}

/// The newest run of each suite of the newest commit, and one run of each other commit; none without a run. A pull request
/// tests a merge of its head, so its run is another one than that of a push.
pub fn joined(rows: Vec<RunRow>) -> Option<CommitRuns> {
    let is_repeated = |newer: &RunRow, row: &RunRow| {
        newer.suite == row.suite && newer.pull_request_number == row.pull_request_number
    };
    let mut ordered: Vec<_> = order(&rows).into_iter().zip(rows).collect();
    ordered.sort_by_key(|(order, _)| Reverse(*order));
    let mut rows = ordered.into_iter().map(|(_, row)| row);
    let mut commits = vec![vec![rows.next()?]];
    for row in rows.filter(|row| row.revision().is_some_and(|revision| !revision.is_empty())) {
        let tested = |runs: &&mut Vec<RunRow>| runs.iter().any(|run| run.revision() == row.revision());
        match commits.iter_mut().find(tested) {
            Some(runs) if runs.iter().any(|run| is_repeated(run, &row)) => {}
            Some(runs) => runs.push(row),
            None => commits.push(vec![row]),
        }
    }
    let mut commits = commits.into_iter();
    let severity = |run: &RunRow| match run.status {
        Some(Outcome::Failed) => 0,
        None => 1,
        Some(Outcome::Passed) => 2,
    };
    Some(CommitRuns {
        runs: commits.next()?,
        other_commits: commits
            .filter_map(|runs| runs.into_iter().min_by_key(severity))
            .collect(),
        queued: Vec::new(),
    })
}

/// The runs of a commit with the causes of their failures.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CommitResults {
    /// The project.
    pub project: ProjectTag,
    /// The commit.
    pub commit: CommitTag,
    /// `failed` if a run failed, else `incomplete` if a run may lack results.
    pub status: RunStatus,
    /// The sums over the runs.
    pub counts: Counts,
    /// The action for all runs together.
    pub gate: Gate,
    /// Whether failures are on the stable branch, where there is nothing to merge.
    pub on_stable: bool,
    /// The stable branch, or the release branch that the commit is for.
    pub stable_branch: String,
    /// The suites that the newest commit of that branch has and this commit does not have. Their jobs may still run, may have
    /// ended without a report, or may not run for this change. Empty for a commit of that branch.
    #[cfg_attr(feature = "openapi", schema(max_items = 50))]
    pub absent_suites: Vec<String>,
    /// The newest run of each suite, the newest first.
    #[cfg_attr(feature = "openapi", schema(max_items = 50))]
    pub runs: Vec<CommitRun>,
    /// The position of this page in the list of failures.
    pub page: Page,
    /// The failed and recovered tests of this page. The failures that this branch most probably caused come first.
    pub failures: Vec<CommitFailure>,
}

/// A commit and its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CommitTag {
    /// The revision that was tested; null if the run names none.
    pub revision: Option<String>,
    /// The commit that CI checked out, such as a merge commit.
    pub commit_sha: Option<String>,
    /// Its branch.
    pub branch: Option<String>,
    /// Its pull request.
    pub pull_request_number: Option<i64>,
    /// The first line of its message.
    pub subject: Option<String>,
    /// Its author.
    pub author_name: Option<String>,
}

/// A run of a commit.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CommitRun {
    /// Its id.
    pub id: RunId,
    /// Its number within the project.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub run_number: i32,
    /// Its suite; null for the default one.
    pub suite: Option<String>,
    /// Its outcome.
    pub status: RunStatus,
    /// Why it may lack results, such as a missing shard; null if it is complete.
    pub incomplete: Option<String>,
    /// False for a run that was sent with a key for pull requests only, which may be public.
    pub trusted: bool,
    /// The earliest start of its shards.
    pub started_at: Timestamp,
    /// The time in which a part of the run ran.
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub duration_ms: Option<i64>,
    /// The counts of its tests.
    pub counts: Counts,
    /// Its shards; null for a run that was not sharded.
    pub shards: Option<ShardCount>,
    /// How long its shards took; null if fewer than two shards have an end.
    pub shard_durations: Option<ShardDurations>,
    /// The page of the CI run, an address of http or https.
    pub run_url: Option<String>,
    /// The action for this run alone.
    pub gate: Gate,
}

/// A test that failed or recovered in a run of a commit.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CommitFailure {
    /// The run.
    pub run_id: RunId,
    /// The run's number.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub run_number: i32,
    /// The run's suite; null for the default one.
    pub suite: Option<String>,
    /// The failure.
    pub failure: ExplainedFailure,
}

/// The runs of a commit with one page of the selected failures, as known when they ran. None if the runs were deleted since
/// they were selected.
pub fn commit_results(
    store: &dyn Store,
    engine: &dyn Diagnose,
    project: &Project,
    runs: &[RunRow],
    requested: (&FailureFilter, (u64, u32)),
    now: Timestamp,
) -> Result<Option<CommitResults>, StoreError> {
    let ids: Vec<RunId> = runs.iter().map(|run| run.id).collect();
    let joined = joined_failures(store, engine, project, &ids, requested, now)?;
    let settings = store.settings(project)?;
    let release_branch = runs.iter().find_map(|run| {
        let own = run.branch.as_deref();
        release_branch_of(&settings.release_branches, own, run.base_branch.as_deref())
    });
    let stable_branch = release_branch.unwrap_or(&settings.stable_branch);
    let absent_suites = absent_suites(store, project, stable_branch, runs, now)?;
    let stable = (stable_branch.to_owned(), absent_suites);
    Ok(results(project.tag(), runs, joined, stable))
}

fn absent_suites(
    store: &dyn Store,
    project: &Project,
    stable_branch: &str,
    runs: &[RunRow],
    now: Timestamp,
) -> Result<Vec<String>, StoreError> {
    let is_stable = |run: &RunRow| run.branch.as_deref() == Some(stable_branch);
    if runs.iter().any(is_stable) {
        return Ok(Vec::new());
    }
    let selector = CommitSelector::Branch(stable_branch.to_owned());
    let stable = newest_commit(store, project, &selector, Trust::Only(true), now)?;
    let runs_of_stable = stable.into_iter().flat_map(|commit| commit.runs);
    let is_absent = |suite: &String| runs.iter().all(|run| run.suite.as_ref() != Some(suite));
    let suites = runs_of_stable.filter_map(|run| run.suite).filter(is_absent);
    Ok(BTreeSet::from_iter(suites).into_iter().collect())
}

fn results(
    project: ProjectTag,
    rows: &[RunRow],
    joined: JoinedFailures,
    (stable_branch, absent_suites): (String, Vec<String>),
) -> Option<CommitResults> {
    let row = |id: RunId| rows.iter().find(|row| row.id == id);
    let newest = joined.runs.first().and_then(|newest| row(newest.run.id))?;
    let commit = CommitTag {
        revision: newest.revision().map(str::to_owned),
        commit_sha: newest.commit_sha.clone(),
        branch: newest.branch.clone(),
        pull_request_number: newest.pull_request_number,
        subject: newest.subject().map(str::to_owned),
        author_name: newest.author_name.clone(),
    };
    let of_failure = joined.failures.into_iter().filter_map(|(place, failure)| {
        let row = row(joined.runs.get(place)?.run.id)?;
        Some(CommitFailure {
            run_id: row.id,
            run_number: row.run_number,
            suite: row.suite.clone(),
            failure,
        })
    });
    let failures = of_failure.collect();
    let on_stable = joined.runs.iter().any(|run| run.on_stable);
    let of_run = joined.runs.into_iter().filter_map(|joined| {
        let row = row(joined.run.id)?;
        Some(CommitRun {
            id: row.id,
            run_number: row.run_number,
            suite: row.suite.clone(),
            status: row.status.into(),
            incomplete: joined.run.incomplete,
            trusted: row.trusted,
            started_at: row.started_at,
            duration_ms: row.duration_ms,
            counts: row.counts,
            shards: row.shards,
            shard_durations: joined.run.shard_durations,
            run_url: row.run_url.clone(),
            gate: joined.gate,
        })
    });
    let runs: Vec<CommitRun> = of_run.collect();
    Some(CommitResults {
        project,
        commit,
        status: status(&runs),
        counts: sum(&runs),
        gate: joined.gate,
        on_stable,
        stable_branch,
        absent_suites,
        runs,
        page: joined.page,
        failures,
    })
}

impl CommitRun {
    /// Its outcome; incomplete for a passed run that may lack results.
    pub fn state(&self) -> RunStatus {
        match (self.status, &self.incomplete) {
            (RunStatus::Passed, Some(_)) => RunStatus::Incomplete,
            (status @ (RunStatus::Passed | RunStatus::Failed | RunStatus::Incomplete), _) => status,
        }
    }
}

fn status(runs: &[CommitRun]) -> RunStatus {
    [RunStatus::Failed, RunStatus::Incomplete]
        .into_iter()
        .find(|state| runs.iter().any(|run| run.state() == *state))
        .unwrap_or(RunStatus::Passed)
}

fn sum(runs: &[CommitRun]) -> Counts {
    runs.iter().fold(Counts::default(), |sum, run| Counts {
        total: sum.total.saturating_add(run.counts.total),
        passed: sum.passed.saturating_add(run.counts.passed),
        failed: sum.failed.saturating_add(run.counts.failed),
        skipped: sum.skipped.saturating_add(run.counts.skipped),
        recovered: sum.recovered.saturating_add(run.counts.recovered),
    })
}

#[cfg(test)]
mod tests {
    use assay_domain::merge_queue::MergeQueue;

    use super::*;

    fn row(number: i32, revision: &str, suite: &str) -> RunRow {
        RunRow {
            id: RunId("019aa3f4-5b1c-7def-8a3b-000000000812".parse().unwrap()),
            run_number: number,
            branch: None,
            commit_sha: (!revision.is_empty()).then(|| revision.to_owned()),
            tested_revision: None,
            base_branch: None,
            pull_request_number: None,
            queue: None,
            status: None,
            started_at: Timestamp::from_unix_ms(i64::from(number)),
            finished_at: None,
            duration_ms: None,
            counts: Counts::default(),
            trusted: true,
            complete: true,
            shards: None,
            suite: (!suite.is_empty()).then(|| suite.to_owned()),
            commit_message: None,
            author_name: None,
            run_url: None,
            pull_request_title: None,
        }
    }

    #[test]
    fn the_newest_run_of_each_suite_of_the_newest_commit_is_joined() {
        let rows = vec![
            row(9, "b", "unit"),
            row(8, "a", "unit"),
            row(7, "b", "e2e"),
            row(6, "b", "unit"),
            row(5, "", "lint"),
            row(4, "a", "e2e"),
        ];
        let commit = joined(rows).unwrap();
        let numbers = |rows: &[RunRow]| rows.iter().map(|row| row.run_number).collect::<Vec<_>>();
        assert_eq!(numbers(&commit.runs), [9, 7]);
        assert_eq!(numbers(&commit.other_commits), [8]);
    }

    #[test]
    fn an_earlier_commit_has_the_outcome_of_all_its_suites() {
        let with = |status, row: RunRow| RunRow { status, ..row };
        let earlier = |first, second| {
            let rows = vec![
                row(9, "b", "unit"),
                with(second, row(8, "a", "e2e")),
                with(first, row(7, "a", "unit")),
                with(Some(Outcome::Failed), row(6, "a", "unit")),
            ];
            joined(rows).unwrap().other_commits[0].status
        };
        let (passed, failed) = (Some(Outcome::Passed), Some(Outcome::Failed));
        assert_eq!(earlier(failed, passed), failed);
        assert_eq!(earlier(None, failed), failed);
        assert_eq!(earlier(None, passed), None);
        assert_eq!(earlier(passed, passed), passed);
    }

    #[test]
    fn a_late_run_of_an_older_commit_is_no_newest_commit() {
        let rows = vec![row(9, "a", "e2e"), row(8, "b", "unit"), row(7, "a", "unit")];
        let commit = joined(rows).unwrap();
        let numbers = |rows: &[RunRow]| rows.iter().map(|row| row.run_number).collect::<Vec<_>>();
        assert_eq!(numbers(&commit.runs), [8]);
        assert_eq!(numbers(&commit.other_commits), [9]);
    }

    #[test]
    fn a_commit_that_is_pushed_again_is_the_newest_again() {
        let of_build = |number, revision, build: i32| RunRow {
            run_url: Some(format!("https://github.com/shop/web/actions/runs/{build}")),
            ..row(number, revision, "unit")
        };
        let newest = |rows: Vec<RunRow>| of_pull_request(rows).map(|of| of.runs[0].run_number);
        let (first, second) = (of_build(1, "a", 10), of_build(2, "b", 20));
        let with = |third: RunRow| newest(vec![third, second.clone(), first.clone()]);
        assert_eq!(with(of_build(3, "a", 30)), Some(3));
        // A late build of the first push, and one that ran again.
        assert_eq!(with(of_build(3, "a", 11)), Some(2));
        assert_eq!(with(of_build(3, "a", 10)), Some(2));
        assert_eq!(with(row(3, "a", "unit")), Some(2));
    }

    #[test]
    fn a_queue_s_run_is_no_commit_of_its_pull_request_and_ends_with_the_next_push() {
        let queued = |number, revision| RunRow {
            queue: MergeQueue::of("merge-requests/5/train", None),
            ..row(number, revision, "unit")
        };
        let numbers = |rows: &[RunRow]| rows.iter().map(|row| row.run_number).collect::<Vec<_>>();
        let of = |rows: Vec<RunRow>| of_pull_request(rows).map(|of| (numbers(&of.runs), numbers(&of.queued)));
        let again = row(8, "a", "unit");
        let (first, pushed) = (row(6, "a", "unit"), row(9, "b", "unit"));
        assert_eq!(of(vec![queued(7, "q"), first.clone()]), Some((vec![6], vec![7])));
        assert_eq!(
            of(vec![again, queued(7, "q"), first.clone()]),
            Some((vec![8], vec![7]))
        );
        assert_eq!(of(vec![pushed, queued(7, "q"), first]), Some((vec![9], vec![])));
        assert_eq!(of(vec![queued(7, "q")]), Some((vec![7], vec![7])));
    }

    #[test]
    fn runs_without_a_revision_are_not_joined() {
        let commit = joined(vec![row(2, "", "unit"), row(1, "", "e2e")]).unwrap();
        assert_eq!((commit.runs.len(), commit.other_commits.len()), (1, 0));
        assert!(joined(Vec::new()).is_none());
    }
}
