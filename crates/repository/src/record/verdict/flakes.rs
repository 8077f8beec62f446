//! Which flaky tests are worth a message.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use assay_domain::observation::{History, RunObservations};
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, PgConnection, QueryDsl as _, QueryResult,
    RunQueryDsl as _,
};
use uuid::Uuid;

use crate::db::{column::At, schema::attempt};

/// The most failed tests of a run that are no crowd, where usually none fails.
const FEW: usize = 3;
/// The fewest streaks of one error that show a flaky test. Two breakages seldom have one error.
const ALIKE: usize = 2;
/// The same of different errors.
const DIFFERENT: usize = 4;
/// Runs of the stable branch after which a streak is a breakage.
const LASTS: usize = 3;

/// The most failed tests of a run that are no crowd, by variant.
pub(super) struct Crowds<'a>(HashMap<&'a str, usize>);

impl<'a> Crowds<'a> {
    pub(super) fn of(history: &'a History) -> Self {
        let mut failures: HashMap<&str, Vec<usize>> = HashMap::new();
        for observed in &history.runs {
            let of_variant = failures.entry(&*observed.run.variant).or_default();
            of_variant.push(observed.failures.len());
        }
        let limit = |mut failures: Vec<usize>| {
            failures.sort_unstable();
            let median = failures.get(failures.len() / 2).copied().unwrap_or(0);
            FEW + 2 * median
        };
        let limits = failures.into_iter();
        Self(
            limits
                .map(|(variant, failures)| (variant, limit(failures)))
                .collect(),
        )
    }

    fn has(&self, observed: &RunObservations) -> bool {
        let limit = self.0.get(&*observed.run.variant);
        limit.is_some_and(|limit| observed.failures.len() > *limit)
    }

    /// Whether the failures of a flaky test have no other explanation than the test: at least [`ALIKE`] streaks of
    /// failures ended that have one error or passed on their revision, or [`DIFFERENT`] of any errors. Streaks in a crowd
    /// of failures do not count, nor does the first of each branch, which its own change explains, nor one that lasted on
    /// the stable branch, as a breakage does.
    pub(super) fn leave_evidence(&self, history: &History, errors: &Errors, test: i32) -> bool {
        let number = test;
        let Ok(test) = u32::try_from(test) else {
            return false;
        };
        let mut chains: HashMap<(&Option<Arc<str>>, &str), Vec<&RunObservations>> = HashMap::new();
        for observed in history.runs.iter().filter(|observed| observed.ran(test)) {
            let chain = (&observed.run.branch, &*observed.run.variant);
            chains.entry(chain).or_default().push(observed);
        }
        let stable = history.stable();
        let (mut by_error, mut on_one_revision): (HashMap<_, usize>, usize) = (HashMap::new(), 0);
        for ((branch, _), mut runs) in chains {
            runs.sort_unstable_by_key(|observed| (observed.run.started_at, observed.run.number));
            let mut failed: Option<&RunObservations> = None;
            let mut length = 0;
            let is_stable = stable.is(branch.as_deref());
            let mut may_be_own_change = !is_stable;
            for run in runs {
                if run.failed(test) {
                    failed = Some(run);
                    length += 1;
                    continue;
                }
                let has_recovered = run.failures.iter().any(|failure| failure.test == test);
                let (before, length) = (failed.take(), std::mem::take(&mut length));
                let Some(streak) = has_recovered.then_some(run).or(before) else {
                    continue;
                };
                if self.has(streak) {
                    continue;
                }
                let revision = &run.run.revision;
                if has_recovered || revision.is_some() && *revision == streak.run.revision {
                    on_one_revision += 1;
                } else if !std::mem::take(&mut may_be_own_change) && !(is_stable && length >= LASTS) {
                    let error = errors.0.get(&(number, streak.run.number));
                    *by_error.entry(error).or_default() += 1;
                }
            }
        }
        let all: usize = by_error.values().sum();
        let alike = by_error.into_values().max().unwrap_or(0);
        alike + on_one_revision >= ALIKE || all + on_one_revision >= DIFFERENT
    }
}

/// The errors of failed tests, each by the test and the number of the run.
pub(super) struct Errors(HashMap<(i32, i32), i32>);

impl Errors {
    /// Those of these tests in a history.
    pub(super) fn find(
        connection: &mut PgConnection,
        project: Uuid,
        history: &History,
        tests: &BTreeSet<i32>,
    ) -> QueryResult<Self> {
        let oldest = history.runs.iter().map(|observed| observed.run.started_at).min();
        let (Some(oldest), false) = (oldest, tests.is_empty()) else {
            return Ok(Self(HashMap::new()));
        };
        let rows: Vec<(i32, i32, Option<i32>)> = attempt::table
            .filter(attempt::project_id.eq(project))
            .filter(attempt::test.eq_any(tests))
            .filter(attempt::started_at.ge(At(oldest)))
            .filter(attempt::is_final.and(attempt::signature.is_not_null()))
            .select((attempt::test, attempt::run_number, attempt::signature))
            .load(connection)?;
        let errors = rows.into_iter();
        let errors = errors.filter_map(|(test, run, error)| Some(((test, run), error?)));
        Ok(Self(errors.collect()))
    }
}
