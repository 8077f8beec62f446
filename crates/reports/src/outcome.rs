//! The words that reports use for outcomes. The tables are closed: a word that is in none of them never passes.

use assay_domain::attempt::AttemptStatus::{self, Failed, Interrupted, Passed, Skipped, TimedOut};

/// Words with their status. Case, spaces, `_` and `-` do not matter.
pub(crate) type Words = &'static [(&'static str, AttemptStatus)];

/// Words that mean the same in every format.
const COMMON: Words = &[
    ("passed", Passed),
    ("pass", Passed),
    ("failed", Failed),
    ("skipped", Skipped),
    ("success", Passed),
    ("ok", Passed),
    ("successful", Passed),
    ("succeeded", Passed),
    ("fail", Failed),
    ("failure", Failed),
    ("error", Failed),
    ("errored", Failed),
    ("broken", Failed),
    ("crash", Failed),
    ("crashed", Failed),
    ("fatal", Failed),
    ("timeout", TimedOut),
    ("timed out", TimedOut),
    ("skip", Skipped),
    ("pending", Skipped),
    ("ignored", Skipped),
    ("ignore", Skipped),
    ("disabled", Skipped),
    ("todo", Skipped),
    ("untested", Skipped),
    ("not run", Skipped),
    ("not executed", Skipped),
    ("not runnable", Skipped),
    ("inconclusive", Skipped),
    ("aborted", Skipped),
    ("cancelled", Skipped),
    ("canceled", Skipped),
    ("deselected", Skipped),
    ("excluded", Skipped),
    ("interrupted", Interrupted),
    // Of pytest.
    ("xfailed", Skipped),
    ("xpassed", Passed),
    // Of behave.
    ("undefined", Failed),
    ("untested undefined", Failed),
    ("untested pending", Skipped),
    ("hook error", Failed),
    ("cleanup error", Failed),
    ("pending warn", Skipped),
];

/// JUnit XML: the attributes `status` and `result`, and elements in a case. The words of GoogleTest, CTest, behave,
/// PHPUnit and Ant.
pub(crate) const JUNIT: Words = &[
    ("run", Passed),
    ("completed", Passed),
    ("executed", Passed),
    ("finished", Passed),
    ("suppressed", Skipped),
    // PHPUnit's test that could not be set up, or that uses what is deprecated.
    ("warning", Skipped),
];

/// CTRF's `status`.
pub(crate) const CTRF: Words = &[("other", Skipped)];

/// Jest's and Vitest's `status`.
pub(crate) const JEST: Words = &[("focused", Passed)];

/// TRX's `outcome`. A result that never ended was interrupted.
pub(crate) const TRX: Words = &[
    ("Completed", Passed),
    ("Warning", Passed),
    ("NotExecuted", Skipped),
    ("PassedButRunAborted", Interrupted),
    ("Aborted", Interrupted),
    ("Disconnected", Interrupted),
    ("InProgress", Interrupted),
    ("Pending", Interrupted),
];

/// TestNG's `status`. TestNG tolerates a failure within the success percentage of its method.
pub(crate) const TESTNG: Words = &[("SUCCESS_PERCENTAGE_FAILURE", Skipped)];

/// The status of a Cucumber step or hook, and of a scenario or step of behave.
pub(crate) const CUCUMBER: Words = &[("ambiguous", Failed), ("unused", Skipped)];

/// NUnit's `result`. A test with warnings passed.
pub(crate) const NUNIT: Words = &[("Warning", Passed), ("Cancelled", Interrupted)];

/// pytest's `outcome`. pytest skips an `xfail`; a strict one that passes is `failed`.
pub(crate) const PYTEST: Words = &[
    // Of pytest-subtests.
    ("subtests passed", Passed),
    ("subtests failed", Failed),
    ("subtests skipped", Skipped),
];

/// libtest's events that end a test.
pub(crate) const LIBTEST: Words = &[("bench", Passed)];

/// Catch2's `success`.
pub(crate) const CATCH2: Words = &[("true", Passed), ("false", Failed)];

/// The symbols of Swift Testing's messages. A known issue is an expected failure.
pub(crate) const SWIFT: Words = &[("passWithKnownIssue", Passed)];

/// Formats whose words are those that all formats share.
pub(crate) const OTHERS: Words = &[];

/// The status of a word; none if it is unknown.
pub(crate) fn status(words: Words, word: &str) -> Option<AttemptStatus> {
    find(words, word, is_same_in_any_case)
        .or_else(|| find(COMMON, word, is_same_in_any_case))
        .or_else(|| find(words, word, is_same))
        .or_else(|| find(COMMON, word, is_same))
}

fn find(words: Words, word: &str, is_equal: impl Fn(&str, &str) -> bool) -> Option<AttemptStatus> {
    let (_, status) = words.iter().find(|(known, _)| is_equal(known, word))?;
    Some(*status)
}

/// Whether two words are equal in any case. Most letters are equal already.
fn is_same_in_any_case(known: &str, word: &str) -> bool {
    let is_same_letter = |(a, b): (u8, u8)| a == b || a.eq_ignore_ascii_case(&b);
    known.len() == word.len() && known.bytes().zip(word.bytes()).all(is_same_letter)
}

/// Whether two words differ only in case and separators.
fn is_same(known: &str, word: &str) -> bool {
    fn letters(text: &str) -> impl Iterator<Item = u8> {
        let letters = text.bytes().filter(|byte| !matches!(byte, b' ' | b'_' | b'-'));
        letters.map(|byte| byte.to_ascii_lowercase())
    }
    word.len() <= 2 * known.len() && !word.is_empty() && letters(known).eq(letters(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_known_whatever_their_case() {
        for (word, expected) in [
            ("passed", Some(Passed)),
            ("Passed", Some(Passed)),
            ("FAIL", Some(Failed)),
            ("Error", Some(Failed)),
            ("notRun", Some(Skipped)),
            ("NOT RUN", Some(Skipped)),
            ("not_run", Some(Skipped)),
            ("timedOut", Some(TimedOut)),
            ("", None),
            ("pas", None),
            ("passed?", None),
            ("unstable", None),
        ] {
            assert_eq!(status(OTHERS, word), expected, "{word}");
        }
    }

    #[test]
    fn a_word_of_a_format_takes_precedence() {
        assert_eq!(status(TRX, "Pending"), Some(Interrupted));
        assert_eq!(status(OTHERS, "Pending"), Some(Skipped));
        assert_eq!(status(NUNIT, "Warning"), Some(Passed));
        assert_eq!(status(JUNIT, "warning"), Some(Skipped));
        assert_eq!(status(OTHERS, "warning"), None);
    }

    #[test]
    fn no_table_has_a_word_twice() {
        for words in [
            JUNIT, CTRF, JEST, TRX, TESTNG, CUCUMBER, NUNIT, PYTEST, LIBTEST, COMMON,
        ] {
            for (index, (word, _)) in words.iter().enumerate() {
                assert!(
                    !words[..index].iter().any(|(other, _)| is_same(other, word)),
                    "{word}"
                );
            }
        }
    }
}
