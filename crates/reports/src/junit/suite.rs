//! A suite as it is written.

use std::borrow::Cow;

use super::dialect::Dialect;
use crate::xml::{Tag, decode};

/// A `testsuites` or `testsuite` element.
#[derive(Debug)]
pub(super) struct Suite<'a> {
    /// Its place among the suites of the file.
    pub(super) number: usize,
    pub(super) name: Cow<'a, str>,
    /// The raw value, its own or the nearest one around it.
    pub(super) file: Option<&'a str>,
    pub(super) hostname: Cow<'a, str>,
    pub(super) time: Option<&'a str>,
    pub(super) timestamp: Option<&'a str>,
    pub(super) dialect: Dialect,
    /// A `testsuites` element, which only gathers others.
    pub(super) gathers: bool,
    /// Whether its time, or one around it, is finer than milliseconds.
    pub(super) fine_clock: bool,
}

impl<'a> Suite<'a> {
    pub(super) fn new(tag: Tag<'a, '_>, around: Option<&Self>, number: usize) -> Self {
        let mut suite = Self {
            number,
            name: Cow::Borrowed(""),
            file: around.and_then(|around| around.file),
            hostname: Cow::Borrowed(""),
            time: None,
            timestamp: None,
            dialect: Dialect::Other,
            gathers: tag.name == "testsuites",
            fine_clock: false,
        };
        for (key, value) in tag.attributes() {
            match key {
                "name" => suite.name = decode(value),
                "file" => suite.file = Some(value),
                "hostname" => suite.hostname = decode(value),
                "time" => suite.time = Some(value),
                "timestamp" => suite.timestamp = Some(value),
                _ => {}
            }
        }
        suite.fine_clock = around.is_some_and(|around| around.fine_clock)
            || suite
                .time
                .and_then(|time| time.split_once('.'))
                .is_some_and(|(_, decimals)| decimals.len() > 3);
        suite.dialect = Dialect::of_suite(&tag, &suite.name, around.map(|around| around.dialect));
        suite
    }

    /// Notes that a Go tool wrote the suite: a property tells Go's version.
    pub(super) fn written_by_go(&mut self) {
        if self.dialect == Dialect::Other {
            self.dialect = Dialect::Gotestsum;
        }
    }
}
