//! A served database with runs of tests with hostile names, and a signed-in browser.

use std::sync::OnceLock;

use assay_testkit::{
    Browser, Client, Response, Scripts, ServedWorld, Server, Template, junit, text, wire::escape,
};
use serde_json::Value;

/// Names that try to break out of their markup.
pub(crate) fn hostile_names() -> Vec<String> {
    vec![
        "</script><script>document.title='owned'</script>".to_owned(),
        "\"><img src=x onerror=document.title='owned'>".to_owned(),
        "\u{202e}desrever and \u{200f}more".to_owned(),
        "w".repeat(2_000),
        "🦀🦀 crab & co".to_owned(),
        "a/b?c=d#e%2F'f\"g".to_owned(),
    ]
}

/// A server with pages. All worlds have the same state.
pub(crate) struct World {
    pub(crate) served: ServedWorld,
}

impl std::ops::Deref for World {
    type Target = ServedWorld;

    fn deref(&self) -> &ServedWorld {
        &self.served
    }
}

impl World {
    pub(crate) fn new() -> Self {
        static STATE: OnceLock<Template> = OnceLock::new();
        let make = || {
            let world = assay_testkit::World::new();
            import_all(&world);
            world.into_template()
        };
        let world = STATE.get_or_init(make).world();
        let server = Server::start_with_front(world.database.url(), &[("ASSAY_RATE_LIMIT", "0")]);
        Self {
            served: world.served_by(server),
        }
    }

    /// A client of the pages.
    pub(crate) fn front(&self) -> &Client {
        self.server.front()
    }

    /// Gets a path below the API's base, which must exist.
    pub(crate) fn api(&self, path: &str) -> Value {
        let answer = self
            .server
            .client()
            .get(&format!("/api/v1{path}"), Some(&self.key));
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    /// The address of a page.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.front().base())
    }

    /// A browser that has signed in with the key.
    pub(crate) fn signed_in(&self, scripts: Scripts) -> Browser {
        let browser = Browser::start(scripts);
        browser.open(&self.url("/login"));
        browser.write("input[name=key]", &self.key);
        browser.click("button.main");
        browser.until("return location.pathname !== '/login'");
        browser
    }

    /// The paths of one page of each kind, and of the pages of each test of the newest run.
    pub(crate) fn pages(&self) -> Vec<String> {
        let project = format!("/p/{}", self.project);
        let runs = self.api(&format!("/projects/{}/runs", self.project));
        let run = text(&runs["runs"][0]["id"]);
        let errors = self.api(&format!("/projects/{}/errors", self.project));
        let fingerprint = text(&errors["errors"][0]["fingerprint"]);
        let mut pages = vec![
            project.clone(),
            format!("{project}/tests"),
            format!("{project}/tests?search=%3Cscript&sort=name"),
            format!("{project}/runs"),
            format!("{project}/runs/{run}?show=all"),
            format!("{project}/runs/{run}?show=failed"),
            format!("{project}/runs/{run}?show=recovered&mode=hindsight"),
            format!("{project}/release?branch=main"),
            format!("{project}/health"),
            format!("{project}/errors"),
            format!("{project}/errors/{fingerprint}"),
        ];
        let detail = self.api(&format!("/projects/{}/runs/{run}", self.project));
        if let Some(commit) = detail["run"]["commitSha"].as_str() {
            pages.push(format!("{project}/commit/{commit}"));
        }
        for test in detail["tests"].as_array().unwrap() {
            let query = format!(
                "name={}&file={}",
                escape(test["testName"].as_str().unwrap()),
                escape(test["filePath"].as_str().unwrap_or_default())
            );
            pages.push(format!("{project}/test?{query}"));
            pages.push(format!("{project}/runs/{run}/test?{query}"));
        }
        pages
    }

    /// Imports a run of this many tests on main. Every third one failed.
    pub(crate) fn import_many(&self, tests: usize, key: &str) {
        let cases: Vec<(String, bool)> = (0..tests)
            .map(|test| {
                let name = format!(
                    "suite {} > a test with a name of a usual length {test}",
                    test % 40
                );
                (name, test % 3 != 0)
            })
            .collect();
        self.import_with(5, &cases, &["--run-key", key, "--branch", "main"]);
    }

    /// Imports a run with these flags, of these cases, each a name and whether it passed.
    pub(crate) fn import_with(&self, minutes_ago: i64, cases: &[(String, bool)], flags: &[&str]) {
        import_cases(&self.served, minutes_ago, cases, flags);
    }

    /// Signs in without a browser: the cookie.
    pub(crate) fn cookie(&self) -> String {
        self.front().sign_in(&self.key)
    }

    /// Gets a page with the cookie.
    pub(crate) fn page(&self, path: &str, cookie: &str) -> Response {
        self.front().get_with(path, &[("Cookie", cookie)])
    }
}

/// Twelve daily runs: a test that breaks, one that flips, one that fails in the newest run only, and those with hostile
/// names.
fn import_all(world: &assay_testkit::World) {
    let names = hostile_names();
    for run in 0..12_i64 {
        let mut cases = vec![
            ("breaks <b>for good</b>".to_owned(), run < 8),
            ("flips".to_owned(), run % 2 == 0),
            ("fails now".to_owned(), run != 11),
            ("is fine".to_owned(), true),
        ];
        cases.extend(
            names
                .iter()
                .enumerate()
                .map(|(place, name)| (name.clone(), (run + place as i64) % 5 != 0)),
        );
        import(
            world,
            (12 - run) * 24 * 60,
            &cases,
            &format!("run-{run}"),
            ("main", "0123456789abcdef0123456789abcdef01234567"),
        );
    }
    // An hour ago, a branch breaks a passing test. Two tests that fail on main also fail on the branch.
    let mut cases = vec![
        ("breaks <b>for good</b>".to_owned(), false),
        ("flips".to_owned(), false),
        ("is fine".to_owned(), false),
    ];
    cases.extend(names.iter().map(|name| (name.clone(), true)));
    import(
        world,
        60,
        &cases,
        "topic",
        ("topic", "aa23456789abcdef0123456789abcdef01234567"),
    );
}

/// Imports a JUnit report of these cases, each a name and whether it passed, on a branch with its commit.
fn import(
    world: &assay_testkit::World,
    minutes_ago: i64,
    cases: &[(String, bool)],
    key: &str,
    (branch, commit): (&str, &str),
) {
    let flags = ["--run-key", key, "--branch", branch, "--commit", commit];
    import_cases(world, minutes_ago, cases, &flags);
}

fn import_cases(world: &assay_testkit::World, minutes_ago: i64, cases: &[(String, bool)], flags: &[&str]) {
    let failure = |name: &str| ("expected 3, got <i>4".to_owned(), format!("at {name}"));
    let report = junit(cases, "tests/cart.test.ts", failure);
    world.import_report(minutes_ago, &report, flags);
}

/// The routes of the read API in the foot of a page, relative to its base.
pub(crate) fn routes(page: &str) -> Vec<String> {
    let (_, footer) = page.split_once("<footer>").unwrap();
    let commands = footer.split("<code>").skip(1);
    commands
        .map(|command| route_of(command).replace("&amp;", "&"))
        .collect()
}

/// The route in a command that gets it with curl, relative to the base of the API.
pub(crate) fn route_of(command: &str) -> String {
    let address = command.split('\'').nth(1).unwrap();
    let (_, route) = address.split_once("/api/v1").unwrap();
    route.to_owned()
}
