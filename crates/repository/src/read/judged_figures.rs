//! The figures of projects' last judgements, and their flake budgets.

use assay_domain::{id::ProjectId, settings::FlakeBudget, store::ProjectFigures, verdict::VerdictStatus};
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

/// The number of flaky tests in stored figures.
pub(crate) fn flaky(stored: Option<&[i64]>) -> i32 {
    let flaky = stored.and_then(|figures| figures.get(2).copied()).unwrap_or(0);
    i32::try_from(flaky).unwrap_or(i32::MAX)
}

/// The figures of a judgement, in the order in which they are stored.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Health {
    pub(crate) broken: i64,
    pub(crate) failing: i64,
    pub(crate) flaky: i64,
    pub(crate) healthy: i64,
    pub(crate) insufficient_data: i64,
    pub(crate) runs: i64,
    pub(crate) failed_runs: i64,
    pub(crate) flaky_lost_ms: i64,
}

impl Health {
    pub(crate) fn stored(self) -> Vec<i64> {
        vec![
            self.broken,
            self.failing,
            self.flaky,
            self.healthy,
            self.insufficient_data,
            self.runs,
            self.failed_runs,
            self.flaky_lost_ms,
        ]
    }
}

/// The figures of the projects that were judged last.
pub(crate) fn judged_figures(connection: &mut PgConnection) -> Read<Vec<ProjectFigures>> {
    let rows: Vec<(Uuid, String, Option<Vec<i64>>, bool)> = project::table
        .filter(project::deleted_at.is_null())
        .filter(project::health.is_not_null())
        .filter(project::evaluated_at.is_not_null())
        .order((project::evaluated_at.desc(), project::id))
        .limit(MOST_FIGURES)
        .select((
            project::id,
            project::name,
            project::health,
            project::is_budget_exceeded,
        ))
        .load(connection)?;
    rows.into_iter()
        .map(|(id, name, health, is_budget_exceeded)| {
            let health: [i64; 8] = health
                .unwrap_or_default()
                .try_into()
                .map_err(|_| corrupt("figures of a project", &id.to_string()))?;
            let [
                broken,
                failing,
                flaky,
                healthy,
                gathering,
                runs,
                failed_runs,
                flaky_lost_ms,
            ] = health;
            Ok(ProjectFigures {
                id: ProjectId(id),
                name,
                tests: [
                    (VerdictStatus::Broken, broken),
                    (VerdictStatus::Failing, failing),
                    (VerdictStatus::Flaky, flaky),
                    (VerdictStatus::Healthy, healthy),
                    (VerdictStatus::InsufficientData, gathering),
                ],
                runs,
                failed_runs,
                flaky_lost_ms,
                is_budget_exceeded,
            })
        })
        .collect()
}
