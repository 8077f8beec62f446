//! A test's history.

use std::collections::{HashMap, HashSet};

use assay_domain::{
    history::{HistoryRest, Occurrence, RevisionSeen, TestHistory},
    id::RunId,
    project::Project,
    store::StoreError,
    test::{TestLookup, TestSelector},
    window::Window,
};
use diesel::{
    BoolExpressionMethods, ExpressionMethods, JoinOnDsl, PgConnection, QueryDsl, Queryable, RunQueryDsl,
};
use uuid::Uuid;

use crate::{
    column::{At, count, duration, long_count, status},
    period::visible,
    pool::Read,
    revision::Revisions,
    schema::{attempt, result, run},
    test,
};

/// How a test ended in the runs of a period, newest first.
pub(crate) fn find(
    connection: &mut PgConnection,
    project: &Project,
    asked: &TestSelector,
    window: &Window,
) -> Read<TestLookup<TestHistory>> {
    let found = test::find(connection, project, asked)?;
    test::then(found, |found| {
        let rest = HistoryRest {
            test: found.ordinal,
            window: *window,
            stable_branch: found.stable_branch.clone(),
            after: (window.to, i32::MAX),
            runs: HashSet::new(),
        };
        let (occurrences, rest) = part(connection, project, rest)?;
        Ok(TestHistory {
            test: found.name,
            stable_branch: found.stable_branch,
            occurrences,
            rest,
        })
    })
}

/// How many occurrences are read at once.
const PART: usize = 1_000;

#[derive(Debug, Queryable)]
struct Row {
    run_id: Uuid,
    run_number: i32,
    branch: Option<String>,
    tested_revision: Option<String>,
    commit_sha: Option<String>,
    suite: Option<String>,
    started_at: At,
    status: i16,
    duration_ms: Option<i64>,
}

/// The next occurrences, and what is left then.
pub(crate) fn part(
    connection: &mut PgConnection,
    project: &Project,
    mut rest: HistoryRest,
) -> Read<(Vec<Occurrence>, Option<HistoryRest>)> {
    let (from, _) = visible(project, &rest.window);
    let (started_at, number) = rest.after;
    let mut rows: Vec<Row> = result::table
        .inner_join(
            run::table.on(run::project_id
                .eq(result::project_id)
                .and(run::number.eq(result::run_number))),
        )
        .filter(result::project_id.eq(project.id.0))
        .filter(run::project_id.eq(project.id.0))
        .filter(result::test.eq(rest.test))
        // Not said of runs as well: a plan for any period takes both for few then, and compares each with each.
        .filter(result::started_at.between(from, At(started_at)))
        .filter(
            result::started_at
                .lt(At(started_at))
                .or(result::run_number.lt(number)),
        )
        .order((result::started_at.desc(), result::run_number.desc()))
        .select((
            run::id,
            run::number,
            run::branch,
            run::tested_revision,
            run::commit_sha,
            run::suite,
            result::started_at,
            result::status,
            result::duration_ms,
        ))
        .limit(i64::try_from(PART).unwrap_or(i64::MAX).saturating_add(1))
        .load(connection)?;
    let has_more = rows.len() > PART;
    rows.truncate(PART);
    let (Some(newest), Some(oldest)) = (rows.first(), rows.last()) else {
        return Ok((Vec::new(), None));
    };
    let (newest, oldest) = (newest.started_at, oldest.started_at);
    if let Some(last) = rows.last() {
        rest.after = (last.started_at.0, last.run_number);
    }
    rows.retain(|row| rest.runs.insert(row.run_number));
    let mut retried = retried(connection, project.id.0, rest.test, oldest, newest)?;
    let revisions = Revisions::load(connection, project, &rest.stable_branch, rest.window.to, newest.0)?;
    let occurrences = rows
        .into_iter()
        .map(|row| {
            let tried = retried.remove(&row.run_number);
            let revision = revisions.seen(
                row.run_number,
                row.tested_revision.as_deref().or(row.commit_sha.as_deref()),
                row.started_at.0,
            );
            row.shown(tried, revision)
        })
        .collect::<Result<_, _>>()?;
    Ok((occurrences, has_more.then_some(rest)))
}

/// What the attempts of a test in a run come to.
#[derive(Debug, Clone, Copy, Default)]
struct Tried {
    attempts: u32,
    wasted_ms: u64,
    final_ms: u64,
    failed_ms: u64,
    timed: bool,
    any_failed: bool,
}

/// The attempts of the test in the runs of the period in which it has rows of its own for them.
fn retried(
    connection: &mut PgConnection,
    project: Uuid,
    test: i32,
    from: At,
    to: At,
) -> Read<HashMap<i32, Tried>> {
    let rows: Vec<(i32, i16, Option<i64>)> = attempt::table
        .filter(attempt::project_id.eq(project))
        .filter(attempt::test.eq(test))
        .filter(attempt::started_at.between(from, to))
        .order((attempt::run_number, attempt::retry))
        .select((attempt::run_number, attempt::status, attempt::duration_ms))
        .load(connection)?;
    let mut runs: HashMap<i32, Tried> = HashMap::new();
    for (run, code, duration_ms) in rows {
        let tried = runs.entry(run).or_default();
        tried.attempts += 1;
        // Each attempt turns out not to have been the final one when another follows.
        tried.wasted_ms = tried.wasted_ms.saturating_add(tried.final_ms);
        tried.final_ms = long_count(duration_ms.unwrap_or(0))?;
        tried.timed |= duration_ms.is_some();
        if status(code)?.is_failure() {
            tried.any_failed = true;
            tried.failed_ms = tried.failed_ms.saturating_add(tried.final_ms);
        }
    }
    Ok(runs)
}

impl Row {
    fn shown(self, tried: Option<Tried>, revision: RevisionSeen) -> Result<Occurrence, StoreError> {
        let tried = tried.unwrap_or(Tried {
            attempts: 1,
            timed: self.duration_ms.is_some(),
            ..Tried::default()
        });
        Ok(Occurrence {
            run_id: RunId(self.run_id),
            run_number: self.run_number,
            branch: self.branch,
            tested_revision: self.tested_revision,
            commit_sha: self.commit_sha,
            suite: self.suite,
            started_at: self.started_at.0,
            status: status(self.status)?,
            duration_ms: duration(self.duration_ms)?,
            attempts: count(tried.attempts)?,
            wasted_ms: tried.wasted_ms,
            lost_ms: tried.timed.then_some(tried.failed_ms),
            any_failed_attempt: tried.any_failed,
            revision,
        })
    }
}
