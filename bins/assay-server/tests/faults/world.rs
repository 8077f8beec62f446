//! A database with an organization, a project and a key, and a server over it.

use std::{fs, process::Command};

use assay_testkit::{Cli, Response, Server, TestDatabase, rfc3339, stderr_text};
use serde_json::Value;
use tempfile::TempDir;

use crate::{postgres::Postgres, server};

/// The server and its access data.
pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) cli: Cli,
    pub(crate) key: String,
    pub(crate) project: String,
    pub(crate) database: Source,
    /// Dropped last.
    pub(crate) folder: TempDir,
}

/// The place of the database.
pub(crate) enum Source {
    /// In the cluster that all tests share.
    Shared(TestDatabase),
    /// In the test's own cluster.
    Own(Box<Postgres>),
}

impl World {
    /// A world in the cluster that all tests share.
    pub(crate) fn new() -> Self {
        let world = assay_testkit::World::new();
        let (server, folder) = (
            server::start(world.folder.path(), world.database.url()),
            world.folder,
        );
        Self {
            server,
            cli: world.cli,
            key: world.key,
            project: world.project,
            database: Source::Shared(world.database),
            folder,
        }
    }

    /// A world with its own Postgres.
    pub(crate) fn with_own_postgres() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        fs::create_dir(&data).unwrap();
        fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let postgres = Postgres::start(&data);
        Self::over(postgres, folder)
    }

    /// A world over this Postgres, which may be empty.
    pub(crate) fn over(postgres: Postgres, folder: TempDir) -> Self {
        let url = postgres.url().to_owned();
        let world = assay_testkit::World::over(postgres, &url);
        Self {
            server: server::start(folder.path(), &url),
            cli: world.cli,
            key: world.key,
            project: world.project,
            database: Source::Own(Box::new(world.database)),
            folder,
        }
    }

    /// Its own Postgres.
    pub(crate) fn postgres(&mut self) -> &mut Postgres {
        match &mut self.database {
            Source::Own(postgres) => postgres,
            Source::Shared(_) => panic!("the shared cluster must not be broken"),
        }
    }

    /// A path of the API below the project.
    pub(crate) fn path(&self, below: &str) -> String {
        format!("/api/v1/projects/{}{below}", self.project)
    }

    /// Gets a path below the project.
    pub(crate) fn ask(&self, below: &str) -> Response {
        self.server.client().get(&self.path(below), Some(&self.key))
    }

    /// The same, which must succeed.
    pub(crate) fn get(&self, below: &str) -> Value {
        let answer = self.ask(below);
        assert_eq!(answer.status, 200, "{below}: {}", answer.text());
        answer.json()
    }

    /// Imports a generated report and returns the program's output.
    pub(crate) fn import(&self, report: &Report) -> Value {
        let output = self.import_command(report).output().unwrap();
        assert!(output.status.success(), "{}", stderr_text(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The command that imports a generated report.
    pub(crate) fn import_command(&self, report: &Report) -> Command {
        let arguments = self.arguments(report);
        let mut command = self.cli.command(&["import", "--project", "web"]);
        command.args(arguments);
        command
    }

    /// The command that sends a generated report to this address with an ingest key. It has no database.
    pub(crate) fn upload_command(&self, report: &Report, url: &str, key: &str) -> Command {
        let arguments = self.arguments(report);
        let mut command = self.cli.command(&["upload"]);
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env_remove("ASSAY_DATABASE_URL")
            .env("ASSAY_INGEST_URL", url)
            .env("ASSAY_INGEST_KEY", key);
        command
    }

    /// The common arguments of both. Writes the generated report.
    fn arguments(&self, report: &Report) -> Vec<String> {
        let name = format!("{}.xml", report.name());
        let path = self.folder.path().join(&name);
        fs::write(&path, report.xml()).unwrap();
        let mut arguments = vec!["--json".to_owned(), path.display().to_string()];
        let mut add = |flag: &str, value: String| arguments.extend([flag.to_owned(), value]);
        add("--branch", "main".to_owned());
        add("--run-key", report.build.to_string());
        add("--started-at", report.started());
        if let Some((index, of)) = report.shard {
            add("--shard", format!("{index}/{of}"));
        }
        arguments
    }
}

impl Source {
    /// The connection string.
    pub(crate) fn url(&self) -> &str {
        match self {
            Self::Shared(database) => database.url(),
            Self::Own(postgres) => postgres.url(),
        }
    }
}

/// A JUnit report that its numbers determine: the same numbers give the same bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Report {
    pub(crate) build: u32,
    pub(crate) shard: Option<(u32, u32)>,
    pub(crate) tests: u32,
    /// The age of the run's start in seconds before [`now`].
    pub(crate) age_s: i64,
}

impl Report {
    /// An unsharded run, this many minutes ago.
    pub(crate) fn whole(build: u32, tests: u32, minutes_ago: i64) -> Self {
        Self {
            build,
            shard: None,
            tests,
            age_s: minutes_ago * 60,
        }
    }

    fn name(&self) -> String {
        format!("r{}-{}", self.build, self.shard.map_or(0, |(index, _)| index))
    }

    fn started(&self) -> String {
        rfc3339(now() - time::Duration::seconds(self.age_s))
    }

    /// Whether a test fails in this run. Some fail always, some sometimes.
    pub(crate) fn fails(&self, test: u32) -> bool {
        test % 19 == 3 || (test % 7 == 1 && (self.build + test).is_multiple_of(3))
    }

    fn xml(&self) -> String {
        let part = self.shard.map_or(0, |(index, _)| index);
        let case = |test: u32| {
            let failure = if self.fails(test) {
                format!(
                    "<failure message=\"expected {test}, got {}\">at cart{part}.test.ts:{test}:1</failure>",
                    test % 5
                )
            } else {
                String::new()
            };
            format!(
                "<testcase classname=\"cart\" name=\"keeps {part} {test}\" file=\"cart{part}.test.ts\" time=\"0.0{}\">{failure}</testcase>",
                1 + test % 9
            )
        };
        let cases: String = (0..self.tests).map(case).collect();
        format!("<testsuite>{cases}</testsuite>")
    }
}

/// One time for a whole test process, to the second. Worlds with the same reports are therefore comparable.
pub(crate) fn now() -> time::OffsetDateTime {
    static NOW: std::sync::OnceLock<time::OffsetDateTime> = std::sync::OnceLock::new();
    *NOW.get_or_init(|| time::OffsetDateTime::now_utc().replace_nanosecond(0).unwrap())
}
