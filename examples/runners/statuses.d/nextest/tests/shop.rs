use std::env::var;

fn planted(fault: &str) -> bool {
    var("PLANTED").is_ok_and(|planted| planted == fault)
}

/// With --stress-count, rows of one name.
#[test]
fn adds() {
    let row = var("NEXTEST_STRESS_CURRENT").unwrap_or_default();
    assert!(!(planted("first-row") && row == "0" || planted("last-row") && row == "1"));
}

#[test]
fn sends() {
    assert!(!(planted("flaky") || planted("outside")) || var("NEXTEST_ATTEMPT").is_ok_and(|attempt| attempt != "1"));
}

#[test]
fn pays() {
    assert!(!planted("broken"));
}

#[test]
fn ships() {}

#[test]
fn returns() {}
