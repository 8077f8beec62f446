//! What the stable branch shows of a fix.

use std::collections::{BTreeSet, HashMap};

use assay_domain::{
    fix::{FixState, StoredFix, is_stored_commit},
    history::{Occurrence, TestHistory},
    id::RunId,
    project::Project,
    revision::{revision_order, tested_or_commit},
    signature::Classifier as _,
    store::{Store, StoreError},
    test::TestName,
    timestamp::Timestamp,
};
use assay_fingerprint::Fingerprinter;
use assay_flakiness::plan::fix::{CleanRuns, GOOD_ENOUGH, bound};

use super::WatchedFix;

/// Most failures before a fix whose errors are those of before, the newest ones.
const MOST_BEFORE: usize = 5;
/// Most failures after a fix that are compared with them, the oldest ones.
const MOST_AFTER: usize = 20;

/// A fix with what the stable branch shows of it, as far as that does not depend on errors.
pub(super) struct Watch<'a> {
    watched: WatchedFix,
    /// The newest failures before the fix.
    before: Vec<&'a Occurrence>,
    /// The oldest failures after it and before it held, each with the number of clean runs until then.
    after: Vec<(&'a Occurrence, u32)>,
}

impl<'a> Watch<'a> {
    /// Clean runs at other times than those of the calendar do not hold.
    pub(super) fn of(history: &'a TestHistory, fix: StoredFix, is_claimed: bool, by_calendar: bool) -> Self {
        let bound = fix.rate_before.map_or(GOOD_ENOUGH, bound);
        let mut watch = Self {
            watched: WatchedFix {
                state: FixState::Unproved,
                clean_runs: 0,
                runs_needed: CleanRuns::Builds.needed(bound),
                failed_run: None,
                fix,
            },
            before: Vec::new(),
            after: Vec::new(),
        };
        let watched = &mut watch.watched;
        if !is_claimed {
            return watch;
        }
        let (before, since) = around(history, &watched.fix.revision);
        watched.state = match since.is_empty() {
            true => FixState::Waiting,
            false => FixState::Watching,
        };
        let failed_on: BTreeSet<Option<&str>> = failures(&before).map(|run| run.suite.as_deref()).collect();
        let counts = |run: &&Occurrence| failed_on.is_empty() || failed_on.contains(&run.suite.as_deref());
        let mut since = since.into_iter().filter(counts);
        while let Some(run) = since.next() {
            if run.any_failed_attempt {
                watch.after.push((run, watched.clean_runs));
                continue;
            }
            watched.clean_runs += 1;
            if watched.clean_runs >= watched.runs_needed && !by_calendar {
                watched.state = FixState::Held;
                watched.failed_run = since.find(|run| run.any_failed_attempt).map(|run| run.run_id);
                break;
            }
        }
        watch.after.truncate(MOST_AFTER);
        if !watch.after.is_empty() {
            watch.before = failures(&before).collect();
            watch
                .before
                .drain(..watch.before.len().saturating_sub(MOST_BEFORE));
        }
        watch
    }

    /// The fix, which an error of before refutes. A failure without a text agrees with any.
    fn compared(mut self, titles: &HashMap<RunId, String>) -> WatchedFix {
        let of_run = |run: &Occurrence| titles.get(&run.run_id);
        let old: BTreeSet<&String> = self.before.iter().filter_map(|run| of_run(run)).collect();
        let is_old = |run: &Occurrence| old.is_empty() || of_run(run).is_none_or(|title| old.contains(title));
        if let Some((run, clean_runs)) = self.after.iter().find(|(run, _)| is_old(run)) {
            self.watched.state = FixState::DidNotHold;
            self.watched.failed_run = Some(run.run_id);
            self.watched.clean_runs = *clean_runs;
        } else if let Some((run, _)) = self
            .after
            .first()
            .filter(|_| self.watched.state != FixState::Held)
        {
            // Another error, such as that of an outage, is no evidence for or against the fix.
            self.watched.state = FixState::FailsDifferently;
            self.watched.failed_run = Some(run.run_id);
        }
        self.watched
    }
}

/// The fixes with their states by the errors of their failures.
pub(super) fn with_errors(
    store: &dyn Store,
    project: &Project,
    test: &TestName,
    fixes: Vec<Watch<'_>>,
) -> Result<Vec<WatchedFix>, StoreError> {
    let of_fix = |watch: &Watch<'_>| -> Vec<RunId> {
        let after = watch.after.iter().map(|(run, _)| *run);
        watch
            .before
            .iter()
            .copied()
            .chain(after)
            .map(|run| run.run_id)
            .collect()
    };
    let runs: BTreeSet<RunId> = fixes.iter().flat_map(of_fix).collect();
    let asked: Vec<_> = runs.into_iter().map(|run| (run, test.clone())).collect();
    let errors = store.last_errors(project, &asked)?;
    // A fix may change values in the text, so the same title is enough.
    let titles: HashMap<RunId, String> = asked
        .iter()
        .zip(&errors)
        .filter_map(|((run, _), errors)| Some((*run, Fingerprinter.classify(errors)?.title)))
        .collect();
    Ok(fixes.into_iter().map(|watch| watch.compared(&titles)).collect())
}

/// The runs of the stable branch on revisions before this one, and those from it on, oldest first, without skips. A revision
/// has the place of its first run, so that a later run of an old one shows nothing of the fix.
fn around<'a>(history: &'a TestHistory, revision: &str) -> (Vec<&'a Occurrence>, Vec<&'a Occurrence>) {
    let on_stable = |run: &&Occurrence| run.branch.as_deref() == Some(history.stable_branch.as_str());
    let mut runs: Vec<&Occurrence> = history
        .occurrences
        .iter()
        .filter(on_stable)
        .filter(|run| !run.status.is_skip())
        .collect();
    runs.reverse();
    let places = revision_order(runs.iter().map(|run| {
        let code = tested_or_commit(run.tested_revision.as_deref(), run.commit_sha.as_deref());
        let seen = run.revision.revision_seen_at.unwrap_or(run.started_at);
        (code, (seen, run.run_number))
    }));
    let runs = runs
        .into_iter()
        .zip(places.into_iter().map(|((first, _), _)| first));
    let is_of = |run: &Occurrence| {
        let commits = [run.tested_revision.as_deref(), run.commit_sha.as_deref()];
        let is_named =
            |commit: &str| commit == revision || is_stored_commit(revision) && commit.starts_with(revision);
        commits.into_iter().flatten().any(is_named)
    };
    let own = runs
        .clone()
        .filter(|(run, _)| is_of(run))
        .map(|(_, place)| place)
        .min();
    let (before, since): (Vec<_>, Vec<_>) = runs.partition(|(_, place)| own.is_none_or(|own| *place < own));
    let without_place =
        |runs: Vec<(&'a Occurrence, Timestamp)>| runs.into_iter().map(|(run, _)| run).collect();
    (without_place(before), without_place(since))
}

fn failures<'a>(runs: &[&'a Occurrence]) -> impl Iterator<Item = &'a Occurrence> {
    runs.iter().copied().filter(|run| run.any_failed_attempt)
}

#[cfg(test)]
mod tests {
    use assay_domain::attempt::AttemptStatus;

    use super::{super::tests::run, *};

    /// A history of the stable branch, oldest first: the commit, the suite, and the title of the failure.
    type Runs<'a> = &'a [(&'a str, Option<&'a str>, Option<&'a str>)];

    fn run_id(number: usize) -> RunId {
        format!("019aa3f4-5b1c-7def-8a3b-{number:012}").parse().unwrap()
    }

    fn history(runs: Runs<'_>) -> TestHistory {
        let of =
            |(number, (commit, suite, failure)): (usize, &(&str, Option<&str>, Option<&str>))| Occurrence {
                run_id: run_id(number),
                branch: Some("main".to_owned()),
                commit_sha: Some((*commit).to_owned()),
                started_at: Timestamp::from_unix_ms(i64::try_from(number).unwrap()),
                any_failed_attempt: failure.is_some(),
                ..run(*suite, AttemptStatus::Passed, 1)
            };
        TestHistory {
            test: TestName {
                name: "pays".to_owned(),
                file_path: None,
            },
            written_name: None,
            stable_branch: "main".to_owned(),
            occurrences: runs.iter().enumerate().map(of).rev().collect(),
            rest: None,
        }
    }

    #[test]
    fn the_stable_branch_since_the_commit_shows_whether_a_fix_holds() {
        use FixState::{DidNotHold, FailsDifferently, Held, Waiting, Watching};
        let shown = |runs: Runs<'_>, rate_before| {
            let fix = StoredFix {
                stored_at: Timestamp::from_unix_ms(0),
                revision: "c0ffee1".to_owned(),
                rate_before,
                check: None,
            };
            let titles = runs.iter().enumerate();
            let titles = titles.filter_map(|(number, run)| Some((run_id(number), run.2?.to_owned())));
            Watch::of(&history(runs), fix, true, false).compared(&titles.collect())
        };
        let state = |runs: Runs<'_>| {
            let shown = shown(runs, Some(0.5));
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
        // The rate of before decides, and 1 % is low enough where it is not known.
        assert_eq!(shown(&enough, None).runs_needed, 298);
        // A later failure is another flake, and named.
        enough.push(failed);
        assert_eq!(state(&enough), (Held, 58));
        assert!(shown(&enough, Some(0.5)).failed_run.is_some());
    }
}
