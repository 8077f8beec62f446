//! The tests of a project that count as one, by its renames file.
//!
//! Results keep the test under whose name they were reported. Reading joins them, so that a line of the renames file
//! takes effect on all results, and its removal leaves no trace.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::{
    observation::{Bitmap, RunObservations},
    renames::Join,
    test::TestOrdinal,
    timestamp::Timestamp,
};

/// The joins of a project.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Joins {
    /// By the test under its former name.
    joins: BTreeMap<TestOrdinal, Vec<Join>>,
    /// The former tests by the present one.
    former: HashMap<TestOrdinal, BTreeSet<TestOrdinal>>,
}

impl Joins {
    /// Joins tests. Each has at most one present name at a time.
    pub fn of(joins: impl IntoIterator<Item = Join>) -> Self {
        let mut all = Self::default();
        for join in joins {
            all.former.entry(join.new).or_default().insert(join.old);
            all.joins.entry(join.old).or_default().push(join);
        }
        all
    }

    /// Whether no tests are joined.
    pub fn is_empty(&self) -> bool {
        self.joins.is_empty()
    }

    /// The approximate memory use in bytes.
    pub fn bytes(&self) -> usize {
        /// A join in both maps.
        const JOIN: usize = 2 * size_of::<Join>() + 64;
        self.joins.values().map(Vec::len).sum::<usize>() * JOIN
    }

    /// The present test of one that a run with this start reported.
    pub fn at(&self, test: TestOrdinal, start: Timestamp) -> TestOrdinal {
        let joins = self.joins.get(&test);
        let join = joins.and_then(|joins| joins.iter().find(|join| join.holds(start)));
        join.map_or(test, |join| join.new)
    }

    /// The present test of one whose name is known today.
    pub fn current(&self, test: TestOrdinal) -> TestOrdinal {
        let joins = self.joins.get(&test);
        let open = joins.and_then(|joins| joins.iter().find(|join| join.until.is_none()));
        open.map_or(test, |join| join.new)
    }

    /// The test and those that count as it in some runs, the test itself first.
    pub fn names_of(&self, test: TestOrdinal) -> Vec<TestOrdinal> {
        let former = self.former.get(&test).into_iter().flatten().copied();
        std::iter::once(test)
            .chain(former.filter(|former| *former != test))
            .collect()
    }

    /// The tests whose names mean this one today, the newest first, at most ten. A name that was exchanged with another one
    /// means another test today.
    pub fn former_names_of(&self, test: TestOrdinal) -> Vec<TestOrdinal> {
        const MOST: usize = 10;
        let former = self.former.get(&test).into_iter().flatten().rev().copied();
        let mean_it = former.filter(|former| *former != test && self.current(*former) == test);
        mean_it.take(MOST).collect()
    }

    /// The present tests of those that a run reported, where they differ: (reported, present).
    ///
    /// If a run reported a test under both names, they are two tests there.
    pub fn in_run(&self, start: Timestamp, reported: &Bitmap) -> BTreeMap<TestOrdinal, TestOrdinal> {
        let tests = self.joins.keys().copied().filter(|test| reported.contains(*test));
        let mut moves: BTreeMap<TestOrdinal, TestOrdinal> = tests
            .map(|test| (test, self.at(test, start)))
            .filter(|(old, new)| old != new)
            .collect();
        loop {
            let mut arrivals: HashMap<TestOrdinal, usize> = HashMap::new();
            for new in moves.values() {
                *arrivals.entry(*new).or_default() += 1;
            }
            let contradicted: Vec<TestOrdinal> = moves
                .iter()
                .filter(|(_, new)| {
                    let stays = reported.contains(**new) && !moves.contains_key(new);
                    stays || arrivals.get(new).is_some_and(|count| *count > 1)
                })
                .map(|(old, _)| *old)
                .collect();
            if contradicted.is_empty() {
                return moves;
            }
            for old in contradicted {
                moves.remove(&old);
            }
        }
    }

    /// The result that counts as that of a test in a run, among those that the run has under its names.
    pub fn result_of<R>(
        &self,
        test: TestOrdinal,
        start: Timestamp,
        result: impl Fn(TestOrdinal) -> Option<R>,
    ) -> Option<R> {
        if self.is_empty() {
            return result(test);
        }
        let mut reported = self.names_of(test);
        reported.retain(|name| result(*name).is_some());
        let moves = self.in_run(start, &reported.iter().copied().collect());
        let mut names = reported.iter();
        let counting = names.find(|name| moves.get(name).unwrap_or(name) == &test)?;
        result(*counting)
    }

    /// Gives the results of a run to the present tests.
    pub fn apply(&self, observed: &mut RunObservations) {
        let moves = match self.is_empty() {
            true => return,
            false => self.in_run(observed.run.started_at, &observed.present),
        };
        if moves.is_empty() {
            return;
        }
        for set in [
            &mut observed.present,
            &mut observed.skipped,
            &mut observed.untimed,
        ] {
            let moved: Vec<TestOrdinal> = moves.keys().copied().filter(|old| set.contains(*old)).collect();
            for old in &moved {
                set.remove(*old);
            }
            for old in moved {
                set.insert(moves.get(&old).copied().unwrap_or(old));
            }
        }
        observed.other_names = moves
            .iter()
            .map(|(reported, present)| (*present, *reported))
            .collect();
        observed.other_names.sort_unstable();
        let present = |test: &mut TestOrdinal| *test = moves.get(test).copied().unwrap_or(*test);
        for failure in &mut observed.failures {
            present(&mut failure.test);
        }
        observed.failures.sort_unstable_by_key(|failure| failure.test);
        for repetition in &mut observed.repeated {
            present(&mut repetition.test);
        }
        observed
            .repeated
            .sort_unstable_by_key(|repetition| repetition.test);
    }
}
