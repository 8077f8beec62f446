//! What the stable branch shows of a fix.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{FixOutcome, FixState, StoredFix, is_stored_commit};
use crate::{
    id::RunId,
    revision::{is_same_revision, revision_order, tested_or_commit},
    timestamp::Timestamp,
};

/// A run of a test on the stable branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixRun {
    /// Its id.
    pub id: RunId,
    /// Its number within the project.
    pub number: i32,
    /// Its start.
    pub started_at: Timestamp,
    /// The revision that it tested.
    pub tested_revision: Option<String>,
    /// Its commit.
    pub commit_sha: Option<String>,
    /// Its suite.
    pub suite: Option<String>,
    /// Whether an attempt of the test failed.
    pub failed: bool,
    /// Whether most tests of the run failed, at least three.
    pub most_failed: bool,
    /// The title of the last failed attempt's error.
    pub error: Option<String>,
}

/// The stored fixes of a test, and what they are compared with.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TestFixes {
    /// The fixes, the newest first, each with its state at the time when it was decided.
    pub fixes: Vec<(StoredFix, Option<ShownFix>)>,
    /// Its runs on the stable branch, the oldest first, without skips.
    pub runs: Vec<FixRun>,
}

/// What the stable branch shows of a fix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ShownFix {
    /// What the stable branch shows.
    pub state: FixState,
    /// The clean runs of the stable branch since the commit, on variants on which the test failed before.
    pub clean_runs: u32,
    /// The clean runs after which the fix holds, by the rate before; 298 where that is not known.
    pub runs_needed: u32,
    /// The run that failed; of a fix that held, the first one that failed after that.
    pub failed_run: Option<RunId>,
}

/// A fix, and what the stable branch shows of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WatchedFix {
    /// What was reported.
    #[serde(flatten)]
    pub fix: StoredFix,
    /// What the stable branch shows.
    #[serde(flatten)]
    pub shown: ShownFix,
    /// The run that decided whether the fix holds; none if it is not decided, or was before.
    #[serde(skip)]
    pub decided_by: Option<FixRun>,
}

impl TestFixes {
    /// Watches the fixes. `by_calendar` says that the test fails at certain times only: clean runs at others do not hold.
    /// `runs_needed` are the clean runs that a rate before asks for. A decision stays when its runs are too old.
    pub fn watched(&self, by_calendar: bool, runs_needed: impl Fn(Option<f64>) -> u32) -> Vec<WatchedFix> {
        let outcome = |fix: &StoredFix| fix.check.map(|check| check.outcome);
        // A failure of the same commit outweighs its proofs.
        let has_failed = |revision: &str| {
            self.fixes.iter().any(|(fix, _)| {
                matches!(outcome(fix), Some(FixOutcome::StillFlaky | FixOutcome::Differs))
                    && is_same_revision(&fix.revision, revision)
            })
        };
        let watched = self.fixes.iter().cloned().map(|(fix, decided)| {
            let is_proved = outcome(&fix) == Some(FixOutcome::Proved) && !has_failed(&fix.revision);
            let needed = runs_needed(fix.rate_before);
            let (shown, decided_by) = match is_proved || fix.check.is_none() {
                true => watch(&fix.revision, &self.runs, by_calendar, needed),
                false => (ShownFix::of(FixState::Unproved, needed), None),
            };
            let decided_by = decided_by.filter(|_| decided.is_none()).cloned();
            let outlived = decided.filter(|decided| decided.state != shown.state);
            WatchedFix {
                fix,
                shown: outlived.unwrap_or(shown),
                decided_by,
            }
        });
        watched.collect()
    }
}

impl ShownFix {
    const fn of(state: FixState, runs_needed: u32) -> Self {
        Self {
            state,
            clean_runs: 0,
            runs_needed,
            failed_run: None,
        }
    }
}

/// What the runs show of a claim, and the run that decided it.
fn watch<'a>(
    revision: &str,
    runs: &'a [FixRun],
    by_calendar: bool,
    runs_needed: u32,
) -> (ShownFix, Option<&'a FixRun>) {
    let (before, since) = around(runs, revision);
    let state = match since.is_empty() {
        true => FixState::Waiting,
        false => FixState::Watching,
    };
    let mut shown = ShownFix::of(state, runs_needed);
    let failures = || before.iter().filter(|run| run.failed);
    let failed_on: BTreeSet<&Option<String>> = failures().map(|run| &run.suite).collect();
    let errors: BTreeSet<&String> = failures().filter_map(|run| run.error.as_ref()).collect();
    // A fix may change values in the text, so the same title is enough. A failure without a text agrees with any.
    let is_old =
        |run: &FixRun| errors.is_empty() || run.error.as_ref().is_none_or(|error| errors.contains(error));
    let mut since = since
        .into_iter()
        .filter(|run| failed_on.is_empty() || failed_on.contains(&run.suite));
    while let Some(run) = since.next() {
        if !run.failed {
            shown.clean_runs += 1;
            if shown.clean_runs >= runs_needed && !by_calendar {
                shown.state = FixState::Held;
                shown.failed_run = since.find(|run| run.failed).map(|run| run.id);
                return (shown, Some(run));
            }
        } else if is_old(run) && !run.most_failed {
            shown.state = FixState::DidNotHold;
            shown.failed_run = Some(run.id);
            return (shown, Some(run));
        } else if shown.state != FixState::FailsDifferently {
            // Another error or a crowd, such as in an outage, is no evidence for or against the fix.
            shown.state = FixState::FailsDifferently;
            shown.failed_run = Some(run.id);
        }
    }
    (shown, None)
}

/// The runs on revisions before this one, and those from it on. A revision has the place of its first run on the stable
/// branch, so that a later run of an old one shows nothing of the fix.
fn around<'a>(runs: &'a [FixRun], revision: &str) -> (Vec<&'a FixRun>, Vec<&'a FixRun>) {
    let places = revision_order(runs.iter().map(|run| {
        let code = tested_or_commit(run.tested_revision.as_deref(), run.commit_sha.as_deref());
        (code, (run.started_at, run.number))
    }));
    let placed = || runs.iter().zip(places.iter().map(|(first, _)| *first));
    let is_of = |run: &FixRun| {
        let commits = [run.tested_revision.as_deref(), run.commit_sha.as_deref()];
        let is_named =
            |commit: &str| commit == revision || is_stored_commit(revision) && commit.starts_with(revision);
        commits.into_iter().flatten().any(is_named)
    };
    let own = placed()
        .filter(|(run, _)| is_of(run))
        .map(|(_, place)| place)
        .min();
    let is_before = |(_, place): &(_, _)| own.is_none_or(|own| *place < own);
    let (before, since): (Vec<_>, Vec<_>) = placed().partition(is_before);
    let runs = |placed: Vec<(&'a FixRun, _)>| placed.into_iter().map(|(run, _)| run).collect();
    (runs(before), runs(since))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A failure with the error of before, in a run in which most tests failed.
    const CROWD: &str = "crowd";

    /// A history of the stable branch, oldest first: the commit, the suite, and the title of the failure.
    type Runs<'a> = &'a [(&'a str, Option<&'a str>, Option<&'a str>)];

    fn run_id(number: usize) -> RunId {
        format!("019aa3f4-5b1c-7def-8a3b-{number:012}").parse().unwrap()
    }

    fn history(runs: Runs<'_>) -> Vec<FixRun> {
        let of = |(number, (commit, suite, failure)): (usize, &(&str, Option<&str>, Option<&str>))| FixRun {
            id: run_id(number),
            number: i32::try_from(number).unwrap(),
            started_at: Timestamp::from_unix_ms(i64::try_from(number).unwrap()),
            tested_revision: None,
            commit_sha: Some((*commit).to_owned()),
            suite: suite.map(str::to_owned),
            failed: failure.is_some(),
            most_failed: *failure == Some(CROWD),
            error: failure.map(|error| if error == CROWD { "timed out" } else { error }.to_owned()),
        };
        runs.iter().enumerate().map(of).collect()
    }

    fn claim() -> StoredFix {
        StoredFix {
            stored_at: Timestamp::from_unix_ms(0),
            revision: "c0ffee1".to_owned(),
            rate_before: None,
            check: None,
        }
    }

    #[test]
    fn the_stable_branch_since_the_commit_shows_whether_a_fix_holds() {
        use FixState::{DidNotHold, FailsDifferently, Held, Waiting, Watching};
        let state = |runs: Runs<'_>| {
            let (shown, by) = {
                let runs = history(runs);
                let (shown, by) = watch("c0ffee1", &runs, false, 58);
                (shown, by.map(|run| run.number))
            };
            assert_eq!(by.is_some(), matches!(shown.state, Held | DidNotHold));
            (shown.state, shown.clean_runs)
        };
        let before = ("b0ffee1", None, Some("timed out"));
        let (clean, failed) = (
            ("c0ffee1abc", None, None),
            ("c0ffee1abc", None, Some("timed out")),
        );
        let differs = ("d0ffee1", None, Some("no such key"));
        assert_eq!(state(&[before]), (Waiting, 0));
        assert_eq!(state(&[before, clean, clean]), (Watching, 2));
        assert_eq!(state(&[before, clean, failed]), (DidNotHold, 1));
        assert_eq!(state(&[clean, failed]), (DidNotHold, 1));
        // The error of before refutes the fix after another one, too.
        assert_eq!(state(&[before, clean, differs, clean]), (FailsDifferently, 2));
        assert_eq!(
            state(&[before, clean, differs, clean, failed, clean]),
            (DidNotHold, 2)
        );
        let crowd = ("d0ffee1", None, Some(CROWD));
        assert_eq!(state(&[before, clean, crowd, clean]), (FailsDifferently, 2));
        // Where it never failed before, it proves nothing.
        let elsewhere = ("c0ffee1abc", Some("windows"), None);
        assert_eq!(state(&[before, elsewhere, clean]), (Watching, 1));
        // Nor does a run of an older revision, whenever it ran.
        let old = ("b0ffee1", None, None);
        assert_eq!(state(&[before, clean, before, old, clean]), (Watching, 2));
        let mut enough = vec![before];
        enough.extend([clean; 58]);
        assert_eq!(state(&enough), (Held, 58));
        // An outage does not end the watch.
        enough.insert(9, differs);
        assert_eq!(state(&enough), (Held, 58));
        enough.remove(9);
        // Clean runs hold no fix of a test that fails at certain times only.
        assert_eq!(watch("c0ffee1", &history(&enough), true, 58).0.state, Watching);
        // A later failure is another flake, and named.
        enough.push(failed);
        assert_eq!(state(&enough), (Held, 58));
        let runs = history(&enough);
        let (shown, by) = watch("c0ffee1", &runs, false, 58);
        assert_eq!(
            (shown.failed_run, by.map(|run| run.number)),
            (Some(run_id(59)), Some(58))
        );
    }

    #[test]
    fn a_decision_outlives_its_runs() {
        let runs = history(&[("b0ffee1", None, Some("timed out")), ("c0ffee1", None, None)]);
        let watched = |decided, runs| {
            let fixes = TestFixes {
                fixes: vec![(claim(), decided)],
                runs,
            };
            fixes.watched(false, |_| 1).pop().unwrap().shown
        };
        let held = watched(None, runs);
        assert_eq!((held.state, held.clean_runs), (FixState::Held, 1));
        assert_eq!(watched(None, Vec::new()).state, FixState::Waiting);
        assert_eq!(watched(Some(held.clone()), Vec::new()), held);
    }
}
