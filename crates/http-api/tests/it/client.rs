//! Requests through the whole application.

use std::sync::Arc;

use actix_web::{
    App as Actix,
    http::{Method, StatusCode, header::HeaderMap},
    test::{TestRequest, call_service, init_service, read_body},
    web::Bytes,
};
use assay_access::limit::{InProcessLimiter, RateLimiter};
use assay_flakiness::Engine;
use assay_http::ReadReception;
use assay_http_api::{App, BASE};
use serde_json::Value;

use crate::{ids::NOW, seed::Seed, store::Mode};

/// The application over a seeded store.
pub(crate) struct Api {
    pub(crate) seed: Arc<Seed>,
    app: App,
}

/// A response with its body read.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Api {
    pub(crate) fn new() -> Self {
        Self::limited(0)
    }

    pub(crate) fn limited(limit: u32) -> Self {
        Self::with(Arc::new(InProcessLimiter::new(limit)), 512)
    }

    pub(crate) fn in_mode(mode: Mode) -> Self {
        let api = Self::new();
        api.seed.set_mode(mode);
        api
    }

    fn with(limiter: Arc<dyn RateLimiter>, threads: usize) -> Self {
        let seed = Arc::new(Seed::new());
        let app = App::new(
            ReadReception::new(seed.clone(), threads),
            seed.clone(),
            Arc::new(Engine::default()),
            limiter,
            Arc::new(|| NOW),
        );
        Self { seed, app }
    }

    pub(crate) fn with_origins(self, origins: &str) -> Self {
        let app = self.app.with_origins(origins.parse().unwrap());
        Self { app, ..self }
    }

    pub(crate) fn on_threads(threads: usize) -> Self {
        Self::with(Arc::new(InProcessLimiter::new(0)), threads)
    }

    pub(crate) fn app(&self) -> App {
        self.app.clone()
    }

    /// GET of a path below the base with the seed's good key.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.get_with(path, &[]).await
    }

    /// The same with additional headers.
    pub(crate) async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let authorization = format!("Bearer {}", self.seed.keys.good.reveal());
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
        let response = call_service(&service, request.to_request()).await;
        Answer {
            status: response.status(),
            headers: response.headers().clone(),
            body: read_body(response).await,
        }
    }
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        assert_eq!(
            self.header("content-type"),
            Some("application/json"),
            "{:?}",
            self.body
        );
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The body of a success.
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, StatusCode::OK, "{:?}", self.body);
        self.json()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Asserts an error: its status, its code, and that its body has exactly the two fields.
    #[track_caller]
    pub(crate) fn fails(&self, status: u16, code: &str, context: &str) {
        assert_eq!(self.status.as_u16(), status, "{context}: {:?}", self.body);
        let body = self.json();
        assert_eq!(body["code"], code, "{context}: {body}");
        assert!(
            body["error"]
                .as_str()
                .is_some_and(|sentence| !sentence.is_empty()),
            "{context}"
        );
        assert_eq!(body.as_object().unwrap().len(), 2, "{context}: {body}");
        assert_eq!(
            self.header("cache-control"),
            Some("private, no-store"),
            "{context}"
        );
        assert_eq!(self.header("service-key-expires-at"), None, "{context}");
        assert_eq!(
            self.header("www-authenticate"),
            (status == 401).then_some("Bearer"),
            "{context}"
        );
    }

    /// The sentence of an error.
    pub(crate) fn sentence(&self) -> String {
        self.json()["error"].as_str().unwrap().to_owned()
    }
}
