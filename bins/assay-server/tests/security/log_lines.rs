//! A request cannot write a line of the log that looks like another's.

use assay_testkit::{Server, wire};

use crate::world::World;

/// A line that an attacker could try to write into a log.
const FORGED: &str = "2026-11-20T00:00:00.000Z INFO  access: forged";

fn requests(key: &str) -> Vec<String> {
    let mut requests = Vec::new();
    for attack in [
        format!("a\r\n{FORGED}"),
        format!("a\n{FORGED}"),
        format!("a\r{FORGED}"),
        format!("a\r\n {FORGED}"),
        format!("a%0D%0A{FORGED}").replace(' ', "%20"),
        format!("a%0A{FORGED}").replace(' ', "+"),
        "\u{1b}[2J\u{1b}[1;1Hforged".to_owned(),
        "%1B%5B2Jforged".to_owned(),
        "\u{85}forged".to_owned(),
        "\u{2028}forged".to_owned(),
        "a\u{8}\u{8}\u{8}forged".to_owned(),
        "\u{202e}forged".to_owned(),
        "a\" status=200 code=ok forged=\"".to_owned(),
        "a\",\"level\":\"ERROR\",\"forged\":\"".to_owned(),
        "a\0forged".to_owned(),
        "forged".repeat(2_000),
    ] {
        let bearer = format!("Authorization: Bearer {key}");
        for field in [bearer.as_str(), "X: y"] {
            for request in [
                format!(
                    "GET /api/v1/projects HTTP/1.1\r\nHost: a\r\nX-Request-Id: {attack}\r\n{field}\r\n\r\n"
                ),
                format!("GET /api/v1/projects/{attack} HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n"),
                format!("GET /api/v1/projects?days={attack} HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n"),
                format!("{attack} /api/v1/projects HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n"),
                format!("GET /api/v1/projects HTTP/1.1\r\nHost: {attack}\r\n{field}\r\n\r\n"),
                format!(
                    "GET /api/v1/projects HTTP/1.1\r\nHost: a\r\nUser-Agent: {attack}\r\nX-Forwarded-For: {attack}\r\n{field}\r\n\r\n"
                ),
                format!(
                    "GET /api/v1/projects HTTP/1.1\r\nHost: a\r\nContent-Length: {attack}\r\n{field}\r\n\r\n"
                ),
                format!("GET /api/v1/projects HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {attack}\r\n\r\n"),
            ] {
                requests.push(request.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
            }
        }
    }
    requests
}

/// Sends all requests and returns the server's log lines of that time.
fn lines_of(world: &World, server: &Server) -> Vec<String> {
    let address = server.client().address();
    let before = server.log().len();
    for request in requests(&world.keys.good) {
        wire::send(address, request.as_bytes(), false);
    }
    server.log()[before..].lines().map(str::to_owned).collect()
}

#[test]
fn no_request_forges_a_line_of_the_log() {
    let world = World::new();
    for (format, level) in [("text", "info"), ("text", "trace"), ("json", "trace")] {
        let server = Server::start_with(
            world.database.url(),
            &[
                ("ASSAY_RATE_LIMIT", "0"),
                ("ASSAY_LOG_FORMAT", format),
                ("RUST_LOG", level),
            ],
        );
        let lines = lines_of(&world, &server);
        assert!(lines.len() > 100, "{format} {level}: {} lines", lines.len());
        for line in &lines {
            assert!(!line.contains(char::is_control), "{format} {level}: {line:?}");
            assert!(
                !line.contains("forged"),
                "{format} {level}: a client's own text: {line}"
            );
            if format == "json" {
                let object: serde_json::Value = serde_json::from_str(line).unwrap();
                assert!(object["level"].is_string(), "{line}");
            } else {
                assert!(
                    line.starts_with("20") || line.starts_with("[20"),
                    "{format} {level}: {line}"
                );
            }
        }
    }
}
