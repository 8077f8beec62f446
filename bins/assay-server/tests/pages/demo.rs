//! The pages that a new user sees after following the link of `assay-server --demo`.

use std::process::Command;

use assay_testkit::{Browser, Scripts, Server, free_address, program, text};
use serde_json::json;

/// Ends the demonstration and its Postgres.
pub(crate) struct Demonstration(pub(crate) Server);

impl Drop for Demonstration {
    fn drop(&mut self) {
        if self.0.lives() {
            self.0.signal("TERM");
            self.0.ended();
        }
    }
}

#[test]
fn the_printed_link_leads_to_a_broken_test_its_evidence_and_the_runs_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(program("assay-server"));
    command.arg("--demo").current_dir(folder.path());
    let front = free_address();
    let mut demonstration = Demonstration(Server::launch(command, &[("ASSAY_FRONT_LISTEN", &front)]));
    demonstration.0.ready();
    demonstration.0.wait_for_log("Stop with Ctrl-C.");
    let log = demonstration.0.log();
    let links: Vec<&str> = log
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("http") && line.contains("/login#"))
        .collect();
    let [link] = links.as_slice() else {
        panic!("not one link: {log}")
    };

    // From here on the test follows links of the pages only.
    let browser = Browser::start(Scripts::On);
    browser.open(link);
    browser
        .until("return location.pathname === '/' && document.querySelector('h1').textContent === 'Projects'");
    browser.click(".facts a[href$='status=broken']");
    browser.until("return location.pathname.endsWith('/tests')");
    assert_eq!(
        browser.run("return [...new Set([...document.querySelectorAll('.row .chip')].map((chip) => chip.textContent))]"),
        json!(["Broken"])
    );
    let named = browser.run("return document.querySelector('.row .name').title");
    browser.click(".row a");
    browser.until("return location.pathname.endsWith('/test')");
    let leaf = named.as_str().unwrap().rsplit(" > ").next().unwrap();
    assert_eq!(browser.text("h1 .leaf"), leaf);
    assert!(
        browser.text(".why").starts_with("Broken"),
        "{}",
        browser.text(".why")
    );
    let run = browser.text("td.rests a");
    browser.click("td.rests a");
    browser.until("return location.pathname.includes('/runs/')");
    assert_eq!(browser.text("h1").to_lowercase(), format!("{run} failed"));
    let failed =
        browser.run("return [...document.querySelectorAll('.failures .name')].map((name) => name.title)");
    assert!(failed.as_array().unwrap().contains(&named), "{failed} {named}");

    // The list of flaky tests has the reason, the last failure, the file and the rate of each.
    browser.open(link);
    browser.until("return location.pathname === '/'");
    browser
        .run("[...document.querySelectorAll('a')].find((link) => link.textContent === 'storefront').click()");
    browser.until("return location.pathname.startsWith('/p/')");
    browser.open(&format!("{}/tests?status=flaky", browser.address()));
    let rows = browser.run("return [...document.querySelectorAll('.row')].map((row) => row.textContent)");
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 7, "{rows:?}");
    for row in rows.iter().map(text) {
        let has_reason = ["Passed on retry in ", "Failed in 3 separate episodes"]
            .iter()
            .any(|reason| row.contains(reason));
        let has_all = ["Last failure ", " ago", "tests/shop.spec.ts", "fails in ", " %"]
            .iter()
            .all(|part| row.contains(part));
        assert!(has_reason && has_all, "{row}");
    }
    assert_eq!(browser.console(), Vec::<String>::new());
}
