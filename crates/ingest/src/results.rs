//! Prepares the tests of a report and classifies their errors.

use assay_domain::{
    attempt::Attempt,
    recording::{RecordedAttempt, RecordedTest},
    run::Counts,
    signature::Classifier as _,
};
use assay_fingerprint::Fingerprinter;
use assay_reports::ReportedTest;
use rayon::prelude::*;

use crate::artifacts::{ArtifactsUrl, link};

/// The tests ready for storing. Each failed attempt is classified by its first error with text, and every time is moved
/// by `shift_ms`. Attachments get their addresses.
pub(crate) fn classify_tests(
    tests: Vec<ReportedTest>,
    shift_ms: i64,
    artifacts: Option<&ArtifactsUrl>,
) -> Vec<RecordedTest> {
    tests
        .into_par_iter()
        .map(|reported| RecordedTest {
            test: reported.test,
            shown_as: reported.shown_as,
            attempts: reported
                .attempts
                .map(|attempt| recorded(attempt, shift_ms, artifacts)),
        })
        .collect()
}

fn recorded(mut attempt: Attempt, shift_ms: i64, artifacts: Option<&ArtifactsUrl>) -> RecordedAttempt {
    for attachment in attempt
        .output
        .iter_mut()
        .flat_map(|output| &mut output.attachments)
    {
        link(attachment, artifacts);
    }
    attempt.started_at = attempt.started_at.map(|at| at.plus_ms(shift_ms));
    let class = attempt
        .status
        .is_failure()
        .then(|| Fingerprinter.classify(&attempt.errors))
        .flatten();
    RecordedAttempt { attempt, class }
}

/// The outcomes of the tests, counting each test once.
pub(crate) fn counts(tests: &[RecordedTest]) -> Counts {
    let mut counts = Counts::default();
    for outcome in tests.iter().filter_map(RecordedTest::outcome) {
        counts.add(&outcome);
    }
    counts
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use assay_reports::{Options, SourceFile};

    use super::*;

    /// The fingerprint and title of each failed test's first attempt, by name.
    fn classes(file: &str) -> BTreeMap<String, (String, String)> {
        let path = format!(
            "{}/../../testdata/reports/playwright/{file}",
            env!("CARGO_MANIFEST_DIR")
        );
        let file = SourceFile {
            name: file.to_owned(),
            bytes: std::fs::read(path).unwrap(),
            modified: None,
        };
        let report = assay_reports::read(vec![file], &Options::default()).unwrap();
        let tests = classify_tests(report.tests, 0, None).into_iter();
        tests
            .filter_map(|test| {
                let class = test.attempts.first()?.class.clone()?;
                // JUnit XML joins all parts of a name with one separator.
                Some((
                    test.test.name.replace(" › ", " > "),
                    (class.fingerprint, class.title),
                ))
            })
            .collect()
    }

    #[test]
    fn playwrights_json_and_junit_of_one_run_have_the_same_fingerprints() {
        for name in ["full", "shard-1-of-3", "shard-2-of-3", "shard-3-of-3"] {
            let (json, junit) = (classes(&format!("{name}.json")), classes(&format!("{name}.xml")));
            assert!(junit.len() > 1, "{name}");
            let differing: Vec<_> = junit
                .iter()
                .map(|(test, class)| (test, class, json.get(test)))
                .filter(|(_, class, other)| *other != Some(*class))
                .collect();
            assert!(differing.is_empty(), "{name}: {differing:#?}");
        }
    }
}
