//! The branch and time by which the engine orders the revisions of its window.

use std::collections::HashMap;

use assay_domain::{
    history::RevisionOrigin,
    project::Project,
    revision::{RevisionStart, StableBranch, tested_or_commit},
    timestamp::Timestamp,
    verdict::ENGINE_WINDOW_DAYS,
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
    /// The revisions of the window that ends at `to`, by the engine's rules. Runs that do not count in verdicts and
    /// runs with only skipped results are left out. Reads nothing if the newest of the requested runs started before
    /// the window.
    pub(crate) fn load(
        connection: &mut PgConnection,
        project: &Project,
        stable_branch: &str,
        to: Timestamp,
        newest: Timestamp,
    ) -> Read<Self> {
        let from = to.plus_days(-ENGINE_WINDOW_DAYS);
        if newest < from {
            let origins = HashMap::new();
            return Ok(Self { from, to, origins });
        }
        let rows: Vec<Row> = run::table
            .filter(run::project_id.eq(project.id.0))
            .filter(run::started_at.between(At(from), At(to)))
            .filter(run::counts_in_verdicts)
            .filter((run::passed + run::failed).gt(0))
            .select((
                run::number,
                run::started_at,
                run::tested_revision,
                run::commit_sha,
                run::branch,
            ))
            .load(connection)?;
        let stable = StableBranch::among(stable_branch, rows.iter().map(|(.., branch)| branch.as_deref()));
        let mut starts: HashMap<Key, RevisionStart<'_>> = HashMap::new();
        for (number, started_at, tested_revision, commit_sha, branch) in &rows {
            let run = RevisionStart {
                at: started_at.0,
                number: *number,
                branch: branch.as_deref(),
            };
            let revision = tested_or_commit(tested_revision.as_deref(), commit_sha.as_deref());
            let start = starts.entry(key(*number, revision)).or_insert(run);
            *start = start.with_run(run, stable);
        }
        let origin = |start: RevisionStart<'_>| RevisionOrigin {
            revision_branch: start.branch.map(str::to_owned),
            revision_seen_at: Some(start.at),
        };
        let origins = starts
            .into_iter()
            .map(|(key, start)| (key, origin(start)))
            .collect();
        Ok(Self { from, to, origins })
    }

    /// The branch and the time by which the engine orders the revision of a run that counts in verdicts. Empty for a
    /// run outside of the window.
    pub(crate) fn origin(&self, run: i32, revision: Option<&str>, started_at: Timestamp) -> RevisionOrigin {
        if !(self.from..=self.to).contains(&started_at) {
            return RevisionOrigin::default();
        }
        let origin = self.origins.get(&key(run, revision));
        origin.cloned().unwrap_or_default()
    }
}

fn key(run: i32, revision: Option<&str>) -> Key {
    revision.map_or(Key::Own(run), |revision| Key::Named(revision.to_owned()))
}
