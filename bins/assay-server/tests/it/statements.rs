//! The number of statements of each route with a cached key and project.

use assay_testkit::{ServedWorld, text};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use actix_web::{App as Actix, test as web};
use assay_access::limit::InProcessLimiter;
use assay_domain::{store::Store, timestamp::Timestamp};
use assay_flakiness::Engine;
use assay_http::ReadReception;
use assay_http_api::{App, BASE, ROUTES};
use diesel::connection::{Instrumentation, InstrumentationEvent, set_default_instrumentation};

/// The routes that take more than one statement, each with its maximum number, and whether they are in a transaction,
/// which costs two more round trips.
const STATEMENTS: [(&str, usize, bool); 18] = [
    ("/projects/{projectId}/runs/{runId}", 5, true),
    ("/projects/{projectId}/runs/{runId}/failures", 6, true),
    ("/projects/{projectId}/runs/{runId}/changes", 12, true),
    ("/projects/{projectId}/runs/{runId}/tests/{testName}", 12, true),
    ("/projects/{projectId}/commits/{commitSha}", 8, true),
    ("/projects/{projectId}/errors", 10, true),
    ("/projects/{projectId}/errors/{fingerprint}", 7, true),
    ("/projects/{projectId}/tests/{testName}", 6, true),
    ("/projects/{projectId}/tests/{testName}/status", 2, false),
    ("/projects/{projectId}/tests/{testName}/fix", 14, true),
    ("/projects/{projectId}/tests/{testName}/proof", 6, true),
    ("/projects/{projectId}/flaky", 4, true),
    ("/projects/{projectId}/tests", 5, true),
    ("/projects/{projectId}/health", 8, true),
    ("/projects/{projectId}/releases/{branchName}", 5, true),
    ("/projects/{projectId}/timings", 4, true),
    ("/projects/{projectId}/durations", 6, true),
    ("/projects/{projectId}/uploads", 2, false),
];

/// The statements of this process's connections, by the address of the connection.
static SENT: Mutex<BTreeMap<String, Vec<String>>> = Mutex::new(BTreeMap::new());

/// Records the statements of one connection.
#[derive(Default)]
struct Notes {
    address: String,
}

impl Instrumentation for Notes {
    fn on_connection_event(&mut self, event: InstrumentationEvent<'_>) {
        if let InstrumentationEvent::StartEstablishConnection { url, .. } = &event {
            self.address = (*url).to_owned();
        } else if let InstrumentationEvent::StartQuery { query, .. } = &event {
            let mut sent = SENT.lock().unwrap();
            let statements = sent.entry(self.address.clone()).or_default();
            statements.push(query.to_string());
        }
    }
}

fn notes() -> Option<Box<dyn Instrumentation>> {
    Some(Box::new(Notes::default()))
}

/// The statements to this database since the last call.
fn sent(database: &str) -> Vec<String> {
    let mut sent = SENT.lock().unwrap();
    let of_database = sent
        .iter_mut()
        .filter(|(address, _)| address.starts_with(database));
    of_database
        .flat_map(|(_, statements)| std::mem::take(statements))
        .collect()
}

#[actix_web::test]
async fn every_route_runs_the_documented_number_of_statements() {
    set_default_instrumentation(notes).unwrap();
    let world = ServedWorld::new();
    let flags = ["--branch", "main", "--commit", "c0ffee"];
    world.import_cases(20, &[("adds", true), ("removes", false)], &flags);
    world.import_cases(10, &[("adds", false), ("removes", true)], &flags);
    let run = text(&world.get("/runs")["runs"][0]["id"]);
    let test = world.get(&format!("/runs/{run}"))["tests"]
        .as_array()
        .unwrap()
        .iter()
        .find(|test| test["status"] == "failed")
        .map(|test| text(&test["testName"]))
        .unwrap();
    let fingerprint = text(&world.get("/errors")["errors"][0]["fingerprint"]);

    let store: Arc<dyn Store> = Arc::new(world.database.connect());
    let clock = Arc::new(|| Timestamp::from(time::OffsetDateTime::now_utc()));
    let app = App::new(
        ReadReception::new(store.clone(), 4, None),
        store,
        Arc::new(Engine::default()),
        Arc::new(InProcessLimiter::new(0)),
        clock,
    );
    let service = web::init_service(Actix::new().configure(assay_http_api::configure(app))).await;
    let ask = async |path: &str| {
        let request = web::TestRequest::with_uri(&format!("{BASE}{path}"))
            .insert_header(("Authorization", format!("Bearer {}", world.key)));
        web::call_service(&service, request.to_request()).await.status()
    };

    let mut expected_statements: BTreeMap<_, _> = STATEMENTS
        .iter()
        .map(|(route, count, whole)| (*route, (*count, *whole)))
        .collect();
    for route in ROUTES {
        let path = route
            .path
            .replace("{projectId}", &world.project)
            .replace("{runId}", &run)
            .replace("{commitSha}", "c0ffee")
            .replace("{branchName}", "main")
            .replace("{testName}", &test.replace(' ', "%20").replace('>', "%3E"))
            .replace("{fingerprint}", &fingerprint);
        let expected = expected_statements.remove(route.path).unwrap_or((1, false));
        // Sometimes half a second passes between the requests, and the key is read again.
        let mut last = Vec::new();
        let holds = async |last: &mut Vec<String>| {
            ask("/projects").await;
            ask(&format!("/projects/{}/settings", world.project)).await;
            sent(world.database.url());
            assert_eq!(ask(&path).await, 200, "{path}");
            *last = sent(world.database.url());
            let whole = last.iter().any(|statement| statement.starts_with("BEGIN"));
            let frames = |statement: &&String| statement.starts_with("BEGIN") || *statement == "COMMIT";
            let data = last.len() - last.iter().filter(frames).count();
            (1..=expected.0).contains(&data) && whole == expected.1
        };
        let mut is_as_expected = false;
        for _ in 0..20 {
            is_as_expected = is_as_expected || holds(&mut last).await;
        }
        assert!(is_as_expected, "{} costs {last:#?}, not {expected:?}", route.path);
    }
    assert!(
        expected_statements.is_empty(),
        "no such route: {expected_statements:?}"
    );
}
