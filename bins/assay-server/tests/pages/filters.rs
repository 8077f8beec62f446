//! The filters of the list of tests.

use std::collections::BTreeSet;

use assay_testkit::{Scripts, text};

use crate::world::World;

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| format!("cart > {name}")).collect()
}

#[test]
fn the_list_is_filtered_by_branch_variant_error_and_what_is_new() {
    let world = World::new();
    let flags = ["--run-key", "mac", "--branch", "main", "--suite", "mac"];
    world.import_with(30, &[("is fine".to_owned(), false)], &flags);
    let browser = world.signed_in(Scripts::Off);
    let shown = |query: &str| -> BTreeSet<String> {
        browser.open(&world.url(&format!("/p/{}/tests?{query}", world.project)));
        let names = browser
            .run("return [...document.querySelectorAll('#results .row .name')].map((name) => name.title)");
        serde_json::from_value(names).unwrap()
    };
    let everything = shown("");
    assert!(everything.len() > 8, "{everything:?}");
    assert_eq!(
        shown("branch=topic"),
        names(&["breaks <b>for good</b>", "flips", "is fine"])
    );
    assert_eq!(shown("variant=mac"), names(&["is fine"]));
    assert_eq!(shown("variant=%28default%29"), everything);
    // These ran without a failure until this week.
    assert_eq!(
        shown("new=true"),
        names(&["breaks <b>for good</b>", "fails now", "is fine"])
    );
    assert_eq!(shown("new=true&branch=topic&search=fine"), names(&["is fine"]));

    let errors = world.api(&format!("/projects/{}/errors", world.project));
    for error in errors["errors"].as_array().unwrap() {
        let fingerprint = error["fingerprint"].as_str().unwrap();
        let detail = world.api(&format!("/projects/{}/errors/{fingerprint}", world.project));
        let hit = detail["tests"].as_array().unwrap().iter();
        let hit: BTreeSet<String> = hit.map(|test| text(&test["testName"])).collect();
        // A person follows the link on the error's page.
        browser.open(&world.url(&format!("/p/{}/errors/{fingerprint}", world.project)));
        let link =
            browser.run("return document.querySelector('a[href*=\"/tests?error=\"]').getAttribute('href')");
        let (_, query) = link.as_str().unwrap().split_once('?').unwrap();
        assert_eq!(shown(query), hit);
        assert!(
            browser
                .text("#results")
                .contains(error["title"].as_str().unwrap())
        );
    }
    assert_eq!(shown("error=0123"), BTreeSet::new());
    assert!(
        browser
            .text("#results")
            .contains("No test matches. Show all tests")
    );
    browser.follow("#results .empty a");
    assert_eq!(
        browser.run("return document.querySelectorAll('#results .row').length"),
        serde_json::json!(everything.len())
    );
    let cookie = world.cookie();
    for wrong in [
        "new=2",
        "variant=a&variant=b",
        &format!("variant={}", "x".repeat(501)),
    ] {
        let path = format!("/p/{}/tests?{wrong}", world.project);
        assert_eq!(world.page(&path, &cookie).status, 400, "{wrong}");
    }
}

#[test]
fn the_list_has_the_orders_of_the_api() {
    let world = World::new();
    let cookie = world.cookie();
    for (word, sort) in [("", "timeLost"), ("rate", "rate"), ("impact", "impact")] {
        let list = world.api(&format!(
            "/projects/{}/flaky?status=flaky&perPage=50&sort={sort}",
            world.project
        ));
        let expected: Vec<String> = list["tests"]
            .as_array()
            .unwrap()
            .iter()
            .map(|test| text(&test["testName"]))
            .collect();
        let page = world.page(
            &format!("/p/{}/tests?status=flaky&sort={word}", world.project),
            &cookie,
        );
        assert_eq!(names_of(&page.text()), expected, "{sort}");
    }
}

#[test]
fn the_pages_of_a_long_list_show_every_test_once() {
    let world = World::new();
    world.import_many(120, "long");
    let cookie = world.cookie();
    let mut all = Vec::new();
    for page in 1..=3 {
        let path = format!("/p/{}/tests?search=usual&page={page}", world.project);
        all.extend(names_of(&world.page(&path, &cookie).text()));
    }
    assert_eq!((all.len(), all.iter().collect::<BTreeSet<_>>().len()), (120, 120));
}

#[test]
fn the_pages_of_a_red_run_show_every_failed_test_in_the_order_of_the_api() {
    let world = World::new();
    world.import_many(120, "red");
    let runs = world.api(&format!("/projects/{}/runs?perPage=10", world.project));
    let runs = runs["runs"].as_array().unwrap();
    let run = runs.iter().find(|run| run["counts"]["total"] == 120).unwrap();
    let path = format!("runs/{}", text(&run["id"]));
    let failures = world.api(&format!("/projects/{}/{path}/failures?limit=200", world.project));
    let failures = failures["failures"].as_array().unwrap();
    let expected: Vec<String> = failures.iter().map(|test| text(&test["testName"])).collect();
    assert_eq!(expected.len(), 40);
    let cookie = world.cookie();
    let page = |query: &str| {
        let page = world.page(&format!("/p/{}/{path}?{query}", world.project), &cookie);
        names_of(&page.text())
    };
    assert_eq!(page("page=1"), expected[..30]);
    assert_eq!(page("page=2"), expected[30..]);
    // A page past the end is the last one.
    assert_eq!(page("page=9"), expected[30..]);
    assert_eq!(page("show=recovered"), Vec::<String>::new());
    let of_all: BTreeSet<String> = ["show=all", "show=all&page=2"]
        .into_iter()
        .flat_map(page)
        .collect();
    assert_eq!(of_all.len(), 120);
}

/// The tests of a list, in order.
fn names_of(page: &str) -> Vec<String> {
    let unescaped = |text: &str| {
        text.replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&quot;", "\"")
            .replace("&amp;", "&")
    };
    page.split("<span class=\"name\" title=\"")
        .skip(1)
        .map(|rest| unescaped(rest.split('"').next().unwrap()))
        .collect()
}

#[test]
fn the_list_of_runs_is_filtered_and_paged_like_the_apis() {
    let world = World::new();
    for run in 0..52 {
        let cases = [("quick".to_owned(), run % 2 == 0)];
        let key = format!("quick-{run}");
        world.import_with(
            20 * 24 * 60 + run,
            &cases,
            &["--run-key", &key, "--branch", "main"],
        );
    }
    let cookie = world.cookie();
    let numbers = |page: &str| -> Vec<i64> {
        let (_, results) = page.split_once("id=\"results\"").unwrap();
        let links = results.split("class=\"leaf\"").skip(1);
        links
            .map(|link| {
                link.split_once("Run ")
                    .unwrap()
                    .1
                    .split('<')
                    .next()
                    .unwrap()
                    .parse()
                    .unwrap()
            })
            .collect()
    };
    for filter in [
        "",
        "branch=topic",
        "branch=main&status=failed",
        "status=passed",
        "sha=aa234567",
        "days=7",
        "branch=none",
    ] {
        let list = world.api(&format!("/projects/{}/runs?perPage=50&{filter}", world.project));
        let expected: Vec<i64> = list["runs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|run| run["runNumber"].as_i64().unwrap())
            .collect();
        let page = world
            .page(&format!("/p/{}/runs?{filter}", world.project), &cookie)
            .text();
        assert_eq!(numbers(&page), expected, "{filter}");
        assert_eq!(page.contains("No run matches."), expected.is_empty(), "{filter}");
    }
    // To older runs, and back.
    let path = format!("/p/{}/runs", world.project);
    let first = world.page(&path, &cookie).text();
    let follow = |page: &str, rel: &str| {
        let (_, rest) = page.split_once(&format!("rel=\"{rel}\" href=\"")).unwrap();
        let link = rest.split('"').next().unwrap().replace("&amp;", "&");
        world.page(&link, &cookie).text()
    };
    let older = follow(&first, "next");
    assert_eq!((numbers(&first).len(), numbers(&older).len()), (50, 15));
    assert_eq!(numbers(&follow(&older, "prev")), numbers(&first));
}

#[test]
fn a_runs_tests_sort_by_duration_and_runs_show_what_they_are_about() {
    let world = World::new();
    let run = |key: &str, seconds: &[u32], flags: &[&str]| {
        let took = (seconds.iter().sum::<u32>() * 1_000).to_string();
        let cases: String = seconds
            .iter()
            .map(|seconds| format!("<testcase classname=\"c\" name=\"takes {seconds} s\" file=\"{seconds}.test.ts\" time=\"{seconds}\"/>"))
            .collect();
        let report = format!("<testsuite>{cases}</testsuite>");
        world.import_report(
            5,
            &report,
            &[&["--run-key", key, "--duration-ms", &took], flags].concat(),
        )
    };
    let pull_request = [
        "--branch",
        "topic",
        "--pr",
        "7",
        "--pr-title",
        "Sell <b>shoes</b>",
        "--author",
        "Jo",
    ];
    let run_id = text(&run("long", &[10, 300, 20], &pull_request)["runId"]);
    run("short", &[1], &["--branch", "main"]);
    let browser = world.signed_in(Scripts::Off);
    let project = world.url(&format!("/p/{}", world.project));

    browser.open(&format!("{project}/runs?branch=topic"));
    let first = browser.text("#results .row");
    assert!(
        first.contains("on topic, pull request 7") && first.contains("Sell <b>shoes</b>, by Jo"),
        "{first}"
    );

    let shown = || -> Vec<String> {
        let names =
            browser.run("return [...document.querySelectorAll('.row .name')].map((name) => name.title)");
        serde_json::from_value(names).unwrap()
    };
    browser.open(&format!("{project}/runs/{run_id}?show=all"));
    assert_eq!(shown(), ["c > takes 10 s", "c > takes 20 s", "c > takes 300 s"]);
    browser.follow("a[href*='sort=duration']");
    assert_eq!(shown(), ["c > takes 300 s", "c > takes 20 s", "c > takes 10 s"]);
}

#[test]
fn projects_are_searched_and_those_with_failing_tests_come_first() {
    let world = World::new();
    for name in ["Quiet", "Café", "Red"] {
        world.cli.json(&["project", "create", "--org", "Shop", name]);
    }
    // More than fail in the project that exists.
    let cases: String = (0..20)
        .map(|test| format!("<testcase name=\"{test}\"><failure/></testcase>"))
        .collect();
    let report = world.file("red.xml", &format!("<testsuite>{cases}</testsuite>"));
    world.cli.json(&[
        "import",
        "--project",
        "Red",
        "--branch",
        "main",
        "--run-key",
        "1",
        &report,
    ]);
    let browser = world.signed_in(Scripts::On);
    let shown = "return [...document.querySelectorAll('#results h2')].map((name) => name.textContent)";
    browser.open(&world.url("/"));
    assert_eq!(
        browser.run(shown),
        serde_json::json!(["Red", "web", "Quiet", "Café"])
    );
    browser.write("input[name=search]", "CAFÉ");
    browser.until("return document.querySelectorAll('#results h2').length === 1");
    assert_eq!(browser.run(shown), serde_json::json!(["Café"]));
    assert_eq!(browser.console(), Vec::<String>::new());
}
