//! The sentence about a failing streak.
//!
//! The model orders a chain by revision, so that a rerun of an old revision is beside the other runs of that revision.
//! `failureStreak` and readers use the order of time. If both orders agree, the sentence counts the last runs.
//! Otherwise it also names the order and the run that passed since.

use crate::{
    numbers::count,
    timeline::Timeline,
    verdict::{chain_counts::FailingEnd, test_counts::TestCounts},
};

/// A sentence such as `Failed the last 3 runs on main since run 86`.
pub(crate) fn sentence(test_counts: TestCounts<'_, '_>, end: &FailingEnd) -> String {
    let streak = sentence_of_streak(test_counts, end);
    if !end.of_crowd {
        return streak;
    }
    let timeline = test_counts.timeline;
    let entry = timeline.entries.get(end.since);
    let failed = entry.map_or(0, |entry| {
        entry.failures.iter().filter(|failure| !failure.recovered).count()
    });
    let run = number(timeline, Some(end.since));
    format!("{streak}; {failed} tests failed together in run {run}")
}

/// A sentence such as `not run on main since run 13`.
pub(crate) fn not_run_since(test_counts: TestCounts<'_, '_>, last: usize) -> String {
    let timeline = test_counts.timeline;
    let run = number(timeline, Some(last));
    format!("not run{} since run {run}", timeline.on_stable_branch())
}

fn sentence_of_streak(test_counts: TestCounts<'_, '_>, end: &FailingEnd) -> String {
    let timeline = test_counts.timeline;
    let place = place(timeline, end);
    let latest = LatestResults::of(test_counts, end);
    if latest.is_whole {
        return streak_sentence(
            count(latest.failed.len()),
            &place,
            number(timeline, latest.since()),
        );
    }
    let by_revision = streak_sentence(end.streak, &place, number(timeline, Some(end.since)));
    let Some(passed) = latest.passed else {
        return format!("{by_revision}, in the order of revisions");
    };
    let run = number(timeline, Some(passed));
    if test_counts.leaves_out(passed) {
        format!("{by_revision}; run {run}, in which many tests failed together, does not count")
    } else {
        format!("{by_revision}, in the order of revisions; run {run} passed on an older one")
    }
}

/// The results of a chain's own branch, the latest by time first.
struct LatestResults {
    /// The positions of the failures without a later pass, the latest first, mass failures included.
    failed: Vec<usize>,
    /// The latest result before them that is not a failure, if it came after the start of the streak by revision.
    passed: Option<usize>,
    /// Whether the whole streak by revision is among these failures.
    is_whole: bool,
}

impl LatestResults {
    fn of(test_counts: TestCounts<'_, '_>, end: &FailingEnd) -> Self {
        let timeline = test_counts.timeline;
        let entry = |position: usize| timeline.entries.get(position);
        let chain = timeline.chains.get(end.chain);
        let positions = chain.map_or(0..0, |chain| chain.positions.clone());
        // A revision belongs to the branch on which it was first seen, or to the stable branch. It may have run on
        // others too.
        let is_own = |position: &usize| {
            entry(*position).is_some_and(|entry| {
                if end.stable {
                    entry.on_stable_branch
                } else {
                    entry.observed.run.branch.as_deref() == chain.and_then(|chain| chain.branch)
                }
            })
        };
        let failed = |position: &usize| {
            test_counts
                .outcomes
                .get(*position)
                .is_some_and(|outcome| outcome.failed())
        };
        let mut results: Vec<usize> = positions
            .clone()
            .filter(|position| test_counts.column.contains(*position))
            .filter(is_own)
            .collect();
        results.sort_by_key(|position| {
            entry(*position).map(|entry| {
                let run = &entry.observed.run;
                (run.started_at, run.number, *position)
            })
        });
        let latest = || results.iter().rev().copied();
        let streak: Vec<usize> = latest().take_while(failed).collect();
        let by_revision = (end.since..positions.end)
            .filter(|position| test_counts.considered(*position).is_some())
            .filter(is_own);
        let mut is_whole = !streak.is_empty();
        for position in by_revision {
            is_whole &= streak.contains(&position);
        }
        let began = entry(end.since).map(|entry| entry.observed.run.started_at);
        let passed = latest()
            .find(|position| !failed(position))
            .filter(|position| entry(*position).map(|entry| entry.observed.run.started_at) >= began);
        Self {
            failed: streak,
            passed,
            is_whole,
        }
    }

    /// The first failure by time.
    fn since(&self) -> Option<usize> {
        self.failed.last().copied()
    }
}

fn streak_sentence(runs: u32, place: &str, since: i32) -> String {
    match runs {
        1 => format!("Failed the last run{place}, run {since}"),
        many => format!("Failed the last {many} runs{place} since run {since}"),
    }
}

/// The branch and variant of a streak, if the history has several.
fn place(timeline: &Timeline<'_>, end: &FailingEnd) -> String {
    let chain = timeline.chains.get(end.chain);
    let branch = match chain.and_then(|chain| chain.branch) {
        _ if end.stable => timeline.on_stable_branch(),
        Some(branch) => format!(" on {branch}"),
        None => " off the stable branch".to_owned(),
    };
    let variant = chain.map(|chain| chain.variant);
    match variant.filter(|variant| timeline.lanes.len() > 1 && !variant.is_empty()) {
        Some(variant) => format!("{branch} ({variant})"),
        None => branch,
    }
}

fn number(timeline: &Timeline<'_>, position: Option<usize>) -> i32 {
    position
        .and_then(|position| timeline.entries.get(position))
        .map_or(0, |entry| entry.observed.run.number)
}
