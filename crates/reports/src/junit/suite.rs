//! A suite, as read from the file.

use std::borrow::Cow;

use super::dialect::{self, Dialect};
use crate::{
    input::Input,
    paths, text, time,
    xml::{Tag, decode},
};

/// A `testsuites` or `testsuite` element.
#[derive(Debug, Default)]
pub(super) struct Suite<'a> {
    /// Its index among the suites of the file.
    pub(super) number: usize,
    pub(super) name: Cow<'a, str>,
    /// The raw value: its own, or that of the nearest enclosing suite.
    pub(super) file: Option<&'a str>,
    pub(super) hostname: Cow<'a, str>,
    pub(super) time: Option<&'a str>,
    pub(super) timestamp: Option<&'a str>,
    pub(super) dialect: Dialect,
    /// Whether it is a `testsuites` element, which only groups suites.
    pub(super) is_group: bool,
    /// Whether the name says something about the tests: see [`Suite::label`].
    is_label: bool,
    /// Whether the name is the path of a file.
    pub(super) is_path: bool,
    /// Whether its time or an enclosing suite's time is finer than milliseconds.
    pub(super) has_fine_clock: bool,
    /// Whether its time or an enclosing suite's time is in nanoseconds.
    pub(super) is_in_nanoseconds: bool,
    /// The bytes of its texts and of those of the enclosing suites, which its cases may copy.
    pub(super) outer_bytes: usize,
    /// The browser or system in its name or in the nearest enclosing suite's name.
    pub(super) variant: Option<Variant>,
    /// Whether its tool writes times in UTC without a zone.
    pub(super) is_utc: bool,
    /// Whether it has the attribute `skips` of old versions of pytest, which count reruns as tests.
    pub(super) is_of_old_pytest: bool,
    /// Whether it has the attribute `flakes`, the number of cases with `flaky="true"`, which Flank writes.
    pub(super) counts_flakes: bool,
    /// Whether TestNG wrote it, or ran its tests for Surefire.
    pub(super) is_of_testng: bool,
    /// Whether Bun wrote it.
    pub(super) is_of_bun: bool,
    /// Whether a case in it, or in a suite inside, ran. Only of Node and Bun.
    pub(super) has_run: bool,
    /// The file of such a case.
    pub(super) file_of_run: Option<String>,
    pub(super) header: Header,
}

/// The failures that a suite's attributes count, and those that its contents show.
#[derive(Debug, Default)]
pub(super) struct Header {
    pub(super) tests: u64,
    failures: u64,
    errors: u64,
    /// Whether gotestsum wrote it, which counts lines of `go`'s own output as errors.
    is_go: bool,
    /// Failed outcomes of the cases inside, and errors of the suites inside.
    pub(super) shown: u64,
    /// Failures that suites inside count and do not show.
    pub(super) missing: u64,
}

impl Header {
    /// Closes the suite: failures that it counts and that neither it nor a suite inside shows are missing.
    fn close(&mut self) {
        // A tool may count a case among both failures and errors.
        let errors = if self.is_go { 0 } else { self.errors };
        let counted = self.failures.max(errors);
        let counted = if self.tests > 0 {
            counted.min(self.tests)
        } else {
            counted
        };
        let known = self.shown.saturating_add(self.missing);
        self.missing = self.missing.saturating_add(counted.saturating_sub(known));
    }

    /// Adds a suite inside, after it was closed.
    pub(super) fn add(&mut self, mut inner: Suite<'_>) {
        inner.header.is_go |= matches!(inner.dialect, Dialect::Gotestsum | Dialect::GoJunitReport);
        inner.header.close();
        self.is_go |= inner.header.is_go;
        self.shown = self.shown.saturating_add(inner.header.shown);
        self.missing = self.missing.saturating_add(inner.header.missing);
    }
}

/// A suite's name that contains the browser or system of its tests.
#[derive(Debug, Clone)]
pub(super) struct Variant {
    /// The browser or system.
    pub(super) platform: String,
    /// The rest of the name; may be empty.
    pub(super) rest: String,
}

impl<'a> Suite<'a> {
    pub(super) fn new(tag: Tag<'a, '_>, parent: Option<&Self>, number: usize) -> Self {
        let mut suite = Self {
            number,
            file: parent.and_then(|parent| parent.file),
            is_group: tag.name == "testsuites",
            is_of_testng: parent.is_some_and(|parent| parent.is_of_testng),
            is_of_bun: parent.is_some_and(|parent| parent.is_of_bun),
            ..Self::default()
        };
        let count = |value: &str| value.trim_ascii().parse().unwrap_or(0);
        for (key, value) in tag.attributes() {
            match key {
                "name" => suite.name = decode(value),
                "file" => suite.file = Some(value),
                "hostname" => suite.hostname = decode(value),
                "time" => suite.time = Some(value),
                "timestamp" => suite.timestamp = Some(value),
                "tests" => suite.header.tests = count(value),
                "skips" => suite.is_of_old_pytest = true,
                "flakes" => suite.counts_flakes = true,
                "failures" => suite.header.failures = count(value),
                "errors" => suite.header.errors = count(value),
                _ => {}
            }
        }
        suite.outer_bytes = parent.map_or(0, |parent| parent.outer_bytes)
            + suite.name.len()
            + suite.hostname.len()
            + suite.file.map_or(0, str::len);
        suite.has_fine_clock = parent.is_some_and(|parent| parent.has_fine_clock)
            || suite
                .time
                .and_then(|time| time.split_once('.'))
                .is_some_and(|(_, decimals)| decimals.len() > 3);
        suite.is_in_nanoseconds = parent.is_some_and(|parent| parent.is_in_nanoseconds)
            || suite.time.is_some_and(time::is_nanoseconds);
        suite.variant = variant(&suite.name).or_else(|| parent.and_then(|parent| parent.variant.clone()));
        suite.is_label =
            !suite.is_group && !dialect::is_constant(&tag, &suite.name) && is_label(suite.name.trim());
        suite.is_path = paths::is_path(&suite.name);
        suite.dialect = Dialect::of_suite(&tag, &suite.name, parent.map(|parent| parent.dialect));
        suite.is_of_bun |= suite.is_group && suite.name == "bun test";
        // Surefire names the suite of a run by TestNG so.
        suite.is_of_testng |= suite.dialect == Dialect::Surefire && suite.name == "TestSuite";
        suite.is_utc = parent.is_some_and(|parent| parent.is_utc) || suite.dialect.writes_utc(&tag);
        suite
    }

    /// The name, if it says something about the tests: neither a word that the tool always writes, nor an address, nor a
    /// time or id that changes with every run.
    pub(super) fn label(&self) -> Option<&str> {
        self.is_label.then(|| self.name.trim())
    }

    /// A duration of a case in this suite, in milliseconds.
    pub(super) fn milliseconds(&self, input: &Input<'_>, text: &str) -> Option<u64> {
        if self.is_in_nanoseconds
            && let Ok(nanoseconds) = text.trim_ascii().parse::<f64>()
        {
            return time::duration_ms(nanoseconds / 1e6);
        }
        input.seconds_to_ms(text)
    }

    /// Records what a property shows: the version of Go that a Go tool wrote the suite, TestNG on the class path that it
    /// ran the tests.
    pub(super) fn property(&mut self, name: &str, value: &str) {
        if self.dialect == Dialect::Other && name == "go.version" {
            self.dialect = Dialect::Gotestsum;
        }
        self.is_of_testng |= name.ends_with("class.path") && value.contains("/testng-");
    }
}

/// Whether a name is neither an address nor has a time or an id.
fn is_label(name: &str) -> bool {
    let longest = name.split(|c: char| !c.is_ascii_digit()).map(str::len).max();
    let is_volatile = longest.is_some_and(|digits| digits >= 8) || name.matches(':').count() >= 4;
    !name.is_empty() && !paths::is_address(name) && !is_volatile
}

/// Finds the browser or system at the beginning or end of a suite's name, with a separator: `Firefox - a.cy.js`,
/// `FiltersTest: internet explorer`, `[chrome] orders`.
fn variant(name: &str) -> Option<Variant> {
    const SEPARATORS: [&str; 3] = [" - ", ": ", " | "];
    let name = name.trim();
    if is_karmas_browser(name) {
        return Some(Variant {
            platform: text::title(name)?,
            rest: String::new(),
        });
    }
    let leading = match name.strip_prefix('[') {
        Some(inner) => inner.split_once(']'),
        None => SEPARATORS
            .iter()
            .filter_map(|separator| name.split_once(separator))
            .min_by_key(|(platform, _)| platform.len()),
    };
    let trailing = match name.strip_suffix([']', ')']) {
        Some(inner) => inner.rsplit_once(['[', '(']),
        None => SEPARATORS
            .iter()
            .filter_map(|separator| name.rsplit_once(separator))
            .min_by_key(|(_, platform)| platform.len()),
    };
    let trailing = trailing.map(|(rest, platform)| (platform, rest));
    let (platform, rest) = [Some((name, "")), leading, trailing]
        .into_iter()
        .flatten()
        .find(|(platform, _)| is_platform(platform))?;
    Some(Variant {
        platform: text::title(platform)?,
        rest: rest.trim().to_owned(),
    })
}

/// `Chrome Headless 119.0.6045.105 (Linux x86_64)`: the browser, its version and the system, as Karma writes them.
fn is_karmas_browser(name: &str) -> bool {
    let Some((browser, system)) = name.strip_suffix(')').and_then(|name| name.rsplit_once(" (")) else {
        return false;
    };
    let Some((browser, version)) = browser.rsplit_once(' ') else {
        return false;
    };
    let is_version = version.starts_with(|c: char| c.is_ascii_digit())
        && version.contains('.')
        && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    is_version && !system.is_empty() && browser.len() <= 40 && !browser.contains([':', '/'])
}

/// Whether a text is the name of a browser or a system, with or without a version.
fn is_platform(text: &str) -> bool {
    const PLATFORMS: &[&str] = &[
        "chrome",
        "chromium",
        "google chrome",
        "firefox",
        "edge",
        "microsoft edge",
        "safari",
        "webkit",
        "opera",
        "internet explorer",
        "ie",
        "electron",
        "android",
        "ios",
        "windows",
        "linux",
        "macos",
        "ubuntu",
    ];
    let without_version = text
        .trim()
        .trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ' '));
    without_version.len() <= 20 && PLATFORMS.contains(&without_version.to_ascii_lowercase().as_str())
}
