//! Simple rules for comparison with the engine.

use std::collections::{BTreeMap, BTreeSet};

use crate::results::TestResult;

/// All rivals call a test with a failing streak of this length broken.
const BROKEN_STREAK: usize = 3;
/// A flip rate above this is flaky.
const FLIP_RATE: f64 = 0.1;

/// A rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rival {
    /// The flip rate exceeds a tenth.
    FlipRate,
    /// The test passed and failed on one revision, or passed on retry, at least once.
    SameRevision,
    /// [`Self::SameRevision`] without the runs that the engine calls mass failures.
    SameRevisionOutsideMassFailures,
}

impl Rival {
    /// Every rule.
    pub(crate) const ALL: [Self; 3] = [
        Self::FlipRate,
        Self::SameRevision,
        Self::SameRevisionOutsideMassFailures,
    ];

    /// Its name in a table.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::FlipRate => "flip rate > 0.1",
            Self::SameRevision => "same commit >= 1",
            Self::SameRevisionOutsideMassFailures => "same commit >= 1 outside outages",
        }
    }

    /// Whether the rule calls a test flaky. `mass_failures` are the runs that the engine excluded.
    pub(crate) fn is_flaky(self, results: &[TestResult], mass_failures: &BTreeSet<usize>) -> bool {
        match self {
            Self::FlipRate => flip_rate(results) > FLIP_RATE,
            Self::SameRevision => contradictions(results.iter()) > 0,
            Self::SameRevisionOutsideMassFailures => {
                contradictions(
                    results
                        .iter()
                        .filter(|result| !mass_failures.contains(&result.run)),
                ) > 0
            }
        }
    }
}

/// Whether a stable chain ends in a failing streak.
pub(crate) fn is_broken(results: &[TestResult]) -> bool {
    let mut chains: BTreeMap<_, Vec<bool>> = BTreeMap::new();
    for result in results.iter().filter(|result| result.stable) {
        chains.entry(&result.chain).or_default().push(result.failed);
    }
    chains
        .values()
        .any(|failed| failed.iter().rev().take_while(|failed| **failed).count() >= BROKEN_STREAK)
}

/// Changes between neighbours of a chain, as a share of the neighbours.
pub(crate) fn flip_rate(results: &[TestResult]) -> f64 {
    let mut last = BTreeMap::new();
    let (mut flips, mut pairs) = (0_u32, 0_u32);
    for result in results {
        let bad = result.failed || result.recovered;
        if let Some(before) = last.insert(&result.chain, bad) {
            pairs += 1;
            flips += u32::from(before != bad);
        }
    }
    if pairs == 0 {
        0.0
    } else {
        f64::from(flips) / f64::from(pairs)
    }
}

/// Recovered runs, and revisions of a chain with both outcomes.
pub(crate) fn contradictions<'r>(results: impl Iterator<Item = &'r TestResult>) -> u32 {
    let mut recovered = 0;
    let mut outcomes: BTreeMap<_, (bool, bool)> = BTreeMap::new();
    for result in results {
        recovered += u32::from(result.recovered);
        let Some(revision) = &result.revision else {
            continue;
        };
        let both = outcomes.entry((&result.chain, revision)).or_default();
        both.0 |= result.failed;
        both.1 |= !result.failed;
    }
    recovered
        + outcomes
            .values()
            .map(|(failed, passed)| u32::from(*failed && *passed))
            .sum::<u32>()
}
