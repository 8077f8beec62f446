//! What the files of a folder of Allure say about each other: which results are attempts of one execution, and which
//! failures of fixtures and errors of the run no result shows.

use std::collections::{HashMap, HashSet};

use assay_domain::{
    attempt::{Attempt, ErrorDetail},
    execution::Executions,
};

use super::Part;
use crate::{
    collect::{Collector, in_order},
    failure, hooks, limits,
    piece::Piece,
    retries,
};

/// Joins the files of folders. Containers without a failure are left out.
pub(crate) fn join(pieces: &mut Vec<Piece>) {
    if !pieces.iter().any(|piece| piece.allure.is_some()) {
        return;
    }
    if !pieces.iter().all(has_no_failure) {
        pieces.retain(|piece| !has_no_failure(piece));
    }
    drop_shown_errors(pieces);
    add_failed_fixtures(pieces);
    join_attempts(pieces);
}

/// Whether a file is a container whose fixtures passed.
fn has_no_failure(piece: &Piece) -> bool {
    matches!(&piece.allure, Some(Part::Container { failed, .. }) if failed.is_empty())
        && piece.report.warnings.is_empty()
}

/// Drops the errors of the run that a result or a fixture has, too. Adapters write a failed hook to both.
fn drop_shown_errors(pieces: &mut [Piece]) {
    let (mut stacks, mut messages): (HashSet<String>, HashSet<String>) = Default::default();
    for piece in pieces.iter() {
        let attempts = piece.report.tests.iter().flat_map(|test| &*test.attempts);
        let of_results = attempts.flat_map(|attempt| &attempt.errors);
        let of_fixtures = match &piece.allure {
            Some(Part::Container { failed, .. }) => failed.as_slice(),
            Some(Part::Result { .. } | Part::Globals) | None => &[],
        };
        for error in of_results.chain(of_fixtures.iter().map(|fixture| &fixture.error)) {
            stacks.extend(error.stack.clone());
            messages.extend(error.message.clone());
        }
    }
    for piece in pieces.iter_mut() {
        if !matches!(piece.allure, Some(Part::Globals)) {
            continue;
        }
        piece.report.errors.retain(|error| {
            let message = error.message.as_deref().unwrap_or_default();
            // Adapters write the name of the hook before its error.
            let bare = message
                .split_once(" failed: ")
                .map_or(message, |(_, message)| message);
            let is_shown = match &error.stack {
                Some(stack) => stacks.contains(stack),
                None => messages.contains(bare),
            };
            !is_shown
        });
    }
}

/// Adds the failures of fixtures that no result shows: to the result, if the fixture is that of one, else to the errors
/// of the run.
fn add_failed_fixtures(pieces: &mut [Piece]) {
    let uuids = pieces
        .iter()
        .zip(0..)
        .filter_map(|(piece, at)| match piece.allure {
            Some(Part::Result { uuid, .. }) => Some((uuid, at)),
            Some(Part::Container { .. } | Part::Globals) | None => None,
        });
    let place_of: HashMap<u64, usize> = uuids.collect();
    for at in 0..pieces.len() {
        let Some(Some(Part::Container { children, failed })) =
            pieces.get_mut(at).map(|piece| piece.allure.as_mut())
        else {
            continue;
        };
        let (children, failed) = (std::mem::take(children), std::mem::take(failed));
        let places: Vec<usize> = children
            .iter()
            .filter_map(|uuid| place_of.get(uuid).copied())
            .collect();
        for fixture in failed {
            let is_shown = places.iter().any(|place| {
                let piece = pieces.get(*place);
                let attempts = piece.into_iter().flat_map(attempts_of);
                let mut errors = attempts.flat_map(|attempt| &attempt.errors);
                errors.any(|error| is_same(error, &fixture.error))
            });
            if is_shown {
                continue;
            }
            let file = places
                .first()
                .and_then(|place| pieces.get(*place)?.report.tests.first());
            let file = file.and_then(|test| test.test.file_path.clone());
            let only = match places.as_slice() {
                [only] if !is_of_suite(&fixture.name) => Some(*only),
                _ => None,
            };
            let Some(piece) = pieces.get_mut(only.unwrap_or(at)) else {
                continue;
            };
            let test = piece.report.tests.first_mut().filter(|_| only.is_some());
            if let Some(test) = test {
                let status = failure::status(std::slice::from_ref(&fixture.error));
                let hook = failure::as_reported(status, vec![fixture.error], None, None);
                if test
                    .attempts
                    .iter()
                    .all(|attempt| attempt.errors.len() < limits::ERRORS)
                {
                    hooks::join(&mut test.attempts, vec![hook]);
                }
            } else {
                let mut tests = Collector::default();
                let (errors, details) = (&mut piece.report.errors, vec![fixture.error]);
                hooks::add_to_suite(&mut tests, errors, &fixture.name, file.as_deref(), details);
                piece.report.tests.extend(tests.finish());
            }
        }
    }
}

fn attempts_of(piece: &Piece) -> impl Iterator<Item = &Attempt> {
    piece.report.tests.iter().flat_map(|test| &*test.attempts)
}

fn is_same(one: &ErrorDetail, other: &ErrorDetail) -> bool {
    one.message == other.message || one.stack.is_some() && one.stack == other.stack
}

/// Whether a fixture is the set-up or the tear-down of a suite, which may have one test: `"after all" hook`, `beforeAll`.
fn is_of_suite(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace(' ', "");
    name.contains("beforeall") || name.contains("afterall")
}

/// Merges results with the same history, ordered by their start. They are attempts of one execution if each is a retry
/// and began after the one before it had failed. The first report gets all of them, the others get none.
fn join_attempts(pieces: &mut [Piece]) {
    let mut histories: HashMap<String, Vec<(Attempt, bool)>> = HashMap::new();
    for piece in pieces.iter_mut() {
        let Some(Part::Result {
            history, may_retry, ..
        }) = &piece.allure
        else {
            continue;
        };
        let results = histories.entry(history.clone()).or_default();
        for test in &mut piece.report.tests {
            let attempts = std::mem::replace(&mut test.attempts, Executions::from(Vec::new()));
            results.extend(
                attempts
                    .into_executions()
                    .flatten()
                    .map(|attempt| (attempt, *may_retry)),
            );
        }
    }
    for piece in pieces.iter_mut() {
        let Some(Part::Result { history, .. }) = piece.allure.take() else {
            continue;
        };
        let Some(test) = piece.report.tests.first_mut() else {
            continue;
        };
        let Some(mut results) = histories.remove(&history) else {
            piece.report.tests.clear();
            continue;
        };
        results.sort_by_key(|(attempt, _)| attempt.started_at);
        let mut executions: Vec<Vec<Attempt>> = Vec::new();
        for (attempt, may_retry) in results {
            let earlier = executions.last_mut();
            match earlier.filter(|earlier| may_retry && is_after_failure(earlier, &attempt)) {
                Some(earlier) => earlier.push(attempt),
                None => executions.push(vec![attempt]),
            }
        }
        let ended = executions.into_iter().map(retries::skipped_in_the_end);
        test.attempts = in_order(ended.collect());
    }
}

/// Whether an attempt began after the last of the earlier ones had failed.
fn is_after_failure(earlier: &[Attempt], attempt: &Attempt) -> bool {
    earlier.last().is_some_and(|last| {
        let duration = i64::try_from(last.duration_ms.unwrap_or(0)).unwrap_or(i64::MAX);
        let end = last.started_at.map(|start| start.plus_ms(duration));
        last.status.is_failure() && end.is_some() && attempt.started_at >= end
    })
}
