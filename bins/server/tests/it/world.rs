//! A served database with an organization, a project and a read key.

use assay_testkit::{Cli, Response, Server, TestDatabase};
use serde_json::Value;

/// A server over a database of the test's own.
pub(crate) struct World {
    pub(crate) cli: Cli,
    pub(crate) server: Server,
    pub(crate) key: String,
    pub(crate) key_id: String,
    pub(crate) project: String,
    pub(crate) folder: tempfile::TempDir,
    /// Dropped last.
    pub(crate) database: TestDatabase,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    /// The same with more environment variables for the server.
    pub(crate) fn with(environment: &[(&str, &str)]) -> Self {
        let database = TestDatabase::new();
        let cli = Cli::new(database.url());
        cli.json(&["org", "create", "Shop", "--plan", "pro"]);
        let project = cli.json(&["project", "create", "--org", "Shop", "web"]);
        let key = cli.json(&["key", "create", "--org", "Shop", "--days", "90"]);
        let server = Server::start_with(
            database.url(),
            &[&[("ASSAY_RATE_LIMIT", "0")], environment].concat(),
        );
        Self {
            cli,
            server,
            key: text(&key["key"]),
            key_id: text(&key["id"]),
            project: text(&project["id"]),
            folder: tempfile::tempdir().unwrap(),
            database,
        }
    }

    /// Gets a path below the project, which must exist.
    pub(crate) fn get(&self, path: &str) -> Value {
        let answer = self.ask(&format!("/projects/{}{path}", self.project));
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    /// Gets a path below the API's base.
    pub(crate) fn ask(&self, path: &str) -> Response {
        self.server
            .client()
            .get(&format!("/api/v1{path}"), Some(&self.key))
    }

    /// Imports a JUnit report of these cases, started a number of minutes ago.
    pub(crate) fn import(&self, minutes_ago: i64, cases: &[(&str, bool)], flags: &[&str]) -> Value {
        let path = self.folder.path().join("r.xml");
        std::fs::write(&path, report(cases)).unwrap();
        let start = (time::OffsetDateTime::now_utc() - time::Duration::minutes(minutes_ago))
            .format(&time::format_description::well_known::Rfc3339)
            .unwrap();
        let path = path.display().to_string();
        self.cli.json(
            &[
                &["import", "--project", "web", "--started-at", &start],
                flags,
                &[path.as_str()],
            ]
            .concat(),
        )
    }
}

/// A JUnit report of cases, each a name and whether it passed.
fn report(cases: &[(&str, bool)]) -> String {
    let case = |(name, passed): &(&str, bool)| {
        let failure = if *passed {
            ""
        } else {
            "<failure message=\"expected 3, got 4\">at cart.test.ts:3:1</failure>"
        };
        format!(
            "<testcase classname=\"cart\" name=\"{name}\" file=\"cart.test.ts\" time=\"0.010\">{failure}</testcase>"
        )
    };
    format!(
        "<testsuite name=\"s\">{}</testsuite>",
        cases.iter().map(case).collect::<String>()
    )
}

/// A JSON string's text.
pub(crate) fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("no string: {value}"))
        .to_owned()
}
