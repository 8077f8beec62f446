//! The page about CI services. Every command of a job runs with the variables of its service and a test command that
//! writes a report. The received fields must name the service and its build.

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use assay_testkit::{assert_contains, stderr_text};
use serde_json::Value;

use super::{blocks, root};
use crate::{
    ingest::{Site, now},
    junit,
    receiver::{Receiver, stored},
    upload::Job,
};

/// Names and values of variables.
pub(super) type Variables = &'static [(&'static str, &'static str)];

/// A service's section of the page, its name, and the variables that the service sets for a job.
pub(super) const SERVICES: [(&str, &str, Variables); 8] = [
    (
        "GitHub Actions",
        "github-actions",
        &[
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_RUN_ID", "812"),
            ("GITHUB_RUN_ATTEMPT", "1"),
            ("GITHUB_JOB", "test"),
            ("GITHUB_REF_NAME", "main"),
            ("GITHUB_SHA", "c0ffee"),
            ("RUNNER_NAME", "runner-1"),
        ],
    ),
    (
        "GitLab CI",
        "gitlab-ci",
        &[
            ("GITLAB_CI", "true"),
            ("CI_PIPELINE_ID", "812"),
            ("CI_JOB_NAME", "test 2/3"),
            ("CI_JOB_GROUP_NAME", "test"),
            ("CI_NODE_INDEX", "2"),
            ("CI_NODE_TOTAL", "3"),
            ("CI_COMMIT_BRANCH", "main"),
            ("CI_COMMIT_SHA", "c0ffee"),
        ],
    ),
    (
        "Jenkins",
        "jenkins",
        &[
            ("JENKINS_URL", "http://ci/"),
            ("JOB_NAME", "shop"),
            ("BUILD_NUMBER", "812"),
            ("STAGE_NAME", "Test"),
            ("BRANCH_NAME", "main"),
            ("GIT_COMMIT", "c0ffee"),
        ],
    ),
    (
        "CircleCI",
        "circleci",
        &[
            ("CIRCLECI", "true"),
            ("CIRCLE_WORKFLOW_ID", "812"),
            ("CIRCLE_JOB", "test"),
            ("CIRCLE_BRANCH", "main"),
            ("CIRCLE_SHA1", "c0ffee"),
            ("CIRCLE_NODE_INDEX", "1"),
            ("CIRCLE_NODE_TOTAL", "3"),
        ],
    ),
    (
        "Buildkite",
        "buildkite",
        &[
            ("BUILDKITE", "true"),
            ("BUILDKITE_BUILD_ID", "812"),
            ("BUILDKITE_STEP_KEY", "test"),
            ("BUILDKITE_BRANCH", "main"),
            ("BUILDKITE_COMMIT", "c0ffee"),
            ("BUILDKITE_PARALLEL_JOB", "1"),
            ("BUILDKITE_PARALLEL_JOB_COUNT", "3"),
        ],
    ),
    (
        "Azure Pipelines",
        "azure-pipelines",
        &[
            ("TF_BUILD", "True"),
            ("BUILD_BUILDID", "812"),
            ("SYSTEM_PHASENAME", "test"),
            ("SYSTEM_JOBPOSITIONINPHASE", "2"),
            ("SYSTEM_TOTALJOBSINPHASE", "3"),
            ("BUILD_SOURCEBRANCH", "refs/heads/main"),
            ("BUILD_SOURCEVERSION", "c0ffee"),
        ],
    ),
    (
        "Bitbucket Pipelines",
        "bitbucket-pipelines",
        &[
            ("BITBUCKET_BUILD_NUMBER", "812"),
            ("BITBUCKET_BRANCH", "main"),
            ("BITBUCKET_COMMIT", "c0ffee"),
            ("BITBUCKET_PARALLEL_STEP", "1"),
            ("BITBUCKET_PARALLEL_STEP_COUNT", "3"),
        ],
    ),
    (
        "TeamCity",
        "teamcity",
        &[
            ("TEAMCITY_VERSION", "2026.1"),
            ("TEAMCITY_BUILD_ID", "812"),
            ("TEAMCITY_BUILD_BRANCH", "main"),
            ("BUILD_VCS_NUMBER", "c0ffee"),
        ],
    ),
];

/// The variables that the matrices and shards of the page set.
const JOB_VARIABLES: [(&str, &str); 6] = [
    ("OS", "ubuntu-latest"),
    ("PYTHON", "3.13"),
    ("SHARD", "2/3"),
    ("BATCH", "2"),
    ("WHOLE", "812"),
    ("ASSAY_KEY_WEB", crate::upload::KEY),
];

/// The parts of a service's snippet. A comment begins each.
const PARTS: [&str; 5] = [
    "A job",
    "Or, where another step runs the tests",
    "Matrix",
    "Shards",
    "Monorepo",
];

/// The text of the page.
fn page() -> String {
    fs::read_to_string(root().join("docs/ci.md")).unwrap()
}

/// The section of the page about a service.
fn section(service: &str) -> String {
    let page = page();
    let (_, section) = page.split_once(&format!("\n## {service}\n")).unwrap();
    section.split("\n## ").next().unwrap().to_owned()
}

/// The commands that a job of a service runs, each with its part: the lines of its section, and of the section about
/// all services, that call `assay run` or `assay upload`, without the syntax of the service's configuration.
fn commands(service: &str) -> Vec<(String, String)> {
    let (mut commands, mut part, mut in_block) = (Vec::new(), "", false);
    let text = section("What a job needs") + "\n" + &section(service);
    for line in text.lines() {
        let code = line.trim_start();
        if code.starts_with("```") {
            in_block = !in_block;
            part = "";
        }
        if let Some(comment) = code.strip_prefix("# ").or(code.strip_prefix("// ")) {
            part = PARTS
                .into_iter()
                .find(|part| comment.starts_with(part))
                .unwrap_or(part);
        }
        let found = ["assay run ", "assay upload "]
            .iter()
            .find_map(|words| line.find(words));
        let Some(at) = found.filter(|_| in_block) else {
            continue;
        };
        let (before, command) = line.split_at(at);
        let command = match before.chars().last() {
            // Jenkins' `sh '…'`.
            Some('\'') => command.split('\'').next().unwrap(),
            _ => command,
        };
        // Buildkite escapes `$` as `$$`.
        commands.push((part.to_owned(), command.replace("$$", "$")));
    }
    commands
}

/// Whether a service sets this variable for parallel jobs only, and not for those of a matrix.
fn is_of_parallel_jobs_only(variable: &str) -> bool {
    variable.starts_with("CIRCLE_NODE_") || variable.starts_with("BUILDKITE_PARALLEL_")
}

/// Creates a folder of programs for the path. Its `pytest` writes the requested report.
fn install(folder: &Path) -> String {
    let bin = folder.join("bin");
    fs::create_dir(&bin).unwrap();
    let report = junit::report(&now(), &[("adds", true)]);
    let pytest = format!(
        "#!/bin/sh\nfor word in \"$@\"; do case $word in --junitxml=*) file=${{word#--junitxml=}}; mkdir -p \"$(dirname \"$file\")\"\n\
         cat > \"$file\" <<'XML'\n{report}XML\n;; esac; done\n"
    );
    fs::write(bin.join("pytest"), pytest).unwrap();
    fs::set_permissions(bin.join("pytest"), fs::Permissions::from_mode(0o755)).unwrap();
    let programs = assay_testkit::program("assay")
        .parent()
        .unwrap()
        .display()
        .to_string();
    format!("{}:{programs}:{}", bin.display(), std::env::var("PATH").unwrap())
}

/// A shell that runs a command of a job in a folder, with these programs and only the variables of `plain`.
fn shell(plain: &Command, folder: &Path, programs: &str, command: &str) -> Command {
    let mut shell = Command::new("bash");
    shell
        .args(["-euo", "pipefail", "-c", command])
        .env_clear()
        .current_dir(folder);
    shell.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.env("PATH", programs);
    shell
}

/// Runs a command of a job, and returns the received fields.
fn received_fields(command: &str, variables: &[(&str, &str)]) -> (BTreeMap<String, String>, Value) {
    let receiver = Receiver::start(vec![stored()]);
    let job = Job::new(&receiver.url);
    job.write(
        "junit.xml",
        &junit::report("2026-11-20T10:00:00Z", &[("adds", true)]),
    );
    let folder = job.folder.path();
    let output = shell(&job.command(&[]), folder, &install(folder), command)
        .envs(variables.iter().copied())
        .envs(JOB_VARIABLES)
        .output()
        .unwrap();
    assert!(output.status.success(), "{command}: {}", stderr_text(&output));
    let requests = receiver.requests();
    assert_eq!(requests.len(), 1, "{command}");
    let parts = requests[0].parts().into_iter();
    let fields: BTreeMap<_, _> = parts
        .filter(|part| part.1.is_none())
        .map(|part| (part.0, part.2))
        .collect();
    let ci = serde_json::from_str(&fields["ci"]).unwrap();
    (fields, ci)
}

#[test]
fn every_command_of_every_service_runs_under_its_variables() {
    for (page, provider, variables) in SERVICES {
        let commands = commands(page);
        assert!(commands.len() >= 8, "{page}: {commands:?}");
        for (section, command) in commands {
            let variables: Vec<_> = variables
                .iter()
                .copied()
                .filter(|(name, _)| section != "Matrix" || !is_of_parallel_jobs_only(name))
                .collect();
            let (fields, ci) = received_fields(&command, &variables);
            assert_eq!(ci["provider"], provider, "{page}");
            assert_eq!(
                (&ci["branch"], &ci["commit"]),
                (&"main".into(), &"c0ffee".into()),
                "{page}"
            );
            assert!(ci["runKey"].as_str().unwrap().contains("812"), "{page}: {ci}");
            // Each job has a suite, which the service or the command names, and a shard has its number.
            let value = |name: &str| fields.get(name).map(String::as_str).or(ci[name].as_str());
            assert!(
                value("suite").is_some_and(|suite| !suite.is_empty()),
                "{page}: {command}: {ci}"
            );
            match section.as_str() {
                "Matrix" => assert!(matches!(value("shard"), None | Some("1/1")), "{page}: {command}"),
                "Shards" => assert!(value("shard").is_some(), "{page}: {command}"),
                _ => {}
            }
        }
    }
}

#[test]
fn every_command_of_every_service_stores_a_run_of_its_own() {
    let site = Site::new();
    let folder = site.world.folder.path();
    let path = install(folder);
    site.world
        .file("junit.xml", &junit::report(&now(), &[("adds", true)]));
    let mut builds = 0;
    for (page, provider, variables) in SERVICES {
        let before = site.runs();
        let commands = commands(page);
        for (section, command) in &commands {
            builds += 1;
            // Each command belongs to another build.
            let build = format!("8120{builds}");
            let variables = variables
                .iter()
                .filter(|(name, _)| section != "Matrix" || !is_of_parallel_jobs_only(name))
                .chain(&JOB_VARIABLES)
                .map(|(name, value)| (*name, value.replace("812", &build)));
            let output = shell(&site.command(&[]), folder, &path, command)
                .envs(variables)
                .env("ASSAY_KEY_WEB", &site.key)
                .output()
                .unwrap();
            assert!(
                output.status.success(),
                "{page}: {command}: {}",
                stderr_text(&output)
            );
        }
        let count = i64::try_from(commands.len()).unwrap();
        let of_provider = format!("SELECT count(*) FROM run WHERE ci_provider::text = '{provider}'");
        assert_eq!(site.runs() - before, count, "{page}");
        assert_eq!(site.world.count(&of_provider), count, "{page}");
    }
    let elsewhere = "SELECT count(*) FROM run WHERE branch IS DISTINCT FROM 'main' OR commit_sha IS DISTINCT FROM 'c0ffee'";
    assert_eq!(site.world.count(elsewhere), 0);
}

/// The additional variables of each service for a pull request of a fork, from the fork's `main` if the service names
/// it.
const FORK_VARIABLES: [(&str, Variables); 8] = [
    (
        "GitHub Actions",
        &[
            ("GITHUB_REPOSITORY", "acme/shop"),
            ("GITHUB_REF_NAME", "7/merge"),
            ("GITHUB_HEAD_REF", "main"),
            ("GITHUB_EVENT_PATH", "event.json"),
        ],
    ),
    (
        "GitLab CI",
        &[
            ("CI_COMMIT_BRANCH", ""),
            ("CI_MERGE_REQUEST_IID", "7"),
            ("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "main"),
            ("CI_MERGE_REQUEST_PROJECT_PATH", "acme/shop"),
            ("CI_MERGE_REQUEST_SOURCE_PROJECT_PATH", "jo/shop"),
        ],
    ),
    (
        "Jenkins",
        &[
            ("BRANCH_NAME", "PR-7"),
            ("CHANGE_ID", "7"),
            ("CHANGE_BRANCH", "main"),
            ("CHANGE_FORK", "jo"),
        ],
    ),
    (
        "CircleCI",
        &[("CIRCLE_BRANCH", "pull/7"), ("CIRCLE_PR_NUMBER", "7")],
    ),
    (
        "Buildkite",
        &[
            ("BUILDKITE_PULL_REQUEST", "7"),
            ("BUILDKITE_REPO", "git@github.com:acme/shop.git"),
            ("BUILDKITE_PULL_REQUEST_REPO", "git://github.com/jo/shop.git"),
        ],
    ),
    (
        "Azure Pipelines",
        &[
            ("SYSTEM_PULLREQUEST_PULLREQUESTNUMBER", "7"),
            ("SYSTEM_PULLREQUEST_SOURCEBRANCH", "refs/heads/main"),
            ("SYSTEM_PULLREQUEST_ISFORK", "True"),
        ],
    ),
    (
        "Bitbucket Pipelines",
        &[("BITBUCKET_BRANCH", "topic"), ("BITBUCKET_PR_ID", "7")],
    ),
    (
        "TeamCity",
        &[
            ("TEAMCITY_BUILD_BRANCH", "pull/7"),
            ("TEAMCITY_PULLREQUEST_NUMBER", "7"),
        ],
    ),
];

#[test]
fn a_fork_reports_with_a_key_for_pull_requests_and_without_one_its_tests_still_run() {
    let site = Site::new();
    let folder = site.world.folder.path();
    let path = install(folder);
    let event = r#"{"pull_request": {"number": 7, "head": {"sha": "c0ffee", "ref": "main", "repo": {"full_name": "jo/shop"}}}}"#;
    site.world.file("event.json", event);
    let made = site
        .world
        .cli
        .json(&["key", "create-ingest", "--project", "web", "--pull-requests-only"]);
    let key = made["key"].as_str().unwrap();
    for ((page, provider, variables), (of_page, of_a_fork)) in SERVICES.into_iter().zip(FORK_VARIABLES) {
        assert_eq!(page, of_page);
        let of_jobs = commands(page);
        let (_, command) = of_jobs.iter().find(|(section, _)| section == "A job").unwrap();
        let run = |command: &str, key: &str| {
            shell(&site.command(&[]), folder, &path, command)
                .envs(variables.iter().copied())
                .envs(of_a_fork.iter().copied())
                .env("ASSAY_INGEST_KEY", key)
                .output()
                .unwrap()
        };
        let _ = fs::remove_file(folder.join("junit.xml"));
        let output = run(command, key);
        assert!(output.status.success(), "{page}: {}", stderr_text(&output));
        let stored = format!(
            "SELECT count(*) FROM run WHERE ci_provider::text = '{provider}' AND pull_request_number = 7 \
             AND branch <> 'main'"
        );
        assert_eq!(site.world.count(&stored), 1, "{page}");

        // Without a key, the command prints an error with the options before the tests run, or a warning.
        fs::remove_file(folder.join("junit.xml")).unwrap();
        let output = run(command, "");
        assert_eq!(output.status.code(), Some(2), "{page}");
        for part in [
            "ASSAY_INGEST_KEY is not set",
            "--pull-requests-only",
            "--best-effort",
        ] {
            assert!(
                stderr_text(&output).contains(part),
                "{page}: {}",
                stderr_text(&output)
            );
        }
        assert!(!folder.join("junit.xml").exists(), "{page}");
        let output = run(&command.replace("assay run", "assay run --best-effort"), "");
        assert!(output.status.success(), "{page}: {}", stderr_text(&output));
        assert!(
            stderr_text(&output).to_lowercase().contains("warning")
                && stderr_text(&output).contains("nothing was stored"),
            "{page}: {}",
            stderr_text(&output)
        );
        assert!(folder.join("junit.xml").exists(), "{page}");
        assert_eq!(site.world.count(&stored), 1, "{page}");
    }
}

#[test]
fn every_service_has_the_same_parts_and_no_database() {
    for (service, _, _) in SERVICES {
        let commands = commands(service);
        for part in PARTS {
            assert!(commands.iter().any(|(of, _)| of == part), "{service}: {part}");
        }
        for part in ["**Variables**: ", "**Run again**: ", "**Forks**: "] {
            assert!(section(service).contains(part), "{service}: {part}");
        }
    }
    assert!(!page().contains("DATABASE_URL") && !page().contains("postgres"));
}

#[test]
fn no_example_for_ci_has_the_databases_address() {
    for page in [
        "README.md",
        "docs/tutorial.md",
        "docs/migrating.md",
        "docs/cli.md",
    ] {
        for block in blocks(&root().join(page)) {
            if matches!(block.language.as_str(), "yaml" | "groovy") {
                assert!(!block.text.contains("DATABASE_URL"), "{page}: {}", block.text);
                assert!(
                    !block.text.contains("assay-admin import"),
                    "{page}: {}",
                    block.text
                );
            }
        }
    }
}

/// The scripts of the composite action, in order.
fn scripts_of_the_action() -> Vec<String> {
    let text = fs::read_to_string(root().join("action.yml")).unwrap();
    let mut scripts: Vec<String> = Vec::new();
    let mut is_script = false;
    for line in text.lines() {
        if line == "      run: |" {
            scripts.push(String::new());
            is_script = true;
        } else if let Some(code) = line.strip_prefix("        ").filter(|_| is_script) {
            scripts.last_mut().unwrap().push_str(&format!("{code}\n"));
        } else {
            is_script = false;
        }
    }
    scripts
}

/// Runs the action's scripts with these inputs. They write a record into the folder.
fn run_action(job: &Job, inputs: &[(&str, &str)]) -> std::process::Output {
    let folder = job.folder.path();
    let path = install(folder);
    // `python3 -m venv` makes an environment whose pip records the packages, `cargo install` records the sources.
    let assay = assay_testkit::program("assay");
    let install = |root: &str, then: &str| {
        let assay = assay.display();
        format!("#!/bin/sh\nmkdir -p \"{root}/bin\"; ln -s {assay} \"{root}/bin/assay\"\n{then}\n")
    };
    let pip = "printf '#!/bin/sh\\necho \"$*\" >> installed\\n' > \"$3/bin/pip\"; chmod +x \"$3/bin/pip\"";
    for (name, script) in [
        ("python3", install("$3", pip)),
        ("cargo", install("$7", "echo \"$*\" >> installed")),
    ] {
        fs::write(folder.join("bin").join(name), script).unwrap();
        fs::set_permissions(folder.join("bin").join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let scripts = scripts_of_the_action();
    assert_eq!(scripts.len(), 2);
    let plain = job.command(&[]);
    let mut shell = std::process::Command::new("bash");
    shell
        .args(["-eo", "pipefail", "-c", &scripts.concat()])
        .env_clear()
        .current_dir(folder);
    shell.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell
        .env("PATH", path)
        .env("RUNNER_TEMP", folder.join("runner temp"));
    shell.env("ASSAY_PACKAGE", "https://files.example.org/assay.whl");
    shell.env("ASSAY_ACTION", root());
    for input in ["ASSAY_COMMAND", "ASSAY_ARGUMENTS", "ASSAY_RERUN"] {
        shell.env(input, "");
    }
    shell.envs(inputs.iter().copied()).output().unwrap()
}

#[test]
fn the_action_installs_the_program_and_sends_the_report() {
    for (inputs, files, status) in [
        (
            &[
                ("ASSAY_REPORTS", "a/*.xml\nb/junit.xml\n"),
                (
                    "ASSAY_COMMAND",
                    "pytest --junitxml=a/1.xml\npytest --junitxml=b/junit.xml",
                ),
                ("ASSAY_ARGUMENTS", "--suite\ne2e on linux\n"),
            ][..],
            &["a/1.xml", "b/junit.xml"][..],
            0,
        ),
        (
            &[
                ("ASSAY_REPORTS", "a/1.xml"),
                ("ASSAY_COMMAND", "pytest --junitxml=a/1.xml; exit 4"),
            ],
            &["a/1.xml"],
            4,
        ),
        (&[("ASSAY_REPORTS", "out")], &["out/junit.xml"], 0),
    ] {
        let receiver = Receiver::start(vec![stored()]);
        let job = Job::new(&receiver.url);
        let output = run_action(&job, inputs);
        assert_eq!(
            output.status.code(),
            Some(status),
            "{inputs:?}: {}",
            stderr_text(&output)
        );
        let installed = fs::read_to_string(job.folder.path().join("installed")).unwrap();
        assert!(
            installed.ends_with(" https://files.example.org/assay.whl\n"),
            "{installed}"
        );
        let requests = receiver.requests();
        let names: Vec<_> = requests[0].files().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, files);
        let suite = inputs
            .iter()
            .any(|(name, _)| *name == "ASSAY_ARGUMENTS")
            .then_some("e2e on linux");
        assert_eq!(requests[0].field("suite").as_deref(), suite);
    }
}

#[test]
fn without_an_address_the_action_installs_the_pinned_release_or_compiles_its_sources() {
    // The bash of macOS is 3.2.
    let scripts = scripts_of_the_action().concat();
    for newer in ["mapfile ", "readarray ", "declare -A", "local -n", ",,}", "^^}"] {
        assert!(!scripts.contains(newer), "{newer}");
    }
    let receiver = Receiver::start(vec![stored(), stored()]);
    let action = tempfile::tempdir().unwrap();
    let wheel = action
        .path()
        .join("assay_verdicts-0.1.0-py3-none-manylinux_2_17_x86_64.whl");
    fs::write(&wheel, "").unwrap();
    let pinned = Command::new(root().join("packaging/pin"))
        .args(["https://files.example.org", wheel.to_str().unwrap()])
        .output()
        .unwrap();
    let text = String::from_utf8(pinned.stdout).unwrap();
    assert_contains(&text, "manylinux_2_17_x86_64.whl ; sys_platform == \"linux\" and");
    assert_contains(&text, " --hash=sha256:e3b0c44298fc1c14");
    fs::create_dir(action.path().join("packaging")).unwrap();
    for (release, installed) in [
        (text.as_str(), "--require-hashes --requirement "),
        ("# none\n", "install --quiet --locked --path "),
    ] {
        fs::write(action.path().join("packaging/release.txt"), release).unwrap();
        let job = Job::new(&receiver.url);
        let inputs = [
            ("ASSAY_REPORTS", "out"),
            ("ASSAY_PACKAGE", ""),
            ("ASSAY_ACTION", action.path().to_str().unwrap()),
        ];
        let output = run_action(&job, &inputs);
        assert!(output.status.success(), "{}", stderr_text(&output));
        let arguments = fs::read_to_string(job.folder.path().join("installed")).unwrap();
        assert_contains(&arguments, installed);
    }
}

#[test]
fn the_action_gives_the_gate_its_time_for_reruns() {
    let inputs = [
        ("ASSAY_REPORTS", "a/1.xml"),
        ("ASSAY_COMMAND", "pytest --junitxml=a/1.xml"),
        ("ASSAY_GATE", "true"),
    ];
    let run_key = |rerun: &str| {
        let receiver = Receiver::start(vec![stored()]);
        let job = Job::new(&receiver.url);
        run_action(&job, &[&inputs[..], &[("ASSAY_RERUN", rerun)]].concat());
        receiver.requests()[0].field("runKey")
    };
    assert_ne!(run_key(""), run_key(""));
    assert!(run_key("90s").is_some());

    let receiver = Receiver::start(vec![stored()]);
    let without_gate = [inputs[0], inputs[1], ("ASSAY_RERUN", "90s")];
    let output = run_action(&Job::new(&receiver.url), &without_gate);
    assert_eq!(output.status.code(), Some(2), "{}", stderr_text(&output));
}
