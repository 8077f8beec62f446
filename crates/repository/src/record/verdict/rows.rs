//! The rows of verdicts that are to be stored.

use std::collections::HashMap;

use assay_domain::{
    observation::History,
    store::StoreError,
    timestamp::Timestamp,
    verdict::{ENGINE_WINDOW_DAYS, Evidence, Figures, Judgement, VerdictStatus},
};
use diesel::{
    ExpressionMethods, PgConnection, QueryDsl, QueryResult, RunQueryDsl,
    pg::PgRowByRowLoadingMode,
    sql_types::{Array, Bool, Integer, Nullable, SmallInt, Text, Timestamptz, Uuid as SqlUuid},
};
use uuid::Uuid;

use crate::{
    db::{
        column::{At, int, storable},
        pool::Read,
        schema::verdict,
    },
    read::verdict::Body,
};

/// Test; status, whether it is in the window, newest run; last run with its status and offset; body.
type StoredColumns = (
    i32,
    (String, bool, Option<At>),
    (Option<i32>, Option<i16>, Option<i32>),
    String,
);

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
            .map(|last| last.run.number);
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
    pub(super) fn push_outside_window(
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

    /// The rows that differ from the stored ones.
    pub(super) fn without_stored(self, connection: &mut PgConnection, project: Uuid) -> Read<Self> {
        let places: HashMap<i32, usize> = self.tests.iter().copied().zip(0..).collect();
        let mut differs = vec![true; self.tests.len()];
        // Row by row, because the bodies of all tests are large.
        let stored = verdict::table
            .filter(verdict::project_id.eq(project))
            .select((
                verdict::test,
                (verdict::status, verdict::in_window, verdict::newest),
                (verdict::last_run, verdict::last_status, verdict::last_offset_ms),
                verdict::body,
            ))
            .load_iter::<StoredColumns, PgRowByRowLoadingMode>(connection)?;
        for stored in stored {
            let stored = stored?;
            if let Some(place) = places.get(&stored.0)
                && let Some(differs) = differs.get_mut(*place)
            {
                *differs = !self.is_at(*place, &stored);
            }
        }
        Ok(self.only(&differs))
    }

    /// Whether the row at a place equals the stored one.
    fn is_at(&self, place: usize, (_, (status, in_window, newest), last, body): &StoredColumns) -> bool {
        let (last_run, last_status, last_offset) = last;
        self.statuses.get(place).map(|status| status.as_str()) == Some(status)
            && self.in_window.get(place) == Some(in_window)
            && self.newest.get(place) == Some(newest)
            && self.last_runs.get(place) == Some(last_run)
            && self.last_statuses.get(place) == Some(last_status)
            && self.last_offsets.get(place) == Some(last_offset)
            && self.bodies.get(place) == Some(body)
    }

    /// The rows at the chosen places.
    fn only(self, is_chosen: &[bool]) -> Self {
        fn column<T>(column: Vec<T>, is_chosen: &[bool]) -> Vec<T> {
            let is_chosen = column
                .into_iter()
                .zip(is_chosen)
                .filter(|(_, is_chosen)| **is_chosen);
            is_chosen.map(|(value, _)| value).collect()
        }
        Self {
            tests: column(self.tests, is_chosen),
            statuses: column(self.statuses, is_chosen),
            in_window: column(self.in_window, is_chosen),
            last_runs: column(self.last_runs, is_chosen),
            last_statuses: column(self.last_statuses, is_chosen),
            last_offsets: column(self.last_offsets, is_chosen),
            newest: column(self.newest, is_chosen),
            bodies: column(self.bodies, is_chosen),
        }
    }

    /// Stores the rows.
    ///
    /// Raw SQL, because diesel has no insert from arrays. One statement for any number of tests.
    pub(super) fn store(&self, connection: &mut PgConnection, project: Uuid) -> QueryResult<usize> {
        if self.tests.is_empty() {
            return Ok(0);
        }
        let statuses: Vec<&str> = self.statuses.iter().map(|status| status.as_str()).collect();
        diesel::sql_query(
            "INSERT INTO verdict (project_id, test, status, in_window, last_run, last_status, \
                 last_offset_ms, newest, body) \
             SELECT $1, * FROM unnest($2, $3, $4, $5, $6, $7, $8, $9) \
             ON CONFLICT (project_id, test) DO UPDATE \
             SET status = excluded.status, in_window = excluded.in_window, last_run = excluded.last_run, \
                 last_status = excluded.last_status, last_offset_ms = excluded.last_offset_ms, \
                 newest = excluded.newest, body = excluded.body",
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
