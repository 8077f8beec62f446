//! The log has one line per request and one line per failure, with the request's id and the cause, and without keys.

use std::{
    fmt::Write as _,
    sync::{Mutex, Once},
};

use actix_web::http::Method;
use log::kv::{self, Key, Value, VisitSource};

use crate::api::Api;

/// Stores every log line of this test binary.
struct Lines(Mutex<Vec<String>>);

static LINES: Lines = Lines(Mutex::new(Vec::new()));
static INSTALLED: Once = Once::new();

impl log::Log for Lines {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let mut line = format!("{} {} {}", record.level(), record.target(), record.args());
        record.key_values().visit(&mut Fields(&mut line)).unwrap();
        self.0.lock().unwrap().push(line);
    }

    fn flush(&self) {}
}

/// Appends the fields of a line.
struct Fields<'a>(&'a mut String);

impl<'kvs> VisitSource<'kvs> for Fields<'_> {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), kv::Error> {
        write!(self.0, " {key}={value}")?;
        Ok(())
    }
}

fn install() {
    INSTALLED.call_once(|| {
        log::set_logger(&LINES).unwrap();
        log::set_max_level(log::LevelFilter::Trace);
    });
}

fn lines_with(text: &str) -> Vec<String> {
    LINES
        .0
        .lock()
        .unwrap()
        .iter()
        .filter(|line| line.contains(text))
        .cloned()
        .collect()
}

/// The lines of the access log for a request, without its duration.
fn access_lines(id: &str) -> Vec<String> {
    let id = format!("request_id={id}");
    let without_duration = |line: &String| {
        let (before, rest) = line.split_once(" duration_ms=").unwrap();
        let (milliseconds, after) = rest.split_once(' ').unwrap();
        assert!(milliseconds.parse::<f64>().unwrap() >= 0.0, "{line}");
        (after == id).then(|| before.to_owned())
    };
    let lines = lines_with("INFO access ");
    lines.iter().filter_map(without_duration).collect()
}

#[actix_web::test]
async fn every_request_is_one_line_of_the_access_log() {
    install();
    let api = Api::with(2, 64);
    let good = format!("Bearer {}", api.key.reveal());
    let path = api.fill("/api/v1/projects/{projectId}/branches?unknown=private");
    let odd = Method::from_bytes(b"BREW").unwrap();
    for (id, method, path, key, line) in [
        (
            "line-1",
            Method::GET,
            path.as_str(),
            Some(&good),
            "GET route=/projects/{projectId}/branches status=200 code=ok",
        ),
        (
            "line-2",
            Method::HEAD,
            "/api/v1/projects/none/runs",
            Some(&good),
            "HEAD route=/projects/{projectId}/runs status=404 code=project_not_found",
        ),
        (
            "line-3",
            Method::GET,
            "/api/v1/projects",
            Some(&good),
            "GET route=/projects status=429 code=rate_limited",
        ),
        (
            "line-4",
            odd,
            "/%0Aprivate?%0A",
            None,
            "other route=(no route) status=401 code=missing_key",
        ),
    ] {
        let headers = key.map(|key| ("Authorization", key.as_str()));
        let headers: Vec<_> = headers.into_iter().chain([("X-Request-Id", id)]).collect();
        api.send(method, path, &headers).await;
        assert_eq!(access_lines(id), [format!("INFO access request method={line}")]);
    }
    assert!(lines_with("unknown=").is_empty() && lines_with("%0A").is_empty());
    assert!(lines_with(&api.key.reveal()[12..]).is_empty());
    // An id that could forge a line is replaced.
    api.send(Method::GET, "/", &[("X-Request-Id", "a code=ok")]).await;
    assert!(lines_with("a code=ok").is_empty());
}

#[actix_web::test]
async fn a_failure_is_logged_once_with_its_cause_and_without_the_key() {
    install();
    let api = Api::new();
    // A request does not fail if its key's use is not recorded. The log line has the key's public id.
    api.database.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END';
         CREATE TRIGGER refuse BEFORE UPDATE ON api_key EXECUTE FUNCTION refuse()",
    );
    api.get(&api.fill("/projects/{projectId}/settings")).await.ok();
    assert!(!lines_with("the use of key").is_empty());
    api.database.execute("DROP SCHEMA public CASCADE");
    let path = api.fill("/projects/{projectId}/tests/{testName}?filePath=private.ts");
    let answer = api.get_with(&path, &[("X-Request-Id", "logged-once")]).await;
    answer.fails(500, "internal_error", &path);
    let lines = lines_with("request_id=logged-once").into_iter();
    let failures: Vec<_> = lines.filter(|line| line.starts_with("ERROR")).collect();
    let [failure] = &failures[..] else {
        panic!("{failures:?}")
    };
    let end = "request_id=logged-once route=/projects/{projectId}/tests/{testName}";
    assert!(
        failure.starts_with("ERROR assay_http_api::error a request failed: the database failed while ")
            && failure.contains(": relation \"")
            && failure.ends_with(end),
        "{failure}"
    );
    assert_eq!(access_lines("logged-once").len(), 1);
    let refused = api
        .get_with("/projects/x/runs", &[("X-Request-Id", "refused-only")])
        .await;
    assert_eq!(refused.status, 404);
    assert_eq!(lines_with("refused-only").len(), 1);
    assert_eq!(access_lines("refused-only").len(), 1);
    assert!(lines_with(&api.key.reveal()[12..]).is_empty());
}
