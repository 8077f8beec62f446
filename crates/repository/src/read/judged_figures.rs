//! The figures of projects' last judgements, and their flake budgets.

use assay_domain::{
    id::ProjectId,
    settings::{FlakeBudget, FlakeBudgetState},
    store::ProjectFigures,
    verdict::VerdictStatus,
};
use diesel::prelude::*;
use uuid::Uuid;

use crate::db::{column::corrupt, pool::Read, schema::project};

/// Most projects with figures for the operators' metrics.
const MOST_FIGURES: i64 = 100;

/// A stored flake budget.
pub(crate) fn flake_budget(numbers: Option<&[i32]>) -> Option<FlakeBudget> {
    match numbers? {
        [most, met_at] => Some(FlakeBudget {
            most: *most,
            met_at: *met_at,
        }),
        // Nothing else is stored.
        _ => None,
    }
}

/// The flake budget of a row of projects, and whether it is exceeded as of the last judgement. That may not be stored
/// yet: a new budget counts as met until the next judgement, which reports it.
pub(crate) fn budget_state(
    numbers: Option<&[i32]>,
    was_exceeded: bool,
    health: Option<&[i64]>,
) -> Option<FlakeBudgetState> {
    flake_budget(numbers).map(|budget| FlakeBudgetState {
        budget,
        is_exceeded: budget.is_exceeded(was_exceeded, flaky(health)),
    })
}

/// The number of flaky tests in stored figures.
pub(crate) fn flaky(stored: Option<&[i64]>) -> i32 {
    let flaky = stored.and_then(|figures| figures.get(2).copied()).unwrap_or(0);
    i32::try_from(flaky).unwrap_or(i32::MAX)
}

/// The figures of a judgement.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Health {
    /// The tests by verdict, in the order of [`VerdictStatus::LISTED`].
    pub(crate) tests: [i64; 5],
    pub(crate) runs: i64,
    pub(crate) failed_runs: i64,
    pub(crate) flaky_lost_ms: i64,
}

impl Health {
    /// The figures in the order in which they are stored.
    pub(crate) fn stored(&self) -> Vec<i64> {
        let others = [self.runs, self.failed_runs, self.flaky_lost_ms];
        self.tests.into_iter().chain(others).collect()
    }
}

/// The figures of the projects that were judged last.
pub(crate) fn judged_figures(connection: &mut PgConnection) -> Read<Vec<ProjectFigures>> {
    type Row = (Uuid, String, Option<Vec<i64>>, (Option<Vec<i32>>, bool));
    let rows: Vec<Row> = project::table
        .filter(project::deleted_at.is_null())
        .filter(project::health.is_not_null())
        .filter(project::evaluated_at.is_not_null())
        .order((project::evaluated_at.desc(), project::id))
        .limit(MOST_FIGURES)
        .select((
            project::id,
            project::name,
            project::health,
            (project::flake_budget, project::is_budget_exceeded),
        ))
        .load(connection)?;
    rows.into_iter()
        .map(|(id, name, health, (budget, was_exceeded))| {
            let budget = budget_state(budget.as_deref(), was_exceeded, health.as_deref());
            let health: [i64; 8] = health
                .unwrap_or_default()
                .try_into()
                .map_err(|_| corrupt("figures of a project", &id.to_string()))?;
            let [tests @ .., runs, failed_runs, flaky_lost_ms] = health;
            let mut tests = tests.into_iter();
            Ok(ProjectFigures {
                id: ProjectId(id),
                name,
                tests: VerdictStatus::LISTED.map(|status| (status, tests.next().unwrap_or(0))),
                runs,
                failed_runs,
                flaky_lost_ms,
                is_budget_exceeded: budget.is_some_and(|budget| budget.is_exceeded),
            })
        })
        .collect()
}
