//! The way of every request, from the rate limit to the response.

use std::time::Instant;

use actix_web::{
    HttpRequest, HttpResponse, HttpResponseBuilder,
    http::header::{self, HeaderValue},
    web,
};
use assay_access::{check::PresentedKey, limit::Admission};
use assay_domain::timestamp::Timestamp;

use crate::{
    answer::{Answer, Body, Reply},
    app::App,
    call::Call,
    error::ApiError,
    request::{Ask, RequestId},
    routes::Route,
};

/// What answers a request whose key is good. It runs on a thread that may block.
pub(crate) type Handler = fn(&Call<'_>) -> Result<Answer, ApiError>;

/// Tells of the key's expiry in the last days before it.
const EXPIRES_AT: header::HeaderName = header::HeaderName::from_static("service-key-expires-at");

/// Answers one request for `route`.
pub(crate) async fn dispatch(app: App, route: &'static Route, request: HttpRequest) -> HttpResponse {
    let started = Instant::now();
    let now = (app.clock)();
    let id = RequestId::of(&request);
    let metrics = app.metrics.clone();
    let mut response = respond(app, route, &request, &id, now).await;
    if id.is_the_clients() || !response.status().is_client_error() {
        // Not on a refusal of ours: what does not exist and what is another's must answer the same bytes.
        response.headers_mut().insert(RequestId::HEADER, id.value());
    }
    metrics.observe(route.path, response.status(), started.elapsed());
    response
}

async fn respond(
    app: App,
    route: &'static Route,
    request: &HttpRequest,
    id: &RequestId,
    now: Timestamp,
) -> HttpResponse {
    let authorization = authorization(request);
    if let Some(header) = &authorization
        && app.limiter.admit(header, now).await == Admission::Refused
    {
        return HttpResponse::TooManyRequests().finish();
    }
    let outcome = match PresentedKey::of_header(authorization.as_deref()) {
        Ok(key) => {
            let ask = Ask::of(request);
            // A handler that panicked is the only way in which the hop itself fails.
            web::block(move || read(&app, route, &key, &ask, now))
                .await
                .unwrap_or(Err(ApiError::Aborted))
        }
        Err(refusal) => Err(refusal.into()),
    };
    match outcome {
        Ok(reply) => success(reply),
        Err(error) => {
            error.log(route.path, id);
            error.response()
        }
    }
}

/// Checks the key, then calls the handler. Blocks on the store.
fn read(
    app: &App,
    route: &'static Route,
    key: &PresentedKey,
    ask: &Ask,
    now: Timestamp,
) -> Result<Reply, ApiError> {
    let grant = key.check(&*app.store, now)?;
    app.usage.note(&*app.store, grant.key, now);
    let call = Call {
        store: &*app.store,
        engine: &app.engine,
        caller: grant.caller,
        now,
        route,
        ask,
    };
    let answer = (route.handler)(&call)?;
    answer.into_reply(ask, grant.expiry_notice(now))
}

fn success(reply: Reply) -> HttpResponse {
    let mut response = HttpResponseBuilder::new(reply.body.status());
    response
        .insert_header((header::CACHE_CONTROL, reply.caching.header()))
        .insert_header((header::VARY, HeaderValue::from_static("Accept-Encoding")));
    if let Some(tag) = reply.tag {
        response.insert_header((header::ETAG, format!("\"{tag}\"")));
    }
    if let Some(expiry) = reply.expiry_notice {
        response.insert_header((EXPIRES_AT, expiry.to_string()));
    }
    match reply.body {
        Body::NotModified => response.finish(),
        Body::Json { bytes, coding } => {
            if let Some(name) = coding.header() {
                response.insert_header((header::CONTENT_ENCODING, name));
            }
            response.insert_header(header::ContentType::json()).body(bytes)
        }
    }
}

/// The value of the header; of several, what a proxy would join them to, which is no key.
fn authorization(request: &HttpRequest) -> Option<Vec<u8>> {
    request
        .headers()
        .get_all(header::AUTHORIZATION)
        .map(|value| value.as_bytes().to_vec())
        .reduce(|before, value| [before, value].join(&b", "[..]))
}
