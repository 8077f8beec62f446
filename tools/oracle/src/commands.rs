//! The command line with invalid input.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    clock::{self, HOUR},
    comparison::Comparison,
    dice::Dice,
    http::{Client, escape},
    importer, playwright, small,
    stack::Stack,
    world::{CHECKOUT, Organization},
};

/// Invalid usage, invalid reports, and standard input.
pub fn commands(comparison: &mut Comparison, stack: &Stack, organization: &Organization, now: i64) {
    let project = &organization.projects[0].id;
    let mut dice = Dice::new(19, "commands");
    let run = small::run(
        "stdin",
        "main",
        now - 90 * 24 * HOUR,
        &[("by standard input", 'P')],
        &mut dice,
    );
    let report = playwright::report(&run, &run.shards[0], false).to_string();
    let recent = small::run("refused", "main", now - HOUR, &[("refused", 'P')], &mut dice);
    let refused = playwright::report(&recent, &recent.shards[0], false).to_string();
    let client = Client::new(stack.address(), &organization.key);
    let runs = format!("/projects/{}/runs", escape(project));
    let before = client.get(&runs).json_or_null()["total"].clone();
    let good = stack.file("good.json", refused.as_bytes());
    let cut = stack.file("cut.json", &report.as_bytes()[..report.len() / 3]);
    let empty = stack.file("empty.json", b"");
    let noise = stack.file("noise.bin", &[0, 255, 1, 254, b'{', b'"', 0]);
    let list = stack.file("list.json", b"[1,2,3]");
    let absent = "01920000-0000-7000-8000-000000000000";
    for (arguments, status) in [
        (vec!["import", "--project", absent, &good], 1),
        (vec!["import", "--project", "nonsense", &good], 2),
        (vec!["import", "--project", project, "/no/such/file.json"], 1),
        (vec!["import", "--project", project, &empty], 1),
        (vec!["import", "--project", project, &noise], 1),
        (vec!["import", "--project", project, &list], 1),
        (
            vec!["import", "--project", project, "--format", "nonsense", &good],
            2,
        ),
        (vec!["import", "--project", project, "--shard", "3/2", &good], 2),
        (vec!["import", "--project", project, "--shard", "0/2", &good], 2),
        (
            vec!["import", "--project", project, "--started-at", "yesterday", &good],
            2,
        ),
        (vec!["import", "--project", project, "--pr", "x", &good], 2),
        (vec!["import", "--project", project, "--ci", "nonsense", &good], 2),
        (vec!["import", &good], 2),
        (vec!["org", "create", "X", "--plan", "gold"], 2),
        (vec!["org", "set-plan", absent, "pro"], 1),
        (vec!["project", "create", "--org", absent, "X"], 1),
        (vec!["project", "set", project, "--chat-events", "nonsense"], 2),
        (vec!["key", "create", "--org", absent, "--days", "30"], 1),
        (vec!["key", "revoke", absent], 1),
        (vec!["nonsense"], 2),
        (vec![], 2),
    ] {
        let output = stack.command(&arguments);
        // A malformed id may count as invalid usage or as an unknown id.
        let fine = output.status == status || (arguments.contains(&"nonsense") && output.status == 1);
        comparison.holds(fine, || {
            format!(
                "assay {arguments:?}: expected {status}, got {} {}",
                output.status, output.err
            )
        });
        comparison.holds(!output.err.is_empty() && !output.err.contains("panicked"), || {
            format!("assay {arguments:?} printed {:?}", output.err)
        });
    }
    let _cut_may_be_imported_in_part = stack.command(&[
        "import",
        "--project",
        project,
        "--started-at",
        "2001-01-01T00:00:00Z",
        &cut,
    ]);
    let after = client.get(&runs).json_or_null()["total"].clone();
    comparison.same("runs after imports that failed", &after, &before);
    let arguments = ["import", "--json", "--project", project, "--format", "auto", "-"].map(str::to_owned);
    let wrapped = format!("\u{feff}some tool said this first\n{report}\n");
    let output = stack.assay(&arguments, &BTreeMap::new(), wrapped.as_bytes());
    let answer: Value = serde_json::from_str(&output.out).unwrap_or_default();
    comparison.same(
        &format!("an import of standard input: {}", output.err),
        &output.status,
        &0,
    );
    comparison.same("its tests", &answer["counts"]["total"].as_i64(), &Some(1));
    let start = now - 26 * HOUR;
    let with_offset = clock::text(start + 2 * HOUR).replace('Z', "+02:00");
    let answer = stack.run_json(&[
        "import",
        "--project",
        project,
        "--branch",
        "offset",
        "--run-key",
        "offset",
        "--started-at",
        &with_offset,
        &good,
    ]);
    let detail = client
        .get(&format!(
            "{runs}/{}",
            answer["runId"].as_str().unwrap_or_default()
        ))
        .json_or_null();
    let started = detail["run"]["startedAt"].as_str().map(str::to_owned);
    comparison.same("--started-at with an offset", &started, &Some(clock::text(start)));
    for arguments in [
        vec!["org", "list"],
        vec!["project", "list", "--org", &organization.id],
        vec!["migrate"],
    ] {
        let output = stack.command(&arguments);
        let json = serde_json::from_str::<Value>(&output.out);
        comparison.holds(output.status == 0 && json.is_ok(), || {
            format!("assay {arguments:?}: {} {}", output.status, output.err)
        });
    }
}

/// `assay-admin project set` takes effect immediately.
pub fn configuration(comparison: &mut Comparison, stack: &Stack, organization: &Organization) {
    let project = stack.run_json(&["project", "create", "--org", &organization.id, "Configured"]);
    let id = project["id"].as_str().unwrap_or_default();
    comparison.same(
        "the default stable branch",
        &project["stableBranch"].as_str(),
        &Some("main"),
    );
    let client = Client::new(stack.address(), &organization.key);
    let path = format!("/projects/{}/settings", escape(id));
    for (arguments, field, expected) in [
        (
            vec!["--stable-branch", "über/main"],
            "/settings/stableBranch",
            json!("über/main"),
        ),
        (
            vec!["--chat-events", "test_flaky,run_recovered"],
            "/settings/chat/configured",
            json!(true),
        ),
        (
            vec!["--pr-comments", "on"],
            "/settings/repohost/prCommentsEnabled",
            json!(true),
        ),
        (
            vec!["--no-chat"],
            "/settings/chat",
            json!({"configured": false, "events": []}),
        ),
        (
            vec!["--pr-comments", "off"],
            "/settings/repohost/prCommentsEnabled",
            json!(false),
        ),
    ] {
        let mut all = vec!["project", "set", id];
        all.extend(arguments);
        let output = stack.command(&all);
        comparison.same(&format!("assay {all:?}: {}", output.err), &output.status, &0);
        stack.notify_once();
        let answer = client.get(&path).json_or_null();
        comparison.same(
            &format!("assay {all:?}"),
            &answer.pointer(field).cloned().unwrap_or_default(),
            &expected,
        );
    }
}

/// Reports of unusual forms, and a checkout from a flag.
pub fn unusual_reports(comparison: &mut Comparison, stack: &Stack, organization: &Organization, now: i64) {
    let mut project = small::project("Shapes");
    importer::create_project(stack, &organization.id, &mut project, comparison);
    let client = Client::new(stack.address(), &organization.key);
    let project_path = format!("/projects/{}", escape(&project.id));
    let mut dice = Dice::new(29, "shapes");
    let import = |key: &str, report: &Value, more: &[&str]| -> Value {
        let file = stack.file("shape.json", report.to_string().as_bytes());
        let mut arguments = vec![
            "import",
            "--project",
            &project.id,
            "--run-key",
            key,
            "--branch",
            "main",
        ];
        arguments.extend(more);
        arguments.push(&file);
        let answer = stack.run_json(&arguments);
        client
            .get(&format!(
                "{project_path}/runs/{}",
                answer["runId"].as_str().unwrap_or_default()
            ))
            .json_or_null()
    };
    let mut run = small::run("rooted", "main", now - 3 * HOUR, &[("a", 'F')], &mut dice);
    let detail = import(
        "rooted",
        &playwright::report(&run, &run.shards[0], false),
        &["--root", CHECKOUT],
    );
    comparison.same(
        "--root: filePath",
        &detail["tests"][0]["filePath"].as_str(),
        &Some("tests/small.spec.ts"),
    );
    let path = format!(
        "{project_path}/runs/{}/tests/{}",
        detail["run"]["id"].as_str().unwrap_or_default(),
        escape(detail["tests"][0]["testName"].as_str().unwrap_or_default())
    );
    let attempts = client.get(&path).json_or_null();
    let place = &attempts["attempts"][0]["errors"][0]["location"]["file"];
    comparison.same(
        "--root: location.file",
        &place.as_str(),
        &Some("tests/small.spec.ts"),
    );
    // A file that did not load fails its run without any test.
    run.shards[0].cases.clear();
    run.shards[0].errors = vec!["Error: Cannot find module './x'".to_owned()];
    let detail = import("broken", &playwright::report(&run, &run.shards[0], false), &[]);
    comparison.matches(
        "a run that did not load",
        &detail,
        &json!({
            "run": {"status": "failed"},
            "counts": {"total": 0, "passed": 0, "failed": 0, "skipped": 0, "recovered": 0},
            "tests": [],
        }),
    );
    let failed = client
        .get(&format!("{project_path}/runs?status=failed"))
        .json_or_null();
    comparison.same("failed runs", &failed["total"].as_i64(), &Some(2));
    // JavaScript cuts a text between the halves of an emoji, and JSON contains the remaining half.
    let cut = small::run(
        "cut",
        "main",
        now - 3 * HOUR,
        &[("half an emoji CUT", 'P')],
        &mut dice,
    );
    let text = playwright::report(&cut, &cut.shards[0], false)
        .to_string()
        .replace("CUT", "\\ud83d");
    let file = stack.file("cut.json", text.as_bytes());
    let answer = stack.run_json(&["import", "--project", &project.id, "--run-key", "cut", &file]);
    comparison.same(
        "a report with half an emoji",
        &answer["counts"]["passed"].as_i64(),
        &Some(1),
    );
    // Flags take precedence over the report.
    run.expected = Some(4);
    run.shards[0].errors.clear();
    let detail = import(
        "flagged",
        &playwright::report(&run, &run.shards[0], true),
        &["--shard", "2/3"],
    );
    comparison.matches(
        "--shard before config.shard",
        &detail["run"],
        &json!({"status": "incomplete", "shards": {"expected": 3, "received": [{"index": 2}]}}),
    );
}

/// A new stable branch affects verdicts immediately.
pub fn stable_branch(comparison: &mut Comparison, stack: &Stack, organization: &Organization, now: i64) {
    let mut project = small::project("Branches");
    importer::create_project(stack, &organization.id, &mut project, comparison);
    let mut dice = Dice::new(31, "branches");
    for place in 0..16 {
        let (branch, letter) = if place % 2 == 0 {
            ("main", 'P')
        } else {
            ("release", 'F')
        };
        let started = now - (40 - place) * HOUR;
        let run = small::run(
            &format!("b-{place}"),
            branch,
            started,
            &[("splits", letter), ("holds", 'P')],
            &mut dice,
        );
        importer::send(stack, &project, &run, 0);
    }
    let client = Client::new(stack.address(), &organization.key);
    let project_path = format!("/projects/{}", escape(&project.id));
    let path = format!(
        "{project_path}/tests/{}/status",
        escape("chromium > small.spec.ts > small > splits")
    );
    for (branch, broken) in [("main", false), ("release", true), ("main", false)] {
        stack.run_json(&["project", "set", &project.id, "--stable-branch", branch]);
        let stored = client.get(&path).json_or_null();
        comparison.same(
            &format!("broken on {branch}, stored"),
            &(stored["status"] == "broken"),
            &broken,
        );
        let list = client
            .get(&format!("{project_path}/flaky?status=broken"))
            .json_or_null();
        comparison.same(
            &format!("broken on {branch}, live"),
            &(list["page"]["total"] == 1),
            &broken,
        );
        let runs = client.get(&format!("{project_path}/runs")).json_or_null();
        comparison.same(
            "stableBranch of the runs list",
            &runs["stableBranch"].as_str(),
            &Some(branch),
        );
    }
}
