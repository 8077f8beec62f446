//! Failed tests that have one cause, and what their reruns say about it.
//!
//! The failures of a mass failure have one cause: the change, or something outside of it. So each rerun of one of these
//! tests is evidence about all of them. Each other failed test has a cause of its own.

use std::{cmp::Reverse, collections::BTreeMap};

use super::suspect::{RerunKind, RerunResults, Shows, Suspect, if_flake, if_lasting};
use crate::numbers;

/// The largest number of reruns of one test.
pub(super) const MOST_REPETITIONS: u32 = 8;
/// The same of a test of a mass failure, of which several run.
const MOST_OF_MASS_FAILURE: u32 = 3;
/// The most tests of a mass failure that run again in its stead.
pub(super) const REPRESENTATIVES: usize = 3;
/// Tests with at least this share of the largest `mine` say almost the same, so that of them the fastest run.
const SAYS_THE_SAME: f64 = 0.8;
/// Tests with less than this share say too little.
const SAYS_LITTLE: f64 = 0.5;
/// P(this change broke a test of a mass failure that had another cause), for each that did not run again. Chosen.
const BROKEN_BESIDES: f64 = 0.0005;

/// Failed tests with one cause.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CommonCause {
    /// The tests, as indexes of the suspects.
    pub(super) tests: Vec<usize>,
    /// P(the change is the cause) before reruns: the largest `mine` of its tests.
    mine: f64,
    /// P(what fails the tests lasts), if the change is not the cause.
    lasting: f64,
    /// How the breakage shows, if the change is the cause.
    shows: [(Shows, f64); 3],
}

/// What the reruns of a test say about its cause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Evidence {
    /// P(the change broke this test), if the change is the cause.
    share: f64,
    pub(super) results: RerunResults,
}

/// The joint probabilities of results, with the change as the cause and with another one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weights {
    broken: f64,
    good: f64,
}

impl Weights {
    pub(super) fn all(self) -> f64 {
        self.broken + self.good
    }

    pub(super) fn mine(self) -> f64 {
        self.broken / self.all().max(f64::MIN_POSITIVE)
    }
}

/// The causes of failed tests: one of the mass failure, and one for each other test.
pub(super) fn common_causes(suspects: &[Suspect]) -> Vec<CommonCause> {
    let of = |in_mass_failure: bool| {
        let indexes = suspects.iter().enumerate();
        let indexes = indexes.filter(move |(_, suspect)| suspect.in_mass_failure == in_mass_failure);
        indexes.map(|(index, _)| index)
    };
    let single = of(false).filter_map(|index| CommonCause::of(vec![index], suspects));
    let mass_failure = CommonCause::of(of(true).collect(), suspects);
    single.chain(mass_failure).collect()
}

/// P(this change broke it) of each failed test after the reruns (Bayes). Of the engine's probability and that of the
/// reruns the larger one counts.
pub fn mines_now(suspects: &[Suspect]) -> Vec<f64> {
    let mut mines = vec![0.0; suspects.len()];
    for cause in common_causes(suspects) {
        for (index, mine) in cause.mines_now(suspects) {
            if let Some(of_test) = mines.get_mut(index) {
                *of_test = mine;
            }
        }
    }
    mines
}

impl CommonCause {
    /// The cause of these tests; none without a test.
    fn of(tests: Vec<usize>, suspects: &[Suspect]) -> Option<Self> {
        let of_tests = || tests.iter().filter_map(|index| suspects.get(*index));
        let process = of_tests().next()?.process;
        let not_mine: f64 = of_tests().map(|suspect| 1.0 - mine(suspect)).sum();
        let lasting: f64 = of_tests()
            .map(|suspect| suspect.lasting.clamp(0.0, 1.0 - mine(suspect)))
            .sum();
        Some(Self {
            mine: of_tests().map(mine).fold(0.0, f64::max),
            lasting: lasting / not_mine.max(f64::MIN_POSITIVE),
            shows: Shows::shares(process, tests.len() > 1),
            tests,
        })
    }

    pub(super) const fn is_mass_failure(&self) -> bool {
        self.tests.len() > 1
    }

    /// The largest number of reruns of one of its tests.
    pub(super) const fn most_repetitions(&self) -> u32 {
        match self.is_mass_failure() {
            true => MOST_OF_MASS_FAILURE,
            false => MOST_REPETITIONS,
        }
    }

    /// The evidence of a test.
    pub(super) fn evidence(&self, suspect: &Suspect) -> Evidence {
        Evidence {
            share: match self.mine > 0.0 {
                true => mine(suspect) / self.mine,
                false => 1.0,
            },
            results: suspect.results,
        }
    }

    /// The weights after these results. Tests that did not run again change nothing.
    pub(super) fn weights(&self, evidence: &[Evidence]) -> Weights {
        let others = |results: &RerunResults| {
            self.lasting * if_lasting(results) + (1.0 - self.lasting) * if_flake(results)
        };
        let broken = self.shows.map(|(shows, of_breakages)| {
            let tests = evidence.iter().map(|Evidence { share, results }| {
                share * shows.probability(results) + (1.0 - share) * others(results)
            });
            of_breakages * tests.product::<f64>()
        });
        // What lasts fails several tests as it fails one test several times. Flakes are independent.
        let together = evidence
            .iter()
            .fold(RerunResults::default(), |all, test| all.and(&test.results));
        let flakes: f64 = evidence.iter().map(|test| if_flake(&test.results)).product();
        Weights {
            broken: self.mine * broken.iter().sum::<f64>(),
            good: (1.0 - self.mine) * (self.lasting * if_lasting(&together) + (1.0 - self.lasting) * flakes),
        }
    }

    /// P(this change is the cause, or broke a test besides) after these results.
    pub(super) fn mine(&self, evidence: &[Evidence]) -> f64 {
        let others = match evidence.is_empty() {
            true => 0,
            false => self.tests.len().saturating_sub(evidence.len()),
        };
        let none_besides = (1.0 - BROKEN_BESIDES).powf(f64::from(numbers::count(others)));
        1.0 - (1.0 - self.weights(evidence).mine()) * none_besides
    }

    /// The evidence of the tests that have run again and are none of these.
    pub(super) fn evidence_without(&self, suspects: &[Suspect], without: &[usize]) -> Vec<Evidence> {
        let others = self.tests.iter().filter(|index| !without.contains(index));
        let others = others.filter_map(|index| suspects.get(*index));
        others
            .filter(|suspect| suspect.results.all() > 0)
            .map(|suspect| self.evidence(suspect))
            .collect()
    }

    /// P(this change broke it) of each of its tests after the reruns.
    fn mines_now(&self, suspects: &[Suspect]) -> Vec<(usize, f64)> {
        let evidence = self.evidence_without(suspects, &[]);
        let now = self.mine(&evidence);
        let tests = self.tests.iter();
        let tests = tests.filter_map(|index| Some((*index, suspects.get(*index)?)));
        tests
            .map(|(index, suspect)| {
                let by_reruns = self.evidence(suspect).share * now;
                (
                    index,
                    suspect
                        .by_engine
                        .map_or(by_reruns, |by_engine| by_engine.max(by_reruns)),
                )
            })
            .collect()
    }

    /// P(this change is the cause) after the reruns.
    pub(super) fn mine_now(&self, suspects: &[Suspect]) -> f64 {
        let mines = self.mines_now(suspects);
        mines.into_iter().map(|(_, mine)| mine).fold(0.0, f64::max)
    }

    /// The tests that run again in this way for all that have this cause, at most `most`: one for each of the commonest
    /// errors, then others. Of one error, those that say most come first, and of those that say almost the same the fastest.
    pub(super) fn representatives(&self, suspects: &[Suspect], kind: RerunKind, most: usize) -> Vec<usize> {
        let mut by_error: BTreeMap<Reverse<u32>, Vec<(usize, f64, f64)>> = BTreeMap::new();
        for index in &self.tests {
            let Some(suspect) = suspects.get(*index) else {
                continue;
            };
            let share = self.evidence(suspect).share;
            if let Some(seconds) = suspect.seconds(kind)
                && share >= SAYS_LITTLE
            {
                let of_error = by_error.entry(Reverse(suspect.same_error)).or_default();
                of_error.push((*index, share.min(SAYS_THE_SAME), seconds));
            }
        }
        let mut ranked: Vec<(usize, usize)> = Vec::new();
        for of_error in by_error.values_mut() {
            of_error.sort_by(|(_, one, one_s), (_, other, other_s)| {
                other.total_cmp(one).then(one_s.total_cmp(other_s))
            });
            ranked.extend(of_error.iter().map(|(index, ..)| *index).enumerate());
        }
        // The first of each error, then the second of each.
        ranked.sort_by_key(|(rank, _)| *rank);
        ranked.into_iter().map(|(_, index)| index).take(most).collect()
    }
}

fn mine(suspect: &Suspect) -> f64 {
    suspect.mine.clamp(0.0, 1.0)
}
