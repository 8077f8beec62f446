//! Counts what a key stores on a day, in the transaction that stores it.

use assay_domain::{recording::Recording, rules::RecordingRules, store::RecordError, timestamp::Timestamp};
use diesel::{prelude::*, upsert::excluded};
use time::OffsetDateTime;
use uuid::Uuid;

use super::work::Work;
use crate::db::{column::long_count, pool::WorkError, schema::upload_day};

/// Adds a recording to what its key stored on this day. Refuses it if that is more than the key may store.
pub(super) fn count(
    connection: &mut PgConnection,
    project: Uuid,
    recording: &Recording,
    rules: RecordingRules,
    now: Timestamp,
) -> Work<()> {
    let RecordingRules::IngestKey {
        budget: Some(budget), ..
    } = rules
    else {
        return Ok(());
    };
    let tests: usize = recording.tests.iter().map(|test| test.attempts.len()).sum();
    let (tests, bytes): (i64, i64) = diesel::insert_into(upload_day::table)
        .values((
            upload_day::project_id.eq(project),
            upload_day::day.eq(OffsetDateTime::from(now).date()),
            upload_day::key_id.eq(budget.key.0),
            upload_day::tests.eq(i64::try_from(tests).unwrap_or(i64::MAX)),
            upload_day::bytes.eq(i64::try_from(budget.bytes).unwrap_or(i64::MAX)),
        ))
        .on_conflict((upload_day::project_id, upload_day::day, upload_day::key_id))
        .do_update()
        .set((
            upload_day::tests.eq(upload_day::tests + excluded(upload_day::tests)),
            upload_day::bytes.eq(upload_day::bytes + excluded(upload_day::bytes)),
        ))
        .returning((upload_day::tests, upload_day::bytes))
        .get_result(connection)?;
    budget
        .of_day
        .check(long_count(tests)?, long_count(bytes)?, now)
        .map_err(|violation| WorkError::Refused(RecordError::NotAllowed(violation)))
}
