//! Other branches that met the same failure.
//!
//! A failure elsewhere suggests a change outside of the code only under three conditions: it has the same error, it is at
//! most two days old, and the test has not passed anywhere since, on the stable branch or on any other. Only results of the
//! failure's variant count, and a branch that inherited the failure of the stable one is no further sign.

use std::collections::BTreeSet;

use assay_domain::timestamp::{DAY_MS, Timestamp};

use crate::{config::MASS_FAILURE, model::Outcome};

/// How long a failure on another branch counts.
const NEAR_MS: i64 = 2 * DAY_MS;

/// A result, as far as it matters here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sighting {
    pub(crate) branch: usize,
    pub(crate) variant: usize,
    pub(crate) stable: bool,
    /// Whether its failure shows nothing about others: a merge queue tested it with changes that others may test, too, or
    /// the calendar explains it.
    pub(crate) is_no_sign: bool,
    pub(crate) outcome: Outcome,
    /// The text of a failure. One without a text agrees with any.
    pub(crate) text: Option<u32>,
    pub(crate) started_at: Timestamp,
    /// The background of its run.
    pub(crate) beta: f64,
}

/// The witnesses of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Witnesses {
    /// The other branches that met the same failure.
    pub(crate) branches: u32,
    /// Whether anything else speaks for the test's innocence: it failed before the test last passed, not in a row, or it
    /// fails on the stable branch.
    pub(crate) is_known: bool,
    /// The start of the last result before this one that is no failure.
    pub(crate) passed_at: Option<Timestamp>,
}

impl Sighting {
    fn agrees(&self, other: &Self) -> bool {
        self.text.zip(other.text).is_none_or(|(one, other)| one == other)
    }

    fn is_witness_of(&self, later: &Self) -> bool {
        self.branch != later.branch
            && !self.is_no_sign
            && later.started_at.since_ms(self.started_at) <= NEAR_MS
            && self.agrees(later)
    }
}

/// The witnesses of each result, in the order of the results.
pub(crate) fn find(sightings: &[Sighting]) -> Vec<Witnesses> {
    let mut witnesses = vec![Witnesses::default(); sightings.len()];
    let mut by_time: Vec<(&Sighting, &mut Witnesses)> = sightings.iter().zip(&mut witnesses).collect();
    by_time.sort_by_key(|(sighting, _)| (sighting.variant, sighting.started_at));
    for of_variant in by_time.chunk_by_mut(|(one, _), (other, _)| one.variant == other.variant) {
        find_on_variant(of_variant);
    }
    witnesses
}

/// The same for the results of one variant, by time.
fn find_on_variant(by_time: &mut [(&Sighting, &mut Witnesses)]) {
    // The failures since the last pass, and whether each began on its branch; those before it, and those of both that count.
    let mut since_pass: Vec<(&Sighting, bool)> = Vec::new();
    let (mut failures, mut counted_since_pass) = (0_u32, 0_u32);
    let mut passed_at = None;
    for (sighting, found) in by_time {
        let counts = sighting.beta < MASS_FAILURE && !sighting.outcome.is_row();
        found.passed_at = passed_at;
        if !sighting.outcome.failed() {
            since_pass.clear();
            counted_since_pass = 0;
            failures += u32::from(sighting.outcome.had_failure() && counts);
            passed_at = Some(sighting.started_at);
            continue;
        }
        let branches: BTreeSet<usize> = since_pass
            .iter()
            .filter(|(other, began)| *began && other.is_witness_of(sighting))
            .map(|(other, _)| other.branch)
            .collect();
        found.branches = crate::numbers::count(branches.len());
        found.is_known = failures > counted_since_pass || since_pass.iter().any(|(other, _)| other.stable);
        failures += u32::from(counts);
        counted_since_pass += u32::from(counts);
        let is_inherited = !sighting.stable
            && since_pass
                .iter()
                .any(|(other, _)| other.stable && other.agrees(sighting));
        since_pass.push((sighting, !is_inherited));
    }
}
