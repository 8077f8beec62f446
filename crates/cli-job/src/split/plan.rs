//! The plan: longest units first, each to the shard that has least so far (LPT; Graham, *Bounds on Multiprocessing
//! Timing Anomalies*, 1969). The longest shard takes at most 4/3 of the time that the best plan would need.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use assay_domain::timing::lower_median;
use sha2::{Digest as _, Sha256};

use crate::split::{Timings, listing::Listing};

/// A division of the units of a listing among shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The shards, in the order of their indexes.
    pub shards: Vec<Shard>,
    /// The number of units without a timing. They count as the median of their folder, or else of all units.
    pub unknown: usize,
}

/// The units of one machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shard {
    /// The positions of its units in the listing, in its order.
    pub units: Vec<usize>,
    /// The sum of their usual durations in milliseconds; 0 if no unit of the listing has a timing.
    pub milliseconds: u64,
}

impl Plan {
    /// Divides a listing among this number of shards, which is at least 1.
    ///
    /// Units of equal duration are taken in the order of a hash of their text. Without timings all are equal, so that
    /// neighbours in the list, which often take alike, are spread.
    pub fn new(listing: &Listing, timings: &Timings, shards: usize) -> Self {
        let known = listing.durations(timings);
        let unknown = known.iter().filter(|duration| duration.is_none()).count();
        let durations = with_medians(listing, known);
        let mut order: Vec<usize> = (0..listing.units().len()).collect();
        order.sort_by_cached_key(|unit| {
            let text = listing.units().get(*unit).map_or("", |unit| unit.as_str());
            let duration = durations.get(*unit).copied().unwrap_or(0);
            (Reverse(duration), Sha256::digest(text), text)
        });
        let mut planned = vec![Shard::default(); shards.max(1)];
        let mut loads: BinaryHeap<_> = (0..planned.len()).map(|shard| Reverse((0, 0, shard))).collect();
        for unit in order {
            let duration = durations.get(unit).copied().unwrap_or(0);
            let Some(Reverse((milliseconds, units, index))) = loads.pop() else {
                continue;
            };
            if let Some(shard) = planned.get_mut(index) {
                shard.units.push(unit);
                shard.milliseconds = duration.saturating_add(milliseconds);
                loads.push(Reverse((shard.milliseconds, units + 1, index)));
            }
        }
        for shard in &mut planned {
            shard.units.sort_unstable();
        }
        Self {
            shards: planned,
            unknown,
        }
    }

    /// The milliseconds of the longest shard.
    pub fn longest_ms(&self) -> u64 {
        self.shards
            .iter()
            .map(|shard| shard.milliseconds)
            .max()
            .unwrap_or(0)
    }

    /// The milliseconds of the shortest shard.
    pub fn shortest_ms(&self) -> u64 {
        self.shards
            .iter()
            .map(|shard| shard.milliseconds)
            .min()
            .unwrap_or(0)
    }
}

/// The durations, with the median of its folder for a unit without one, or else that of all units.
fn with_medians(listing: &Listing, known: Vec<Option<u64>>) -> Vec<u64> {
    let mut of_folder: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for (unit, duration) in listing.units().iter().zip(&known) {
        if let Some(duration) = duration {
            of_folder.entry(folder(unit)).or_default().push(*duration);
        }
    }
    let mut all: Vec<u64> = of_folder.values().flatten().copied().collect();
    let all = lower_median(&mut all).unwrap_or(0);
    let medians: BTreeMap<&str, Option<u64>> = of_folder
        .into_iter()
        .map(|(folder, mut durations)| (folder, lower_median(&mut durations)))
        .collect();
    listing
        .units()
        .iter()
        .zip(known)
        .map(|(unit, duration)| {
            duration
                .or_else(|| medians.get(folder(unit)).copied().flatten())
                .unwrap_or(all)
        })
        .collect()
}

/// What encloses a unit: the text before its last separator of folders, classes or titles.
fn folder(unit: &str) -> &str {
    let end = unit.rfind(['/', '.', ':', '›', ' ']);
    end.and_then(|end| unit.get(..end)).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::split::{Runner, Timing};

    fn timings(tests: &[(String, u64)]) -> Timings {
        let timing = |(test, duration_ms): &(String, u64)| Timing {
            test_name: format!("{test} > Test"),
            file_path: None,
            duration_ms: *duration_ms,
        };
        Timings {
            tests: tests.iter().map(timing).collect(),
            ..Timings::default()
        }
    }

    /// Packages of Go, of which some have a timing.
    fn suites() -> impl Strategy<Value = Vec<(String, Option<u64>)>> {
        let duration = prop::option::weighted(0.8, prop_oneof![0_u64..50, 1_000_u64..100_000]);
        prop::collection::btree_map("[a-c]{1,2}/[a-z]{1,6}", duration, 1..60)
            .prop_map(|units| units.into_iter().collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn each_unit_is_in_one_shard_and_the_longest_is_near_the_best(units in suites(), shards in 1_usize..12) {
            let text: String = units.iter().map(|(name, _)| format!("{name}\n")).collect();
            let listing = Listing::parse(Runner::Go, &text).unwrap();
            let known: Vec<_> = units.iter().filter_map(|(name, ms)| Some((name.clone(), (*ms)?))).collect();
            let plan = Plan::new(&listing, &timings(&known), shards);

            prop_assert_eq!(plan.shards.len(), shards);
            let mut all: Vec<_> = plan.shards.iter().flat_map(|shard| shard.units.clone()).collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..units.len()).collect::<Vec<_>>());
            prop_assert_eq!(plan.unknown, units.len() - known.len());

            let total: u64 = plan.shards.iter().map(|shard| shard.milliseconds).sum();
            let longest_unit = known.iter().map(|(_, ms)| *ms).max().unwrap_or(0);
            let best = longest_unit.max(total.div_ceil(u64::try_from(shards).unwrap()));
            // Graham's bound is of the best plan, which is at most this bound plus the longest unit.
            prop_assert!(plan.longest_ms() <= best + longest_unit, "{plan:?}");
            let again = Plan::new(&listing, &timings(&known), shards);
            prop_assert_eq!(plan, again);
        }
    }

    #[test]
    fn a_new_unit_takes_as_long_as_the_others_of_its_folder() {
        let listing = Listing::parse(Runner::Go, "shop/a\nshop/b\nshop/new\nslow/a\n").unwrap();
        let known = [("shop/a", 10), ("shop/b", 30), ("slow/a", 500)].map(|(name, ms)| (name.to_owned(), ms));
        let plan = Plan::new(&listing, &timings(&known), 2);
        assert_eq!(plan.unknown, 1);
        assert_eq!((plan.longest_ms(), plan.shortest_ms()), (500, 50));
    }

    #[test]
    fn without_timings_the_units_are_spread_evenly() {
        let text: String = (0..100).map(|number| format!("p/{number}\n")).collect();
        let listing = Listing::parse(Runner::Go, &text).unwrap();
        let plan = Plan::new(&listing, &Timings::default(), 8);
        let sizes: Vec<_> = plan.shards.iter().map(|shard| shard.units.len()).collect();
        assert_eq!(sizes.iter().sum::<usize>(), 100);
        assert!(sizes.iter().all(|size| [12, 13].contains(size)), "{sizes:?}");
        assert_ne!(plan.shards[0].units, (0..13).collect::<Vec<_>>());
    }

    #[test]
    fn more_shards_than_units_leave_some_empty() {
        let listing = Listing::parse(Runner::Go, "a\nb\n").unwrap();
        let plan = Plan::new(&listing, &Timings::default(), 3);
        let sizes: Vec<_> = plan.shards.iter().map(|shard| shard.units.len()).collect();
        assert_eq!(sizes, [1, 1, 0]);
    }
}
