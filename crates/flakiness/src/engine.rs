//! The engine: two passes over the window, then one verdict a test.

use assay_domain::{
    observation::History,
    test::TestOrdinal,
    timestamp::Timestamp,
    verdict::{DroppedRun, Judge, Judgement, Verdict},
};

use crate::{
    background::backgrounds,
    column::{Column, Presence},
    config::{Config, MASS_FAILURE, NAMED_RUNS},
    evidence::{self, Frame},
    failures::Failures,
    filter::Filter,
    numbers::at,
    outcomes::{RunOutcome, by_run, figures},
    sheet::{Mark, Sheet, fill},
    status::{Case, Ends, clean},
    tally::Tallier,
    timeline::Timeline,
    trajectory::Trajectory,
};

/// The version of the model: raised whenever the same history may be judged differently.
pub const ENGINE_VERSION: &str = "1";

/// The flakiness engine.
///
/// ```
/// use assay_flakiness::{Engine, domain::{observation::History, timestamp::Timestamp}};
///
/// let empty = History { stable_branch: "main".into(), tests: 0, runs: Vec::new() };
/// assert!(Engine::default().verdicts(&empty, Timestamp::from_unix_ms(0)).is_empty());
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Engine {
    config: Config,
}

impl Engine {
    /// An engine with a configuration of one's own; [`Engine::default`] is the one of the API.
    pub const fn new(config: Config) -> Self {
        Self { config }
    }

    /// The verdicts alone on every test with a result in the window, ascending by test.
    pub fn verdicts(&self, history: &History, now: Timestamp) -> Vec<Verdict> {
        self.examine(history, now, None, |examined| match examined.case {
            Some(case) => case.verdict(),
            None => clean(examined.test, examined.presence),
        })
    }

    /// The verdicts with their evidence on those of `tests` that have a result in the window, ascending by test.
    pub fn judge_tests(&self, history: &History, now: Timestamp, tests: &[TestOrdinal]) -> Vec<Judgement> {
        self.judgements(history, now, Some(tests))
    }

    fn judgements(&self, history: &History, now: Timestamp, only: Option<&[TestOrdinal]>) -> Vec<Judgement> {
        let frame = Frame {
            now,
            window_days: self.config.window_days,
        };
        self.examine(history, now, only, |examined| {
            let mut evidence = evidence::counts(frame, examined.presence, examined.dropped());
            let verdict = match examined.case {
                Some(case) => {
                    let verdict = case.verdict();
                    evidence.signals = evidence::signals(&case, &verdict.signals);
                    verdict
                }
                None => clean(examined.test, examined.presence),
            };
            Judgement { verdict, evidence }
        })
    }

    /// Examines every test (or `only` some) with a result in the window, ascending: the one path to any verdict.
    fn examine<T>(
        &self,
        history: &History,
        now: Timestamp,
        only: Option<&[TestOrdinal]>,
        mut conclude: impl FnMut(Examined<'_, '_>) -> T,
    ) -> Vec<T> {
        let from = now.plus_days(-self.config.window_days);
        let timeline = Timeline::new(history, from, now);
        let backgrounds = backgrounds(&timeline);
        let trajectory = Trajectory::new(&timeline, &backgrounds);
        let failures = Failures::new(&timeline);
        let mut examiner = Examiner {
            config: self.config,
            timeline: &timeline,
            backgrounds: &backgrounds,
            failures: &failures,
            filter: Filter::new(&timeline, &backgrounds, &trajectory),
            tallier: Tallier::default(),
            red: vec![None; timeline.runs.len()],
            marks: Vec::new(),
            outcomes: Vec::new(),
        };
        let wanted = only.map(|tests| {
            tests
                .iter()
                .copied()
                .collect::<assay_domain::observation::Bitmap>()
        });
        let mut column = Column::default();
        let mut conclusions = Vec::new();
        for word in 0..timeline.words {
            let wanted = wanted.as_ref().map_or(u64::MAX, |tests| tests.word(word));
            if wanted == 0 {
                continue;
            }
            column.read(&timeline, &backgrounds, word);
            let mut tests = column.any & wanted;
            while tests != 0 {
                let bit = tests.trailing_zeros();
                let test = Column::test(word, bit);
                conclusions.push(conclude(Examined {
                    timeline: &timeline,
                    backgrounds: &backgrounds,
                    column: &column,
                    bit,
                    test,
                    presence: column.presence(bit),
                    case: examiner.case(&column, test, bit),
                }));
                tests &= tests - 1;
            }
        }
        conclusions
    }
}

impl Judge for Engine {
    fn judge(&self, history: &History, now: Timestamp) -> Vec<Judgement> {
        self.judgements(history, now, None)
    }
}

/// What was found of a test.
struct Examined<'a, 'h> {
    timeline: &'a Timeline<'h>,
    backgrounds: &'a [f64],
    column: &'a Column,
    bit: u32,
    test: TestOrdinal,
    presence: Presence,
    /// None for a test without a failed attempt.
    case: Option<Case<'a, 'h>>,
}

impl Examined<'_, '_> {
    /// The test's newest runs that count in no rate because they are mass failures on every variant.
    fn dropped(&self) -> Vec<DroppedRun> {
        let dropped = self.presence.seen - self.presence.considered;
        let runs = self.timeline.runs.iter().rev().filter_map(|run| {
            let here = run.members.iter().filter_map(|(_, position)| *position);
            let betas = here
                .filter(|position| self.column.contains(self.bit, *position))
                .filter_map(|position| self.backgrounds.get(position).copied());
            // The least: where one variant is no mass failure, the run counts.
            let beta = betas.reduce(f64::min).filter(|beta| *beta >= MASS_FAILURE)?;
            Some(DroppedRun {
                run_id: run.facts.id.to_string(),
                beta,
            })
        });
        runs.take(at(dropped).min(NAMED_RUNS)).collect()
    }
}

/// Examines one test after the other, reusing its working memory.
struct Examiner<'t, 'h> {
    config: Config,
    timeline: &'t Timeline<'h>,
    backgrounds: &'t [f64],
    failures: &'t Failures,
    filter: Filter<'t, 'h>,
    tallier: Tallier,
    /// How many tests failed in a run, once counted.
    red: Vec<Option<u32>>,
    marks: Vec<Mark>,
    outcomes: Vec<RunOutcome>,
}

impl<'h> Examiner<'_, 'h> {
    /// Everything counted of the test at `bit` of the column; none where it had no failed attempt.
    fn case(&mut self, column: &Column, test: TestOrdinal, bit: u32) -> Option<Case<'_, 'h>> {
        let failures = self.failures.of(test);
        if failures.is_empty() {
            return None;
        }
        fill(&mut self.marks, &column.seen, bit, failures);
        let sheet = Sheet {
            timeline: self.timeline,
            backgrounds: self.backgrounds,
            marks: &self.marks,
        };
        by_run(sheet, &mut self.outcomes);
        let tally = self.tallier.tally(sheet);
        let belief = self.filter.run(&self.marks);
        let ends = Ends::read(&tally, &self.filter, &belief);
        Some(Case {
            test,
            sheet,
            outcomes: &self.outcomes,
            presence: column.presence(bit),
            runs: figures(self.timeline, &self.outcomes, &mut self.red),
            tally,
            belief,
            ends,
            thresholds: self.config.thresholds,
        })
    }
}
