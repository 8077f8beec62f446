//! Places the times of a report that have no zone.
//!
//! Such times are local to the machine that ran the tests. A client on that machine sends its offset from UTC. Without
//! it, or if the tool writes UTC without saying so, the times are read as UTC, unless they would lie ahead.

use assay_domain::timestamp::Timestamp;

use crate::{
    piece::Piece,
    report::{Format, Report},
};

/// What is known of the clocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clocks {
    /// The offset from UTC of the machine that ran the tests, in minutes; positive east of Greenwich.
    pub utc_offset_minutes: Option<i32>,
    /// The time of the import, which no test starts after.
    pub now: Option<Timestamp>,
}

const MINUTE_MS: i64 = 60_000;
/// How far a start may lie ahead because two clocks differ.
const TOLERANCE_MS: i64 = 10 * MINUTE_MS;
/// The zone farthest east of Greenwich.
const FARTHEST_EAST_MS: i64 = 14 * 60 * MINUTE_MS;

/// How far the tests of an upload lie from it at most.
const DAY_MS: i64 = 24 * 60 * MINUTE_MS;

/// Gives files that lie more than a day from the upload its time, or leaves them out. Their tests ran at another time
/// (a build cache restored the file) or on a machine with a wrong clock.
pub(crate) fn drop_far(pieces: &mut Vec<Piece>, now: Timestamp, skip: bool) {
    let distance = |piece: &Piece| piece.report.started_at.map_or(0, |start| now.since_ms(start));
    let is_far = |piece: &Piece| distance(piece).abs() > DAY_MS;
    let mut warnings = Vec::new();
    // The attempts of a test of Allure are files, and their starts are their order.
    let nearest = pieces.iter().map(distance).min_by_key(|distance| distance.abs());
    let has_other = pieces.iter().any(|piece| !is_far(piece));
    pieces.retain_mut(|piece| {
        let Some(start) = piece.report.started_at.filter(|_| is_far(piece)) else {
            return true;
        };
        let is_skipped = skip && has_other;
        let what = if is_skipped {
            "it was left out"
        } else {
            "its tests have the time of the upload; --skip-cached leaves such files out"
        };
        warnings.push(format!(
            "{}: it began at {start}, more than 24 hours from the upload; {what}",
            piece.name
        ));
        match nearest.filter(|_| piece.report.format == Format::Allure && !has_other) {
            Some(distance) => piece.report.move_by(distance),
            None => piece.report.drop_times(),
        }
        !is_skipped
    });
    if let Some(first) = pieces.first_mut() {
        first.report.warnings.extend(warnings);
    }
}

impl Clocks {
    /// Moves the times of a report without zones to UTC.
    pub(crate) fn place(self, report: &mut Report, file: &str) {
        let Some(start) = report.started_at else { return };
        let is_ahead = |at: Timestamp| self.now.is_some_and(|now| at > now.plus_ms(TOLERANCE_MS));
        match self.utc_offset_minutes {
            Some(minutes) => {
                let shift_ms = -i64::from(minutes) * MINUTE_MS;
                // A tool that writes UTC without saying so has started in the past by UTC alone.
                if is_ahead(start) || !is_ahead(start.plus_ms(shift_ms)) {
                    report.move_by(shift_ms);
                }
            }
            None => {
                let is_east = self
                    .now
                    .is_some_and(|now| is_ahead(start) && start <= now.plus_ms(FARTHEST_EAST_MS));
                if is_east {
                    report.drop_times();
                    report.warnings.push(format!(
                        "{file}: its times have no zone and lie ahead; the run has the time of the upload. `assay upload` \
                         sends the zone of the machine; other clients send `utcOffset`."
                    ));
                }
            }
        }
    }
}

impl Report {
    /// Moves every time of the report.
    fn move_by(&mut self, ms: i64) {
        let attempts = self.tests.iter_mut().flat_map(|test| &mut test.attempts);
        let starts = attempts.map(|attempt| &mut attempt.started_at);
        for at in starts.chain([&mut self.started_at, &mut self.finished_at]) {
            *at = at.map(|at| at.plus_ms(ms));
        }
    }

    /// Forgets every time of the report but its duration.
    fn drop_times(&mut self) {
        let ends = self.started_at.take().zip(self.finished_at.take());
        self.duration_ms = ends.and_then(|(start, end)| u64::try_from(end.since_ms(start)).ok());
        for attempt in self.tests.iter_mut().flat_map(|test| &mut test.attempts) {
            attempt.started_at = None;
        }
    }
}
