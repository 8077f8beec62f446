//! Other branches that met the same failure.
//!
//! A failure elsewhere suggests a change outside of the code only under three conditions: it has the same error, it is at
//! most two days old, and the test has not passed anywhere since, on the stable branch or on any other. Only results of the
//! failure's variant count, and a branch that inherited the failure of the stable one is no further sign.

use assay_domain::timestamp::{DAY_MS, Timestamp};

use crate::{config::MASS_FAILURE, model::Outcome};

/// How long a failure on another branch counts.
const NEAR_MS: i64 = 2 * DAY_MS;

/// A result, as far as it matters here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sighting<'a> {
    pub(crate) branch: usize,
    /// The pull requests that its branch tests.
    pub(crate) pull_requests: &'a [i64],
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
    /// The other branches that met the same failure: none, one, or more. Those of one pull request count once.
    pub(crate) branches: u32,
    /// Whether anything else speaks for the test's innocence: it failed before the test last passed, not in a row, or it
    /// fails on the stable branch.
    pub(crate) is_known: bool,
    /// The start of the last result before this one that is no failure.
    pub(crate) passed_at: Option<Timestamp>,
}

/// Whether one change is on two branches with these pull requests.
pub(crate) fn share_pull_request(one: &[i64], other: &[i64]) -> bool {
    one.iter().any(|pull_request| other.contains(pull_request))
}

impl Sighting<'_> {
    fn agrees(&self, other: &Self) -> bool {
        self.text.zip(other.text).is_none_or(|(one, other)| one == other)
    }

    fn is_same_change(&self, other: &Self) -> bool {
        self.branch == other.branch || share_pull_request(self.pull_requests, other.pull_requests)
    }

    fn is_witness_of(&self, later: &Self) -> bool {
        !self.is_same_change(later)
            && !self.is_no_sign
            && later.started_at.since_ms(self.started_at) <= NEAR_MS
            && self.agrees(later)
    }
}

/// The witnesses of each result, in the order of the results.
pub(crate) fn find(sightings: &[Sighting<'_>]) -> Vec<Witnesses> {
    let mut witnesses = vec![Witnesses::default(); sightings.len()];
    let mut by_time: Vec<(&Sighting<'_>, &mut Witnesses)> = sightings.iter().zip(&mut witnesses).collect();
    by_time.sort_by_key(|(sighting, _)| (sighting.variant, sighting.started_at));
    for of_variant in by_time.chunk_by_mut(|(one, _), (other, _)| one.variant == other.variant) {
        find_on_variant(of_variant);
    }
    witnesses
}

/// The same for the results of one variant, by time.
fn find_on_variant(by_time: &mut [(&Sighting<'_>, &mut Witnesses)]) {
    // The failures since the last pass, and whether each began on its branch; those before it, and those of both that count.
    let mut since_pass: Vec<(&Sighting<'_>, bool)> = Vec::new();
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
        let mut others = since_pass
            .iter()
            .filter(|(other, began)| *began && other.is_witness_of(sighting));
        if let Some((first, _)) = others.next() {
            found.branches = 1 + u32::from(others.any(|(other, _)| !other.is_same_change(first)));
        }
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
