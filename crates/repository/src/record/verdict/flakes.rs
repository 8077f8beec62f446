//! Which failures of flaky tests the tests themselves explain.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use assay_domain::{
    observation::{History, RunObservations},
    revision::RevisionOrder,
};
use diesel::prelude::*;
use uuid::Uuid;

use crate::db::{column::At, schema::attempt};

/// The most failed tests of a run that are no crowd, where usually none fails.
const FEW: usize = 3;
/// The fewest streaks of one error that show a flaky test. Two breakages seldom have one error.
const ALIKE: usize = 2;
/// The same of different errors, on the stable branch.
const DIFFERENT: usize = 4;
/// Runs of the stable branch after which a streak is a breakage.
const LASTS: usize = 3;

/// The failures of flaky tests in a history.
pub(super) struct Flakes<'a> {
    history: &'a History,
    /// By run.
    order: Vec<RevisionOrder>,
    /// The most failed tests of a run that are no crowd, by variant.
    few: HashMap<&'a str, usize>,
    /// The errors of the tests, by test and number of the run.
    errors: HashMap<(i32, i32), i32>,
}

/// A streak of failures of a test that ended.
struct Streak {
    error: Option<i32>,
    /// Whether the test failed and passed on one revision.
    is_of_one_revision: bool,
    is_stable: bool,
    /// Whether it is the first of another branch, which the branch's own change may explain.
    is_first_of_branch: bool,
}

impl<'a> Flakes<'a> {
    /// The failures of these tests.
    pub(super) fn of(
        connection: &mut PgConnection,
        project: Uuid,
        history: &'a History,
        tests: &BTreeSet<i32>,
    ) -> QueryResult<Self> {
        let mut failures: HashMap<&str, Vec<usize>> = HashMap::new();
        for observed in &history.runs {
            let of_variant = failures.entry(&*observed.run.variant).or_default();
            of_variant.push(observed.failures.len());
        }
        let few = |mut failures: Vec<usize>| {
            failures.sort_unstable();
            let median = failures.get(failures.len() / 2).copied().unwrap_or(0);
            FEW + 2 * median
        };
        let failures = failures.into_iter();
        Ok(Self {
            history,
            order: history.revision_order(),
            few: failures
                .map(|(variant, failures)| (variant, few(failures)))
                .collect(),
            errors: errors(connection, project, history, tests)?,
        })
    }

    /// Whether the failures of a test have no other explanation than the test: at least [`ALIKE`] streaks with one error or
    /// of one revision, or [`DIFFERENT`] of any on the stable branch. The first streak of another branch does not count.
    pub(super) fn prove(&self, test: i32) -> bool {
        let (alike, different) = self.counts(test);
        alike >= ALIKE || different >= DIFFERENT
    }

    /// Whether a flaky test explains its failure in a run: it failed with this error before, or each time with another one.
    pub(super) fn explain(&self, test: i32, run: i32) -> bool {
        let error = self.errors.get(&(test, run)).copied();
        let (alike, different) = self.counts(test);
        alike < ALIKE && different >= DIFFERENT
            || self.streaks(test).iter().any(|streak| streak.error == error)
    }

    /// The streaks of one revision with the most that have one error, and with all of the stable branch.
    fn counts(&self, test: i32) -> (usize, usize) {
        let mut by_error: HashMap<_, usize> = HashMap::new();
        let (mut of_one_revision, mut of_stable) = (0, 0);
        for streak in self.streaks(test) {
            if streak.is_of_one_revision {
                of_one_revision += 1;
            } else if !streak.is_first_of_branch {
                *by_error.entry(streak.error).or_default() += 1;
                of_stable += usize::from(streak.is_stable);
            }
        }
        let alike = by_error.into_values().max().unwrap_or(0);
        (alike + of_one_revision, of_stable + of_one_revision)
    }

    /// The streaks of failures that ended, without those in a crowd of failures, and without those that lasted on the stable
    /// branch as a breakage does.
    fn streaks(&self, number: i32) -> Vec<Streak> {
        let mut streaks = Vec::new();
        let Ok(test) = u32::try_from(number) else {
            return streaks;
        };
        let mut chains: HashMap<(&Option<Arc<str>>, bool, &str), Vec<_>> = HashMap::new();
        let runs = self.history.runs.iter().zip(&self.order);
        for (observed, order) in runs.filter(|(observed, _)| observed.ran(test)) {
            let facts = &observed.run;
            let chain = (&facts.branch, facts.merge.is_some(), &*facts.variant);
            chains.entry(chain).or_default().push((order, observed));
        }
        let stable = self.history.stable();
        for ((branch, ..), mut runs) in chains {
            runs.sort_by_key(|(order, _)| *order);
            let is_stable = stable.is(branch.as_deref());
            let mut is_first_of_branch = !is_stable;
            let (mut failed, mut length): (Option<&RunObservations>, usize) = (None, 0);
            for (_, run) in runs {
                if run.failed(test) {
                    failed = Some(run);
                    length += 1;
                    continue;
                }
                let has_lasted = is_stable && std::mem::take(&mut length) >= LASTS;
                let has_recovered = run.failures.iter().any(|failure| failure.test == test);
                let before = failed.take().filter(|_| !has_lasted);
                let Some(last) = has_recovered.then_some(run).or(before) else {
                    continue;
                };
                let few = self.few.get(&*last.run.variant);
                if few.is_none_or(|few| last.failures.len() > *few) {
                    continue;
                }
                let is_of_one_revision = has_recovered || run.run.is_of_same_code(&last.run);
                streaks.push(Streak {
                    error: self.errors.get(&(number, last.run.number)).copied(),
                    is_of_one_revision,
                    is_stable,
                    is_first_of_branch: !is_of_one_revision && std::mem::take(&mut is_first_of_branch),
                });
            }
        }
        streaks
    }
}

/// The errors of tests in the runs of a history.
fn errors(
    connection: &mut PgConnection,
    project: Uuid,
    history: &History,
    tests: &BTreeSet<i32>,
) -> QueryResult<HashMap<(i32, i32), i32>> {
    let oldest = history.runs.iter().map(|observed| observed.run.started_at).min();
    let (Some(oldest), false) = (oldest, tests.is_empty()) else {
        return Ok(HashMap::new());
    };
    let rows: Vec<(i32, i32, Option<i32>)> = attempt::table
        .filter(attempt::project_id.eq(project))
        .filter(attempt::test.eq_any(tests))
        .filter(attempt::started_at.ge(At(oldest)))
        .filter(attempt::signature.is_not_null())
        // The final one counts.
        .order((attempt::is_final, attempt::part, attempt::place))
        .select((attempt::test, attempt::run_number, attempt::signature))
        .load(connection)?;
    let errors = rows.into_iter();
    Ok(errors
        .filter_map(|(test, run, error)| Some(((test, run), error?)))
        .collect())
}
