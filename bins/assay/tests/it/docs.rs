//! Runs the commands of the documentation.

mod ci;
mod dependencies;
mod deployment;
mod exists;
mod form;
mod gate;
mod json;
mod setup;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Output, Stdio},
};

use assay_testkit::{Cli, TestDatabase, assert_contains, free_address, program, stderr_text};
use serde_json::Value;
use tempfile::TempDir;

use crate::junit;

/// Labels of blocks of commands that this test does not run. `builds` compiles the project, which the tests do anyway.
/// The others serve until they are stopped, change the machine or need a prepared one, or measure for minutes.
const NOT_RUN: [&str; 4] = ["builds", "serves", "deploys", "measures"];
/// Languages of blocks without commands.
const NO_COMMANDS: [&str; 12] = [
    "text", "mermaid", "json", "yaml", "toml", "ini", "rust", "groovy", "csv", "sql", "xml", "python",
];

/// A fenced block.
struct Block {
    /// The word after the fence.
    language: String,
    /// The words after that.
    note: String,
    text: String,
}

/// The repository's folder.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// The fenced blocks of a page.
fn blocks(page: &Path) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for line in fs::read_to_string(page).unwrap().lines() {
        match line.trim_start().strip_prefix("```") {
            Some(fence) if !open => {
                let (language, note) = fence.split_once(' ').unwrap_or((fence, ""));
                blocks.push(Block {
                    language: language.to_owned(),
                    note: note.to_owned(),
                    text: String::new(),
                });
                open = true;
            }
            Some(_) => open = false,
            None if open => {
                let block = blocks.last_mut().unwrap();
                block.text.push_str(line);
                block.text.push('\n');
            }
            None => {}
        }
    }
    assert!(!open, "a block of {} has no end", page.display());
    blocks
}

/// The commands of a page to run, in order.
fn script(page: &str) -> String {
    blocks(&root().join(page))
        .into_iter()
        .filter(|block| block.language == "sh" && block.note.is_empty())
        .map(|block| block.text)
        .collect()
}

/// A folder to run in: the repository's sample reports, and a reader's own.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root().join("testdata"), folder.path().join("testdata")).unwrap();
    let report = junit::report("2026-11-20T10:00:00Z", &[("adds", true), ("sums", false)]);
    for name in ["test-results", "reports"] {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("junit.xml"), &report).unwrap();
    }
    let history = "test,run,started_at,status\npays,1,2026-11-19T10:00:00Z,passed\n";
    fs::write(folder.path().join("history.csv"), history).unwrap();
    folder
}

/// Runs commands with the programs in the path, and with a separate home folder and database.
fn run(script: &str, folder: &Path, database: &TestDatabase) -> Output {
    let programs = program("assay").parent().unwrap().display().to_string();
    let path = std::env::var("PATH").unwrap();
    let mut bash = std::process::Command::new("bash");
    for (name, value) in Cli::new(database.url()).command(&[]).get_envs() {
        bash.env(name, value.unwrap());
    }
    let output = bash
        .args(["-euxo", "pipefail", "-c", script])
        .env("PATH", format!("{programs}:{path}"))
        .env("HOME", folder)
        .env("ASSAY_DATABASE_URL", database.url())
        .env_remove("CI")
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr_text(&output));
    output
}

/// The number of `assay` commands in a script.
fn commands(script: &str) -> usize {
    script
        .lines()
        .filter(|line| line.trim_start().starts_with("assay"))
        .count()
}

#[test]
fn every_code_block_of_every_page_has_a_kind() {
    let root = root();
    let pages = [root.clone(), root.join("docs")]
        .into_iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    let mut checked = 0;
    for page in pages.filter(|page| page.extension().is_some_and(|extension| extension == "md")) {
        for block in blocks(&page) {
            let has_known_kind = match block.language.as_str() {
                "sh" => block.note.is_empty() || NOT_RUN.contains(&block.note.as_str()),
                language => NO_COMMANDS.contains(&language) && block.note.is_empty(),
            };
            assert!(
                has_known_kind,
                "{}: a block is marked {:?}:\n{}",
                page.display(),
                (block.language, block.note),
                block.text
            );
            checked += 1;
        }
    }
    assert!(checked > 40, "{checked}");
}

/// The pages in the folder docs, from the repository's folder.
fn pages_of_docs() -> impl Iterator<Item = String> {
    let names = fs::read_dir(root().join("docs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let pages = names.map(|name| format!("docs/{}", name.to_str().unwrap()));
    pages.filter(|page| page.ends_with(".md"))
}

#[test]
fn every_page_with_commands_is_tested() {
    let run = [
        "README.md",
        "docs/analyze.md",
        "docs/cli.md",
        "docs/migrating.md",
        "docs/tutorial.md",
    ];
    let top = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"];
    for page in pages_of_docs().chain(top.map(str::to_owned)) {
        assert_eq!(!script(&page).is_empty(), run.contains(&page.as_str()), "{page}");
    }
}

/// The parameters of the route of a path such as `/projects/$PROJECT/flaky`.
fn parameters(api: &Value, path: &str) -> Vec<String> {
    let fits = |template: &str| {
        let (a, b): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| *a == b || a.starts_with('{'))
    };
    let (_, route) = api["paths"]
        .as_object()
        .unwrap()
        .iter()
        .find(|(template, _)| fits(template.strip_prefix("/api/v1").unwrap_or(template)))
        .unwrap_or_else(|| panic!("no route is {path}"));
    let parameters = route["get"]["parameters"].as_array().unwrap().iter();
    let resolved = |parameter: &'_ Value| match parameter["$ref"].as_str() {
        Some(reference) => api.pointer(reference.trim_start_matches('#')).unwrap().clone(),
        None => parameter.clone(),
    };
    parameters
        .map(resolved)
        .filter(|parameter| parameter["in"] == "query")
        .map(|parameter| parameter["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn documented_requests_use_only_parameters_of_their_route() {
    let text = fs::read_to_string(root().join("docs/openapi.json")).unwrap();
    let api: Value = serde_json::from_str(&text).unwrap();
    let mut checked = 0;
    for page in ["README.md", "docs/tutorial.md"] {
        let script = script(page);
        for request in script.split("/projects/$PROJECT").skip(1) {
            let request = request.split(['"', ')']).next().unwrap();
            let Some((path, query)) = request.split_once('?') else {
                continue;
            };
            let known_parameters = parameters(&api, &format!("/projects/$PROJECT{path}"));
            for pair in query.split('&') {
                let name = pair.split('=').next().unwrap();
                assert!(
                    known_parameters.iter().any(|known| known == name),
                    "{page}: {path} has no {name}"
                );
                checked += 1;
            }
        }
    }
    assert!(checked > 4, "{checked}");
}

#[test]
fn pages_and_deployment_files_make_a_project_before_they_import() {
    for page in [
        "README.md",
        "docs/tutorial.md",
        "docs/deployment.md",
        "deploy/compose.yaml",
    ] {
        let text = fs::read_to_string(root().join(page)).unwrap();
        let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("{page}: no `{words}`"));
        // One command makes both.
        let made = if text.contains("assay-admin setup") {
            place("assay-admin setup")
        } else {
            assert!(
                place("assay-admin org create") < place("assay-admin project create"),
                "{page}"
            );
            place("assay-admin project create")
        };
        assert!(made < place("assay-admin import"), "{page}");
    }
}

#[test]
fn the_tour_runs() {
    let script = script("docs/cli.md");
    assert!(commands(&script) > 30);
    let (folder, database) = (folder(), TestDatabase::new());
    run(&script, folder.path(), &database);
    for made in [
        "flaky.html",
        "key.json",
        "doctor.json",
        ".local/share/man/man1/assay-admin-import.1",
    ] {
        assert!(
            fs::metadata(folder.path().join(made)).unwrap().len() > 0,
            "{made}"
        );
    }
}

/// Replaces the addresses of the tutorial and the README by free ones.
fn elsewhere(script: &str) -> String {
    let [api, operators, pages] = [(); 3].map(|()| free_address());
    let script = script
        .replace("127.0.0.1:8080", &api)
        .replace("127.0.0.1:9090", &operators)
        .replace("127.0.0.1:8082", &pages);
    format!(
        "export ASSAY_LISTEN={api} ASSAY_ADMIN_LISTEN={operators} ASSAY_FRONT_LISTEN={pages}\ntrap 'kill $(jobs -p) 2>&1 || true' EXIT\n{script}"
    )
}

#[test]
fn the_tutorial_runs() {
    let script = script("docs/tutorial.md");
    assert!(commands(&script) > 8);
    // A browser opens the page before the server stops.
    let browser = "PAGES=http://127.0.0.1:8082
curl -sf --cookie-jar cookies -H \"Origin: $PAGES\" --data \"key=$KEY\" $PAGES/login
MINE=$(curl -sf --cookie cookies $PAGES/ | grep -o '/p/[0-9a-f-]*\"><bdi>mine<' | cut -d'\"' -f1)
curl -sf --cookie cookies $PAGES$MINE > mine.html
kill $!
";
    assert_eq!(script.matches("kill $!\n").count(), 1);
    let script = script.replace("kill $!\n", browser);
    let (folder, database) = (folder(), TestDatabase::new());
    let output = run(&elsewhere(&script), folder.path(), &database);
    let printed = String::from_utf8(output.stdout).unwrap();
    for expected in [
        "\"statusReason\":\"retry_rate\"",
        "\"evidence\":",
        "\"unfingerprintedCount\"",
        "\"awaitingFirstWrite\":false",
        "Passed on retry in ",
        "Sign in at http",
    ] {
        assert!(printed.contains(expected), "{expected} is missing in:\n{printed}");
    }
    // The build of three machines is one run, and the newest.
    let query =
        "SELECT string_agg(commit_sha, ' ' ORDER BY started_at DESC) FROM run WHERE commit_sha IS NOT NULL";
    let commits = database.text(query).unwrap_or_default();
    assert!(commits.starts_with("c0ffee11 c0ffee10 c0ffee09"), "{commits}");
    let page = fs::read_to_string(folder.path().join("mine.html")).unwrap();
    assert_contains(&page, "1 test fails on main");
    assert!(fs::metadata(folder.path().join("storefront.html")).unwrap().len() > 10_000);
}

#[test]
fn the_readme_runs() {
    let script = script("README.md");
    assert!(commands(&script) > 2 && script.contains("curl "));
    // The first command starts the demonstration that the later requests need. This test starts it separately.
    let demo = "ASSAY_DATABASE_URL= ASSAY_INGEST_LISTEN=off assay-server --demo > demo.txt &
for wait in $(seq 300); do if grep -q Stop demo.txt; then break; fi; sleep 0.2; done
sed -n 's/^  export/export/p' demo.txt > exports.sh
. ./exports.sh
";
    let (folder, database) = (folder(), TestDatabase::new());
    let output = run(&elsewhere(&format!("{demo}{script}")), folder.path(), &database);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_contains(
        &printed,
        "\"testName\":\"webkit > shop.spec.ts > shop > flaky on webkit only\"",
    );
    assert!(fs::metadata(folder.path().join("report.html")).unwrap().len() > 1_000);
}

#[test]
fn the_commands_for_migration_and_offline_analysis_run() {
    let before = "assay-admin migrate
assay-admin org create Elsewhere
assay-admin project create --org Elsewhere storefront
";
    for (page, before) in [("docs/migrating.md", before), ("docs/analyze.md", "")] {
        let script = script(page);
        assert!(commands(&script) > 0, "{page}");
        let (folder, database) = (folder(), TestDatabase::new());
        run(&format!("{before}{script}"), folder.path(), &database);
    }
}

/// The file and the function that a page names as a proof: `crates/…/x.rs::name`, `security/x.rs::name`,
/// `faults::x::name`.
fn quoted_test(quoted: &str) -> Option<(String, Option<&str>)> {
    let suites = ["faults", "it", "security", "scale", "pages", "oracle"];
    if let Some((file, function)) = quoted.split_once(".rs::") {
        return Some((format!("{file}.rs"), Some(function)));
    }
    if quoted.ends_with(".rs") {
        return Some((quoted.to_owned(), None));
    }
    let mut parts = quoted.split("::");
    let suite = parts.next().filter(|suite| suites.contains(suite))?;
    let module = parts.next().filter(|module| !module.is_empty())?;
    let file = format!("bins/assay-server/tests/{suite}/{module}.rs");
    Some((file, parts.next()))
}

#[test]
fn every_test_that_proves_a_guarantee_or_a_defence_exists() {
    let proofs = assert_named_tests_exist("docs/guarantees.md");
    assert!(proofs >= 75, "{proofs}");
}

#[test]
fn every_rust_file_and_test_that_a_page_names_exists() {
    let tops = ["README.md", "CONTRIBUTING.md"].map(str::to_owned);
    let named: usize = pages_of_docs()
        .chain(tops)
        .map(|page| assert_named_tests_exist(&page))
        .sum();
    assert!(named > 130, "{named}");
}

/// Checks the files and the functions that a page names, and returns their number. A name without a folder is not
/// checked.
fn assert_named_tests_exist(page: &str) -> usize {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let mut named = 0;
    let quoted = text.split('`').skip(1).step_by(2).filter_map(quoted_test);
    for (file, function) in quoted.filter(|(file, _)| file.contains('/')) {
        let file = file.replacen("security/", "bins/assay-server/tests/security/", {
            usize::from(file.starts_with("security/"))
        });
        let code = fs::read_to_string(root().join(&file)).unwrap_or_else(|_| panic!("{page}: {file}"));
        if let Some(function) = function {
            assert!(
                code.contains(&format!("fn {function}(")),
                "{page}: {file}::{function}"
            );
        }
        named += 1;
    }
    named
}

#[test]
fn every_function_and_file_of_the_architecture_page_exists() {
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut functions = 0;
    for (before, after) in page
        .match_indices("` in `")
        .map(|(at, between)| (&page[..at], &page[at + between.len()..]))
    {
        let name = before.rsplit('`').next().unwrap();
        let (owner, name) = name
            .split_once("::")
            .map_or((None, name), |(owner, name)| (Some(owner), name));
        let file = after.split('`').next().unwrap();
        let code = fs::read_to_string(root().join(file)).unwrap_or_else(|_| panic!("{file}"));
        if let Some(owner) = owner {
            assert!(
                code.contains(&format!("impl {owner} {{")),
                "{file} does not implement {owner}"
            );
        }
        assert!(
            [format!("fn {name}("), format!("fn {name}<")]
                .iter()
                .any(|text| code.contains(text)),
            "{file} has no function {name}"
        );
        functions += 1;
    }
    assert!(functions > 15, "{functions}");
    for quoted in page.split('`').skip(1).step_by(2) {
        if ["crates/", "bins/"].iter().any(|top| quoted.starts_with(top)) {
            assert!(root().join(quoted).exists(), "{quoted}");
        }
    }
}
