//! The conditions of `expected.json`. testdata/cases/README.md explains each.

use regex::Regex;
use serde_json::{Value, json};

use crate::outcome::{Outcome, Run, RunTest};

/// Whether a condition holds.
pub(crate) fn holds(condition: &str, want: &Value, outcome: &Outcome<'_>) -> bool {
    let newest = outcome.runs.last();
    let tests = || outcome.runs.iter().flat_map(|run| &run.tests);
    let attempts_of = |name: &str| {
        let named = tests().filter(|test| matches(name, &test.name));
        named
            .flat_map(|test| test.attempts.clone())
            .collect::<Vec<String>>()
    };
    let of_newest = |holds: &dyn Fn(&Run) -> bool| newest.is_some_and(holds);
    let last = outcome.answers.last().expect("a case has a step");
    match condition {
        "anyOf" => list(want).iter().any(|all| {
            let mut all = all.as_object().expect("an object of conditions").iter();
            all.all(|(condition, want)| holds(condition, want, outcome))
        }),
        "refused" => last.succeeded != (want == true),
        "says" => matches(&format!("re:{}", word(want)), &last.errors),
        "warned" => {
            let mut answers = outcome.answers.iter();
            let has_warned = answers.any(|answer| {
                !list(&answer.json["warnings"]).is_empty() || answer.errors.to_lowercase().contains("warning")
            });
            has_warned == (want == true)
        }
        "analyzedRuns" => last.json["runs"] == *want,
        "noVerdict" => {
            let judged = list(&last.json["tests"]);
            !judged.is_empty() && !judged.iter().any(|test| list(want).contains(&test["status"]))
        }
        "verdicts" => list(want).iter().all(|want| {
            let named = list(&last.json["tests"])
                .iter()
                .filter(|test| matches(word(&want["test"]), word(&test["testName"])));
            let statuses: Vec<&Value> = named.map(|test| &test["status"]).collect();
            statuses.contains(&&want["status"])
                && want["tests"]
                    .as_u64()
                    .is_none_or(|count| count == statuses.len() as u64)
        }),
        "testsPerRun" => json!(outcome.runs.iter().map(|run| run.tests.len()).collect::<Vec<_>>()) == *want,
        "noFailedAttempt" => !tests().any(|test| {
            test.attempts
                .iter()
                .any(|status| status == "failed" || status == "timedOut")
        }),
        "someRun" => outcome
            .runs
            .iter()
            .any(|run| is_one_of(want, &run.detail["run"]["status"])),
        "tests" => of_newest(&|run| {
            let mut rest: Vec<&RunTest> = run.tests.iter().collect();
            list(want).iter().all(|want| {
                let place = rest.iter().position(|test| fits(want, test));
                place.map(|place| rest.remove(place)).is_some()
            }) && rest.is_empty()
        }),
        "run" => of_newest(&|run| is_one_of(want, &run.detail["run"]["status"])),
        "runErrors" => of_newest(&|run| json!(list(&run.detail["run"]["reportErrors"]).len()) == *want),
        "runToday" => of_newest(&|run| {
            let now = time::OffsetDateTime::now_utc();
            let format = &time::format_description::well_known::Rfc3339;
            let start =
                time::OffsetDateTime::parse(word(&run.detail["run"]["startedAt"]), format).expect("a time");
            ((now - start).abs() < time::Duration::DAY) == (want == true)
        }),
        "incomplete" => of_newest(&|run| run.failures["incomplete"].is_null() != (want == true)),
        "stored" => list(want)
            .iter()
            .all(|name| tests().any(|test| matches(word(name), &test.name))),
        "failed" | "passed" => list(want)
            .iter()
            .all(|name| attempts_of(word(name)).iter().any(|status| status == condition)),
        "notPassed" => list(want)
            .iter()
            .all(|name| !attempts_of(word(name)).iter().any(|status| status == "passed")),
        "oneHistory" => of_newest(&|run| {
            let is_whole = |test: &RunTest| {
                let history = outcome.history(test);
                outcome
                    .runs
                    .iter()
                    .all(|run| history.iter().any(|(id, _)| *id == run.id))
            };
            (outcome.runs.len() > 1 && !run.tests.is_empty() && run.tests.iter().all(is_whole))
                == (want == true)
        }),
        "history" => of_newest(&|run| {
            list(want).iter().all(|want| {
                let named: Vec<&RunTest> = run
                    .tests
                    .iter()
                    .filter(|test| matches(word(&want["test"]), &test.name))
                    .collect();
                let [test] = named.as_slice() else { return false };
                let statuses: Vec<String> = outcome
                    .history(test)
                    .into_iter()
                    .map(|(_, status)| status)
                    .collect();
                json!(statuses) == want["statuses"]
            })
        }),
        "gateOfRun" => of_newest(&|run| gate(outcome, run) == want.as_i64()),
        "comment" => of_newest(&|run| comment(outcome, run, want)),
        "split" => split(outcome, want),
        "quarantine" => quarantine(outcome, want),
        other => panic!("unknown condition {other:?}"),
    }
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Whether a name is this one, or after `re:` has a match of the regular expression.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_prefix("re:") {
        Some(pattern) => Regex::new(pattern).expect("a regular expression").is_match(name),
        None => pattern == name,
    }
}

/// A list of values means any of them.
fn is_one_of(want: &Value, got: &Value) -> bool {
    want == got || list(want).contains(got)
}

fn fits(want: &Value, test: &RunTest) -> bool {
    let attempts = &want["attempts"];
    let executions = want.get("executions").cloned().unwrap_or(json!(1));
    matches(word(&want["name"]), &test.name)
        && is_one_of(&want["status"], &json!(test.status))
        && (attempts.is_null() || is_one_of(attempts, &json!(test.attempts)))
        && is_one_of(&executions, &json!(test.executions))
        && (want["file"] == "*" || is_one_of(&want["file"], &test.file))
        && want
            .get("duration")
            .is_none_or(|duration| *duration == test.duration)
}

/// Whether a text has a match of each expression of `has`, and none of `hasNot`.
fn says(want: &Value, text: &str) -> bool {
    let has = |pattern: &Value| matches(&format!("re:{}", word(pattern)), text);
    list(&want["has"]).iter().all(has) && !list(&want["hasNot"]).iter().any(has)
}

/// The exit status of `assay gate` for a run.
pub(crate) fn gate(outcome: &Outcome<'_>, run: &Run) -> Option<i64> {
    let mut command = outcome
        .world
        .cli
        .command(&["gate", "--run", &run.id, "--project", &outcome.project]);
    command.current_dir(outcome.folder.path());
    command.env_remove("ASSAY_DATABASE_URL");
    command.env(
        "ASSAY_API_URL",
        format!("{}/api/v1", outcome.world.server.client().base()),
    );
    let done = command
        .env("ASSAY_READ_KEY", &outcome.world.key)
        .output()
        .expect("the program starts");
    done.status.code().map(i64::from)
}

fn comment(outcome: &Outcome<'_>, run: &Run, want: &Value) -> bool {
    let answer = comment_of(outcome, run);
    says(want, word(&answer["markdown"])) && want.get("clean").is_none_or(|clean| *clean == answer["clean"])
}

/// The comment about a run.
pub(crate) fn comment_of(outcome: &Outcome<'_>, run: &Run) -> Value {
    let key = outcome
        .world
        .cli
        .json(&["key", "create-ingest", "--project", &outcome.project]);
    let authorization = format!("Bearer {}", word(&key["key"]));
    let headers = [
        ("Authorization", authorization.as_str()),
        ("Content-Type", "application/json"),
    ];
    let body = json!({"runId": run.id}).to_string();
    let ingest = outcome.world.server.ingest();
    ingest
        .post("/ingest/v1/comments", &headers, body.as_bytes())
        .json()
}

/// Whether the shards of a list have each unit once.
fn split(outcome: &Outcome<'_>, want: &Value) -> bool {
    let total = want["total"].as_u64().expect("total is a number");
    let (mut units, mut all) = (0, String::new());
    for index in 1..=total {
        let list_file = outcome
            .folder
            .path()
            .join(word(&want["list"]))
            .display()
            .to_string();
        let (index, total) = (index.to_string(), total.to_string());
        let arguments = [
            "split",
            "--index",
            &index,
            "--total",
            &total,
            "--runner",
            word(&want["runner"]),
            "--evenly",
            &list_file,
            "--json",
        ];
        let done = outcome.world.cli.run(&arguments);
        if !done.status.success() {
            return want["orRefused"] == true;
        }
        let answer: Value = serde_json::from_slice(&done.stdout).expect("a JSON object");
        units += answer["units"].as_u64().expect("units is a number");
        all.push_str(word(&answer["list"]));
        all.push('\n');
    }
    let wanted = list(&want["units"]);
    let count = want["count"].as_u64().unwrap_or(wanted.len() as u64);
    let times = want["times"].as_u64().unwrap_or(1) as usize;
    units == count && wanted.iter().all(|unit| all.matches(word(unit)).count() == times)
}

fn quarantine(outcome: &Outcome<'_>, want: &Value) -> bool {
    let history = outcome
        .folder
        .path()
        .join(word(&want["history"]))
        .display()
        .to_string();
    let format = want["format"].as_str().unwrap_or("txt");
    let mut arguments = vec!["quarantine", "--history", &history, "--format", format];
    arguments.extend(list(&want["flags"]).iter().map(word));
    let done = outcome.world.cli.run(&arguments);
    done.status.success() && says(want, &String::from_utf8_lossy(&done.stdout))
}
