//! The figures of a week from its runs, and the state of the stable branch from run to run.

use std::{collections::BTreeMap, sync::Arc};

use assay_domain::{
    observation::{History, RunObservations},
    revision::StableBranch,
    test::TestOrdinal,
    timestamp::Timestamp,
    timing::{lower_median, percentile},
    verdict::{ENGINE_WINDOW_DAYS, Verdict, VerdictStatus},
};

use super::{HealthRuns, HealthWeek, JudgeAt, RedTime, SuiteWeek, WEEK};
use crate::{numbers::count, test_list::StatusCounts};

/// A week without the names of its tests.
pub(super) struct Week {
    /// Without the test that cost most.
    pub(super) figures: HealthWeek,
    /// Milliseconds of failed attempts of the tests that were flaky at the end, ascending by test.
    pub(super) lost: Vec<(TestOrdinal, u64)>,
    pub(super) suites: BTreeMap<Arc<str>, SuiteWeek>,
}

/// The past weeks, made from runs that are added one by one, oldest first.
pub(super) struct Weeks<'a> {
    judge: &'a JudgeAt<'a>,
    /// The runs of the open week and of the one before it.
    history: History,
    /// The durations of these runs.
    durations: Vec<Option<u64>>,
    branch: Branch,
    /// The first week that the answer has. The one before it is only read.
    first: Timestamp,
    /// The start of the open week.
    open: Timestamp,
    closed: Vec<Week>,
}

impl<'a> Weeks<'a> {
    /// No week yet. `history` has no runs.
    pub(super) const fn new(judge: &'a JudgeAt<'a>, history: History, first: Timestamp) -> Self {
        let open = first.plus_days(-WEEK);
        Self {
            judge,
            history,
            durations: Vec::new(),
            branch: Branch::at(open),
            first,
            open,
            closed: Vec::new(),
        }
    }

    /// Adds the next run.
    pub(super) fn add(&mut self, observed: RunObservations, duration_ms: Option<u64>) {
        self.close_until(observed.run.started_at);
        self.history.runs.push(observed);
        self.durations.push(duration_ms);
    }

    /// The weeks before this Monday, and the state of the branch then.
    pub(super) fn until(mut self, monday: Timestamp) -> (Vec<Week>, Branch) {
        self.close_until(monday);
        (self.closed, self.branch)
    }

    fn close_until(&mut self, time: Timestamp) {
        while self.open.plus_days(WEEK) <= time {
            self.close();
        }
    }

    fn close(&mut self) {
        let (from, to) = (self.open, self.open.plus_days(WEEK));
        let verdicts = match from < self.first {
            true => Vec::new(),
            false => (self.judge)(&self.history, to.plus_ms(-1)),
        };
        let runs = self.history.runs.iter().zip(self.durations.iter().copied());
        let runs: Vec<_> = runs.filter(|(run, _)| run.run.started_at >= from).collect();
        let week = Week::of(
            (from, to),
            self.history.stable(),
            &runs,
            &verdicts,
            &mut self.branch,
        );
        let older = self.history.runs.len() - runs.len();
        if from >= self.first {
            self.closed.push(week);
        }
        self.history.runs.drain(..older);
        self.durations.drain(..older);
        self.open = to;
    }
}

impl Week {
    /// The figures of these runs, oldest first, with their durations. `branch` is the state before them.
    pub(super) fn of(
        (from, to): (Timestamp, Timestamp),
        stable: StableBranch<'_>,
        runs: &[(&RunObservations, Option<u64>)],
        verdicts: &[Verdict],
        branch: &mut Branch,
    ) -> Self {
        let mut figures = HealthWeek {
            from,
            to,
            red_ms: 0,
            longest_red: None,
            repairs: 0,
            time_to_green_ms: None,
            runs: HealthRuns::default(),
            tests: StatusCounts::of_verdicts(verdicts),
            flaky_lost_ms: 0,
            most_lost: None,
        };
        let flaky = verdicts
            .iter()
            .filter(|verdict| verdict.status == VerdictStatus::Flaky);
        let mut lost: BTreeMap<TestOrdinal, u64> = flaky.map(|verdict| (verdict.test, 0)).collect();
        let mut suites: BTreeMap<Arc<str>, Vec<(u64, Option<u64>)>> = BTreeMap::new();
        let mut red_before_green = Vec::new();
        for (observed, duration_ms) in runs {
            let has_failed = observed.has_failed();
            figures.runs.total += 1;
            figures.runs.failed += u64::from(has_failed);
            figures.runs.recovered += u64::from(!has_failed && !observed.failures.is_empty());
            for failure in &observed.failures {
                if let (Some(of_test), Some(ms)) = (lost.get_mut(&failure.test), failure.lost_ms) {
                    *of_test += ms;
                }
            }
            if stable.is(observed.run.branch.as_deref()) {
                red_before_green.extend(branch.run(observed, &mut figures));
                if observed.ending.complete {
                    let of_suite = suites.entry(Arc::clone(&observed.run.variant)).or_default();
                    of_suite.push((observed.present.len().into(), *duration_ms));
                }
            }
        }
        branch.end(to, &mut figures);
        figures.repairs = count(red_before_green.len());
        figures.time_to_green_ms = lower_median(&mut red_before_green);
        lost.retain(|_, ms| *ms > 0);
        figures.flaky_lost_ms = lost.values().sum();
        Self {
            figures,
            lost: lost.into_iter().collect(),
            suites: suites
                .into_iter()
                .map(|(suite, runs)| (suite, SuiteWeek::of(&runs)))
                .collect(),
        }
    }

    /// Whether no run is in its window.
    pub(super) const fn is_empty(&self) -> bool {
        self.figures.tests.total == 0 && self.figures.runs.total == 0
    }

    /// About the memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        let suites = self
            .suites
            .keys()
            .map(|suite| suite.len() + size_of::<(Arc<str>, SuiteWeek)>());
        size_of_val(self) + size_of_val(&*self.lost) + suites.sum::<usize>()
    }
}

impl SuiteWeek {
    /// Of runs by their number of tests and their duration.
    fn of(runs: &[(u64, Option<u64>)]) -> Self {
        let (mut tests, durations): (Vec<u64>, Vec<Option<u64>>) = runs.iter().copied().unzip();
        let mut durations: Vec<u64> = durations.into_iter().flatten().collect();
        Self {
            runs: count(runs.len()),
            tests: lower_median(&mut tests),
            p50_ms: lower_median(&mut durations),
            p95_ms: percentile(&mut durations, 95),
        }
    }
}

/// The state of the stable branch at a time.
#[derive(Clone)]
pub(super) struct Branch {
    at: Timestamp,
    /// The suites that are red, each with the start of its newest run.
    red_suites: BTreeMap<Arc<str>, Timestamp>,
    /// The run with which the red time began, and the red milliseconds of the week so far.
    red: Option<RedTime>,
}

impl Branch {
    /// A green branch.
    const fn at(at: Timestamp) -> Self {
        Self {
            at,
            red_suites: BTreeMap::new(),
            red: None,
        }
    }

    /// Passes a run of the branch. Returns for how long the branch was red, if the run makes it green.
    fn run(&mut self, observed: &RunObservations, week: &mut HealthWeek) -> Option<u64> {
        let facts = &observed.run;
        self.pass_time(facts.started_at, week);
        if observed.has_failed() {
            self.red_suites
                .insert(Arc::clone(&facts.variant), facts.started_at);
            self.red.get_or_insert_with(|| RedTime {
                run_id: facts.id.to_string(),
                run_number: facts.number,
                started_at: facts.started_at,
                red_ms: 0,
            });
        } else if observed.ending.complete {
            self.red_suites.remove(&facts.variant);
        } else if let Some(newest) = self.red_suites.get_mut(&facts.variant) {
            *newest = facts.started_at;
        }
        let red = self.red.take_if(|_| self.red_suites.is_empty())?;
        Some(facts.started_at.since_ms(red.started_at).unsigned_abs())
    }

    /// Ends a week.
    fn end(&mut self, to: Timestamp, week: &mut HealthWeek) {
        self.pass_time(to, week);
        if let Some(red) = &mut self.red {
            red.red_ms = 0;
        }
    }

    fn pass_time(&mut self, to: Timestamp, week: &mut HealthWeek) {
        let fades = |newest: &Timestamp| newest.plus_days(ENGINE_WINDOW_DAYS);
        if let (Some(red), Some(end)) = (&mut self.red, self.red_suites.values().map(fades).max()) {
            let ms = to.min(end).since_ms(self.at).unsigned_abs();
            red.red_ms += ms;
            week.red_ms += ms;
            let longest = week.longest_red.as_ref().map_or(0, |longest| longest.red_ms);
            if red.red_ms > longest {
                week.longest_red = Some(red.clone());
            }
            self.red_suites.retain(|_, newest| fades(newest) > to);
            if self.red_suites.is_empty() {
                self.red = None;
            }
        }
        self.at = to;
    }
}

#[cfg(test)]
mod tests {
    use assay_domain::{
        attempt::AttemptStatus,
        execution::TestOutcome,
        observation::{RunEnding, RunFacts},
    };

    use super::*;

    const HOUR: u64 = 3_600_000;

    /// A time in the present week, which begins at 0.
    fn at(hours: i64) -> Timestamp {
        Timestamp::from_unix_ms(hours * 3_600_000)
    }

    /// A run at an hour: `p` passed, `r` passed on retry, `f` failed, `i` passed without the rest of its tests.
    fn run(hour: i64, suite: &str, how: char) -> RunObservations {
        let mut run = RunObservations::of(RunFacts {
            id: hour.to_string().into(),
            number: i32::try_from(hour).unwrap(),
            started_at: at(hour),
            branch: None,
            revision: None,
            variant: suite.into(),
            ..RunFacts::default()
        });
        let attempts = match how {
            'f' => vec![(AttemptStatus::Failed, Some(40))],
            'r' => vec![
                (AttemptStatus::Failed, Some(30)),
                (AttemptStatus::Passed, Some(5)),
            ],
            _ => vec![(AttemptStatus::Passed, Some(5))],
        };
        run.add(0, &TestOutcome::of([attempts]).unwrap());
        if how == 'i' {
            run.ending = RunEnding::incomplete(at(hour));
        }
        run
    }

    /// The figures of the week from 0 to this hour with these runs.
    fn week(hours: i64, runs: &[RunObservations], branch: &mut Branch) -> HealthWeek {
        let stable = StableBranch {
            name: "main",
            any_branch_named: false,
        };
        let runs: Vec<_> = runs.iter().map(|run| (run, None)).collect();
        Week::of((at(0), at(hours)), stable, &runs, &[], branch).figures
    }

    #[test]
    fn the_branch_is_red_while_any_suite_is() {
        let runs = [
            run(1, "unit", 'f'),
            run(2, "e2e", 'f'),
            run(4, "unit", 'r'),
            run(5, "e2e", 'i'),
            run(7, "e2e", 'p'),
            run(9, "unit", 'f'),
            run(10, "unit", 'p'),
        ];
        let week = week(20, &runs, &mut Branch::at(at(0)));
        assert_eq!((week.red_ms, week.repairs), (7 * HOUR, 2));
        // Of two repairs, after six hours and after one.
        assert_eq!(week.time_to_green_ms, Some(HOUR));
        let longest = week.longest_red.unwrap();
        assert_eq!((longest.run_number, longest.red_ms), (1, 6 * HOUR));
        assert_eq!(
            (week.runs.total, week.runs.failed, week.runs.recovered),
            (7, 3, 1)
        );
    }

    #[test]
    fn red_time_crosses_weeks_and_ends_when_the_suite_no_longer_runs() {
        let mut branch = Branch::at(at(0));
        let first = week(24, &[run(1, "unit", 'f')], &mut branch);
        assert_eq!((first.red_ms, first.repairs), (23 * HOUR, 0));
        let mut repaired = branch.clone();
        let second = week(48, &[run(30, "unit", 'p')], &mut repaired);
        assert_eq!(
            (second.red_ms, second.time_to_green_ms),
            (6 * HOUR, Some(29 * HOUR))
        );
        assert_eq!(second.longest_red.unwrap().red_ms, 6 * HOUR);
        // Without a further run, the suite counts for 14 days.
        let forgotten = week(24 * 30, &[], &mut branch);
        assert_eq!((forgotten.red_ms, forgotten.repairs), ((14 * 24 - 23) * HOUR, 0));
        assert!(branch.red.is_none());
    }
}
