//! An organization with a project and a read key in the test's own database, and a server over it.

use std::{
    fs,
    ops::{Deref, DerefMut},
    sync::OnceLock,
};

use serde_json::Value;
use tempfile::TempDir;
use time::{Duration, OffsetDateTime, format_description::well_known::Rfc3339};

use crate::{Cli, Response, Server, TestDatabase};

/// The organization "Shop" on the plan `pro`, with the project "web" and a read key of 90 days.
///
/// `D` owns the database: most often a [`TestDatabase`].
#[derive(Debug)]
pub struct World<D = TestDatabase> {
    /// The command line over the database.
    pub cli: Cli,
    /// The id of the organization.
    pub org: String,
    /// The id of the project.
    pub project: String,
    /// The read key.
    pub key: String,
    /// The id of the read key.
    pub key_id: String,
    /// A folder for reports and other files.
    pub folder: TempDir,
    /// Dropped last.
    pub database: D,
}

impl World {
    /// A world in a database of its own.
    ///
    /// The programs create the first one of a test process. All others are copies of it with the same ids and the same
    /// key.
    pub fn new() -> Self {
        static FIRST: OnceLock<Template> = OnceLock::new();
        let make = || {
            let database = TestDatabase::new();
            let url = database.url().to_owned();
            World::over(database, &url).into_template()
        };
        FIRST.get_or_init(make).world()
    }

    /// The same without the read key, for tests that count keys.
    pub fn without_key() -> Self {
        let mut world = Self::new();
        world.database.execute("DELETE FROM api_key");
        world.key.clear();
        world.key_id.clear();
        world
    }

    /// The number that a query of its database returns.
    pub fn count(&self, sql: &str) -> i64 {
        let count = self.database.text(sql).and_then(|text| text.parse().ok());
        count.unwrap_or_else(|| panic!("{sql}: no number"))
    }

    /// Uses the state of this world for other worlds. Its folder is deleted.
    pub fn into_template(self) -> Template {
        Template {
            org: self.org,
            project: self.project,
            key: self.key,
            key_id: self.key_id,
            database: self.database,
        }
    }
}

/// A state that worlds copy. In a `static`, it is created once for all tests of a process.
#[derive(Debug)]
pub struct Template {
    org: String,
    project: String,
    key: String,
    key_id: String,
    database: TestDatabase,
}

impl Template {
    /// A world with this state in a database of its own.
    pub fn world(&self) -> World {
        let database = self.database.copy();
        World {
            cli: Cli::new(database.url()),
            org: self.org.clone(),
            project: self.project.clone(),
            key: self.key.clone(),
            key_id: self.key_id.clone(),
            folder: folder(),
            database,
        }
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl<D> World<D> {
    /// Creates a world in the database of this connection string, which may be empty.
    pub fn over(database: D, url: &str) -> Self {
        let cli = Cli::new(url);
        let migrated = cli.run(&["migrate"]);
        assert!(migrated.status.success(), "{migrated:?}");
        let org = cli.json(&["org", "create", "Shop", "--plan", "pro"]);
        let project = cli.json(&["project", "create", "--org", "Shop", "web"]);
        let key = cli.json(&["key", "create", "--org", "Shop", "--days", "90"]);
        Self {
            cli,
            org: text(&org["id"]),
            project: text(&project["id"]),
            key: text(&key["key"]),
            key_id: text(&key["id"]),
            folder: folder(),
            database,
        }
    }

    /// This world with this server over its database.
    pub fn served_by(self, server: Server) -> ServedWorld<D> {
        ServedWorld { server, world: self }
    }

    /// Writes a file and returns its path.
    pub fn file(&self, name: &str, content: &str) -> String {
        let path = self.folder.path().join(name);
        let folder = path.parent().expect("a file lies in a folder");
        let outcome = fs::create_dir_all(folder).and_then(|()| fs::write(&path, content));
        outcome.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path.display().to_string()
    }

    /// Imports into the project, which must succeed.
    pub fn import(&self, arguments: &[&str]) -> Value {
        self.cli
            .json(&[&["import", "--project", "web"], arguments].concat())
    }

    /// Imports a report, which must succeed, with a start some minutes ago.
    pub fn import_report(&self, minutes_ago: i64, report: &str, flags: &[&str]) -> Value {
        let path = self.file("r.xml", report);
        let start = rfc3339(OffsetDateTime::now_utc() - Duration::minutes(minutes_ago));
        self.import(&[&["--started-at", start.as_str()], flags, &[path.as_str()]].concat())
    }

    /// Imports a JUnit report of these cases, each a name and whether it passed.
    pub fn import_cases(&self, minutes_ago: i64, cases: &[(&str, bool)], flags: &[&str]) -> Value {
        let failure = |_: &str| ("expected 3, got 4".to_owned(), "at cart.test.ts:3:1".to_owned());
        self.import_report(minutes_ago, &junit(cases, "cart.test.ts", failure), flags)
    }

    /// A path of the API below the project.
    pub fn path(&self, below: &str) -> String {
        format!("/api/v1/projects/{}{below}", self.project)
    }
}

/// A world with a server over its database.
#[derive(Debug)]
pub struct ServedWorld<D = TestDatabase> {
    /// Dropped first.
    pub server: Server,
    /// The world of the server.
    pub world: World<D>,
}

impl ServedWorld {
    /// A new world behind a server without a rate limit.
    pub fn new() -> Self {
        Self::with(&[])
    }

    /// The same with additional environment variables for the server.
    pub fn with(environment: &[(&str, &str)]) -> Self {
        Self::started_by(Server::start_with, environment)
    }

    /// The same with the listener for the pages.
    pub fn with_front(environment: &[(&str, &str)]) -> Self {
        Self::started_by(Server::start_with_front, environment)
    }

    /// The same with the listener for reports.
    pub fn with_ingest(environment: &[(&str, &str)]) -> Self {
        Self::started_by(Server::start_with_ingest, environment)
    }

    /// The same with everything on one address.
    pub fn on_one_address(environment: &[(&str, &str)]) -> Self {
        Self::started_by(Server::start_on_one_address, environment)
    }

    fn started_by(start: impl Fn(&str, &[(&str, &str)]) -> Server, environment: &[(&str, &str)]) -> Self {
        let world = World::new();
        let environment = [&[("ASSAY_RATE_LIMIT", "0")], environment].concat();
        let server = start(world.database.url(), &environment);
        world.served_by(server)
    }
}

impl Default for ServedWorld {
    fn default() -> Self {
        Self::new()
    }
}

impl<D> ServedWorld<D> {
    /// Gets a path below the API's base.
    pub fn ask(&self, path: &str) -> Response {
        let path = format!("/api/v1{path}");
        self.server.client().get(&path, Some(&self.world.key))
    }

    /// Gets a path below the project, which must exist.
    pub fn get(&self, below: &str) -> Value {
        let answer = self.server.client().get(&self.path(below), Some(&self.world.key));
        assert_eq!(answer.status, 200, "{below}: {}", answer.text());
        answer.json()
    }
}

impl<D> Deref for ServedWorld<D> {
    type Target = World<D>;

    fn deref(&self) -> &World<D> {
        &self.world
    }
}

impl<D> DerefMut for ServedWorld<D> {
    fn deref_mut(&mut self) -> &mut World<D> {
        &mut self.world
    }
}

/// A JUnit report of cases, each a name and whether it passed, with this text of each failure.
pub fn junit<N: AsRef<str>>(
    cases: &[(N, bool)],
    file: &str,
    failure: impl Fn(&str) -> (String, String),
) -> String {
    let case = |(name, passed): &(N, bool)| {
        let name = name.as_ref();
        let failure = if *passed {
            String::new()
        } else {
            let (message, text) = failure(name);
            format!("<failure message=\"{}\">{}</failure>", xml(&message), xml(&text))
        };
        let name = xml(name);
        format!(
            "<testcase classname=\"cart\" name=\"{name}\" file=\"{file}\" time=\"0.010\">{failure}</testcase>"
        )
    };
    let cases: String = cases.iter().map(case).collect();
    format!("<testsuite>{cases}</testsuite>")
}

fn xml(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// The content of a JSON string.
pub fn text(value: &Value) -> String {
    let text = value.as_str().unwrap_or_else(|| panic!("no string: {value}"));
    text.to_owned()
}

/// A time in the format of `--started-at`.
pub fn rfc3339(time: OffsetDateTime) -> String {
    time.format(&Rfc3339).expect("a time has a text")
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap_or_else(|error| panic!("no temporary folder: {error}"))
}
