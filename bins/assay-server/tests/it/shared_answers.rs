//! Answers from a shared judgement equal those of a server without cached judgements.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use actix_web::{App as Actix, test as web};
use assay_access::limit::InProcessLimiter;
use assay_domain::{
    store::Store,
    timestamp::{DAY_MS, Timestamp},
};
use assay_flakiness::Engine;
use assay_http::ReadReception;
use assay_http_api::{App, BASE};
use assay_testkit::ServedWorld;
use serde_json::Value;

use crate::failures::import_failures;

/// The routes over the world's database, with this clock and empty caches.
macro_rules! service {
    ($world:expr, $now:expr) => {{
        let now = Arc::clone($now);
        let clock = move || Timestamp::from_unix_ms(now.load(Ordering::Relaxed));
        let store: Arc<dyn Store> = Arc::new($world.database.connect());
        let app = App::new(
            ReadReception::new(store.clone(), 4, None),
            store,
            Arc::new(Engine::default()),
            Arc::new(InProcessLimiter::new(0)),
            Arc::new(clock),
        );
        web::init_service(Actix::new().configure(assay_http_api::configure(app))).await
    }};
}

/// The status and the body of every path.
macro_rules! answers {
    ($service:expr, $world:expr, $paths:expr) => {{
        let mut answers = Vec::new();
        for path in $paths {
            let uri = format!("{BASE}/projects/{}{path}", $world.project);
            let request = web::TestRequest::with_uri(&uri)
                .insert_header(("Authorization", format!("Bearer {}", $world.key)));
            let answer = web::call_service($service, request.to_request()).await;
            let status = answer.status().as_u16();
            let body = web::read_body(answer).await;
            answers.push((status, String::from_utf8(body.to_vec()).unwrap()));
        }
        answers
    }};
}

/// A change of the project, and which of the answers it changes.
type Change<'a> = (&'static str, &'a dyn Fn(), [bool; 12]);

/// An answer without the bounds of its period, which change every second.
fn without_window((status, body): &(u16, String)) -> (u16, Value) {
    let mut body: Value = serde_json::from_str(body).unwrap();
    body.as_object_mut().unwrap().remove("window");
    (*status, body)
}

#[actix_web::test]
async fn shared_answers_follow_every_change_of_the_project() {
    let world = ServedWorld::new();
    let runs = import_failures(&world);
    let failures = |query: &str| format!("/runs/{}/failures{query}", runs[14]);
    let signatures = world.get("/errors");
    let fingerprint = signatures["errors"][0]["fingerprint"].as_str().unwrap();
    let paths = [
        failures(""),
        failures("?limit=200"),
        failures("?mode=hindsight"),
        "/flaky".to_owned(),
        "/errors".to_owned(),
        format!("/errors/{fingerprint}"),
        "/errors?days=7&sort=lastSeen".to_owned(),
        "/errors?search=EXPECTED&branch=topic".to_owned(),
        format!("/runs/{}/changes", runs[14]),
        "/durations".to_owned(),
        "/tests".to_owned(),
        // Its present week ends now.
        "/health".to_owned(),
    ];
    let begin = Timestamp::from(time::OffsetDateTime::now_utc());
    let now = Arc::new(AtomicI64::new(begin.unix_ms()));
    let warm = service!(world, &now);
    let import = |minutes: i64, failed: &[&str]| {
        let cases = ["adds", "gone", "wobbles"].map(|test| (test, !failed.contains(&test)));
        let key = format!("change {minutes}");
        world.import_cases(minutes, &cases, &["--branch", "main", "--run-key", &key]);
    };
    let execute = |sql: &str| world.database.execute(sql);
    let rebuild = || drop(world.cli.json(&["rebuild"]));
    let later = |days: i64| {
        now.fetch_add(days * DAY_MS, Ordering::Relaxed);
    };
    let changes: [Change<'_>; 9] = [
        (
            "an import before the run",
            &|| import(2_000, &["wobbles"]),
            [
                true, true, true, true, true, true, true, false, false, true, true, true,
            ],
        ),
        (
            "an import that becomes the base of the run",
            &|| import(250, &["wobbles"]),
            [
                true, true, true, true, true, true, true, false, true, true, true, true,
            ],
        ),
        (
            "an import after the run",
            &|| import(30, &["wobbles"]),
            [
                true, true, true, true, true, true, true, false, false, true, true, true,
            ],
        ),
        (
            "the loss of a pack",
            &|| {
                execute("UPDATE run_pack SET pack = '\\x0100000000' WHERE run_number < 9");
                execute("UPDATE project SET observed = gen_random_uuid()");
            },
            [
                true, true, true, true, false, false, false, false, false, true, true, true,
            ],
        ),
        (
            "a rebuild",
            &rebuild,
            [
                true, true, true, true, false, false, false, false, false, true, true, true,
            ],
        ),
        (
            "another stable branch",
            &|| {
                drop(
                    world
                        .cli
                        .json(&["project", "set", "web", "--stable-branch", "topic"]),
                )
            },
            [
                true, true, true, true, false, false, false, false, true, true, true, true,
            ],
        ),
        (
            "another name",
            &|| drop(world.cli.json(&["project", "rename", "web", "shop", "--yes"])),
            [true; 12],
        ),
        (
            "days after which runs have left the window",
            &|| later(13),
            [
                false, false, false, true, false, false, true, false, false, false, true, true,
            ],
        ),
        (
            "a deletion",
            &|| execute("UPDATE project SET deleted_at = now(); UPDATE project_entry SET deleted_at = now()"),
            [true; 12],
        ),
    ];
    let mut before = answers!(&warm, world, &paths);
    assert_eq!(before, answers!(&warm, world, &paths));
    for (what, change, expected) in changes {
        change();
        // Keys and projects are cached for half a second.
        now.fetch_add(1_000, Ordering::Relaxed);
        let after = answers!(&warm, world, &paths);
        let fresh = service!(world, &now);
        assert_eq!(after, answers!(&fresh, world, &paths), "{what}");
        let changed = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
            .map(|path| without_window(&before[path]) != without_window(&after[path]));
        assert_eq!(changed, expected, "{what}: {before:#?} {after:#?}");
        before = after;
    }
}
