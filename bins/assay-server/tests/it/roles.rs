//! The rights of the server's and the importer's logins: exactly what they need.

use std::{fs, path::Path};

use assay_domain::{
    id::RunId,
    ingest::{IngestKeys as _, Upload},
    key::hash,
    recording::Effect,
    timestamp::Timestamp,
};
use assay_repository::Database;
use assay_testkit::{Cli, Logins, ServedWorld, Server, TestDatabase, assert_contains};
use diesel::{Connection, PgConnection, connection::SimpleConnection};

use crate::{everything, gate_decisions::Pages};

/// The test's own login as a member of a group. Dropping the value drops it.
struct Login<'a> {
    name: String,
    database: &'a TestDatabase,
}

impl<'a> Login<'a> {
    fn new(database: &'a TestDatabase, group: &str) -> Self {
        let name = format!("{}_{group}", name(database));
        database.execute(&format!("CREATE ROLE {name} LOGIN IN ROLE {group}"));
        Self { name, database }
    }

    fn url(&self) -> String {
        let (head, _) = self.database.url().split_once("&user=").unwrap();
        format!("{head}&user={}", self.name)
    }

    /// Whether the login may run a statement. The statement is rolled back.
    fn is_allowed(&self, sql: &str) -> bool {
        let mut connection = PgConnection::establish(&self.url()).unwrap();
        connection.batch_execute("BEGIN").unwrap();
        match connection.batch_execute(sql) {
            Ok(()) => true,
            Err(error) => {
                let message = error.to_string();
                assert!(
                    message.contains("permission denied") || message.contains("must be owner"),
                    "{sql}: {message}"
                );
                false
            }
        }
    }
}

impl Drop for Login<'_> {
    fn drop(&mut self) {
        self.database.execute(&format!("DROP ROLE {}", self.name));
    }
}

/// A unique name, because roles belong to the whole cluster.
fn name(database: &TestDatabase) -> String {
    let (_, name) = database.url().split_once("///").unwrap();
    format!("login_of_{}", name.split_once('?').unwrap().0)
}

/// Statements that change stored data or the schema.
const WRITES: [&str; 19] = [
    "DELETE FROM result_block",
    "UPDATE result_block SET status = ''",
    "INSERT INTO result_block SELECT * FROM result_block LIMIT 0",
    "INSERT INTO attempt SELECT * FROM attempt LIMIT 0",
    "UPDATE run SET total = 0",
    "DELETE FROM run",
    "DELETE FROM verdict_block",
    "UPDATE run_pack SET pack = ''",
    "UPDATE project SET name = ''",
    "UPDATE project SET organization_id = organization_id",
    "UPDATE project_entry SET name = ''",
    "UPDATE organization SET plan = 'pro'",
    "UPDATE api_key SET revoked_at = NULL",
    "UPDATE api_key SET hash = ''",
    "INSERT INTO api_key SELECT * FROM api_key LIMIT 0",
    "DELETE FROM api_key",
    "DROP TABLE result_block",
    "TRUNCATE result_block",
    "SELECT assay_drop_partition('20261116')",
];

/// The statements of [`WRITES`] that an import may run, besides the one on `run_pack`.
const IMPORTS: [&str; 6] = [
    "DELETE FROM result_block",
    "UPDATE result_block SET status = ''",
    "INSERT INTO result_block SELECT * FROM result_block LIMIT 0",
    "INSERT INTO attempt SELECT * FROM attempt LIMIT 0",
    "UPDATE run SET total = 0",
    "DELETE FROM verdict_block",
];

fn world() -> ServedWorld {
    let world = ServedWorld::new();
    world.import_cases(
        3 * 24 * 60,
        &[("adds", false), ("removes", true)],
        &["--run-key", "a"],
    );
    world.import_cases(10, &[("adds", true), ("removes", true)], &["--run-key", "b"]);
    world
}

#[test]
fn the_servers_login_answers_everything_and_writes_nothing() {
    let world = world();
    let login = Login::new(&world.database, "assay_server");
    let as_owner = everything::of(world.server.client(), &world.key, &world.project);
    let server = Server::start_with(&login.url(), &[("ASSAY_RATE_LIMIT", "0")]);
    assert_eq!(
        everything::of(server.client(), &world.key, &world.project),
        as_owner
    );
    let used = "SELECT count(*) FROM api_key WHERE last_used_on IS NOT NULL";
    assert_eq!(world.database.text(used).as_deref(), Some("1"));
    assert!(!server.log().contains("permission denied"), "{}", server.log());

    for sql in WRITES {
        assert!(!login.is_allowed(sql), "{sql}");
    }
    assert!(!login.is_allowed("SELECT assay_create_partition(now(), now())"));
    for sql in ["UPDATE upload SET decision = NULL", "SELECT client FROM upload"] {
        assert!(!login.is_allowed(sql), "{sql}");
    }
    assert!(
        login.is_allowed("SELECT decision, key_id FROM upload"),
        "the pages show decisions, and the API the names of keys"
    );
    assert!(
        login.is_allowed("UPDATE api_key SET last_used_on = now()"),
        "its only bookkeeping"
    );
    let imported = Cli::new(login.url()).run(&["import", "--project", "web", "nothing.xml"]);
    assert!(!imported.status.success());
}

#[test]
fn the_importers_login_imports_and_sees_no_key() {
    let mut importer = world();
    let login = Login::new(&importer.world.database, "assay_importer");
    importer.world.cli = Cli::new(login.url());
    // New weeks, a shard that moves its run, a replaced shard, and errors.
    importer.import_cases(30 * 24 * 60, &[("adds", false)], &["--run-key", "old"]);
    importer.import_cases(20, &[("adds", false)], &["--run-key", "s", "--shard", "1/2"]);
    importer.import_cases(
        9 * 24 * 60,
        &[("sums", false), ("adds", true)],
        &["--run-key", "s", "--shard", "2/2"],
    );
    importer.import_cases(15, &[("sums", true)], &["--run-key", "s", "--shard", "2/2"]);
    assert_eq!(importer.get("/runs?days=90")["total"], 4);

    // It creates the weeks around the clock of Postgres, and the free part of any other year.
    let partitions = "SELECT name FROM partition";
    let before = importer.world.database.texts(partitions).len();
    let weeks = "SELECT assay_create_partition('2031-01-01'::timestamptz + week * interval '7 days', \
        '2031-01-01'::timestamptz + week * interval '7 days') FROM generate_series(0, 40) AS week";
    PgConnection::establish(&login.url())
        .unwrap()
        .batch_execute(weeks)
        .unwrap();
    assert_eq!(importer.world.database.texts(partitions).len(), before + 1);

    for sql in WRITES {
        assert_eq!(
            login.is_allowed(sql),
            IMPORTS.contains(&sql) || sql.starts_with("UPDATE run_pack"),
            "{sql}"
        );
    }
    assert!(
        !login.is_allowed("SELECT hash FROM api_key"),
        "the login must not read keys"
    );
    assert!(!login.is_allowed("SELECT 1 FROM api_key"));
    for arguments in [
        &["key", "create", "--org", "Shop", "--days", "90"][..],
        &["key", "list", "--org", "Shop"],
        &["prune", "--yes"],
        &["org", "create", "Other"],
    ] {
        let output = importer.cli.run(arguments);
        assert!(!output.status.success(), "{arguments:?}");
    }
}

#[test]
fn the_ingesters_login_looks_up_ingest_keys_and_sees_no_other() {
    let world = world();
    let ingest = world.cli.json(&["key", "create-ingest", "--project", "web"]);
    let login = Login::new(&world.database, "assay_ingester");
    let as_ingester = Database::connect(&login.url(), 1).unwrap();
    let hash_of = |key: &serde_json::Value| hash(key["key"].as_str().unwrap().as_bytes());
    let key_check = as_ingester.ingest_key(&hash_of(&ingest)).unwrap().unwrap();
    assert_eq!(key_check.id.to_string(), ingest["id"].as_str().unwrap());
    assert_eq!(as_ingester.ingest_key(&hash(world.key.as_bytes())).unwrap(), None);
    let upload = Upload {
        key: key_check.id,
        project: key_check.project,
        at: Timestamp::from_unix_ms(1_795_000_000_000),
        run_id: RunId(key_check.id.0),
        run_number: 1,
        shard_id: RunId(key_check.id.0),
        effect: Effect::Added,
        bytes: 1,
        files: 1,
        client: None,
        sender: None,
    };
    as_ingester.record_upload(&upload).unwrap();
    // It writes the decision and no other column. Of an upload it reads only the columns that identify it.
    assert!(login.is_allowed("UPDATE upload SET decision = NULL"));
    assert!(login.is_allowed("SELECT at, id, run_number, shard_id, effect, decision FROM upload"));
    for column in [
        "project_id",
        "at",
        "id",
        "key_id",
        "run_id",
        "bytes",
        "run_number",
        "files",
        "effect",
        "client",
        "shard_id",
    ] {
        let sql = format!("UPDATE upload SET {column} = NULL");
        assert!(!login.is_allowed(&sql), "{sql}");
    }
    let used = format!("SELECT last_used_on FROM api_key WHERE id = '{}'", key_check.id);
    assert_eq!(world.database.text(&used).as_deref(), Some("2026-11-18"));

    for sql in WRITES {
        let expected = IMPORTS.contains(&sql) || sql.starts_with("UPDATE run_pack");
        assert_eq!(login.is_allowed(sql), expected, "{sql}");
    }
    for sql in [
        "SELECT hash FROM api_key",
        "SELECT 1 FROM api_key",
        "UPDATE api_key SET last_used_on = now()",
        "DELETE FROM upload",
        "SELECT * FROM upload",
        "SELECT key_id FROM upload",
        "SELECT client FROM upload",
    ] {
        assert!(!login.is_allowed(sql), "{sql}");
    }
    assert!(login.is_allowed("SELECT assay_ingest_key('')"));
    for group in ["assay_server", "assay_importer"] {
        let other = format!("SELECT has_function_privilege('{group}', 'assay_ingest_key(bytea)', 'EXECUTE')");
        assert_eq!(world.database.text(&other).as_deref(), Some("false"), "{group}");
    }
    let report = world.folder.path().join("r.xml");
    fs::write(
        &report,
        "<testsuite><testcase classname=\"a\" name=\"adds\" time=\"0.1\"/></testsuite>",
    )
    .unwrap();
    let report = report.display().to_string();
    let imported = Cli::new(login.url()).json(&["import", "--project", "web", "--no-ci", &report]);
    assert_eq!(imported["counts"]["passed"], 1);
}

#[test]
fn the_notifiers_login_sends_messages_and_sees_no_key() {
    let world = world();
    let login = Login::new(&world.database, "assay_notifier");
    world
        .cli
        .json(&["project", "set", "web", "--chat-events", "run_failed,test_flaky"]);
    world.import_cases(
        5,
        &[("adds", true), ("removes", false)],
        &["--branch", "main", "--run-key", "c"],
    );
    let messages = Cli::new(login.url()).notify_once();
    assert_contains(&messages, "1 test broke");
    for sql in WRITES {
        assert!(!login.is_allowed(sql), "{sql}");
    }
    for sql in [
        "SELECT hash FROM api_key",
        "SELECT 1 FROM upload",
        "INSERT INTO edge SELECT * FROM edge LIMIT 0",
        "UPDATE edge SET event = 'run_failed'",
        "UPDATE project SET chat_events = NULL",
    ] {
        assert!(!login.is_allowed(sql), "{sql}");
    }
    // No other login writes messages.
    for group in ["assay_server", "assay_importer", "assay_ingester"] {
        let other = Login::new(&world.database, group);
        for sql in [
            "SELECT 1 FROM message",
            "SELECT settled FROM edge",
            "UPDATE project SET chat_served = NULL",
        ] {
            assert!(!other.is_allowed(sql), "{group}: {sql}");
        }
    }
}

#[test]
fn reports_over_http_are_stored_by_the_ingesters_login() {
    let world = world();
    let key = world.cli.json(&["key", "create-ingest", "--project", "web"]);
    let (reader, ingester) = (
        Login::new(&world.database, "assay_server"),
        Login::new(&world.database, "assay_ingester"),
    );
    let ingester_url = ingester.url();
    let settings = [("ASSAY_INGEST_DATABASE_URL", ingester_url.as_str())];
    let server = Server::start_with_ingest(&reader.url(), &settings);
    let authorization = format!("Bearer {}", key["key"].as_str().unwrap());
    let report = b"<testsuite><testcase classname=\"a\" name=\"adds\" time=\"0.1\"><failure>no</failure></testcase></testsuite>";
    let path = "/ingest/v1/reports?branch=main&runKey=over-http";
    let headers = [
        ("Authorization", authorization.as_str()),
        ("Content-Type", "text/xml"),
    ];
    let answer = server.ingest().post(path, &headers, report);
    assert_eq!(answer.status, 201, "{}", answer.text());
    let run = answer.json()["runId"].clone();
    let runs = format!("/api/v1/projects/{}/runs?days=90", world.project);
    let answer = server.client().get(&runs, Some(&world.key));
    assert_eq!((answer.status, &answer.json()["total"]), (200, &3.into()));
    // The decision of a gate is stored by the same login, and shown by the server's.
    let decision = serde_json::json!({"runId": run, "outcome": "blocked", "failed": 1}).to_string();
    let answer = server
        .ingest()
        .post("/ingest/v1/decisions", &headers[..1], decision.as_bytes());
    assert_eq!(answer.status, 201, "{}", answer.text());
    let pages = Pages::over(&reader.url(), &world.key, &world.project);
    let page = pages.run(run.as_str().unwrap(), "");
    assert_contains(
        &page,
        "excused 0 of 1 failed test of the run and did not let it pass",
    );
    drop(pages);
    let connected = format!(
        "SELECT count(*) > 0 FROM pg_stat_activity WHERE usename = '{}'",
        ingester.name
    );
    assert_eq!(world.database.text(&connected).as_deref(), Some("true"));
    assert!(!server.log().contains("permission denied"), "{}", server.log());
    drop(server);
}

#[test]
fn a_login_that_may_not_create_roles_gets_the_command_to_run() {
    let database = TestDatabase::unmigrated();
    let name = name(&database);
    database.execute(&format!(
        "CREATE ROLE {name} LOGIN; GRANT CREATE, USAGE ON SCHEMA public TO {name}"
    ));
    let (head, _) = database.url().split_once("&user=").unwrap();
    let cli = Cli::new(format!("{head}&user={name}"));
    let pending = assay_repository::pending(database.url()).unwrap();
    let migrated = cli.json(&["migrate"]);
    assert_eq!(
        migrated["applied"].as_array().unwrap().len(),
        pending.len(),
        "{migrated}"
    );
    // The roles exist in this cluster, so the owner of the tables can grant everything except rights of other owners.
    if let Some(todo) = migrated["rolesToDo"].as_str() {
        database.execute(todo);
    }
    assert!(cli.json(&["migrate"])["applied"].as_array().unwrap().is_empty());
    let granted = "SELECT has_table_privilege('assay_server', 'result', 'SELECT')";
    assert_eq!(database.text(granted).as_deref(), Some("true"));
    assert!(
        cli.run(&["org", "create", "Shop", "--plan", "pro"])
            .status
            .success()
    );
    database.execute(&format!("DROP OWNED BY {name} CASCADE; DROP ROLE {name}"));
}

/// The logins of the deployment in a database. Dropping the value drops them.
struct OwnLogins<'a> {
    logins: Logins,
    database: &'a TestDatabase,
}

impl<'a> OwnLogins<'a> {
    fn new(database: &'a TestDatabase) -> Self {
        let logins = Logins::new(database.url(), &name(database));
        Self { logins, database }
    }
}

impl Drop for OwnLogins<'_> {
    fn drop(&mut self) {
        self.logins.drop_in(self.database);
    }
}

#[test]
fn the_logins_of_the_deployment_run_every_program() {
    let database = TestDatabase::unmigrated();
    let logins = OwnLogins::new(&database);
    let [owner, web, ci, ingest, notify, backup, _] = logins.logins.urls();
    let administration = Cli::new(owner);
    let migrated = administration.json(&["migrate"]);
    assert!(migrated["rolesToDo"].is_null(), "{migrated}");
    administration.json(&["org", "create", "Shop", "--plan", "pro"]);
    let project = administration.json(&["project", "create", "--org", "Shop", "web"]);
    let key = administration.json(&["key", "create", "--org", "Shop", "--days", "90"]);

    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("r.xml").display().to_string();
    fs::write(
        &report,
        "<testsuite><testcase classname=\"a\" name=\"adds\" time=\"0.1\"/></testsuite>",
    )
    .unwrap();
    let import = ["import", "--project", "web", "--no-ci", report.as_str()];
    assert_eq!(Cli::new(ci.clone()).json(&import)["counts"]["passed"], 1);

    let server = Server::start_with(&web, &[]);
    let runs = format!("/api/v1/projects/{}/runs", project["id"].as_str().unwrap());
    let answer = server.client().get(&runs, key["key"].as_str());
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["total"], 1);

    // A separate process accepts reports. It has no other database setting.
    let ingest_key = administration.json(&["key", "create-ingest", "--project", "web"]);
    let settings = [
        ("ASSAY_LISTEN", "off"),
        ("ASSAY_INGEST_DATABASE_URL", ingest.as_str()),
    ];
    let reports = Server::start_with_ingest("", &settings);
    let authorization = format!("Bearer {}", ingest_key["key"].as_str().unwrap());
    let sent = reports.ingest().post(
        "/ingest/v1/reports?branch=main&runKey=sent",
        &[("Authorization", &authorization)],
        &fs::read(&report).unwrap(),
    );
    assert_eq!(sent.status, 201, "{}", sent.text());
    let answer = server.client().get(&runs, key["key"].as_str());
    assert_eq!(answer.json()["total"], 2);
    for log in [server.log(), reports.log()] {
        assert!(!log.contains("permission denied"), "{log}");
    }
    drop((server, reports));
    administration.json(&["project", "set", "web", "--chat-events", "run_failed"]);
    Cli::new(notify.clone()).notify_once();
    for cli in [
        administration,
        Cli::new(web.clone()),
        Cli::new(ci),
        Cli::new(ingest),
        Cli::new(notify.clone()),
        Cli::new(backup),
    ] {
        let doctor = cli.run(&["doctor"]);
        assert!(
            doctor.status.success(),
            "{}",
            String::from_utf8_lossy(&doctor.stdout)
        );
    }
    // The server's login may not change the data.
    assert!(!Cli::new(web).run(&["org", "create", "Other"]).status.success());
}

#[test]
fn the_deployment_files_run_read_and_ingest_in_separate_processes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let compose = text("compose.yaml");
    let service = |name: &str| {
        let (_, rest) = compose.split_once(&format!("\n  {name}:")).unwrap();
        rest.split("\n\n").next().unwrap().to_owned()
    };
    let (server, ingest) = (service("server"), service("ingest"));
    assert!(server.contains("ASSAY_DATABASE_URL: postgresql://assay_web@") && !server.contains("INGEST"));
    assert!(server.contains("ASSAY_FRONT_LISTEN: 0.0.0.0:8082") && !ingest.contains("FRONT"));
    assert!(ingest.contains("ASSAY_INGEST_DATABASE_URL: postgresql://assay_uploads@"));
    assert!(ingest.contains("ASSAY_LISTEN: \"off\"") && !ingest.contains(" ASSAY_DATABASE_URL"));
    let unit = text("assay-ingest.service");
    assert!(unit.contains("EnvironmentFile=/etc/assay/ingest.env\n") && unit.contains("ASSAY_LISTEN=off "));
    // Every service has a memory limit, and no program connects as a superuser.
    for unit in [
        "assay-server.service",
        "assay-ingest.service",
        "assay-prune.service",
    ] {
        assert!(text(unit).contains("\nMemoryMax="), "{unit}");
    }
    for name in [
        "postgres", "admin", "import", "migrate", "server", "ingest", "proxy",
    ] {
        let service = service(name);
        assert!(
            service.contains("mem_limit: ") || service.contains("<<: *"),
            "{name}"
        );
    }
    assert!(!compose.contains("postgresql://postgres"), "{compose}");
    // Both units have the same hardening.
    let hardening = |name: &str| text(name).split_once("\nNoNewPrivileges").unwrap().1.to_owned();
    assert_eq!(
        hardening("assay-ingest.service"),
        hardening("assay-server.service")
    );
}
