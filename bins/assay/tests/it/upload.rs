//! `assay upload`, with a listener that records the requests.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    process::{Command, Output, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use assay_testkit::{Cli, assert_contains, stderr_text};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    junit,
    pty::{Session, Streams},
    receiver::{Receiver, error, lost, reply, stored},
};

pub(crate) const KEY: &str = "svc_0123456789abcdefghijABCDEFGHIJ01AAAAAA";

/// A folder with a report, and `assay` in it without a database.
pub(crate) struct Job {
    pub(crate) folder: TempDir,
    pub(crate) url: String,
}

impl Job {
    pub(crate) fn new(url: &str) -> Self {
        let job = Self {
            folder: tempfile::tempdir().unwrap(),
            url: url.to_owned(),
        };
        job.write("out/junit.xml", &report());
        job
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        // No database has this address, so a command that needs one fails.
        let mut command = Cli::new("postgresql://127.0.0.1:1/nowhere").command(arguments);
        command
            .current_dir(self.folder.path())
            .env("ASSAY_INGEST_URL", &self.url)
            .env("ASSAY_INGEST_KEY", KEY)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().unwrap();
        let shown = format!(
            "{}{}",
            stderr_text(&output),
            String::from_utf8_lossy(&output.stdout)
        );
        assert!(!shown.contains(KEY), "the key is shown: {shown}");
        output
    }
}

fn report() -> String {
    junit::report("2026-11-20T10:00:00Z", &[("adds", true), ("sums", false)])
}

pub(crate) fn output_text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn files_are_sent_unchanged_with_the_values_of_flags_and_variables() {
    let receiver = Receiver::start(vec![stored()]);
    let job = Job::new(&receiver.url);
    job.write("src/totals.test.ts", "");
    let root = job.folder.path().canonicalize().unwrap();
    let mut command = job.command(&[
        "upload",
        "--shard",
        "2/3",
        "--message",
        "Add\n\nall",
        "--pr",
        "7",
        "--root",
        ".",
        "out",
    ]);
    command
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_RUN_ID", "812")
        .env("GITHUB_RUN_ATTEMPT", "2")
        .env("GITHUB_JOB", "e2e")
        .env("GITHUB_REF_NAME", "main")
        .env("GITHUB_SHA", "c0ffee");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr_text(&output));

    let requests = receiver.requests();
    assert_eq!(requests.len(), 1);
    let request = &requests[0];
    assert_eq!(request.line, "POST /ingest/v1/reports HTTP/1.1");
    assert_eq!(
        request.header("authorization"),
        Some(format!("Bearer {KEY}").as_str())
    );
    assert!(request.header("user-agent").unwrap().starts_with("assay/"));
    assert_eq!(request.files(), [("out/junit.xml".to_owned(), report())]);
    for (field, value) in [
        ("shard", "2/3"),
        ("message", "Add\n\nall"),
        ("pullRequest", "7"),
        ("root", root.to_str().unwrap()),
    ] {
        assert_eq!(request.field(field).as_deref(), Some(value), "{field}");
    }
    for absent in [
        "branch", "commit", "runKey", "suite", "provider", "dryRun", "format", "project",
    ] {
        assert_eq!(request.field(absent), None, "{absent}");
    }
    let known_files = request.field("knownFiles").unwrap();
    assert!(
        known_files.lines().any(|name| name == "src/totals.test.ts"),
        "{known_files}"
    );
    let ci: Value = serde_json::from_str(&request.field("ci").unwrap()).unwrap();
    assert_eq!(ci["provider"], "github-actions");
    assert_eq!(
        (&ci["runKey"], &ci["attempt"]),
        (&"github-actions/812".into(), &2.into())
    );
    assert_eq!((&ci["attempt"], &ci["job"]), (&2.into(), &"e2e".into()));
    assert_eq!((&ci["branch"], &ci["commit"]), (&"main".into(), &"c0ffee".into()));
    assert!(
        ci["sources"]
            .as_array()
            .unwrap()
            .contains(&json!(["branch", "GITHUB_REF_NAME"])),
        "{ci}"
    );
    assert!(ci.get("pullRequest").is_none(), "{ci}");
}

#[test]
fn changes_are_printed_and_json_is_the_servers_answer() {
    let receiver = Receiver::start(vec![stored()]);
    let job = Job::new(&receiver.url);
    let output = job.run(&["upload", "out"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr_text(&output));
    let shown = output_text(&output);
    for part in [
        "Run 812 of \"storefront\" failed: 3 tests, 2 passed (1 recovered), 1 failed, 0 skipped\nrun r1\n",
        "3 verdicts changed: 1 test is broken, 2 became flaky\n",
        "broken",
        "ships",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(stderr_text(&output), "assay: warning: the branch is unknown\n");
    let printed: Value = serde_json::from_slice(&job.run(&["upload", "out", "--json"]).stdout).unwrap();
    assert_eq!(
        (&printed["runNumber"], &printed["effect"]),
        (&812.into(), &"added".into())
    );
}

#[test]
fn a_terminal_of_80_columns_shows_progress_and_whole_lines() {
    let receiver = Receiver::start(vec![error(503, "busy"), stored()]);
    let job = Job::new(&receiver.url);
    let mut command = job.command(&["upload", "out"]);
    command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let mut session = Session::start(command, 80, Streams::All);
    session.until("waiting");
    session.until("2 became flaky");
    let (status, shown) = session.end();
    assert!(status.success(), "{shown}");
    let last = shown.rsplit("Run 812").next().unwrap();
    assert!(last.lines().all(|line| line.chars().count() <= 80), "{shown}");
}

#[test]
fn a_transient_error_is_retried() {
    for first in [
        error(503, "busy"),
        error(500, "internal_error"),
        error(408, "too_slow"),
        error(429, "rate_limited"),
    ] {
        let receiver = Receiver::start(vec![first.clone(), stored()]);
        let output = Job::new(&receiver.url).run(&["upload", "out"]);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{first:?}: {}",
            stderr_text(&output)
        );
        assert_contains(&stderr_text(&output), "trying again in 1 s");
        let requests = receiver.requests();
        assert_eq!(requests.len(), 2, "{first:?}");
        assert_eq!(requests[0].body, requests[1].body);
    }
}

#[test]
fn a_retry_time_of_the_server_is_respected() {
    let receiver = Receiver::start(vec![error(429, "rate_limited").with("Retry-After: 3"), stored()]);
    let began = Instant::now();
    let output = Job::new(&receiver.url).run(&["upload", "out"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr_text(&output));
    assert!(began.elapsed() >= Duration::from_secs(3));
    // The wait is longer than the remaining time, so the command does not wait.
    let receiver = Receiver::start(vec![
        error(429, "rate_limited").with("Retry-After: 600"),
        stored(),
    ]);
    let output = Job::new(&receiver.url).run(&["upload", "out", "--retry-for", "2m"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(receiver.requests().len(), 1);
}

#[test]
fn a_refusal_exits_with_1_at_once_with_reason_and_advice() {
    for (refusal, parts) in [
        (
            error(401, "invalid_key"),
            ["(401 invalid_key)", "assay-admin key create-ingest"],
        ),
        (
            error(403, "wrong_project"),
            ["(403 wrong_project)", "omit the flag"],
        ),
        (
            error(409, "sharding_differs"),
            ["(409 sharding_differs)", "nothing was stored"],
        ),
        (
            error(500, "not_permitted"),
            ["(500 not_permitted)", "made to answer"],
        ),
        (error(413, "too_large"), ["(413 too_large)", "nothing was stored"]),
        (
            reply(
                422,
                &json!({"error": "expected a test", "code": "broken_report", "file": "out/junit.xml", "line": 3}),
            ),
            [
                "nothing was stored: out/junit.xml:3: expected a test (422 broken_report)",
                "correct it, or leave it out",
            ],
        ),
        (
            error(404, "").with_body("<html>\u{1b}[2JNot found</html>"),
            [
                "the server answered 404: <html>\\u{1b}[2JNot found</html>",
                "ASSAY_INGEST_LISTEN",
            ],
        ),
        (
            error(404, "")
                .with_body("<!DOCTYPE html><html><head>\n<title>No such\n page</title><p>Look elsewhere"),
            ["the server answered 404: No such page\n", "ASSAY_INGEST_LISTEN"],
        ),
        (
            error(405, "").with_body(""),
            [
                "the server answered 405: it gives no reason",
                "ASSAY_INGEST_LISTEN",
            ],
        ),
        // The address of another listener: an ingest key is a wrong type for the read API only.
        (
            error(401, "wrong_key_type"),
            ["is the read API, which stores no reports", "ASSAY_INGEST_LISTEN"],
        ),
        (
            error(302, "")
                .with_body("")
                .with("Location: https://sso.example.org/"),
            ["redirects to https://sso.example.org/", "nothing was stored"],
        ),
    ] {
        let receiver = Receiver::start(vec![refusal.clone()]);
        let output = Job::new(&receiver.url).run(&["upload", "out"]);
        assert_eq!(output.status.code(), Some(1), "{refusal:?}");
        assert!(output.stdout.is_empty());
        for part in parts {
            assert!(
                stderr_text(&output).contains(part),
                "{part}: {}",
                stderr_text(&output)
            );
        }
        assert_eq!(receiver.requests().len(), 1, "{refusal:?}");
    }
    let receiver = Receiver::start(vec![error(401, "wrong_key_type")]);
    let job = Job::new(&receiver.url);
    let mut command = job.command(&["upload", "out"]);
    let output = command.env("ASSAY_INGEST_KEY", "svc_ro_read").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    for part in ["(401 wrong_key_type)", "nothing was stored"] {
        assert!(
            stderr_text(&output).contains(part),
            "{part}: {}",
            stderr_text(&output)
        );
    }
}

#[test]
fn an_unreachable_server_exits_with_1_and_best_effort_makes_it_a_warning() {
    let job = Job::new("http://127.0.0.1:1");
    let gone = job.run(&["upload", "out", "--retry-for", "0"]);
    assert_eq!(gone.status.code(), Some(1));
    for part in [
        "assay: nothing was stored: http://127.0.0.1:1 does not answer",
        "-> see whether ASSAY_URL (or ASSAY_INGEST_URL, or --url) names the server",
    ] {
        assert!(
            stderr_text(&gone).contains(part),
            "{part}: {}",
            stderr_text(&gone)
        );
    }
    let warned = job.run(&["upload", "out", "--retry-for", "0", "--best-effort"]);
    assert_eq!(warned.status.code(), Some(0));
    assert!(
        stderr_text(&warned).starts_with("assay: warning: nothing was stored"),
        "{}",
        stderr_text(&warned)
    );
    let mut command = job.command(&["upload", "out", "--retry-for", "0", "--best-effort"]);
    let annotated = command.env("GITHUB_ACTIONS", "true").output().unwrap();
    assert!(
        stderr_text(&annotated).starts_with("::warning title=Assay::nothing was stored"),
        "{}",
        stderr_text(&annotated)
    );
    // The command waits at least half a second before the second attempt.
    let retried = job.run(&["upload", "out", "--retry-for", "2s"]);
    assert_contains(&stderr_text(&retried), "not sent yet");
}

#[test]
fn a_report_that_may_be_stored_is_not_called_unstored() {
    let not_judged = reply(
        503,
        &json!({"error": "The report is stored, but its verdicts are not up to date yet", "code": "busy"}),
    );
    let over_limit = error(429, "rate_limited").with("Retry-After: 600");
    for (replies, expected) in [
        (
            vec![lost()],
            "assay: it is unknown whether the report was stored; sending the report again stores it once: http://",
        ),
        (
            vec![not_judged],
            "assay: the server did not complete the upload; sending the report again stores it once: The report is stored",
        ),
        // The first attempt may have stored it, and the last one did not.
        (
            vec![lost(), over_limit.clone()],
            "assay: it is unknown whether the report was stored; sending the report again stores it once: made to answer",
        ),
        (vec![over_limit], "assay: nothing was stored: made to answer"),
    ] {
        let within = if replies.len() == 1 { "0" } else { "30s" };
        let receiver = Receiver::start(replies.clone());
        let output = Job::new(&receiver.url).run(&["upload", "--retry-for", within, "out"]);
        assert_eq!(output.status.code(), Some(1), "{replies:?}");
        assert_eq!(receiver.requests().len(), replies.len());
        assert!(
            stderr_text(&output).contains(expected),
            "{expected}: {}",
            stderr_text(&output)
        );
    }
    let receiver = Receiver::start(vec![lost()]);
    for (flags, expected) in [
        (
            ["--spool", "kept"].as_slice(),
            "assay: it is unknown whether the report was stored; the next `assay upload --spool kept` sends it: ",
        ),
        (&["--dry-run"], "assay: nothing was stored: "),
    ] {
        let arguments = [&["upload", "--retry-for", "0", "out"], flags].concat();
        let output = Job::new(&receiver.url).run(&arguments);
        assert_eq!(output.status.code(), Some(1));
        assert!(
            stderr_text(&output).contains(expected),
            "{expected}: {}",
            stderr_text(&output)
        );
    }
}

#[test]
fn wrong_usage_exits_with_2_and_sends_no_request() {
    let receiver = Receiver::start(vec![stored()]);
    let job = Job::new(&receiver.url);
    let refused = |command: &mut Command, part: &str| {
        let output = command.output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(2),
            "{command:?}: {}",
            stderr_text(&output)
        );
        assert!(
            stderr_text(&output).contains(part),
            "{part}: {}",
            stderr_text(&output)
        );
        assert!(
            !stderr_text(&output).contains("secret"),
            "{}",
            stderr_text(&output)
        );
    };
    let upload = || job.command(&["upload", "out"]);
    refused(upload().env_remove("ASSAY_INGEST_URL"), "ASSAY_URL is not set");
    refused(
        upload().env_remove("ASSAY_INGEST_KEY"),
        "ASSAY_INGEST_KEY is not set",
    );
    refused(
        upload().env("ASSAY_INGEST_KEY", " "),
        "ASSAY_INGEST_KEY is not set",
    );
    refused(
        upload().env("ASSAY_INGEST_KEY", "svc_secret\nX: 1"),
        "ASSAY_INGEST_KEY contains no key",
    );
    refused(
        upload().env("ASSAY_INGEST_URL", "http://assay.example.org"),
        "plain http://",
    );
    refused(
        upload().env("ASSAY_INGEST_URL", "https://u:secret@assay.example.org"),
        "contains a password",
    );
    refused(&mut job.command(&["upload"]), "no report was named");
    refused(
        &mut job.command(&["upload", "--check", "--dry-run", "out"]),
        "cannot be used with",
    );
    refused(
        &mut job.command(&["upload", "--retry-for", "soon", "out"]),
        "expected a time",
    );
    refused(
        &mut job.command(&["upload", "--key", KEY, "out"]),
        "unexpected argument",
    );
    refused(
        &mut job.command(&["upload", "--key-file", "absent", "out"]),
        "--key-file absent",
    );
    // A fork has no key. With --best-effort its build continues.
    let mut command = job.command(&["upload", "--best-effort", "out"]);
    let fork = command.env("ASSAY_INGEST_KEY", "").output().unwrap();
    assert_eq!(fork.status.code(), Some(0));
    assert_contains(
        &stderr_text(&fork),
        "warning: nothing was stored: ASSAY_INGEST_KEY is not set",
    );
    assert!(receiver.requests().is_empty());
}

#[test]
fn a_key_comes_from_a_file_before_the_variable() {
    let receiver = Receiver::start(vec![stored()]);
    let job = Job::new(&receiver.url);
    job.write("key", "svc_of_a_file\n");
    let mut command = job.command(&["upload", "--key-file", "key", "out"]);
    assert!(command.output().unwrap().status.success());
    assert_eq!(
        receiver.requests()[0].header("authorization"),
        Some("Bearer svc_of_a_file")
    );
}

#[test]
fn files_that_are_no_reports_or_cannot_be_read_are_named() {
    let receiver = Receiver::start(vec![stored()]);
    let job = Job::new(&receiver.url);
    job.write("empty/none.txt", "");
    job.write("secret.xml", &report());
    let secret = job.folder.path().join("secret.xml");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    let is_root = fs::read(&secret).is_ok();
    for (path, part) in [
        ("absent.xml", "absent.xml: no such file or folder"),
        ("none/**/*.xml", "none/**/*.xml: no file matches"),
        ("empty", "no test report was found in empty"),
        ("secret.xml", "secret.xml"),
    ] {
        // Root can read every file.
        if path == "secret.xml" && is_root {
            continue;
        }
        let output = job.run(&["upload", path]);
        assert_eq!(output.status.code(), Some(1), "{path}");
        assert!(
            stderr_text(&output).contains(part),
            "{part}: {}",
            stderr_text(&output)
        );
    }
    assert!(receiver.requests().is_empty());
    // Other files of a folder are omitted.
    job.write("out/package.json", "{\"name\": \"shop\"}");
    assert!(job.run(&["upload", "out"]).status.success());
    assert_eq!(receiver.requests()[0].files().len(), 1);
}

#[test]
fn a_check_shows_the_owner_of_the_key_and_sends_nothing() {
    let receiver = Receiver::start(vec![reply(
        200,
        &json!({"project": {"id": "p", "name": "storefront"}}),
    )]);
    let job = Job::new(&receiver.url);
    let output = job.run(&["upload", "--check", "--branch", "main", "out"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr_text(&output));
    for part in [
        "The key is of the project \"storefront\"",
        "branch  main  flag",
        "out/junit.xml  junit",
        "nothing was sent",
    ] {
        assert!(
            output_text(&output).contains(part),
            "{part}: {}",
            output_text(&output)
        );
    }
    // Outside of CI, the command prints that no value is known.
    let output = job.run(&["upload", "--check", "out"]);
    assert!(
        output_text(&output).contains("give --branch and --commit"),
        "{}",
        output_text(&output)
    );
    let requests = receiver.requests();
    assert_eq!(requests.len(), 2);
    for request in requests {
        assert_eq!(request.line, "GET /ingest/v1/key HTTP/1.1");
    }
}

#[test]
fn the_output_says_how_a_report_relates_to_earlier_ones() {
    let body: Value = serde_json::from_str(&stored().body).unwrap();
    for (effect, sentence) in [
        (
            "replaced",
            "It replaced 3 tests of earlier reports, 2 of them failed",
        ),
        ("added", "It continues what failed in an earlier attempt"),
        ("unchanged", "It was already stored"),
    ] {
        let mut body = body.clone();
        body["effect"] = effect.into();
        body["continues"] = (effect == "added").into();
        if effect == "replaced" {
            body["replaced"] = serde_json::json!({"tests": 3, "failed": 2});
        }
        let receiver = Receiver::start(vec![reply(201, &body)]);
        let output = Job::new(&receiver.url).run(&["upload", "out"]);
        assert!(
            output_text(&output).contains(sentence),
            "{effect}: {}",
            output_text(&output)
        );
    }
}

#[test]
fn a_large_body_is_sent_once_the_server_accepts_it() {
    let receiver = Receiver::start(vec![stored()]);
    let job = Job::new(&receiver.url);
    let mut noise = 1_u64;
    let text: String = (0..3 << 20)
        .map(|_| {
            noise = noise
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            char::from(b'a' + u8::try_from((noise >> 33) % 26).unwrap())
        })
        .collect();
    job.write(
        "out/large.xml",
        &format!("<testsuite><testcase name=\"{text}\"/></testsuite>"),
    );
    let output = job.run(&["upload", "out/large.xml"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr_text(&output));
    let requests = receiver.requests();
    assert_eq!(requests[0].header("expect"), Some("100-continue"));
    assert!(requests[0].files()[0].1.contains(&text));
}

/// A self-signed certificate for this machine.
fn certificate() -> (String, String) {
    let certificate = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    (certificate.cert.pem(), certificate.signing_key.serialize_pem())
}

/// The configuration of a server with this certificate.
fn encrypted(certificate: &str, key: &str) -> Arc<rustls::ServerConfig> {
    let chain = vec![rustls::pki_types::pem::PemObject::from_pem_slice(certificate.as_bytes()).unwrap()];
    let key = rustls::pki_types::pem::PemObject::from_pem_slice(key.as_bytes()).unwrap();
    let config =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
    Arc::new(config)
}

#[test]
fn a_server_with_the_certificate_of_an_authority_is_named_with_the_next_step() {
    // As `openssl req -x509` makes it.
    let mut parameters = rcgen::CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = parameters.self_signed(&key).unwrap().pem();
    let receiver = Receiver::start_encrypted(encrypted(&certificate, &key.serialize_pem()), vec![stored()]);
    let job = Job::new(&receiver.url);
    job.write("own.pem", &certificate);
    let mut command = job.command(&["upload", "out", "--retry-for", "60s"]);
    let refused = command
        .env("SSL_CERT_FILE", job.folder.path().join("own.pem"))
        .output()
        .unwrap();
    let message = stderr_text(&refused);
    assert_eq!(refused.status.code(), Some(1), "{message}");
    for words in ["CA:TRUE", "basicConstraints=critical,CA:FALSE"] {
        assert_contains(&message, words);
    }
    assert!(!message.contains("add the authority"), "{message}");
}

#[test]
fn a_wrong_scheme_is_named_with_the_right_one() {
    let (certificate, key) = certificate();
    let with_tls = Receiver::start_encrypted(encrypted(&certificate, &key), vec![stored()]);
    // As any HTTP server answers the first message of TLS.
    let in_plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let plain_url = format!("https://{}", in_plain.local_addr().unwrap());
    thread::spawn(move || {
        for stream in in_plain.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1_024]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        }
    });
    for (url, reason) in [
        (
            with_tls.url.replace("https://", "http://"),
            "does not speak HTTP without TLS",
        ),
        (plain_url, "does not speak TLS"),
    ] {
        // Repeating would not help.
        let refused = Job::new(&url).run(&["upload", "out", "--retry-for", "60s"]);
        let message = stderr_text(&refused);
        assert_eq!(refused.status.code(), Some(1), "{message}");
        assert!(
            message.contains(reason) && message.contains("https://"),
            "{message}"
        );
        assert!(!message.contains("trying again"), "{message}");
    }
}

#[test]
fn an_encrypted_server_is_trusted_by_the_systems_authorities_only() {
    let (certificate, key) = certificate();
    let (stranger, _) = self::certificate();
    let receiver = Receiver::start_encrypted(encrypted(&certificate, &key), vec![stored()]);
    let job = Job::new(&receiver.url);
    job.write("own.pem", &certificate);
    job.write("stranger.pem", &stranger);
    let upload = |authorities: &str| {
        let mut command = job.command(&["upload", "out"]);
        command
            .env("SSL_CERT_FILE", job.folder.path().join(authorities))
            .output()
            .unwrap()
    };
    let trusted = upload("own.pem");
    assert_eq!(trusted.status.code(), Some(0), "{}", stderr_text(&trusted));
    assert_eq!(receiver.requests()[0].files().len(), 1);
    // The command fails immediately, because a repetition would fail, too.
    let refused = upload("stranger.pem");
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        stderr_text(&refused).contains("is not trusted: ") && stderr_text(&refused).contains("SSL_CERT_FILE"),
        "{}",
        stderr_text(&refused)
    );
    assert!(
        !stderr_text(&refused).contains("not sent yet"),
        "{}",
        stderr_text(&refused)
    );
    assert_eq!(receiver.requests().len(), 1);
}
