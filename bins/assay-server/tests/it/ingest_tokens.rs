//! Uploads by tokens of CI jobs, without a secret: `testdata/identity` has the claims of the services.

use std::{
    fs,
    sync::atomic::{AtomicU32, Ordering},
};

use assay_testkit::{Answer, Behaviour, Cli, Issuer, Receiver, Response, Signer, TestDatabase, text};
use serde_json::{Value, json};

use crate::ingest::{IngestServer, PASSES, now};

/// A server that accepts tokens of an issuer on this machine.
struct Installation {
    ingest: IngestServer,
    issuer: Issuer,
    audience: String,
    _folder: tempfile::TempDir,
}

impl Installation {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("identity.toml");
        fs::write(&path, "private_addresses = [\"127.0.0.1\"]\n").unwrap();
        let ingest = IngestServer::with(&[("ASSAY_IDENTITY_FILE", path.to_str().unwrap())]);
        Self {
            audience: ingest.server.ingest().base().to_owned(),
            issuer: Issuer::new(),
            ingest,
            _folder: folder,
        }
    }

    /// Lets jobs of repository 74 send reports, with these further flags.
    fn trust(&self, flags: &[&str]) -> Value {
        let own = [
            "trust",
            "add",
            "--project",
            "web",
            "--issuer",
            &self.issuer.url,
            "--repository",
            "74",
        ];
        self.ingest.cli.json(&[&own[..], flags].concat())
    }

    fn claims(&self, more: &Value) -> Value {
        let mut claims = json!({ "repository_id": "74", "sub": "repo:acme/web:ref:refs/heads/main", "actor": "octocat",
            "ref": "refs/heads/main", "event_name": "push" });
        for (name, value) in more.as_object().unwrap() {
            claims[name] = value.clone();
        }
        self.issuer.claims(&self.audience, &claims)
    }

    fn token(&self, more: &Value) -> String {
        self.issuer.mint(&self.claims(more))
    }

    fn send(&self, token: &str, branch: &str) -> Response {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let name = format!("{branch}-{}", RUNS.fetch_add(1, Ordering::Relaxed));
        let fields = [("branch", branch), ("runKey", &*name)];
        self.ingest.send(token, &fields, &[("r.xml", PASSES.as_bytes())])
    }

    fn refusal(&self, token: &str) -> (u16, String) {
        let answer = self.send(token, "main");
        (answer.status, text(&answer.json()["error"]))
    }
}

#[test]
fn a_token_of_a_trusted_job_stores_a_report_and_is_recorded_with_its_sender() {
    let installation = Installation::new();
    let trust = installation.trust(&[]);
    let token = installation.token(&json!({}));
    let answer = installation.send(&token, "main");
    assert_eq!(answer.status, 201, "{}", answer.text());
    // A token is good for further requests of its job: the decision, the comment.
    assert_eq!(installation.send(&token, "main").status, 201);
    let uploads = installation.ingest.cli.json(&["uploads", "--project", "web"]);
    let upload = &uploads["uploads"][0];
    assert_eq!(upload["sender"], "repo:acme/web:ref:refs/heads/main by octocat");
    assert_eq!(upload["keyId"], trust["id"]);
    let listed = installation
        .ingest
        .cli
        .json(&["trust", "list", "--project", "web"]);
    assert_eq!(listed["trusts"][0]["trust"]["repository"], "74");
    assert!(listed["trusts"][0]["lastUsedOn"].is_string());
    // A key with a secret still works, and has no sender.
    assert_eq!(installation.send(&installation.ingest.key, "main").status, 201);
    let uploads = installation.ingest.cli.json(&["uploads", "--project", "web"]);
    assert_eq!(uploads["uploads"][0]["sender"], Value::Null);
    let log = installation.ingest.server.log();
    assert!(
        !log.contains(&token) && !log.contains(token.rsplit('.').next().unwrap()),
        "{log}"
    );
}

#[test]
fn tokens_of_others_are_refused() {
    let installation = Installation::new();
    installation.trust(&["--ref", "refs/heads/main", "--environment", "prod"]);
    let right = json!({ "environment": "prod" });
    assert_eq!(installation.send(&installation.token(&right), "main").status, 201);
    let stranger = Issuer::new();
    let with = |name: &str, value: Value| {
        let mut claims = right.clone();
        claims[name] = value;
        installation.token(&claims)
    };
    let signed = |by| {
        installation
            .issuer
            .signed(&json!({}), &installation.claims(&right), by)
    };
    for (token, expected) in [
        (with("repository_id", json!("75")), "no project trusts"),
        (
            with("ref", json!("refs/heads/topic")),
            "ref, environment or audience",
        ),
        (
            with("environment", json!("staging")),
            "ref, environment or audience",
        ),
        (with("environment", Value::Null), "ref, environment or audience"),
        (
            with("aud", json!("https://other.example.org")),
            "another audience",
        ),
        (with("exp", json!(1_700_000_000)), "expired"),
        (with("project_id", json!("20")), "not the token of a job"),
        (signed(Signer::Stranger), "signature is wrong"),
        (signed(Signer::Nothing), "not a signed token"),
        (signed(Signer::Hmac), "algorithm"),
        (
            stranger.mint(&stranger.claims(&installation.audience, &json!({ "repository_id": "74" }))),
            "no project trusts",
        ),
        ("eyJhbGciOiJub25lIn0.e30.".to_owned(), "not the token of a job"),
    ] {
        let (status, error) = installation.refusal(&token);
        assert_eq!(status, 401, "{error}");
        assert!(error.contains(expected), "{expected}: {error}");
    }
    assert_eq!(
        stranger.requests().len(),
        0,
        "no connection to an issuer without a trust"
    );
}

#[test]
fn a_fork_gets_the_right_to_pull_requests_alone() {
    let installation = Installation::new();
    installation.trust(&[]);
    let of_fork = installation.token(&json!({ "event_name": "pull_request_target" }));
    let answer = installation.send(&of_fork, "main");
    assert_eq!(answer.status, 403, "{}", answer.text());
    let fields = [("branch", "topic"), ("runKey", "fork"), ("pullRequest", "7")];
    let answer = installation
        .ingest
        .send(&of_fork, &fields, &[("r.xml", PASSES.as_bytes())]);
    assert_eq!(answer.status, 201, "{}", answer.text());
    // A trust for pull requests only gives no job more than that, and one for the stable branch adds to it.
    let other = Installation::new();
    other.trust(&["--pull-requests-only"]);
    let token = other.token(&json!({}));
    assert_eq!(other.send(&token, "main").status, 403);
    other.trust(&["--ref", "refs/heads/main"]);
    assert_eq!(other.send(&token, "main").status, 201);
    assert_eq!(
        other
            .send(&other.token(&json!({ "ref": "refs/heads/topic" })), "main")
            .status,
        403
    );
}

#[test]
fn a_removed_trust_and_a_deleted_project_end_at_once() {
    let installation = Installation::new();
    let trust = installation.trust(&[]);
    let token = installation.token(&json!({}));
    assert_eq!(installation.send(&token, "main").status, 201);
    let id = text(&trust["id"]);
    let refused = installation.ingest.cli.run(&["key", "rotate", &id]);
    assert!(!refused.status.success());
    installation.ingest.cli.json(&["trust", "remove", &id]);
    assert_eq!(installation.refusal(&token).0, 401);
    assert!(
        !installation
            .ingest
            .cli
            .run(&["trust", "remove", &id])
            .status
            .success()
    );
    installation.trust(&[]);
    assert_eq!(installation.send(&token, "main").status, 201);
    installation
        .ingest
        .cli
        .json(&["project", "delete", "web", "--yes"]);
    assert_eq!(installation.refusal(&token).0, 401);
}

#[test]
fn an_issuer_that_does_not_answer_costs_its_own_jobs_only() {
    let installation = Installation::new();
    installation.trust(&[]);
    installation.issuer.behave(Behaviour::Slow);
    let token = installation.token(&json!({}));
    let began = now();
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| installation.send(&token, "main")))
            .collect();
        assert_eq!(installation.send(&installation.ingest.key, "main").status, 201);
        assert!(now().since_ms(began) < 4_000, "a key does not wait for an issuer");
        for answer in waiting {
            let answer = answer.join().unwrap();
            assert_eq!(
                (answer.status, text(&answer.json()["code"])),
                (503, "issuer_unavailable".to_owned())
            );
            assert!(answer.header("retry-after").is_some());
        }
    });
    // One fetch was tried for all of them.
    let fetches = installation.issuer.requests();
    assert!(fetches.len() <= 2, "{fetches:?}");
}

#[test]
fn a_flood_of_forged_tokens_and_unknown_issuers_opens_no_connection_and_delays_no_job() {
    let installation = Installation::new();
    installation.trust(&[]);
    let token = installation.token(&json!({}));
    assert_eq!(installation.send(&token, "main").status, 201);
    let before = installation.issuer.requests().len();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let installation = &installation;
            scope.spawn(move || {
                for number in 0..50 {
                    let claims = match thread % 2 {
                        0 => installation.claims(&json!({})),
                        _ => installation
                            .claims(&json!({ "iss": format!("https://{thread}-{number}.example.org") })),
                    };
                    let header = json!({ "kid": format!("{thread}-{number}") });
                    let forged = installation.issuer.signed(&header, &claims, Signer::Stranger);
                    let status = installation.refusal(&forged).0;
                    assert!([401, 503].contains(&status), "{status}");
                }
            });
        }
        for _ in 0..10 {
            assert_eq!(installation.send(&token, "main").status, 201);
        }
    });
    assert_eq!(installation.issuer.requests().len(), before);
}

#[test]
fn assay_upload_finds_the_token_of_each_service_by_itself() {
    let installation = Installation::new();
    installation.trust(&[]);
    installation.ingest.cli.json(&[
        "trust",
        "add",
        "--project",
        "web",
        "--issuer",
        &installation.issuer.url,
        "--repository",
        "20",
    ]);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("r.xml"), PASSES).unwrap();
    // A receiver answers as GitHub and Azure describe it; a program as those of Buildkite and CircleCI.
    let service = Receiver::new();
    let token = installation.token(&json!({}));
    service.answer(Answer::Status(
        200,
        json!({ "value": token, "oidcToken": token }).to_string(),
    ));
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    for program in ["buildkite-agent", "circleci"] {
        let script = format!(
            "#!/bin/sh\necho \"$@\" > {}/{program}.txt\necho {token}\n",
            folder.path().display()
        );
        fs::write(bin.join(program), script).unwrap();
        let made = std::process::Command::new("chmod")
            .arg("+x")
            .arg(bin.join(program))
            .status();
        assert!(made.unwrap().success());
    }
    let url = format!("http://127.0.0.1:{}/token", service.port);
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let address = installation.audience.as_str();
    for (number, variables) in [
        vec![("ASSAY_ID_TOKEN", token.as_str())],
        vec![
            ("ACTIONS_ID_TOKEN_REQUEST_URL", &*format!("{url}?v=1")),
            ("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "right"),
        ],
        vec![("SYSTEM_OIDCREQUESTURI", &*url), ("SYSTEM_ACCESSTOKEN", "right")],
        vec![("BUILDKITE_AGENT_ACCESS_TOKEN", "right"), ("PATH", &*path)],
        vec![("CIRCLE_OIDC_TOKEN_V2", "other"), ("PATH", &*path)],
    ]
    .into_iter()
    .enumerate()
    {
        let key = format!("service-{number}");
        let upload = [
            "upload",
            "r.xml",
            "--branch",
            "main",
            "--run-key",
            &key,
            "--retry-for",
            "1s",
        ];
        let mut command = installation.ingest.cli.command(&upload);
        command
            .current_dir(folder.path())
            .env("ASSAY_URL", address)
            .envs(variables);
        let output = command.output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{number}: {errors}");
        assert!(!errors.contains(&token));
    }
    let requests = service.requests();
    let escaped = "/token?v=1&audience=http%3A%2F%2F127%2E0%2E0%2E1%3A";
    assert!(requests[0].path.starts_with(escaped), "{}", requests[0].path);
    assert_eq!(requests[0].headers["authorization"], "Bearer right");
    assert!(
        requests
            .iter()
            .any(|request| request.path == "/token?api-version=7.1")
    );
    let asked = |program: &str| fs::read_to_string(folder.path().join(program)).unwrap();
    assert_eq!(
        asked("buildkite-agent.txt").trim(),
        format!("oidc request-token --claim pipeline_id --audience {address}")
    );
    assert_eq!(
        asked("circleci.txt").trim(),
        format!("run oidc get --claims {{\"aud\":\"{address}\"}}")
    );
}

#[test]
fn a_trust_is_moved_with_its_organization() {
    let installation = Installation::new();
    installation.trust(&[
        "--ref",
        "refs/heads/main",
        "--audience",
        "https://other.example.org",
    ]);
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("archive");
    installation
        .ingest
        .cli
        .json(&["org", "export", "Shop", archive.to_str().unwrap()]);
    let target = TestDatabase::new();
    let cli = Cli::new(target.url());
    cli.json(&["org", "import", archive.to_str().unwrap()]);
    let trust = &cli.json(&["trust", "list"])["trusts"][0]["trust"];
    assert_eq!(
        (text(&trust["ref"]), text(&trust["audience"])),
        (
            "refs/heads/main".to_owned(),
            "https://other.example.org".to_owned()
        )
    );
}
