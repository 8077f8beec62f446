//! An organization with a project, and reports for it.

use std::fs;

use assay_testkit::{Cli, Client, Response, Server};
use serde_json::Value;

/// An organization with a project and a read key, in the database of a connection string.
pub(crate) struct World {
    pub(crate) cli: Cli,
    pub(crate) key: String,
    pub(crate) project: String,
    folder: tempfile::TempDir,
}

impl World {
    /// Makes them in a database, which is migrated.
    pub(crate) fn new(database_url: &str) -> Self {
        let cli = Cli::new(database_url);
        let migrated = cli.run(&["migrate"]);
        assert!(migrated.status.success(), "{migrated:?}");
        cli.json(&["org", "create", "Shop", "--plan", "pro"]);
        let project = cli.json(&["project", "create", "--org", "Shop", "web"]);
        Self {
            key: new_key(&cli)["key"].as_str().unwrap().to_owned(),
            project: project["id"].as_str().unwrap().to_owned(),
            cli,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// Imports a run of one test and returns its id.
    pub(crate) fn import(&self, run: &str) -> String {
        let path = self.folder.path().join(format!("{run}.xml"));
        let case = r#"<testcase name="adds" file="cart.test.ts" time="0.010"/>"#;
        fs::write(&path, format!("<testsuite name=\"s\">{case}</testsuite>")).unwrap();
        let path = path.display().to_string();
        let imported = self
            .cli
            .json(&["import", "--project", "web", "--run-key", run, &path]);
        imported["runId"]
            .as_str()
            .unwrap_or_else(|| panic!("no run id: {imported}"))
            .to_owned()
    }

    /// Asks for something below the project.
    pub(crate) fn ask(&self, server: &Server, path: &str) -> Response {
        self.ask_client(server.client(), path)
    }

    /// The same by a client.
    pub(crate) fn ask_client(&self, client: &Client, path: &str) -> Response {
        client.get(
            &format!("/api/v1/projects/{}{path}", self.project),
            Some(&self.key),
        )
    }

    /// How many runs the list tells of.
    pub(crate) fn runs(&self, server: &Server) -> u64 {
        let answer = self.ask(server, "/runs");
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["total"].as_u64().unwrap()
    }
}

/// A new read key of the organization, with its id.
pub(crate) fn new_key(cli: &Cli) -> Value {
    cli.json(&["key", "create", "--org", "Shop", "--days", "90"])
}
