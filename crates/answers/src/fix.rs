//! What is known of a test that is to be fixed, and whether its fixes hold on the stable branch.

use std::collections::{BTreeMap, BTreeSet};

use assay_domain::{
    attempt::AttemptStatus,
    fix::{FixOutcome, RunMode, StoredFix, WatchedFix},
    history::{Occurrence, TestHistory},
    observation::{History, RunObservations},
    period::{Days, Period},
    project::{Project, ProjectTag},
    store::{Store, StoreError, in_snapshot},
    test::{TestLookup, TestName, TestOrdinal, TestSelector},
    timestamp::Timestamp,
    timing::lower_median,
    verdict::{ENGINE_WINDOW_DAYS, Judge, Signal, Verdict},
};
use assay_flakiness::{
    plan::fix::{CleanRuns, bound},
    rate_if_flaky,
};
use serde::{Deserialize, Serialize};

/// Most variants, those with the most failures.
const MOST_VARIANTS: usize = 10;
/// Most errors, the most frequent ones.
const MOST_ERRORS: usize = 5;

/// What is known of a test that is to be fixed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FixStatus {
    /// The project.
    pub project: ProjectTag,
    /// The test.
    pub test: TestName,
    /// The rate at which it fails on good code in the last 14 days if it is flaky; null if it did not fail. By the calendar,
    /// the share of the runs that failed.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub rate: Option<f64>,
    /// The same on each variant on which it ran, those with the most failures first.
    #[cfg_attr(feature = "openapi", schema(max_items = 10))]
    pub variants: Vec<VariantRate>,
    /// When it fails, in one sentence, if only the calendar decides; else null. Runs at other times prove nothing.
    pub calendar: Option<String>,
    /// The rate that it may have after a fix; null without a rate, and by the calendar.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub largest_rate: Option<f64>,
    /// The clean builds that show it with a probability of .95; null like `largestRate`.
    pub builds_needed: Option<u32>,
    /// The clean repetitions in one job that show it; null like `largestRate`.
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

impl FixStatus {
    /// The named variant with the most failures, if it did not fail on all: a fix is proved where it failed.
    pub fn only_on(&self) -> Option<&str> {
        let has_clean = self.variants.iter().any(|variant| variant.failures == 0);
        let failing = self.variants.iter().find(|variant| variant.failures > 0);
        let failing = failing.filter(|variant| has_clean && !variant.variant.is_empty());
        failing.map(|variant| variant.variant.as_str())
    }
}

/// The rate of a test on a variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// The tests that ran in its newest complete run, on the stable branch if it ran there; null without a complete run.
    pub tests: Option<u32>,
}

/// An error of a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KnownError {
    /// Its fingerprint.
    pub fingerprint: String,
    /// One line.
    pub title: String,
    /// The runs with it.
    pub runs: u64,
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
    let stored = store
        .fixes(project, &selector, period)?
        .found()
        .unwrap_or_default();
    let failed_in = |(fix, _): &(StoredFix, _)| {
        let check = fix.check?;
        (check.outcome == FixOutcome::StillFlaky).then_some(check.mode)
    };
    let mode = stored
        .fixes
        .iter()
        .filter_map(failed_in)
        .min()
        .unwrap_or(RunMode::InSuite);
    let fixes = stored.watched(rates.calendar.is_some(), |rate| engine.builds_needed(rate));
    let largest_rate = rates.rate.filter(|_| rates.calendar.is_none()).map(bound);
    let errors = errors.into_iter().take(MOST_ERRORS).map(|error| KnownError {
        fingerprint: error.fingerprint,
        title: error.title,
        runs: error.runs,
    });
    Ok(FixStatus {
        project: project.tag(),
        rate: rates.rate,
        variants: rates.variants,
        calendar: rates.calendar,
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
    calendar: Option<String>,
}

impl Rates {
    fn of(engine: &dyn Judge, window: &History, test: TestOrdinal, now: Timestamp) -> Self {
        let verdict_in = |history: &History| {
            let judged = engine.judge_tests(history, now, &[test]).pop();
            judged.map(|judged| judged.verdict)
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
            return Self {
                variants,
                ..Self::default()
            };
        }
        let verdict = verdict_in(window);
        let by_calendar = verdict
            .as_ref()
            .filter(|verdict| verdict.reason == Some(Signal::Calendar));
        let calendar = by_calendar.map(|verdict| verdict.explanation.clone());
        let rate = match (&verdict, &calendar) {
            (_, Some(_)) => share(&variants),
            (verdict, None) => verdict.as_ref().map_or(0.0, rate_before),
        };
        let is_single = variants.len() == 1;
        for variant in variants.iter_mut().filter(|variant| variant.failures > 0) {
            variant.rate = match (is_single, &calendar) {
                (true, _) => rate,
                (false, Some(_)) => share(std::slice::from_ref(variant)),
                (false, None) => verdict_in(&on_variant(window, &variant.variant))
                    .as_ref()
                    .map_or(0.0, rate_before),
            };
        }
        Self {
            rate: Some(rate).filter(|rate| *rate > 0.0),
            variants,
            calendar,
        }
    }
}

/// The rate before a fix. After many clean runs the test probably is not flaky, but a fix is measured by its rate if it is.
fn rate_before(verdict: &Verdict) -> f64 {
    let figures = &verdict.figures;
    rate_if_flaky(figures.flake_score, figures.flake_rate).clamp(0.0, 1.0)
}

/// The share of the runs that failed.
fn share(variants: &[VariantRate]) -> f64 {
    let failures: u32 = variants.iter().map(|variant| variant.failures).sum();
    let runs: u32 = variants.iter().map(|variant| variant.runs).sum();
    f64::from(failures) / f64::from(runs)
}

/// A variant with the runs of a test, without its rate.
fn counted(window: &History, variant: &str, test: TestOrdinal) -> VariantRate {
    let ran = |run: &&RunObservations| *run.run.variant == *variant && run.ran(test);
    let here: Vec<&RunObservations> = window.runs.iter().filter(ran).collect();
    let stable = window.stable();
    let complete = here.iter().filter(|run| run.ending.complete);
    let newest = complete.max_by_key(|run| {
        (
            stable.is(run.run.branch.as_deref()),
            run.run.started_at,
            run.run.number,
        )
    });
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    VariantRate {
        variant: variant.to_owned(),
        rate: 0.0,
        runs: count(here.len()),
        failures: count(here.iter().filter(|run| run.failure(test).is_some()).count()),
        tests: newest.map(|run| run.present.len().saturating_sub(run.skipped.len())),
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

#[cfg(test)]
mod tests {
    use assay_domain::{execution::TestOutcome, observation::RunFacts, revision::RevisionOrigin};

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
            trusted: true,
            revision: RevisionOrigin::default(),
        }
    }

    #[test]
    fn a_test_that_fails_by_the_calendar_has_the_share_of_its_failures_and_the_sentence() {
        const EIGHT_HOURS: i64 = 8 * 3_600_000;
        let runs = (0..42).map(|number| {
            let started_at = Timestamp::from_unix_ms(i64::from(number) * EIGHT_HOURS);
            let mut run = RunObservations::of(RunFacts {
                id: format!("run-{number}").into(),
                number,
                started_at,
                branch: Some("main".into()),
                revision: Some(format!("{number:08}").into()),
                ..RunFacts::default()
            });
            // The first day of this time is a Thursday.
            let is_weekend = [2, 3].contains(&(number / 3 % 7));
            let status = if is_weekend {
                AttemptStatus::Failed
            } else {
                AttemptStatus::Passed
            };
            run.add(0, &TestOutcome::of([[(status, Some(1))]]).unwrap());
            run
        });
        let history = History {
            stable_branch: "main".into(),
            tests: 1,
            runs: runs.collect(),
        };
        let now = Timestamp::from_unix_ms(42 * EIGHT_HOURS);
        let rates = Rates::of(&assay_flakiness::Engine::default(), &history, 0, now);
        assert!(rates.calendar.unwrap().contains("weekend"));
        assert_eq!(
            (rates.rate, rates.variants[0].rate),
            (Some(12.0 / 42.0), 12.0 / 42.0)
        );
        assert_eq!(rates.variants[0].tests, Some(1));
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
