//! The results of one test, and the links of each to earlier ones: of its chain, of other variants, of merged branches.
#![expect(
    clippy::indexing_slicing,
    reason = "every index was made by the sequence that sized the vectors"
)]

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use assay_domain::timestamp::Timestamp;

use crate::{
    config::MASS_FAILURE,
    model::{MERGED_WITHIN_MS, Outcome, Step},
    numbers::count,
};

/// The pull requests that a chain tests, ascending.
pub(crate) type PullRequests = Arc<[i64]>;

/// The results of one test, in the engine's order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sequence {
    pub(crate) chains: Vec<ChainFacts>,
    /// The pull requests that each chain tests.
    pub(crate) pull_requests: Vec<PullRequests>,
    pub(crate) results: Vec<ResultFacts>,
    /// Whether the causes of the stable branch's failures are asked for. Then a stable revision may contain what a
    /// merged branch broke.
    pub(crate) asks_for_stable: bool,
    /// How many times as often as a breakage an outage begins on the stable branch: for a test that never failed there
    /// before, and for others.
    pub(crate) outage_ratios: (f64, f64),
}

impl Sequence {
    /// The number of runs of the stable branch with a result, and of other branches with one.
    pub(crate) fn runs_and_branches(&self) -> usize {
        let results = self.results.iter().map(|result| {
            let chain = self.chains[result.chain];
            (chain.branch, chain.stable.then_some(result.run))
        });
        results.collect::<BTreeSet<_>>().len()
    }
}

/// A chain of the sequence.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChainFacts {
    /// Its branch, by number.
    pub(crate) branch: usize,
    pub(crate) stable: bool,
    /// Whether it is a merge queue's.
    pub(crate) queue: bool,
    /// Its variant, by number.
    pub(crate) variant: usize,
    /// Whether the newest run is more than a day younger than its last one.
    pub(crate) is_over: bool,
    /// The stable chain of its variant, if the test ran on it.
    pub(crate) base: Option<usize>,
}

/// A result of the sequence.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResultFacts {
    pub(crate) chain: usize,
    /// Its run, which may have several variants.
    pub(crate) run: usize,
    pub(crate) revision: usize,
    pub(crate) outcome: Outcome,
    /// The text of a failure.
    pub(crate) text: Option<u32>,
    /// The background of its run.
    pub(crate) beta: f64,
    /// The odds that the change caused a crowd on a new revision.
    pub(crate) chi: f64,
    /// The start of its run.
    pub(crate) started_at: Timestamp,
    /// The probability that its revision breaks the test, and mends it, if its chain is a stable one.
    pub(crate) stable_rates: (f64, f64),
    /// Whether the test failed on the stable branch at an earlier revision.
    pub(crate) failed_before: bool,
    /// The rate at which the calendar fails the test at this time; 0 if it does not.
    pub(crate) calendar: f64,
    /// The number of other branches that met the same failure before.
    pub(crate) witnesses: u32,
    /// The revision of the stable branch at which its code left it, if that is known.
    pub(crate) base: Option<usize>,
}

/// The links of a result to earlier results. They are the same for every flake rate.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) step: Step,
    /// The previous result on its branch, if that is another variant's at this revision.
    pub(crate) sibling: Option<usize>,
    /// Whether it is the first result of a stable chain.
    pub(crate) is_first_on_stable: bool,
    /// The sibling, if one crowd may have failed the test on both: they belong to one run, the sibling failed with others,
    /// and the result failed or has a background.
    pub(crate) in_same_crowd: Option<usize>,
    /// Whether it is the last result of a branch that is over, and failed.
    pub(crate) is_left_broken: bool,
    /// The time since the previous result of its chain; 0 if there is none.
    pub(crate) apart_ms: i64,
    /// Whether the previous result of its chain has another base.
    pub(crate) is_base_moved: bool,
    /// For a failure that begins on the stable branch: the failing streak of a branch that its revision may have merged.
    pub(crate) merged_streak: Option<u32>,
    /// For the first result of a branch: the chains that tested its pull requests last on this variant, each with the share
    /// of its own pull requests that are among them.
    pub(crate) same_change: Vec<(usize, f64)>,
}

/// The failures in a row at the end of a chain. Results of mass failures do not count.
#[derive(Debug, Clone, Copy)]
struct FailingEnd {
    streak: u32,
    at: Timestamp,
}

/// The failing ends of chains off the stable branch, by chain.
struct FailingEnds(Vec<Option<FailingEnd>>);

impl FailingEnds {
    fn add(&mut self, result: &ResultFacts) {
        if result.beta >= MASS_FAILURE {
            return;
        }
        let end = &mut self.0[result.chain];
        let streak = end.map_or(0, |end| end.streak);
        *end = result.outcome.failed().then_some(FailingEnd {
            streak: streak + 1,
            at: result.started_at,
        });
    }

    /// The longest streak at the end of a branch of the same variant that failed at most a day before a stable result.
    fn longest(&self, sequence: &Sequence, stable: &ResultFacts) -> Option<u32> {
        let of_variant = sequence.chains.iter().zip(&self.0);
        let ends = of_variant.filter_map(|(chain, end)| end.filter(|_| chain.base == Some(stable.chain)));
        ends.filter(|end| (0..=MERGED_WITHIN_MS).contains(&stable.started_at.since_ms(end.at)))
            .map(|end| end.streak)
            .max()
    }
}

/// The links of each result of a sequence.
pub(crate) fn links(sequence: &Sequence) -> Vec<Link> {
    let mut failing_ends = FailingEnds(vec![None; sequence.chains.len()]);
    let mut last_of_chain: Vec<Option<usize>> = vec![None; sequence.chains.len()];
    let branches = sequence.chains.iter().map(|chain| chain.branch + 1).max();
    let mut last_of_branch: Vec<Option<usize>> = vec![None; branches.unwrap_or(0)];
    // By variant and pull request.
    let mut last_of_change: HashMap<(usize, i64), usize> = HashMap::new();
    let mut links = Vec::with_capacity(sequence.results.len());
    for (index, result) in sequence.results.iter().enumerate() {
        let chain = sequence.chains[result.chain];
        let before = last_of_chain[result.chain].replace(index);
        let step = Step::between(
            before.map(|before| sequence.results[before].revision),
            result.revision,
        );
        let sibling = last_of_branch[chain.branch].replace(index).filter(|sibling| {
            let sibling = &sequence.results[*sibling];
            sibling.revision == result.revision && sibling.chain != result.chain
        });
        let in_same_crowd = sibling.filter(|sibling| {
            let sibling = &sequence.results[*sibling];
            step.is_new_code()
                && sibling.run == result.run
                && sibling.outcome.had_failure()
                && sibling.beta > 0.0
                // The run had no outage on a variant where the test passed and no crowd failed.
                && (result.outcome.had_failure() || result.beta > 0.0)
        });
        let apart_ms = before.map_or(0, |before| {
            result.started_at.since_ms(sequence.results[before].started_at)
        });
        let failed = |index: usize| sequence.results[index].outcome.failed();
        let may_be_merged = sequence.asks_for_stable
            && chain.stable
            && step == Step::NewRevision
            && result.outcome.failed()
            && result.beta < MASS_FAILURE
            && !before.is_some_and(failed)
            && !sibling.is_some_and(failed);
        let merged_streak = may_be_merged
            .then(|| failing_ends.longest(sequence, result))
            .flatten();
        if !chain.stable && !chain.queue {
            failing_ends.add(result);
        }
        let tested = &sequence.pull_requests[result.chain];
        let mut same_change: BTreeMap<usize, f64> = BTreeMap::new();
        for pull_request in &**tested {
            let last = last_of_change.insert((chain.variant, *pull_request), result.chain);
            if let Some(last) = last.filter(|_| step == Step::First) {
                *same_change.entry(last).or_default() +=
                    1.0 / f64::from(count(sequence.pull_requests[last].len()));
            }
        }
        links.push(Link {
            step,
            sibling,
            is_first_on_stable: step == Step::First && chain.stable,
            in_same_crowd,
            apart_ms,
            is_left_broken: false,
            is_base_moved: before.is_none_or(|before| sequence.results[before].base != result.base),
            merged_streak,
            same_change: same_change.into_iter().collect(),
        });
    }
    for last in last_of_chain.into_iter().flatten() {
        let result = &sequence.results[last];
        let chain = sequence.chains[result.chain];
        links[last].is_left_broken = !chain.stable && chain.is_over && result.outcome.failed();
    }
    links
}
