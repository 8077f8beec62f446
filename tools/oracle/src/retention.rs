//! The visible results of a plan, with a change of plans and a pruning.

use serde_json::Value;

use crate::{
    checks::refused,
    clock::{self, DAY, HOUR},
    comparison::Comparison,
    dice::Dice,
    http::{Client, escape},
    importer, playwright, small,
    stack::Stack,
    world::{Organization, Plan, Project},
};

/// Ages in days, each distant from every limit.
const AGES: [i64; 14] = [1, 6, 8, 13, 15, 29, 31, 45, 59, 61, 80, 89, 91, 120];

/// A test that was in another file eighty days ago.
const MOVED: &str = "moved";
/// A test of eighty days ago with its own error. The length of its title selects the word.
const LOST: &str = "lost its way";

/// Runs all checks in a separate organization, then prunes every organization.
pub fn retention(comparison: &mut Comparison, stack: &Stack, now: i64) {
    let mut organization = Organization {
        id: String::new(),
        name: "Archive".to_owned(),
        plan: Plan::Pro,
        key: String::new(),
        key_id: String::new(),
        projects: Vec::new(),
    };
    importer::create_organization(stack, &mut organization, comparison);
    let mut project = small::project("Archive");
    importer::create_project(stack, &organization.id, &mut project, comparison);
    import_reports(comparison, stack, &mut project, now);
    let client = Client::new(stack.address(), &organization.key);
    check_visible(comparison, &client, &project, Plan::Pro, 90);
    let fingerprint = check_old_error(comparison, &client, &project, None);
    set_plan(stack, &organization, Plan::Standard);
    let fingerprint = check_old_error(comparison, &client, &project, fingerprint);
    check_visible(comparison, &client, &project, Plan::Standard, 60);
    let counted = stack.command(&["prune", "--dry-run"]);
    comparison.same("assay-admin prune --dry-run", &counted.status, &0);
    set_plan(stack, &organization, Plan::Pro);
    check_visible(comparison, &client, &project, Plan::Pro, 90);
    set_plan(stack, &organization, Plan::Standard);
    comparison.same("assay-admin prune", &stack.command(&["prune"]).status, &0);
    check_visible(comparison, &client, &project, Plan::Standard, 60);
    set_plan(stack, &organization, Plan::Pro);
    check_visible(comparison, &client, &project, Plan::Pro, 60);
    check_old_error(comparison, &client, &project, fingerprint);
}

fn set_plan(stack: &Stack, organization: &Organization, plan: Plan) {
    stack.run_json(&["org", "set-plan", &organization.id, plan.name()]);
    std::thread::sleep(std::time::Duration::from_secs(1));
}

/// Reports without times. `--started-at` and `--duration-ms` provide them.
fn import_reports(comparison: &mut Comparison, stack: &Stack, project: &mut Project, now: i64) {
    let mut dice = Dice::new(17, "retention");
    for age in AGES {
        let started = now - age * DAY - HOUR;
        let only = format!("only {age} days ago");
        let mut run = small::run(
            &format!("age-{age}"),
            &format!("branch-{age:03}"),
            started,
            &[
                ("stays", 'R'),
                (&only, 'F'),
                (MOVED, if age == 1 || age == 80 { 'P' } else { '-' }),
                (LOST, if age == 80 { 'F' } else { '-' }),
            ],
            &mut dice,
        );
        let mut report = playwright::report(&run, &run.shards[0], false);
        if age == 80 {
            for spec in report["suites"][0]["suites"][0]["specs"].as_array_mut().unwrap() {
                if spec["title"] == MOVED {
                    spec["file"] = Value::from("older/small.spec.ts");
                }
            }
        }
        report.as_object_mut().unwrap().remove("stats");
        strip_times(&mut report);
        let more = [
            "--started-at".to_owned(),
            clock::text(started),
            "--duration-ms".to_owned(),
            "90000".to_owned(),
        ];
        let output = importer::send_report(stack, project, &run, 0, &report, &more);
        comparison.same(
            &format!("an import of {age} days ago: {}", output.err),
            &output.status,
            &0,
        );
        let imported: Value = serde_json::from_str(&output.out).unwrap_or_default();
        run.id = imported["runId"].as_str().unwrap_or_default().to_owned();
        run.number = imported["runNumber"].as_i64().unwrap_or_default();
        run.shards[0].duration = 90_000;
        project.runs.push(run);
    }
}

fn strip_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("startTime");
            fields.values_mut().for_each(strip_times);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_times),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Every route shows exactly the runs of the last `visible_days` days.
fn check_visible(
    comparison: &mut Comparison,
    client: &Client,
    project: &Project,
    plan: Plan,
    visible_days: i64,
) {
    let project_path = format!("/projects/{}", escape(&project.id));
    let what = format!("{plan:?}, {visible_days} days");
    let settings = client.get(&format!("{project_path}/settings")).json_or_null();
    comparison.same(
        &format!("{what}: retentionDays"),
        &settings["settings"]["retentionDays"].as_i64(),
        &Some(plan.retention()),
    );
    let stays = escape("chromium > small.spec.ts > small > stays");
    for days in [7, 30, 90] {
        let lists = [
            (format!("{project_path}/runs?perPage=50&days={days}"), "/runs"),
            (
                format!("{project_path}/tests/{stays}?days={days}"),
                "/occurrences",
            ),
        ];
        for (path, place) in lists {
            let answer = client.get(&path);
            if days > plan.retention() {
                refused(comparison, &path, &answer, 400, "invalid_period");
                continue;
            }
            let wanted = AGES.iter().filter(|age| **age < days.min(visible_days)).count();
            let got = answer
                .json_or_null()
                .pointer(place)
                .and_then(Value::as_array)
                .map_or(usize::MAX, Vec::len);
            comparison.same(&format!("{what}: GET {path}"), &got, &wanted);
        }
    }
    let mut branches = Vec::new();
    for (age, run) in AGES.iter().zip(&project.runs) {
        let visible = *age < visible_days;
        if visible {
            branches.push(Value::String(run.branch.clone().unwrap_or_default()));
        }
        let only = escape(&format!("chromium > small.spec.ts > small > only {age} days ago"));
        for (path, code) in [
            (format!("{project_path}/runs/{}", run.id), "run_not_found"),
            (
                format!("{project_path}/runs/{}/tests/{only}", run.id),
                "run_not_found",
            ),
            (format!("{project_path}/tests/{only}"), "test_not_found"),
            (format!("{project_path}/tests/{only}/status"), "test_not_found"),
        ] {
            let answer = client.get(&path);
            if visible {
                comparison.same(
                    &format!("{what}: GET {path} of {age} days ago"),
                    &answer.status,
                    &200,
                );
            } else {
                refused(
                    comparison,
                    &format!("{path} ({what}, {age} days ago)"),
                    &answer,
                    404,
                    code,
                );
            }
        }
        if visible {
            let run_detail = client
                .get(&format!("{project_path}/runs/{}", run.id))
                .json_or_null();
            comparison.same(
                &format!("{what}: times of {age} days ago"),
                &(
                    run_detail["run"]["startedAt"].as_str(),
                    run_detail["run"]["durationMs"].as_i64(),
                ),
                &(Some(clock::text(run.started()).as_str()), Some(90_000)),
            );
            let verdict = client
                .get(&format!("{project_path}/tests/{only}/status"))
                .json_or_null();
            comparison.same(
                &format!("{what}: verdict of {age} days ago"),
                &verdict["awaitingFirstWrite"],
                &Value::Bool(*age >= 14),
            );
        }
    }
    branches.sort_by_key(Value::to_string);
    let imported = client.get(&format!("{project_path}/branches")).json_or_null();
    comparison.matches(
        &format!("{what}: branches"),
        &imported["branches"],
        &Value::Array(branches),
    );
    first_seen(comparison, client, project, &project_path, &what, visible_days);
    let path = format!(
        "{project_path}/tests/{}",
        escape(&format!("chromium > small.spec.ts > small > {MOVED}"))
    );
    for path in [path.clone(), format!("{path}/status")] {
        let answer = client.get(&path);
        if visible_days > 80 {
            refused(
                comparison,
                &format!("{path} ({what})"),
                &answer,
                400,
                "ambiguous_test",
            );
        } else {
            // The other file is past the plan's retention.
            comparison.same(
                &format!("{what}: GET {path}"),
                &answer.json_or_null()["test"]["filePath"],
                &Value::from("tests/small.spec.ts"),
            );
        }
    }
}

/// Checks the signature that occurred only eighty days ago. Without a known fingerprint it must be visible, and its
/// fingerprint is returned. With one, the signature must be hidden.
fn check_old_error(
    comparison: &mut Comparison,
    client: &Client,
    project: &Project,
    known: Option<String>,
) -> Option<String> {
    let project_path = format!("/projects/{}", escape(&project.id));
    match known {
        None => {
            let word = crate::texts::WORDS[LOST.len() % 8];
            let list = client
                .get(&format!("{project_path}/errors?days=90&search={word}"))
                .json_or_null();
            let fingerprint = list["errors"][0]["fingerprint"].as_str().map(str::to_owned);
            let path = format!(
                "{project_path}/errors/{}?days=7",
                fingerprint.clone().unwrap_or_default()
            );
            let answer = client.get(&path).json_or_null();
            comparison.same(
                &format!("GET {path}: windowEmpty"),
                &answer["windowEmpty"],
                &Value::Bool(true),
            );
            comparison.same(
                &format!("GET {path}: occurrenceCount"),
                &answer["signature"]["occurrenceCount"],
                &Value::from(3),
            );
            comparison.same(
                &format!("GET {path}: isNew"),
                &answer["signature"]["isNew"],
                &Value::Bool(false),
            );
            fingerprint
        }
        Some(fingerprint) => {
            let path = format!("{project_path}/errors/{fingerprint}");
            refused(comparison, &path, &client.get(&path), 404, "error_not_found");
            Some(fingerprint)
        }
    }
}

/// A signature's first occurrence is the earliest visible one, in any period.
fn first_seen(
    comparison: &mut Comparison,
    client: &Client,
    project: &Project,
    project_path: &str,
    what: &str,
    visible_days: i64,
) {
    let oldest = AGES
        .iter()
        .zip(&project.runs)
        .filter(|(age, _)| **age < visible_days)
        .map(|(_, run)| run.started())
        .min();
    let word = crate::texts::WORDS["stays".len() % 8];
    let list = client
        .get(&format!("{project_path}/errors?days=7&search={word}"))
        .json_or_null();
    let entry = &list["errors"][0];
    let oldest = oldest.map(clock::text);
    comparison.same(
        &format!("{what}: firstSeen"),
        &entry["firstSeen"].as_str().map(str::to_owned),
        &oldest,
    );
    comparison.same(&format!("{what}: isNew"), &entry["isNew"], &Value::Bool(false));
    let fingerprint = entry["fingerprint"].as_str().unwrap_or_default();
    let detail = client
        .get(&format!("{project_path}/errors/{fingerprint}?days=7"))
        .json_or_null();
    comparison.same(
        &format!("{what}: firstSeen of the signature"),
        &detail["signature"]["firstSeen"].as_str().map(str::to_owned),
        &oldest,
    );
}
