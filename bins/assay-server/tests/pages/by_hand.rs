//! Checks that need a program from npm, and pictures for the documents. Each is started by hand, as docs/pages.md
//! describes.

use std::{env, fs};

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
    let storefront = browser.run(
        "return [...document.querySelectorAll('main h2 a')] \
         .find((link) => link.textContent.includes('storefront')).getAttribute('href')",
    );
    browser.open(&format!("{site}{}", storefront.as_str().unwrap()));
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
    follow("nav a[href$='/health']");
    draw("health");

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
