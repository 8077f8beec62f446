//! Tests that fail on days of the calendar or at a time of the day.

use assay_flakiness::{
    Engine,
    domain::{
        observation::History,
        timestamp::Timestamp,
        verdict::{Judge as _, Signal, Verdict, VerdictStatus},
    },
};

use crate::{
    history::{add, run},
    judgements::HOUR_MS,
};

/// The verdict at the end of a history of `main` from 2026-01-01 on, with a run at each of these hours of each day, each of
/// a new revision. `fails` has the date and the hour, such as `2026-01-31` and 5.
fn judged(days: i64, hours: &[i64], fails: impl Fn(&str, i64) -> bool) -> Verdict {
    let start = "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap();
    let mut history = History {
        stable_branch: "main".into(),
        tests: 2,
        runs: Vec::new(),
    };
    let each = (0..days).flat_map(|day| hours.iter().map(move |hour| (day, *hour)));
    for (number, (day, hour)) in (1..).zip(each) {
        let at = start.plus_days(day).plus_ms(hour * HOUR_MS);
        let mut observed = run(number, at.unix_ms(), Some("main"), Some(number.to_string()));
        let failed = fails(&at.to_string()[..10], hour);
        add(&mut observed, 0, if failed { 'F' } else { 'P' });
        add(&mut observed, 1, 'P');
        history.runs.push(observed);
    }
    Engine::default()
        .verdicts(&history, start.plus_days(days))
        .swap_remove(0)
}

#[track_caller]
fn is_of_the_calendar(verdict: &Verdict, sentence: &str) {
    assert_eq!(
        (verdict.status, verdict.reason),
        (VerdictStatus::Flaky, Some(Signal::Calendar)),
        "{verdict:?}"
    );
    assert_eq!(verdict.explanation, sentence);
}

const MONDAYS: [&str; 6] = ["01-05", "01-12", "01-19", "01-26", "02-02", "02-09"];

fn is_monday(date: &str) -> bool {
    MONDAYS.contains(&&date[5..])
}

#[test]
fn a_test_that_fails_each_monday_is_flaky_by_the_calendar() {
    // From Thursday, 1 January, to Wednesday, 4 February: five Mondays.
    let verdict = judged(35, &[2, 10], |date, _| is_monday(date));
    is_of_the_calendar(
        &verdict,
        "Failed on 5 of 5 Mondays (UTC) and on none of 30 other days",
    );
    // Controls: two Mondays may be two breakages, and one failure on another day is no Monday.
    let two = judged(14, &[2, 10], |date, _| is_monday(date));
    assert_ne!(two.reason, Some(Signal::Calendar), "{two:?}");
    let other = judged(35, &[2, 10], |date, _| is_monday(date) || date == "2026-01-28");
    assert_ne!(other.reason, Some(Signal::Calendar), "{other:?}");
}

#[test]
fn a_test_that_fails_at_the_turn_of_months_is_flaky_by_the_calendar() {
    let last = [
        "01-29", "01-30", "01-31", "02-26", "02-27", "02-28", "03-29", "03-30", "03-31",
    ];
    let of_end = |days| judged(days, &[5], |date, _| last.contains(&&date[5..]));
    is_of_the_calendar(
        &of_end(92),
        "Failed on 9 of 9 days among the last three of a month (UTC) and on none of 83 other days",
    );
    let first = judged(95, &[5], |date, _| date.ends_with("-01"));
    is_of_the_calendar(
        &first,
        "Failed on 4 of 4 first days of a month (UTC) and on none of 91 other days",
    );
    // A control: a breakage of three days at the end of one month.
    let once = judged(60, &[5], |date, _| last[3..6].contains(&&date[5..]));
    assert_ne!(once.reason, Some(Signal::Calendar), "{once:?}");
}

#[test]
fn a_test_that_fails_around_midnight_is_flaky_by_the_calendar() {
    let hours: Vec<i64> = (0..24).collect();
    let midnight = judged(12, &hours, |date, hour| {
        hour == 0 || hour == 23 && date.ends_with('5')
    });
    assert_eq!(midnight.reason, Some(Signal::Calendar), "{midnight:?}");
    assert!(
        midnight
            .explanation
            .contains("days between 23:00 and 01:00 UTC, and in none of "),
        "{midnight:?}"
    );
    let at_five = judged(12, &hours, |_, hour| hour == 5);
    is_of_the_calendar(
        &at_five,
        "Failed on 12 of 12 days between 05:00 and 06:00 UTC, and in none of 276 other hours with a run",
    );
}

/// The number of the zones from UTC-8 to UTC+9 in which a test that fails at these local hours is found, of runs at each
/// hour of 14 days. In the middle of them clocks go forward by `forward` hours.
fn zones_found(local_hours: &[i64], forward: i64) -> usize {
    let hours: Vec<i64> = (0..24).collect();
    let is_found = |zone: &i64| {
        let verdict = judged(14, &hours, |date, hour| {
            let clock = if date < "2026-01-08" {
                *zone
            } else {
                zone + forward
            };
            local_hours.contains(&(hour + clock).rem_euclid(24))
        });
        verdict.reason == Some(Signal::Calendar)
    };
    (-8..=9).filter(is_found).count()
}

#[test]
fn a_test_that_fails_at_midnight_is_found_in_each_zone() {
    assert_eq!(zones_found(&[0], 0), 18);
    assert_eq!(zones_found(&[23, 0], 0), 18);
    // A change of clocks moves one hour to the next, and two hours to three.
    assert_eq!(zones_found(&[0], 1), 18);
    assert_eq!(zones_found(&[23, 0], 1), 0);
}

/// The number of these zones in which a test that fails on local Mondays is found, of runs at these local hours of 35 days.
fn zones_with_mondays(local_hours: &[i64]) -> usize {
    let is_found = |zone: &i64| {
        let hours: Vec<i64> = local_hours
            .iter()
            .map(|hour| (hour - zone).rem_euclid(24))
            .collect();
        let verdict = judged(35, &hours, |date, hour| {
            let at = format!("{date}T{hour:02}:00:00Z").parse::<Timestamp>().unwrap();
            is_monday(&at.plus_ms(zone * HOUR_MS).to_string()[..10])
        });
        verdict.reason == Some(Signal::Calendar)
    };
    (-8..=9).filter(is_found).count()
}

#[test]
fn days_of_other_zones_are_found_if_their_runs_are_of_one_day_in_utc() {
    assert_eq!(zones_with_mondays(&[5]), 18);
    assert_eq!(zones_with_mondays(&[9, 13, 17]), 16);
    assert_eq!(zones_with_mondays(&[0, 3, 6, 9, 12, 15, 18, 21]), 3);
}
