//! An organization with a project, and reports for it.

use std::ops::Deref;

use assay_testkit::{Cli, Client, Response, Server, text};
use serde_json::Value;

/// An organization with a project and a read key, in the database of a connection string.
pub(crate) struct World(assay_testkit::World<()>);

impl World {
    /// Creates them in a database and migrates it.
    pub(crate) fn new(database_url: &str) -> Self {
        Self(assay_testkit::World::over((), database_url))
    }

    /// Imports a run of one test and returns its id.
    pub(crate) fn import(&self, run: &str) -> String {
        let case = r#"<testcase name="adds" file="cart.test.ts" time="0.010"/>"#;
        let path = self.file(&format!("{run}.xml"), &format!("<testsuite>{case}</testsuite>"));
        text(&self.0.import(&["--run-key", run, &path])["runId"])
    }

    /// Gets a path below the project.
    pub(crate) fn ask(&self, server: &Server, path: &str) -> Response {
        self.ask_client(server.client(), path)
    }

    /// The same with a client.
    pub(crate) fn ask_client(&self, client: &Client, path: &str) -> Response {
        client.get(&self.path(path), Some(&self.key))
    }

    /// The number of runs in the list.
    pub(crate) fn runs(&self, server: &Server) -> u64 {
        let answer = self.ask(server, "/runs");
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["total"].as_u64().unwrap()
    }
}

impl Deref for World {
    type Target = assay_testkit::World<()>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// A new read key of the organization, with its id.
pub(crate) fn new_key(cli: &Cli) -> Value {
    cli.json(&["key", "create", "--org", "Shop", "--days", "90"])
}
