//! Uploads that wait: for their turn, for memory, for disk space, and for the server's end.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    thread,
    time::Duration,
};

use assay_domain::ingest::IngestTerms;
use assay_testkit::{assert_contains, text, wait_until};
use diesel::{PgConnection, connection::SimpleConnection as _};

use crate::{
    everything,
    ingest::{FAILS, IngestServer, PASSES, assert_refused, code, key_for},
};

/// Uploads with a connection to the database that wait for the project's lock.
const AT_THE_LOCK: &str = "SELECT count(*)::text FROM pg_stat_activity \
     WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%FOR NO KEY UPDATE%'";

/// Holds the project's lock until the connection is dropped or rolls back.
fn lock(ingest: &IngestServer) -> PgConnection {
    let mut connection = ingest.database.connection();
    let sql = format!(
        "BEGIN; SELECT FROM project WHERE id = '{}' FOR NO KEY UPDATE",
        ingest.project
    );
    connection.batch_execute(&sql).unwrap();
    connection
}

fn release(mut lock: PgConnection) {
    lock.batch_execute("ROLLBACK").unwrap();
}

fn wait_for_metric(ingest: &IngestServer, sample: &str) {
    wait_until(sample, || {
        let metrics = ingest.server.admin().get("/metrics", None).text();
        metrics.lines().any(|line| line == sample)
    });
}

fn wait_for_waiting_uploads(ingest: &IngestServer, uploads: usize) {
    wait_for_metric(ingest, &format!("assay_ingest_uploads_waiting {uploads}"));
}

/// The head and the body of an upload of this run.
fn request(key: &str, run_key: &str) -> Vec<u8> {
    let head = format!(
        "POST /ingest/v1/reports?branch=main&runKey={run_key}&commit={run_key} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: text/xml\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        PASSES.len()
    );
    [head.as_bytes(), PASSES.as_bytes()].concat()
}

fn send(ingest: &IngestServer, key: &str, run_key: &str) -> TcpStream {
    let mut stream = TcpStream::connect(ingest.server.ingest().address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(&request(key, run_key)).unwrap();
    stream
}

/// The answer to an upload: its status and its full text.
fn answer(mut stream: TcpStream) -> (String, String) {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    (answer.get(9..12).unwrap_or_default().to_owned(), answer)
}

#[test]
fn uploads_of_one_project_wait_without_a_connection_and_delay_no_other_project() {
    let ingest = IngestServer::with(&[("ASSAY_INGEST_WAITING", "7"), ("ASSAY_INGEST_WRITERS", "2")]);
    let other = ingest.cli.json(&["project", "create", "--org", "Shop", "other"]);
    let other = key_for(
        &ingest.database,
        text(&other["id"]).parse().unwrap(),
        &IngestTerms::default(),
    );
    let project_lock = lock(&ingest);
    let mut waiting = Vec::new();
    for number in 1..=4 {
        waiting.push(send(&ingest, &ingest.key, &format!("build-{number}")));
        wait_for_waiting_uploads(&ingest, number);
    }
    let at_the_lock = || ingest.database.text(AT_THE_LOCK).as_deref() == Some("1");
    // An upload already counts as waiting before it reaches the lock.
    wait_until("the first upload has its turn", at_the_lock);

    // The key has half of the places: a fifth upload is refused immediately, with the time to wait.
    let (status, refused) = answer(send(&ingest, &ingest.key, "build-5"));
    assert_eq!(status, "503", "{refused}");
    assert_contains(&refused, "\"code\":\"busy\"");
    assert!(refused.to_lowercase().contains("\r\nretry-after: "), "{refused}");
    let (status, stored) = answer(send(&ingest, &other, "build-1"));
    assert_eq!(status, "201", "{stored}");
    assert!(at_the_lock(), "the other three use no connection");

    // A client that disconnects loses its turn.
    drop(waiting.remove(2));
    wait_for_waiting_uploads(&ingest, 3);
    waiting.push(send(&ingest, &ingest.key, "build-6"));
    wait_for_waiting_uploads(&ingest, 4);
    release(project_lock);
    for stream in waiting {
        let (status, answer) = answer(stream);
        assert_eq!(status, "201", "{answer}");
    }
    let runs = "SELECT string_agg(commit_sha, ' ' ORDER BY number) FROM run \
         WHERE project_id = (SELECT id FROM project WHERE name = 'web')";
    // In order of arrival.
    assert_eq!(
        ingest.database.text(runs).as_deref(),
        Some("build-1 build-2 build-4 build-6")
    );
}

#[test]
fn a_report_is_judged_although_its_client_disconnects_while_it_is_stored() {
    let ingest = IngestServer::new();
    let project_lock = lock(&ingest);
    let begun = send(&ingest, &ingest.key, "build-1");
    wait_until("the upload has its turn", || {
        ingest.database.text(AT_THE_LOCK).as_deref() == Some("1")
    });
    drop(begun);
    wait_for_waiting_uploads(&ingest, 0);
    release(project_lock);
    wait_until("the project is judged", || {
        let judged = "SELECT coalesce(judged = observed, false)::text FROM project WHERE name = 'web'";
        ingest.database.text(judged).as_deref() == Some("true")
    });
    let runs = ingest.database.text("SELECT count(*) FROM run");
    assert_eq!(runs.as_deref(), Some("1"));
}

#[test]
fn an_upload_with_too_long_a_queue_gets_a_retry_time() {
    let ingest = IngestServer::with(&[("ASSAY_INGEST_TURN_WITHIN", "1")]);
    // One upload takes some seconds, which determines the estimate for the next ones.
    let project_lock = lock(&ingest);
    let slow = send(&ingest, &ingest.key, "build-1");
    wait_for_waiting_uploads(&ingest, 1);
    thread::sleep(Duration::from_secs(3));
    release(project_lock);
    assert_eq!(answer(slow).0, "201");

    let project_lock = lock(&ingest);
    let first = send(&ingest, &ingest.key, "build-2");
    wait_for_waiting_uploads(&ingest, 1);
    let (status, refused) = answer(send(&ingest, &ingest.key, "build-3"));
    assert_eq!(status, "503", "{refused}");
    // The message of an upload that did not wait.
    assert_contains(&refused, "Too many uploads into this project wait for their turn");
    let after = refused.to_lowercase();
    let after = after.split("\r\nretry-after: ").nth(1).unwrap();
    let after: u64 = after.split("\r\n").next().unwrap().parse().unwrap();
    assert!((3..=60).contains(&after), "{refused}");
    release(project_lock);
    assert_eq!(answer(first).0, "201");
}

#[test]
fn shutdown_finishes_the_active_uploads_and_rejects_the_waiting_ones() {
    let mut ingest = IngestServer::new();
    let project_lock = lock(&ingest);
    let begun = send(&ingest, &ingest.key, "build-1");
    wait_until("the first upload has its turn", || {
        ingest.database.text(AT_THE_LOCK).as_deref() == Some("1")
    });
    let waiting = send(&ingest, &ingest.key, "build-2");
    wait_for_waiting_uploads(&ingest, 2);
    ingest.server.signal("TERM");
    let (status, refused) = answer(waiting);
    assert_eq!(status, "503", "{refused}");
    assert!(refused.contains("stopping") && refused.to_lowercase().contains("\r\nretry-after: "));
    release(project_lock);
    let (status, stored) = answer(begun);
    assert_eq!(status, "201", "{stored}");
    assert!(ingest.server.ended().success(), "{}", ingest.server.log());
    let runs = "SELECT string_agg(commit_sha, ' ') FROM run";
    assert_eq!(ingest.database.text(runs).as_deref(), Some("build-1"));
}

#[test]
fn an_upload_waits_for_the_memory_that_others_hold() {
    // A key may hold half of it.
    let ingest = IngestServer::with(&[("ASSAY_INGEST_MEMORY_MIB", "64")]);
    let project_lock = lock(&ingest);
    // What is kept of it until it is stored takes at least 10 MiB.
    let text = "expected 3, got 4 in a line of some length\n".repeat(500);
    let case = |number| {
        format!("<testcase name=\"pays {number}\"><failure message=\"no\">{text}</failure></testcase>")
    };
    let cases: String = (0..300).map(case).collect();
    let report = format!("<testsuite>{cases}</testsuite>");
    // This one reserves 25 MiB before it is read.
    let padding = format!("{}<!--{}-->", PASSES, " ".repeat(12 << 20));
    let send = |fields: &str, report: &str| {
        let path = format!("/ingest/v1/reports?branch=main&{fields}");
        ingest.post(
            &path,
            &ingest.key,
            &[("Content-Type", "text/xml")],
            report.as_bytes(),
        )
    };
    thread::scope(|scope| {
        let first = scope.spawn(|| send("runKey=first", &report));
        wait_for_waiting_uploads(&ingest, 1);
        // A dry run needs no turn.
        let second = scope.spawn(|| send("runKey=second&dryRun=true", &padding));
        thread::sleep(Duration::from_secs(3));
        assert!(!second.is_finished());
        release(project_lock);
        for (sent, status) in [(first, 201), (second, 200)] {
            let answer = sent.join().unwrap();
            assert_eq!(answer.status, status, "{}", answer.text());
        }
    });
    wait_for_metric(&ingest, "assay_ingest_memory_reserved_bytes 0");
}

#[test]
fn an_upload_is_stored_once_the_disk_takes_its_body() {
    let folder = tempfile::tempdir().unwrap();
    let bodies = folder.path().join("bodies");
    let ingest = IngestServer::with(&[("TMPDIR", bodies.to_str().unwrap())]);
    let send = || ingest.send(&ingest.key, &[("runKey", "b")], &[("r.xml", PASSES.as_bytes())]);
    let refused = send();
    assert_refused(&refused, 503, "busy");
    assert!(refused.header("retry-after").is_some());
    // The cause is in the log, but not in the answer.
    assert!(ingest.server.log().contains("No such file or directory"));
    assert!(!refused.text().contains("bodies"), "{}", refused.text());
    fs::create_dir(&bodies).unwrap();
    assert_eq!(send().status, 201);
    assert_eq!(fs::read_dir(&bodies).unwrap().count(), 0);
}

#[test]
fn a_full_disk_of_postgres_and_a_right_that_its_login_lacks_are_told_apart() {
    // As Postgres fails, with its code and its text, in a statement that writes and in one that reads.
    let full = "could not extend file \"base/5/16397\": No space left on device";
    for (sqlstate, message, written, read_status, logged) in [
        ("53100", full, (503, "busy", "no space or memory left"), 503, full),
        (
            "42501",
            "permission denied for table run",
            (500, "not_permitted", "assay-admin migrate"),
            500,
            "SELECT assay_grant_roles();",
        ),
    ] {
        let ingest = IngestServer::new();
        let send = |key: &str| ingest.send(&ingest.key, &[("runKey", key)], &[("r.xml", FAILS.as_bytes())]);
        let errors = format!("/api/v1/projects/{}/errors", ingest.project);
        let read = || ingest.server.client().get(&errors, Some(&ingest.read_key));
        assert_eq!(send("before").status, 201);
        ingest.database.execute(&format!(
            "CREATE FUNCTION fails() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = \
             '{sqlstate}', MESSAGE = '{message}'; END $$; \
             CREATE FUNCTION fails_to_write() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM fails(); END $$; \
             CREATE TRIGGER fails BEFORE INSERT ON part FOR EACH ROW EXECUTE FUNCTION fails_to_write()"
        ));
        let answer = send("after");
        let (status, word, part) = written;
        assert_eq!(
            (answer.status, code(&answer).as_str()),
            (status, word),
            "{}",
            answer.text()
        );
        assert!(answer.text().contains(part), "{}", answer.text());
        assert_eq!(answer.header("retry-after").is_some(), status == 503);
        ingest.database.execute(
            "ALTER TABLE signature RENAME TO stored; CREATE VIEW signature AS SELECT * FROM stored WHERE fails(); \
             GRANT SELECT ON signature TO PUBLIC",
        );
        let answer = read();
        assert_eq!(answer.status, read_status, "{}", answer.text());
        assert_eq!(answer.header("retry-after").is_some(), read_status == 503);
        ingest.database.execute(
            "DROP VIEW signature; ALTER TABLE stored RENAME TO signature; DROP TRIGGER fails ON part; \
             DROP FUNCTION fails_to_write, fails",
        );
        assert_eq!((send("after").status, read().status), (201, 200));
        let log = ingest.server.log();
        assert_contains(&log, logged);
    }
}

#[test]
fn the_read_api_gives_equal_answers_with_and_without_the_ingest_listener() {
    let ingest = IngestServer::new();
    for (run_key, report) in [("a", PASSES), ("b", FAILS), ("c", PASSES)] {
        let sent = ingest.send(
            &ingest.key,
            &[("branch", "main"), ("runKey", run_key)],
            &[("r.xml", report.as_bytes())],
        );
        assert_eq!(sent.status, 201, "{}", sent.text());
    }
    let without = assay_testkit::Server::start_with(ingest.database.url(), &[("ASSAY_RATE_LIMIT", "0")]);
    let [with, without] = [ingest.server.client(), without.client()];
    let all = |client| everything::of(client, &ingest.read_key, &ingest.project);
    assert_eq!(all(with), all(without));
    // This includes errors and headers.
    let project = format!("/api/v1/projects/{}", ingest.project);
    for (path, key) in [
        ("/api/v1/projects".to_owned(), Some(ingest.read_key.as_str())),
        ("/api/v1/projects".to_owned(), None),
        ("/api/v1/projects".to_owned(), Some(ingest.key.as_str())),
        ("/api/v1/projects".to_owned(), Some("svc_nonsense")),
        (format!("{project}/runs?days=x"), Some(&ingest.read_key)),
        (format!("{project}/runs/nothing"), Some(&ingest.read_key)),
        ("/ingest/v1/key".to_owned(), Some(&ingest.key)),
        ("/".to_owned(), None),
    ] {
        let of = |client: &assay_testkit::Client| {
            let mut answer = client.get(&path, key);
            answer
                .headers
                .retain(|(name, _)| name != "date" && name != "x-request-id");
            answer.headers.sort();
            (answer.status, answer.headers.clone(), answer.text())
        };
        assert_eq!(of(with), of(without), "{path}");
    }
    let authorization = format!("Bearer {}", ingest.read_key);
    for client in [with, without] {
        let answer = client.post("/api/v1/projects", &[("Authorization", &authorization)], b"x");
        assert_eq!(answer.status, 405, "{}", answer.text());
    }
}

/// The peak memory of the server in MiB.
fn peak(ingest: &IngestServer) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", ingest.server.pid())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1_024
}

#[test]
fn many_large_uploads_at_once_stay_within_the_memory_for_parsing() {
    // A sixteenth of the default memory. Each upload reserves a third of it.
    const MEMORY_MIB: u64 = 64;
    const UPLOADS: usize = 40;
    let memory = MEMORY_MIB.to_string();
    let ingest = IngestServer::with(&[("ASSAY_INGEST_MEMORY_MIB", memory.as_str())]);
    let text = "expected 3, got 4 in a line of some length\n".repeat(5_000);
    let case = |number| {
        format!(
            "<testcase classname=\"cart\" name=\"pays {number}\"><failure message=\"no\">{text}</failure></testcase>"
        )
    };
    let cases: String = (0..20).map(case).collect();
    let report = format!("<testsuite>{cases}</testsuite>");
    assert!((4 << 20..5 << 20).contains(&report.len()), "{}", report.len());
    let send = || {
        let answer = ingest.send(
            &ingest.key,
            &[("dryRun", "true")],
            &[("r.xml", report.as_bytes())],
        );
        assert!(answer.status == 200 || answer.status == 503, "{}", answer.text());
        answer.status == 200
    };
    assert!(send());
    let before = peak(&ingest);
    thread::scope(|scope| {
        for _ in 0..UPLOADS {
            scope.spawn(|| wait_until("every upload gets its memory", send));
        }
    });
    let grown = peak(&ingest) - before;
    println!(
        "{UPLOADS} uploads of {} MiB took {grown} MiB beside {before} MiB",
        report.len() >> 20
    );
    assert!(grown <= MEMORY_MIB + 150, "{grown} MiB beside {before} MiB");
}
