//! The stored fixes of a test.

use assay_domain::{
    fix::{MOST_FIXES, StoredFix},
    project::Project,
    test::{TestLookup, TestSelector},
};
use diesel::prelude::*;
use serde::Deserialize as _;
use serde_json::Value;

use crate::{
    db::{column::corrupt, pool::Read, schema::fix},
    read::test,
};

/// The fixes of a test under its names, the newest first.
pub(crate) fn of_test(
    connection: &mut PgConnection,
    project: &Project,
    selector: &TestSelector,
) -> Read<TestLookup<Vec<StoredFix>>> {
    let lookup = test::find(connection, project, selector)?;
    lookup.try_map(|found| {
        let bodies: Vec<Value> = fix::table
            .filter(fix::project_id.eq(project.id.0))
            .filter(fix::test.eq_any(&found.stored_as))
            .order(fix::id.desc())
            .limit(i64::from(MOST_FIXES))
            .select(fix::body)
            .load(connection)?;
        let fixes = bodies
            .iter()
            .map(|body| StoredFix::deserialize(body).map_err(|_| corrupt("fix", &body.to_string())));
        Ok(fixes.collect::<Result<_, _>>()?)
    })
}
