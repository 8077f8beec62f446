//! `assay-server --demo`.

use std::{collections::BTreeSet, process::Command};

use assay_testkit::{
    Client, Server, TestDatabase, assert_contains, free_address, program, wait_until, wire::escape,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{agents, private::Private};

#[test]
fn the_demonstration_starts_again_without_doubling_its_data_even_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Private::start(folder.path(), &["--demo"]);
    server.ready();
    let first = greeted(&server.log());
    let before = everything(&server, &first.key);

    server.signal("KILL");
    server.ended();
    let mut server = Private::start(folder.path(), &["--demo"]);
    server.ready();
    let second = greeted(&server.log());
    assert_eq!((&first.key, &first.project), (&second.key, &second.project));
    assert_eq!(everything(&server, &second.key), before);

    server.signal("TERM");
    assert!(server.ended().success(), "{}", server.log());
}

#[test]
fn a_start_completes_a_first_start_that_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--demo", "--log", "info,assay_ingest=debug"];
    let mut server = Private::start(folder.path(), &arguments);
    server.wait_for_log("run 4 of project");
    server.signal("KILL");
    server.ended();
    // The greeting is printed after everything is ready.
    assert!(!server.log().contains("svc_ro_"), "{}", server.log());

    let mut server = Private::start(folder.path(), &arguments);
    server.ready();
    let answers = everything(&server, &greeted(&server.log()).key);
    let stored: usize = answers[1..]
        .iter()
        .map(|runs| runs.as_array().unwrap().len())
        .sum();
    let manifest: Value =
        serde_json::from_str(include_str!("../../../../testdata/demo/manifest.json")).unwrap();
    let keys: BTreeSet<&str> = manifest["projects"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|project| project["imports"].as_array().unwrap())
        .map(|import| import["runKey"].as_str().unwrap())
        .collect();
    assert_eq!(stored, keys.len());
}

/// A demonstration with all of its listeners.
struct Demonstration {
    server: Private,
    /// What it printed.
    log: String,
    front: String,
    ingest: String,
    _folder: TempDir,
}

impl Demonstration {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(program("assay-server"));
        command.arg("--demo").current_dir(folder.path());
        let (front, ingest) = (free_address(), free_address());
        let listeners = [
            ("ASSAY_FRONT_LISTEN", front.as_str()),
            ("ASSAY_INGEST_LISTEN", ingest.as_str()),
        ];
        let mut server = Private::of(Server::launch(command, &listeners));
        server.ready();
        server.wait_for_log("Stop with Ctrl-C.");
        Self {
            log: server.log(),
            server,
            front,
            ingest,
            _folder: folder,
        }
    }
}

#[test]
fn a_demonstration_does_what_it_prints() {
    let demo = Demonstration::start();
    a_demonstration_names_its_reference_and_fits_a_terminal(&demo);
    commands_that_a_demonstration_prints_can_be_pasted(&demo);
    a_demonstration_names_the_line_that_gives_its_tools_to_an_agent(&demo);
    documents_show_answers_of_the_demonstration(&demo);
    the_samples_show_every_kind_of_answer(&demo);
    a_demonstration_writes_messages_to_the_file_that_it_names(&demo);
    // These change its data.
    the_report_that_a_demonstration_offers_changes_the_flaky_list(&demo);
    the_rerun_that_a_demonstration_offers_continues_one_shard_of_its_newest_build(&demo);
}

fn commands_that_a_demonstration_prints_can_be_pasted(demo: &Demonstration) {
    let greeting = greeted(&demo.log);
    assert!(greeting.requests.len() > 3);
    for request in &greeting.requests {
        let script = format!("{}\n{request}", greeting.exports);
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        let answer: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{request}: {error}"));
        assert_eq!(answer.get("code"), None, "{request}: {answer}");
    }
}

fn the_report_that_a_demonstration_offers_changes_the_flaky_list(demo: &Demonstration) {
    let Demonstration {
        server, log, ingest, ..
    } = demo;
    assert_contains(log, &format!("Reports are taken on http://{ingest}."));
    let greeting = greeted(log);
    // The first page, as in the question that the demonstration prints.
    let path = format!("/api/v1/projects/{}/flaky", greeting.project);
    let listed = || -> Vec<String> {
        let tests = server.client().get(&path, Some(&greeting.key)).json();
        let tests = tests["tests"].as_array().unwrap().iter();
        tests
            .map(|test| format!("{} {}", test["testName"], test["status"]))
            .collect()
    };
    let before = listed();
    let answer = pasted(log, "Send one, which");
    assert_eq!(answer["effect"], "added", "{answer}");
    let after = listed();
    assert!(
        !before.contains(&after[0]) && after[1..].iter().all(|test| before.contains(test)),
        "{before:?} {after:?}"
    );
}

/// Pastes the `curl` lines that follow a sentence of the greeting into another folder, and returns the answer.
fn pasted(log: &str, sentence: &str) -> Value {
    let elsewhere = tempfile::tempdir().unwrap();
    let log = &log[log.find(sentence).unwrap()..];
    let lines = log[log.find("  curl ").unwrap()..].lines();
    let script: Vec<&str> = lines
        .scan(true, |goes_on, line| {
            let is_line = *goes_on;
            *goes_on = line.ends_with('\\');
            is_line.then_some(line)
        })
        .collect();
    let sent = Command::new("sh")
        .args(["-c", &script.join("\n")])
        .current_dir(elsewhere.path())
        .output()
        .unwrap();
    serde_json::from_slice(&sent.stdout).unwrap_or_else(|error| panic!("{error}: {script:?} {sent:?}"))
}

fn the_rerun_that_a_demonstration_offers_continues_one_shard_of_its_newest_build(demo: &Demonstration) {
    let Demonstration { server, log, .. } = demo;
    let greeting = greeted(log);
    let runs = format!("/api/v1/projects/{}/runs?perPage=50", greeting.project);
    let sharded = || {
        let runs = server.client().get(&runs, Some(&greeting.key)).json();
        let runs = runs["runs"].as_array().unwrap().clone();
        runs.into_iter()
            .find(|run| run["shards"]["expected"] == 3)
            .unwrap()
    };
    let before = sharded();
    let answer = pasted(log, "Send the report of one shard");
    assert_eq!(
        (&answer["effect"], &answer["continues"]),
        (&json!("added"), &json!(true)),
        "{answer}"
    );
    assert_eq!(
        (&answer["runId"], &answer["warnings"]),
        (&before["id"], &json!([]))
    );
    let after = sharded();
    let count = |run: &Value, name: &str| run["counts"][name].as_i64().unwrap();
    assert_eq!(count(&before, "total"), count(&after, "total"));
    assert_eq!(count(&before, "failed") - count(&after, "failed"), 7);
    assert_eq!(count(&after, "recovered") - count(&before, "recovered"), 7);
    assert_eq!(after["shards"], before["shards"]);
    // The same command again changes nothing.
    assert_eq!(pasted(log, "Send the report of one shard")["effect"], "unchanged");
}

fn a_demonstration_names_the_line_that_gives_its_tools_to_an_agent(demo: &Demonstration) {
    let Demonstration { log, front, .. } = demo;
    let key = greeted(log).key;
    let line = format!(
        "claude mcp add --transport http assay http://{front}/mcp --header \"Authorization: Bearer {key}\""
    );
    assert!(log.lines().any(|printed| printed.trim() == line), "{log}");
    let client = Client::new(format!("http://{front}"));
    let ask = |method: &str, params: Value| {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let authorization = format!("Bearer {key}");
        let answer = agents::post(&client, &message, &[("Authorization", &authorization)]);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["result"].take()
    };
    let listed = ask("tools/list", json!({}));
    assert_eq!(listed["tools"][0]["name"], "explain_failures", "{listed}");

    // The call in the documentation has the answer that the documentation shows, apart from ids and times.
    let page = include_str!("../../../../docs/agents.md");
    let (_, example) = page.split_once("## A call\n").unwrap();
    let mut blocks = example
        .split("```json\n")
        .skip(1)
        .map(|block| serde_json::from_str::<Value>(block.split("```").next().unwrap()).unwrap());
    let (call, mut shown) = (blocks.next().unwrap(), blocks.next().unwrap());
    let called = ask(
        "tools/call",
        json!({"name": call["tool"], "arguments": call["arguments"]}),
    );
    let mut answer: Value = serde_json::from_str(called["content"][0]["text"].as_str().unwrap()).unwrap();
    for answer in [&mut shown, &mut answer] {
        for field in ["run", "startedAt"] {
            answer["run"][field] = Value::Null;
        }
    }
    assert_eq!(answer.to_string(), shown.to_string());
}

/// Replaces what differs at every start: ids and times.
fn without_ids_and_times(value: &mut Value) {
    const CHANGING: [&str; 8] = [
        "id",
        "runId",
        "runs",
        "now",
        "startedAt",
        "firstFailedAt",
        "lastSeenAt",
        "evaluatedAt",
    ];
    if let Some(fields) = value.as_object_mut() {
        for (name, value) in fields {
            match CHANGING.contains(&name.as_str()) {
                true => *value = Value::Null,
                false => without_ids_and_times(value),
            }
        }
    } else if let Some(values) = value.as_array_mut() {
        values.iter_mut().for_each(without_ids_and_times);
    }
}

fn documents_show_answers_of_the_demonstration(demo: &Demonstration) {
    let server = &demo.server;
    let Greeting { key, project, .. } = greeted(&demo.log);
    let ask = |path: &str| {
        let answer = server
            .client()
            .get(&format!("/api/v1/projects/{project}/{path}"), Some(&key));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    };
    let example = |text: &str| serde_json::from_str::<Value>(text).unwrap();

    let mut flaky = ask("flaky?perPage=10&explain=true");
    let mut shown = example(include_str!(
        "../../../../crates/http-api/src/routes/examples/flaky.json"
    ));
    let name = shown["tests"][0]["testName"].clone();
    let tests = flaky["tests"].as_array_mut().unwrap();
    tests.retain(|test| test["testName"] == name);
    let path = format!("tests/{}/status", escape(name.as_str().unwrap()));
    let mut verdict = ask(&path);
    let mut shown_verdict = example(include_str!(
        "../../../../crates/http-api/src/routes/examples/verdict.json"
    ));
    for (answer, shown) in [(&mut flaky, &mut shown), (&mut verdict, &mut shown_verdict)] {
        without_ids_and_times(answer);
        without_ids_and_times(shown);
        assert_eq!(answer, shown);
    }

    // The README leaves some fields out.
    let readme = include_str!("../../../../README.md");
    let (_, block) = readme.split_once("```json\n").unwrap();
    let mut readme = example(block.split("```").next().unwrap());
    without_ids_and_times(&mut readme);
    let mut compared = 0;
    for (field, value) in readme.as_object().unwrap() {
        if !value.is_object() {
            assert_eq!(value, &flaky["tests"][0][field], "{field}");
            compared += 1;
        }
    }
    assert!(compared > 5);
}

fn the_samples_show_every_kind_of_answer(demo: &Demonstration) {
    let server = &demo.server;
    let key = greeted(&demo.log).key;
    let get = |path: &str| {
        let answer = server.client().get(&format!("/api/v1{path}"), Some(&key));
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    };
    let projects = get("/projects");
    let projects = projects["projects"].as_array().unwrap();
    assert!(projects.len() >= 2);
    let (mut statuses, mut browsers, mut verdicts) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let (mut recovered, mut sharded) = (0, 0);
    for project in projects {
        let base = format!("/projects/{}", project["id"].as_str().unwrap());
        for run in get(&format!("{base}/runs?perPage=50"))["runs"]
            .as_array()
            .unwrap()
        {
            recovered += run["counts"]["recovered"].as_u64().unwrap();
            sharded += u64::from(run["shards"].is_object());
            for test in get(&format!("{base}/runs/{}", run["id"].as_str().unwrap()))["tests"]
                .as_array()
                .unwrap()
            {
                statuses.insert(test["status"].as_str().unwrap().to_owned());
                browsers.extend(test["browserName"].as_str().map(str::to_owned));
            }
        }
        for test in get(&format!("{base}/flaky?perPage=50"))["tests"]
            .as_array()
            .unwrap()
        {
            verdicts.insert(test["status"].as_str().unwrap().to_owned());
        }
    }
    for status in ["passed", "failed", "timedOut", "skipped"] {
        assert!(statuses.contains(status), "{status} in {statuses:?}");
    }
    assert!(browsers.len() >= 3, "{browsers:?}");
    assert!(
        verdicts.contains("flaky") && verdicts.contains("broken"),
        "{verdicts:?}"
    );
    assert!(recovered > 0 && sharded >= 2);
}

fn a_demonstration_names_its_reference_and_fits_a_terminal(demo: &Demonstration) {
    let Demonstration { server, log, .. } = demo;
    let greeting = log.split("Assay serves sample data").nth(1).unwrap();
    let greeting = greeting.split("Stop with Ctrl-C.").next().unwrap();
    // An agent's command is one line in every shell, and the folder may have a long path.
    let is_long = |line: &&str| line.starts_with("  claude mcp add ") || line.contains("report=@");
    assert_eq!(greeting.lines().filter(is_long).count(), 3, "{greeting}");
    for line in greeting.lines().filter(|line| !is_long(line)) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let line = greeting
        .lines()
        .find(|line| line.starts_with("Reference: "))
        .unwrap();
    let (_, path) = line.rsplit_once('/').unwrap();
    assert_eq!(
        server.admin().get(&format!("/{path}"), None).status,
        200,
        "{line}"
    );
}

#[test]
fn a_demonstration_has_a_database_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(program("assay-admin"))
        .args(["org", "create", "Mine", "--data-dir", "mine"])
        .current_dir(folder.path())
        .env_remove("ASSAY_DATABASE_URL")
        .output()
        .unwrap();
    assert!(output.status.success());
    let database = TestDatabase::new();
    let mine = folder.path().join("mine").display().to_string();
    for (environment, status, expected) in [
        (
            ("ASSAY_DATABASE_URL", database.url()),
            2,
            "env -u ASSAY_DATABASE_URL",
        ),
        (("ASSAY_DATA_DIR", mine.as_str()), 1, "--data-dir DIR"),
    ] {
        let output = Command::new(program("assay-server"))
            .args(["--demo", "--listen", "127.0.0.1:0"])
            .args([
                "--ingest-listen",
                "off",
                "--front-listen",
                "off",
                "--admin-listen",
                "off",
            ])
            .current_dir(folder.path())
            .env_remove("ASSAY_DATABASE_URL")
            .env(environment.0, environment.1)
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{stderr}");
        assert_contains(&stderr, expected);
    }
    assert_eq!(
        database.text("SELECT count(*) FROM organization").as_deref(),
        Some("0")
    );

    // Without a setting, the demonstration makes its own folder, even beside another private database.
    let mut server = Private::start(folder.path(), &["--demo"]);
    server.ready();
    server.wait_for_log("Stop with Ctrl-C.");
    assert!(
        server
            .log()
            .contains("assay-server: making a private database in ")
    );
    assert!(folder.path().join(".assay-demo/.gitignore").exists());
    assert!(!folder.path().join(".assay").exists());
}

/// The output of the demonstration.
struct Greeting {
    key: String,
    project: String,
    /// The lines to paste before a request.
    exports: String,
    requests: Vec<String>,
}

fn greeted(output: &str) -> Greeting {
    let lines = || output.lines().map(str::trim);
    let exported = |name: &str| {
        let line = lines().find_map(|line| line.strip_prefix(&format!("export {name}=")));
        let value = line.and_then(|line| line.split_whitespace().next());
        value.unwrap_or_else(|| panic!("no {name}: {output}")).to_owned()
    };
    let exports: Vec<&str> = lines()
        .filter(|line| line.starts_with("export ") || line.starts_with("ask()"))
        .collect();
    Greeting {
        key: exported("KEY"),
        project: exported("PROJECT"),
        exports: exports.join("\n"),
        requests: lines()
            .filter_map(|line| line.split_once("  ask "))
            .map(|(_, request)| format!("ask {request}"))
            .collect(),
    }
}

/// The project list and each project's runs.
fn everything(server: &Private, key: &str) -> Vec<Value> {
    let projects = server.client().get("/api/v1/projects", Some(key)).json();
    let mut all = vec![projects.clone()];
    for project in projects["projects"].as_array().unwrap() {
        let path = format!(
            "/api/v1/projects/{}/runs?perPage=50",
            project["id"].as_str().unwrap()
        );
        let runs = server.client().get(&path, Some(key)).json();
        assert!(runs["total"].as_u64().unwrap() > 0, "{runs}");
        // The period of each answer ends at the time of its request.
        all.push(runs["runs"].clone());
    }
    all
}

fn a_demonstration_writes_messages_to_the_file_that_it_names(demo: &Demonstration) {
    let Demonstration { server, log, .. } = demo;
    let line = log.lines().find_map(|line| line.trim().strip_prefix("tail -f '"));
    let file = line.unwrap().strip_suffix('\'').unwrap();
    let messages = || std::fs::read_to_string(file).unwrap_or_default();
    wait_until("a message", || messages().contains("storefront: "));
    let greeting = greeted(log);
    let settings = server
        .client()
        .get(
            &format!("/api/v1/projects/{}/settings", greeting.project),
            Some(&greeting.key),
        )
        .json();
    assert_eq!(settings["settings"]["chat"]["configured"], true, "{settings}");
    // The messages link to the pages, if they are on.
    let has_pages = log.contains("Open this in a browser");
    assert_eq!(messages().contains("/p/"), has_pages, "{}", messages());
}
