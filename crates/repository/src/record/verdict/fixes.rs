//! The fixes that a judgement decides: they held, or did not.

use std::collections::{BTreeMap, BTreeSet};

use assay_domain::{
    fix::{FixRun, FixState, ShownFix, StoredFix},
    observation::History,
    store::StoreError,
    timestamp::Timestamp,
    verdict::Judge,
};
use diesel::prelude::*;
use serde_json::Value;
use uuid::Uuid;

use crate::{
    db::{
        column::{At, int},
        pool::Read,
        schema::fix,
        static_sql::static_sql,
    },
    read::{self, joins},
};

/// Most tests whose fixes a judgement decides, those with the newest claims.
const MOST_TESTS: usize = 20;
/// Most open claims that are read.
const MOST_CLAIMS: i64 = 200;
/// How many days a fix is watched, and how many days of runs are compared.
const WATCHED_DAYS: i64 = 30;

/// The fixes that a judgement decides.
#[derive(Debug, Default)]
pub(super) struct DecidedFixes(Vec<DecidedFix>);

/// A claim that is decided.
#[derive(Debug)]
pub(super) struct DecidedFix {
    /// The test today.
    pub(super) test: i32,
    /// The number under which the fix is stored, and its id.
    key: (i32, Uuid),
    shown: ShownFix,
    pub(super) run: FixRun,
}

impl DecidedFix {
    /// Whether the fix held.
    pub(super) fn held(&self) -> bool {
        self.shown.state == FixState::Held
    }
}

impl DecidedFixes {
    /// Decides the open claims of the tests that ran in the imported run on the stable branch; without such a run, of all.
    pub(super) fn of(
        connection: &mut PgConnection,
        project: Uuid,
        (history, imported): (&History, Option<i32>),
        judge: &dyn Judge,
        by_calendar: &dyn Fn(i32) -> bool,
        now: Timestamp,
    ) -> Read<Self> {
        let run = imported.map(|number| history.runs.iter().find(|observed| observed.run.number == number));
        // Another branch shows nothing of a fix, and neither does a run before the window.
        let stable = history.stable();
        if run.is_some_and(|run| run.is_none_or(|run| !stable.is(run.run.branch.as_deref()))) {
            return Ok(Self::default());
        }
        let watched_from = now.plus_days(-WATCHED_DAYS);
        let claims = open_claims(connection, project)?;
        if claims.is_empty() {
            return Ok(Self::default());
        }
        let joins = joins::load(connection, project)?;
        let mut open = BTreeSet::new();
        for (test, body) in claims {
            let claim: StoredFix = read::fix::stored(body)?;
            let test = joins.current(u32::try_from(test).unwrap_or_default());
            let ran = run.flatten().is_none_or(|run| run.ran(test));
            if ran && claim.stored_at >= watched_from && open.len() < MOST_TESTS {
                open.insert(int(test));
            }
        }
        if open.is_empty() {
            return Ok(Self::default());
        }
        let open: Vec<i32> = open.into_iter().collect();
        let branch = (project, &*history.stable_branch);
        let loaded = read::fix::load(connection, branch, (At(watched_from), At(now)), &open)?;
        let mut decided = Vec::new();
        for (test, (keys, fixes)) in loaded {
            let watched = fixes.watched(by_calendar(test), |rate| judge.builds_needed(rate));
            decided.extend(keys.into_iter().zip(watched).filter_map(|(key, watched)| {
                Some(DecidedFix {
                    test,
                    key,
                    shown: watched.shown,
                    run: watched.decided_by?,
                })
            }));
        }
        Ok(Self(decided))
    }

    /// What the edges are about: of each test the newest claim.
    pub(super) fn newest(&self) -> impl Iterator<Item = &DecidedFix> {
        let mut newest: BTreeMap<i32, &DecidedFix> = BTreeMap::new();
        for decided in &self.0 {
            newest.entry(decided.test).or_insert(decided);
        }
        newest.into_values()
    }

    /// Stores the decisions. The caller writes the edges in the same transaction, so that no decision is reported twice.
    pub(super) fn store(&self, connection: &mut PgConnection, project: Uuid) -> Read<()> {
        for DecidedFix { key, shown, .. } in &self.0 {
            let decided = serde_json::to_value(shown).map_err(|error| StoreError::Failed {
                doing: "storing what a fix shows",
                source: error.into(),
            })?;
            diesel::update(fix::table.find((project, key.0, key.1)))
                .set(fix::decided.eq(decided))
                .execute(connection)?;
        }
        Ok(())
    }
}

/// The claims that are not decided, the newest first.
fn open_claims(connection: &mut PgConnection, project: Uuid) -> QueryResult<Vec<(i32, Value)>> {
    fix::table
        .filter(fix::project_id.eq(project))
        .filter(fix::decided.is_null())
        // As in the index.
        .filter(static_sql::<diesel::sql_types::Bool>(
            "coalesce(fix.body #>> '{check,outcome}', 'proved') = 'proved'",
        ))
        .order(fix::id.desc())
        .limit(MOST_CLAIMS)
        .select((fix::test, fix::body))
        .load(connection)
}
