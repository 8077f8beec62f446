//! The cases of `testdata/cases`: each folder is a test of its name. Its README.md says how to add one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::disallowed_methods,
    reason = "tests end by panics and may read the clock"
)]

mod agreement;
mod conditions;
mod histories;
mod outcome;
mod steps;

use std::{fs, path::Path, sync::Arc, sync::LazyLock};

use assay_testkit::ServedWorld;
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;

fn main() {
    // One server for all cases, if one needs it. Each case has a project of its own.
    let world = Arc::new(LazyLock::new(|| ServedWorld::on_one_address(&[])));
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/cases");
    let mut trials = Vec::new();
    for area in ["reports", "histories"] {
        for entry in fs::read_dir(cases.join(area)).expect("the folder of the cases") {
            let folder: Arc<Path> = entry.expect("an entry of the folder").path().into();
            let world = Arc::clone(&world);
            let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
            trials.push(Trial::test(format!("{area}/{name}"), move || match area {
                "reports" => holds(&world, &folder),
                _ => histories::holds(&world, &folder),
            }));
        }
    }
    trials.sort_by(|one, other| one.name().cmp(other.name()));
    let conclusion = libtest_mimic::run(&Arguments::from_args(), trials);
    // Nothing is dropped at the exit, and the server would go on.
    drop(world);
    conclusion.exit();
}

/// Does the steps of a case, and checks each condition.
fn holds(world: &ServedWorld, case: &Path) -> Result<(), Failed> {
    let expected = expected(case);
    let outcome = steps::run(world, case, &expected);
    let want = expected["want"].as_object().expect("want is an object");
    let missed = want
        .iter()
        .filter(|(condition, value)| !conditions::holds(condition, value, &outcome))
        .map(|(condition, value)| format!("{condition}: {value}"));
    let missed: Vec<String> = missed
        .chain(agreement::contradictions(&outcome, &expected))
        .collect();
    match missed.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "{}\nwanted {}\ngot {outcome}",
            expected["why"],
            missed.join("\n       ")
        )
        .into()),
    }
}

/// `expected.json` of a case.
fn expected(case: &Path) -> Value {
    let path = case.join("expected.json");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let expected: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(
        expected["why"].is_string(),
        "{}: no sentence `why`",
        path.display()
    );
    expected
}
