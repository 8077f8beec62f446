//! The parts of results that verdicts contain: each test's result in its last run, and the start of its newest
//! run. The most frequent reads therefore need no results.

use std::collections::{BTreeMap, HashMap};

use assay_domain::{
    joins::Joins,
    observation::{Bitmap, History},
    test::TestOrdinal,
};
use diesel::PgConnection;
use uuid::Uuid;

use super::ImportChanges;
use crate::{
    db::{
        column::{At, int},
        pool::Read,
    },
    read::{
        joins,
        observation::{self, StoredFinalResult},
        verdict_block::BlockVerdict,
    },
};

/// Completes the verdicts on judged tests.
pub(super) fn complete(
    connection: &mut PgConnection,
    project: Uuid,
    judged: &mut BTreeMap<i32, BlockVerdict>,
    history: &History,
    stored: &BTreeMap<i32, BlockVerdict>,
    import_changes: &ImportChanges,
) -> Read<()> {
    // A project with joined tests reuses nothing.
    let joins = match import_changes.all {
        true => joins::load(connection, project)?,
        false => Joins::default(),
    };
    let starts: HashMap<i32, At> = history
        .runs
        .iter()
        .map(|run| (run.run.number, At(run.run.started_at)))
        .collect();
    // Known without reading results: the run that was just written, and runs without changes.
    let known_result = |test: i32, run: i32| {
        if Some(run) == import_changes.run {
            return import_changes.final_results.get(&test).copied();
        }
        let stored = stored.get(&test)?;
        let final_result = StoredFinalResult {
            status: stored.last_status?,
            offset_ms: stored.last_offset_ms,
        };
        (stored.last_run == Some(run) && !import_changes.all).then_some(final_result)
    };
    let mut unknown = Vec::new();
    for (test, verdict) in &*judged {
        let Some(run) = verdict.last_run else { continue };
        if known_result(*test, run).is_none()
            && let Some(start) = starts.get(&run)
        {
            unknown.push((*test, run, *start));
        }
    }
    let stored_results = observation::stored_final_results(connection, project, &joins, &unknown)?;
    let newest = newest_starts(history);
    for (test, verdict) in judged {
        let final_result = verdict
            .last_run
            .and_then(|run| known_result(*test, run).or_else(|| stored_results.get(&(*test, run)).copied()));
        verdict.last_status = final_result.map(|result| result.status);
        verdict.last_offset_ms = final_result.and_then(|result| result.offset_ms);
        verdict.newest = newest.get(test).copied();
    }
    Ok(())
}

/// The start of the newest run with each test.
fn newest_starts(history: &History) -> HashMap<i32, At> {
    let mut newest = HashMap::new();
    let mut newest_words = Vec::new();
    let mut runs: Vec<_> = history.runs.iter().collect();
    runs.sort_by_key(|run| std::cmp::Reverse((run.run.started_at, run.run.number)));
    for run in runs {
        let words = run.present.words();
        if newest_words.len() < words.len() {
            newest_words.resize(words.len(), 0);
        }
        let fresh: Vec<u64> = words
            .iter()
            .zip(&mut newest_words)
            .map(|(word, newest_words)| {
                let fresh = word & !*newest_words;
                *newest_words |= word;
                fresh
            })
            .collect();
        let fresh = Bitmap::from_words(fresh);
        newest.extend(
            fresh
                .iter()
                .map(|test: TestOrdinal| (int(test), At(run.run.started_at))),
        );
    }
    newest
}
