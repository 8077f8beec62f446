//! No page contradicts another page, a message, the API or itself: in the demonstration and in three generated projects.

use std::process::Command;

use assay_testkit::{Browser, Scripts, ServedWorld, Server, free_address, junit, program, wait_until};
use serde_json::Value;

use crate::reader::Reader;

#[test]
fn no_page_of_the_demonstration_contradicts_another() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(program("assay-server"));
    command.arg("--demo").current_dir(folder.path());
    let front = free_address();
    let mut server = crate::demo::Demonstration(Server::launch(
        command,
        &[
            ("ASSAY_FRONT_LISTEN", &front),
            ("ASSAY_INGEST_LISTEN", "same"),
            ("ASSAY_RATE_LIMIT", "0"),
        ],
    ));
    server.0.ready();
    server.0.wait_for_log("Stop with Ctrl-C.");
    let log = server.0.log();
    let link = log
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with("http") && line.contains("/login#"))
        .unwrap();
    let (_, key) = link.split_once("/login#").unwrap();
    let (_, reports) = log.split_once("Reports are taken on ").unwrap();
    let ingest_key = reports.split("Bearer ").nth(1).unwrap().split('\'').next();
    let mut ingest_key = ingest_key.map(str::to_owned);
    let projects = server.0.client().get("/api/v1/projects", Some(key)).json();
    let projects = projects["projects"].as_array().unwrap();
    let file = folder.path().join(".assay-demo/messages.txt");
    let mut messages = String::new();
    let heading = |project: &Value| format!("\n{}: ", project["name"].as_str().unwrap());
    // Nothing of the third project changed.
    wait_until("messages about two projects", || {
        messages = std::fs::read_to_string(&file).unwrap_or_default();
        let with_message = projects
            .iter()
            .filter(|project| messages.contains(&heading(project)));
        with_message.count() == 2
    });
    let mut seen = [0; 5];
    for project in projects {
        let browser = Browser::start(Scripts::On);
        browser.open(link);
        browser.until("return location.pathname === '/'");
        let (_, of_project) = messages.split_once(&heading(project)).unwrap_or_default();
        let of_project = of_project.split("\nhttp").next().unwrap();
        let project = project["id"].as_str().unwrap();
        let reader = Reader::new(browser, server.0.client(), (key, ingest_key.take()), project);
        let of_project = reader.read(of_project);
        for (seen, more) in seen.iter_mut().zip(of_project) {
            *seen += more;
        }
    }
    assert!(seen.iter().all(|pages| *pages > 0), "{seen:?}");
}

#[test]
fn no_page_contradicts_another_after_a_commit_that_breaks_many_tests() {
    read_generated(1, |run, test| run >= 14 && test < 14);
}

#[test]
fn no_page_contradicts_another_after_an_outage_and_a_mended_breakage() {
    read_generated(2, |run, test| {
        (run == 9 && test < 30) || ((4..7).contains(&run) && test == 3) || (run >= 12 && test == 5)
    });
}

#[test]
fn no_page_contradicts_another_while_a_build_is_not_complete() {
    read_generated(3, |run, test| {
        (run >= 11 && test < 2) || (run == 15 && (20..26).contains(&test))
    });
}

const TESTS: u64 = 40;
const RUNS: u64 = 16;

/// Sixteen runs of main in five days, five of branches. Tests from 34 on are flaky. `is_broken` says which others fail in
/// a run of main. With seed 3, the newest run of main lacks a shard.
fn read_generated(seed: u64, is_broken: impl Fn(u64, u64) -> bool) {
    let world = assay_testkit::World::new();
    let events = "run_failed,run_recovered,new_error,test_flaky,test_broken,test_resolved";
    world
        .cli
        .json(&["project", "set", "web", "--chat-events", events]);
    let mut random = seed;
    let mut dice = move |sides: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % sides
    };
    let mut import =
        |minutes_ago: u64, branch: &str, commit: u64, failed: &dyn Fn(u64) -> bool, more: &[&str]| {
            let cases: Vec<(String, bool)> = (0..TESTS)
                .map(|test| {
                    (
                        format!("shop adds {test}"),
                        !failed(test) && (test < 34 || dice(5) > 0),
                    )
                })
                .collect();
            let failure = |name: &str| (format!("expected 3 by {name}"), format!("at {name}"));
            let report = junit(&cases, "tests/shop.test.ts", failure);
            let (key, commit) = (format!("{branch}-{minutes_ago}"), format!("{commit:040x}"));
            let mut flags = vec!["--run-key", &key, "--branch", branch, "--commit", &commit];
            flags.extend(more);
            world.import_report(i64::try_from(minutes_ago).unwrap(), &report, &flags);
        };
    for run in 0..RUNS {
        let is_last = run + 1 == RUNS;
        let shard: &[&str] = if is_last && seed == 3 {
            &["--shard", "1/2"]
        } else {
            &[]
        };
        import(
            2 + (RUNS - run - 1) * 450,
            "main",
            1_000 + run,
            &|test| is_broken(run, test),
            shard,
        );
        // A branch from there, which breaks a test of its own, is run twice, or is innocent.
        if run % 3 == 2 {
            let branch = format!("topic-{run}");
            let own = |test| is_broken(run, test) || (run % 2 == 0 && test == run);
            import((RUNS - run - 1) * 450 + 200, &branch, 2_000 + run, &own, &[]);
            if run > 8 {
                import((RUNS - run - 1) * 450 + 100, &branch, 3_000 + run, &own, &[]);
            }
        }
    }
    let messages = messages(&world);
    let server = Server::start_on_one_address(world.database.url(), &[("ASSAY_RATE_LIMIT", "0")]);
    let ingest_key = world.cli.json(&["key", "create-ingest", "--project", "web"])["key"].take();
    let ingest_key = ingest_key.as_str().map(str::to_owned);
    let served: ServedWorld = world.served_by(server);
    let front = served.server.front();
    let browser = Browser::start(Scripts::On);
    browser.open(&format!("{}/login", front.base()));
    browser.write("input[name=key]", &served.key);
    browser.click("button.main");
    browser.until("return location.pathname !== '/login'");
    let project = served.project.clone();
    let seen = Reader::new(
        browser,
        served.server.client(),
        (&served.key, ingest_key),
        &project,
    )
    .read(&messages);
    assert!(seen.iter().all(|pages| *pages > 0), "{seen:?}");
}

/// What `assay-notify` writes about all that is due.
fn messages(world: &assay_testkit::World) -> String {
    let path = world.file("messages.txt", "");
    let config = world.file(
        "notify.toml",
        &format!("[[target]]\nname = \"log\"\nfile = {{ path = {path:?} }}\n"),
    );
    std::fs::set_permissions(&config, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let arguments = [
        "--once",
        "--config",
        &config,
        "--database-url",
        world.database.url(),
    ];
    let output = Command::new(program("assay-notify"))
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    std::fs::read_to_string(path).unwrap()
}
