//! Exit statuses with which test runners report failed tests.

use assay_reports::Format;

/// The status of almost every runner after failed tests.
const COMMON: u8 = 1;
/// The same of cargo-nextest, whose reports are JUnit XML.
const NEXTEST: u8 = 100;
/// The same of `cargo test`, which writes libtest's events.
const CARGO_TEST: u8 = 101;
/// The same of CTest.
const CTEST: u8 = 8;
/// The largest number of failed tests that Robot Framework's status can express.
const ROBOT_MOST: u64 = 250;

/// Whether this exit status of a command that wrote reports of these formats means failed tests and no other fault.
/// Another status means that the run itself failed, so that tests may be missing.
pub fn means_failed_tests(status: u8, failed: u64, formats: &[Format]) -> bool {
    let counts_up_to = |most: u64| u64::from(status) == failed.min(most);
    status == COMMON
        || formats.iter().any(|format| match format {
            Format::Junit => status == NEXTEST,
            Format::Libtest => status == NEXTEST || status == CARGO_TEST,
            Format::Ctest => status == CTEST,
            Format::Mocha | Format::Mochawesome | Format::Tap => counts_up_to(255),
            Format::Robot => counts_up_to(ROBOT_MOST),
            Format::Playwright
            | Format::Ctrf
            | Format::Jest
            | Format::Go
            | Format::Trx
            | Format::Allure
            | Format::Testng
            | Format::Cucumber
            | Format::Karate
            | Format::Nunit
            | Format::Xunit
            | Format::PytestJson
            | Format::Rspec
            | Format::Dart => false,
        })
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
        ] {
            assert_eq!(
                means_failed_tests(status, failed, &[format]),
                means,
                "{status} {format}"
            );
        }
    }
}
