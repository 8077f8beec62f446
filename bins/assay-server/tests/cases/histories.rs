//! Histories: `assay analyze` over CSV files gives a test this verdict, and a failure this cause and action.

use std::path::Path;

use assay_testkit::ServedWorld;
use libtest_mimic::Failed;
use regex::Regex;
use serde_json::{Value, json};

use crate::expected;

pub(crate) fn holds(world: &ServedWorld, case: &Path) -> Result<(), Failed> {
    let entry = expected(case);
    let want = &entry["want"];
    let mut statuses = Vec::new();
    for file in entry["files"].as_array().expect("files is a list") {
        let path = case
            .join(file["file"].as_str().expect("file is a word"))
            .display()
            .to_string();
        let mut arguments = vec!["analyze", &path, "--format", "csv", "--stable-branch", "main"];
        if let Some(now) = file["now"].as_str() {
            arguments.extend(["--now", now]);
        }
        if entry["run"].is_string() {
            arguments.extend(["--causes", "at-the-time"]);
        }
        let answer = world.cli.json(&arguments);
        let find = |list: &str, matches: &dyn Fn(&Value) -> bool| {
            answer[list]
                .as_array()
                .into_iter()
                .flatten()
                .find(|entry| matches(entry))
                .cloned()
                .unwrap_or_default()
        };
        let test = find("tests", &|test| test["testName"] == entry["test"]);
        let cause = find("causes", &|cause| {
            cause["run"] == entry["run"] && cause["testName"] == entry["test"]
        });
        let gate = find("gates", &|gate| gate["run"] == entry["run"]);
        let got = [
            ("status", &test["status"]),
            ("cause", &cause["cause"]),
            ("gate", &gate["action"]),
        ];
        let is_wanted = |(key, got): &(&str, &Value)| {
            let has = |list: &Value| list == *got || list.as_array().is_some_and(|list| list.contains(got));
            want.get(*key).is_none_or(has) && !want.get(format!("{key}Not")).is_some_and(has)
        };
        let sentences = [
            ("verdictSays", &test["explanation"]),
            ("causeSays", &cause["explanation"]),
            ("stableSays", &answer["stable"]["explanation"]),
        ];
        let is_said = |(key, got): &(&str, &Value)| {
            want[*key].as_str().is_none_or(|pattern| {
                let pattern = Regex::new(pattern).expect("a regular expression");
                got.as_str().is_some_and(|sentence| pattern.is_match(sentence))
            })
        };
        let is_below = want["flakyBelow"].as_f64().is_none_or(|bound| {
            test["status"] != "flaky" || test["flakeScore"].as_f64().is_some_and(|score| score < bound)
        });
        if !got.iter().all(is_wanted) || !sentences.iter().all(is_said) || !is_below {
            let got = json!({"test": test, "cause": cause, "gate": gate, "stable": answer["stable"]});
            return Err(format!("{}\nwanted {want}\ngot {got}", entry["why"]).into());
        }
        statuses.push(test["status"].clone());
    }
    let is_same = statuses.windows(2).all(|pair| pair[0] == pair[1]);
    match want["sameVerdict"] == true && !is_same {
        true => Err(format!("{}\ngot {statuses:?}", entry["why"]).into()),
        false => Ok(()),
    }
}
