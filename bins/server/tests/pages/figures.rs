//! Each figure on a page is the read API's, asked beside it.

use assay_testkit::Scripts;
use serde_json::{Value, json};

use crate::world::World;

#[test]
fn the_overview_counts_what_the_flaky_list_counts() {
    let world = World::new();
    let browser = world.signed_in(Scripts::Off);
    browser.open(&world.url(&format!("/p/{}", world.project)));
    let flaky = |query: &str| world.api(&format!("/projects/{}/flaky?{query}", world.project));
    for (tile, expected) in [
        (
            ".tile.broken .figure",
            flaky("status=broken")["page"]["total"].clone(),
        ),
        (
            ".tile.flaky .figure",
            flaky("status=flaky")["page"]["total"].clone(),
        ),
        (".tile.failing .figure", flaky("")["failingCount"].clone()),
    ] {
        assert_eq!(browser.text(tile), expected.to_string(), "{tile}");
    }
    // The fixture has something of each that the page shows.
    assert!(flaky("status=broken")["page"]["total"].as_i64().unwrap() > 0);
    assert!(flaky("status=flaky")["page"]["total"].as_i64().unwrap() > 0);
}

#[test]
fn the_list_of_tests_has_the_scores_and_names_of_the_flaky_list() {
    let world = World::new();
    let browser = world.signed_in(Scripts::Off);
    let list = world.api(&format!(
        "/projects/{}/flaky?status=flaky&perPage=50",
        world.project
    ));
    browser.open(&world.url(&format!("/p/{}/tests?status=flaky", world.project)));
    let shown = browser.run(
        "return [...document.querySelectorAll('#results .row')].map((row) => \
         [row.querySelector('.name').title, row.querySelector('.figure').lastChild.textContent])",
    );
    let expected: Vec<Value> = list["tests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|test| {
            json!([
                test["testName"],
                format!("{:.2}", test["flakeScore"].as_f64().unwrap())
            ])
        })
        .collect();
    assert_eq!(shown, json!(expected));
}

#[test]
fn a_runs_page_has_the_counts_of_the_run() {
    let world = World::new();
    let browser = world.signed_in(Scripts::Off);
    let runs = world.api(&format!("/projects/{}/runs?perPage=50", world.project));
    browser.open(&world.url(&format!("/p/{}/runs", world.project)));
    assert!(
        browser
            .text("main")
            .contains(&format!("{} runs in", runs["total"])),
        "{}",
        browser.text("main")
    );
    for run in runs["runs"].as_array().unwrap() {
        let id = run["id"].as_str().unwrap();
        browser.open(&world.url(&format!("/p/{}/runs/{id}?show=all", world.project)));
        let counts = &run["counts"];
        let plain = counts["passed"].as_i64().unwrap() - counts["recovered"].as_i64().unwrap();
        let facts = browser.text(".box .facts");
        for figure in [
            format!("{} failed", counts["failed"]),
            format!("{} passed on retry", counts["recovered"]),
            format!("{plain} passed at once"),
            format!("{} skipped", counts["skipped"]),
            format!("of {}", counts["total"]),
        ] {
            assert!(facts.contains(&figure), "{figure}: {facts}");
        }
        let rows = browser.run("return document.querySelectorAll('ol.rows .row').length");
        assert_eq!(rows, counts["total"]);
    }
}

#[test]
fn a_tests_page_has_the_evidence_and_the_history_of_the_test() {
    let world = World::new();
    let browser = world.signed_in(Scripts::Off);
    let page = world
        .pages()
        .into_iter()
        .find(|page| page.contains("/test?name=cart%20%3E%20flips") || page.contains("flips&"))
        .unwrap();
    let (_, query) = page.split_once('?').unwrap();
    browser.open(&world.url(&format!("/p/{}/test?{query}", world.project)));
    let api = browser.run("return document.querySelector('footer a').getAttribute('href')");
    let (_, path) = api.as_str().unwrap().split_once("/api/v1").unwrap();
    let history = world.api(path);
    let cells = browser.run("return document.querySelectorAll('ol.cells li').length");
    assert_eq!(cells, json!(history["occurrences"].as_array().unwrap().len()));
    let (test, _) = path.split_once('?').unwrap();
    let status = world.api(&format!("{test}/status?explain=true"));
    let shown = browser.text("main");
    assert!(
        shown.contains(status["explanation"].as_str().unwrap()),
        "{status}: {shown}"
    );
    for signal in status["evidence"]["signals"].as_array().unwrap() {
        assert!(
            shown.contains(signal["label"].as_str().unwrap()),
            "{signal}: {shown}"
        );
    }
}
