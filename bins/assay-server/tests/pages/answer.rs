//! The page behind the link of a comment, on a phone.

use std::process::Command;

use assay_testkit::{Browser, Scripts, ServedWorld, Server, free_address, rfc3339, stderr_text, text};
use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};

/// A phone, in pixels.
const PHONE: (u32, u32) = (360, 740);
const OWNERS: &str = "/web/ @shop/cart\n";
const ERROR: &str = "AssertionError: expected 3 items, got 4";

/// Where the smallest visible element with a text is: whether it lies within the page's width, whether it is cut, and the
/// screens down to its end. Null if there is none.
const PLACE_OF: &str = "const shows = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) \
     && (element.innerText ?? '').replace(/\\s+/g, ' ').includes(TEXT); \
     const found = [...document.querySelectorAll('main *')].filter(shows).pop(); \
     if (!found) { return null; } \
     const box = found.getBoundingClientRect(); \
     let cut = box.width === 0 || box.height === 0; \
     for (let each = found; each; each = each.parentElement) { \
         cut ||= getComputedStyle(each).overflowX !== 'visible' && each.scrollWidth > each.clientWidth; \
     } \
     return [box.left >= 0 && box.right <= innerWidth, cut, (scrollY + box.bottom) / innerHeight]";

/// A shop whose jobs send a report each, with the program.
pub(crate) struct Shop {
    served: ServedWorld,
    ingest_key: String,
    /// The public address of the pages.
    public: String,
}

impl Shop {
    pub(crate) fn new() -> Self {
        let world = assay_testkit::World::new();
        let front = free_address();
        // Browsers look up names below localhost on this machine. A comment has no links to an address that only this
        // machine reaches by itself.
        let port = front.rsplit_once(':').unwrap().1;
        let public = format!("http://shop.localhost:{port}");
        let environment = [
            ("ASSAY_RATE_LIMIT", "0"),
            ("ASSAY_FRONT_LISTEN", &front),
            ("ASSAY_PUBLIC_URL", &public),
        ];
        let served = {
            let server = Server::start_with_ingest(world.database.url(), &environment);
            world.served_by(server)
        };
        let key = served.cli.json(&["key", "create-ingest", "--project", "web"]);
        let shop = Self {
            ingest_key: text(&key["key"]),
            served,
            public,
        };
        shop.served.file("CODEOWNERS", OWNERS);
        shop.served.file("web/cart.spec.ts", "");
        shop
    }

    /// Sends a run of the suite, and returns the server's answer.
    fn upload(&self, minutes_ago: i64, flags: &[&str], is_broken: bool) -> Value {
        self.served.file("results.json", &report(is_broken));
        let start = rfc3339(OffsetDateTime::now_utc() - Duration::minutes(minutes_ago));
        let arguments = ["upload", "--json", "--started-at", &start];
        let mut command: Command = self
            .served
            .cli
            .command(&[&arguments, flags, &["results.json"]].concat());
        command
            .current_dir(self.served.folder.path())
            .env("ASSAY_INGEST_URL", self.served.server.ingest().base())
            .env("ASSAY_INGEST_KEY", &self.ingest_key);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", stderr_text(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The text that the server composes for a run's commit.
    fn comment(&self, run: &str) -> String {
        let authorization = format!("Bearer {}", self.ingest_key);
        let answer = self.served.server.ingest().post_json(
            "/ingest/v1/comments",
            &[("Authorization", &authorization)],
            &json!({ "runId": run }),
        );
        assert_eq!(answer.status, 200, "{}", answer.text());
        text(&answer.json()["markdown"])
    }

    pub(crate) fn signed_in(&self) -> Browser {
        let browser = Browser::start(Scripts::On);
        browser.resize(PHONE.0, PHONE.1);
        browser.open(&format!("{}/login", self.public));
        browser.write("input[name=key]", &self.served.key);
        browser.click("button.main");
        browser.until("return location.pathname !== '/login'");
        browser.console();
        browser
    }
}

/// A report of Playwright with two tests of the cart.
fn report(is_broken: bool) -> String {
    let spec = |title: &str, line: u32, failed: bool| {
        let status = if failed { "failed" } else { "passed" };
        let error = json!({"message": ERROR, "stack": format!("{ERROR}\n    at web/cart.spec.ts:{line}:5"),
            "location": {"file": "web/cart.spec.ts", "line": line, "column": 5}});
        let errors: Vec<&Value> = failed.then_some(&error).into_iter().collect();
        json!({"title": title, "ok": !failed, "file": "cart.spec.ts", "line": line, "column": 1, "tests": [{
            "expectedStatus": "passed", "projectName": "chromium", "status": if failed { "unexpected" } else { "expected" },
            "results": [{"status": status, "duration": 12, "retry": 0, "errors": errors, "error": errors.first()}]}]})
    };
    let specs = [
        spec("adds an item", 5, false),
        spec("pays the cart", 17, is_broken),
    ];
    json!({"config": {"rootDir": "/ci/web", "projects": []}, "errors": [],
        "suites": [{"title": "cart.spec.ts", "file": "web/cart.spec.ts", "line": 0, "column": 0, "specs": specs}]})
    .to_string()
}

/// Sends ten runs of main and the failed run of a pull request, and returns the addresses of the comment's links.
pub(crate) fn links_of_a_comment(shop: &Shop) -> Vec<String> {
    for number in 0..10 {
        let commit = format!("{number:02}c0ffee{}", "0".repeat(32));
        let flags = ["--branch", "main", "--commit", &commit, "--run-key", &commit];
        shop.upload(120 - number * 5, &flags, false);
    }
    let head = format!("bb00c0ffee{}", "0".repeat(30));
    let flags = [
        "--branch",
        "topic",
        "--commit",
        &head,
        "--run-key",
        "pr",
        "--pr",
        "7",
    ];
    let answer = shop.upload(10, &flags, true);
    let comment = shop.comment(&text(&answer["runId"]));
    let links = comment.split("](").skip(1);
    links
        .filter_map(|rest| Some(rest.split_once(')')?.0.to_owned()))
        .collect()
}

#[test]
fn the_link_of_a_comment_shows_error_place_cause_base_and_owner_on_a_phone() {
    let shop = Shop::new();
    let links = links_of_a_comment(&shop);
    let [of_failure, of_commit] = links.as_slice() else {
        panic!("not the links of one failure and of the commit: {links:?}")
    };
    assert!(
        of_failure.contains("/test?") && of_commit.ends_with("/pull/7"),
        "{links:?}"
    );
    let browser = shop.signed_in();
    for (link, texts, screens) in [
        (
            of_commit,
            &[
                ERROR,
                "web/cart.spec.ts:17",
                "Passed in all 10 runs on main",
                "against run 10 (09c0ffee)",
                "Owned by @shop/cart",
            ][..],
            2.0,
        ),
        (
            of_failure,
            &[
                ERROR,
                "web/cart.spec.ts:17",
                "Passed in all 10 runs on main",
                "Owned by @shop/cart",
            ],
            2.0,
        ),
    ] {
        browser.open(link);
        assert_eq!(
            browser.run("return document.documentElement.scrollWidth <= innerWidth"),
            json!(true),
            "{link} fits a phone"
        );
        for expected in texts {
            let found = browser.run(&PLACE_OF.replace("TEXT", &json!(expected).to_string()));
            let place = found
                .as_array()
                .unwrap_or_else(|| panic!("{link} does not show {expected:?}: {}", browser.text("main")));
            assert_eq!(place[..2], [json!(true), json!(false)], "{link}: {expected:?}");
            assert!(
                place[2].as_f64().unwrap() <= screens,
                "{link}: {expected:?} ends after {} screens",
                place[2]
            );
        }
        assert_eq!(browser.console(), Vec::<String>::new(), "{link}");
    }
}
