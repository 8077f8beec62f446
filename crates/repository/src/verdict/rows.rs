//! The rows of verdicts that are to be stored.

use assay_domain::{
    observation::History,
    store::StoreError,
    timestamp::Timestamp,
    verdict::{ENGINE_WINDOW_DAYS, Evidence, Figures, Judgement, VerdictStatus},
};
use diesel::{
    PgConnection, QueryResult, RunQueryDsl,
    sql_types::{Array, Bool, Integer, Nullable, SmallInt, Text, Timestamptz, Uuid as SqlUuid},
};
use uuid::Uuid;

use super::Body;
use crate::column::{At, int, storable};

/// Rows of the table, column by column.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) tests: Vec<i32>,
    pub(super) statuses: Vec<VerdictStatus>,
    in_window: Vec<bool>,
    pub(super) last_runs: Vec<Option<i32>>,
    pub(super) last_statuses: Vec<Option<i16>>,
    pub(super) last_offsets: Vec<Option<i32>>,
    pub(super) newest: Vec<Option<At>>,
    bodies: Vec<String>,
}

impl Rows {
    /// Adds a judgement. The outcome of the last run, and the start of the newest, are added later.
    pub(super) fn push(&mut self, judgement: Judgement, history: &History) -> Result<(), StoreError> {
        let Judgement { verdict, evidence } = judgement;
        let last_run = verdict
            .last_run
            .and_then(|index| history.runs.get(index))
            .map(|seen| seen.run.number);
        let body = Body {
            reason: verdict.reason,
            explanation: verdict.explanation,
            signals: verdict.signals,
            labels: verdict.labels,
            failing_on: verdict.failing_on,
            figures: verdict.figures,
            evidence,
        };
        self.push_body(int(verdict.test), verdict.status, true, last_run, body)
    }

    /// Adds the verdict on a test without results in the window.
    pub(super) fn push_unseen(
        &mut self,
        test: i32,
        engine: String,
        newest: Option<At>,
    ) -> Result<(), StoreError> {
        let body = Body {
            reason: None,
            explanation: format!("No runs in the last {ENGINE_WINDOW_DAYS} days"),
            signals: Vec::new(),
            labels: Vec::new(),
            failing_on: Vec::new(),
            figures: Figures {
                time_lost_ms: None,
                flake_score: 0.0,
                flake_rate: 0.0,
                flip_rate: 0.0,
                failure_rate: None,
                broken_probability: None,
                runs_in_window: 0,
                runs_considered: 0,
                failure_streak: 0,
                impact: 0.0,
            },
            evidence: Evidence {
                engine,
                now: Timestamp::from_unix_ms(0),
                window_days: ENGINE_WINDOW_DAYS,
                runs_seen: 0,
                runs_skipped: 0,
                runs_dropped: 0,
                dropped: Vec::new(),
                signals: Vec::new(),
            },
        };
        self.push_body(test, VerdictStatus::InsufficientData, false, None, body)?;
        if let Some(last) = self.newest.last_mut() {
            *last = newest;
        }
        Ok(())
    }

    fn push_body(
        &mut self,
        test: i32,
        status: VerdictStatus,
        in_window: bool,
        last_run: Option<i32>,
        mut body: Body,
    ) -> Result<(), StoreError> {
        body.evidence.now = Timestamp::from_unix_ms(0);
        let body = serde_json::to_string(&body).map_err(|source| StoreError::Failed {
            doing: "writing verdicts",
            source: Box::new(source),
        })?;
        self.tests.push(test);
        self.statuses.push(status);
        self.in_window.push(in_window);
        self.last_runs.push(last_run);
        self.last_statuses.push(None);
        self.last_offsets.push(None);
        self.newest.push(None);
        self.bodies.push(storable(&body));
        Ok(())
    }

    /// Stores the rows that differ from what is stored.
    ///
    /// Raw SQL, because diesel has no insert from arrays. One statement for any number of tests.
    pub(super) fn store(&self, connection: &mut PgConnection, project: Uuid) -> QueryResult<usize> {
        let statuses: Vec<&str> = self.statuses.iter().map(|status| status.as_str()).collect();
        diesel::sql_query(
            "INSERT INTO verdict AS stored (project_id, test, status, in_window, last_run, last_status, \
                 last_offset_ms, newest, body) \
             SELECT $1, * FROM unnest($2, $3, $4, $5, $6, $7, $8, $9) \
             ON CONFLICT (project_id, test) DO UPDATE \
             SET status = excluded.status, in_window = excluded.in_window, last_run = excluded.last_run, \
                 last_status = excluded.last_status, last_offset_ms = excluded.last_offset_ms, \
                 newest = excluded.newest, body = excluded.body \
             WHERE (stored.status, stored.in_window, stored.last_run, stored.last_status, stored.last_offset_ms, \
                     stored.newest, stored.body) \
                 IS DISTINCT FROM (excluded.status, excluded.in_window, excluded.last_run, excluded.last_status, \
                     excluded.last_offset_ms, excluded.newest, excluded.body)",
        )
        .bind::<SqlUuid, _>(project)
        .bind::<Array<Integer>, _>(&self.tests)
        .bind::<Array<Text>, _>(&statuses)
        .bind::<Array<Bool>, _>(&self.in_window)
        .bind::<Array<Nullable<Integer>>, _>(&self.last_runs)
        .bind::<Array<Nullable<SmallInt>>, _>(&self.last_statuses)
        .bind::<Array<Nullable<Integer>>, _>(&self.last_offsets)
        .bind::<Array<Nullable<Timestamptz>>, _>(&self.newest)
        .bind::<Array<Text>, _>(&self.bodies)
        .execute(connection)
    }
}
