//! The application over a database with an empty project, and requests through all of it.

use std::sync::Arc;

use actix_web::{
    App as Actix,
    http::{Method, StatusCode, header::HeaderMap},
    test::{TestRequest, call_service, init_service, read_body},
    web::Bytes,
};
use assay_access::limit::InProcessLimiter;
use assay_domain::{
    id::OrganizationId,
    key::{KeyKind, SecretKey, mint},
    plan::Plan,
    store::Administration as _,
    timestamp::Timestamp,
};
use assay_flakiness::Engine;
use assay_http::ReadReception;
use assay_http_api::{App, BASE};
use assay_repository::Database;
use assay_testkit::TestDatabase;
use serde_json::Value;

/// The time of every request.
pub(crate) const NOW: Timestamp = Timestamp::from_unix_ms(1_795_200_363_120);
/// The id of no project and of no run.
pub(crate) const NO_ID: &str = "019aa3f4-0000-7000-8000-000000000013";

pub(crate) struct Api {
    app: App,
    /// A key of the project's organization.
    pub(crate) key: SecretKey,
    /// The keys that are refused, with status and code.
    pub(crate) bad_keys: [(SecretKey, u16, &'static str); 5],
    pub(crate) project: String,
    /// Dropped last.
    pub(crate) database: TestDatabase,
}

/// A response with its body read.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Stores a read key that expires after some days.
fn add_key(store: &Database, organization: OrganizationId, days: i64, is_revoked: bool) -> SecretKey {
    let (secret, new) = mint(KeyKind::Read, NOW);
    let expires_at = NOW.plus_days(days);
    assert!(store.create_read_key(organization, &new, expires_at).unwrap());
    if is_revoked {
        assert!(store.revoke_key(new.id, NOW).unwrap());
    }
    secret
}

fn app(store: &Arc<Database>, limit: u32, threads: usize) -> App {
    App::new(
        ReadReception::new(store.clone(), threads, None),
        store.clone(),
        Arc::new(Engine::default()),
        Arc::new(InProcessLimiter::new(limit)),
        Arc::new(|| NOW),
    )
}

impl Api {
    pub(crate) fn new() -> Self {
        Self::with(0, 64)
    }

    /// With a limit of requests per minute and key, and on this many threads.
    pub(crate) fn with(limit: u32, threads: usize) -> Self {
        let database = TestDatabase::new();
        let store = Arc::new(database.connect());
        let organization = |name, plan| store.create_organization(name, plan, NOW).unwrap().id;
        let (acme, free) = (organization("Acme", Plan::Pro), organization("Free", Plan::Free));
        let project = store.create_project(acme, "shop", "main", NOW).unwrap().id;
        Self {
            app: app(&store, limit, threads),
            key: add_key(&store, acme, 30, false),
            bad_keys: [
                (mint(KeyKind::Ingest, NOW).0, 401, "wrong_key_type"),
                (mint(KeyKind::Read, NOW).0, 401, "invalid_key"),
                (add_key(&store, acme, 30, true), 401, "key_revoked"),
                (add_key(&store, acme, 0, false), 401, "key_expired"),
                (add_key(&store, free, 30, false), 403, "tier_too_low"),
            ],
            project: project.to_string(),
            database,
        }
    }

    /// The same without a limit and without cached keys.
    pub(crate) fn restart(&mut self) {
        self.app = app(&Arc::new(self.database.connect()), 0, 64);
    }

    pub(crate) fn with_origins(self, origins: &str) -> Self {
        let app = self.app.with_origins(origins.parse().unwrap());
        Self { app, ..self }
    }

    /// The same with connections to a database that is gone.
    pub(crate) fn without_database(self) -> Self {
        let database = TestDatabase::unmigrated();
        Self { database, ..self }
    }

    pub(crate) fn app(&self) -> App {
        self.app.clone()
    }

    /// A path with this project and ids of nothing below it.
    pub(crate) fn fill(&self, pattern: &str) -> String {
        pattern
            .replace("{projectId}", &self.project)
            .replace("{runId}", NO_ID)
            .replace("{commitSha}", "c0ffee")
            .replace("{testName}", "adds")
            .replace("{fingerprint}", "0123456789abcdef0123456789abcdef")
    }

    /// GET of a path below the base with the good key.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.get_with(path, &[]).await
    }

    /// The same with additional headers.
    pub(crate) async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let authorization = format!("Bearer {}", self.key.reveal());
        let mut all = vec![("Authorization", authorization.as_str())];
        all.extend(headers);
        self.send(Method::GET, &format!("{BASE}{path}"), &all).await
    }

    /// Sends any request.
    pub(crate) async fn send(&self, method: Method, uri: &str, headers: &[(&str, &str)]) -> Answer {
        let service = init_service(Actix::new().configure(assay_http_api::configure(self.app()))).await;
        let mut request = TestRequest::with_uri(uri).method(method);
        for header in headers {
            request = request.append_header(*header);
        }
        Answer::of(call_service(&service, request.to_request()).await).await
    }

    /// GET of a path of the operators' listener.
    pub(crate) async fn get_as_operator(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let service = init_service(Actix::new().configure(assay_http_api::admin(self.app()))).await;
        let mut request = TestRequest::with_uri(path);
        for header in headers {
            request = request.append_header(*header);
        }
        Answer::of(call_service(&service, request.to_request()).await).await
    }
}

impl Answer {
    async fn of(response: actix_web::dev::ServiceResponse) -> Self {
        Self {
            status: response.status(),
            headers: response.headers().clone(),
            body: read_body(response).await,
        }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.to_vec()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The body of a success.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, StatusCode::OK, "{:?}", self.body);
        self.json()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Asserts an error: its status and its code.
    #[track_caller]
    pub(crate) fn fails(&self, status: u16, code: &str, context: &str) {
        assert_eq!(self.status.as_u16(), status, "{context}: {:?}", self.body);
        assert_eq!(self.json()["code"], code, "{context}");
    }
}
