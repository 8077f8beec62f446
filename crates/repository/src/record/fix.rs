//! Stores a fix of a test.

use assay_domain::{
    fix::{FixError, MOST_FIXES, NewFix, StoredFix},
    rules::RecordingRules,
    store::StoreError,
    timestamp::Timestamp,
};
use diesel::{ExpressionMethods as _, OptionalExtension as _, PgConnection, QueryDsl as _, RunQueryDsl as _};
use uuid::Uuid;

use super::intern::shown_tests;
use crate::db::{column::storable, pool::WorkError, schema::fix};

/// Stores a fix of a project under a new id, and deletes the oldest ones beyond the limit.
pub(crate) fn store_fix(
    connection: &mut PgConnection,
    (project, id): (Uuid, Uuid),
    new: &NewFix,
    rules: RecordingRules,
    now: Timestamp,
) -> Result<(), WorkError<FixError>> {
    // What a public key claims would be shown as if the project's own jobs did.
    rules
        .check_decision(true)
        .map_err(|violation| WorkError::Refused(violation.into()))?;
    let name = (storable(&new.test_name), new.file_path.as_deref().map(storable));
    let Some(test) = shown_tests(connection, project, &[name])?.pop().flatten() else {
        return Err(WorkError::Refused(FixError::NoTest {
            test_name: new.test_name.chars().take(200).collect(),
        }));
    };
    let stored = StoredFix {
        stored_at: now,
        revision: storable(&new.revision),
        rate_before: new.rate_before,
        check: new.check,
    };
    let body = serde_json::to_value(&stored).map_err(|error| StoreError::Failed {
        doing: "storing a fix",
        source: error.into(),
    })?;
    diesel::insert_into(fix::table)
        .values((
            fix::project_id.eq(project),
            fix::test.eq(test),
            fix::id.eq(id),
            fix::body.eq(body),
        ))
        .execute(connection)?;
    let of_test = fix::table
        .filter(fix::project_id.eq(project))
        .filter(fix::test.eq(test));
    let oldest: Option<Uuid> = of_test
        .order(fix::id.desc())
        .offset(i64::from(MOST_FIXES))
        .select(fix::id)
        .first(connection)
        .optional()?;
    if let Some(oldest) = oldest {
        diesel::delete(of_test.filter(fix::id.le(oldest))).execute(connection)?;
    }
    Ok(())
}
