//! Determines the start and the end of a run.

use assay_domain::timestamp::Timestamp;

use crate::choice::{Chooser, Origin};

/// The run's times from each source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SourceTimes {
    /// The flag `--started-at`.
    pub(crate) flag: Option<Timestamp>,
    /// The flag `--duration-ms`.
    pub(crate) duration_ms: Option<u64>,
    /// The report's start.
    pub(crate) report_start: Option<Timestamp>,
    /// The report's end.
    pub(crate) report_end: Option<Timestamp>,
    /// The report's duration, if its start and end are of an unknown zone.
    pub(crate) report_duration_ms: Option<u64>,
    /// The job's start in CI.
    pub(crate) variables: Option<Timestamp>,
    /// The time of the newest file's last change.
    pub(crate) file: Option<Timestamp>,
    /// The time of the import.
    pub(crate) now: Timestamp,
}

/// The start and the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Times {
    /// Its start.
    pub(crate) started_at: Timestamp,
    /// Its end, never before its start.
    pub(crate) finished_at: Option<Timestamp>,
    /// The offset in milliseconds for the report's own times.
    pub(crate) shift_ms: i64,
    /// Whether importing the same report again gives the same start.
    pub(crate) repeatable: bool,
}

/// The run's times. The start is the flag's, else the report's, CI's, the file's or the import's.
///
/// A start from the user moves every time of the report, so that attempts stay within their run.
pub(crate) fn resolve(sources: &SourceTimes, chooser: &mut Chooser) -> Times {
    let candidates = [
        (Origin::Flag, sources.flag),
        (Origin::Report, sources.report_start),
        (Origin::Variables, sources.variables),
        (Origin::FileTime, sources.file),
    ];
    let (from, started_at) = candidates
        .into_iter()
        .find_map(|(from, at)| at.map(|at| (from, at)))
        .unwrap_or((Origin::Clock, sources.now));
    chooser.note("started at", &started_at, from);

    let shift_ms = sources.report_start.map_or(0, |own| started_at.since_ms(own));
    let after = |ms: u64| started_at.plus_ms(i64::try_from(ms).unwrap_or(i64::MAX));
    let by_flag = sources.duration_ms.map(|ms| (Origin::Flag, after(ms)));
    let by_duration = sources.report_duration_ms.map(|ms| (Origin::Report, after(ms)));
    let by_report = sources
        .report_end
        .map(|end| (Origin::Report, end.plus_ms(shift_ms)))
        // A report with one moment only has no duration.
        .filter(|(_, end)| *end > started_at);
    let finished_at = by_flag.or(by_report).or(by_duration).map(|(from, end)| {
        chooser.note("finished at", &end, from);
        end
    });
    Times {
        started_at,
        finished_at,
        shift_ms,
        repeatable: !matches!(from, Origin::FileTime | Origin::Clock),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: SourceTimes = SourceTimes {
        flag: None,
        duration_ms: None,
        report_start: None,
        report_end: None,
        report_duration_ms: None,
        variables: None,
        file: None,
        now: Timestamp::from_unix_ms(9_000),
    };

    fn at(ms: i64) -> Option<Timestamp> {
        Some(Timestamp::from_unix_ms(ms))
    }

    fn times(sources: SourceTimes) -> Times {
        resolve(&sources, &mut Chooser::default())
    }

    #[test]
    fn the_start_is_that_of_the_first_source_that_has_one() {
        let all = SourceTimes {
            flag: at(1),
            report_start: at(2),
            variables: at(3),
            file: at(4),
            ..NOTHING
        };
        assert_eq!(times(all).started_at.unix_ms(), 1);
        assert_eq!(times(SourceTimes { flag: None, ..all }).started_at.unix_ms(), 2);
        let without_times = SourceTimes {
            flag: None,
            report_start: None,
            ..all
        };
        assert_eq!(times(without_times).started_at.unix_ms(), 3);
        let file = times(SourceTimes {
            variables: None,
            ..without_times
        });
        assert_eq!((file.started_at.unix_ms(), file.repeatable), (4, false));
        let clock = times(NOTHING);
        assert_eq!((clock.started_at.unix_ms(), clock.repeatable), (9_000, false));
    }

    #[test]
    fn a_given_start_moves_the_reports_times() {
        let sources = SourceTimes {
            flag: at(1_000),
            report_start: at(5_000),
            report_end: at(5_700),
            ..NOTHING
        };
        let moved = times(sources);
        assert_eq!((moved.shift_ms, moved.finished_at), (-4_000, at(1_700)));
        assert_eq!(
            times(SourceTimes {
                duration_ms: Some(50),
                ..sources
            })
            .finished_at,
            at(1_050)
        );
    }

    #[test]
    fn the_duration_of_a_report_of_an_unknown_zone_follows_the_start() {
        let sources = SourceTimes {
            report_duration_ms: Some(700),
            ..NOTHING
        };
        let times = times(sources);
        assert_eq!((times.shift_ms, times.finished_at), (0, at(9_700)));
    }

    #[test]
    fn a_run_never_ends_before_it_starts_and_one_moment_is_no_duration() {
        let moment = times(SourceTimes {
            report_start: at(20),
            report_end: at(20),
            ..NOTHING
        });
        assert_eq!((moment.started_at.unix_ms(), moment.finished_at), (20, None));
        assert_eq!(
            times(SourceTimes {
                report_end: at(10),
                file: at(20),
                ..NOTHING
            })
            .finished_at,
            None
        );
        assert_eq!(
            times(SourceTimes {
                flag: at(0),
                duration_ms: Some(u64::MAX),
                ..NOTHING
            })
            .finished_at
            .map(|end| end.to_string()),
            Some("9999-12-31T23:59:59.999Z".to_owned())
        );
    }
}
