//! The results of one test in the order of the causes: by revision, then time, so that variants lie side by side.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use assay_domain::{
    merge_queue::MergeQueue,
    revision::{is_commit, is_same_revision},
    test::TestOrdinal,
};

use super::{
    links::{ChainFacts, PullRequests, ResultFacts, Sequence},
    texts::ErrorTexts,
    witnesses::{self, Sighting, Witnesses},
};
use crate::{
    model::{Outcome, background::Background, calendar::Calendar},
    timeline::{Entry, Timeline},
};

/// The results of one test, with their positions in the timeline.
#[derive(Debug)]
pub(crate) struct TestResults {
    pub(crate) sequence: Sequence,
    /// By result.
    pub(crate) positions: Vec<usize>,
    /// By result.
    pub(crate) witnesses: Vec<Witnesses>,
    /// The period in which the test fails by the calendar.
    pub(crate) calendar: Option<Calendar>,
}

impl TestResults {
    /// Reads the results of a test. `order` has all positions in the order of [`order`].
    pub(crate) fn of(
        timeline: &Timeline<'_>,
        order: &[usize],
        background: &Background,
        (odds, bases, pull_requests): (&[f64], &[Option<usize>], &[PullRequests]),
        texts: &ErrorTexts,
        test: TestOrdinal,
    ) -> Self {
        let entries = order
            .iter()
            .filter_map(|position| Some((*position, timeline.entries.get(*position)?)));
        let of_test: Vec<(usize, &Entry<'_>)> = entries
            .filter(|(_, entry)| timeline.is_seen(entry.observed, test))
            .collect();
        let mut chains: BTreeMap<usize, usize> = BTreeMap::new();
        for (_, entry) in &of_test {
            let next = chains.len();
            chains.entry(entry.chain).or_insert(next);
        }
        let facts = chain_facts(timeline, &chains);
        let mut tested: Vec<PullRequests> = vec![PullRequests::default(); chains.len()];
        for (chain, place) in &chains {
            if let Some((tested, of_chain)) = tested.get_mut(*place).zip(pull_requests.get(*chain)) {
                *tested = Arc::clone(of_chain);
            }
        }
        let failures = of_test.iter().filter(|(_, entry)| entry.has_failure(test));
        let failures = failures.map(|(position, _)| *position);
        let calendar = Calendar::find(timeline, background, failures, test).filter(|found| found.decides);
        let rate_at = |entry: &Entry<'_>| {
            let found = calendar
                .as_ref()
                .filter(|found| found.contains(entry.started_at()));
            found.map_or(0.0, Calendar::rate)
        };
        let sightings: Vec<Sighting> = of_test
            .iter()
            .filter_map(|(position, entry)| {
                let place = *chains.get(&entry.chain)?;
                let chain = facts.get(place)?;
                Some(Sighting {
                    branch: chain.branch,
                    pull_requests: tested.get(place)?,
                    variant: chain.variant,
                    stable: chain.stable,
                    is_no_sign: chain.queue || rate_at(entry) > 0.0,
                    outcome: outcome(entry, test),
                    text: texts.of(entry.source, test),
                    started_at: entry.started_at(),
                    beta: background.beta.get(*position).copied().unwrap_or(0.0),
                })
            })
            .collect();
        let witnesses = witnesses::find(&sightings);
        let stable_rates = |position: usize| {
            let rates = &background.rates;
            let both = rates
                .stable_breaks
                .get(position)
                .zip(rates.stable_mends.get(position));
            both.map_or((0.0, 0.0), |(breaks, mends)| (*breaks, *mends))
        };
        let first_failure = of_test.iter().find(|(_, entry)| {
            let chain = timeline.chains.get(entry.chain);
            chain.is_some_and(|chain| chain.stable) && entry.has_failure(test)
        });
        let first_failure = first_failure.map(|(_, entry)| entry.revision);
        let failed_before = |entry: &Entry<'_>| first_failure.is_some_and(|first| first < entry.revision);
        let each = of_test.iter().zip(&witnesses);
        let results = each.map(|((position, entry), witnesses)| ResultFacts {
            chain: chains.get(&entry.chain).copied().unwrap_or(0),
            run: timeline.run_of.get(*position).copied().unwrap_or(*position),
            revision: entry.revision,
            outcome: outcome(entry, test),
            text: texts.of(entry.source, test),
            beta: background.of(*position, test),
            chi: odds.get(*position).copied().unwrap_or(1.0),
            started_at: entry.started_at(),
            // What breaks at times at which the test fails anyway is not seen then, so that the streak is no breakage.
            stable_rates: match rate_at(entry) > 0.0 {
                true => (0.0, stable_rates(*position).1),
                false => stable_rates(*position),
            },
            failed_before: failed_before(entry),
            calendar: rate_at(entry),
            witnesses: witnesses.branches,
            base: bases.get(*position).copied().flatten(),
        });
        let results = results.collect();
        let positions = of_test.iter().map(|(position, _)| *position).collect();
        Self {
            sequence: Sequence {
                chains: facts,
                pull_requests: tested,
                results,
                asks_for_stable: false,
                outage_ratios: (0.0, 0.0),
            },
            positions,
            witnesses,
            calendar,
        }
    }
}

/// All positions by revision, then time.
pub(crate) fn order(timeline: &Timeline<'_>) -> Vec<usize> {
    let mut entries: Vec<(usize, &Entry<'_>)> = timeline.entries.iter().enumerate().collect();
    entries.sort_by_key(|(position, entry)| {
        let run = &entry.observed.run;
        (entry.revision, run.started_at, run.number, *position)
    });
    entries.into_iter().map(|(position, _)| position).collect()
}

/// The revision of the stable branch at which the code of each position left it, if that is known and ran there.
pub(crate) fn bases(timeline: &Timeline<'_>) -> Vec<Option<usize>> {
    let is_stable = |entry: &Entry<'_>| timeline.chains.get(entry.chain).is_some_and(|chain| chain.stable);
    let on_stable = timeline.entries.iter().filter(|entry| is_stable(entry));
    let revisions: BTreeMap<&str, usize> = on_stable
        .filter_map(|entry| Some((entry.observed.run.revision.as_deref()?, entry.revision)))
        .collect();
    let find = |base: &str| {
        let mut same = revisions
            .iter()
            .filter(|(revision, _)| is_commit(revision) && is_same_revision(revision, base));
        let found = revisions.get(base).or_else(|| same.next().map(|(_, rank)| rank));
        found.copied()
    };
    let mut known: HashMap<&str, Option<usize>> = HashMap::new();
    let entries = timeline.entries.iter();
    let bases = entries.map(|entry| {
        let base = entry
            .observed
            .run
            .merge_base
            .as_deref()
            .filter(|_| !is_stable(entry))?;
        *known.entry(base).or_insert_with(|| find(base))
    });
    bases.collect()
}

/// The pull requests that each chain tests, ascending: those of its branch, in a merge queue also those of the runs ahead.
/// The stable branch has none.
pub(crate) fn pull_requests(timeline: &Timeline<'_>, order: &[usize]) -> Vec<PullRequests> {
    let mut tested: Vec<BTreeSet<i64>> = vec![BTreeSet::new(); timeline.chains.len()];
    let mut in_queue: HashMap<&str, BTreeSet<i64>> = HashMap::new();
    for entry in order
        .iter()
        .filter_map(|position| timeline.entries.get(*position))
    {
        let of_chain = timeline.chains.get(entry.chain).zip(tested.get_mut(entry.chain));
        let Some((chain, tested)) = of_chain.filter(|(chain, _)| !chain.stable) else {
            continue;
        };
        let run = &entry.observed.run;
        tested.extend(&run.pull_requests);
        if chain.queue {
            let queue = chain.branch.and_then(|branch| MergeQueue::of(branch, None));
            let ahead = queue.and_then(|queue| in_queue.get(queue.base_revision.as_deref()?));
            tested.extend(ahead.into_iter().flatten());
            if let Some(revision) = run.revision.as_deref() {
                in_queue.insert(revision, tested.clone());
            }
        }
    }
    // A push to the branch of a pull request does not name it.
    let mut of_branch: HashMap<(&str, usize), BTreeSet<i64>> = HashMap::new();
    for (chain, tested) in timeline.chains.iter().zip(&tested) {
        if let Some(branch) = chain.branch.filter(|_| !chain.stable) {
            of_branch
                .entry((branch, chain.change))
                .or_default()
                .extend(tested);
        }
    }
    let of_chains = timeline.chains.iter().zip(tested);
    of_chains
        .map(|(chain, tested)| {
            let of_branch = chain
                .branch
                .filter(|_| !chain.stable)
                .and_then(|branch| of_branch.get(&(branch, chain.change)));
            Arc::from_iter(of_branch.unwrap_or(&tested).iter().copied())
        })
        .collect()
}

fn chain_facts(timeline: &Timeline<'_>, chains: &BTreeMap<usize, usize>) -> Vec<ChainFacts> {
    let mut branches: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    let mut facts = vec![
        ChainFacts {
            branch: 0,
            stable: false,
            queue: false,
            variant: 0,
            is_over: false,
            base: None,
        };
        chains.len()
    ];
    for (chain, place) in chains {
        let Some((chain, facts)) = timeline.chains.get(*chain).zip(facts.get_mut(*place)) else {
            continue;
        };
        let next = branches.len();
        let stable = timeline.lanes.get(chain.lane).and_then(|lane| lane.stable);
        *facts = ChainFacts {
            branch: *branches.entry(chain.branch).or_insert(next),
            stable: chain.stable,
            queue: chain.queue,
            variant: chain.lane,
            is_over: timeline.is_over(chain),
            base: stable.and_then(|stable| chains.get(&stable).copied()),
        };
    }
    facts
}

/// A test that failed in one of its executions failed: the others may be of other tests that share its name.
fn outcome(entry: &Entry<'_>, test: TestOrdinal) -> Outcome {
    Outcome::of(entry.failure(test), entry.observed.repetition(test)).without_passes()
}
