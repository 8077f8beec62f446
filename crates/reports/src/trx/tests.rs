//! A report of every outcome, and files that are none.

use crate::testing::{read_bytes, told};

fn read(text: &str) -> Result<String, String> {
    read_bytes("r.trx", text.as_bytes().to_vec(), super::read)
        .map(|report| told(&report))
        .map_err(|error| error.to_string())
}

#[test]
fn every_outcome() {
    let marked = format!("\u{feff}{}", include_str!("sample.trx"));
    insta::assert_snapshot!("trx", read(&marked).unwrap());
}

#[test]
fn a_cut_off_file_yields_what_is_whole() {
    let whole = include_str!("sample.trx");
    let told = read(&whole[..whole.find("Skipped").unwrap()]).unwrap();
    assert!(told.starts_with("Trx, interrupted"), "{told}");
    assert_eq!(told.lines().filter(|line| line.starts_with('"')).count(), 2);
}

#[test]
fn other_files_are_refused() {
    for (text, expected) in [
        ("", "r.trx:1: not a readable TRX report: expected <TestRun> as the root, found nothing"),
        ("<testsuites/>", "expected <TestRun> as the root, found <testsuites>"),
        ("<TestRun><Results></TestRun>", "expected </Results>, found </TestRun>"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}
