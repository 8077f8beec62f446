//! The branch and time by which the engine orders the revisions of its window.

use std::collections::HashMap;

use assay_domain::{
    history::RevisionOrigin, project::Project, timestamp::Timestamp, verdict::ENGINE_WINDOW_DAYS,
};
use diesel::{ExpressionMethods, PgConnection, QueryDsl, RunQueryDsl};

use crate::db::{column::At, pool::Read, schema::run};

/// Number, start, tested revision, commit and branch of a run.
type Row = (i32, At, Option<String>, Option<String>, Option<String>);

/// Identifies the code of a run.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Key {
    Named(String),
    /// A run without a revision shares it with no other.
    Own(i32),
}

/// The revisions that the runs of the engine's window tested.
#[derive(Debug)]
pub(crate) struct Revisions {
    from: Timestamp,
    to: Timestamp,
    origins: HashMap<Key, RevisionOrigin>,
}

impl Revisions {
    /// The revisions of the window that ends at `to`, by the engine's rules. A run with only skipped results does not
    /// count. If no run names its branch, all are on the stable one. Reads nothing if the newest of the requested runs
    /// started before the window.
    pub(crate) fn load(
        connection: &mut PgConnection,
        project: &Project,
        stable_branch: &str,
        to: Timestamp,
        newest: Timestamp,
    ) -> Read<Self> {
        let from = to.plus_days(-ENGINE_WINDOW_DAYS);
        let mut origins: HashMap<Key, RevisionOrigin> = HashMap::new();
        if newest < from {
            return Ok(Self { from, to, origins });
        }
        let rows: Vec<Row> = run::table
            .filter(run::project_id.eq(project.id.0))
            .filter(run::started_at.between(At(from), At(to)))
            .filter((run::passed + run::failed).gt(0))
            .order((run::started_at, run::number))
            .select((
                run::number,
                run::started_at,
                run::tested_revision,
                run::commit_sha,
                run::branch,
            ))
            .load(connection)?;
        let no_branch_is_named = rows.iter().all(|(.., branch)| branch.is_none());
        let stable = Some(stable_branch);
        for (number, started_at, tested_revision, commit_sha, branch) in rows {
            let branch = if no_branch_is_named {
                stable.map(str::to_owned)
            } else {
                branch
            };
            let first = origins
                .entry(key(number, tested_revision.or(commit_sha)))
                .or_insert_with(|| RevisionOrigin {
                    revision_branch: branch.clone(),
                    revision_seen_at: Some(started_at.0),
                });
            if branch.as_deref() == stable {
                first.revision_branch = branch;
            }
        }
        Ok(Self { from, to, origins })
    }

    /// The branch and the time by which the engine orders a run's revision. Empty for a run outside of the window.
    pub(crate) fn origin(&self, run: i32, revision: Option<&str>, started_at: Timestamp) -> RevisionOrigin {
        if !(self.from..=self.to).contains(&started_at) {
            return RevisionOrigin::default();
        }
        let origin = self.origins.get(&key(run, revision.map(str::to_owned)));
        origin.cloned().unwrap_or_default()
    }
}

fn key(run: i32, revision: Option<String>) -> Key {
    revision.map_or(Key::Own(run), Key::Named)
}
