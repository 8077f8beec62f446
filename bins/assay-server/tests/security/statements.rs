//! The statements that a request runs, as Postgres logs them.

use std::{fs, path::PathBuf};

use crate::world::World;

/// The statements in Postgres' log.
pub(crate) struct Statements<'a> {
    world: &'a World,
    file: PathBuf,
}

impl<'a> Statements<'a> {
    /// Begins to log the statements of every new connection to the world's database, and replaces the connections.
    pub(crate) fn of(world: &'a World) -> Self {
        world.log_statements();
        Self {
            world,
            file: world.postgres_log(),
        }
    }

    /// The statements of a request, without the look-up of the key, which is cached for a moment.
    pub(crate) fn during<T>(&self, request: impl FnOnce() -> T) -> Vec<String> {
        let before = fs::read(&self.file).unwrap().len();
        request();
        let log = fs::read(&self.file).unwrap();
        let new = String::from_utf8_lossy(log.get(before..).unwrap_or_default()).into_owned();
        let pids = self.world.database.texts(
            "SELECT pid::text FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
        );
        new.lines()
            .filter(|line| {
                pids.iter()
                    .flatten()
                    .any(|pid| line.contains(&format!("[{pid}]")))
            })
            .filter_map(|line| line.split_once("execute ").or(line.split_once("statement: ")))
            .filter_map(|(_, statement)| statement.split_once("SELECT").map(|(_, rest)| rest.to_owned()))
            .filter(|statement| !statement.contains("\"api_key\""))
            .collect()
    }
}

impl World {
    /// The log of the cluster, which lies in a folder above its data. Panics if there is none.
    pub(crate) fn postgres_log(&self) -> PathBuf {
        let data = PathBuf::from(
            self.database
                .text("SELECT setting FROM pg_settings WHERE name = 'data_directory'")
                .unwrap(),
        );
        let matching = data
            .ancestors()
            .map(|folder| folder.join("postgres.log"))
            .find(|log| log.is_file());
        matching.expect("the cluster has its log above its data")
    }

    /// Enables logging of this database's statements with their parameters for new connections. Ends the existing ones.
    pub(crate) fn log_statements(&self) {
        let name = self.database.text("SELECT current_database()").unwrap();
        self.database
            .execute(&format!("ALTER DATABASE {name} SET log_statement = 'all'"));
        self.database.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = current_database() AND pid <> pg_backend_pid()",
        );
        // The pool replaces its connections at the next request.
        for _ in 0..20 {
            self.server
                .client()
                .get("/api/v1/projects", Some(&self.keys.good));
        }
    }
}
