//! Results in blocks: a row of `result_block` has those of 512 tests with neighbouring numbers in a run.
//!
//! [`result_of`] is the SQL that takes the result of one test out of a block. Whoever needs many results of a run reads
//! its blocks.

use std::collections::{BTreeSet, HashMap, HashSet};

use assay_domain::store::StoreError;
use diesel::{
    pg::{Pg, PgRowByRowLoadingMode},
    prelude::*,
    sql_types::{Array, Integer, Nullable},
};
use uuid::Uuid;

use crate::db::{
    column::{At, corrupt, int},
    pool::Read,
    schema::result_block,
    sql_statement::SqlStatement,
};

/// The number of tests of a block.
const BLOCK_TESTS: i32 = 512;
/// The number of bytes of a block's `present`.
const PRESENT_BYTES: usize = 64;

/// The most that a start may be away from the run's, so that differences of starts fit: six days.
pub(crate) const FARTHEST_START_MS: i32 = 1 << 29;

/// The block of a test.
const fn block_of(test: i32) -> i32 {
    test / BLOCK_TESTS
}

/// SQL: joins the result of a test from `block`, a row of `result_block`, as `result`. There is no row if the test did
/// not run, or if its status does not exist. The view `result` has the same columns.
macro_rules! result_of {
    ($test:literal) => {
        concat!(
            " CROSS JOIN LATERAL (SELECT ",
            $test,
            " % 512 AS place) AS asked \
             CROSS JOIN LATERAL (SELECT CASE WHEN block.present IS NULL THEN asked.place \
                 WHEN get_bit(block.present, asked.place) = 1 THEN bit_count(set_byte( \
                     substring(block.present FOR asked.place / 8 + 1), asked.place / 8, \
                     get_byte(block.present, asked.place / 8) & ((1 << asked.place % 8) - 1)))::integer \
                 END AS index) AS found \
             CROSS JOIN LATERAL (SELECT \
                 CASE WHEN found.index < length(block.status) THEN get_byte(block.status, found.index)::smallint END \
                     AS status, \
                 coalesce(block.duration_ms[found.index + 1], block.long_duration_ms[found.index + 1]) AS duration_ms, \
                 CASE WHEN block.start_step_ms[found.index + 1] IS NOT NULL THEN ( \
                     (SELECT sum(step) FROM unnest(block.start_step_ms[:found.index + 1]) AS step) \
                     + (SELECT coalesce(sum(ms), 0) FROM unnest(block.duration_ms[:found.index]) AS ms) \
                 )::integer END AS start_offset_ms, \
                 coalesce(block.browser[found.index + 1], 0) AS browser, \
                 coalesce(block.attempts[found.index + 1], 0) AS attempts, \
                 coalesce(block.part[found.index + 1], 0::smallint) AS part \
             WHERE CASE WHEN found.index < length(block.status) THEN get_byte(block.status, found.index) < 5 END) AS result"
        )
    };
}
pub(crate) use result_of;

/// Puts these tests at `{requested}`, as a table with a column `test`, and a comparison with them at `{is_requested}`.
pub(crate) fn with_tests<'a, Row>(
    statement: SqlStatement<'a, Row>,
    tests: &'a [i32],
) -> SqlStatement<'a, Row> {
    match tests {
        // Postgres expects ten rows of an array, and would plan for them.
        [only] => statement
            .text("requested", "(SELECT {test}::integer AS test)")
            .text("is_requested", "= {test}")
            .bind("test", *only),
        several => statement
            .text("requested", "(SELECT unnest({tests}) AS test)")
            .text("is_requested", "= ANY({tests})")
            .bind("tests", several),
    }
}

/// The result of a test in a run: its final attempt, as stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredResult {
    pub(crate) test: i32,
    pub(crate) status: i16,
    pub(crate) duration_ms: Option<i64>,
    /// The milliseconds from the run's start to that of the attempt. None also where starts are not read.
    pub(crate) start_offset_ms: Option<i32>,
    pub(crate) browser: i32,
    /// The largest number of attempts of one execution; 0 for a single one without rows of its own.
    pub(crate) attempts: i32,
    pub(crate) part: i16,
}

/// A row of the table.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable, Insertable)]
#[diesel(table_name = result_block, check_for_backend(Pg), treat_none_as_default_value = false)]
pub(crate) struct ResultBlock {
    project_id: Uuid,
    started_at: At,
    run_number: i32,
    pub(crate) block: i32,
    present: Option<Vec<u8>>,
    status: Vec<u8>,
    duration_ms: Vec<Option<i16>>,
    /// Those that are too long for `duration_ms`.
    long_duration_ms: Option<Vec<Option<i64>>>,
    start_step_ms: Option<Vec<Option<i32>>>,
    browser: Option<Vec<i32>>,
    attempts: Option<Vec<i32>>,
    part: Option<Vec<i16>>,
}

impl ResultBlock {
    /// The blocks of some results, which are in the order of their tests.
    pub(crate) fn of_results(
        project_id: Uuid,
        run_number: i32,
        started_at: At,
        results: &[StoredResult],
    ) -> Vec<Self> {
        let blocks = results.chunk_by(|current, next| block_of(current.test) == block_of(next.test));
        let block = |results: &[StoredResult]| {
            let fits = |result: &StoredResult| result.duration_ms.and_then(|ms| i16::try_from(ms).ok());
            let too_long =
                |result: &StoredResult| result.duration_ms.filter(|ms| i16::try_from(*ms).is_err());
            let duration_ms: Vec<Option<i16>> = results.iter().map(fits).collect();
            let mut expected = ExpectedStart::default();
            let steps = results.iter().zip(&duration_ms);
            let steps = steps.map(|(result, ms)| expected.step(result.start_offset_ms, *ms));
            Self {
                project_id,
                started_at,
                run_number,
                block: results.first().map_or(0, |first| block_of(first.test)),
                present: present(results),
                status: results
                    .iter()
                    .map(|result| u8::try_from(result.status).unwrap_or(u8::MAX))
                    .collect(),
                start_step_ms: unless_all(None, steps),
                long_duration_ms: unless_all(None, results.iter().map(too_long)),
                duration_ms,
                browser: unless_all(0, results.iter().map(|result| result.browser)),
                attempts: unless_all(0, results.iter().map(|result| result.attempts)),
                part: unless_all(0, results.iter().map(|result| result.part)),
            }
        };
        blocks.map(block).collect()
    }

    /// Its results, in the order of their tests.
    pub(crate) fn results(&self) -> Result<Vec<StoredResult>, StoreError> {
        let tests = self.tests();
        let count = self.status.len();
        let lengths = [
            Some(tests.len()),
            Some(self.duration_ms.len()),
            self.long_duration_ms.as_ref().map(Vec::len),
            self.start_step_ms.as_ref().map(Vec::len),
            self.browser.as_ref().map(Vec::len),
            self.attempts.as_ref().map(Vec::len),
            self.part.as_ref().map(Vec::len),
        ];
        if lengths.into_iter().flatten().any(|length| length != count) {
            let place = format!("block {} of run {}", self.block, self.run_number);
            return Err(corrupt("block of results", &place));
        }
        let mut expected = ExpectedStart::default();
        let result = |(index, test): (usize, i32)| {
            let short_ms = at(Some(&self.duration_ms), index).flatten();
            let step = at(self.start_step_ms.as_ref(), index).flatten();
            StoredResult {
                test,
                status: self.status.get(index).copied().map_or(0, i16::from),
                duration_ms: (short_ms.map(i64::from))
                    .or_else(|| at(self.long_duration_ms.as_ref(), index).flatten()),
                start_offset_ms: expected.start(step, short_ms),
                browser: at(self.browser.as_ref(), index).unwrap_or(0),
                attempts: at(self.attempts.as_ref(), index).unwrap_or(0),
                part: at(self.part.as_ref(), index).unwrap_or(0),
            }
        };
        Ok(tests.into_iter().enumerate().map(result).collect())
    }

    /// The numbers of its tests.
    fn tests(&self) -> Vec<i32> {
        let first = self.block.saturating_mul(BLOCK_TESTS);
        let is_present = |place: &i32| match &self.present {
            None => *place < int(self.status.len()),
            Some(present) => is_set(present, *place),
        };
        (0..BLOCK_TESTS)
            .filter(is_present)
            .map(|place| first.saturating_add(place))
            .collect()
    }
}

/// The start of a block's next result if each test starts at the end of the one before it, as in a serial suite. Starts
/// are stored as differences from it, which compress well.
#[derive(Debug, Default)]
struct ExpectedStart {
    ms: i64,
}

impl ExpectedStart {
    /// The difference of a start, and takes account of its result.
    fn step(&mut self, start: Option<i32>, short_ms: Option<i16>) -> Option<i32> {
        let step = start.and_then(|start| i32::try_from(i64::from(start) - self.ms).ok());
        self.start(step, short_ms);
        step
    }

    /// The start with this difference, and takes account of its result.
    fn start(&mut self, step: Option<i32>, short_ms: Option<i16>) -> Option<i32> {
        self.ms += step.map_or(0, i64::from);
        let start = step.and_then(|_| i32::try_from(self.ms).ok());
        self.ms += short_ms.map_or(0, i64::from);
        start
    }
}

/// The bits of the tests with these results; none if they are the first ones of their block.
fn present(results: &[StoredResult]) -> Option<Vec<u8>> {
    let places = || results.iter().map(|result| result.test % BLOCK_TESTS);
    if places().eq(0..int(results.len())) {
        return None;
    }
    let mut present = vec![0; PRESENT_BYTES];
    for place in places() {
        let byte = usize::try_from(place / 8).ok();
        if let Some(byte) = byte.and_then(|byte| present.get_mut(byte)) {
            *byte |= 1 << (place % 8);
        }
    }
    Some(present)
}

/// Whether the bit of a place is set.
fn is_set(present: &[u8], place: i32) -> bool {
    let byte = usize::try_from(place / 8).ok();
    let byte = byte.and_then(|byte| present.get(byte)).copied().unwrap_or(0);
    byte >> (place % 8) & 1 == 1
}

/// The values; none if all of them are this one.
fn unless_all<T: PartialEq>(usual: T, values: impl Iterator<Item = T>) -> Option<Vec<T>> {
    let values: Vec<T> = values.collect();
    values.iter().any(|value| *value != usual).then_some(values)
}

fn at<T: Copy>(values: Option<&Vec<T>>, index: usize) -> Option<T> {
    values?.get(index).copied()
}

/// The blocks of a run, in their order.
pub(crate) fn of_run(
    connection: &mut PgConnection,
    project: Uuid,
    run: i32,
    started_at: At,
) -> QueryResult<Vec<ResultBlock>> {
    result_block::table
        .filter(result_block::project_id.eq(project))
        .filter(result_block::run_number.eq(run))
        .filter(result_block::started_at.eq(started_at))
        .order(result_block::block)
        .select(ResultBlock::as_select())
        .load(connection)
}

/// The columns of a [`ResultBlock`], without the starts, which are outside of its row.
macro_rules! without_starts {
    () => {
        (
            result_block::project_id,
            result_block::started_at,
            result_block::run_number,
            result_block::block,
            result_block::present,
            result_block::status,
            result_block::duration_ms,
            result_block::long_duration_ms,
            None::<Vec<Option<i32>>>.into_sql::<Nullable<Array<Nullable<Integer>>>>(),
            result_block::browser,
            result_block::attempts,
            result_block::part,
        )
    };
}

/// The results of a run, or of some of its tests, in the order of the tests. Without starts.
pub(crate) fn results_of_run(
    connection: &mut PgConnection,
    project: Uuid,
    run: i32,
    started_at: At,
    only: Option<&[i32]>,
) -> Read<Vec<StoredResult>> {
    let mut statement = result_block::table
        .filter(result_block::project_id.eq(project))
        .filter(result_block::run_number.eq(run))
        .filter(result_block::started_at.eq(started_at))
        .order(result_block::block)
        .select(without_starts!())
        .into_boxed();
    if let Some(only) = only {
        statement = statement.filter(result_block::block.eq_any(blocks_of(only)));
    }
    let requested: Option<HashSet<i32>> = only.map(|tests| tests.iter().copied().collect());
    let is_requested = |result: &StoredResult| {
        requested
            .as_ref()
            .is_none_or(|tests| tests.contains(&result.test))
    };
    let mut results = Vec::new();
    for block in statement.load::<ResultBlock>(connection)? {
        results.extend(block.results()?.into_iter().filter(is_requested));
    }
    Ok(results)
}

/// Calls `each` with the results of these runs, which start within the bounds, without starts, and the number of the run.
/// One block is in memory at a time.
pub(crate) fn for_each_of_runs(
    connection: &mut PgConnection,
    project: Uuid,
    runs: &[i32],
    (from, to): (At, At),
    mut each: impl FnMut(i32, StoredResult),
) -> Read<()> {
    let blocks = result_block::table
        .filter(result_block::project_id.eq(project))
        .filter(result_block::run_number.eq_any(runs))
        .filter(result_block::started_at.between(from, to))
        .select(without_starts!())
        .load_iter::<ResultBlock, PgRowByRowLoadingMode>(connection)?;
    for block in blocks {
        let block = block?;
        let run = block.run_number;
        match block.results() {
            Ok(results) => results.into_iter().for_each(|result| each(run, result)),
            Err(error) => log::error!("a run is left out of durations: {error}"),
        }
    }
    Ok(())
}

/// The number of a run's results with this status. Reads no other column.
pub(crate) fn count_with_status(
    connection: &mut PgConnection,
    project: Uuid,
    run: i32,
    started_at: At,
    status: i16,
) -> QueryResult<usize> {
    let blocks: Vec<Vec<u8>> = result_block::table
        .filter(result_block::project_id.eq(project))
        .filter(result_block::run_number.eq(run))
        .filter(result_block::started_at.eq(started_at))
        .select(result_block::status)
        .load(connection)?;
    let codes = blocks.iter().flatten();
    Ok(codes.filter(|code| i16::from(**code) == status).count())
}

/// The blocks of some tests, in their order.
fn blocks_of(tests: &[i32]) -> Vec<i32> {
    let blocks: BTreeSet<i32> = tests.iter().copied().map(block_of).collect();
    blocks.into_iter().collect()
}

/// The starts of the newest runs with a result of each of these tests, by test. `bounds` limits the starts. Tests without
/// results are left out.
///
/// Reads the blocks of these tests in all runs. Runs with the same tests of a block are one row of the answer.
pub(crate) fn newest_starts(
    connection: &mut PgConnection,
    project: Uuid,
    tests: &[i32],
    bounds: Option<(At, At)>,
) -> QueryResult<HashMap<i32, At>> {
    let blocks = blocks_of(tests);
    if blocks.is_empty() {
        return Ok(HashMap::new());
    }
    let mut statement = SqlStatement::new(
        "SELECT block.block, block.present, length(block.status), max(block.started_at) \
         FROM result_block AS block \
         WHERE block.project_id = {project} AND block.block = ANY({blocks})",
    )
    .bind("project", project)
    .bind("blocks", &*blocks);
    if let Some((from, to)) = bounds {
        statement = statement
            .sql(" AND block.started_at BETWEEN {from} AND {to}")
            .bind("from", from)
            .bind("to", to);
    }
    type Row = (i32, Option<Vec<u8>>, i32, Option<At>);
    let rows: Vec<Row> = statement.sql(" GROUP BY 1, 2, 3").load(connection)?;
    let mut by_block: HashMap<i32, Vec<Row>> = HashMap::new();
    for row in rows {
        by_block.entry(row.0).or_default().push(row);
    }
    let newest_start = |test: &i32| {
        let place = test % BLOCK_TESTS;
        let with_test = |(_, present, count, _): &&Row| match present {
            Some(present) => is_set(present, place),
            None => place < *count,
        };
        let rows = by_block.get(&block_of(*test))?.iter().filter(with_test);
        Some((*test, rows.filter_map(|(.., newest)| *newest).max()?))
    };
    Ok(tests.iter().filter_map(newest_start).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn results() -> impl Strategy<Value = Vec<StoredResult>> {
        let duration = prop::option::of(prop_oneof![0i64..10_000, 32_700i64..32_800, any::<i64>()]);
        let start = prop::option::of(-FARTHEST_START_MS..=FARTHEST_START_MS);
        let values = (0i16..5, duration, start, 0i32..3, 0i32..3, 0i16..3);
        prop::collection::btree_map(0i32..1_500, values, 0..600).prop_map(|tests| {
            let result = |(test, values)| {
                let (status, duration_ms, start_offset_ms, browser, attempts, part) = values;
                StoredResult {
                    test,
                    status,
                    duration_ms,
                    start_offset_ms,
                    browser,
                    attempts,
                    part,
                }
            };
            tests.into_iter().map(result).collect()
        })
    }

    fn blocks(results: &[StoredResult]) -> Vec<ResultBlock> {
        let start = At(assay_domain::timestamp::Timestamp::from_unix_ms(0));
        ResultBlock::of_results(Uuid::nil(), 1, start, results)
    }

    proptest! {
        #[test]
        fn blocks_have_the_results_of_which_they_are_made(results in results()) {
            let blocks = blocks(&results);
            prop_assert!(blocks.windows(2).all(|pair| pair[0].block < pair[1].block));
            let read: Vec<_> = blocks.iter().flat_map(|block| block.results().unwrap()).collect();
            prop_assert_eq!(read, results);
        }
    }

    #[test]
    fn a_block_of_clean_passes_has_two_columns() {
        let passed = |test| StoredResult {
            test,
            status: 0,
            duration_ms: Some(5),
            start_offset_ms: None,
            browser: 0,
            attempts: 0,
            part: 0,
        };
        let full = blocks(&(512..1_024).map(passed).collect::<Vec<_>>());
        let [block] = full.as_slice() else {
            panic!("{full:?}")
        };
        assert_eq!((block.block, block.status.len()), (1, 512));
        let bare = (&block.present, &block.browser, &block.attempts, &block.part);
        assert_eq!(bare, (&None, &None, &None, &None));
        assert_eq!((&block.start_step_ms, &block.long_duration_ms), (&None, &None));
        let sparse = blocks(&[600, 700].map(passed));
        assert_eq!(
            (sparse[0].status.len(), sparse[0].present.as_ref().unwrap().len()),
            (2, 64)
        );
    }

    #[test]
    fn a_block_whose_columns_differ_in_length_is_refused() {
        let mut damaged = blocks(&results_of(&[3, 5])).remove(0);
        assert!(damaged.results().is_ok());
        damaged.duration_ms.pop();
        assert!(matches!(
            damaged.results(),
            Err(StoreError::Corrupt {
                what: "block of results",
                ..
            })
        ));
    }

    fn results_of(tests: &[i32]) -> Vec<StoredResult> {
        let result = |test: &i32| StoredResult {
            test: *test,
            status: 0,
            duration_ms: None,
            start_offset_ms: None,
            browser: 0,
            attempts: 0,
            part: 0,
        };
        tests.iter().map(result).collect()
    }
}
