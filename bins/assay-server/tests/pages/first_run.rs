//! What a new user sees before the first report.

use assay_testkit::{Browser, Scripts, ServedWorld, Server, World, assert_contains, program, text};
use serde_json::json;

const REPORT: &str = r#"<testsuite><testcase classname="cart" name="adds" time="0.1"/></testsuite>"#;

fn signed_in(world: &ServedWorld) -> Browser {
    let browser = Browser::start(Scripts::On);
    browser.open(&format!("{}/login", world.server.front().base()));
    browser.write("input[name=key]", &world.key);
    browser.click("button.main");
    browser.until("return location.pathname !== '/login'");
    browser
}

/// Runs a command that a page shows.
fn run(world: &ServedWorld, command: &str) -> serde_json::Value {
    let words: Vec<&str> = command.split(' ').collect();
    let ["assay-admin", arguments @ ..] = words.as_slice() else {
        panic!("no command: {command}")
    };
    world.cli.json(arguments)
}

#[test]
fn a_project_without_runs_leads_to_its_first_run_by_what_the_page_shows() {
    let world = ServedWorld::on_one_address(&[]);
    let browser = signed_in(&world);
    browser.permit_clipboard();
    for width in [1_280, 360] {
        browser.resize(width, 900);
        assert_eq!(
            browser.run("return document.documentElement.scrollWidth <= innerWidth"),
            json!(true)
        );
    }
    let shown = |selector: &str| {
        text(&browser.run(&format!(
            "return document.querySelector('{selector}').textContent"
        )))
    };
    let key = text(&run(&world, &shown("#key-command"))["key"]);
    let url = shown("#address");

    // The first service is open. Another one closes it, and its lines can be copied.
    let open = "return [...document.querySelectorAll('details[open] summary')].map((summary) => summary.firstChild.textContent.trim())";
    assert_eq!(browser.run(open), json!(["GitHub Actions"]));
    browser.click("details:nth-of-type(2) summary");
    browser.until("return document.querySelectorAll('details[open]').length === 1");
    assert_eq!(browser.run(open), json!(["GitLab CI"]));
    browser.click("button[data-copy=job-1]");
    browser.until("return document.querySelector('button[data-copy=job-1]').textContent === 'Copied'");
    browser.run("navigator.clipboard.readText().then((text) => { window.copied = text })");
    browser.until("return window.copied !== undefined");
    let lines = text(&browser.run("return window.copied"));
    assert_eq!(lines, shown("#job-1"));
    assert_contains(&lines, &format!("ASSAY_URL: {url}"));
    assert_eq!(browser.console(), Vec::<String>::new());

    // A job with these variables.
    let job = std::process::Command::new(program("assay"))
        .args(["run", "--branch", "main", "--report", "r.xml", "--"])
        .args(["sh", "-c", &format!("printf '%s' '{REPORT}' > r.xml")])
        .current_dir(world.folder.path())
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap())
        .env("ASSAY_URL", &url)
        .env("ASSAY_INGEST_KEY", key)
        .output()
        .unwrap();
    assert!(job.status.success(), "{job:?}");
    browser.reload();
    assert_eq!(browser.text("h1"), "No test fails on main as of run 1");
}

#[test]
fn an_organization_without_projects_is_set_up_by_the_command_of_its_page() {
    let world = World::new();
    world.cli.json(&["project", "delete", "--yes", "web"]);
    let server = Server::start_on_one_address(
        world.database.url(),
        &[("ASSAY_PUBLIC_URL", "http://assay.example.org")],
    );
    let world = world.served_by(server);
    let cookie = world.server.front().sign_in(&world.key);
    let page = world.server.front().get_with("/", &[("Cookie", &cookie)]).text();
    let (_, command) = page
        .split_once("id=\"setup\" tabindex=\"0\">")
        .unwrap_or_else(|| panic!("no command: {page}"));
    let command = command.split('<').next().unwrap();
    assert_eq!(
        command,
        format!(
            "assay-admin setup --org {} --project my-project --url http://assay.example.org",
            world.org
        )
    );
    let made = run(&world, command);
    assert_eq!(made["organizationId"], world.org.as_str());
    let project = text(&made["projectId"]);
    let moved = world.server.front().get_with("/", &[("Cookie", &cookie)]);
    assert_eq!(moved.header("location"), Some(format!("/p/{project}").as_str()));
}
