//! Cache of the names of a project's tests.
//!
//! Searching and ordering a list of all tests needs every name, and a project may have 100,000. A number never names
//! another test, so a list only grows: it may have names of tests that were pruned. Every request reads the names after
//! the last cached one. The last one is compared, because a project that was restored from an older dump may number
//! other tests since then.

use std::sync::Arc;

use assay_domain::{
    test::TestOrdinal,
    test_names::{TestNameRef, TestNames},
};
use diesel::{
    ExpressionMethods as _, PgConnection, QueryDsl as _, RunQueryDsl as _, pg::PgRowByRowLoadingMode,
};
use quick_cache::{Weighter, sync::Cache};
use uuid::Uuid;

use crate::db::{column::count, pool::Read, schema::test};

/// Most memory of cached names, in bytes. 100,000 names of a usual length have about twelve million. The names of a
/// project with more than this are read for every request.
const BYTES: u64 = 48 << 20;
/// Estimated number of projects. It is low, so that the cache is not split into parts with little memory each.
const ESTIMATED_ENTRIES: usize = 32;

/// The names of the tests of the most recently requested projects.
pub(crate) struct TestNameCache(Cache<Uuid, Arc<TestNames>, InBytes>);

impl TestNameCache {
    /// The names that the connection's transaction sees, or more.
    pub(crate) fn current(&self, connection: &mut PgConnection, project: Uuid) -> Read<Arc<TestNames>> {
        let cached = self.0.get(&project);
        let last = cached.as_ref().and_then(|names| names.iter().next_back());
        let newer = read(connection, project, last.map_or(0, |(number, _)| number))?;
        let names = match &cached {
            Some(cached) if last == newer.iter().next() => {
                if newer.len() <= 1 {
                    return Ok(Arc::clone(cached));
                }
                let mut names = TestNames::clone(cached);
                for (number, name) in newer.iter().skip(1) {
                    names.push(number, name);
                }
                names
            }
            Some(_) => read(connection, project, 0)?,
            None => newer,
        };
        let names = Arc::new(names);
        self.0.insert(project, Arc::clone(&names));
        Ok(names)
    }
}

/// The names of the tests from this number on.
fn read(connection: &mut PgConnection, project: Uuid, first: TestOrdinal) -> Read<TestNames> {
    let first = i32::try_from(first).unwrap_or(i32::MAX);
    let rows = test::table
        .filter(test::project_id.eq(project))
        .filter(test::ordinal.ge(first))
        .order(test::ordinal)
        .select((test::ordinal, test::name, test::file_path))
        .load_iter::<(i32, String, Option<String>), PgRowByRowLoadingMode>(connection)?;
    let mut names = TestNames::default();
    for row in rows {
        let (ordinal, name, file_path) = row?;
        let name = TestNameRef {
            name: &name,
            file_path: file_path.as_deref(),
        };
        names.push(count(ordinal)?, name);
    }
    Ok(names)
}

impl Default for TestNameCache {
    fn default() -> Self {
        Self(Cache::with_weighter(ESTIMATED_ENTRIES, BYTES, InBytes))
    }
}

#[derive(Clone)]
struct InBytes;

impl Weighter<Uuid, Arc<TestNames>> for InBytes {
    fn weight(&self, _: &Uuid, names: &Arc<TestNames>) -> u64 {
        // A project without tests uses memory too.
        u64::try_from(size_of::<TestNames>() + names.bytes()).unwrap_or(u64::MAX)
    }
}
