//! Burn-in: how often new tests fail by themselves, found by running them again within a budget.
//!
//! The rate of a test has a Beta distribution before its first run. Repetitions on one machine are correlated, so they
//! are a chain of two states: a failure follows a failure more often than a pass. Some flakes never occur alone, and
//! repetitions alone say nothing about those.

use super::reruns::{ProcessOf, RerunKind};

/// The prior of the rate: Beta(a, b). A third of the tests fail in more than 5 % of runs. Chosen, so that about 18
/// passes decide.
const PRIOR: (f64, f64) = (0.2, 2.0);
/// The rate of a test that is good enough.
pub const GOOD_BELOW: f64 = 0.05;
/// The probability with which a rate is below or above it.
const SURE: f64 = 0.9;
/// The correlation of neighbouring repetitions: (.42 - .05) / (1 - .05), measured in docs/reruns.md.
pub(super) const CORRELATION: f64 = 0.39;
/// The probability that a flake also occurs alone, by failures, measured in docs/reruns.md.
const OCCURS_ALONE: f64 = 0.26;
/// The largest number of repetitions of one test.
const MOST_REPETITIONS: u32 = 100;
/// The number of rates at which the distribution is computed.
const RATES: u32 = 400;
/// The probability that is outside of an interval, on each side.
const OUTSIDE: f64 = 0.025;

/// The repetitions of one kind, in the order in which they ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Repetitions {
    /// Pairs of neighbours: passed and passed, passed and failed, failed and passed, failed and failed.
    pairs: [u32; 4],
    /// The first one and the last one, if any: whether they failed.
    ends: Option<(bool, bool)>,
}

impl Repetitions {
    const fn add(&mut self, failed: bool) {
        match self.ends {
            None => self.ends = Some((failed, failed)),
            Some((first, last)) => {
                let [passes, breaks, recovers, fails] = &mut self.pairs;
                *match (last, failed) {
                    (false, false) => passes,
                    (false, true) => breaks,
                    (true, false) => recovers,
                    (true, true) => fails,
                } += 1;
                self.ends = Some((first, failed));
            }
        }
    }

    /// The logarithm of their probability at a rate.
    fn log(&self, rate: f64) -> f64 {
        let Some((first, _)) = self.ends else { return 0.0 };
        let first = if first { rate } else { 1.0 - rate };
        let after_failure = fails_after(rate, true);
        let after_pass = fails_after(rate, false);
        let probabilities = [1.0 - after_pass, after_pass, 1.0 - after_failure, after_failure];
        let pairs = self.pairs.iter().zip(probabilities);
        first.ln()
            + pairs
                .map(|(count, probability)| f64::from(*count) * probability.ln())
                .sum::<f64>()
    }

    /// The probability that the next one fails at a rate.
    fn fails_next(&self, rate: f64) -> f64 {
        match self.ends {
            None => rate,
            Some((_, last)) => fails_after(rate, last),
        }
    }
}

/// The probability of a failure after another result on the same machine.
const fn fails_after(rate: f64, failed: bool) -> f64 {
    match failed {
        true => rate + CORRELATION * (1.0 - rate),
        false => rate * (1.0 - CORRELATION),
    }
}

/// A test whose rate is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// The seconds of one repetition alone, without the start of the runner; none if it cannot run alone.
    pub alone_s: Option<f64>,
    /// The number of its file: tests of one file run together with it.
    pub file: usize,
    /// The seconds of a repetition with its file; none if it cannot run so.
    pub with_file_s: Option<f64>,
    process: ProcessOf,
    alone: Repetitions,
    with_file: Repetitions,
    passed: u32,
    failed: u32,
}

/// What is known about a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateLevel {
    /// It is below 5 % with a probability of .9.
    Good,
    /// It is at least 5 % with that probability.
    High,
    /// Neither.
    Open,
}

impl Candidate {
    /// A test after its first run, in which it passed or failed with all other tests.
    pub fn new(
        process: ProcessOf,
        file: usize,
        (alone_s, with_file_s): (Option<f64>, Option<f64>),
        failed: bool,
    ) -> Self {
        let mut candidate = Self {
            alone_s,
            file,
            with_file_s,
            process,
            alone: Repetitions::default(),
            with_file: Repetitions::default(),
            passed: 0,
            failed: 0,
        };
        candidate.add(RerunKind::WithFile, failed);
        candidate
    }

    /// Adds the result of a repetition.
    pub const fn add(&mut self, kind: RerunKind, failed: bool) {
        match kind {
            RerunKind::Alone => self.alone.add(failed),
            RerunKind::WithFile => self.with_file.add(failed),
        }
        match failed {
            true => self.failed = self.failed.saturating_add(1),
            false => self.passed = self.passed.saturating_add(1),
        }
    }

    /// Excludes a kind of repetition, because the runner gave no result.
    pub const fn exclude(&mut self, kind: RerunKind) {
        match kind {
            RerunKind::Alone => self.alone_s = None,
            RerunKind::WithFile => self.with_file_s = None,
        }
    }

    /// How often it ran, with the first run.
    pub const fn runs(&self) -> u32 {
        self.passed.saturating_add(self.failed)
    }

    /// How often it failed.
    pub const fn failures(&self) -> u32 {
        self.failed
    }

    /// Whether it failed and passed.
    pub const fn did_both(&self) -> bool {
        self.passed > 0 && self.failed > 0
    }

    /// What is known about its rate.
    pub fn level(&self) -> RateLevel {
        Rates::of(self).level()
    }

    /// The rate's interval with a probability of .95.
    pub fn interval(&self) -> (f64, f64) {
        let rates = Rates::of(self);
        (rates.quantile(OUTSIDE), rates.quantile(1.0 - OUTSIDE))
    }

    const fn seconds(&self, kind: RerunKind) -> Option<f64> {
        match kind {
            RerunKind::Alone => self.alone_s,
            RerunKind::WithFile => self.with_file_s,
        }
    }
}

/// The distribution of a rate, by equal steps of its square root.
struct Rates {
    /// Each rate with its probability, if its flakes also occur alone, and if they do not.
    rates: Vec<(f64, f64, f64)>,
}

impl Rates {
    fn of(candidate: &Candidate) -> Self {
        let occurs_alone = match candidate.process {
            // It never shares a process.
            ProcessOf::Test => 1.0,
            ProcessOf::File | ProcessOf::Suite => OCCURS_ALONE,
        };
        let (a, b) = PRIOR;
        let step = |number: u32| (f64::from(number) + 0.5) / f64::from(RATES);
        let mut rates: Vec<(f64, f64, f64)> = (0..RATES)
            .map(|number| {
                let rate = step(number).powi(2);
                // The last factor of the prior is the width of a step.
                let prior = (a - 1.0) * rate.ln() + (b - 1.0) * (1.0 - rate).ln() + step(number).ln();
                let with_file = prior + candidate.with_file.log(rate);
                let alone = occurs_alone.ln() + with_file + candidate.alone.log(rate);
                let only_beside =
                    (1.0 - occurs_alone).ln() + with_file + candidate.alone.log(f64::MIN_POSITIVE);
                (rate, alone, only_beside)
            })
            .collect();
        let largest = rates
            .iter()
            .map(|(_, alone, beside)| alone.max(*beside))
            .fold(f64::NEG_INFINITY, f64::max);
        let mut all = 0.0;
        for (_, alone, beside) in &mut rates {
            *alone = (*alone - largest).exp();
            *beside = (*beside - largest).exp();
            all += *alone + *beside;
        }
        for (_, alone, beside) in &mut rates {
            *alone /= all;
            *beside /= all;
        }
        Self { rates }
    }

    fn level(&self) -> RateLevel {
        match self.below(GOOD_BELOW) {
            below if below >= SURE => RateLevel::Good,
            below if below <= 1.0 - SURE => RateLevel::High,
            _ => RateLevel::Open,
        }
    }

    fn below(&self, bound: f64) -> f64 {
        let below = self.rates.iter().take_while(|(rate, ..)| *rate < bound);
        below.map(|(_, alone, beside)| alone + beside).sum()
    }

    fn quantile(&self, share: f64) -> f64 {
        let mut sum = 0.0;
        let reached = self.rates.iter().find(|(_, alone, beside)| {
            sum += alone + beside;
            sum >= share
        });
        reached.map_or(1.0, |(rate, ..)| *rate)
    }

    /// The probability that the next repetition shows a rate that is too high.
    fn shows_next(&self, candidate: &Candidate, kind: RerunKind) -> f64 {
        let high = self.rates.iter().filter(|(rate, ..)| *rate >= GOOD_BELOW);
        let shown = high.map(|(rate, alone, beside)| match kind {
            RerunKind::Alone => alone * candidate.alone.fails_next(*rate),
            RerunKind::WithFile => (alone + beside) * candidate.with_file.fails_next(*rate),
        });
        shown.sum()
    }
}

/// A start of the runner.
#[derive(Debug, Clone, PartialEq)]
pub struct BurnInRound {
    /// With which tests.
    pub kind: RerunKind,
    /// The indexes of the candidates that run.
    pub candidates: Vec<usize>,
    /// The seconds that it takes.
    pub seconds: f64,
}

/// The next start of the runner within the seconds that are left; none if every rate is known or nothing fits.
///
/// Of both kinds, the one that finds most per second runs. Where not all open candidates fit, those run that find most
/// per second.
pub fn next(candidates: &[Candidate], left_s: f64, startup_s: f64) -> Option<BurnInRound> {
    let open: Vec<(usize, &Candidate, Rates)> = candidates
        .iter()
        .enumerate()
        .filter(|(_, candidate)| candidate.runs() < MOST_REPETITIONS)
        .map(|(index, candidate)| (index, candidate, Rates::of(candidate)))
        .filter(|(.., rates)| rates.level() == RateLevel::Open)
        .collect();
    let rounds = [RerunKind::Alone, RerunKind::WithFile].map(|kind| round(&open, kind, left_s, startup_s));
    let best = rounds
        .into_iter()
        .flatten()
        .max_by(|left, right| left.0.total_cmp(&right.0));
    best.map(|(_, round)| round)
}

/// A round of one kind, with how much it finds per second.
fn round(
    open: &[(usize, &Candidate, Rates)],
    kind: RerunKind,
    left_s: f64,
    startup_s: f64,
) -> Option<(f64, BurnInRound)> {
    let mut order: Vec<(f64, f64, usize, usize)> = open
        .iter()
        .filter_map(|(index, candidate, rates)| {
            Some((
                rates.shows_next(candidate, kind),
                candidate.seconds(kind)?,
                candidate.file,
                *index,
            ))
        })
        .collect();
    let per_second = |(shows, seconds, ..): &(f64, f64, usize, usize)| shows / seconds.max(0.001);
    order.sort_by(|left, right| per_second(right).total_cmp(&per_second(left)));
    let (mut seconds, mut shows, mut files, mut chosen) = (startup_s, 0.0, Vec::new(), Vec::new());
    for (shows_next, own, file, index) in order {
        let is_running = kind == RerunKind::WithFile && files.contains(&file);
        let more = if is_running { 0.0 } else { own };
        if seconds + more > left_s {
            continue;
        }
        seconds += more;
        shows += shows_next;
        files.push(file);
        chosen.push(index);
    }
    chosen.sort_unstable();
    let found = shows / seconds.max(f64::MIN_POSITIVE);
    (!chosen.is_empty()).then_some((
        found,
        BurnInRound {
            kind,
            candidates: chosen,
            seconds,
        },
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn candidate(process: ProcessOf) -> Candidate {
        Candidate::new(process, 0, (Some(0.1), Some(1.0)), false)
    }

    fn after(process: ProcessOf, kind: RerunKind, results: &[bool]) -> Candidate {
        let mut candidate = candidate(process);
        for failed in results {
            candidate.add(kind, *failed);
        }
        candidate
    }

    #[test]
    fn passes_with_its_file_decide_and_passes_alone_do_not() {
        let passes = |process, kind, count| after(process, kind, &vec![false; count]).level();
        assert_eq!(passes(ProcessOf::File, RerunKind::WithFile, 10), RateLevel::Open);
        assert_eq!(passes(ProcessOf::File, RerunKind::WithFile, 40), RateLevel::Good);
        assert_eq!(passes(ProcessOf::File, RerunKind::Alone, 90), RateLevel::Open);
        assert_eq!(passes(ProcessOf::Test, RerunKind::Alone, 45), RateLevel::Good);
    }

    #[test]
    fn failures_in_a_row_say_less_than_failures_apart() {
        let results = |failed: &[usize]| {
            let results: Vec<bool> = (0..22).map(|number| failed.contains(&number)).collect();
            after(ProcessOf::File, RerunKind::WithFile, &results)
        };
        let (row, apart) = (results(&[9, 10, 11]), results(&[4, 10, 16]));
        assert!(
            row.interval().0 < apart.interval().0,
            "{:?} {:?}",
            row.interval(),
            apart.interval()
        );
        assert_eq!(apart.level(), RateLevel::High);
        assert!(apart.did_both() && !candidate(ProcessOf::File).did_both());
        assert_eq!((apart.runs(), apart.failures()), (23, 3));
        let (low, high) = apart.interval();
        assert!(
            (0.03..0.08).contains(&low) && (0.25..0.45).contains(&high),
            "{low} {high}"
        );
    }

    #[test]
    fn the_kind_that_finds_more_per_second_runs() {
        let next_of = |alone_s, with_file_s| {
            let candidate = Candidate::new(ProcessOf::File, 0, (alone_s, with_file_s), false);
            next(&[candidate], 60.0, 1.0).map(|round| round.kind)
        };
        assert_eq!(next_of(Some(1.0), Some(2.0)), Some(RerunKind::WithFile));
        assert_eq!(next_of(Some(0.1), Some(30.0)), Some(RerunKind::Alone));
        assert_eq!(next_of(None, Some(30.0)), Some(RerunKind::WithFile));
        assert_eq!(next_of(Some(70.0), None), None);
        assert_eq!(next_of(None, None), None);
    }

    #[test]
    fn tests_of_one_file_share_its_seconds() {
        let of_file = |file| Candidate::new(ProcessOf::File, file, (None, Some(4.0)), false);
        let round = next(&[of_file(0), of_file(0), of_file(1)], 60.0, 1.0).unwrap();
        assert_eq!((round.candidates, round.seconds), (vec![0, 1, 2], 9.0));
        let round = next(&[of_file(0), of_file(0), of_file(1)], 5.5, 1.0).unwrap();
        assert_eq!((round.candidates, round.seconds), (vec![0, 1], 5.0));
    }

    #[test]
    fn a_known_rate_does_not_run_again() {
        let good = after(ProcessOf::File, RerunKind::WithFile, &[false; 60]);
        let high = after(
            ProcessOf::File,
            RerunKind::WithFile,
            &[true, false, true, false, true, false],
        );
        assert_eq!((good.level(), high.level()), (RateLevel::Good, RateLevel::High));
        assert_eq!(next(&[good, high], 60.0, 1.0), None);
        let mut excluded = candidate(ProcessOf::File);
        excluded.exclude(RerunKind::Alone);
        excluded.exclude(RerunKind::WithFile);
        assert_eq!(next(&[excluded], 60.0, 1.0), None);
    }

    proptest! {
        #[test]
        fn a_round_keeps_its_budget_and_an_interval_is_of_rates(
            results in prop::collection::vec((any::<bool>(), prop::bool::weighted(0.2)), 0..30),
            left in 0.0..20.0_f64,
        ) {
            let mut candidate = candidate(ProcessOf::Suite);
            for (alone, failed) in results {
                candidate.add(if alone { RerunKind::Alone } else { RerunKind::WithFile }, failed);
            }
            let (low, high) = candidate.interval();
            prop_assert!(0.0 < low && low < high && high < 1.0, "{low} {high}");
            if let Some(round) = next(&[candidate], left, 1.0) {
                prop_assert!(round.seconds <= left + 1e-9);
            }
        }
    }
}
