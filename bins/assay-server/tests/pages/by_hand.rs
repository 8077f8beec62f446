//! Checks that need a program from npm, pictures for the documents, and measurements. Each is started by hand, as
//! docs/pages.md describes.

use std::{env, fs, time::Instant};

use assay_testkit::{Browser, Cli, Scripts, stderr_text};
use serde_json::json;

use crate::{answer, world::World};

/// Checks every page with axe-core for serious and critical violations, in light and dark. `ASSAY_AXE` is its file.
#[test]
#[ignore = "needs axe-core from npm: see docs/pages.md"]
fn axe_core_finds_nothing_serious() {
    let script = fs::read_to_string(env::var("ASSAY_AXE").expect("ASSAY_AXE names axe.min.js")).unwrap();
    let world = World::new();
    let browser = world.signed_in(Scripts::On);
    let run = world
        .pages()
        .into_iter()
        .find(|page| page.contains("show=all"))
        .unwrap();
    let mut pages: Vec<String> = world.pages().iter().map(|page| world.url(page)).collect();
    pages.push(world.url(&run.replace("show=all", "show=failed")));
    pages.extend(["/login", "/nothing"].map(|page| world.url(page)));
    pages.push(format!(
        "file://{}/../../docs/reference.html",
        env!("CARGO_MANIFEST_DIR")
    ));
    for page in pages {
        browser.open(&page);
        check(&browser, &script, &page);
    }
    let shop = answer::Shop::new();
    let links = answer::links_of_a_comment(&shop);
    let phone = shop.signed_in();
    for link in &links {
        phone.open(link);
        check(&phone, &script, link);
    }
    let (browser, ..) = &crate::analysis::page(&crate::analysis::history(40, 2, 10), Scripts::On);
    browser.run("document.querySelectorAll('details').forEach((each, place) => { each.open = place < 4 })");
    check(browser, &script, "the page of assay analyze");
}

/// Checks the browser's current page with axe-core, in light and dark.
fn check(browser: &Browser, script: &str, page: &str) {
    browser.run("document.querySelectorAll('.reading').forEach((each) => { each.open = true })");
    browser.run(script);
    for is_dark in [false, true] {
        browser.darken(is_dark);
        let violations = browser.run(
            "return axe.run().then((result) => result.violations \
             .filter((violation) => ['serious', 'critical'].includes(violation.impact)) \
             .map((violation) => [violation.id, violation.nodes.length, violation.nodes[0].html]))",
        );
        assert_eq!(violations, json!([]), "{page}, dark: {is_dark}");
    }
    eprintln!("{page}: nothing serious or critical");
}

/// Writes pictures of the demonstration and of its reports' page of `assay analyze` into `docs/images`.
/// `ASSAY_DEMO_LINK` is the demonstration's link.
#[test]
#[ignore = "writes docs/images: see docs/pages.md"]
fn pictures_of_the_demonstration() {
    let link = env::var("ASSAY_DEMO_LINK").expect("ASSAY_DEMO_LINK is the link that --demo prints");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/images");
    let browser = Browser::start(Scripts::On);
    browser.open(&link);
    browser.until("return location.pathname === '/'");
    let site = browser.run("return location.origin").as_str().unwrap().to_owned();
    let follow = |selector: &str| {
        let script = format!("return document.querySelector(\"{selector}\").getAttribute('href')");
        let path = browser.run(&script);
        browser.open(&format!("{site}{}", path.as_str().unwrap()));
    };
    follow("main h2 a");
    let draw = |name: &str| {
        browser.resize(1_280, 960);
        for (is_dark, suffix) in [(false, "light"), (true, "dark")] {
            browser.darken(is_dark);
            fs::write(format!("{folder}/{name}-{suffix}.png"), browser.picture()).unwrap();
        }
    };
    draw("overview");
    follow(".runs-chart a:last-of-type");
    draw("run");
    follow(".row.failed a");
    follow(".facts a[href*='/test?name']");
    draw("test");

    let reports = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/demo/storefront");
    let analyzed = Cli::new("").run(&["analyze", reports, "--output", "html"]);
    assert!(analyzed.status.success(), "{}", stderr_text(&analyzed));
    let page = tempfile::Builder::new().suffix(".html").tempfile().unwrap();
    fs::write(page.path(), analyzed.stdout).unwrap();
    browser.open(&format!("file://{}", page.path().display()));
    browser.run("document.querySelector('.row > details').open = true");
    browser.resize(1_280, 1_400);
    browser.darken(false);
    fs::write(format!("{folder}/analyze.png"), browser.picture()).unwrap();
}

/// Prints the median times of pages, and of the API's routes in their feet, which have the same data. A page may take
/// 1.5 times as long as its routes and 2 ms more.
#[test]
#[ignore = "a measurement: see docs/performance.md"]
fn times_of_pages_beside_the_api() {
    let world = World::new();
    let cookie = world.cookie();
    // Of the pages of tests, those of one test are enough. The list of all tests has no route with its data.
    let is_measured =
        |page: &&String| !page.contains("/tests") && (!page.contains("/test?") || page.contains("flips"));
    let pages = world.pages();
    let measured = pages.iter().filter(is_measured).map(|page| {
        let (of_page, of_routes) = medians(&world, &cookie, page);
        (page.as_str(), of_page, of_routes * 1.5 + 2.0)
    });
    assert_eq!(too_slow(measured), Vec::<String>::new());
}

/// Prints the median times of pages of a run of 5,000 tests and of a project of 100,000 tests, which have limits.
#[test]
#[ignore = "a measurement: see docs/performance.md"]
fn times_of_large_pages() {
    let world = World::new();
    world.import_many(5_000, "large");
    world.import_many(100_000, "larger");
    let cookie = world.cookie();
    let project = format!("/p/{}", world.project);
    let runs = world.api(&format!("/projects/{}/runs?perPage=10", world.project));
    let runs = runs["runs"].as_array().unwrap();
    let large = runs.iter().find(|run| run["counts"]["total"] == 5_000).unwrap();
    let run = format!("{project}/runs/{}", large["id"].as_str().unwrap());
    let pages = [
        (format!("{run}?show=failed"), 60.0),
        (format!("{run}?show=all"), 60.0),
        (format!("{project}/tests?search=length%20777"), 100.0),
        (format!("{project}/tests?status=flaky"), 100.0),
        (project, 100.0),
    ];
    let measured = pages.iter().map(|(page, most_ms)| {
        let (of_page, _) = medians(&world, &cookie, page);
        (page.as_str(), of_page, *most_ms)
    });
    assert_eq!(too_slow(measured), Vec::<String>::new());
}

/// Prints pages with their times and limits in milliseconds, and returns those beyond their limits.
fn too_slow<'a>(measured: impl Iterator<Item = (&'a str, f64, f64)>) -> Vec<String> {
    let mut too_slow = Vec::new();
    for (page, took, most) in measured {
        eprintln!("{took:7.1} ms, at most {most:7.1} ms: {page}");
        if took > most {
            too_slow.push(page.to_owned());
        }
    }
    too_slow
}

/// The median times of a page and of all routes in its foot, measured in turns, in milliseconds.
fn medians(world: &World, cookie: &str, page: &str) -> (f64, f64) {
    let first = world.page(page, cookie);
    let routes = crate::world::routes(&first.text());
    let timed = |get: &dyn Fn()| {
        let began = Instant::now();
        get();
        began.elapsed().as_secs_f64() * 1_000.0
    };
    let (mut of_page, mut of_routes): (Vec<f64>, Vec<f64>) = (0..21)
        .map(|_| {
            (
                timed(&|| assert_eq!(world.page(page, cookie).status, 200)),
                timed(&|| {
                    for route in &routes {
                        let path = format!("/api/v1{route}");
                        let answer = world.server.client().get(&path, Some(&world.key));
                        assert_eq!(answer.status, 200, "{route}");
                    }
                }),
            )
        })
        .unzip();
    for times in [&mut of_page, &mut of_routes] {
        times.sort_by(f64::total_cmp);
    }
    (of_page[of_page.len() / 2], of_routes[of_routes.len() / 2])
}
