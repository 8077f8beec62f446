//! The report formats: one row for each, with what differs among them. `detect` recognises them, and `readers` has the
//! reader of each.

use self::FailureStatus::{Also, Counted};

/// Defines the formats from one table: each with what it is, its name on the command line, what it is for people, its rank,
/// and what else differs.
macro_rules! formats {
    ($($(#[$doc:meta])+ $format:ident = $row:expr,)+) => {
        /// A report format.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Format {
            $($(#[$doc])+ $format,)+
        }

        impl Format {
            /// Every format.
            pub const ALL: &'static [Self] = &[$(Self::$format),+];

            const fn row(self) -> Row {
                match self {
                    $(Self::$format => $row,)+
                }
            }
        }
    };
}

formats! {
    /// Playwright's JSON reporter.
    Playwright = row("playwright", "Playwright JSON", 0),
    /// JUnit XML in all its dialects.
    Junit = row("junit", "JUnit XML of every dialect", 9).of_classes().without_marks().also(&[NEXTEST]),
    /// CTRF (Common Test Report Format).
    Ctrf = row("ctrf", "CTRF (Common Test Report Format)", 1).without_marks(),
    /// Jest's and Vitest's JSON.
    Jest = row("jest", "Jest or Vitest JSON", 3),
    /// `go test -json`.
    Go = row("go", "`go test -json`", 4),
    /// Visual Studio test results.
    Trx = row("trx", "TRX (Visual Studio test results)", 5).of_classes().without_marks(),
    /// A folder of Allure results.
    Allure = row("allure", "an Allure results folder", 2),
    /// TestNG's own results.
    Testng = row("testng", "TestNG results", 6).of_classes(),
    /// Cucumber's JSON.
    Cucumber = row("cucumber", "Cucumber JSON", 7).of_classes(),
    /// Cucumber's messages.
    CucumberMessages = row("cucumber-messages", "Cucumber's messages", 6).of_classes(),
    /// Robot Framework's `output.xml`.
    Robot = row("robot", "Robot Framework's output.xml", 7).counted(250),
    /// Mocha's JSON.
    Mocha = row("mocha", "Mocha JSON", 8).counted(255),
    /// mochawesome's JSON.
    Mochawesome = row("mochawesome", "mochawesome JSON", 8).counted(255),
    /// Karate's files of features, and its summary.
    Karate = row("karate", "Karate's features or their summary", 10).of_classes(),
    /// NUnit's XML, versions 2 and 3.
    Nunit = row("nunit", "NUnit XML (versions 2 and 3)", 5).of_classes().without_marks(),
    /// xUnit.net's XML.
    Xunit = row("xunit", "xUnit.net XML", 5).of_classes().without_marks(),
    /// pytest-json-report's JSON.
    PytestJson = row("pytest-json", "pytest-json-report", 8),
    /// RSpec's JSON.
    Rspec = row("rspec", "RSpec JSON", 8),
    /// The Test Anything Protocol.
    Tap = row("tap", "TAP (Test Anything Protocol)", 10).counted(255),
    /// The events of `dart test` and `flutter test`.
    Dart = row("dart", "events of dart test and flutter test", 6),
    /// The events of Rust's libtest.
    Libtest = row("libtest", "events of Rust's libtest", 6).also(&[NEXTEST, 101]),
    /// CTest's `Test.xml`.
    Ctest = row("ctest", "CTest's Test.xml", 7).also(&[8]),
    /// Catch2's XML.
    Catch2 = row("catch2", "Catch2 XML", 7).also(&[42]),
    /// The events of Swift Testing.
    Swift = row("swift", "events of Swift Testing", 6).without_marks(),
}

impl Format {
    /// The format's name on the command line.
    pub const fn as_str(self) -> &'static str {
        self.row().name
    }

    /// What the format is, for people.
    pub const fn help(self) -> &'static str {
        self.row().help
    }

    /// The rank of the format by its detail about a run. The most detailed format has rank 0.
    pub const fn rank(self) -> u8 {
        self.row().rank
    }

    /// Whether its reports name classes, or paths below a class path. The checkout then determines the files.
    pub const fn looks_up_files(self) -> bool {
        self.row().looks_up_files
    }

    /// Whether some tools write retries into its reports without a mark.
    pub(crate) const fn may_hide_retries(self) -> bool {
        self.row().may_hide_retries
    }

    /// Whether runners of the format end with this exit status after this number of failed tests, and no other fault. After
    /// another status tests may be missing.
    pub fn fails_with(self, status: u8, failed: u64) -> bool {
        let is_its = match self.row().statuses {
            Also(statuses) => statuses.contains(&status),
            Counted(most) => u64::from(status) == failed.min(most),
        };
        failed > 0 && (status == 1 || is_its)
    }

    /// All formats in words, for messages.
    pub(crate) fn all_in_words() -> String {
        let all: Vec<&str> = Self::ALL.iter().map(|format| format.help()).collect();
        all.join(", ")
    }
}

/// What differs among formats.
struct Row {
    name: &'static str,
    help: &'static str,
    rank: u8,
    looks_up_files: bool,
    may_hide_retries: bool,
    statuses: FailureStatus,
}

const fn row(name: &'static str, help: &'static str, rank: u8) -> Row {
    Row {
        name,
        help,
        rank,
        looks_up_files: false,
        may_hide_retries: false,
        statuses: Also(&[]),
    }
}

impl Row {
    const fn of_classes(mut self) -> Self {
        self.looks_up_files = true;
        self
    }

    const fn without_marks(mut self) -> Self {
        self.may_hide_retries = true;
        self
    }

    const fn also(mut self, statuses: &'static [u8]) -> Self {
        self.statuses = Also(statuses);
        self
    }

    const fn counted(mut self, most: u64) -> Self {
        self.statuses = Counted(most);
        self
    }
}

/// The exit statuses with which the runners of a format report failed tests. Almost all use 1.
#[derive(Clone, Copy)]
enum FailureStatus {
    /// 1, and also these.
    Also(&'static [u8]),
    /// The number of failed tests, up to a largest one.
    Counted(u64),
}

/// The exit status of cargo-nextest, whose reports are JUnit XML or libtest's events.
const NEXTEST: u8 = 100;

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::str::FromStr for Format {
    type Err = UnknownFormat;

    /// Parses a format's name. Vitest's JSON is Jest's.
    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let word = if word == "vitest" { "jest" } else { word };
        let mut all = Self::ALL.iter().copied();
        all.find(|format| format.as_str() == word).ok_or(UnknownFormat)
    }
}

/// The error of an unknown format's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub struct UnknownFormat;

impl std::fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = Format::ALL.iter().map(|format| format.as_str()).collect();
        write!(f, "expected one of {}, vitest", names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_status_means_failed_tests_only_for_runners_that_define_it() {
        for (status, failed, format, means) in [
            (1, 3, Format::Junit, true),
            (100, 3, Format::Junit, true),
            (101, 3, Format::Libtest, true),
            // A tool that panicked.
            (101, 3, Format::Junit, false),
            // pytest: interrupted, internal error, wrong usage, no tests.
            (2, 2, Format::Junit, false),
            (3, 3, Format::Junit, false),
            (4, 4, Format::PytestJson, false),
            (5, 5, Format::PytestJson, false),
            (3, 3, Format::Mocha, true),
            (4, 3, Format::Mocha, false),
            (8, 1, Format::Ctest, true),
            (250, 300, Format::Robot, true),
            // Out of memory.
            (137, 1, Format::Jest, false),
            // No test failed.
            (1, 0, Format::Junit, false),
        ] {
            assert_eq!(format.fails_with(status, failed), means, "{status} {format}");
        }
    }
}
