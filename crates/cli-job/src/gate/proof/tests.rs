use assay_domain::{cause::Action, decision::GateOutcome, timestamp::Timestamp};
use assay_flakiness::plan::reruns::ProcessOf;
use glob::Pattern;

use super::*;
use crate::gate::{
    judged::fixture::{flake, run},
    reruns::Bounds,
};

const RULES_NOW: Timestamp = Timestamp::from_unix_ms(1_800_000_000_000);

fn rules() -> Rules {
    Rules {
        risk: 0.05,
        most_excused: 5,
        changed: ["src/tax.ts".to_owned()].into(),
        never: vec![Pattern::new("release*").unwrap()],
        allow_broken: false,
        expire_after_s: Some(86_400),
        excuses: Vec::new(),
        now: RULES_NOW,
    }
}

/// A decision after a test that may be broken passed in its reruns, and the burn-in of a new test.
fn decision() -> Decision {
    let open = JudgedFailure {
        mine: 0.4,
        cause: Cause::Unclear,
        first_failed_at: Some(RULES_NOW.plus_ms(-60_000)),
        ..flake("pays")
    };
    let recovered = JudgedFailure {
        recovered: true,
        ..flake("ships")
    };
    let mut reruns = Reruns::new(
        run(vec![recovered, open, flake("odd")]),
        ProcessOf::File,
        |_, _| Some(1.0),
    );
    let bounds = Bounds {
        left_s: 90.0,
        startup_s: 1.0,
        risk: 0.05,
    };
    for _ in 0..3 {
        for round in reruns.next(bounds) {
            reruns.record(&round, |_| Some(false));
        }
        let again = run(vec![JudgedFailure {
            mine: 0.02,
            ..flake("pays")
        }]);
        reruns.judge_again(Some(&again));
    }
    let mut decision = policy::decide(&reruns.judged(), &rules());
    decision.reruns = Some(reruns);
    decision.add_burn_in(BurnInResults {
        new: 1,
        tests: 1,
        runs: (12, 12),
        seconds: 3.25,
        good: 1,
        left_out: 0,
        failed: Vec::new(),
    });
    decision
}

#[test]
fn a_decision_is_made_again_from_its_file() {
    let decision = decision();
    assert_eq!(decision.outcome, GateOutcome::Excused);
    let file = DecisionProof::new(&decision, &rules()).unwrap();
    let text = serde_json::to_string(&file).unwrap();
    assert!(text.contains("ran again: passed"), "{text}");
    let again = DecisionProof::read(&text).unwrap().check().unwrap();
    assert_eq!(show::json(&again), show::json(&decision));

    let plain = policy::decide(&run(vec![flake("odd")]), &rules());
    let file = DecisionProof::new(&plain, &rules()).unwrap();
    assert_eq!(file.check().unwrap().judged.action, Action::Rerun);
    // A changed decision with a checksum of its own is found, too.
    let mut file = file;
    let mut answer = file.answer.value;
    answer["decision"]["failed"][0]["mine"] = json!(0.5);
    file.answer = Checked::new(answer).unwrap();
    let error = file.check().unwrap_err().to_string();
    assert_eq!(
        error,
        "answer.decision.failed[0].mine: the file has 0.5, and the computation gives 0.01"
    );
}

/// The paths of all numbers below a value.
fn numbers(value: &Value, path: &str) -> Vec<String> {
    let below: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(list) => {
            let numbered = list.iter().enumerate();
            numbered
                .map(|(index, value)| (index.to_string(), value))
                .collect()
        }
        Value::Number(_) => return vec![path.to_owned()],
        Value::Null | Value::Bool(_) | Value::String(_) => Vec::new(),
    };
    let below = below.into_iter();
    below
        .flat_map(|(key, value)| numbers(value, &format!("{path}/{key}")))
        .collect()
}

#[test]
fn each_changed_number_of_a_decision_is_found_and_named() {
    let file = serde_json::to_value(DecisionProof::new(&decision(), &rules()).unwrap()).unwrap();
    let places = numbers(&file, "");
    assert!(places.len() > 90, "{}", places.len());
    for place in places {
        let mut changed = file.clone();
        let number = changed.pointer_mut(&place).unwrap();
        *number = match number.as_u64() {
            Some(whole) => json!(whole ^ 1),
            // The next number.
            None => json!(f64::from_bits(number.as_f64().unwrap().to_bits() + 1)),
        };
        match DecisionProof::read(&changed.to_string()).map(|proof| proof.check()) {
            // The number cannot be one of such a file.
            Err(NotProved::Foreign(_)) => {}
            Ok(Err(error)) => {
                let part = place.split('/').nth(1).unwrap();
                assert!(error.to_string().contains(part), "{place}: {error}");
            }
            other => panic!("{place} is not found: {other:?}"),
        }
    }
}
