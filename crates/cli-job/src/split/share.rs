//! The share of one machine, and what its plan says to people and programs.

use serde_json::{Value, json};

use crate::split::{Listing, Plan, Shard, Timings};

/// The share of one machine.
#[derive(Debug)]
pub struct Share<'a> {
    listing: &'a Listing,
    timings: &'a Timings,
    plan: Plan,
    /// From 1.
    index: usize,
    shard: Shard,
}

impl<'a> Share<'a> {
    /// The shard with this number, from 1 to `total`; none for another number.
    pub fn new(listing: &'a Listing, timings: &'a Timings, index: usize, total: usize) -> Option<Self> {
        let plan = Plan::new(listing, timings, total);
        let shard = plan.shards.get(index.checked_sub(1)?)?.clone();
        Some(Self {
            listing,
            timings,
            plan,
            index,
            shard,
        })
    }

    /// The runner's list of its units.
    pub fn list(&self) -> String {
        self.listing.selection(&self.shard.units)
    }

    /// The list and the plan in sentences, one a line.
    pub fn in_words(&self) -> Vec<String> {
        let (index, units) = (self.index, self.shard.units.len());
        let (total, all) = (self.plan.shards.len(), self.listing.units().len());
        let (read, _, messages) = self.listing.counts();
        let mut lines = vec![format!(
            "read {read} lines: {all} {}, {} repeated, {messages} messages",
            self.listing.runner().units(),
            read - all - messages
        )];
        if units == 0 {
            lines.push(format!(
                "shard {index} of {total} has no tests: the list has {all}. Do not call the runner with an empty list"
            ));
            return lines;
        }
        if self.plan.unknown == all {
            lines.push(format!(
                "shard {index} of {total}: {units} of {all}. No duration is known, so the list is divided by number"
            ));
            return lines;
        }
        let seconds = |milliseconds: u64| milliseconds.div_ceil(1_000);
        lines.push(format!(
            "shard {index} of {total}: {units} of {all}, about {} s (all shards: {} to {} s; durations of {} runs of {:?})",
            seconds(self.shard.milliseconds),
            seconds(self.plan.shortest_ms()),
            seconds(self.plan.longest_ms()),
            self.timings.runs.len(),
            self.timings.stable_branch,
        ));
        if self.plan.unknown > 0 {
            lines.push(format!(
                "{} of {all} have no duration and count as the median of their folder",
                self.plan.unknown
            ));
        }
        lines
    }

    /// For programs.
    pub fn to_json(&self) -> Value {
        let milliseconds = self.plan.shards.iter().map(|shard| shard.milliseconds);
        let (lines, _, messages) = self.listing.counts();
        json!({
            "lines": lines,
            "messages": messages,
            "list": self.list(),
            "usage": self.listing.runner().run_command(),
            "units": self.shard.units.len(),
            "unitsInAll": self.listing.units().len(),
            "unknown": self.plan.unknown,
            "runs": self.timings.runs.len(),
            "milliseconds": milliseconds.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::{Runner, Timing};

    fn listing() -> Listing {
        Listing::parse(Runner::Go, "shop/a\nshop/b\nshop/new\n").unwrap()
    }

    fn timings() -> Timings {
        let tests = [("shop/a", 10_000), ("shop/b", 30_000)];
        let timing = |(package, duration_ms)| Timing {
            test_name: format!("{package} > Test"),
            file_path: None,
            duration_ms,
        };
        Timings {
            stable_branch: "main".to_owned(),
            runs: Vec::new(),
            tests: tests.into_iter().map(timing).collect(),
        }
    }

    #[test]
    fn people_read_the_seconds_of_all_shards_and_how_many_units_are_unknown() {
        let (listing, timings) = (listing(), timings());
        let first = Share::new(&listing, &timings, 1, 2).unwrap();
        assert_eq!(
            first.in_words(),
            [
                "read 3 lines: 3 packages, 0 repeated, 0 messages",
                "shard 1 of 2: 1 of 3, about 30 s (all shards: 20 to 30 s; durations of 0 runs of \"main\")",
                "1 of 3 have no duration and count as the median of their folder",
            ]
        );
        assert_eq!(first.list(), "shop/b\n");
        let value = first.to_json();
        assert_eq!(value["milliseconds"], json!([30_000, 20_000]));
        assert_eq!((&value["units"], &value["unitsInAll"]), (&json!(1), &json!(3)));
    }

    #[test]
    fn an_empty_shard_and_a_division_by_number_are_said() {
        let (listing, none) = (listing(), Timings::default());
        let empty = Share::new(&listing, &none, 4, 4).unwrap();
        assert!(
            empty.in_words()[1].contains("has no tests"),
            "{:?}",
            empty.in_words()
        );
        let by_number = Share::new(&listing, &none, 1, 1).unwrap().in_words();
        assert!(by_number[1].ends_with("divided by number"), "{by_number:?}");
        assert!(Share::new(&listing, &none, 0, 2).is_none());
        assert!(Share::new(&listing, &none, 3, 2).is_none());
    }
}
