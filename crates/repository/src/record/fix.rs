//! Stores fixes of tests.

use std::collections::BTreeSet;

use assay_domain::{
    fix::{FixError, MOST_FIXES, NewFix, StoredFix},
    recording::Recording,
    rules::RecordingRules,
    store::StoreError,
    timestamp::Timestamp,
};
use diesel::{
    prelude::*,
    sql_types::{Double, Nullable},
};
use serde_json::Value;
use uuid::Uuid;

use super::intern::shown_tests;
use crate::{
    db::{
        column::{short_hash, storable},
        pool::{Read, WorkError},
        schema::{fix, test, verdict_block},
        static_sql::static_sql,
    },
    read::verdict_block::{block_of_test, element_of_test},
};

/// Most tests that a message claims.
const MOST_CLAIMS: usize = 20;

/// Stores a fix of a project under a new id, and deletes the oldest ones beyond the limit.
pub(crate) fn store_fix(
    connection: &mut PgConnection,
    (project, id): (Uuid, Uuid),
    new: &NewFix,
    rules: RecordingRules,
    now: Timestamp,
) -> Result<(), WorkError<FixError>> {
    if !rules.counts_in_verdicts() {
        return Err(WorkError::Refused(FixError::NotAllowed));
    }
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
    insert(connection, (project, test, id), &stored).map_err(WorkError::widened)
}

/// Stores the claims of a commit's message on the stable branch: lines such as `Assay-Fixes: cart > pays`. Returns the names
/// that no test of the project has.
pub(super) fn store_claims(
    connection: &mut PgConnection,
    project: Uuid,
    recording: &Recording,
    (now, id): (Timestamp, Uuid),
) -> Read<Vec<String>> {
    let context = &recording.context;
    let message = context.commit_message.as_deref().unwrap_or_default();
    let claimed: BTreeSet<&str> = message.lines().filter_map(claim).take(MOST_CLAIMS).collect();
    let revision = context.tested_revision.as_ref().or(context.commit_sha.as_ref());
    let (Some(revision), false) = (revision, claimed.is_empty()) else {
        return Ok(Vec::new());
    };
    let of_report = recording.tests.iter().map(|recorded| &recorded.test);
    let tests: Vec<(String, Option<String>)> = of_report
        .filter(|test| claimed.contains(test.name.as_str()))
        .map(|test| (test.name.clone(), test.file_path.clone()))
        .collect();
    for test in shown_tests(connection, project, &tests)?.into_iter().flatten() {
        let claim = StoredFix {
            stored_at: now,
            revision: storable(revision),
            rate_before: rate_before(connection, project, test)?,
            check: None,
        };
        let known: Vec<Value> = fix::table
            .filter(fix::project_id.eq(project))
            .filter(fix::test.eq(test))
            .select(fix::body)
            .load(connection)?;
        let is_same = |body: &Value| {
            body.get("revision").and_then(Value::as_str) == Some(claim.revision.as_str())
                && body.get("check").is_none_or(Value::is_null)
        };
        // Each shard of a run has the message.
        if !known.iter().any(is_same) {
            insert(connection, (project, test, id), &claim)?;
        }
    }
    let hashes: Vec<Vec<u8>> = claimed.iter().map(|name| short_hash(name)).collect();
    let known: Vec<Vec<u8>> = test::table
        .filter(test::project_id.eq(project))
        .filter(test::name_hash.eq_any(&hashes))
        .select(test::name_hash)
        .load(connection)?;
    let unknown = claimed
        .into_iter()
        .filter(|name| !known.contains(&short_hash(name)));
    Ok(unknown.map(str::to_owned).collect())
}

/// The rate of a test by its stored verdict; none if it did not fail. The next runs change it.
fn rate_before(connection: &mut PgConnection, project: Uuid, ordinal: i32) -> Read<Option<f64>> {
    let of_block = verdict_block::table.on(verdict_block::project_id
        .eq(project)
        .and(verdict_block::block.eq(block_of_test())));
    let failure_rate = static_sql::<Nullable<Double>>(
        "(verdict_block.bodies[verdict_block.body[test.ordinal % 128 + 1]]::jsonb #>> '{figures,failureRate}')::float8",
    );
    let figures: Option<(Option<f64>, Option<f64>)> = test::table
        .inner_join(of_block)
        .filter(test::project_id.eq(project))
        .filter(test::ordinal.eq(ordinal))
        .select((element_of_test!("flake_rate", Double), failure_rate))
        .first(connection)
        .optional()?;
    Ok(figures.and_then(|(rate, failures)| rate.filter(|_| failures > Some(0.0))))
}

/// The test that a line of a message claims to be fixed.
fn claim(line: &str) -> Option<&str> {
    let (name, test) = line.split_once(':')?;
    let test = test.trim();
    (name.trim().eq_ignore_ascii_case("assay-fixes") && !test.is_empty()).then_some(test)
}

/// Stores a fix, and deletes the oldest ones of the test beyond the limit.
fn insert(
    connection: &mut PgConnection,
    (project, test, id): (Uuid, i32, Uuid),
    stored: &StoredFix,
) -> Read<()> {
    let body = serde_json::to_value(stored).map_err(|error| StoreError::Failed {
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
