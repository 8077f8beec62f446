//! A key's text is never written: neither to the most detailed log nor to an answer, a metric, or Postgres.

use std::{
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    process::Command,
    time::{Duration, Instant},
};

use assay_testkit::{
    Response, Server,
    wire::{self, escape},
};

use crate::{
    misplaced::{escape_all, requests},
    world::World,
};

/// A password that programs receive and must not print.
const PASSWORD: &str = "hunter2hunter2";

/// The forms in which a key could be written: as text, as the bytes of a debug print, with every byte escaped.
fn written_forms(key: &str) -> Vec<String> {
    // The part after the twelve characters that `assay-admin key list` shows.
    let secret = &key[12..36];
    let bytes = format!("{:?}", secret.as_bytes());
    vec![
        secret.to_owned(),
        bytes.trim_matches(['[', ']']).to_owned(),
        escape_all(secret),
    ]
}

/// Fails if one of the texts contains a part of one of the keys.
fn assert_no_secret(world: &World, what: &str, text: &str) {
    for key in world.keys.all() {
        for trace in written_forms(key) {
            if let Some(place) = text.find(&trace) {
                let around: String = text[..place].chars().rev().take(200).collect();
                panic!(
                    "{what} contains a key, after: {}",
                    around.chars().rev().collect::<String>()
                );
            }
        }
    }
    assert!(!text.contains(PASSWORD), "{what} contains a password");
}

fn send_all(world: &World, what: &str) {
    for key in world.keys.all() {
        for request in requests(key, &world.ours.project) {
            let answer = wire::send(world.address, request.as_bytes(), false);
            let Some(answer) = answer else { continue };
            let is_where_it_belongs = |line: &str| {
                line.to_ascii_lowercase().starts_with("authorization: bearer") && line.ends_with(key)
            };
            let in_a_bad_place = !request.split("\r\n").any(is_where_it_belongs);
            assert!(
                !in_a_bad_place || answer.status != 200,
                "a key was accepted from {request:?}"
            );
            // A request id that contains a key is not returned either.
            assert_no_secret(
                world,
                &format!("{what}: the answer to {request:?}"),
                &answer.summary(),
            );
        }
    }
}

#[test]
fn a_key_is_written_nowhere() {
    let settings = [
        ("ASSAY_RATE_LIMIT", "0"),
        ("RUST_LOG", "trace"),
        ("RUST_BACKTRACE", "full"),
    ];
    let world = World::with(&settings);
    let mut postgres = PostgresLog::starting_now(&world);
    send_all(&world, "healthy");
    assert!(world.server.log().len() > 10_000, "the log is not at its loudest");
    for path in ["/metrics", "/docs", "/openapi.json", "/healthz", "/readyz"] {
        assert_no_secret(&world, path, &world.server.admin().get(path, None).text());
    }
    // In the operator's configuration, Postgres logs no parameters, even for failures.
    assert_no_secret(&world, "the log of Postgres", &postgres.read());

    // The most detailed log contains parameters: only the hash of a key.
    world.log_statements();
    for key in world.keys.all() {
        for path in [
            "/projects",
            "/projects?key=KEY",
            "/projects/KEY/runs?access_token=KEY&cursor=KEY",
        ] {
            let path = format!("/api/v1{}", path.replace("KEY", key));
            wire::get(world.address, &path, key, &[]);
        }
    }
    let loud = postgres.read();
    assert!(loud.contains("api_key"), "Postgres does not log its statements");
    assert_no_secret(&world, "the log of Postgres at its loudest", &loud);

    // A store that fails at the look-up of the key.
    world.database.execute("ALTER TABLE api_key RENAME TO gone");
    // A key that was just looked up is cached for a moment.
    let began = Instant::now();
    while send_any_request(&world).status != 500 {
        assert!(began.elapsed() < Duration::from_secs(60), "nothing fails");
    }
    send_all(&world, "failing");
    world.database.execute("ALTER TABLE gone RENAME TO api_key");
    assert_no_secret(&world, "the log of Postgres beside failures", &postgres.read());
    let log = world.server.log();
    assert!(log.contains("ERROR"), "no failure was logged");
    assert_no_secret(&world, "the server's log", &log);
}

/// A crash ends the process with a signal. Its last output is checked.
#[test]
fn a_crash_report_has_no_key() {
    let world = World::with(&[
        ("ASSAY_RATE_LIMIT", "0"),
        ("RUST_LOG", "trace"),
        ("RUST_BACKTRACE", "full"),
    ]);
    for _ in 0..50 {
        send_any_request(&world);
    }
    let aborted = Command::new("kill")
        .args(["-s", "ABRT", &world.server.pid().to_string()])
        .status()
        .unwrap();
    assert!(aborted.success());
    let answers = std::iter::repeat_with(|| world.server.client().try_get("/api/v1/projects", &[]))
        .take_while(Result::is_ok)
        .count();
    assert_no_secret(
        &world,
        &format!("the log after {answers} more answers"),
        &world.server.log(),
    );
}

/// Values from the environment are not printed, and no program accepts a key as an argument.
#[test]
fn passwords_and_keys_stay_with_the_programs() {
    let world = World::new();
    let database = with_password(world.database.url());
    let server = Server::start_with(
        &database,
        &[
            ("RUST_LOG", "trace"),
            ("ASSAY_REDIS_URL", &format!("redis://:{PASSWORD}@127.0.0.1:1/")),
        ],
    );
    for _ in 0..5 {
        server.client().get("/api/v1/projects", Some(&world.keys.good));
    }
    assert_no_secret(&world, "the server's log", &server.log());
    let arguments = fs::read_to_string(format!("/proc/{}/cmdline", server.pid())).unwrap_or_default();
    assert_no_secret(&world, "the server's arguments", &arguments);
    for path in ["/metrics", "/readyz", "/healthz"] {
        assert_no_secret(&world, path, &server.admin().get(path, None).text());
    }

    let output = world
        .cli
        .command(&["key", "create", "--org", "Ours", "--days", "30", "--json"])
        .env("RUST_LOG", "trace")
        .output()
        .unwrap();
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let key = shown["key"].as_str().unwrap();
    assert!(
        !String::from_utf8_lossy(&output.stderr).contains(&key[12..]),
        "the log of `assay-admin key create` contains the key"
    );
    for command in [
        ["key", "list", "--org", "Ours"].as_slice(),
        &["org", "list"],
        &["project", "list", "--org", "Ours"],
    ] {
        for form in [&[][..], &["--json"]] {
            let output = world
                .cli
                .command(&[command, form].concat())
                .env("RUST_LOG", "trace")
                .output()
                .unwrap();
            let printed = [output.stdout, output.stderr]
                .map(|text| String::from_utf8_lossy(&text).into_owned())
                .concat();
            assert_no_secret(&world, &format!("assay {command:?}"), &printed);
            assert!(!printed.contains(&key[12..]), "assay {command:?} prints a key");
        }
    }
    let dump = world
        .database
        .texts("SELECT row_to_json(api_key)::text FROM api_key");
    assert_no_secret(&world, "the table of keys", &format!("{dump:?}"));
    let unreachable = with_password("postgresql://nobody@127.0.0.1:1/none");
    let failed = world
        .cli
        .command(&["org", "list"])
        .env("ASSAY_DATABASE_URL", &unreachable)
        .output()
        .unwrap();
    assert!(!failed.status.success());
    assert_no_secret(
        &world,
        "a failed connection",
        &String::from_utf8_lossy(&failed.stderr),
    );
}

fn send_any_request(world: &World) -> Response {
    let project = escape(&world.ours.project);
    wire::get(
        world.address,
        &format!("/api/v1/projects/{project}/branches"),
        &world.keys.good,
        &[],
    )
}

/// The connection string with a password, which the tests' Postgres ignores.
fn with_password(url: &str) -> String {
    if url.starts_with("postgres") {
        let separator = if url.contains('?') { '&' } else { '?' };
        format!("{url}{separator}password={PASSWORD}")
    } else {
        format!("{url} password={PASSWORD}")
    }
}

/// The cluster's log since a given length.
struct PostgresLog(File);

impl PostgresLog {
    fn starting_now(world: &World) -> Self {
        let mut file = File::open(world.postgres_log()).unwrap();
        file.seek(SeekFrom::End(0)).unwrap();
        Self(file)
    }

    fn read(&mut self) -> String {
        let mut bytes = Vec::new();
        self.0.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
