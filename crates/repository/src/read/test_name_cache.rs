//! Cache of the names of a project's tests.
//!
//! Searching and ordering a list of all tests needs every name, and a project may have 100,000. A number never names
//! another test, so a list grows: it may have names of tests that were pruned. Every request reads the names after the
//! last cached one. The last one is compared, because a project that was restored from an older dump may number other
//! tests since then. All names are read again after the file of a test changed, which the project counts.

use std::sync::Arc;

use assay_domain::{
    test::TestOrdinal,
    test_names::{TestNameRef, TestNames},
};
use diesel::{pg::PgRowByRowLoadingMode, prelude::*};
use uuid::Uuid;

use crate::{
    db::{
        column::count,
        pool::Read,
        schema::{project as projects, test},
    },
    read::byte_cache::{ByteCache, Cached},
};

/// The names of the tests of the most recently requested projects.
#[derive(Default)]
pub(crate) struct TestNameCache(ByteCache<Uuid, CachedNames>);

/// Names, and the value of `project.test_changes` that they are of.
#[derive(Clone)]
struct CachedNames {
    names: Arc<TestNames>,
    changes: Option<i32>,
}

impl TestNameCache {
    /// The names that the connection's transaction sees, or more.
    pub(crate) fn current(&self, connection: &mut PgConnection, project: Uuid) -> Read<Arc<TestNames>> {
        let cached = self.0.get(&project);
        let last = cached.as_ref().and_then(|cached| cached.names.iter().next_back());
        let (newer, changes) = read(connection, project, last.map_or(0, |(number, _)| number))?;
        let (names, changes) = match &cached {
            Some(cached) if last == newer.iter().next() && changes == cached.changes => {
                if newer.len() <= 1 {
                    return Ok(Arc::clone(&cached.names));
                }
                let mut names = TestNames::clone(&cached.names);
                for (number, name) in newer.iter().skip(1) {
                    names.push(number, name);
                }
                (names, changes)
            }
            Some(_) => read(connection, project, 0)?,
            None => (newer, changes),
        };
        let names = Arc::new(names);
        let entry = CachedNames {
            names: Arc::clone(&names),
            changes,
        };
        self.0.insert(project, entry);
        Ok(names)
    }
}

/// The names of the tests from this number on, and how often the files of tests changed; none without a test.
pub(crate) fn read(
    connection: &mut PgConnection,
    project: Uuid,
    first: TestOrdinal,
) -> Read<(TestNames, Option<i32>)> {
    let first = i32::try_from(first).unwrap_or(i32::MAX);
    let rows = test::table
        .inner_join(projects::table.on(projects::id.eq(test::project_id)))
        .filter(projects::id.eq(project))
        .filter(test::project_id.eq(project))
        .filter(test::ordinal.ge(first))
        .order(test::ordinal)
        .select((test::ordinal, test::name, test::file_path, projects::test_changes))
        .load_iter::<(i32, String, Option<String>, i32), PgRowByRowLoadingMode>(connection)?;
    let (mut names, mut changes) = (TestNames::default(), None);
    for row in rows {
        let (ordinal, name, file_path, test_changes) = row?;
        let name = TestNameRef {
            name: &name,
            file_path: file_path.as_deref(),
        };
        names.push(count(ordinal)?, name);
        changes = Some(test_changes);
    }
    Ok((names, changes))
}

impl Cached<Uuid> for CachedNames {
    /// 100,000 names of a usual length have about twelve million. The names of a project with more than this are read
    /// for every request.
    const MOST_BYTES: u64 = 48 << 20;

    fn bytes(&self, _: &Uuid) -> usize {
        size_of::<TestNames>() + self.names.bytes()
    }
}
