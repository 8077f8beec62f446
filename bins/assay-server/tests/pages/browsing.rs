//! Signing in, following links, and reading with and without scripts, in a browser.

use assay_testkit::{Browser, Scripts, Server, wire::escape};
use serde_json::json;

use crate::world::{World, hostile_names, route_of};

/// Counts the parts of rows that cover another part.
const OVERLAPS: &str = "const cover = (a, b) => a.left + 1 < b.right && b.left + 1 < a.right && a.top + 1 < b.bottom && b.top + 1 < a.bottom; \
    return [...document.querySelectorAll('.row > a')].filter((row) => { \
        const boxes = [...row.children].map((part) => part.getBoundingClientRect()); \
        return boxes.some((box, place) => boxes.slice(place + 1).some((other) => cover(box, other))); \
    }).length";

/// Counts the parts of rows that are drawn only when they are scrolled to, so that a picture of the page lacks them.
const NOT_DRAWN: &str = "return [...document.querySelectorAll('.row > *')].filter((part) => \
    part.checkVisibility() && !part.checkVisibility({ contentVisibilityAuto: true })).length";

#[test]
fn every_page_logs_no_error_and_fits_a_phone_with_scripts_on_and_off() {
    let world = World::new();
    for scripts in [Scripts::On, Scripts::Off] {
        let browser = world.signed_in(scripts);
        browser.console();
        for width in [1_280, 360] {
            browser.resize(width, 900);
            for page in world.pages() {
                browser.open(&world.url(&page));
                assert_eq!(
                    browser.console(),
                    Vec::<String>::new(),
                    "{page} {scripts:?}: no console message and no policy report"
                );
                assert_eq!(
                    browser.run("return document.documentElement.scrollWidth <= innerWidth"),
                    json!(true),
                    "{page} fits {width} pixels"
                );
                assert_eq!(
                    browser.run(OVERLAPS),
                    json!(0),
                    "{page}: no part of a row covers another in {width} pixels"
                );
                assert_eq!(browser.run(NOT_DRAWN), json!(0), "{page} is drawn as a whole");
                assert_eq!(
                    browser.run(
                        "return [...document.querySelectorAll('.wide')].every((table) => table.scrollWidth <= table.clientWidth)"
                    ),
                    json!(true),
                    "{page} shows whole tables in {width} pixels"
                );
                assert_eq!(
                    browser.run(
                        "return document.title.includes('Assay') && document.title !== 'owned' \
                         && document.querySelectorAll('h1').length === 1 \
                         && document.querySelectorAll('script').length === 1 && !document.querySelector('img')"
                    ),
                    json!(true),
                    "{page} shows the contents of a report as text"
                );
            }
        }
    }
}

#[test]
fn from_a_red_run_to_the_evidence_in_three_clicks_and_back() {
    let world = World::new();
    let browser = world.signed_in(Scripts::On);
    // A single project opens directly.
    let overview = world.url(&format!("/p/{}", world.project));
    assert_eq!(browser.address(), overview);
    browser.run("document.querySelector('.runs-chart a:last-of-type').setAttribute('id', 'newest')");
    browser.run("location.assign(document.getElementById('newest').getAttribute('href'))");
    browser.until("return location.pathname.includes('/runs/')");
    let run = browser.address();
    browser.click(".row.failed a");
    browser.until("return location.pathname.endsWith('/test')");
    browser.click(".facts a[href*='/test?']");
    browser.until("return !location.pathname.includes('/runs/')");
    assert!(
        browser.text("main").contains("Evidence"),
        "{}",
        browser.text("main")
    );
    browser.back();
    browser.back();
    assert_eq!(browser.address(), run);
    browser.reload();
    assert_eq!(browser.address(), run);
}

#[test]
fn the_copied_prompt_equals_the_apis() {
    let world = World::new();
    let browser = world.signed_in(Scripts::Off);
    let page = world
        .pages()
        .into_iter()
        .find(|page| page.contains("/runs/") && page.contains("breaks"))
        .unwrap();
    browser.open(&world.url(&page));
    let shown = browser.run("return document.getElementById('prompt-0').textContent");
    let path = route_of(&browser.text("footer code"));
    let answer = world.api(&path);
    // The page also has the cause, for which the API would have to judge the run.
    let of_cause = [
        "Probable cause:",
        "Broken by this change:",
        "Failing on the stable branch:",
        "Same error:",
    ];
    let shown = shown.as_str().unwrap();
    let is_of_cause = |line: &&str| of_cause.iter().any(|label| line.starts_with(label));
    assert_eq!(
        shown.split_inclusive('\n').filter(is_of_cause).count(),
        3,
        "{shown}"
    );
    let without_cause: String = shown
        .split_inclusive('\n')
        .filter(|line| !is_of_cause(line))
        .collect();
    assert_eq!(
        json!(without_cause),
        answer["attempts"][0]["copyPrompt"],
        "{answer}"
    );
}

#[test]
fn the_copy_button_copies_the_prompt() {
    let world = World::new();
    let browser = world.signed_in(Scripts::On);
    let page = world
        .pages()
        .into_iter()
        .find(|page| page.contains("/runs/") && page.contains("breaks"))
        .unwrap();
    browser.open(&world.url(&page));
    browser.permit_clipboard();
    browser.click("button[data-copy=prompt-0]");
    browser.until("return document.querySelector('button[data-copy=prompt-0]').textContent === 'Copied'");
    assert_eq!(
        browser.run("return navigator.clipboard.readText()"),
        browser.run("return document.getElementById('prompt-0').textContent")
    );
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn the_keyboard_alone_leads_from_the_overview_to_a_broken_test() {
    let world = World::new();
    let browser = world.signed_in(Scripts::Off);
    browser.press(&["\u{e004}"]);
    assert_eq!(
        browser.run("return document.activeElement.textContent"),
        "Skip to the content"
    );
    let is_row = "return document.activeElement.matches('.row.broken > a')";
    for _ in 0..100 {
        if browser.run(is_row) == json!(true) {
            break;
        }
        browser.press(&["\u{e004}"]);
        assert_eq!(
            browser.run("return getComputedStyle(document.activeElement).outlineStyle"),
            "solid",
            "the focus is visible"
        );
    }
    let name = browser.run("return document.activeElement.querySelector('.name').title");
    browser.press(&["\u{e007}"]);
    browser.until("return location.pathname.endsWith('/test')");
    assert!(
        name.as_str().unwrap().ends_with(&browser.text("h1 .leaf")),
        "{name}"
    );
}

#[test]
fn a_link_of_another_site_opens_its_page_in_a_session() {
    let world = World::new();
    let runs = world.url(&format!("/p/{}/runs?status=failed", world.project));
    let elsewhere = format!("data:text/html,<a id=link href='{runs}'>a run</a>");
    for scripts in [Scripts::On, Scripts::Off] {
        let browser = world.signed_in(scripts);
        browser.open(&elsewhere);
        browser.click("#link");
        if scripts == Scripts::Off {
            // The browser omits the cookie, which it sends only within the site.
            browser.until("return location.pathname === '/login'");
            browser.click("#next");
        }
        browser.until("return location.pathname.endsWith('/runs')");
        assert_eq!(browser.address(), runs);
        assert_eq!(browser.console(), Vec::<String>::new());
    }
    // Without a session the form remains.
    let browser = Browser::start(Scripts::On);
    browser.open(&elsewhere);
    browser.click("#link");
    browser.until("return location.pathname === '/login'");
    browser.write("input[name=key]", &world.key);
    browser.click("button.main");
    browser.until("return location.pathname.endsWith('/runs')");
    assert_eq!(browser.address(), runs);
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn a_search_updates_while_typing_and_is_part_of_the_address() {
    let world = World::new();
    let browser = world.signed_in(Scripts::On);
    browser.open(&world.url(&format!("/p/{}/tests", world.project)));
    browser.write("input[name=search]", "flips");
    browser.until("return document.querySelectorAll('#results .row').length === 1");
    browser.until("return location.search.includes('search=flips')");
    assert!(browser.text("#results").contains("flips"));
    browser.reload();
    // The number of runs follows the filter, too.
    let runs = browser.new_tab();
    browser.open(&world.url(&format!("/p/{}/runs", world.project)));
    browser.write("input[name=branch]", "topic");
    browser.until("return document.querySelectorAll('#results .row').length === 1");
    assert!(
        browser
            .text("#results .sub")
            .contains("1 run in 30 days with these filters"),
        "{}",
        browser.text("#results .sub")
    );
    browser.show_tab(&runs);
    assert_eq!(
        browser.run("return document.querySelectorAll('#results .row').length"),
        json!(1)
    );
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn a_link_with_a_key_signs_in_and_leaves_the_address() {
    let world = World::new();
    let browser = Browser::start(Scripts::On);
    browser.open(&world.url(&format!("/login#{}", world.key)));
    // A link of a stranger must not sign anybody in, so the form waits for a click.
    browser.until("return !document.getElementById('from-link').hidden");
    assert!(!browser.address().contains("svc_"), "{}", browser.address());
    browser.follow("button.main");
    browser.until("return location.pathname.startsWith('/p/')");
    assert!(!browser.address().contains("svc_"), "{}", browser.address());
    browser.back();
    assert!(!browser.address().contains("svc_"), "{}", browser.address());
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn a_deep_link_is_opened_after_signing_in_and_a_revoked_key_ends_the_session() {
    let world = World::new();
    let browser = Browser::start(Scripts::Off);
    let name = hostile_names().pop().unwrap();
    let deep = world
        .pages()
        .into_iter()
        .find(|page| page.contains("/test?") && page.contains(&escape(&name)))
        .unwrap();
    browser.open(&world.url(&deep));
    assert!(
        browser.address().contains("/login?next="),
        "{}",
        browser.address()
    );
    browser.write("input[name=key]", &world.key);
    browser.follow("button.main");
    assert_eq!(browser.address(), world.url(&deep));

    world.cli.json(&["key", "revoke", &world.key_id]);
    std::thread::sleep(std::time::Duration::from_secs(1));
    browser.reload();
    assert!(
        browser
            .text("main")
            .contains("The read key was revoked; create a new one."),
        "{}",
        browser.text("main")
    );
    // The cookie is removed. A new key leads to the same page.
    assert_eq!(
        browser.run("return document.querySelector('#next').href"),
        world.url(&deep)
    );
    browser.open(&world.url(&deep));
    assert!(browser.address().contains("/login"), "{}", browser.address());
}

#[test]
fn over_tls_a_browser_signs_in_and_stays_signed_in() {
    let (world, folder) = (World::new(), tempfile::tempdir().unwrap());
    let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let write = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (cert, key) = (
        write("cert.pem", issued.cert.pem()),
        write("key.pem", issued.signing_key.serialize_pem()),
    );
    let environment = [("ASSAY_TLS_CERT", cert.as_str()), ("ASSAY_TLS_KEY", key.as_str())];
    let server = Server::start_with_front(world.database.url(), &environment);
    let site = format!("https://localhost:{}", server.front().address().port());
    for scripts in [Scripts::On, Scripts::Off] {
        let browser = Browser::start(scripts);
        let tests = format!("{site}/p/{}/tests", world.project);
        browser.open(&tests);
        assert!(
            browser.address().starts_with(&format!("{site}/login?next=")),
            "{}",
            browser.address()
        );
        browser.write("input[name=key]", &world.key);
        browser.click("button.main");
        browser.until("return location.pathname !== '/login'");
        assert_eq!(browser.address(), tests);
        browser.open(&format!("{site}/p/{}/runs", world.project));
        assert!(
            browser.text("main").contains("13 runs in"),
            "{}",
            browser.text("main")
        );
        assert_eq!(browser.console(), Vec::<String>::new());
    }
}

#[test]
fn two_tabs_show_their_own_addresses_and_share_the_session() {
    let world = World::new();
    let browser = world.signed_in(Scripts::On);
    let flaky = world.url(&format!("/p/{}/tests?status=flaky", world.project));
    let by_name = world.url(&format!("/p/{}/tests?sort=name&search=fine", world.project));
    browser.open(&flaky);
    let rows = "return [...document.querySelectorAll('#results .name')].map((name) => name.title)";
    let shown = browser.run(rows);
    let first = browser.new_tab();
    browser.open(&by_name);
    assert_eq!(browser.run(rows), json!(["cart > is fine"]));
    browser.show_tab(&first);
    assert_eq!((browser.address(), browser.run(rows)), (flaky.clone(), shown));
    // Signing out in one tab also signs out the other.
    let second = browser.new_tab();
    browser.open(&by_name);
    browser.click("form[action='/logout'] button");
    browser.until("return location.pathname === '/login'");
    browser.show_tab(&second);
    browser.reload();
    assert!(
        browser.address().contains("/login?next="),
        "{}",
        browser.address()
    );
}

#[test]
fn the_page_of_projects_has_the_counts_and_the_last_run_of_each() {
    let world = World::new();
    let second = world
        .cli
        .json(&["project", "create", "--org", "Shop", "<b>app</b>"]);
    for scripts in [Scripts::On, Scripts::Off] {
        let browser = world.signed_in(scripts);
        browser.resize(360, 900);
        browser.open(&world.url("/"));
        assert_eq!(browser.console(), Vec::<String>::new());
        assert_eq!(
            browser.run("return document.documentElement.scrollWidth <= innerWidth"),
            json!(true)
        );
        let shown = browser.run(
            "return [...document.querySelectorAll('section.panel')].map((panel) => \
             [panel.querySelector('h2').textContent, ...[...panel.querySelectorAll('.facts b')].map((figure) => Number(figure.textContent)), \
             panel.querySelector('.sub').textContent.split(',')[0]])",
        );
        let flaky = |project: &str, query: &str| world.api(&format!("/projects/{project}/flaky?{query}"));
        let runs = world.api(&format!("/projects/{}/runs", world.project));
        let commit: String = runs["runs"][0]["commitSha"]
            .as_str()
            .unwrap()
            .chars()
            .take(8)
            .collect();
        let newest = format!(
            "Newest: commit {commit} of {}",
            runs["runs"][0]["branch"].as_str().unwrap()
        );
        let expected = json!([
            [
                "web",
                flaky(&world.project, "status=broken")["page"]["total"],
                flaky(&world.project, "")["failingCount"],
                flaky(&world.project, "status=flaky")["page"]["total"],
                newest,
            ],
            ["<b>app</b>", 0, 0, 0, "No run in the last 30 days"],
        ]);
        assert_eq!(shown, expected);
        browser.follow("section.panel:last-of-type h2 a");
        let id = second["id"].as_str().unwrap();
        assert_eq!(browser.address(), world.url(&format!("/p/{id}")));
        // A project without runs shows the next step.
        assert!(
            browser.text("main").contains("assay upload"),
            "{}",
            browser.text("main")
        );
        assert_eq!(browser.console(), Vec::<String>::new());
    }
}

#[test]
fn pages_are_small_and_make_few_requests() {
    let world = World::new();
    world.import_many(320, "large");
    let cookie = world.cookie();
    let runs = world.api(&format!("/projects/{}/runs?perPage=10", world.project));
    let large = runs["runs"].as_array().unwrap().iter();
    let mut large = large.filter(|run| run["counts"]["total"] == 320);
    let large = format!(
        "/p/{}/runs/{}",
        world.project,
        large.next().unwrap()["id"].as_str().unwrap()
    );
    let of_large = ["", "?show=failed&page=2"];
    let mut pages = world.pages();
    pages.extend(of_large.map(|query| format!("{large}{query}")));
    pages.push(format!("/p/{}/tests?page=2", world.project));
    for page in pages {
        let plain = world.page(&page, &cookie).body.len();
        let coded = world
            .front()
            .get_with(&page, &[("Cookie", &cookie), ("Accept-Encoding", "zstd")])
            .body
            .len();
        assert!(
            plain <= 60 * 1_024 && coded <= 15 * 1_024,
            "{page}: {plain}, {coded}"
        );
    }
    let browser = world.signed_in(Scripts::On);
    let requests = "return 1 + performance.getEntriesByType('resource').filter((entry) => entry.transferSize > 0).length";
    browser.open(&world.url(&format!("/p/{}/runs", world.project)));
    // Style and script are cached since the first page.
    assert_eq!(browser.run(requests), json!(1));
    let files = browser.run("return performance.getEntriesByType('resource').length");
    assert!(files.as_i64().unwrap() <= 2, "{files}");
}
