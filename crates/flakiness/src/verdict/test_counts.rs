//! The results of one failing test, from which its counts are taken.

use std::ops::Range;

use assay_domain::test::TestOrdinal;

use crate::{
    model::{Outcome, background::Background},
    participation::column::Column,
    timeline::{Entry, Timeline, failures::FailureAt},
};

/// The results of one failing test.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TestCounts<'a, 'h> {
    /// The test.
    pub(crate) test: TestOrdinal,
    /// The runs.
    pub(crate) timeline: &'a Timeline<'h>,
    /// The background of each position.
    pub(crate) background: &'a Background,
    /// The positions at which the test ran.
    pub(crate) column: Column<'a>,
    /// Its failures, ascending by position.
    pub(crate) failures: &'a [FailureAt],
    /// Its passes in several executions of a run, ascending by position.
    pub(crate) repeated: &'a [FailureAt],
    /// Its outcomes by position; a plain pass unless it is among the two above.
    pub(crate) outcomes: &'a [Outcome],
}

/// A result that counts: not in a mass failure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CountedResult<'a, 'h> {
    /// Its position.
    pub(crate) position: usize,
    /// Its variant run.
    pub(crate) entry: &'a Entry<'h>,
    /// Its outcome.
    pub(crate) outcome: Outcome,
}

impl<'a, 'h> TestCounts<'a, 'h> {
    /// The result at a position, if there is one that counts.
    pub(crate) fn considered(&self, position: usize) -> Option<CountedResult<'a, 'h>> {
        let outcome = *self.outcomes.get(position)?;
        let entry = self.timeline.entries.get(position)?;
        let counts = self.column.contains(position) && !self.leaves_out(position);
        counts.then_some(CountedResult {
            position,
            entry,
            outcome,
        })
    }

    /// Whether the run at a position is a mass failure in which the test does not count.
    pub(crate) fn leaves_out(&self, position: usize) -> bool {
        self.background.leaves_out(position, self.test)
    }

    /// The results of the same chain before a position that count, the nearest first.
    pub(crate) fn before(
        &self,
        position: usize,
    ) -> impl Iterator<Item = CountedResult<'a, 'h>> + use<'a, 'h> {
        let test_counts = *self;
        let positions = (self.chain_of(position).start..position).rev();
        positions.filter_map(move |position| test_counts.considered(position))
    }

    /// The results of the same chain after a position that count, the nearest first.
    pub(crate) fn after(&self, position: usize) -> impl Iterator<Item = CountedResult<'a, 'h>> + use<'a, 'h> {
        let test_counts = *self;
        let positions = position + 1..self.chain_of(position).end;
        positions.filter_map(move |position| test_counts.considered(position))
    }

    /// The other results of this result's revision in its chain that count.
    pub(crate) fn others_on_revision(
        &self,
        result: CountedResult<'a, 'h>,
    ) -> impl Iterator<Item = CountedResult<'a, 'h>> + use<'a, 'h> {
        let same = move |other: &CountedResult<'a, 'h>| other.entry.revision == result.entry.revision;
        let before = self.before(result.position).take_while(same);
        before.chain(self.after(result.position).take_while(same))
    }

    fn chain_of(&self, position: usize) -> Range<usize> {
        let entry = self.timeline.entries.get(position);
        let chain = entry.and_then(|entry| self.timeline.chains.get(entry.chain));
        chain.map_or(position..position, |chain| chain.positions.clone())
    }
}
