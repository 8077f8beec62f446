//! Histories with only one possible verdict, written run by run.

use serde_json::Value;

use crate::{
    checks::{ProjectChecks, verdicts::Verdicts},
    clock::{DAY, HOUR},
    comparison::Comparison,
    dice::Dice,
    small,
    world::Project,
};

/// The test whose attempts have no duration.
const UNTIMED: &str = "recovered without durations";

/// Title, results on main oldest first, verdict, and the reasons that it may have.
const SCRIPTS: [(&str, &str, &str, &[&str]); 13] = [
    ("always green", "PPPPPPPPPPPPPPPPPPPP", "healthy", &[]),
    (
        "broken for six runs",
        "PPPPPPPPPPPPPPFFFFFF",
        "broken",
        &["consecutive_failures", "failure_rate_broken"],
    ),
    (
        "recovered in three",
        "PPPRPPPPPPRPPPPPRPPP",
        "flaky",
        &["retry_rate"],
    ),
    (
        "broken from the start",
        "FFFFFFFFFFFFFFFFFFFF",
        "broken",
        &["consecutive_failures", "failure_rate_broken"],
    ),
    ("one regression, fixed", "PPPPFFFFFPPPPPPPPPPP", "healthy", &[]),
    (
        "fails again and again",
        "PPFPPPFPFPPPPFPPPPPP",
        "flaky",
        &["failure_rate_flaky", "same_sha_flip", "flip_rate"],
    ),
    ("red in its last run", "PPPPPPPPPPPPPPPPPPPF", "failing", &[]),
    ("seen thrice", "-----------------PPP", "insufficient_data", &[]),
    ("seen five times", "---------------PPPPP", "healthy", &[]),
    ("mostly skipped", "SSSSSSSSSSSSSSSSSSPP", "insufficient_data", &[]),
    (
        "passed and failed on one commit",
        "PPPPPPPPPPPPPPPFPPPP",
        "flaky",
        &["same_sha_flip"],
    ),
    (UNTIMED, "PPRPPPPPRPPPPPPPRPPP", "flaky", &["retry_rate"]),
    ("green after skips", "SSSSSPPPPPPPPPPPPPPP", "healthy", &[]),
];

/// A project with the scripts' runs. The runs 15 and 16 of main, counted from 0, have the same commit.
pub fn project(seed: u64, now: i64) -> Project {
    let mut dice = Dice::new(seed, "scripted");
    let mut project = small::project("Scripted verdicts");
    let fillers: Vec<String> = (0..25).map(|number| format!("filler {number}")).collect();
    for place in 0..20 {
        let mut results: Vec<(&str, char)> = SCRIPTS
            .iter()
            .map(|(title, letters, _, _)| (*title, letters.chars().nth(place).expect("twenty letters")))
            .collect();
        results.extend(fillers.iter().map(|title| (title.as_str(), 'P')));
        let started = now - 12 * DAY + place as i64 * 14 * HOUR;
        let mut run = small::run(&format!("main-{place}"), "main", started, &results, &mut dice);
        for case in run.shards[0]
            .cases
            .iter_mut()
            .filter(|case| case.title == UNTIMED)
        {
            case.executions
                .iter_mut()
                .flatten()
                .for_each(|attempt| attempt.duration = None);
        }
        if place == 16 {
            run.commit = project
                .runs
                .last()
                .and_then(|run: &crate::world::Run| run.commit.clone());
        }
        project.runs.push(run);
        if place % 7 == 3 {
            // A test that fails only on another branch is not broken.
            let results = [("only fails elsewhere", 'F'), ("always green", 'P')];
            let run = small::run(
                &format!("side-{place}"),
                "feature/side",
                started + HOUR,
                &results,
                &mut dice,
            );
            project.runs.push(run);
        }
    }
    project
}

/// Checks the verdicts of the scripts in the status route and in the flaky list.
pub fn verdicts(comparison: &mut Comparison, checks: &ProjectChecks<'_>, verdicts: &Verdicts) {
    for (title, letters, status, reasons) in SCRIPTS {
        let verdict = verdict_of(verdicts, title);
        comparison.same(
            &format!("{title:?} ({letters}): status"),
            &verdict["status"].as_str(),
            &Some(status),
        );
        if !reasons.is_empty() {
            let reason = verdict["statusReason"].as_str().unwrap_or_default();
            comparison.holds(reasons.contains(&reason), || {
                format!("{title:?}: statusReason {reason:?}, expected {reasons:?}")
            });
        }
    }
    let retried = verdict_of(verdicts, "recovered in three");
    comparison.holds(
        retried["labels"]
            .as_array()
            .is_some_and(|labels| labels.contains(&Value::from("retries"))),
        || format!("labels of a recovered test: {}", retried["labels"]),
    );
    let side = verdict_of(verdicts, "only fails elsewhere");
    comparison.holds(side["status"] != "broken", || {
        format!("broken without a stable run: {side}")
    });
    let filler = verdict_of(verdicts, "filler 3");
    comparison.same("a filler", &filler["status"].as_str(), &Some("healthy"));
    let list = checks.get(
        comparison,
        &format!("{}?status=broken&perPage=50", checks.path(&["flaky"])),
    );
    comparison.same("broken tests", &list["page"]["total"].as_i64(), &Some(2));
}

fn verdict_of(verdicts: &Verdicts, title: &str) -> Value {
    let name = format!("chromium > small.spec.ts > small > {title}");
    verdicts
        .iter()
        .find(|((found, _), _)| *found == name)
        .map_or(Value::Null, |(_, verdict)| verdict.clone())
}

/// Twelve passed runs with an outage between them, in which nearly everything fails.
pub fn outage(seed: u64, now: i64) -> Project {
    let mut dice = Dice::new(seed, "outage");
    let mut project = small::project("Outage");
    let titles: Vec<String> = (0..40).map(|number| format!("test {number}")).collect();
    for place in 0..13 {
        let results: Vec<(&str, char)> = titles
            .iter()
            .enumerate()
            .map(|(number, title)| {
                (
                    title.as_str(),
                    if place == 6 && number % 8 != 0 { 'F' } else { 'P' },
                )
            })
            .collect();
        let started = now - 10 * DAY + place * 16 * HOUR;
        project.runs.push(small::run(
            &format!("run-{place}"),
            "main",
            started,
            &results,
            &mut dice,
        ));
    }
    project
}

/// No test is flaky because of a single outage.
pub fn after_the_outage(comparison: &mut Comparison, verdicts: &Verdicts) {
    for ((name, _), verdict) in verdicts {
        comparison.same(
            &format!("{name:?} after an outage"),
            &verdict["status"].as_str(),
            &Some("healthy"),
        );
    }
    comparison.same("tests after an outage", &verdicts.len(), &40);
}
