//! Every route's answer over one world, for comparing two databases or two logins.

use std::collections::BTreeSet;

use assay_http_api::ROUTES;
use assay_testkit::{Client, text, wire::escape};
use serde_json::Value;

/// Path and body of every route, for a project with at least one run, test and error. All requests must succeed.
pub(crate) fn of(client: &Client, key: &str, project: &str) -> Vec<(String, String)> {
    of_period(client, key, project, 90)
}

/// The same for a period of this many days.
pub(crate) fn of_period(client: &Client, key: &str, project: &str, days: u32) -> Vec<(String, String)> {
    let mut answers = Vec::new();
    let mut ask = |path: String| -> Value {
        let answer = client.get(&format!("/api/v1{path}"), Some(key));
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answers.push((path, without_times(answer.json()).to_string()));
        answer.json()
    };
    // A route ignores the parameters that it does not take.
    let query = format!("days={days}&perPage=50&explain=true");
    let texts = |list: &Value, field: &str| -> BTreeSet<String> {
        let texts = list.as_array().unwrap().iter();
        texts
            .filter_map(|entry| Some(entry[field].as_str()?.to_owned()))
            .collect()
    };
    let runs = ask(format!("/projects/{project}/runs?{query}"))["runs"].take();
    let errors = ask(format!("/projects/{project}/errors?{query}"))["errors"].take();
    let (commits, fingerprints) = (texts(&runs, "commitSha"), texts(&errors, "fingerprint"));
    let branches = texts(&runs, "branch")
        .iter()
        .map(|branch| escape(branch))
        .collect();
    let runs = texts(&runs, "id").into_iter().map(|run| {
        let tests = ask(format!("/projects/{project}/runs/{run}"))["tests"].take();
        let tests = tests.as_array().unwrap().iter().map(|test| {
            // Tests of several files may share a name. An empty file means none.
            let file = escape(test["filePath"].as_str().unwrap_or_default());
            (escape(&text(&test["testName"])), file)
        });
        (run, tests.collect::<BTreeSet<_>>())
    });
    let runs: Vec<_> = runs.collect();
    let tests: BTreeSet<_> = runs.iter().flat_map(|(_, tests)| tests).collect();
    let of_test = |path: &str, (name, file): &(String, String)| {
        format!("{}?{query}&filePath={file}", path.replace("{testName}", name))
    };
    for route in ROUTES {
        let path = route.path.replace("{projectId}", project);
        let plain = |name: &str, values: &BTreeSet<String>| -> Vec<_> {
            let paths = values.iter().map(|value| path.replace(name, value));
            paths.map(|path| format!("{path}?{query}")).collect()
        };
        let paths = match path.split('{').nth(1) {
            None if route.path == "/projects" => vec![path],
            None => vec![format!("{path}?{query}")],
            Some(rest) if rest.starts_with("commitSha") => plain("{commitSha}", &commits),
            Some(rest) if rest.starts_with("branchName") => plain("{branchName}", &branches),
            Some(rest) if rest.starts_with("fingerprint") => plain("{fingerprint}", &fingerprints),
            Some(rest) if rest.starts_with("testName") => {
                tests.iter().map(|test| of_test(&path, test)).collect()
            }
            Some(_) => runs
                .iter()
                .flat_map(|(run, tests)| {
                    let path = path.replace("{runId}", run);
                    if path.contains("{testName}") {
                        tests.iter().map(|test| of_test(&path, test)).collect()
                    } else {
                        vec![format!("{path}?{query}")]
                    }
                })
                .collect(),
        };
        for path in paths {
            ask(path);
        }
    }
    answers
}

/// Fields that depend on the request's time are removed.
fn without_times(mut value: Value) -> Value {
    if let Value::Object(fields) = &mut value {
        for name in ["from", "to", "now", "before", "redMs", "crc32"] {
            fields.remove(name);
        }
        for field in fields.values_mut() {
            *field = without_times(field.take());
        }
    } else if let Value::Array(values) = &mut value {
        for value in values {
            *value = without_times(value.take());
        }
    }
    value
}
