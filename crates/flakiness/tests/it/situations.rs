//! Situations in which an earlier engine concluded wrongly, and controls that must not change. Each is a file of
//! `tests/situations` with one sentence that says why.
//!
//! A row is the results of test 0 in the runs of a branch on a variant, as [`letters`] reads them. The n-th revision of a
//! branch is the same on all variants. Further columns are the revision of its merge base, its pull request, the number of
//! its error, and the name of the merges that were tested, if not the revisions themselves. The revisions of a merge queue's branch are q and its pull requests, such as `q13-1`. Thirty other tests
//! pass everywhere.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use assay_flakiness::{
    Diagnose as _, Engine, ErrorTexts,
    domain::{
        cause::Knowledge,
        merge_queue::{is_queue_branch, tested_pull_requests},
        observation::History,
        timestamp::Timestamp,
        verdict::Judge as _,
    },
};

use crate::{
    history::{START_MS, add, letters, run},
    judgements::HOUR_MS,
};

macro_rules! situations {
    ($($name:ident)*) => {
        $(#[test] fn $name() { check(stringify!($name)); })*
        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

situations! {
    base_after_the_fix
    base_before_the_breakage
    base_in_the_breakage
    base_long_mended
    base_moved_to_the_fix
    base_unknown_to_main
    batch_of_two_changes
    breakage_on_a_weekend
    merges_fail_and_pushes_pass
    merges_of_another_change_fail
    merges_tested_again_after_a_fix
    one_of_many_variants_broken
    one_of_twelve_fails_every_second_run
    one_system_breaks_twice
    one_system_fails_most_runs
    one_system_passes_on_retry_sometimes
    one_variant_on_branches_too
    queue_behind_a_failed_run
    queue_fails_one_change_thrice
    queue_repeats_another_change
    queue_repeats_its_change
    red_on_all_systems
    retries_begin_to_pass
    stale_base
    two_branches_of_one_change
    two_changes_with_one_error
    weekends
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/situations"))
}

#[test]
fn every_file_is_a_test() {
    let files = fs::read_dir(folder()).unwrap().map(|file| file.unwrap().path());
    let mut names: Vec<String> = files
        .map(|file| file.file_stem().unwrap().display().to_string())
        .collect();
    names.sort();
    assert_eq!(names, NAMES);
}

/// The history of a file, its errors, and its newest run.
fn history(rows: &str) -> (History, ErrorTexts, i32) {
    let mut texts = ErrorTexts::new();
    let mut history = History {
        stable_branch: "main".into(),
        tests: 31,
        runs: Vec::new(),
    };
    // Runs of a branch at one time are one run.
    let mut numbers: BTreeMap<(i64, String), i32> = BTreeMap::new();
    let mut parsed = Vec::new();
    for row in rows.lines() {
        let columns: Vec<&str> = row.split(',').collect();
        let [branch, variant, first, apart, attempts, results, ref base @ ..] = columns[..] else {
            panic!("{row}");
        };
        let more = |place: usize| base.get(place).copied().filter(|text| !text.is_empty());
        let own = more(1).map(|number| number.parse().unwrap());
        let pull_requests = tested_pull_requests(Some(branch), None, own);
        let in_queue = pull_requests.iter().map(i64::to_string).collect::<Vec<_>>();
        let revisions = match is_queue_branch(branch) {
            true => format!("q{}", in_queue.join("+")),
            false => branch.to_owned(),
        };
        let (first, apart): (f64, f64) = (first.parse().unwrap(), apart.parse().unwrap());
        for (place, (revision, letter)) in letters(results).into_iter().enumerate() {
            let at = START_MS + ((first + apart * place as f64) * HOUR_MS as f64) as i64;
            numbers.insert((at, branch.to_owned()), 0);
            parsed.push((
                at,
                branch,
                variant,
                format!("{revisions}-{revision}"),
                attempts,
                letter,
                (more(0), more(2), pull_requests.clone()),
                more(3).map(|merge| format!("{merge}-{place}")),
            ));
        }
    }
    for (place, number) in (1..).zip(numbers.values_mut()) {
        *number = place;
    }
    for (at, branch, variant, revision, attempts, letter, (base, error, pull_requests), merge) in parsed {
        let number = numbers[&(at, branch.to_owned())];
        let mut observed = run(number, at, Some(branch), Some(revision));
        observed.run.variant = variant.into();
        observed.run.merge_base = base.map(Into::into);
        observed.run.pull_requests = pull_requests;
        observed.run.merge = merge.map(Into::into);
        add(&mut observed, 0, letter);
        for failure in &mut observed.failures {
            failure.failed_attempts = attempts.parse().unwrap();
            if let Some(error) = error {
                texts.insert(history.runs.len(), 0, error.parse().unwrap());
            }
        }
        (1..31).for_each(|test| add(&mut observed, test, 'P'));
        history.runs.push(observed);
    }
    let newest = i32::try_from(numbers.len()).unwrap();
    (history, texts, newest)
}

/// The verdict's sentence on the history of a file, and the history.
fn sentence(name: &str) -> (String, History) {
    let text = fs::read_to_string(folder().join(format!("{name}.csv"))).unwrap();
    let (history, ..) = history(text.splitn(4, '\n').nth(3).unwrap());
    let now = history.runs.iter().map(|run| run.run.started_at).max().unwrap();
    let verdict = Engine::default().verdicts(&history, now).swap_remove(0);
    (verdict.explanation, history)
}

#[test]
fn the_sentence_of_one_bad_variant_has_the_counts_of_its_history() {
    let (sentence, history) = sentence("one_system_fails_most_runs");
    let mut on_x86: Vec<_> = history
        .runs
        .iter()
        .filter(|run| &*run.run.variant == "x86")
        .collect();
    on_x86.sort_by_key(|run| run.run.number);
    let episodes = on_x86.chunk_by(|one, other| one.failed(0) == other.failed(0));
    let failed: Vec<_> = episodes.filter(|episode| episode[0].failed(0)).collect();
    let last = failed.last().unwrap();
    assert!(on_x86.last().unwrap().failed(0));
    assert_eq!(
        sentence,
        format!(
            "Failed in {} separate episodes on main; breakages and their fixes do not explain them; on x86 only, not on \
             the other variant; failing now: failed the last {} runs on main (x86) since run {}",
            failed.len(),
            last.len(),
            last[0].run.number
        )
    );
}

#[test]
fn the_sentence_of_the_calendar_has_the_counts_of_its_history() {
    let (sentence, history) = sentence("weekends");
    let newest = history.runs.iter().map(|run| run.run.started_at).max().unwrap();
    let days = |counts: &dyn Fn(i64, bool) -> bool| {
        let of_window = history
            .runs
            .iter()
            .filter(|run| run.run.started_at >= newest.plus_days(-14));
        let days = of_window.map(|run| (run.run.started_at.unix_ms() / (24 * HOUR_MS), run.failed(0)));
        let days: BTreeSet<i64> = days
            .filter(|(day, failed)| counts(*day, *failed))
            .map(|(day, _)| day)
            .collect();
        days.len()
    };
    // 1970-01-03 was a Saturday.
    let is_weekend = |day: i64| [2, 3].contains(&(day % 7));
    assert_eq!(
        sentence,
        format!(
            "Failed on {} of {} weekend days (UTC) and on none of {} other days",
            days(&|_, failed| failed),
            days(&|day, _| is_weekend(day)),
            days(&|day, _| !is_weekend(day))
        )
    );
    assert_eq!(days(&|day, failed| failed && !is_weekend(day)), 0);
}

/// Checks the conditions of the second line of a file: `status=flaky|failing not_cause=this_change mine_below=0.9`, `cause=flake`.
fn check(name: &str) {
    let text = fs::read_to_string(folder().join(format!("{name}.csv"))).unwrap();
    let lines: Vec<&str> = text.splitn(4, '\n').collect();
    let (history, texts, newest) = history(lines[3]);
    let now = history.runs.iter().map(|run| run.run.started_at).max().unwrap();
    let now = Timestamp::from_unix_ms(now.unix_ms() + HOUR_MS);
    let verdict = Engine::default().verdicts(&history, now).swap_remove(0);
    let causes = Engine::default().causes_of_run(&history, &texts, newest, Knowledge::AtTheTime, now);
    for want in lines[1].trim_start_matches("# ").split(' ') {
        let (key, value) = want.split_once('=').unwrap();
        let of_causes = |holds: &dyn Fn(f64, &str) -> bool| {
            let mut judged = causes.iter().map(|cause| cause.probabilities).map(|p| {
                let parts = [
                    (p.flake, "flake"),
                    (p.environment, "environment"),
                    (p.broken_before, "broken_before"),
                    (p.earlier_on_branch, "earlier_on_branch"),
                    (p.this_change, "this_change"),
                ];
                let likeliest = parts
                    .into_iter()
                    .max_by(|one, other| one.0.total_cmp(&other.0))
                    .unwrap();
                (p.mine(), if likeliest.0 < 0.6 { "unclear" } else { likeliest.1 })
            });
            !causes.is_empty() && judged.all(|(mine, cause)| holds(mine, cause))
        };
        let holds = match key {
            "status" => value.split('|').any(|status| status == verdict.status.as_str()),
            "reason" => verdict.reason.is_some_and(|reason| reason.as_str() == value),
            "cause" => of_causes(&|_, cause| cause == value),
            "not_cause" => of_causes(&|_, cause| cause != value),
            "mine_below" => of_causes(&|mine, _| mine < value.parse().unwrap()),
            "mine_above" => of_causes(&|mine, _| mine > value.parse().unwrap()),
            other => panic!("{other}"),
        };
        assert!(holds, "{}: {want}\n{verdict:#?}\n{causes:#?}", lines[0]);
    }
}
