//! The number of tests that showed each error signature of a period.
//!
//! Counting reads every failed attempt of the period, so it takes longer than the rest of the answer about a failed
//! run. Requests share it until the state of the project changes, or the first or the last run of the period.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use assay_domain::{joins::Joins, project::Project, test::TestOrdinal, timestamp::Timestamp};
use diesel::{
    dsl::{count as count_of, not},
    prelude::*,
};

use crate::{
    db::{
        column::{At, count},
        pool::{Read, converted},
        schema::{attempt, run},
    },
    read::shared_values::{SharedValues, ValueName, WindowState},
};

/// The numbers of tests, with the signatures' numbers.
pub(crate) type TextCounts = Arc<[(u32, u32)]>;

/// How many tests showed each error signature in the runs that count in verdicts and started within `from..=to`.
/// `window` has these runs in the state that the connection's transaction sees.
pub(crate) fn read_shared(
    connection: &mut PgConnection,
    shared: &SharedValues,
    project: &Project,
    joins: &Joins,
    window: WindowState,
    period: (Timestamp, Timestamp),
) -> Read<TextCounts> {
    shared.cached_or_read(
        window,
        ValueName::TextCounts,
        || read(connection, project, joins, period),
        |counts| size_of_val(&**counts),
    )
}

/// The same for this request alone.
pub(crate) fn read(
    connection: &mut PgConnection,
    project: &Project,
    joins: &Joins,
    (from, to): (Timestamp, Timestamp),
) -> Read<TextCounts> {
    // Runs of pull-request keys are excluded. Such a key may be public, and its runs must not make common an error
    // text that identifies a failure.
    let not_counted = run::table
        .filter(run::project_id.eq(project.id.0))
        .filter(run::started_at.between(At(from), At(to)))
        .filter(not(run::counts_in_verdicts))
        .select(run::number);
    let with_texts = attempt::table
        .filter(
            attempt::project_id
                .eq(project.id.0)
                .and(attempt::started_at.between(At(from), At(to))),
        )
        .filter(attempt::signature.is_not_null())
        .filter(attempt::run_number.ne_all(not_counted));
    if !joins.is_empty() {
        let rows: Vec<(Option<i32>, i32, At)> = with_texts
            .select((attempt::signature, attempt::test, attempt::started_at))
            .distinct()
            .load(connection)?;
        return of_present_tests(joins, rows);
    }
    let rows: Vec<(Option<i32>, i64)> = with_texts
        .group_by(attempt::signature)
        .select((attempt::signature, count_of(attempt::test).aggregate_distinct()))
        .load(connection)?;
    let counts = rows.into_iter().filter_map(|(text, tests)| Some((text?, tests)));
    converted(counts, |(text, tests)| Ok((count(text)?, count(tests)?)))
}

/// The numbers of tests if some count as other ones.
fn of_present_tests(joins: &Joins, rows: Vec<(Option<i32>, i32, At)>) -> Read<TextCounts> {
    let mut tests: BTreeSet<(u32, TestOrdinal)> = BTreeSet::new();
    for (text, test, start) in rows {
        let Some(text) = text else { continue };
        tests.insert((count(text)?, joins.at(count(test)?, start.0)));
    }
    let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
    for (text, _) in tests {
        *counts.entry(text).or_default() += 1;
    }
    Ok(counts.into_iter().collect())
}
