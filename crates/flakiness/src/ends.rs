//! Where a failing test stands today: the ends of its chains.

use assay_domain::timestamp::Timestamp;

use crate::{
    config::{SILENCE_MS, STREAK},
    filter::{Belief, Filter},
    sheet::Sheet,
    tally::{FailingEnd, Tally},
    timeline::Lane,
};

/// What the chains of a test say at their ends.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ends {
    /// The failing streak at the end of a live stable chain that is most probably a breakage.
    pub(crate) breakage: Option<Breakage>,
    /// P(Broken) of the worst live stable chain.
    pub(crate) broken_probability: Option<f64>,
    /// The longest failing streak of a live chain off the stable branch, where the live stable ones pass.
    pub(crate) off_stable: Option<FailingEnd>,
}

/// A failing streak that may be a breakage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Breakage {
    /// The chain and its streak.
    pub(crate) end: FailingEnd,
    /// P(Broken) of the chain.
    pub(crate) probability: f64,
}

impl Ends {
    /// Reads the ends of a test's chains; `filter` has just run over the test.
    pub(crate) fn read(
        sheet: Sheet<'_, '_>,
        tally: &Tally,
        filter: &Filter<'_, '_>,
        belief: &Belief,
    ) -> Self {
        let mut ends = Self::default();
        let stable_fails = ends.read_stable(sheet, tally, filter, belief);
        if stable_fails {
            return ends;
        }
        let last_run = sheet.column.presence.last_run;
        let newest = last_run
            .and_then(|run| sheet.timeline.history.runs.get(run))
            .map(|last| last.run.started_at);
        for end in tally.failing_ends.iter().filter(|end| !end.stable) {
            let longest = ends.off_stable.map_or(STREAK - 1, |longest| longest.streak);
            if end.streak > longest && is_live(newest_of_chain(sheet, end.chain), newest) {
                ends.off_stable = Some(*end);
            }
        }
        ends
    }

    /// Whether a live stable chain ends in a failure.
    fn read_stable(
        &mut self,
        sheet: Sheet<'_, '_>,
        tally: &Tally,
        filter: &Filter<'_, '_>,
        belief: &Belief,
    ) -> bool {
        let lanes = &sheet.timeline.lanes;
        let newest_stable = lanes
            .iter()
            .filter_map(|lane| newest_on_stable(sheet, lane))
            .max();
        let mut fails = false;
        for lane in lanes {
            let Some(chain) = lane.stable else { continue };
            if !is_live(newest_on_stable(sheet, lane), newest_stable) {
                continue;
            }
            let Some(last) = last_position(sheet, chain) else {
                continue;
            };
            let probability = filter.broken_probability(belief, last);
            self.broken_probability = Some(
                self.broken_probability
                    .map_or(probability, |p| p.max(probability)),
            );
            let Some(end) = tally.failing_ends.iter().find(|end| end.chain == chain) else {
                continue;
            };
            fails = true;
            let worst = self.breakage.map_or(f64::NEG_INFINITY, |worst| worst.probability);
            if end.streak >= STREAK && probability > worst {
                self.breakage = Some(Breakage {
                    end: *end,
                    probability,
                });
            }
        }
        fails
    }
}

fn is_live(newest: Option<Timestamp>, newest_of_all: Option<Timestamp>) -> bool {
    newest
        .zip(newest_of_all)
        .is_some_and(|(newest, of_all)| of_all.since_ms(newest) <= SILENCE_MS)
}

/// When the test last ran on the lane's stable chain.
fn newest_on_stable(sheet: Sheet<'_, '_>, lane: &Lane) -> Option<Timestamp> {
    let mut positions = lane.stable_newest_first.iter();
    let position = positions.find(|position| sheet.column.contains(**position))?;
    sheet
        .timeline
        .entries
        .get(*position)
        .map(|entry| entry.observed.run.started_at)
}

/// When the test last ran on a chain.
fn newest_of_chain(sheet: Sheet<'_, '_>, chain: usize) -> Option<Timestamp> {
    let seen = positions_backwards(sheet, chain);
    let times = seen.filter_map(|position| sheet.timeline.entries.get(position));
    times.map(|entry| entry.observed.run.started_at).max()
}

/// The last position of the test on a chain.
fn last_position(sheet: Sheet<'_, '_>, chain: usize) -> Option<usize> {
    positions_backwards(sheet, chain).next()
}

/// The positions of the test on a chain, the last one first.
fn positions_backwards<'a, 'h>(
    sheet: Sheet<'a, 'h>,
    chain: usize,
) -> impl Iterator<Item = usize> + use<'a, 'h> {
    let positions = sheet
        .timeline
        .chains
        .get(chain)
        .map(|chain| chain.positions.clone());
    let positions = positions.unwrap_or_default().rev();
    positions.filter(move |position| sheet.column.contains(*position))
}
