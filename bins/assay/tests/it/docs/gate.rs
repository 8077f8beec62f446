//! The recipes of the page about the gate. Each runs with the variables of its service and a stand-in for its test
//! tool, which writes the tool's reports. The gate must excuse a flake and block a breakage of the branch.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Output},
};

use assay_testkit::{assert_contains, stderr_text};

use super::{
    ci::{SERVICES, Variables},
    root,
};
use crate::ingest::{Site, now};

/// A test's name with its error, where it failed.
type Case = (String, Option<String>);

/// The tests of a run. `failed` is the failed one with its error. Each recipe breaks another test, because a test that
/// fails on several branches is a flake.
fn cases(failed: Option<(&str, &str)>) -> Vec<Case> {
    let names = ('a'..='j').map(|letter| format!("pays {letter}"));
    let names = names.chain(["odd".to_owned()]);
    let error = |name: &str| failed.filter(|(failed, _)| *failed == name);
    names
        .map(|name| {
            let error = error(&name).map(|(_, error)| error.to_owned());
            (name, error)
        })
        .collect()
}

const FLAKE: Option<(&str, &str)> = Some(("odd", "Timed out waiting for the cart"));
const FILE: &str = "totals.test.ts";

/// A recipe: the service, its variables, and the commands without the syntax of the service's configuration.
struct Recipe {
    provider: &'static str,
    variables: Variables,
    script: String,
}

fn recipes() -> Vec<Recipe> {
    let text = fs::read_to_string(root().join("docs/gate.md")).unwrap();
    let (_, text) = text.split_once("\n## Recipes\n").unwrap();
    let (text, _) = text.split_once("\n## ").unwrap();
    let (mut recipes, mut paragraph, mut in_block, mut before) = (Vec::new(), "", false, "");
    for line in text.lines() {
        if line.starts_with("```") {
            in_block = !in_block;
            if in_block {
                let service = paragraph.to_lowercase().replace(' ', "-");
                let found = SERVICES
                    .into_iter()
                    .find(|(_, provider, _)| service.starts_with(provider));
                let (_, provider, variables) = found.unwrap_or_else(|| panic!("no service: {paragraph}"));
                recipes.push(Recipe {
                    provider,
                    variables,
                    script: String::new(),
                });
            }
        } else if in_block {
            let words = ["git diff ", "assay run "];
            if let Some(at) = words.iter().find_map(|words| line.find(words)) {
                let (language, command) = line.split_at(at);
                // Jenkins' `sh '…'`.
                let command = match language.ends_with('\'') {
                    true => command.trim_end_matches('\''),
                    false => command,
                };
                let script = &mut recipes.last_mut().unwrap().script;
                script.push_str(&format!("{command}\n"));
            }
        } else if before.is_empty() {
            paragraph = line;
        }
        before = line;
    }
    recipes
}

fn junit(cases: &[Case]) -> String {
    let cases = cases.iter().map(|(name, error)| {
        let failure = error.as_ref().map_or_else(String::new, |error| format!("<failure message=\"{error}\">at {FILE}:3:1</failure>"));
        format!("<testcase classname=\"totals\" name=\"{name}\" file=\"{FILE}\" time=\"0.01\">{failure}</testcase>\n")
    });
    format!(
        "<testsuite timestamp=\"{}\">\n{}</testsuite>\n",
        now(),
        cases.collect::<String>()
    )
}

fn trx(cases: &[Case]) -> String {
    let results = cases.iter().map(|(name, error)| {
        let (outcome, output) = match error {
            Some(error) => (
                "Failed",
                format!("<Output><ErrorInfo><Message>{error}</Message><StackTrace>at Shop.Cart()</StackTrace></ErrorInfo></Output>"),
            ),
            None => ("Passed", String::new()),
        };
        format!("<UnitTestResult testId=\"{name}\" testName=\"{name}\" duration=\"00:00:00.01\" outcome=\"{outcome}\">{output}</UnitTestResult>\n")
    });
    let definitions = cases.iter().map(|(name, _)| {
        format!("<UnitTest name=\"{name}\" id=\"{name}\"><TestMethod className=\"Shop.Totals\" name=\"{name}\"/></UnitTest>\n")
    });
    format!(
        "<TestRun xmlns=\"http://microsoft.com/schemas/VisualStudio/TeamTest/2010\"><Times start=\"{now}\" finish=\"{now}\"/>\n\
         <Results>{}</Results><TestDefinitions>{}</TestDefinitions></TestRun>\n",
        results.collect::<String>(),
        definitions.collect::<String>(),
        now = now(),
    )
}

/// Creates a folder of stand-ins for the recipes' tools, and returns it for the path. Each writes the prepared reports
/// to the usual place of its tool, and exits as the tool does after failed tests.
fn install(folder: &Path) -> String {
    let bin = folder.join("bin");
    fs::create_dir(&bin).unwrap();
    for (tool, script) in [
        (
            "pytest",
            "for word in \"$@\"; do case $word in --junitxml=*) cp saved.xml \"${word#--junitxml=}\";; esac; done",
        ),
        (
            "mvn",
            "mkdir -p shop/target/surefire-reports; cp saved.xml shop/target/surefire-reports/TEST-totals.xml",
        ),
        (
            "gradle",
            "mkdir -p shop/build/test-results/test; cp saved.xml shop/build/test-results/test/TEST-totals.xml",
        ),
        (
            "dotnet",
            "case \"$*\" in *'--logger trx'*) mkdir -p shop/TestResults; cp saved.trx \"shop/TestResults/runner 1.trx\";; esac",
        ),
    ] {
        fs::write(bin.join(tool), format!("#!/bin/sh\n{script}\nexit 1\n")).unwrap();
        fs::set_permissions(bin.join(tool), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let assay = assay_testkit::program("assay");
    let programs = assay.parent().unwrap().display();
    format!("{}:{programs}:{}", bin.display(), std::env::var("PATH").unwrap())
}

/// A checkout of a pull request that changes one file.
fn check_out(folder: &Path) {
    let script = "git init --quiet . && git config user.name a && git config user.email a@example.org \
                  && git commit --quiet --allow-empty -m base && git update-ref refs/remotes/origin/main HEAD \
                  && echo Shop > README.md && git add README.md && git commit --quiet -m change";
    let mut git = Command::new("sh");
    let output = git.args(["-c", script]).current_dir(folder).env("HOME", folder);
    let output = output.output().unwrap();
    assert!(output.status.success(), "{}", stderr_text(&output));
}

#[test]
fn every_recipe_of_the_gate_excuses_a_flake_and_no_breakage() {
    let site = Site::new();
    let folder = site.world.folder.path();
    for run in 0..12_i64 {
        let cases = cases(FLAKE.filter(|_| run % 3 == 0));
        for (suite, report) in [("junit", junit(&cases)), ("trx", trx(&cases))] {
            let (key, commit) = (format!("{suite}-{run}"), format!("c{run}"));
            let flags = [
                "--no-ci",
                "--run-key",
                &key,
                "--branch",
                "main",
                "--commit",
                &commit,
            ];
            site.world.import_report((12 - run) * 8 * 60, &report, &flags);
        }
    }
    check_out(folder);
    let path = install(folder);
    let mut builds = 0;
    let mut act = |recipe: &Recipe, cases: &[Case], more: Variables| -> Output {
        builds += 1;
        fs::write(folder.join("saved.xml"), junit(cases)).unwrap();
        fs::write(folder.join("saved.trx"), trx(cases)).unwrap();
        let (build, branch, commit) = (
            format!("812{builds}"),
            format!("feature/{builds}"),
            format!("f{builds}"),
        );
        // Jobs that are not part of a matrix or a sharded run.
        let of_several = ["_NODE_", "_PARALLEL_", "INPHASE"];
        let variables = recipe
            .variables
            .iter()
            .filter(|(name, _)| !of_several.iter().any(|part| name.contains(part)))
            .map(|(name, value)| {
                (
                    *name,
                    value
                        .replace("812", &build)
                        .replace("main", &branch)
                        .replace("c0ffee", &commit),
                )
            });
        let plain = site.command(&[]);
        let mut shell = Command::new("bash");
        shell
            .args(["-euo", "pipefail", "-c", &recipe.script])
            .env_clear()
            .current_dir(folder);
        shell.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell
            .envs(variables)
            .env("PATH", &path)
            .env("GITHUB_BASE_REF", "main");
        shell.envs(more.iter().copied()).output().unwrap()
    };
    let recipes = recipes();
    for (_, provider, _) in SERVICES {
        assert!(
            recipes.iter().any(|recipe| recipe.provider == provider),
            "{provider}"
        );
    }
    for (recipe, letter) in recipes.iter().zip('a'..='j') {
        let script = &recipe.script;
        let output = act(recipe, &cases(FLAKE), &[("GITHUB_STEP_SUMMARY", "summary.md")]);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{script}: {}",
            stderr_text(&output)
        );
        assert!(
            stderr_text(&output).contains("Gate: passes, 1 failed test excused"),
            "{script}: {}",
            stderr_text(&output)
        );
        let (test, error) = (
            format!("pays {letter}"),
            format!("TypeError: tax of {letter} is not a function"),
        );
        let output = act(recipe, &cases(Some((&test, &error))), &[]);
        let status = if script.contains("--exit-code 42") { 42 } else { 1 };
        assert_eq!(
            output.status.code(),
            Some(status),
            "{script}: {}",
            stderr_text(&output)
        );
        let stored = format!(
            "SELECT count(*) FROM run WHERE ci_provider::text = '{}'",
            recipe.provider
        );
        let of_service = recipes.iter().filter(|other| other.provider == recipe.provider);
        assert!(site.world.count(&stored) <= 2 * i64::try_from(of_service.count()).unwrap());
        assert!(site.world.count(&stored) >= 2, "{script}: both runs are stored");
    }
    assert!(
        fs::read_to_string(folder.join("summary.md"))
            .unwrap()
            .contains("odd")
    );
    // A test whose file the pull request changes is not excused.
    let of_github = recipes
        .iter()
        .find(|recipe| recipe.script.contains("--changed"))
        .unwrap();
    fs::write(folder.join(FILE), "").unwrap();
    let commit = format!("git add {FILE}\ngit commit --quiet -m more\n");
    let changed = Recipe {
        script: format!("{commit}{}", of_github.script),
        ..*of_github
    };
    let output = act(&changed, &cases(FLAKE), &[]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr_text(&output));
    assert_contains(&stderr_text(&output), "its file is part of the change");
}
