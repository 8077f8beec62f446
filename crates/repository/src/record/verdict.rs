//! Judges a project's history and stores the verdicts that changed.

mod edges;
mod fixes;
mod flakes;
mod last;
mod rows;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use assay_domain::{
    observation::History,
    recording::{VerdictChange, VerdictChanges},
    store::{JudgedFigures, StoreError},
    timestamp::Timestamp,
    verdict::{ENGINE_WINDOW_DAYS, Judge, Signal, VerdictStatus},
};
use diesel::prelude::*;
use uuid::Uuid;

pub(crate) use edges::EdgeRecording;

use edges::{JudgedEdges, JudgedTests};
use fixes::DecidedFixes;
use rows::{Changes, Rows};

use crate::{
    db::{
        column::{At, int},
        pool::Read,
        schema::project as projects,
    },
    read::{
        observation::{self, StoredFinalResult},
        result_block,
        test::{name_of, names_by_ordinal},
        verdict::parsed,
        verdict_block::StoredBlocks,
    },
};

/// The rows that an import wrote. Stored verdicts do not include them.
#[derive(Debug, Default)]
pub(crate) struct ImportChanges {
    /// The run.
    pub(crate) run: Option<i32>,
    /// The result of each of its tests, by ordinal.
    pub(crate) final_results: HashMap<i32, StoredFinalResult>,
    /// Its tests, including those that a replaced report had.
    pub(crate) tests: BTreeSet<i32>,
    /// Whether no stored row can be reused.
    pub(crate) all: bool,
}

impl ImportChanges {
    /// Reuses nothing of stored verdicts.
    pub(crate) fn everything() -> Self {
        Self {
            all: true,
            ..Self::default()
        }
    }
}

/// Judges the whole project as of `now` and stores what changed. The caller holds the project's lock.
pub(crate) fn judge(
    connection: &mut PgConnection,
    project: Uuid,
    judge: &dyn Judge,
    now: Timestamp,
    import_changes: &ImportChanges,
    edges: EdgeRecording,
) -> Read<VerdictUpdate> {
    let history = observation::load(connection, project, now.plus_days(-ENGINE_WINDOW_DAYS), now)?;
    let update = ProjectJudgement::of(history, judge, now)?.compare(connection, project, import_changes)?;
    update.store(connection, project, edges)?;
    Ok(update)
}

/// The engine's judgements of a state of a project, computed without the database and its locks.
pub(crate) struct ProjectJudgement<'a> {
    judge: &'a dyn Judge,
    now: Timestamp,
    history: History,
    rows: Rows,
}

impl<'a> ProjectJudgement<'a> {
    /// Judges a history as of `now`.
    pub(crate) fn of(history: History, judge: &'a dyn Judge, now: Timestamp) -> Result<Self, StoreError> {
        let mut rows = Rows::default();
        let runs = history.runs.iter().map(|run| (&*run.run.id, run.run.number));
        let run_numbers = runs.collect();
        for judgement in judge.judge(&history, now) {
            rows.push(judgement, &history, &run_numbers)?;
        }
        Ok(Self {
            judge,
            now,
            history,
            rows,
        })
    }

    /// Compares the judgements with the verdicts that are stored. Reads only.
    pub(crate) fn compare(
        self,
        connection: &mut PgConnection,
        project: Uuid,
        import_changes: &ImportChanges,
    ) -> Read<VerdictUpdate> {
        let Self {
            judge,
            now,
            history,
            mut rows,
        } = self;
        let health = health(&history, &rows);
        let mut stored = StoredBlocks::of_project(connection, project)?;
        // Of tests that the project never had, which no judgement stores.
        let unknown = stored.verdicts.split_off(&int(history.tests));
        last::complete(
            connection,
            project,
            &mut rows.verdicts,
            &history,
            &stored.verdicts,
            import_changes,
        )?;
        // The tests with a verdict but without a result in the window, if that is new or the import changed them.
        let outside_window = stored.verdicts.iter().filter(|(test, stored)| {
            (stored.in_window || import_changes.all || import_changes.tests.contains(test))
                && !rows.verdicts.contains_key(test)
        });
        let outside_window: BTreeMap<i32, Arc<str>> = outside_window
            .map(|(test, stored)| (*test, Arc::clone(&stored.body)))
            .collect();
        let tests: Vec<i32> = outside_window.keys().copied().collect();
        let newest = result_block::newest_starts(connection, project, &tests, None)?;
        for (test, body) in outside_window {
            // The engine that judged an unreadable verdict is unknown.
            let engine = parsed(&body).map(|body| body.evidence.engine).unwrap_or_default();
            rows.push_outside_window(test, engine, newest.get(&test).copied())?;
        }
        let before = |test| {
            let stored = stored.verdicts.get(test);
            stored.map_or(VerdictStatus::InsufficientData, |stored| stored.status)
        };
        let statuses = rows.verdicts.iter();
        let statuses = statuses.map(|(test, verdict)| (*test, before(test), verdict.status));
        let changed_statuses: Vec<_> = statuses.filter(|(_, from, to)| from != to).collect();
        let judged = JudgedTests {
            status: &|test| {
                let verdict = rows.verdicts.get(&test);
                verdict.map_or(VerdictStatus::InsufficientData, |verdict| verdict.status)
            },
            is_red: &|test| {
                let verdict = rows.verdicts.get(&test);
                verdict.is_none_or(|verdict| edges::is_red(verdict.status, &verdict.own))
            },
            changes: &changed_statuses,
            imported: import_changes.run,
            health,
        };
        let by_calendar = |test| {
            let verdict = rows.verdicts.get(&test);
            verdict.is_some_and(|verdict| verdict.reason == Some(Signal::Calendar))
        };
        let imported = (&history, import_changes.run);
        let mut edges = JudgedEdges::of(connection, project, &history, now, &judged)?;
        edges.fixes = DecidedFixes::of(connection, project, imported, judge, &by_calendar, now)?;
        let stored_count = stored.verdicts.len();
        let mut changes = rows.changes(connection, project, stored)?;
        changes.verdicts += unknown.len();
        Ok(VerdictUpdate {
            now,
            stored: stored_count,
            changed_statuses,
            changes,
            edges,
        })
    }
}

/// The figures of judged tests in the window.
fn health(history: &History, rows: &Rows) -> JudgedFigures {
    let number = |count| i64::try_from(count).unwrap_or(i64::MAX);
    let with = |status| {
        rows.verdicts
            .values()
            .filter(move |verdict| verdict.status == status)
    };
    let lost = with(VerdictStatus::Flaky).filter_map(|verdict| verdict.own.time_lost_ms);
    let failed = history.runs.iter().filter(|observed| observed.has_failed());
    JudgedFigures {
        tests: VerdictStatus::LISTED.map(|status| number(with(status).count())),
        runs: number(history.runs.len()),
        failed_runs: number(failed.count()),
        flaky_lost_ms: lost.sum(),
    }
}

/// The changes of a judgement.
pub(crate) struct VerdictUpdate {
    now: Timestamp,
    /// The number of stored verdicts before.
    stored: usize,
    changes: Changes,
    /// The tests with another status: the stored one, and the new one.
    changed_statuses: Vec<(i32, VerdictStatus, VerdictStatus)>,
    edges: JudgedEdges,
}

impl VerdictUpdate {
    /// Stores the changes and the edges. The caller holds the project's lock, and the state has not changed since it was
    /// judged.
    pub(crate) fn store(
        &self,
        connection: &mut PgConnection,
        project: Uuid,
        edges: EdgeRecording,
    ) -> Read<()> {
        self.changes.store(connection, project)?;
        self.edges.store(connection, project, self.now, edges)?;
        self.edges.fixes.store(connection, project)?;
        diesel::update(projects::table.find(project))
            .set((
                projects::evaluated_at.eq(At(self.now)),
                projects::judged.eq(projects::observed.nullable()),
            ))
            .execute(connection)?;
        Ok(())
    }

    /// The changed verdicts with the names of their tests.
    pub(crate) fn changes(&self, connection: &mut PgConnection, project: Uuid) -> Read<VerdictChanges> {
        let mut changes = self.changed_statuses.clone();
        let total = u64::try_from(changes.len()).unwrap_or(u64::MAX);
        changes.sort_unstable_by_key(|(test, from, to)| (Reverse((*to, *from)), *test));
        changes.truncate(VerdictChanges::MOST_LISTED);
        if changes.is_empty() {
            return Ok(VerdictChanges::default());
        }
        let ordinals: Vec<i32> = changes.iter().map(|(test, ..)| *test).collect();
        let names = names_by_ordinal(connection, project, &ordinals)?;
        let change = |(test, from, to): (i32, VerdictStatus, VerdictStatus)| {
            let name = name_of(&names, test)?;
            Ok(VerdictChange {
                test_name: name.name,
                file_path: name.file_path,
                from,
                to,
            })
        };
        let mut listed = changes
            .into_iter()
            .map(change)
            .collect::<Result<Vec<_>, StoreError>>()?;
        listed.sort_by(|a, b| {
            (b.to, b.from)
                .cmp(&(a.to, a.from))
                .then_with(|| (&a.test_name, &a.file_path).cmp(&(&b.test_name, &b.file_path)))
        });
        Ok(VerdictChanges { total, listed })
    }
}

/// Judges the whole project again, from its results and packs alone, and returns how many verdicts changed.
pub(crate) fn rebuild(
    connection: &mut PgConnection,
    project: Uuid,
    engine: &dyn Judge,
    now: Timestamp,
) -> Read<u64> {
    let everything = ImportChanges::everything();
    let update = judge(
        connection,
        project,
        engine,
        now,
        &everything,
        EdgeRecording::KeepState,
    )?;
    Ok(u64::try_from(update.changes.verdicts).unwrap_or(u64::MAX))
}

/// Judges the whole project as of a time, and returns how many verdicts differ from the stored ones, and how many are
/// stored. Changes nothing.
pub(crate) fn differing(
    connection: &mut PgConnection,
    project: Uuid,
    engine: &dyn Judge,
    at: Timestamp,
) -> Read<(u64, u64)> {
    let history = observation::load(connection, project, at.plus_days(-ENGINE_WINDOW_DAYS), at)?;
    let judgement = ProjectJudgement::of(history, engine, at)?;
    let update = judgement.compare(connection, project, &ImportChanges::everything())?;
    let count = |verdicts| u64::try_from(verdicts).unwrap_or(u64::MAX);
    Ok((count(update.changes.verdicts), count(update.stored)))
}

/// Deletes the verdicts on some tests. The caller holds the project's lock.
pub(crate) fn delete(connection: &mut PgConnection, project: Uuid, tests: &BTreeSet<i32>) -> Read<()> {
    let kept = StoredBlocks::of_project(connection, project)?.without(tests);
    let changes = Rows::default().changes(connection, project, kept)?;
    Ok(changes.store(connection, project)?)
}
