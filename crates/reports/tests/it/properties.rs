//! Reading any bytes returns a report within the limits or an error that names the file.

use std::{sync::LazyLock, time::Duration};

use assay_reports::{Format, Options, SourceFile, looks_like_report, read};
use proptest::prelude::*;
use rustix::time::{ClockId, clock_gettime};

use crate::support;

/// Small reports of every format, to be mutated.
static SEEDS: LazyLock<Vec<SourceFile>> = LazyLock::new(|| {
    const MOST: usize = 20_000;
    let folders = support::folders().into_iter().chain(["words".to_owned()]);
    let files = folders.flat_map(|folder| support::files_in(&folder));
    files.filter(|file| file.bytes.len() <= MOST).collect()
});

/// The processor time of this thread so far. A single file is read on the thread that asks for it.
fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap()
}

/// Reads a file of many copies of the bytes, in at most two seconds of processor time for each MB, and one
/// second in addition.
fn check_time(bytes: &[u8]) {
    const BYTES: usize = 40_000;
    let copies = bytes.repeat(BYTES / bytes.len().max(1) + 1);
    let most = Duration::from_secs(1) + Duration::from_micros(2) * u32::try_from(copies.len()).unwrap();
    let began = processor_time();
    let _ = read(vec![support::inline("some.file", copies)], &Options::default());
    let took = processor_time() - began;
    assert!(took <= most, "{took:?} of {most:?}");
}

/// Reads the bytes as each format. Accepts a well-formed report, or an error that names the file.
fn check(bytes: &[u8]) {
    let _ = looks_like_report(bytes);
    check_time(bytes);
    for format in std::iter::once(None).chain(Format::ALL.iter().copied().map(Some)) {
        let options = Options {
            format,
            root: Some("/home/runner/work"),
            ..Options::default()
        };
        match read(vec![support::inline("some.file", bytes)], &options) {
            Ok(report) => {
                for test in &report.tests {
                    assert!(!test.test.name.is_empty() && !test.attempts.is_empty());
                    let texts = test
                        .attempts
                        .iter()
                        .flat_map(|attempt| &attempt.errors)
                        .flat_map(|error| {
                            [&error.message, &error.stack, &error.snippet]
                                .into_iter()
                                .flatten()
                        });
                    for text in texts.chain([&test.test.name]).chain(&test.test.file_path) {
                        assert!(
                            !text.chars().any(|c| c.is_control() && c != '\n' && c != '\t'),
                            "{text:?}"
                        );
                        assert!(text.chars().count() < 33_000);
                    }
                }
            }
            Err(error) => assert!(error.to_string().contains("some.file"), "{error}"),
        }
    }
}

#[derive(Debug, Clone)]
enum Change {
    Flip(prop::sample::Index, u8),
    Delete(prop::sample::Index, u8),
    Insert(prop::sample::Index, Vec<u8>),
    Repeat(prop::sample::Index, u8),
    Cut(prop::sample::Index),
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<prop::sample::Index>;
    let token = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        "\"",
        ",",
        ":",
        "null",
        "-1e999",
        "\u{1b}[31m",
        "\\u0000",
        "<",
        "]]>",
        "\u{feff}",
    ]);
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, byte)| Change::Flip(at, byte)),
        (at(), any::<u8>()).prop_map(|(at, count)| Change::Delete(at, count)),
        (at(), token).prop_map(|(at, token)| Change::Insert(at, token.as_bytes().to_vec())),
        (at(), prop::collection::vec(any::<u8>(), 1..8)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        (at(), any::<u8>()).prop_map(|(at, count)| Change::Repeat(at, count)),
        at().prop_map(Change::Cut),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    if bytes.is_empty() {
        return;
    }
    let range = |at: &prop::sample::Index, count: u8| {
        let at = at.index(bytes.len());
        at..(at + usize::from(count)).min(bytes.len())
    };
    match change {
        Change::Flip(at, byte) => {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        Change::Delete(at, count) => drop(bytes.drain(range(at, *count))),
        Change::Insert(at, new) => {
            let at = at.index(bytes.len());
            bytes.splice(at..at, new.iter().copied());
        }
        Change::Repeat(at, count) => {
            let range = range(at, *count);
            let copy = bytes[range.clone()].to_vec();
            bytes.splice(range.end..range.end, copy);
        }
        Change::Cut(at) => bytes.truncate(at.index(bytes.len())),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
        check(&bytes);
    }

    #[test]
    fn any_text_of_json_pieces_is_read_or_refused(pieces in prop::collection::vec(prop::sample::select(vec![
        "{", "}", "[", "]", ",", ":", "\"suites\"", "\"config\"", "\"tests\"", "\"results\"", "\"testResults\"", "\"status\"",
        "\"failed\"", "\"uuid\"", "\"historyId\"", "\"tool\"", "1", "null", "true", "\n", " ", "\"a\\", "\"assertionResults\"", "\"specs\"",
    ]), 0..60)) {
        check(pieces.concat().as_bytes());
    }

    #[test]
    fn any_mutation_of_a_real_report_is_read_or_refused(seed in any::<prop::sample::Index>(), changes in prop::collection::vec(change(), 1..6)) {
        let mut bytes = seed.get(&SEEDS).bytes.clone();
        for change in &changes {
            apply(&mut bytes, change);
        }
        check(&bytes);
    }
}
