//! The number of runs that started on each day. The time of counting the runs of a period depends on its days and not
//! on its runs.

use std::ops::Range;

use assay_domain::timestamp::{DAY_MS, Timestamp};
use diesel::{
    prelude::*,
    sql_types::{Array, Timestamptz, Uuid as SqlUuid},
};
use uuid::Uuid;

use crate::db::{
    column::At,
    pool::Read,
    schema::{daily_count, run},
    sql_statement::ChangedRow,
};

/// The beginning of the day, in UTC, of a point in time.
pub(crate) fn day_of(at: At) -> At {
    At(Timestamp::from_unix_ms(
        at.0.unix_ms().div_euclid(DAY_MS) * DAY_MS,
    ))
}

/// The whole days in `from..=to`: from the beginning of the first to the end of the last. An empty range at `from` if
/// there are none.
pub(crate) fn whole_days(from: Timestamp, to: Timestamp) -> Range<At> {
    let first = match day_of(At(from)) {
        At(begun) if begun < from => At(begun.plus_days(1)),
        day => day,
    };
    let end = day_of(At(to.plus_ms(1)));
    if first < end {
        first..end
    } else {
        At(from)..At(from)
    }
}

/// Recomputes the rows of these days from the runs, and returns how many changed. Requires the project's lock. To be
/// called whenever runs are added, change their outcome, move in time or are deleted.
pub(crate) fn refresh(connection: &mut PgConnection, project: Uuid, days: &[At]) -> QueryResult<usize> {
    if days.is_empty() {
        return Ok(0);
    }
    // Raw SQL, because diesel has no delete and insert by arrays.
    let deleted = diesel::sql_query(
        "DELETE FROM daily_count WHERE daily_count.project_id = $1 AND day = ANY ($2) AND ( \
             SELECT run.number FROM run WHERE run.project_id = $1 AND coalesce(run.status, '') = daily_count.status \
                 AND run.started_at >= daily_count.day AND run.started_at < daily_count.day + interval '24 hours' LIMIT 1) IS NULL",
    )
    .bind::<SqlUuid, _>(project)
    .bind::<Array<Timestamptz>, _>(days)
    .execute(connection)?;
    let changed = diesel::sql_query(
        "INSERT INTO daily_count AS stored (project_id, day, status, runs) \
         SELECT $1, asked.day, coalesce(run.status, ''), count(*) FROM unnest($2) AS asked (day) \
             JOIN run ON run.project_id = $1 \
                 AND run.started_at >= asked.day AND run.started_at < asked.day + interval '24 hours' \
             GROUP BY asked.day, coalesce(run.status, '') \
         ON CONFLICT (project_id, day, status) DO UPDATE SET runs = excluded.runs WHERE stored.runs <> excluded.runs \
         RETURNING true",
    )
    .bind::<SqlUuid, _>(project)
    .bind::<Array<Timestamptz>, _>(days)
    .load::<ChangedRow>(connection)?;
    Ok(deleted + changed.len())
}

/// Recomputes the rows of all days, and returns how many changed.
pub(crate) fn rebuild(connection: &mut PgConnection, project: Uuid) -> Read<u64> {
    let of_runs = run::table
        .filter(run::project_id.eq(project))
        .select(run::started_at)
        .order(run::started_at);
    let mut days: Vec<At> = of_runs.load(connection)?.into_iter().map(day_of).collect();
    let stored_days: Vec<At> = daily_count::table
        .filter(daily_count::project_id.eq(project))
        .select(daily_count::day)
        .load(connection)?;
    days.extend(stored_days);
    days.sort_unstable();
    days.dedup();
    let changed = refresh(connection, project, &days)?;
    Ok(u64::try_from(changed).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn whole_days_are_those_that_lie_within(from in -4 * DAY_MS..4 * DAY_MS, length in 0..4 * DAY_MS) {
            let to = from + length;
            let days = whole_days(Timestamp::from_unix_ms(from), Timestamp::from_unix_ms(to));
            let run_days = std::iter::successors(Some(days.start.0), |day| Some(day.plus_days(1)))
                .take_while(|day| *day < days.end.0)
                .map(Timestamp::unix_ms);
            let expected = (-5..9).map(|day| day * DAY_MS).filter(|day| *day >= from && day + DAY_MS - 1 <= to);
            prop_assert_eq!(run_days.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
            prop_assert!(days.start <= days.end);
        }
    }

    #[test]
    fn a_day_begins_at_midnight_before_1970_too() {
        let at: Timestamp = "1969-12-30T23:59:59.999Z".parse().unwrap();
        assert_eq!(day_of(At(at)).0.to_string(), "1969-12-30T00:00:00.000Z");
    }
}
