//! The words for outcomes that formats share, their own words, and unknown ones.

use assay_domain::{
    attempt::AttemptStatus::{self, Failed, Interrupted, Passed, Skipped},
    run::RunState,
};
use assay_reports::{Format, Report};

use crate::{support::plain, templates};

/// A report of each format that has words, with one test whose status is a given word.
fn with_word(word: &str) -> Vec<(Format, Report)> {
    let templates = templates::all().into_iter().filter(|template| template.has_words);
    templates
        .map(|template| {
            (
                template.format,
                plain(template.files(&[("t".to_owned(), word)])).unwrap(),
            )
        })
        .collect()
}

fn status(report: &Report) -> AttemptStatus {
    report.tests[0].outcome().unwrap().status
}

#[test]
fn an_unknown_word_is_skipped_with_a_warning_and_the_run_is_incomplete_in_every_format() {
    let reports = with_word("half-done");
    // Mocha's JSON and TAP have no words: one lists failures, the other has `ok` and `not ok`.
    assert_eq!(reports.len(), Format::ALL.len() - 2);
    for (format, report) in reports {
        assert_eq!(report.format, format);
        assert_eq!(
            (status(&report), report.state),
            (Skipped, RunState::Interrupted),
            "{format}"
        );
        let warned = report.warnings.iter().any(|warning| {
            warning.contains("1 result has the unknown status \"half-done\"") && warning.contains("skipped")
        });
        assert!(warned, "{format}: {:?}", report.warnings);
    }
}

#[test]
fn words_that_all_formats_share_mean_the_same_whatever_their_case() {
    for (word, expected) in [
        ("Failed", Failed),
        ("FAILURE", Failed),
        ("error", Failed),
        ("untested", Skipped),
        ("ignored", Skipped),
        ("not run", Skipped),
        ("NotRun", Skipped),
        ("Passed", Passed),
    ] {
        for (format, report) in with_word(word) {
            // The actions of Go are not words of people: all but a few are news of a test.
            if format == Format::Go {
                continue;
            }
            // A scenario of Karate that ends early skips the rest of its steps, and has passed.
            if format == Format::Karate && expected == Skipped {
                continue;
            }
            assert_eq!(status(&report), expected, "{format}: {word}");
            // behave writes it for what it did not run because it stopped.
            let state = match (format, word) {
                (Format::Junit, "untested") => RunState::Interrupted,
                _ => RunState::Completed,
            };
            assert_eq!(report.state, state, "{format}: {word}");
            assert!(report.warnings.is_empty(), "{format}: {:?}", report.warnings);
        }
    }
}

#[test]
fn formats_keep_their_own_words() {
    for (format, word, expected) in [
        (Format::Playwright, "interrupted", Interrupted),
        (Format::Trx, "PassedButRunAborted", Interrupted),
        (Format::Trx, "Aborted", Interrupted),
        (Format::Testng, "SUCCESS_PERCENTAGE_FAILURE", Skipped),
        (Format::Cucumber, "undefined", Failed),
        (Format::Cucumber, "ambiguous", Failed),
        (Format::Robot, "NOT RUN", Skipped),
        (Format::Nunit, "Warning", Passed),
        (Format::Nunit, "Inconclusive", Skipped),
        (Format::PytestJson, "xfailed", Skipped),
        (Format::PytestJson, "xpassed", Passed),
        (Format::Junit, "run", Passed),
        (Format::Junit, "completed", Passed),
        (Format::Junit, "notrun", Skipped),
        (Format::Jest, "todo", Skipped),
        (Format::Ctrf, "other", Skipped),
        (Format::Go, "bench", Passed),
    ] {
        let report = with_word(word)
            .into_iter()
            .find(|(of, _)| *of == format)
            .unwrap()
            .1;
        assert_eq!(status(&report), expected, "{format}: {word}");
        let says_unknown = |warning: &String| warning.contains("unknown");
        assert!(!report.warnings.iter().any(says_unknown), "{format}: {word}");
    }
}
