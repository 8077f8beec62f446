//! Real streams of events, each checked against the suite that made it.

use crate::testing::{read_bytes, read_file, told};

macro_rules! reports {
    ($($name:ident = $path:literal),+ $(,)?) => {
        $(#[test]
        fn $name() {
            let report = read_file($path, super::read).expect("a readable report");
            insta::assert_snapshot!(stringify!($name), told(&report));
        })+
    };
}

reports! {
    all_packages = "go/go1.19/go-test.jsonl",
    count_2 = "go/go1.19/go-test-count-2.jsonl",
    green = "go/go1.19/go-test-green.jsonl",
    gotestsum_reruns = "go/go1.19/gotestsum-rerun.jsonl",
}

fn read(text: &str) -> Result<String, String> {
    read_bytes("go.jsonl", text.as_bytes().to_vec(), super::read)
        .map(|report| told(&report))
        .map_err(|error| error.to_string())
}

/// As Go 1.24 and later write them.
#[test]
fn a_failed_build_is_an_error_of_the_run() {
    insta::assert_snapshot!("failed_build", read(include_str!("samples/failed-build.jsonl")).unwrap());
}

#[test]
fn a_group_that_fails_by_itself_is_a_test() {
    let event = |action: &str, test: &str| format!("{{\"Action\":\"{action}\",\"Package\":\"p\",\"Test\":\"{test}\"}}\n");
    let stream = [
        event("run", "TestA"),
        event("run", "TestA/x"),
        event("pass", "TestA/x"),
        event("fail", "TestA"),
        event("run", "TestB"),
        event("run", "TestB/x"),
        event("pass", "TestB/x"),
        event("pass", "TestB"),
        "{\"Action\":\"fail\",\"Package\":\"p\"}\n".to_owned(),
    ]
    .concat();
    let told = read(&stream).unwrap();
    let tests: Vec<&str> = told.lines().filter(|line| line.starts_with('"')).collect();
    assert_eq!(tests, ["\"p > TestA\"", "\"p > TestA/x\"", "\"p > TestB/x\""]);
}

#[test]
fn a_stream_that_is_cut_off_marks_its_run() {
    let stream = "{\"Action\":\"run\",\"Package\":\"p\",\"Test\":\"TestA\"}\n\
                  {\"Action\":\"pass\",\"Package\":\"p\",\"Test\":\"TestA\"}\n\
                  {\"Action\":\"run\",\"Package\":\"p\",\"Test\":\"TestB\"}\n{\"Action\":\"outp";
    let told = read(stream).unwrap();
    assert!(told.contains("Go, interrupted"), "{told}");
    assert!(told.contains("\"p > TestA\"\n  passed") && told.contains("\"p > TestB\"\n  interrupted"), "{told}");
}

#[test]
fn what_is_no_stream_of_events_is_an_error() {
    for (text, expected) in [
        ("", "go.jsonl:1: not a readable go test -json report: expected an object with an Action on each line, found none"),
        ("ok  \tp\t0.1s\n", "found none"),
        ("\n{\"a\": 1}\n", "go.jsonl:2: not a readable go test -json report: expected an object with an Action"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn outputs_are_bounded() {
    let line = format!("{{\"Action\":\"output\",\"Package\":\"p\",\"Test\":\"T\",\"Output\":\"{}\\n\"}}\n", "x".repeat(1000));
    let mut stream = "{\"Action\":\"run\",\"Package\":\"p\",\"Test\":\"T\"}\n".to_owned();
    stream.push_str(&line.repeat(2_000));
    stream.push_str("{\"Action\":\"fail\",\"Package\":\"p\",\"Test\":\"T\"}\n{\"Action\":\"fail\",\"Package\":\"p\"}\n");
    let report = read_bytes("go.jsonl", stream.into_bytes(), super::read).unwrap();
    let error = &report.tests[0].attempts[0].errors[0];
    assert!(error.message.as_ref().unwrap().len() < 20_000);
    assert!(error.stack.as_ref().unwrap().len() < 40_000);
}
