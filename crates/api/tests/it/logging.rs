//! What reaches the log: each failure once, with its request's id and cause, and no key.

use std::sync::{Mutex, Once};

use crate::{
    client::Api,
    ids::{PROJECT, TEST_ENCODED},
    store::Mode,
};

/// Keeps every line of this test binary.
struct Lines(Mutex<Vec<String>>);

static LINES: Lines = Lines(Mutex::new(Vec::new()));
static INSTALLED: Once = Once::new();

impl log::Log for Lines {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        self.0
            .lock()
            .unwrap()
            .push(format!("{} {}", record.level(), record.args()));
    }

    fn flush(&self) {}
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

#[actix_web::test]
async fn a_failure_is_logged_once_with_its_cause_and_without_the_key() {
    INSTALLED.call_once(|| {
        log::set_logger(&LINES).unwrap();
        log::set_max_level(log::LevelFilter::Trace);
    });
    let api = Api::in_mode(Mode::ReadsFail);
    let path = format!("/projects/{PROJECT}/tests/{TEST_ENCODED}?filePath=private.ts");
    let answer = api.get_with(&path, &[("X-Request-Id", "logged-once")]).await;
    answer.fails(500, "internal_error", &path);
    assert_eq!(
        lines_with("logged-once"),
        [
            "ERROR request logged-once for /projects/{projectId}/tests/{testName} failed: \
          the database failed while testing: secret cause: relation \"result\""
        ]
    );
    let refused = api
        .get_with("/projects/x/runs", &[("X-Request-Id", "refused-only")])
        .await;
    assert_eq!(refused.status, 404);
    assert!(lines_with("refused-only").is_empty());
    assert!(lines_with(&api.seed.keys.good.reveal()[12..]).is_empty());
    // The store refuses to note the key's use, which is told by the key's public id.
    assert!(!lines_with("the use of key").is_empty());
}
