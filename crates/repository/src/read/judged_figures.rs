//! The figures of projects' last judgements, and their flake budgets.

use assay_domain::{
    id::ProjectId,
    settings::{FlakeBudget, FlakeBudgetState},
    store::{JudgedFigures, ProjectFigures},
};
use diesel::prelude::*;
use uuid::Uuid;

use crate::db::{
    column::corrupt,
    pool::{Read, converted},
    schema::project,
};

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
    let judged = health.and_then(of_stored);
    flake_budget(numbers).map(|budget| FlakeBudgetState {
        budget,
        is_exceeded: budget.is_exceeded(was_exceeded, judged.map_or(0, |judged| flaky_tests(&judged))),
    })
}

/// The number of flaky tests.
pub(crate) fn flaky_tests(judged: &JudgedFigures) -> i32 {
    let [_, _, flaky, _, _] = judged.tests;
    i32::try_from(flaky).unwrap_or(i32::MAX)
}

/// The figures in the order in which they are stored.
pub(crate) fn stored(judged: &JudgedFigures) -> Vec<i64> {
    let others = [judged.runs, judged.failed_runs, judged.flaky_lost_ms];
    judged.tests.into_iter().chain(others).collect()
}

fn of_stored(stored: &[i64]) -> Option<JudgedFigures> {
    let [tests @ .., runs, failed_runs, flaky_lost_ms] = stored else {
        return None;
    };
    Some(JudgedFigures {
        tests: tests.try_into().ok()?,
        runs: *runs,
        failed_runs: *failed_runs,
        flaky_lost_ms: *flaky_lost_ms,
    })
}

/// The figures of the projects that were judged last.
pub(crate) fn judged_figures(connection: &mut PgConnection) -> Read<Vec<ProjectFigures>> {
    type Row = (Uuid, String, Option<Vec<i64>>, Option<Vec<i32>>, bool);
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
            project::flake_budget,
            project::is_budget_exceeded,
        ))
        .load(connection)?;
    let figures = |(id, name, health, budget, was_exceeded): Row| {
        let budget = budget_state(budget.as_deref(), was_exceeded, health.as_deref());
        let judged = health.as_deref().and_then(of_stored);
        Ok(ProjectFigures {
            id: ProjectId(id),
            name,
            judged: judged.ok_or_else(|| corrupt("figures of a project", &id.to_string()))?,
            is_budget_exceeded: budget.is_some_and(|budget| budget.is_exceeded),
        })
    };
    converted(rows, figures)
}
