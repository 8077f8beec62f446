//! The engine: two passes over the window, then one verdict for each test.

use assay_domain::{
    observation::{Bitmap, History, RunObservations},
    test::TestOrdinal,
    timestamp::Timestamp,
    verdict::{
        DroppedRun, ENGINE_WINDOW_DAYS, Evidence, Judge, Judgement, Signal, Suspects, Verdict, VerdictStatus,
    },
};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::{
    config::{MASS_FAILURE, NAMED_RUNS},
    model::{
        Outcome,
        always_passing::AlwaysPassing,
        background::Background,
        calendar::{Calendar, CalendarRuns, DAYS_READ},
    },
    numbers::at,
    participation::{Block, Presence, row::WORDS},
    plan::fix::{CleanRuns, GOOD_ENOUGH, bound},
    timeline::{
        Timeline,
        failures::{FailureAt, Failures},
    },
    verdict::{
        evidence::{self, Frame},
        explanation,
        findings::Finder,
        status::{FailedTest, clean, clean_status},
        test_counts::TestCounts,
    },
};

/// The flakiness engine.
///
/// ```
/// use assay_flakiness::{
///     Engine,
///     domain::{observation::History, timestamp::Timestamp, verdict::Judge as _},
/// };
///
/// let empty = History { stable_branch: "main".into(), tests: 0, runs: Vec::new() };
/// assert!(Engine::default().verdicts(&empty, Timestamp::from_unix_ms(0)).is_empty());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Engine {
    window_days: i64,
}

impl Default for Engine {
    /// An engine that judges the window of the API.
    fn default() -> Self {
        Self::with_window(ENGINE_WINDOW_DAYS)
    }
}

impl Engine {
    /// An engine that judges a window of this many days of 24 hours, which ends at `now`.
    pub const fn with_window(window_days: i64) -> Self {
        Self { window_days }
    }

    /// The days of the window.
    pub(crate) const fn window_days(&self) -> i64 {
        self.window_days
    }

    fn judgements(&self, history: &History, now: Timestamp, only: Option<&[TestOrdinal]>) -> Vec<Judgement> {
        let frame = Frame {
            now,
            window_days: self.window_days,
        };
        let judgement = |judgements: &mut Vec<Judgement>, examination: Examination<'_, '_>| {
            let verdict = examination.verdict();
            let evidence = examination.evidence(frame, &verdict.signals);
            judgements.push(Judgement { verdict, evidence });
        };
        self.examine(history, now, only, judgement)
            .into_iter()
            .flatten()
            .collect()
    }

    /// Examines every test (or those in `only`) with a result in the window, ascending. All verdicts come from here.
    /// Returns the values to which `conclude` added, one for each block.
    ///
    /// The tests of a block are independent of all others, so the blocks run in parallel.
    fn examine<T: Default + Send>(
        &self,
        history: &History,
        now: Timestamp,
        only: Option<&[TestOrdinal]>,
        conclude: impl Fn(&mut T, Examination<'_, '_>) + Sync,
    ) -> Vec<T> {
        let from = now.plus_days(-self.window_days);
        let timeline = Timeline::new(history, (from, now), |observed| observed.is_settled(now));
        let of_passes = || {
            let background = Background::new(&timeline);
            let always_passing = AlwaysPassing::new(&timeline, &background);
            (background, always_passing)
        };
        let of_failures = || (Failures::new(&timeline), Failures::repeated_passes(&timeline));
        let ((background, always_passing), (failures, repeated)) = rayon::join(of_passes, of_failures);
        let read_from = now.plus_days(-DAYS_READ);
        let is_earlier = |run: &RunObservations| (read_from..from).contains(&run.run.started_at);
        let earlier = history.runs.iter().any(is_earlier).then(|| {
            let is_settled = |observed: &RunObservations| observed.is_settled(now);
            CalendarRuns::new(Timeline::new(history, (read_from, now), is_settled))
        });
        let selected = only.map(|tests| tests.iter().copied().collect::<Bitmap>());
        let selected_word = |word: usize| selected.as_ref().map_or(u64::MAX, |tests| tests.word(word));
        let blocks: Vec<usize> = (0..timeline.words)
            .step_by(WORDS)
            .filter(|first| (*first..first + WORDS).any(|word| selected_word(word) != 0))
            .collect();
        let results = Results {
            failures: &failures,
            repeated: &repeated,
            earlier: earlier.as_ref(),
        };
        let examiner = || Examiner::new(&timeline, &background, &always_passing, results);
        blocks
            .into_par_iter()
            .map_init(
                || (examiner(), Block::default()),
                |(examiner, block), first| {
                    let mut conclusions = T::default();
                    block.read(&timeline, &background, first);
                    for index in 0..WORDS {
                        let mut tests = block.any(index) & selected_word(first + index);
                        while tests != 0 {
                            let test = tests.trailing_zeros();
                            conclude(&mut conclusions, examiner.examine(block, index, test));
                            tests &= tests - 1;
                        }
                    }
                    conclusions
                },
            )
            .collect()
    }
}

impl Judge for Engine {
    fn judge(&self, history: &History, now: Timestamp) -> Vec<Judgement> {
        self.judgements(history, now, None)
    }

    fn verdicts(&self, history: &History, now: Timestamp) -> Vec<Verdict> {
        let verdict = |verdicts: &mut Vec<Verdict>, examination: Examination<'_, '_>| {
            verdicts.push(examination.verdict())
        };
        self.examine(history, now, None, verdict)
            .into_iter()
            .flatten()
            .collect()
    }

    fn judge_tests(&self, history: &History, now: Timestamp, tests: &[TestOrdinal]) -> Vec<Judgement> {
        self.judgements(history, now, Some(tests))
    }

    fn builds_needed(&self, rate_before: Option<f64>) -> u32 {
        CleanRuns::Builds.needed(rate_before.map_or(GOOD_ENOUGH, bound))
    }

    /// Builds no explanations for tests that are neither flaky nor broken.
    fn suspects(&self, history: &History, now: Timestamp) -> Suspects {
        let blocks = self.examine(history, now, None, |suspects: &mut Suspects, examination| {
            suspects.add(examination.status(), || examination.verdict())
        });
        blocks.into_iter().fold(Suspects::default(), Suspects::and)
    }
}

/// A test with everything that its verdict depends on.
struct Examination<'a, 'h> {
    timeline: &'a Timeline<'h>,
    background: &'a Background,
    block: &'a Block,
    index: usize,
    bit: u32,
    test: TestOrdinal,
    presence: Presence,
    /// `None` for a test without a failed attempt.
    failed_test: Option<FailedTest<'a, 'h>>,
}

impl Examination<'_, '_> {
    fn status(&self) -> VerdictStatus {
        match &self.failed_test {
            Some(failed_test) => failed_test.decide().0,
            None => clean_status(self.presence),
        }
    }

    fn verdict(&self) -> Verdict {
        let mut verdict = match &self.failed_test {
            Some(failed_test) => failed_test.verdict(),
            None => clean(self.test, self.presence),
        };
        if let Some(run) = self.timeline.unsettled_failure(self.test) {
            verdict.explanation += &explanation::unsettled(run);
        }
        verdict
    }

    fn evidence(&self, frame: Frame, active: &[Signal]) -> Evidence {
        let mut evidence = evidence::counts(frame, self.presence, self.dropped());
        if let Some(failed_test) = &self.failed_test {
            evidence.signals = evidence::signals(failed_test, active);
        }
        evidence
    }

    fn ran_at(&self, position: usize) -> bool {
        let tests_here = self
            .block
            .columns
            .get(self.index)
            .and_then(|column| column.seen.get(position));
        tests_here.is_some_and(|tests| tests >> self.bit & 1 == 1)
    }

    /// The test's newest runs that are mass failures on every variant. They count in no rate.
    fn dropped(&self) -> Vec<DroppedRun> {
        let dropped = self.presence.seen - self.presence.considered;
        let runs = self
            .background
            .mass_failure_runs
            .iter()
            .filter_map(|run| self.timeline.runs.get(*run));
        let dropped_runs = runs.filter_map(|run| {
            let here = run.positions.iter().filter(|position| self.ran_at(**position));
            let betas = here.map(|position| self.background.of(*position, self.test));
            // The lowest background: if one variant is not a mass failure, the run counts.
            let beta = betas.reduce(f64::min).filter(|beta| *beta >= MASS_FAILURE)?;
            Some(DroppedRun {
                run_id: run.facts.id.to_string(),
                beta,
            })
        });
        dropped_runs.take(at(dropped).min(NAMED_RUNS)).collect()
    }
}

/// The results that are not plain passes, by test.
#[derive(Debug, Clone, Copy)]
struct Results<'t, 'h> {
    failures: &'t Failures,
    repeated: &'t Failures,
    /// Those of the calendar, where the history has runs before the window.
    earlier: Option<&'t CalendarRuns<'h>>,
}

/// Examines one test after the other, and reuses its memory.
struct Examiner<'t, 'h> {
    timeline: &'t Timeline<'h>,
    background: &'t Background,
    results: Results<'t, 'h>,
    /// The results of the current test that are not plain passes.
    current: [&'t [FailureAt]; 2],
    finder: Finder<'t, 'h>,
    /// The outcomes of the current test by position: passed unless it failed.
    outcomes: Vec<Outcome>,
}

impl<'t, 'h> Examiner<'t, 'h> {
    fn new(
        timeline: &'t Timeline<'h>,
        background: &'t Background,
        always_passing: &'t AlwaysPassing,
        results: Results<'t, 'h>,
    ) -> Self {
        Self {
            timeline,
            background,
            results,
            current: [&[], &[]],
            finder: Finder::new(timeline, background, always_passing),
            outcomes: vec![Outcome::Passed; timeline.entries.len()],
        }
    }

    fn examine<'a>(&'a mut self, block: &'a Block, index: usize, bit: u32) -> Examination<'a, 'h> {
        let test = block.test(index, bit);
        let (timeline, background) = (self.timeline, self.background);
        let presence = block.presence(timeline, index, bit);
        let failed_test = self.failed_test(block, index, bit, presence);
        Examination {
            timeline,
            background,
            block,
            index,
            bit,
            test,
            presence,
            failed_test,
        }
    }

    /// All counts of a test; `None` if it has no failed attempt.
    fn failed_test<'a>(
        &'a mut self,
        block: &'a Block,
        index: usize,
        bit: u32,
        presence: Presence,
    ) -> Option<FailedTest<'a, 'h>> {
        let test = block.test(index, bit);
        let (failures, repeated) = (self.results.failures.of(test), self.results.repeated.of(test));
        if failures.is_empty() {
            return None;
        }
        for failure in self.current.into_iter().flatten() {
            if let Some(outcome) = self.outcomes.get_mut(failure.position) {
                *outcome = Outcome::Passed;
            }
        }
        self.current = [failures, repeated];
        for result in self.current.into_iter().flatten() {
            if let Some(outcome) = self.outcomes.get_mut(result.position) {
                *outcome = result.outcome;
            }
        }
        let (timeline, background) = (self.timeline, self.background);
        let column = block.column(timeline, index, bit, presence)?;
        let test_counts = TestCounts {
            test,
            timeline,
            background,
            column,
            failures,
            repeated,
            outcomes: &self.outcomes,
        };
        Some(FailedTest {
            test,
            test_counts,
            findings: self.finder.find(test_counts),
            calendar: match self.results.earlier {
                Some(earlier) => Calendar::find_in(earlier, test),
                None => Calendar::find_at(timeline, background, failures, test),
            },
        })
    }
}
