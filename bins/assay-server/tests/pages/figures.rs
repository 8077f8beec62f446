//! Each figure on a page equals the read API's.

use std::collections::BTreeSet;

use assay_testkit::{Scripts, assert_contains};
use serde_json::{Value, json};

use crate::world::{World, route_of, routes};

/// The words that pages write for the numbers of an answer: as they are, as durations and as percentages. The length of
/// each list is a number, too.
fn words_of(answer: &Value, words: &mut BTreeSet<String>) {
    match answer {
        Value::Number(number) => {
            let value = number.as_f64().unwrap();
            words.extend([format!("{value}"), format!("{value:.1}"), format!("{value:.2}")]);
            words.extend([
                format!("{:.0} %", value * 100.0),
                format!("{:.1} %", value * 100.0),
            ]);
            if let Some(ms) = number.as_i64() {
                words.insert(duration(ms.unsigned_abs()));
                // The difference of two durations has a sign.
                words.insert(format!(
                    "{}{}",
                    if ms < 0 { '−' } else { '+' },
                    duration(ms.unsigned_abs())
                ));
            }
        }
        Value::Array(items) => {
            words.insert(items.len().to_string());
            items.iter().for_each(|item| words_of(item, words));
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                // The stable branch may be red now, and the page was read up to ten seconds before.
                if let ("redMs", Some(ms)) = (name.as_str(), field.as_u64()) {
                    words.extend((0..100).map(|tenths| duration(ms.saturating_sub(tenths * 100))));
                }
                words_of(field, words);
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

fn duration(ms: u64) -> String {
    let pair = |large, unit: &str, small, small_unit: &str| match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {small_unit}"),
    };
    match ms / 1_000 {
        0 => format!("{ms} ms"),
        seconds @ 1..60 => format!("{seconds}.{} s", ms % 1_000 / 100),
        seconds @ 60..3_600 => pair(seconds / 60, "min", seconds % 60, "s"),
        seconds => pair(seconds / 3_600, "h", seconds % 3_600 / 60, "min"),
    }
}

#[test]
fn every_bold_figure_of_every_page_is_in_the_routes_of_its_foot() {
    let world = World::new();
    let (browser, cookie) = (world.signed_in(Scripts::Off), world.cookie());
    // With a single project, its page would be the list of projects.
    world.cli.json(&["project", "create", "--org", "Shop", "another"]);
    let (mut compared, mut missing) = (0, Vec::new());
    for page in ["/".to_owned()].into_iter().chain(world.pages()) {
        browser.open(&world.url(&page));
        let shown = browser.run(
            "return [...document.querySelectorAll('main .facts b, main .tile .figure, main .figure, main .chips span')] \
             .map((figure) => figure.textContent.trim()).filter((text) => /^[+−]?[0-9]/.test(text))",
        );
        let shown: Vec<String> = serde_json::from_value(shown).unwrap();
        let mut words = BTreeSet::new();
        for route in routes(&world.page(&page, &cookie).text()) {
            words_of(&world.api(&route), &mut words);
        }
        compared += shown.len();
        let lacks = shown
            .into_iter()
            .filter(|figure| !words.contains(&figure.replace(',', "")));
        missing.extend(lacks.map(|figure| (page.clone(), figure)));
    }
    assert_eq!(missing, []);
    assert!(compared > 100, "{compared}");
}

#[test]
fn every_week_of_the_page_health_is_in_its_route() {
    let world = World::new();
    let browser = world.signed_in(Scripts::Off);
    browser.open(&world.url(&format!("/p/{}/health", world.project)));
    let health = world.api(&route_of(&browser.text("footer code")));
    let main = browser.text("main");
    assert_contains(&main, health["explanation"].as_str().unwrap());
    let rows = browser.run(
        "return [...document.querySelectorAll('[aria-labelledby=weeks] .row')].map((row) => row.textContent)",
    );
    let rows: Vec<String> = serde_json::from_value(rows).unwrap();
    let weeks = health["weeks"].as_array().unwrap();
    assert_eq!(rows.len(), weeks.len());
    for (row, week) in rows.iter().rev().zip(weeks) {
        let (runs, tests) = (&week["runs"], &week["tests"]);
        for words in [
            format!("{} failed", runs["failed"]),
            format!("{} passed on retry", runs["recovered"]),
            format!(
                "lost in flaky tests {}",
                duration(week["flakyLostMs"].as_u64().unwrap())
            ),
            format!("{} test", tests["total"]),
        ] {
            assert!(row.contains(&words), "{words}: {row}");
        }
        for (status, word) in [
            ("broken", "broken"),
            ("flaky", "flaky"),
            ("insufficientData", "gathering data"),
        ] {
            let tests = tests[status].as_u64().unwrap();
            assert_eq!(
                row.contains(&format!("{tests} {word}")),
                tests > 0,
                "{word}: {row}"
            );
        }
    }
    // A run of these days failed. They may begin before the present week.
    let of_week = |week: &Value| week["runs"]["failed"].as_u64().unwrap();
    assert!(weeks.iter().rev().take(2).map(of_week).sum::<u64>() > 0);
}

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
    // Each row has the sentence of its verdict.
    let mut reasons: Vec<Value> = Vec::new();
    for status in ["broken", "flaky"] {
        let list = flaky(&format!("status={status}&explain=true"));
        let tests = list["tests"].as_array().cloned().unwrap_or_default();
        reasons.extend(
            tests
                .iter()
                .map(|test| json!([test["testName"], test["explanation"]])),
        );
    }
    let shown = browser.run(
        "return [...document.querySelectorAll('.row.broken, .row.flaky')].map((row) => \
         [row.querySelector('.name').title, row.querySelector('.path bdi').textContent])",
    );
    assert_eq!(shown, json!(reasons));
    // The newest run of the stable branch, and of all branches.
    let runs = world.api(&format!("/projects/{}/runs?perPage=50", world.project));
    let runs = runs["runs"].as_array().unwrap();
    let newest = |branch: &str| {
        let run = runs.iter().find(|run| run["branch"] == branch).unwrap();
        let commit = &run["commitSha"].as_str().unwrap()[..8];
        format!("commit {commit} of {branch}, {}", run["status"].as_str().unwrap())
    };
    let head = browser.text("main > .sub");
    assert_contains(&head, &format!("stable branch: {}", newest("main")));
    assert_contains(&head, &newest("topic"));
    // The fixture contains every kind of content of the page.
    assert!(flaky("status=broken")["page"]["total"].as_i64().unwrap() > 0);
    assert!(flaky("status=flaky")["page"]["total"].as_i64().unwrap() > 0);
}

#[test]
fn every_figure_of_the_list_of_tests_is_in_the_route_of_its_foot() {
    let world = World::new();
    let browser = world.signed_in(Scripts::Off);
    for query in [
        "",
        "status=flaky&sort=rate",
        "red=true&new=true&group=owner",
        "search=a&branch=main&sort=name",
    ] {
        browser.open(&world.url(&format!("/p/{}/tests?{query}", world.project)));
        let list = world.api(&route_of(&browser.text("footer code")));
        let shown = browser.run(
            "return [...document.querySelectorAll('#results .row')].map((row) => [
                row.querySelector('.name').title,
                row.querySelector('svg.strip').dataset.o.toUpperCase(),
                (row.textContent.match(/flake score ([0-9.]+)/) ?? [])[1] ?? null,
                row.querySelectorAll('.figure')[0].textContent.replace('fails in ', ''),
                row.querySelectorAll('.figure')[1].textContent.replace('time lost ', ''),
                row.textContent.includes('Last failure'),
                Number((row.textContent.match(/Fails on the stable branch since run ([0-9]+)/) ?? [])[1] ?? 0),
            ])",
        );
        let listed = list["tests"].as_array().unwrap().iter().map(|test| {
            let is_flaky = test["status"] == "flaky";
            let score = is_flaky.then(|| format!("{:.2}", test["flakeScore"].as_f64().unwrap()));
            let rate = test["failureRate"].as_f64();
            let lost = test["timeLostMs"].as_u64();
            json!([
                test["testName"],
                test["newestResults"],
                score,
                rate.map_or("–".to_owned(), |rate| format!("{:.0} %", rate * 100.0)),
                lost.map_or("–".to_owned(), |ms| match ms / 1_000 {
                    0 => format!("{ms} ms"),
                    seconds => format!("{seconds}.{} s", ms % 1_000 / 100),
                }),
                test["lastFailedAt"].is_string(),
                test["failingSince"]["runNumber"].as_u64().unwrap_or(0),
            ])
        });
        assert_eq!(shown, Value::Array(listed.collect()), "{query}");
        let chips = browser.run(
            "return [...document.querySelectorAll('.chips a span')].map((chip) => Number(chip.textContent))",
        );
        let counts = &list["counts"];
        let by_status =
            ["broken", "failing", "flaky", "healthy", "insufficientData"].map(|status| &counts[status]);
        let expected: Vec<&Value> = std::iter::once(&counts["total"])
            .chain(by_status.into_iter().filter(|tests| **tests != 0))
            .collect();
        assert_eq!(chips, json!(expected), "{query}");
    }
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
            format!("{plain} passed at the first attempt"),
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
    let path = route_of(&browser.text("footer code"));
    let history = world.api(&path);
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

#[test]
fn a_runs_page_has_the_cause_of_each_failure_and_the_gate() {
    let world = World::new();
    let browser = world.signed_in(Scripts::Off);
    let runs = world.api(&format!("/projects/{}/runs", world.project));
    let run = runs["runs"][0]["id"].as_str().unwrap();
    for mode in ["at_the_time", "hindsight"] {
        let page = format!("/p/{}/runs/{run}?show=failed&mode={mode}", world.project);
        browser.open(&world.url(&page));
        let shown = browser.run(
            "return [...document.querySelectorAll('.failures .row')].map((row) => [row.querySelector('.name').title, \
             row.querySelector('.chip').textContent, row.querySelector('.failure > div > p + p').textContent, \
             row.querySelector('.whose b').textContent, row.querySelector('.whose p + p').textContent])",
        );
        let answer = world.api(&format!(
            "/projects/{}/runs/{run}/failures?limit=200&mode={mode}",
            world.project
        ));
        let failures = answer["failures"].as_array().unwrap();
        let expected: Vec<Value> = failures
            .iter()
            .filter(|failure| failure["status"] == "failed")
            .map(|failure| {
                json!([
                    failure["testName"],
                    cause(&failure["cause"]),
                    format!("{}.", failure["explanation"].as_str().unwrap()),
                    band(failure["mine"].as_f64().unwrap()),
                    match failure["action"].as_str().unwrap() {
                        "pass" => "continue",
                        "rerun" => "run it again",
                        _ => "fix it",
                    }
                ])
            })
            .collect();
        assert_eq!(shown, json!(expected), "{mode}");
        let gate = browser.text("section[aria-labelledby=gate]");
        let word = match answer["gate"]["action"].as_str().unwrap() {
            "pass" => "Pass",
            "rerun" => "Rerun",
            _ => "Block",
        };
        assert!(gate.contains(word), "{answer}: {gate}");
        for (of, count) in answer["gate"]["byCause"].as_object().unwrap() {
            let phrase = format!("{} {count}", cause(&json!(of)));
            assert_eq!(gate.contains(&phrase), *count != 0, "{phrase}: {gate}");
        }
    }
    // The branch broke a passing test; main broke the other before.
    let causes = browser.text(".failures");
    for cause in ["This change", "Broken before"] {
        assert_contains(&causes, cause);
    }
    // The page of a failed test has the same figures of its failure, and a link to its error.
    let answer = world.api(&format!("/projects/{}/runs/{run}/failures", world.project));
    let failure = &answer["failures"][0];
    browser.open(&world.url(&format!("/p/{}/runs/{run}?show=failed", world.project)));
    browser.follow(".failures .row a");
    assert_eq!(
        browser.text(".why"),
        format!(
            "This failure: {} {}.",
            cause(&failure["cause"]),
            failure["explanation"].as_str().unwrap()
        )
    );
    browser.follow(".why a");
    assert_eq!(browser.text("h1"), failure["title"].as_str().unwrap());
}

#[test]
fn the_page_of_a_run_that_may_lack_results_shows_why() {
    let world = World::new();
    let flags = ["--run-key", "half", "--branch", "main", "--shard", "1/2"];
    world.import_with(2, &[("is fine".to_owned(), false)], &flags);
    let runs = world.api(&format!("/projects/{}/runs", world.project));
    let run = runs["runs"][0]["id"].as_str().unwrap();
    let answer = world.api(&format!("/projects/{}/runs/{run}/failures", world.project));
    let reason = answer["incomplete"].as_str().unwrap();
    let browser = world.signed_in(Scripts::Off);
    browser.open(&world.url(&format!("/p/{}/runs/{run}", world.project)));
    let gate = browser.text("section[aria-labelledby=gate]");
    assert_contains(&gate, &format!("The run may lack results: {reason}."));
}

#[test]
fn the_tests_that_passed_on_retry_are_a_list_of_their_own() {
    let world = World::new();
    let browser = world.signed_in(Scripts::Off);
    let case = |name: &str, attempt: &str| {
        format!(
            "<testcase classname=\"cart\" name=\"{name}\" file=\"tests/cart.test.ts\" time=\"0.01\">{attempt}</testcase>"
        )
    };
    let retried = |error: &str| format!("<flakyFailure message=\"{error}\">at retried</flakyFailure>");
    let cases = [
        case("slow", &retried("the cart is slow")),
        case("flips", &retried("expected 3, got &lt;i>4")),
        case("is fine", ""),
    ]
    .concat();
    let failed = case("fails now", "<failure message=\"no\">at failed</failure>");
    // Such a run shows the list first, unless a test failed.
    for (minutes_ago, more, query) in [(3, "", ""), (2, failed.as_str(), "?show=recovered")] {
        let key = format!("retried-{minutes_ago}");
        let report = format!("<testsuite>{cases}{more}</testsuite>");
        world.import_report(minutes_ago, &report, &["--run-key", &key, "--branch", "main"]);
        let runs = world.api(&format!("/projects/{}/runs", world.project));
        let run = &runs["runs"][0];
        assert_eq!(run["counts"]["recovered"], 2, "{run}");
        let id = run["id"].as_str().unwrap();
        browser.open(&world.url(&format!("/p/{}/runs/{id}{query}", world.project)));
        assert_eq!(
            browser.text("[aria-label='Which tests'] [aria-current]"),
            "passed on retry 2"
        );
        let shown = browser.run(
            "return [...document.querySelectorAll('.failures .row')].map((row) => [row.querySelector('.name').title, \
             row.querySelector('.chip').textContent, row.querySelector('.failure > div > p + p').textContent, \
             row.querySelector('.error').textContent, row.querySelector('.facts').textContent.includes('2 attempts'), \
             row.querySelector('.whose b')])",
        );
        let answer = world.api(&format!(
            "/projects/{}/runs/{id}/failures?limit=200",
            world.project
        ));
        let recovered = answer["failures"].as_array().unwrap().iter();
        let recovered = recovered.filter(|failure| failure["status"] != "failed");
        let expected: Vec<Value> = recovered
            .map(|failure| {
                json!([
                    failure["testName"],
                    cause(&failure["cause"]),
                    format!("{}.", failure["explanation"].as_str().unwrap()),
                    failure["title"],
                    true,
                    // A passed test does not count against the branch.
                    null,
                ])
            })
            .collect();
        assert_eq!(expected.len(), 2, "{answer}");
        assert_eq!(shown, json!(expected));
    }
}

fn cause(word: &Value) -> &'static str {
    match word.as_str().unwrap() {
        "this_change" => "This change",
        "earlier_on_branch" => "Earlier on this branch",
        "broken_before" => "Broken before",
        "flake" => "Flake",
        "environment" => "Environment",
        "unclear" => "Unclear",
        other => panic!("no cause: {other}"),
    }
}

fn band(probability: f64) -> &'static str {
    match probability {
        ..0.05 => "unlikely",
        ..0.5 => "possible",
        ..0.9 => "likely",
        _ => "near certain",
    }
}

#[test]
fn errors_have_their_occurrences_by_test_and_by_day() {
    let world = World::new();
    let browser = world.signed_in(Scripts::Off);
    let list = world.api(&format!("/projects/{}/errors?perPage=50", world.project));
    browser.open(&world.url(&format!("/p/{}/errors", world.project)));
    let titles =
        browser.run("return [...document.querySelectorAll('#results .row a')].map((a) => a.textContent)");
    let listed = list["errors"].as_array().unwrap();
    let expected: Vec<&Value> = listed.iter().map(|signature| &signature["title"]).collect();
    assert_eq!(titles, json!(expected));
    let mut of_flips = (0, 0);
    for signature in listed {
        let fingerprint = signature["fingerprint"].as_str().unwrap();
        let detail = world.api(&format!("/projects/{}/errors/{fingerprint}", world.project));
        let runs = detail["runs"].as_array().unwrap();
        let days: BTreeSet<&str> = runs
            .iter()
            .map(|run| &run["startedAt"].as_str().unwrap()[..10])
            .collect();
        for run in runs
            .iter()
            .filter(|run| run["testName"].as_str().unwrap().ends_with("flips"))
        {
            of_flips.0 += run["occurrences"].as_i64().unwrap();
            of_flips.1 += 1;
        }
        browser.open(&world.url(&format!("/p/{}/errors/{fingerprint}", world.project)));
        assert!(
            browser
                .text("main")
                .contains(&format!("{} ×", signature["occurrenceCount"]))
        );
        let bars = browser.run(
            "return document.querySelectorAll('[aria-label=\"Occurrences day by day\"] rect.failed').length",
        );
        assert_eq!(bars, days.len());
    }
    let page = world
        .pages()
        .into_iter()
        .find(|page| page.contains("/test?") && page.contains("flips"))
        .unwrap();
    let (_, query) = page.split_once('?').unwrap();
    browser.open(&world.url(&format!("/p/{}/test?{query}", world.project)));
    let errors = browser.text("section[aria-labelledby=errors]");
    let phrase = format!("{} ×", of_flips.0);
    assert!(
        errors.contains(&phrase) && errors.contains(&format!("in {} runs", of_flips.1)),
        "{phrase}: {errors}"
    );
}

#[test]
fn a_runs_page_links_to_ci_commit_and_files_without_a_referrer() {
    let world = World::new();
    let sha = "bb23456789abcdef0123456789abcdef01234567";
    let run_url = "https://github.com/o/r/actions/runs/7?x=\"1";
    let cases = [("is fine".to_owned(), false)];
    world.import_with(
        2,
        &cases,
        &[
            "--run-key",
            "ci",
            "--branch",
            "main",
            "--commit",
            sha,
            "--pr",
            "7",
            "--run-url",
            &run_url.replace('"', "%22"),
        ],
    );
    let browser = world.signed_in(Scripts::Off);
    let runs = world.api(&format!("/projects/{}/runs", world.project));
    let run = runs["runs"][0]["id"].as_str().unwrap();
    let detail = world.api(&format!("/projects/{}/runs/{run}", world.project));
    assert_eq!(detail["run"]["runUrl"], run_url.replace('"', "%22"));
    for show in ["failed", "all"] {
        browser.open(&world.url(&format!("/p/{}/runs/{run}?show={show}", world.project)));
        let links = browser.run(
            "return [...document.querySelectorAll('main a[href^=\"https:\"]')].map((link) => [link.getAttribute('href'), link.rel])",
        );
        let page = |path: &str| json!([format!("https://github.com/o/r/{path}"), "noopener noreferrer"]);
        assert_eq!(
            links,
            json!([
                page(&format!("commit/{sha}")),
                page("pull/7"),
                page("actions/runs/7?x=%221"),
                page(&format!("blob/{sha}/tests/cart.test.ts")),
            ]),
            "{show}"
        );
        assert!(browser.text("main").contains("CI run at github.com"));
    }
    assert_eq!(browser.console(), Vec::<String>::new());
}
