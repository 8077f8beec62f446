//! Exit statuses with which test runners report failed tests.

use assay_reports::Format;

/// Whether this exit status of a command that wrote reports of these formats means failed tests and no other fault.
/// Another status means that the run itself failed, so that tests may be missing.
pub fn means_failed_tests(status: u8, failed: u64, formats: &[Format]) -> bool {
    status == 1 || formats.iter().any(|format| format.fails_with(status, failed))
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
