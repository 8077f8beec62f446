//! What is known of a test that is to be fixed, and whether its fixes hold on the stable branch.

use std::collections::{BTreeMap, BTreeSet};

use assay_domain::{
    attempt::AttemptStatus,
    fix::{FixOutcome, FixState, RunMode, StoredFix},
    history::{Occurrence, TestHistory},
    id::RunId,
    observation::History,
    period::{Days, Period},
    project::{Project, ProjectTag},
    signature::Classifier as _,
    store::{Store, StoreError, in_snapshot},
    test::{TestLookup, TestName, TestOrdinal, TestSelector},
    timestamp::Timestamp,
    timing::lower_median,
    verdict::{ENGINE_WINDOW_DAYS, Judge},
};
use assay_fingerprint::Fingerprinter;
use assay_flakiness::plan::fix::{CleanRuns, bound};
use serde::Serialize;

/// Most variants, those with the most failures.
const MOST_VARIANTS: usize = 10;
/// Most errors, the most frequent ones.
const MOST_ERRORS: usize = 5;
/// The fewest characters of a commit that names it.
const SHORTEST_COMMIT: usize = 7;

/// What is known of a test that is to be fixed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FixStatus {
    /// The project.
    pub project: ProjectTag,
    /// The test.
    pub test: TestName,
    /// The rate at which it fails on good code, in the last 14 days; null if it did not fail.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub rate: Option<f64>,
    /// The same on each variant on which it ran, those with the most failures first.
    #[cfg_attr(feature = "openapi", schema(max_items = 10))]
    pub variants: Vec<VariantRate>,
    /// The rate that it may have after a fix; null without a rate.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub largest_rate: Option<f64>,
    /// The clean builds that show it with a probability of .95; null without a rate.
    pub builds_needed: Option<u32>,
    /// The clean repetitions in one job that show it; null without a rate.
    pub repetitions_needed: Option<u32>,
    /// The least company in which it is known to fail. A fix is only proved by runs with at least these tests.
    pub mode: RunMode,
    /// Its usual duration in milliseconds: the median of its passes in 30 days, of the suite in which it is longest.
    pub usual_ms: Option<u64>,
    /// Its errors in 30 days, the most frequent first.
    #[cfg_attr(feature = "openapi", schema(max_items = 5))]
    pub errors: Vec<KnownError>,
    /// What jobs and people reported, the newest first.
    #[cfg_attr(feature = "openapi", schema(max_items = 20))]
    pub fixes: Vec<WatchedFix>,
}

/// The rate of a test on a variant.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct VariantRate {
    /// The variant: suite, job or browser. Empty for the default one.
    pub variant: String,
    /// The rate at which it fails there on good code; 0 if it did not fail there.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub rate: f64,
    /// The runs.
    pub runs: u32,
    /// Those with a failed attempt.
    pub failures: u32,
}

/// An error of a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KnownError {
    /// Its fingerprint.
    pub fingerprint: String,
    /// One line.
    pub title: String,
    /// The runs with it.
    pub runs: u64,
}

/// A fix, and what the stable branch shows of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WatchedFix {
    /// What was reported.
    #[serde(flatten)]
    pub fix: StoredFix,
    /// What the stable branch shows.
    pub state: FixState,
    /// The clean runs of the stable branch since the commit, on variants on which the test failed before.
    pub clean_runs: u32,
    /// The clean runs after which the fix holds.
    pub runs_needed: u32,
    /// The run that failed.
    pub failed_run: Option<RunId>,
}

/// What is known of a test at `now`.
pub fn fix_status(
    store: &dyn Store,
    engine: &dyn Judge,
    project: &Project,
    selector: &TestSelector,
    now: Timestamp,
) -> Result<TestLookup<FixStatus>, StoreError> {
    let period = Period::ending(now, Days::Thirty);
    let lookup = store.history(project, selector, &period)?;
    lookup.try_map(|history| status_of(store, engine, project, history, &period, now))
}

/// The status of the test with this history.
fn status_of(
    store: &dyn Store,
    engine: &dyn Judge,
    project: &Project,
    history: TestHistory,
    period: &Period,
    now: Timestamp,
) -> Result<FixStatus, StoreError> {
    let selector = history.test.selector();
    let rates = in_engine_window(store, project, &selector, now, |window, test| {
        Ok(Rates::of(engine, window, test, now))
    })?;
    let rates = rates.unwrap_or_default();
    let errors = store.test_signatures(project, &selector, period)?;
    let errors = errors.found().unwrap_or_default();
    let stored = store.fixes(project, &selector)?.found().unwrap_or_default();
    let failed_in = |fix: &StoredFix| {
        let check = fix.check?;
        (check.outcome == FixOutcome::StillFlaky).then_some(check.mode)
    };
    let mode = stored
        .iter()
        .filter_map(failed_in)
        .min()
        .unwrap_or(RunMode::InSuite);
    let fixes = stored.into_iter().map(|fix| watched(&history, fix, rates.rate));
    let fixes = with_errors(store, project, &history.test, fixes.collect())?;
    let largest_rate = rates.rate.map(bound);
    let errors = errors.into_iter().take(MOST_ERRORS).map(|error| KnownError {
        fingerprint: error.fingerprint,
        title: error.title,
        runs: error.runs,
    });
    Ok(FixStatus {
        project: project.tag(),
        rate: rates.rate,
        variants: rates.variants,
        largest_rate,
        builds_needed: largest_rate.map(|bound| CleanRuns::Builds.needed(bound)),
        repetitions_needed: largest_rate.map(|bound| CleanRuns::Repetitions.needed(bound)),
        mode,
        usual_ms: usual_ms(&history.occurrences),
        errors: errors.collect(),
        fixes,
        test: history.test,
    })
}

/// What `read` makes of a test in the runs of the engine's window; none if the test is gone.
pub(crate) fn in_engine_window<T>(
    store: &dyn Store,
    project: &Project,
    selector: &TestSelector,
    now: Timestamp,
    read: impl Fn(&History, TestOrdinal) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    in_snapshot(store, project, |snapshot| {
        let window = snapshot.observations(now.plus_days(-ENGINE_WINDOW_DAYS), now)?;
        let lookup = snapshot.test_ordinals(std::slice::from_ref(selector))?.pop();
        let test = lookup.and_then(TestLookup::found);
        test.map(|test| read(&window, test)).transpose()
    })
}

/// The rates of a test before a fix.
#[derive(Default)]
struct Rates {
    rate: Option<f64>,
    variants: Vec<VariantRate>,
}

impl Rates {
    fn of(engine: &dyn Judge, window: &History, test: TestOrdinal, now: Timestamp) -> Self {
        let rate_in = |history: &History| {
            let judged = engine.judge_tests(history, now, &[test]).pop();
            judged.map_or(0.0, |judged| judged.verdict.figures.flake_rate)
        };
        let names: BTreeSet<&str> = window.runs.iter().map(|run| &*run.run.variant).collect();
        let mut variants: Vec<VariantRate> = names
            .into_iter()
            .map(|variant| counted(window, variant, test))
            .filter(|variant| variant.runs > 0)
            .collect();
        variants.sort_by_key(|variant| std::cmp::Reverse(variant.failures));
        variants.truncate(MOST_VARIANTS);
        if variants.iter().all(|variant| variant.failures == 0) {
            return Self { rate: None, variants };
        }
        let rate = rate_in(window);
        let is_single = variants.len() == 1;
        for variant in variants.iter_mut().filter(|variant| variant.failures > 0) {
            variant.rate = match is_single {
                true => rate,
                false => rate_in(&on_variant(window, &variant.variant)),
            };
        }
        Self {
            rate: Some(rate).filter(|rate| *rate > 0.0),
            variants,
        }
    }
}

/// A variant with the runs of a test, without its rate.
fn counted(window: &History, variant: &str, test: TestOrdinal) -> VariantRate {
    let here = window
        .runs
        .iter()
        .filter(|run| *run.run.variant == *variant && run.ran(test));
    let (mut runs, mut failures) = (0_u32, 0_u32);
    for run in here {
        runs = runs.saturating_add(1);
        failures = failures.saturating_add(u32::from(run.failure(test).is_some()));
    }
    VariantRate {
        variant: variant.to_owned(),
        rate: 0.0,
        runs,
        failures,
    }
}

/// The runs of one variant.
fn on_variant(window: &History, variant: &str) -> History {
    let here = window.runs.iter().filter(|run| *run.run.variant == *variant);
    History {
        stable_branch: window.stable_branch.clone(),
        tests: window.tests,
        runs: here.cloned().collect(),
    }
}

/// The median duration of the passes, of an even number the lower middle one, of the suite in which it is longest.
fn usual_ms(occurrences: &[Occurrence]) -> Option<u64> {
    let mut by_suite: BTreeMap<Option<&str>, Vec<u64>> = BTreeMap::new();
    for run in occurrences
        .iter()
        .filter(|run| run.status == AttemptStatus::Passed)
    {
        by_suite
            .entry(run.suite.as_deref())
            .or_default()
            .extend(run.duration_ms);
    }
    let medians = by_suite
        .into_values()
        .filter_map(|mut durations| lower_median(&mut durations));
    medians.max()
}

/// A fix with what the stable branch shows of it, and the failures before and after it, which may have another error.
fn watched(
    history: &TestHistory,
    fix: StoredFix,
    rate: Option<f64>,
) -> (WatchedFix, Option<[&Occurrence; 2]>) {
    let bound = bound(fix.rate_before.or(rate).unwrap_or_default());
    let runs_needed = CleanRuns::Builds.needed(bound);
    let claims = |fix: &StoredFix| fix.check.is_none_or(|check| check.outcome == FixOutcome::Proved);
    let mut watched = WatchedFix {
        state: FixState::Unproved,
        clean_runs: 0,
        runs_needed,
        failed_run: None,
        fix,
    };
    if !claims(&watched.fix) {
        return (watched, None);
    }
    let (before, since) = around(history, &watched.fix.revision);
    if since.is_empty() {
        watched.state = FixState::Waiting;
        return (watched, None);
    }
    let failed_on: BTreeSet<Option<&str>> = failures(&before).map(|run| run.suite.as_deref()).collect();
    let counts = |run: &&&Occurrence| failed_on.is_empty() || failed_on.contains(&run.suite.as_deref());
    let since: Vec<&Occurrence> = since.iter().filter(counts).copied().collect();
    let clean = since.iter().take_while(|run| !run.any_failed_attempt);
    watched.clean_runs = u32::try_from(clean.count()).unwrap_or(u32::MAX);
    let failure = failures(&since).next();
    watched.failed_run = failure.map(|failure| failure.run_id);
    watched.state = match (watched.clean_runs >= runs_needed, failure) {
        (true, _) => FixState::Held,
        (false, Some(_)) => FixState::DidNotHold,
        (false, None) => FixState::Watching,
    };
    let both = failures(&before).last().zip(failure).map(<[_; 2]>::from);
    (watched, both)
}

/// The fixes, of which those whose two failures have different errors fail differently. A failure without a text agrees
/// with any.
fn with_errors(
    store: &dyn Store,
    project: &Project,
    test: &TestName,
    fixes: Vec<(WatchedFix, Option<[&Occurrence; 2]>)>,
) -> Result<Vec<WatchedFix>, StoreError> {
    let failed = fixes.iter().filter_map(|(_, both)| *both).flatten();
    let asked: Vec<_> = failed.map(|run| (run.run_id, test.clone())).collect();
    let errors = store.last_errors(project, &asked)?;
    let mut of_fixes = errors.chunks(2);
    let compared = |(mut watched, both): (WatchedFix, Option<_>)| {
        // A fix may change values in the text, so the same title is enough.
        let titles: BTreeSet<String> = both
            .and_then(|_: [&Occurrence; 2]| of_fixes.next())
            .unwrap_or_default()
            .iter()
            .filter_map(|errors| Some(Fingerprinter.classify(errors)?.title))
            .collect();
        if titles.len() == 2 {
            watched.state = FixState::FailsDifferently;
        }
        watched
    };
    Ok(fixes.into_iter().map(compared).collect())
}

/// The runs of the stable branch before the first one of this commit, and those from it on, oldest first, without skips.
fn around<'a>(history: &'a TestHistory, revision: &str) -> (Vec<&'a Occurrence>, Vec<&'a Occurrence>) {
    let on_stable = |run: &&Occurrence| run.branch.as_deref() == Some(history.stable_branch.as_str());
    let mut runs: Vec<&Occurrence> = history
        .occurrences
        .iter()
        .filter(on_stable)
        .filter(|run| !run.status.is_skip())
        .collect();
    runs.reverse();
    let is_of = |run: &&Occurrence| {
        let commits = [run.tested_revision.as_deref(), run.commit_sha.as_deref()];
        commits.into_iter().flatten().any(|commit| {
            revision.len() >= SHORTEST_COMMIT && (commit.starts_with(revision) || revision == commit)
        })
    };
    let first = runs.iter().position(is_of).unwrap_or(runs.len());
    let since = runs.split_off(first);
    (runs, since)
}

fn failures<'a>(runs: &[&'a Occurrence]) -> impl Iterator<Item = &'a Occurrence> {
    runs.iter().copied().filter(|run| run.any_failed_attempt)
}

#[cfg(test)]
mod tests {
    use assay_domain::revision::RevisionOrigin;

    use super::*;

    fn run(suite: Option<&str>, status: AttemptStatus, ms: u64) -> Occurrence {
        Occurrence {
            run_id: "019aa3f4-5b1c-7def-8a3b-0123456789ab".parse().unwrap(),
            run_number: 1,
            branch: None,
            tested_revision: None,
            commit_sha: None,
            suite: suite.map(str::to_owned),
            started_at: Timestamp::from_unix_ms(0),
            status,
            duration_ms: Some(ms),
            attempts: 1,
            wasted_ms: 0,
            lost_ms: None,
            any_failed_attempt: false,
            revision: RevisionOrigin::default(),
        }
    }

    /// A history of the stable branch, oldest first: the commit, the suite, and whether an attempt failed.
    fn history(runs: &[(&str, Option<&str>, bool)]) -> TestHistory {
        let of = |(commit, suite, failed): &(&str, Option<&str>, bool)| Occurrence {
            branch: Some("main".to_owned()),
            commit_sha: Some((*commit).to_owned()),
            any_failed_attempt: *failed,
            ..run(*suite, AttemptStatus::Passed, 1)
        };
        TestHistory {
            test: TestName {
                name: "pays".to_owned(),
                file_path: None,
            },
            written_name: None,
            stable_branch: "main".to_owned(),
            occurrences: runs.iter().rev().map(of).collect(),
            rest: None,
        }
    }

    #[test]
    fn the_stable_branch_since_the_commit_shows_whether_a_fix_holds() {
        let fix = StoredFix {
            stored_at: Timestamp::from_unix_ms(0),
            revision: "c0ffee1".to_owned(),
            rate_before: Some(0.5),
            check: None,
        };
        let shown = |runs: &[(&str, Option<&str>, bool)]| {
            let history = history(runs);
            let (shown, both) = watched(&history, fix.clone(), None);
            (shown.state, shown.clean_runs, both.is_some())
        };
        let needed = usize::try_from(watched(&history(&[]), fix.clone(), None).0.runs_needed).unwrap();
        let before = ("b0ffee1", None, true);
        let (clean, failed) = (("c0ffee1abc", None, false), ("c0ffee1abc", None, true));
        assert_eq!(shown(&[before]), (FixState::Waiting, 0, false));
        assert_eq!(shown(&[before, clean, clean]), (FixState::Watching, 2, false));
        assert_eq!(shown(&[before, clean, failed]), (FixState::DidNotHold, 1, true));
        assert_eq!(shown(&[clean, failed]), (FixState::DidNotHold, 1, false));
        // Where it never failed before, it proves nothing.
        let elsewhere = ("c0ffee1abc", Some("windows"), false);
        assert_eq!(shown(&[before, elsewhere, clean]), (FixState::Watching, 1, false));
        let mut enough = vec![before];
        enough.extend(vec![clean; needed]);
        let held = u32::try_from(needed).unwrap();
        assert_eq!(shown(&enough), (FixState::Held, held, false));
        // A later failure may have another error, which is seen beside both.
        enough.push(failed);
        assert_eq!(shown(&enough), (FixState::Held, held, true));
    }

    #[test]
    fn the_usual_duration_is_the_median_of_the_slowest_suite() {
        let passes = |suite, durations: &[u64]| -> Vec<Occurrence> {
            let each = durations.iter();
            each.map(|ms| run(suite, AttemptStatus::Passed, *ms)).collect()
        };
        let mut runs = passes(None, &[10, 11, 12, 900, 13]);
        assert_eq!(usual_ms(&runs), Some(12));
        runs.extend(passes(Some("windows"), &[50, 60, 70]));
        runs.push(run(Some("windows"), AttemptStatus::Failed, 5_000));
        runs.push(run(Some("macos"), AttemptStatus::Failed, 5_000));
        assert_eq!(usual_ms(&runs), Some(60));
        assert_eq!(usual_ms(&[]), None);
    }
}
