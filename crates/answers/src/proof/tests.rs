use assay_domain::attempt::AttemptStatus;
use assay_flakiness::{HistoryBuilder, ObservedRun};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

use super::*;

const NOW: Timestamp = Timestamp::from_unix_ms(1_800_000_000_000);

fn proof() -> VerdictProof {
    let mut builder = HistoryBuilder::new("main");
    for number in 0..40_i64 {
        let run = ObservedRun {
            started_at: NOW.plus_ms(-number * 28_000_000),
            id: format!("run {number}"),
            branch: Some(if number % 5 == 0 { "feature" } else { "main" }.to_owned()),
            revision: Some(format!("{number:07}")),
            variant: if number % 2 == 0 { "linux" } else { "windows" }.to_owned(),
        };
        for test in 0..30_i64 {
            let name = TestName {
                name: format!("test {test}"),
                file_path: None,
            };
            let fails = test == 7 && number % 4 == 0 || test == 20 && number == 3;
            let skipped = test == 11 && number % 3 == 0;
            let status = match (fails, skipped) {
                (true, _) => AttemptStatus::Failed,
                (_, true) => AttemptStatus::Skipped,
                _ => AttemptStatus::Passed,
            };
            let again = (fails && number % 8 == 0).then_some(AttemptStatus::Passed);
            builder.observe(&run, &name, [Some(status), again].into_iter().flatten());
        }
    }
    let (history, names) = builder.build();
    let number = names.iter().position(|name| name.name == "test 7").unwrap();
    let test = (names[number].clone(), u32::try_from(number).unwrap());
    VerdictProof::new(&history, test, NOW).unwrap().unwrap()
}

/// The paths of all numbers below a value.
fn numbers(value: &Value, path: &mut Vec<String>, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(path.concat()),
        Value::Object(map) => {
            for (key, value) in map {
                path.push(format!("/{key}"));
                numbers(value, path, found);
                path.pop();
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                path.push(format!("/{index}"));
                numbers(value, path, found);
                path.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[test]
fn a_file_is_computed_again_with_the_same_answer() {
    let proof = proof();
    assert_eq!(proof.answer.value.status, VerdictStatus::Flaky);
    let text = serde_json::to_string(&proof).unwrap();
    let read = VerdictProof::read(&text).unwrap();
    assert_eq!(read, proof);
    read.check().unwrap();
    assert!(!text.contains("test 8"), "other tests are numbers");
}

#[test]
fn each_of_a_thousand_changed_numbers_is_found_and_named() {
    let file = serde_json::to_value(proof()).unwrap();
    let mut places = Vec::new();
    numbers(&file, &mut Vec::new(), &mut places);
    let mut random = StdRng::seed_from_u64(7);
    for _ in 0..1_000 {
        let place = &places[random.random_range(0..places.len())];
        let mut changed = file.clone();
        let number = changed.pointer_mut(place).unwrap();
        *number = match number.as_u64() {
            Some(whole) => json!(whole ^ (1 << random.random_range(0..4))),
            None => {
                let value = number.as_f64().unwrap();
                let factor = 1.0 + 10.0_f64.powi(-1 - random.random_range(0..15));
                let other = value * factor;
                // The next number, where the factor is too small.
                json!(if other == value {
                    f64::from_bits(value.to_bits() + 1)
                } else {
                    other
                })
            }
        };
        let found = VerdictProof::read(&changed.to_string()).map(|proof| proof.check());
        match found {
            // The number cannot be one of such a file.
            Err(NotProved::Foreign(_)) => {}
            Ok(Err(error)) => {
                let named = error.to_string();
                let part = place.split('/').nth(1).unwrap();
                assert!(named.contains(part), "{place}: {named}");
            }
            other => panic!("{place} is not found: {other:?}"),
        }
    }
}

#[test]
fn a_changed_answer_is_named_with_both_numbers() {
    let mut file = proof();
    file.answer.value.figures.flake_score = 0.25;
    let error = file.check().unwrap_err().to_string();
    assert!(
        error.starts_with("answer.figures.flakeScore: the file has 0.25, and"),
        "{error}"
    );
    let mut file = proof();
    file.runs[3].value.failures.clear();
    file.runs[3].value.started_at = NOW;
    let error = file.check().unwrap_err().to_string();
    assert!(error.contains("runs[3] (run "), "{error}");
    let mut file = proof();
    file.runs.remove(0);
    assert!(file.check().is_err(), "a run is missing");
    let mut file = proof();
    file.question = Checked::new(Question {
        engine: "9".to_owned(),
        ..file.question.value
    })
    .unwrap();
    assert!(matches!(file.check(), Err(NotProved::Engine(engine)) if engine == "9"));
    assert!(matches!(VerdictProof::read("{}"), Err(NotProved::Form(_))));
}
