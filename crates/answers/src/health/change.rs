//! The sentence about the figure that changed most.

use super::{HealthWeek, SuiteWeek, SuiteWeeks};

/// A figure in two neighbouring weeks, in minutes.
struct Change {
    before: u64,
    now: u64,
    /// The figure as the beginning of a sentence, such as `Flaky tests cost`.
    what: String,
    /// What made most of the larger value; empty if nothing is known.
    why: String,
}

/// One sentence without a full stop about the last whole week: the figure that changed most in relation to its larger value,
/// by a minute at least. Of equal ones, the one that changed by more minutes.
pub(super) fn explanation(branch: &str, weeks: &[HealthWeek], suites: &[SuiteWeeks]) -> String {
    let [.., before, now, _] = weeks else {
        return "Two whole weeks are needed for a comparison".to_owned();
    };
    let at = weeks.len() - 2;
    let suites = suites.iter().filter_map(|suite| {
        let pair = (suite.weeks.get(at - 1)?, suite.weeks.get(at)?);
        Some(of_suite(&suite.suite, pair))
    });
    let of_all = [
        of_weeks(format!("{branch} was red for"), [before, now].map(red)),
        of_weeks(
            "Failed attempts of flaky tests took".to_owned(),
            [before, now].map(lost),
        ),
    ];
    let most = of_all
        .map(Some)
        .into_iter()
        .chain(suites)
        .flatten()
        .filter(|change| change.before != change.now)
        .max_by_key(Change::weight);
    match most {
        Some(change) => change.sentence(&now.from.to_string()),
        None => "No time of the last whole week differs from that of the week before by a minute".to_owned(),
    }
}

impl Change {
    /// The change in thousandths of the larger value, and in minutes.
    fn weight(&self) -> (u64, u64) {
        let difference = self.now.abs_diff(self.before);
        let larger = self.now.max(self.before).max(1);
        (difference.saturating_mul(1_000) / larger, difference)
    }

    fn sentence(&self, monday: &str) -> String {
        let Self {
            before,
            now,
            what,
            why,
        } = self;
        let day = monday.split('T').next().unwrap_or(monday);
        let (than, when) = if now > before {
            ("more", ":")
        } else {
            ("less", ", when")
        };
        let difference = now.abs_diff(*before);
        let head = format!(
            "{what} {} in the week from {day}, {} {than} than in the week before",
            length(*now),
            length(difference)
        );
        match why.is_empty() {
            true => head,
            false => format!("{head}{when} {why}"),
        }
    }
}

/// Minutes in words; from two hours on with hours.
fn length(minutes: u64) -> String {
    match (minutes / 60, minutes % 60) {
        (0 | 1, _) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

/// Whole minutes.
const fn minutes(ms: u64) -> u64 {
    ms / 60_000
}

/// The change of a time of two weeks, each with what made most of it.
fn of_weeks(what: String, [before, now]: [(u64, String); 2]) -> Change {
    Change {
        before: minutes(before.0),
        now: minutes(now.0),
        what,
        why: if now.0 > before.0 { now.1 } else { before.1 },
    }
}

fn red(of: &HealthWeek) -> (u64, String) {
    let why = of.longest_red.as_ref().map(|red| {
        let length = length(minutes(red.red_ms));
        let number = red.run_number;
        format!("the longest red time, {length}, began with run {number}")
    });
    (of.red_ms, why.unwrap_or_default())
}

fn lost(of: &HealthWeek) -> (u64, String) {
    let why = of.most_lost.as_ref().map(|most| {
        let length = length(minutes(most.lost_ms));
        format!("{} cost most, {length}", most.test.name)
    });
    (of.flaky_lost_ms, why.unwrap_or_default())
}

/// The median time of a suite, with its number of tests; none if it is not known in both weeks.
fn of_suite(suite: &str, (before, now): (&SuiteWeek, &SuiteWeek)) -> Option<Change> {
    let (tests_before, tests) = before.tests.zip(now.tests)?;
    let (of_before, of_now) = before.p50_ms.zip(now.p50_ms)?;
    let name = if suite.is_empty() {
        String::new()
    } else {
        format!(" of {suite}")
    };
    let is_more = of_now > of_before;
    Some(Change {
        before: minutes(of_before),
        now: minutes(of_now),
        what: format!("The median run{name} on the stable branch took"),
        why: match (is_more, tests.cmp(&tests_before)) {
            (true, std::cmp::Ordering::Greater) => format!("it has {} more tests", tests - tests_before),
            (false, std::cmp::Ordering::Less) => format!("it had {} more tests", tests_before - tests),
            _ => String::new(),
        },
    })
}

#[cfg(test)]
mod tests {
    use assay_domain::{test::TestName, timestamp::Timestamp};

    use super::*;
    use crate::{
        health::{HealthRuns, LostTime, RedTime},
        test_list::StatusCounts,
    };

    /// A week with these red and lost minutes, of which most began with run 7 and were lost by one test.
    fn week(number: i64, red: u64, lost: u64) -> HealthWeek {
        // A Monday.
        let from = Timestamp::from_unix_ms(0).plus_days(4 + number * 7);
        HealthWeek {
            from,
            to: from.plus_days(7),
            red_ms: red * 60_000,
            longest_red: (red > 0).then(|| RedTime {
                run_id: "r7".to_owned(),
                run_number: 7,
                started_at: from,
                red_ms: red * 50_000,
            }),
            repairs: 0,
            time_to_green_ms: None,
            runs: HealthRuns::default(),
            tests: StatusCounts::default(),
            flaky_lost_ms: lost * 60_000,
            most_lost: (lost > 0).then(|| LostTime {
                test: TestName {
                    name: "pays".to_owned(),
                    file_path: None,
                },
                lost_ms: lost * 30_000,
            }),
        }
    }

    fn suite(minutes: [u64; 3], tests: [u64; 3]) -> SuiteWeeks {
        let of = |(minutes, tests): (u64, u64)| SuiteWeek {
            runs: 5,
            tests: Some(tests),
            p50_ms: Some(minutes * 60_000),
            p95_ms: None,
        };
        SuiteWeeks {
            suite: "e2e".to_owned(),
            weeks: minutes.into_iter().zip(tests).map(of).collect(),
        }
    }

    #[test]
    fn the_sentence_names_the_figure_that_changed_most_and_why() {
        let sentence = |[before, now]: [(u64, u64); 2], suites: &[SuiteWeeks]| {
            // The present week is not compared.
            let weeks = [
                week(0, before.0, before.1),
                week(1, now.0, now.1),
                week(2, 900, 900),
            ];
            explanation("main", &weeks, suites)
        };
        assert_eq!(
            sentence([(60, 20), (120, 22)], &[]),
            "main was red for 2 h in the week from 1970-01-12, 60 min more than in the week before: \
             the longest red time, 100 min, began with run 7"
        );
        assert_eq!(
            sentence([(60, 20), (60, 2)], &[]),
            "Failed attempts of flaky tests took 2 min in the week from 1970-01-12, 18 min less than in the week before, \
             when pays cost most, 10 min"
        );
        let slower = suite([10, 15, 99], [40, 52, 52]);
        assert_eq!(
            sentence([(60, 20), (60, 20)], &[slower]),
            "The median run of e2e on the stable branch took 15 min in the week from 1970-01-12, 5 min more than in the \
             week before: it has 12 more tests"
        );
        // More tests do not explain a shorter run.
        assert!(
            sentence([(0, 0), (0, 0)], &[suite([9, 4, 4], [40, 52, 52])])
                .ends_with("than in the week before")
        );
        assert_eq!(
            sentence([(60, 20), (60, 20)], &[]),
            "No time of the last whole week differs from that of the week before by a minute"
        );
        assert_eq!(
            explanation("main", &[week(0, 1, 1), week(1, 9, 9)], &[]),
            "Two whole weeks are needed for a comparison"
        );
    }
}
