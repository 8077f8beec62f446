//! The logins of the deployment.

use std::{fs, path::Path, process::Command};

use crate::TestDatabase;

/// The logins that `deploy/roles.sql` makes, under unique names.
#[derive(Debug)]
pub struct Logins {
    /// Owner, server, importer, ingest listener, assay-notify, backups and people with SQL.
    pub names: [String; 7],
    url: String,
}

impl Logins {
    /// Runs the script in the database of this connection string, which ends with the name of a superuser. The names of
    /// the logins begin with `prefix`.
    pub fn new(url: &str, prefix: &str) -> Self {
        let names = [
            "assay_owner",
            "assay_web",
            "assay_ci",
            "assay_uploads",
            "assay_notify",
            "assay_backup",
            "assay_analyst",
        ]
        .map(|login| (login, format!("{prefix}_{login}")));
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/roles.sql");
        let mut sql = fs::read_to_string(file).expect("the script can be read");
        for (login, name) in &names {
            assert!(sql.contains(login), "{login}");
            sql = sql.replace(login, name);
        }
        let folder = tempfile::tempdir().expect("a folder can be made");
        let script = folder.path().join("roles.sql");
        fs::write(&script, sql).expect("the script can be written");
        let mut psql = Command::new("psql");
        psql.args(["--no-psqlrc", "--dbname", url, "--file"]).arg(script);
        for program in [
            "OWNER", "SERVER", "IMPORTER", "INGESTER", "NOTIFIER", "BACKUP", "READER",
        ] {
            psql.env(format!("ASSAY_{program}_PASSWORD"), "it's \"secret\"");
        }
        let output = psql.output().expect("psql can be run");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        Self {
            names: names.map(|(_, name)| name),
            url: url.to_owned(),
        }
    }

    /// The connection strings of owner, server, importer, ingest listener, assay-notify, backups and people with SQL.
    pub fn urls(&self) -> [String; 7] {
        let (head, _) = self.url.split_once("&user=").expect("a user");
        self.names.clone().map(|name| format!("{head}&user={name}"))
    }

    /// Drops the logins, whose database this is.
    pub fn drop_in(&self, database: &TestDatabase) {
        for name in &self.names {
            database.execute(&format!(
                "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I OWNER TO CURRENT_USER', current_database()); END $$; \
                 DROP OWNED BY {name} CASCADE; DROP ROLE {name}"
            ));
        }
    }
}
