//! A database with an organization and a project, and the command line over it.

use std::process::Output;

use assay_testkit::{Cli, TestDatabase};
use serde_json::Value;

/// A database of the test's own with one project.
pub(crate) struct World {
    pub(crate) cli: Cli,
    pub(crate) database: TestDatabase,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) org: String,
    pub(crate) project: String,
}

impl World {
    pub(crate) fn new() -> Self {
        let database = TestDatabase::new();
        let cli = Cli::new(database.url());
        let org = cli.json(&["org", "create", "Shop", "--plan", "pro"]);
        let project = cli.json(&["project", "create", "--org", "Shop", "web"]);
        Self {
            cli,
            database,
            folder: tempfile::tempdir().unwrap(),
            org: text(&org["id"]),
            project: text(&project["id"]),
        }
    }

    /// Writes a file and returns its path.
    pub(crate) fn file(&self, name: &str, content: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    /// Imports into the project, which must succeed.
    pub(crate) fn import(&self, arguments: &[&str]) -> Value {
        self.cli
            .json(&[&["import", "--project", "web"], arguments].concat())
    }

    /// A count of rows.
    pub(crate) fn count(&self, sql: &str) -> i64 {
        self.database.text(sql).unwrap().parse().unwrap()
    }
}

/// A JSON string's text.
pub(crate) fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("no string: {value}"))
        .to_owned()
}

/// What a program wrote to standard error.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
