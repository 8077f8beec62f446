//! Verdicts in blocks: a row of `verdict_block` has those on 128 tests with neighbouring numbers. The runs of their
//! evidence are in rows of `verdict_evidence`, which change only if a test fails or passes again.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use assay_domain::verdict::{Signal, VerdictStatus};
use diesel::{
    pg::Pg,
    prelude::*,
    sql_types::{Integer, Nullable, Timestamptz},
};
use uuid::Uuid;

use crate::db::{
    column::{At, int, optional_word, word},
    schema::{verdict_block, verdict_evidence},
    static_sql::{StaticSql, static_sql},
};

/// The number of tests of a block: fewer than of a block of results, because a status reads a whole one.
const BLOCK_VERDICTS: i32 = 128;

/// SQL: the number of the block of the row of `test`.
pub(crate) fn block_of_test() -> StaticSql<Integer> {
    static_sql("test.ordinal / 128")
}

/// SQL: an element of a column of `verdict_block`, that of the row of `test`.
macro_rules! element_of_test {
    ($column:literal, $type:ty) => {
        crate::db::static_sql::static_sql::<diesel::sql_types::Nullable<$type>>(concat!(
            "verdict_block.",
            $column,
            "[test.ordinal % 128 + 1]"
        ))
    };
}
pub(crate) use element_of_test;

/// SQL: when the newest run of the row of `test` started, by its verdict.
pub(crate) fn newest_run() -> StaticSql<Nullable<Timestamptz>> {
    element_of_test!("newest", Timestamptz)
}

/// The verdict on a test without the runs of its evidence, as stored.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BlockVerdict {
    pub(crate) status: VerdictStatus,
    pub(crate) reason: Option<Signal>,
    /// Whether its test had a result in the engine's window.
    pub(crate) in_window: bool,
    pub(crate) last_run: Option<i32>,
    pub(crate) last_status: Option<i16>,
    pub(crate) last_offset_ms: Option<i32>,
    pub(crate) newest: Option<At>,
    pub(crate) own: OwnFigures,
    /// [`super::verdict::Body`] as JSON, which tests share.
    pub(crate) body: Arc<str>,
}

/// The figures that differ from test to test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct OwnFigures {
    pub(crate) time_lost_ms: Option<i64>,
    pub(crate) flake_score: f64,
    pub(crate) flake_rate: f64,
    pub(crate) broken_probability: Option<f64>,
    pub(crate) impact: f64,
}

/// A row of `verdict_block`.
#[derive(Debug, Clone, PartialEq, Queryable, Selectable, Insertable)]
#[diesel(table_name = verdict_block, check_for_backend(Pg), treat_none_as_default_value = false)]
pub(crate) struct VerdictBlock {
    project_id: Uuid,
    pub(crate) block: i32,
    status: Vec<Option<String>>,
    reason: Vec<Option<String>>,
    in_window: Vec<bool>,
    last_run: Vec<Option<i32>>,
    last_status: Vec<Option<i16>>,
    last_offset_ms: Vec<Option<i32>>,
    newest: Vec<Option<At>>,
    time_lost_ms: Vec<Option<i64>>,
    flake_score: Vec<f64>,
    flake_rate: Vec<f64>,
    broken_probability: Vec<Option<f64>>,
    impact: Vec<f64>,
    /// From 1; 0 without a verdict.
    body: Vec<i16>,
    bodies: Vec<String>,
}

impl VerdictBlock {
    /// The blocks of all verdicts of a project.
    pub(crate) fn of_verdicts(project: Uuid, verdicts: &BTreeMap<i32, BlockVerdict>) -> Vec<Self> {
        let verdicts: Vec<(i32, &BlockVerdict)> = verdicts.iter().map(|(test, row)| (*test, row)).collect();
        let blocks = verdicts.chunk_by(|current, next| current.0 / BLOCK_VERDICTS == next.0 / BLOCK_VERDICTS);
        blocks.map(|block| Self::of_block(project, block)).collect()
    }

    fn of_block(project_id: Uuid, verdicts: &[(i32, &BlockVerdict)]) -> Self {
        let by_place: HashMap<i32, &BlockVerdict> = verdicts
            .iter()
            .map(|(test, row)| (test % BLOCK_VERDICTS, *row))
            .collect();
        let last = verdicts.last().map_or(0, |(test, _)| *test);
        let rows: Vec<Option<&BlockVerdict>> = (0..=last % BLOCK_VERDICTS)
            .map(|place| by_place.get(&place).copied())
            .collect();
        let mut bodies = Vec::new();
        let mut numbers: HashMap<&str, i16> = HashMap::new();
        let mut number = |body| {
            *numbers.entry(body).or_insert_with(|| {
                bodies.push(String::from(body));
                i16::try_from(bodies.len()).unwrap_or(i16::MAX)
            })
        };
        Self {
            project_id,
            block: last / BLOCK_VERDICTS,
            body: rows
                .iter()
                .map(|row| row.map_or(0, |row| number(&row.body)))
                .collect(),
            bodies,
            status: column(&rows, |row| Some(row.status.as_str().to_owned())),
            reason: column(&rows, |row| row.reason.map(|reason| reason.as_str().to_owned())),
            in_window: column(&rows, |row| row.in_window),
            last_run: column(&rows, |row| row.last_run),
            last_status: column(&rows, |row| row.last_status),
            last_offset_ms: column(&rows, |row| row.last_offset_ms),
            newest: column(&rows, |row| row.newest),
            time_lost_ms: column(&rows, |row| row.own.time_lost_ms),
            flake_score: column(&rows, |row| row.own.flake_score),
            flake_rate: column(&rows, |row| row.own.flake_rate),
            broken_probability: column(&rows, |row| row.own.broken_probability),
            impact: column(&rows, |row| row.own.impact),
        }
    }

    /// Its verdicts with the numbers of their tests. `None` if no import writes such a row.
    fn verdicts(&self) -> Option<Vec<(i32, BlockVerdict)>> {
        let bodies: Vec<Arc<str>> = self.bodies.iter().map(|body| Arc::from(body.as_str())).collect();
        let mut verdicts = Vec::with_capacity(self.status.len());
        for (index, status) in self.status.iter().enumerate() {
            let Some(status) = status else { continue };
            let body = usize::try_from(*self.body.get(index)?).ok()?;
            let verdict = BlockVerdict {
                status: word("verdict", status).ok()?,
                reason: optional_word("signal", self.reason.get(index)?.as_deref()).ok()?,
                in_window: *self.in_window.get(index)?,
                last_run: *self.last_run.get(index)?,
                last_status: *self.last_status.get(index)?,
                last_offset_ms: *self.last_offset_ms.get(index)?,
                newest: *self.newest.get(index)?,
                own: OwnFigures {
                    time_lost_ms: *self.time_lost_ms.get(index)?,
                    flake_score: *self.flake_score.get(index)?,
                    flake_rate: *self.flake_rate.get(index)?,
                    broken_probability: *self.broken_probability.get(index)?,
                    impact: *self.impact.get(index)?,
                },
                body: Arc::clone(bodies.get(body.checked_sub(1)?)?),
            };
            verdicts.push((
                self.block.checked_mul(BLOCK_VERDICTS)?.checked_add(int(index))?,
                verdict,
            ));
        }
        Some(verdicts)
    }
}

/// One element for each place of a block.
fn column<T: Default>(rows: &[Option<&BlockVerdict>], value: impl Fn(&BlockVerdict) -> T) -> Vec<T> {
    rows.iter()
        .map(|row| row.map(&value).unwrap_or_default())
        .collect()
}

/// The stored blocks of a project with their verdicts by test.
pub(crate) struct StoredBlocks {
    pub(crate) blocks: Vec<VerdictBlock>,
    /// Unsound blocks have none: the next judgement writes them again.
    pub(crate) verdicts: BTreeMap<i32, BlockVerdict>,
}

impl StoredBlocks {
    /// All of a project.
    pub(crate) fn of_project(connection: &mut PgConnection, project: Uuid) -> QueryResult<Self> {
        let blocks: Vec<VerdictBlock> = verdict_block::table
            .filter(verdict_block::project_id.eq(project))
            .order(verdict_block::block)
            .select(VerdictBlock::as_select())
            .load(connection)?;
        let verdicts = blocks
            .iter()
            .filter_map(VerdictBlock::verdicts)
            .flatten()
            .collect();
        Ok(Self { blocks, verdicts })
    }

    /// The same without the verdicts on some tests.
    pub(crate) fn without(mut self, tests: &BTreeSet<i32>) -> Self {
        self.verdicts.retain(|test, _| !tests.contains(test));
        self
    }
}

/// A row of `verdict_evidence`.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable, Insertable)]
#[diesel(table_name = verdict_evidence, check_for_backend(Pg), treat_none_as_default_value = false)]
pub(crate) struct VerdictEvidence {
    pub(crate) project_id: Uuid,
    pub(crate) test: i32,
    pub(crate) failing_on: String,
    pub(crate) run_numbers: Vec<i32>,
}
