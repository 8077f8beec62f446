//! Size limits of a report and its parts.

/// Bytes of one file, after unpacking.
pub const FILE_BYTES: usize = 512 << 20;
/// Bytes of all files of one import, after unpacking.
pub const IMPORT_BYTES: usize = 1 << 30;
/// Tests of one import, read or stored.
pub const TESTS: usize = 500_000;
/// Tests of one import, where a test counts once for each file that has it.
pub(crate) const TESTS_OF_FILES: usize = 4 * TESTS;
/// Attempts of one test, read or stored. Only deliberate repetition makes more, and they add no information.
pub const ATTEMPTS: usize = 1_000;
/// Attempts of one test if the report has only their number. No tool retries a test more often.
pub(crate) const COUNTED_ATTEMPTS: usize = 20;
/// Errors of one attempt.
pub(crate) const ERRORS: usize = 20;
/// Errors of one run that belong to no test.
pub(crate) const REPORT_ERRORS: usize = 100;
/// Warnings of one import.
pub(crate) const WARNINGS: usize = 50;
/// Characters of an error's message.
pub(crate) const MESSAGE: usize = 16_000;
/// Characters of a stack trace.
pub(crate) const STACK: usize = 32_000;
/// Characters of a code frame.
pub(crate) const SNIPPET: usize = 8_000;
/// Characters of a name, path or title.
pub(crate) const NAME: usize = 2_000;
/// Characters of the reason why a test was skipped.
pub(crate) const SKIP_REASON: usize = 1_000;
/// Files that an attempt names.
pub(crate) const ATTACHMENTS: usize = 20;
/// Characters of the name, kind and path of such a file.
pub(crate) const ATTACHMENT: usize = 1_000;
/// Bytes of what a test printed.
pub(crate) const OUTPUT_BYTES: usize = 64_000;
/// JSON reports in one file.
pub(crate) const DOCUMENTS: usize = 100;
/// Attributes of one XML element that are read.
pub(crate) const ATTRIBUTES: usize = 1_000;
/// Nesting depth of suites, and of causes of errors.
pub(crate) const DEPTH: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_formats_has_these_limits() {
        let page = include_str!("../../../docs/formats.md");
        let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
        for sentence in [
            format!(
                "{} MiB a file and {} GiB altogether",
                FILE_BYTES >> 20,
                IMPORT_BYTES >> 30
            ),
            format!(
                "{},000 tests, and {},000,000 if a test counts once for each file",
                TESTS / 1_000,
                TESTS_OF_FILES / 1_000_000
            ),
            format!("suites nested {DEPTH} deep"),
            format!("{},000 attempts, or {COUNTED_ATTEMPTS} where", ATTEMPTS / 1_000),
            format!("{ERRORS} errors an attempt; {REPORT_ERRORS} errors outside of tests"),
            format!(
                "{ATTACHMENTS} attachments and {} kB of output a failed attempt",
                OUTPUT_BYTES / 1_000
            ),
            format!("more than {},000 characters", NAME / 1_000),
        ] {
            assert!(page.contains(&sentence), "{sentence}");
        }
    }
}
