//! Names of browsers, which results refer to by number.

use std::collections::HashMap;

use diesel::prelude::*;
use uuid::Uuid;

use crate::db::schema::browser;

/// Names of browsers by number.
pub(crate) struct Browsers(HashMap<i32, String>);

impl Browsers {
    /// The names of these numbers. The number 0 means no browser.
    pub(crate) fn load(
        connection: &mut PgConnection,
        project: Uuid,
        numbers: impl Iterator<Item = i32>,
    ) -> QueryResult<Self> {
        let mut numbers: Vec<i32> = numbers.filter(|browser| *browser != 0).collect();
        numbers.sort_unstable();
        numbers.dedup();
        if numbers.is_empty() {
            return Ok(Self(HashMap::new()));
        }
        let names: Vec<(i32, String)> = browser::table
            .filter(browser::project_id.eq(project))
            .filter(browser::ordinal.eq_any(numbers))
            .select((browser::ordinal, browser::name))
            .load(connection)?;
        Ok(Self(names.into_iter().collect()))
    }

    pub(crate) fn name(&self, browser: i32) -> Option<String> {
        self.0.get(&browser).cloned()
    }
}
