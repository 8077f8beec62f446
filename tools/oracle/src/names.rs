//! Test names that are difficult for routers, and names that several files share.

use serde_json::{Value, json};

use crate::{
    checks::refused,
    clock::{self, DAY, HOUR},
    comparison::Comparison,
    dice::Dice,
    http::{Client, escape},
    importer, playwright, small,
    stack::Stack,
    world::{Organization, Project},
};

/// Runs all checks in a separate project.
pub fn names(comparison: &mut Comparison, stack: &Stack, organization: &Organization, now: i64) {
    let mut project = small::project("Names \u{1F6D2} / \"%2F\"");
    importer::create_project(stack, &organization.id, &mut project, comparison);
    let client = Client::new(stack.address(), &organization.key);
    check_unusual_names(comparison, stack, &client, &project, now);
    shared(comparison, stack, &client, &project, now);
}

fn every_name() -> Vec<String> {
    let mut names: Vec<String> = [
        "..",
        ".",
        "...",
        "a/b",
        "/",
        "//",
        "/lead",
        "trail/",
        "a//b",
        "../../etc/passwd",
        "%2F",
        "%",
        "%%",
        "100%",
        "%00",
        "%FF",
        "%zz",
        "status",
        "x/status",
        "status/status",
        "tests",
        "a b+c",
        "+",
        "&",
        "=",
        "?x=1",
        "#fragment",
        "\\",
        "a\\b",
        "'",
        "\"",
        "`",
        ";jsessionid=1",
        "~",
        "null",
        "undefined",
        "0",
        "-1",
        "é",
        "e\u{301}",
        "🛒",
        "👩‍👩‍👧",
        "\u{202e}rtl",
        "日本語",
        "ß",
        "İ",
        "a > b",
        ">",
        "{id}",
        "{}",
        "[x]",
        "<script>",
        "$1",
        "*",
        "|",
        "^",
        "@",
        ":",
        "C:\\temp",
        "http://host:1/p?q#f",
        "two  spaces",
    ]
    .map(str::to_owned)
    .to_vec();
    names.push("x".repeat(300));
    names.push("ü/".repeat(150));
    names.push("🛒".repeat(300));
    names
}

/// CTRF accepts any name, and needs no file.
fn check_unusual_names(
    comparison: &mut Comparison,
    stack: &Stack,
    client: &Client,
    project: &Project,
    now: i64,
) {
    let started = now - 5 * HOUR;
    let tests: Vec<Value> = every_name()
        .iter()
        .map(|name| json!({"name": name, "status": "failed", "duration": 12, "message": format!("Error: {} lost", name.len())}))
        .collect();
    let report = json!({
        "reportFormat": "CTRF",
        "specVersion": "0.0.0",
        "results": {
            "tool": {"name": "made-up"},
            "summary": {"tests": tests.len(), "passed": 0, "failed": tests.len(), "pending": 0, "skipped": 0, "other": 0,
                        "start": started, "stop": started + 60_000},
            "tests": tests,
        },
    });
    let file = stack.file("ctrf.json", report.to_string().as_bytes());
    let imported = stack.run_json(&[
        "import",
        "--project",
        &project.id,
        "--run-key",
        "names",
        "--branch",
        "main",
        "--format",
        "ctrf",
        &file,
    ]);
    let project_path = format!("/projects/{}", escape(&project.id));
    let run = imported["runId"].as_str().unwrap_or_default().to_owned();
    let detail = client.get(&format!("{project_path}/runs/{run}")).json_or_null();
    comparison.same(
        "startedAt of CTRF",
        &detail["run"]["startedAt"].as_str(),
        &Some(clock::text(started).as_str()),
    );
    let stored: Vec<&str> = detail["tests"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|test| test["testName"].as_str())
        .collect();
    comparison.same("odd names, each once", &stored.len(), &every_name().len());
    for name in every_name() {
        comparison.holds(stored.contains(&name.as_str()), || {
            format!("{name:?} is not in the run")
        });
        // Clients normalize a name that consists of dots unless it is escaped.
        let escaped = escape(&name).replace('.', "%2E");
        let lower = escaped.replace("%2F", "%2f").replace("%2E", "%2e");
        // In a path, a plus sign stands for itself.
        let plus = escaped.replace("%2B", "+");
        for text in [escaped, lower, plus] {
            for (path, place) in [
                (format!("{project_path}/runs/{run}/tests/{text}"), "/test/name"),
                (
                    format!("{project_path}/runs/{run}/tests/{text}?filePath="),
                    "/test/name",
                ),
                (format!("{project_path}/tests/{text}"), "/test/name"),
                (
                    format!("{project_path}/tests/{text}?filePath=&days=7"),
                    "/test/name",
                ),
                (format!("{project_path}/tests/{text}/status"), "/test/name"),
                (
                    format!("{project_path}/tests/{text}/status?filePath="),
                    "/test/name",
                ),
            ] {
                let answer = client.get(&path);
                let got = answer.json_or_null().pointer(place).cloned().unwrap_or_default();
                comparison.same(
                    &format!("GET {path}: {} test.name", answer.status),
                    &got.as_str(),
                    &Some(name.as_str()),
                );
                comparison.same(
                    &format!("GET {path}: test.filePath"),
                    &answer.json_or_null()["test"]["filePath"],
                    &Value::Null,
                );
            }
        }
        let path = format!(
            "{project_path}/tests/{}?filePath=a.ts",
            escape(&name).replace('.', "%2E")
        );
        refused(comparison, &path, &client.get(&path), 404, "test_not_found");
    }
}

/// One name in two files and once without a file.
fn shared(comparison: &mut Comparison, stack: &Stack, client: &Client, project: &Project, now: i64) {
    let mut dice = Dice::new(13, "names");
    let run = small::run("shared", "main", now - 2 * DAY, &[("signs in", 'F')], &mut dice);
    let mut report = playwright::report(&run, &run.shards[0], false);
    let mut twin = report["suites"][0].clone();
    for (suite, file) in [
        (&mut report["suites"][0], "apps/a, b/login.spec.ts"),
        (&mut twin, "apps/ü/login.spec.ts"),
    ] {
        suite["file"] = json!(file);
        suite["suites"][0]["file"] = json!(file);
        suite["suites"][0]["specs"][0]["file"] = json!(file);
    }
    report["suites"].as_array_mut().unwrap().push(twin);
    let output = importer::send_report(stack, project, &run, 0, &report, &[]);
    let imported: Value = serde_json::from_str(&output.out).unwrap_or_default();
    let id = imported["runId"].as_str().unwrap_or_default();
    let name = "chromium > small.spec.ts > small > signs in";
    let bare = json!({
        "reportFormat": "CTRF", "specVersion": "0.0.0",
        "results": {"tool": {"name": "made-up"}, "summary": {"start": now - DAY, "stop": now - DAY},
                    "tests": [{"name": name, "status": "passed", "duration": 3}]},
    });
    let file = stack.file("bare.json", bare.to_string().as_bytes());
    stack.run_json(&[
        "import",
        "--project",
        &project.id,
        "--run-key",
        "bare",
        "--branch",
        "main",
        &file,
    ]);
    let project_path = format!("/projects/{}", escape(&project.id));
    let text = escape(name);
    let in_run = ["tests/apps/a, b/login.spec.ts", "tests/apps/ü/login.spec.ts"];
    let path = format!("{project_path}/runs/{id}/tests/{text}");
    ambiguous(comparison, client, &path, &in_run);
    for path in [
        format!("{project_path}/tests/{text}"),
        format!("{project_path}/tests/{text}/status"),
    ] {
        ambiguous(
            comparison,
            client,
            &path,
            &[
                "tests/apps/a, b/login.spec.ts",
                "tests/apps/ü/login.spec.ts",
                "\"\"",
            ],
        );
        for (file, stored) in [
            (in_run[0], json!(in_run[0])),
            (in_run[1], json!(in_run[1])),
            ("", Value::Null),
        ] {
            let path = format!("{path}?filePath={}", escape(file));
            let answer = client.get(&path);
            comparison.same(
                &format!("GET {path}"),
                &(answer.status, &answer.json_or_null()["test"]["filePath"]),
                &(200, &stored),
            );
        }
        let path = format!("{path}?filePath=apps");
        refused(comparison, &path, &client.get(&path), 404, "test_not_found");
    }
    for file in in_run {
        let path = format!("{path}?filePath={}", escape(file));
        let answer = client.get(&path);
        comparison.same(
            &format!("GET {path}"),
            &(answer.status, &answer.json_or_null()["test"]["filePath"]),
            &(200, &json!(file)),
        );
    }
}

fn ambiguous(comparison: &mut Comparison, client: &Client, path: &str, files: &[&str]) {
    let answer = client.get(path);
    refused(comparison, path, &answer, 400, "ambiguous_test");
    for file in files {
        comparison.holds(answer.sentence().contains(file), || {
            format!("GET {path}: {:?} does not list {file}", answer.sentence())
        });
    }
}
