//! Ejections: why a merge queue did not merge a pull request, and whose failure it was.
//!
//! A queue takes changes that passed alone, and tests each with those ahead of it. The run ahead shows whether the failure
//! came before this change. The pull request's own run shows whether the change fails alone.

use assay_domain::{
    cause::Cause,
    id::RunId,
    merge_queue::{MergeQueue, is_queue_branch},
    observation::{History, RunFacts},
    project::Project,
    revision::is_same_revision,
    run::Outcome,
    store::{Store, StoreError, in_snapshot},
    test::TestOrdinal,
    timestamp::Timestamp,
};
use assay_flakiness::Diagnose;

use crate::{
    commit::{CommitRuns, commit_results},
    failures::{CauseProbabilities, ExplainedFailure, FailureFilter},
};

/// The window of the runs ahead in the queue, in days.
const AHEAD_DAYS: i64 = 14;
/// A test that fails in fewer runs seldom fails by chance in two runs of a queue, one after the other, and so do two such
/// tests in one run.
const OFTEN: f64 = 0.03;
/// A breakage by a change is likely from this probability on.
const LIKELY: f64 = 0.5;
/// Most failures of a queue's run that are compared.
const MOST_FAILURES: u32 = 200;

/// Whose a failure in a merge queue is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The pull request's: the test failed in its own run, too.
    PullRequest,
    /// That of the pull request with what it was merged with: the test did not fail in its own run.
    Combination,
    /// That of a pull request ahead: the test failed in the run on which this one was built.
    Ahead,
    /// The base's: it was broken before.
    Base,
    /// The test is flaky.
    Chance,
    /// The run's, or its environment's.
    Environment,
    /// No cause is probable enough.
    Unclear,
}

/// A merge queue's failed run of a pull request, with its most probable breakage.
#[derive(Debug, Clone)]
pub struct Ejection {
    /// The run.
    pub run: RunId,
    /// Its number.
    pub run_number: i32,
    /// What it tested.
    pub queue: MergeQueue,
    /// The number of failed tests.
    pub failed: u32,
    /// The failed test that the merge broke most probably; none if the run failed outside of its tests.
    pub test: Option<BlamedTest>,
}

/// A failed test of a merge queue's run.
#[derive(Debug, Clone)]
pub struct BlamedTest {
    /// Its name.
    pub name: String,
    /// Its file.
    pub file: Option<String>,
    /// Whose the failure is.
    pub blame: Blame,
    /// The probabilities of its causes. That of this change is of any change in the queue.
    pub probabilities: CauseProbabilities,
}

/// What the other runs say of a test that failed in a merge queue.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct OtherRuns {
    /// Whether it failed in the pull request's own run.
    pub failed_alone: bool,
    /// Whether it failed in the run ahead.
    pub failed_ahead: bool,
    /// The share of the other runs outside of queues in which it failed.
    pub rate: f64,
}

impl OtherRuns {
    /// The results of a test in the pull request's own runs, and in the run ahead of a queue's run.
    pub fn of(
        history: &History,
        test: TestOrdinal,
        is_own: impl Fn(&RunFacts) -> bool,
        queue: &MergeQueue,
    ) -> Self {
        let is_ahead = |run: &RunFacts| {
            let base = queue.base_revision.as_deref().zip(run.revision.as_deref());
            base.is_some_and(|(base, revision)| is_same_revision(base, revision))
        };
        let mut of = Self::default();
        let (mut others, mut failed_others) = (0_u32, 0_u32);
        for observed in history.runs.iter().filter(|observed| observed.ran(test)) {
            let (run, failed) = (&observed.run, observed.failed(test));
            if run.branch.as_deref().is_some_and(is_queue_branch) {
                of.failed_ahead |= failed && is_ahead(run);
            } else if is_own(run) {
                of.failed_alone |= failed;
            } else {
                others += 1;
                failed_others += u32::from(failed);
            }
        }
        of.rate = f64::from(failed_others) / f64::from(others.max(1));
        of
    }

    /// Whether the test seldom fails, also in the run ahead.
    pub fn is_seldom(self) -> bool {
        self.rate < OFTEN && !self.failed_ahead
    }

    /// Whose the failure is, by its most probable cause. `seldom` is the number of failed tests of the run that
    /// [seldom fail](Self::is_seldom).
    pub fn blame(self, cause: Cause, seldom: usize) -> Blame {
        let (alone, is_rare) = (self.failed_alone, self.rate < OFTEN);
        match cause {
            Cause::BrokenBefore => Blame::Base,
            Cause::Flake if !is_rare => Blame::Chance,
            _ if self.failed_ahead => Blame::Ahead,
            Cause::Flake | Cause::Environment if alone && is_rare => Blame::PullRequest,
            Cause::Flake if seldom > 1 => Blame::Combination,
            Cause::Flake => Blame::Chance,
            Cause::Environment => Blame::Environment,
            Cause::Unclear => Blame::Unclear,
            Cause::ThisChange | Cause::EarlierOnBranch if alone => Blame::PullRequest,
            Cause::ThisChange | Cause::EarlierOnBranch => Blame::Combination,
        }
    }
}

/// The ejection that the runs of a pull request show; `None` if its newest run in a merge queue did not fail, or a commit
/// was pushed since.
pub fn ejection(
    store: &dyn Store,
    engine: &dyn Diagnose,
    project: &Project,
    commit: &CommitRuns,
    now: Timestamp,
) -> Result<Option<Ejection>, StoreError> {
    let queued = &commit.queued;
    let failed_run = queued.iter().find(|run| run.status == Some(Outcome::Failed));
    let Some((run, queue)) = failed_run.and_then(|run| Some((run, run.queue.clone()?))) else {
        return Ok(None);
    };
    let requested = (&FailureFilter::default(), (1, MOST_FAILURES));
    let Some(results) = commit_results(store, engine, project, queued, requested, now)? else {
        return Ok(None);
    };
    let failures = results.failures.iter().map(|of| &of.failure);
    let failed: Vec<&ExplainedFailure> = failures.filter(|failure| failure.status.is_failure()).collect();
    // The one that is least probably by chance. Of equal ones the first: the list is in the order of `mine`.
    let broken = |failure: &ExplainedFailure| failure.mine + failure.probabilities.broken_before;
    let in_reverse = failed.iter().rev();
    let worst = in_reverse.max_by(|one, other| broken(one).total_cmp(&broken(other)));
    let starts = queued.iter().map(|run| run.started_at);
    let started = starts.fold(run.started_at, Timestamp::max);
    let blamed = |failure: &&ExplainedFailure| {
        in_snapshot(store, project, |snapshot| {
            let history = snapshot.observations(started.plus_days(-AHEAD_DAYS), started)?;
            let is_own = |run: &RunFacts| commit.runs.iter().any(|own| own.run_number == run.number);
            let known = history.runs.iter().find(|observed| is_own(&observed.run));
            let release_branch = known.and_then(|observed| observed.run.release_branch.clone());
            let history = history.of_stable_branch(release_branch.as_deref());
            let of = |failure: &ExplainedFailure| OtherRuns::of(&history, failure.test, is_own, &queue);
            let seldom = failed.iter().filter(|failure| of(failure).is_seldom()).count();
            Ok(BlamedTest {
                name: failure.test_name.clone(),
                file: failure.file_path.clone(),
                blame: of(failure).blame(failure.cause, seldom),
                probabilities: failure.probabilities,
            })
        })
    };
    Ok(Some(Ejection {
        run: run.id,
        run_number: run.run_number,
        failed: results.counts.failed,
        test: worst.map(blamed).transpose()?,
        queue,
    }))
}

impl Ejection {
    /// What happened and what to do, as one sentence each. `shown` writes the name of a test or branch for the text.
    pub fn sentence(&self, shown: impl Fn(&str) -> String) -> String {
        let base = self.queue.base.as_deref();
        let base = base.map_or_else(|| "the base".to_owned(), &shown);
        let Some(of) = &self.test else {
            return "It failed outside of its tests.".to_owned();
        };
        let (test, causes) = (shown(&of.name), &of.probabilities);
        let of_change = causes.this_change + causes.earlier_on_branch;
        let is_likely = of_change >= LIKELY;
        let [of_change, of_base, of_chance, of_run] =
            [of_change, causes.broken_before, causes.flake, causes.environment]
                .map(|probability| (probability * 100.0).round());
        match of.blame {
            Blame::PullRequest if !is_likely => {
                format!("{test} failed in the pull request's own run, too, and seldom elsewhere. Fix it.")
            }
            Blame::PullRequest => format!(
                "{test} failed in the pull request's own run, too ({of_change} % by its change). Fix it."
            ),
            Blame::Combination if !is_likely => format!(
                "{test} failed with another test that seldom fails, and not in the pull request's own run. Together they \
                 seldom fail by chance. Queue it again once, then rebase the change and fix it."
            ),
            Blame::Combination => {
                let with = match self.queue.pull_requests.len() {
                    0 | 1 => format!("what {base} and the queue had got"),
                    _ => "the others of its batch".to_owned(),
                };
                format!(
                    "{test} did not fail in the pull request's own run. It broke together with {with} \
                     ({of_change} %). Rebase the change and fix it."
                )
            }
            Blame::Ahead => format!(
                "{test} failed in the run ahead, too, so this pull request did not break it. Queue it again."
            ),
            Blame::Base => {
                format!("{base} was broken before ({of_base} %): {test}. Queue it again after the fix.")
            }
            Blame::Chance => {
                format!("{test} most probably failed by chance ({of_chance} %). Queue it again.")
            }
            Blame::Environment => {
                format!("{test} failed because of the run or its environment ({of_run} %). Queue it again.")
            }
            Blame::Unclear => {
                format!("No cause of the failure of {test} is probable enough. Queue it again.")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use assay_domain::observation::{Failure, RunObservations};

    use super::*;

    fn run(number: i32, branch: &str, revision: &str, fails: bool) -> RunObservations {
        let mut observed = RunObservations::of(RunFacts {
            id: format!("run-{number}").into(),
            number,
            started_at: Timestamp::from_unix_ms(i64::from(number)),
            branch: Some(branch.into()),
            revision: Some(revision.into()),
            ..RunFacts::default()
        });
        observed.present = [0].into_iter().collect();
        observed.failures.extend(fails.then_some(Failure {
            test: 0,
            recovered: false,
            failed_attempts: 1,
            lost_ms: None,
        }));
        observed
    }

    /// Whose the failure of run 3 is, if this change or something else caused it. So many of its tests seldom fail.
    fn blames(own: bool, ahead: bool, seldom: usize) -> [Blame; 3] {
        let history = History {
            stable_branch: "main".into(),
            tests: 1,
            runs: vec![
                run(1, "topic", "abcd", own),
                run(2, "gh-readonly-queue/main/pr-4-0000", "beef00", ahead),
                run(3, "gh-readonly-queue/main/pr-5-beef", "cafe", true),
            ],
        };
        let queue = MergeQueue::of("gh-readonly-queue/main/pr-5-beef", None).unwrap();
        let others = OtherRuns::of(&history, 0, |run| run.number == 1, &queue);
        [Cause::ThisChange, Cause::Flake, Cause::BrokenBefore].map(|cause| others.blame(cause, seldom))
    }

    #[test]
    fn own_run_and_run_ahead_decide_between_the_changes_of_a_queue() {
        for (own, ahead, expected) in [
            (false, false, [Blame::Combination, Blame::Chance]),
            (true, false, [Blame::PullRequest, Blame::PullRequest]),
            (false, true, [Blame::Ahead, Blame::Ahead]),
            (true, true, [Blame::Ahead, Blame::Ahead]),
        ] {
            let [change, chance] = expected;
            assert_eq!(blames(own, ahead, 1), [change, chance, Blame::Base]);
        }
        assert_eq!(
            blames(false, false, 2),
            [Blame::Combination, Blame::Combination, Blame::Base]
        );
    }
}
