//! The rows of edges, and the state of the project that they are compared with.

use assay_domain::{
    settings::{ChatEvent, FlakeBudget},
    timestamp::Timestamp,
};
use diesel::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Line, RunId, TestChange};
use crate::{
    db::{
        column::{At, storable},
        schema::{edge, project},
    },
    read::judged_figures::flake_budget,
    record::verdict::fixes::DecidedFix,
};

/// The state of the project before the judgement.
#[derive(Queryable, Selectable)]
#[diesel(table_name = project)]
pub(super) struct Before {
    chat_events: Option<Vec<String>>,
    evaluated_at: Option<At>,
    failed_suites: Vec<String>,
    failed_release_suites: Value,
    pub(super) signatures: i32,
    pub(super) judged_signatures: i32,
    pub(super) edges: i32,
    flake_budget: Option<Vec<i32>>,
    pub(super) is_budget_exceeded: bool,
}

impl Before {
    pub(super) fn find(connection: &mut PgConnection, id: Uuid) -> QueryResult<Self> {
        project::table
            .find(id)
            .select(Self::as_select())
            .first(connection)
    }

    /// Whether edges are wanted, and there is a judgement to compare with.
    pub(super) fn has_events(&self) -> bool {
        self.chat_events.is_some() && self.evaluated_at.is_some()
    }

    /// Whether messages report this event.
    pub(super) fn wants(&self, event: ChatEvent) -> bool {
        let mut events = self.chat_events.iter().flatten();
        events.any(|wanted| wanted == event.as_str())
    }

    /// Whether a suite had failed on the stable branch or on a release branch.
    pub(super) fn has_failed(&self, line: &Line) -> bool {
        match line {
            (None, suite) => self.failed_suites.iter().any(|failed| **failed == **suite),
            (Some(_), _) => {
                let mut failed = self.failed_release_suites.as_array().into_iter().flatten();
                failed.any(|failed| *failed == json!(line))
            }
        }
    }

    pub(super) fn budget(&self) -> Option<FlakeBudget> {
        flake_budget(self.flake_budget.as_deref())
    }
}

#[derive(Debug, Insertable)]
#[diesel(table_name = edge)]
pub(super) struct Row {
    pub(super) project_id: Uuid,
    pub(super) number: i32,
    pub(super) judged_at: At,
    pub(super) event: &'static str,
    pub(super) release_branch: Option<String>,
    pub(super) suite: String,
    pub(super) test: Option<i32>,
    pub(super) signature: Option<i32>,
    pub(super) from_status: Option<&'static str>,
    pub(super) to_status: Option<&'static str>,
    pub(super) run_id: Option<Uuid>,
    pub(super) run_number: Option<i32>,
    pub(super) since_run: Option<i32>,
    pub(super) is_red: bool,
    pub(super) flaky_tests: Option<i32>,
}

impl Row {
    pub(super) fn of(event: ChatEvent, suite: &str) -> Self {
        Self {
            project_id: Uuid::nil(),
            number: 0,
            judged_at: At(Timestamp::from_unix_ms(0)),
            event: event.as_str(),
            release_branch: None,
            suite: storable(suite),
            test: None,
            signature: None,
            from_status: None,
            to_status: None,
            run_id: None,
            run_number: None,
            since_run: None,
            is_red: false,
            flaky_tests: None,
        }
    }

    pub(super) fn of_run(event: ChatEvent, suite: &str, run: RunId, is_red: bool) -> Self {
        Self {
            run_id: Some(run.id),
            run_number: Some(run.number),
            is_red,
            ..Self::of(event, suite)
        }
    }

    pub(super) fn of_fix(decided: &DecidedFix) -> Self {
        let event = match decided.held() {
            true => ChatEvent::FixHeld,
            false => ChatEvent::FixDidNotHold,
        };
        let run = RunId {
            id: decided.run.id.0,
            number: decided.run.number,
        };
        let suite = decided.run.suite.as_deref().unwrap_or_default();
        Self {
            test: Some(decided.test),
            ..Self::of_run(event, suite, run, false)
        }
    }

    pub(super) fn of_test(change: &TestChange) -> Self {
        let row = match &change.place {
            Some(place) => Self {
                since_run: place.failing_since,
                ..Self::of_run(
                    change.event,
                    &place.suite,
                    place.run,
                    place.failing_since.is_some(),
                )
            },
            None => Self::of(change.event, ""),
        };
        Self {
            test: Some(change.test),
            from_status: Some(change.from.as_str()),
            to_status: Some(change.to.as_str()),
            ..row
        }
    }
}
