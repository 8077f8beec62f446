//! A served database with runs of tests whose names are hostile, and a browser that is signed in.

use std::{net::TcpListener, process::Command};

use assay_testkit::{Browser, Cli, Client, Response, Scripts, Server, TestDatabase, program};
use serde_json::Value;

/// Names that try to leave their place on a page.
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

pub(crate) struct World {
    pub(crate) cli: Cli,
    pub(crate) server: Server,
    pub(crate) front: Client,
    pub(crate) key: String,
    pub(crate) key_id: String,
    pub(crate) project: String,
    folder: tempfile::TempDir,
    /// Dropped last.
    _database: TestDatabase,
}

impl World {
    pub(crate) fn new() -> Self {
        let database = TestDatabase::new();
        let cli = Cli::new(database.url());
        cli.json(&["org", "create", "Shop", "--plan", "pro"]);
        let project = cli.json(&["project", "create", "--org", "Shop", "web"]);
        let key = cli.json(&["key", "create", "--org", "Shop", "--days", "90"]);
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut server = Server::launch(
            Command::new(program("assay-server")),
            &[
                ("ASSAY_DATABASE_URL", database.url()),
                ("ASSAY_RATE_LIMIT", "0"),
                ("ASSAY_FRONT_LISTEN", &address.to_string()),
            ],
        );
        server.ready();
        let world = Self {
            cli,
            server,
            front: Client::new(format!("http://{address}")),
            key: text(&key["key"]),
            key_id: text(&key["id"]),
            project: text(&project["id"]),
            folder: tempfile::tempdir().unwrap(),
            _database: database,
        };
        world.import_all();
        world
    }

    /// Twelve daily runs: a test that breaks, one that flips, one that is new and fails, and the hostile ones.
    fn import_all(&self) {
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
            self.import((12 - run) * 24 * 60, &cases, &format!("run-{run}"));
        }
        // A branch of yesterday breaks what is fine; what main broke is broken there, too.
        let mut cases = vec![
            ("breaks <b>for good</b>".to_owned(), false),
            ("flips".to_owned(), false),
            ("is fine".to_owned(), false),
        ];
        cases.extend(names.iter().map(|name| (name.clone(), true)));
        self.import_on(
            60,
            &cases,
            "topic",
            "topic",
            "aa23456789abcdef0123456789abcdef01234567",
        );
    }

    /// Imports a JUnit report of these cases on main, each a name and whether it passed.
    pub(crate) fn import(&self, minutes_ago: i64, cases: &[(String, bool)], key: &str) {
        self.import_on(
            minutes_ago,
            cases,
            key,
            "main",
            "0123456789abcdef0123456789abcdef01234567",
        );
    }

    fn import_on(&self, minutes_ago: i64, cases: &[(String, bool)], key: &str, branch: &str, commit: &str) {
        let path = self.folder.path().join("r.xml");
        std::fs::write(&path, report(cases)).unwrap();
        let start = (time::OffsetDateTime::now_utc() - time::Duration::minutes(minutes_ago))
            .format(&time::format_description::well_known::Rfc3339)
            .unwrap();
        self.cli.json(&[
            "import",
            "--project",
            "web",
            "--started-at",
            &start,
            "--run-key",
            key,
            "--branch",
            branch,
            "--commit",
            commit,
            &path.display().to_string(),
        ]);
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
        format!("{}{path}", self.front.base())
    }

    /// A browser that signed in with the key.
    pub(crate) fn signed_in(&self, scripts: Scripts) -> Browser {
        let browser = Browser::start(scripts);
        browser.open(&self.url("/login"));
        browser.write("input[name=key]", &self.key);
        browser.click("button.main");
        browser.until("return location.pathname !== '/login'");
        browser
    }

    /// One page of each kind, reached as a person would name it.
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
            format!("{project}/errors"),
            format!("{project}/errors/{fingerprint}"),
        ];
        let detail = self.api(&format!("/projects/{}/runs/{run}", self.project));
        for test in detail["tests"].as_array().unwrap() {
            let query = format!(
                "name={}&file={}",
                escaped(test["testName"].as_str().unwrap()),
                escaped(test["filePath"].as_str().unwrap_or_default())
            );
            pages.push(format!("{project}/test?{query}"));
            pages.push(format!("{project}/runs/{run}/test?{query}"));
        }
        pages
    }

    /// Signs in without a browser: the cookie.
    pub(crate) fn cookie(&self) -> String {
        let answer = self.post("/login", &format!("key={}", self.key), true);
        assert_eq!(answer.status, 303, "{}", answer.text());
        let set = answer.header("set-cookie").unwrap();
        set.split(';').next().unwrap().to_owned()
    }

    /// Posts a form, as a page of the site itself or of another.
    pub(crate) fn post(&self, path: &str, form: &str, is_own: bool) -> Response {
        let site = if is_own { "same-origin" } else { "cross-site" };
        self.front.post(
            path,
            &[
                ("Content-Type", "application/x-www-form-urlencoded"),
                ("Sec-Fetch-Site", site),
            ],
            form.as_bytes(),
        )
    }

    /// Gets a page with the cookie.
    pub(crate) fn page(&self, path: &str, cookie: &str) -> Response {
        self.front.get_with(path, &[("Cookie", cookie)])
    }
}

fn report(cases: &[(String, bool)]) -> String {
    let case = |(name, passed): &(String, bool)| {
        let failure = if *passed {
            String::new()
        } else {
            format!(
                "<failure message=\"expected 3, got &lt;i&gt;4\">at {}</failure>",
                xml(name)
            )
        };
        format!(
            "<testcase classname=\"cart\" name=\"{}\" file=\"tests/cart.test.ts\" time=\"0.210\">{failure}</testcase>",
            xml(name)
        )
    };
    format!(
        "<testsuite name=\"s\">{}</testsuite>",
        cases.iter().map(case).collect::<String>()
    )
}

fn xml(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

pub(crate) fn escaped(text: &str) -> String {
    text.bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

pub(crate) fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("no string: {value}"))
        .to_owned()
}
