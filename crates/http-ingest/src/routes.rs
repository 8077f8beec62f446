//! The routes, and the checks of every request.

use std::{sync::Arc, time::Instant};

use actix_http::Request;
use actix_web::{
    HttpMessage as _, HttpRequest, HttpResponse, Route,
    http::{Method, header},
    web::{self, Payload, ServiceConfig},
};
use assay_access::check::IngestGrant;
use assay_domain::timestamp::Timestamp;
use assay_http::{Answering, Continue, Outcome, RequestId, SUCCESS, observe, record_answer};
use serde::Serialize;

use crate::{
    admit::{AdmittedRequest, admit},
    answer::ProjectName,
    app::{App, AppState},
    comment, decision,
    error::IngestError,
    fix,
    limits::DECISION_BYTES,
    parse::Head,
    parts::Shape,
    upload,
};

/// The prefix of every route.
pub const BASE: &str = "/ingest/v1";

pub(crate) const REPORTS: &str = "/ingest/v1/reports";
pub(crate) const DECISIONS: &str = "/ingest/v1/decisions";
pub(crate) const FIXES: &str = "/ingest/v1/fixes";
pub(crate) const COMMENTS: &str = "/ingest/v1/comments";
pub(crate) const KEY: &str = "/ingest/v1/key";
const NO_ROUTE: &str = "(no route)";
const NO_METHOD: &str = "(no method)";

/// Mounts the ingest routes on one worker's actix application. They answer every path.
pub fn configure(app: App) -> impl FnOnce(&mut ServiceConfig) {
    move |config| {
        config.default_service(every_route(app));
    }
}

/// The same for an application that has other parts, too. They answer the paths below `/ingest`.
pub fn configure_own_paths(app: App) -> impl FnOnce(&mut ServiceConfig) {
    move |config| {
        config.service(web::scope("/ingest").default_service(every_route(app)));
    }
}

fn every_route(app: App) -> Route {
    web::to(move |request: HttpRequest, payload: Payload| dispatch(Arc::clone(&app.0), request, payload))
}

/// Decides whether a client that waits for `100 Continue` may send its body. A refusal is the same answer as on the
/// route.
pub fn on_continue(app: App) -> Continue {
    Arc::new(move |request: Request| {
        let app = Arc::clone(&app.0);
        Box::pin(async move {
            let started = Instant::now();
            let route = route(request.path(), request.method());
            if ![REPORTS, DECISIONS, FIXES, COMMENTS].contains(&route) {
                // The handler rejects it regardless of the body.
                return Ok(request);
            }
            match before_body(&app, route, request.headers(), request.uri().query()).await {
                Ok((admitted, _)) => {
                    request.extensions_mut().insert(admitted);
                    Ok(request)
                }
                Err(error) => {
                    let id = RequestId::of_headers(request.headers());
                    error.log(route, &id);
                    let outcome = Outcome {
                        response: error.response(),
                        route,
                        code: error.code(),
                    };
                    let mut response = record_answer(&app.http, request.method(), &id, started, outcome);
                    if let Some(answering) = request.conn_data::<Answering>() {
                        answering.refuse_body();
                    }
                    response
                        .head_mut()
                        .set_connection_type(actix_http::ConnectionType::Close);
                    Err(response.into())
                }
            }
        })
    })
}

/// The head of a request with a body.
enum CheckedHead {
    Reports(Head),
    Decision(Shape),
    Fix(Shape),
    Comment(Shape),
}

impl CheckedHead {
    fn of(route: &str, headers: &header::HeaderMap, query: Option<&str>) -> Result<Self, IngestError> {
        match route {
            DECISIONS => return decision::shape(headers, query).map(Self::Decision),
            FIXES => return decision::shape(headers, query).map(Self::Fix),
            COMMENTS => return decision::shape(headers, query).map(Self::Comment),
            _ => {}
        }
        Head::of(headers, query.unwrap_or_default()).map(Self::Reports)
    }
}

/// Runs the checks before a body is read, in their order.
async fn before_body(
    app: &Arc<AppState>,
    route: &'static str,
    headers: &header::HeaderMap,
    query: Option<&str>,
) -> Result<(AdmittedRequest, CheckedHead), IngestError> {
    let longest = match route {
        DECISIONS | FIXES | COMMENTS => DECISION_BYTES,
        _ => app.limits.wire_bytes,
    };
    let admitted = admit(app, &Method::POST, headers, longest).await?;
    if app.is_closing() {
        return Err(IngestError::Busy {
            reason: "The server is stopping",
            after_s: 5,
        });
    }
    Ok((admitted, CheckedHead::of(route, headers, query)?))
}

async fn dispatch(app: Arc<AppState>, request: HttpRequest, payload: Payload) -> HttpResponse {
    let answering = request.conn_data::<Answering>().cloned().unwrap_or_default();
    let has_body = request.headers().contains_key(header::TRANSFER_ENCODING)
        || request
            .headers()
            .get(header::CONTENT_LENGTH)
            .is_some_and(|length| length.as_bytes() != b"0");
    if has_body {
        answering.reads_body();
    }
    let metrics = app.http.clone();
    let respond = async |id: &RequestId| {
        let route = route(request.uri().path(), request.method());
        let outcome = respond(&app, route, &request, payload, || answering.body_is_read()).await;
        let (mut response, code) = match outcome {
            Ok(response) => (response, SUCCESS),
            Err(error) => {
                error.log(route, id);
                (error.response(), error.code())
            }
        };
        answering.close_unless_read(&mut response);
        Outcome {
            response,
            route,
            code,
        }
    };
    observe(&metrics, &request, respond).await
}

/// The route of a request.
fn route(path: &str, method: &Method) -> &'static str {
    match (path, method) {
        (REPORTS, &Method::POST) => REPORTS,
        (DECISIONS, &Method::POST) => DECISIONS,
        (FIXES, &Method::POST) => FIXES,
        (COMMENTS, &Method::POST) => COMMENTS,
        (KEY, &Method::GET | &Method::HEAD) => KEY,
        (REPORTS | DECISIONS | FIXES | COMMENTS | KEY, _) => NO_METHOD,
        _ => NO_ROUTE,
    }
}

async fn respond(
    app: &Arc<AppState>,
    route: &'static str,
    request: &HttpRequest,
    payload: Payload,
    body_is_read: impl FnOnce(),
) -> Result<HttpResponse, IngestError> {
    match route {
        REPORTS | DECISIONS | FIXES | COMMENTS => {
            // A client that waited for `100 Continue` was checked already.
            let checked = request.extensions_mut().remove::<AdmittedRequest>();
            let (headers, query) = (request.headers(), request.uri().query());
            let (AdmittedRequest { grant }, head) = match checked {
                Some(admitted) => (admitted, CheckedHead::of(route, headers, query)?),
                None => before_body(app, route, headers, query).await?,
            };
            Ok(match head {
                CheckedHead::Reports(head) => {
                    let (status, answer) = upload::store(app, grant, head, payload, body_is_read).await?;
                    HttpResponse::build(status).insert_header(NO_STORE).json(answer)
                }
                CheckedHead::Fix(shape) => {
                    let answer = fix::store(app, grant, shape, payload, body_is_read).await?;
                    HttpResponse::Created().insert_header(NO_STORE).json(answer)
                }
                CheckedHead::Decision(shape) => {
                    let (status, answer) = decision::store(app, grant, shape, payload, body_is_read).await?;
                    HttpResponse::build(status).insert_header(NO_STORE).json(answer)
                }
                CheckedHead::Comment(shape) => {
                    let comment = comment::compose(app, grant, shape, payload, body_is_read).await?;
                    HttpResponse::Ok().insert_header(NO_STORE).json(comment)
                }
            })
        }
        KEY => {
            let admitted = admit(app, request.method(), request.headers(), app.limits.wire_bytes).await?;
            Ok(HttpResponse::Ok()
                .insert_header(NO_STORE)
                .json(KeyAnswer::of(&admitted.grant)))
        }
        NO_METHOD => {
            let is_of_key = request.uri().path() == KEY;
            Err(IngestError::NoSuchMethod {
                allow: if is_of_key { "GET, HEAD" } else { "POST" },
            })
        }
        _ => Err(IngestError::NoSuchRoute),
    }
}

const NO_STORE: (header::HeaderName, &str) = (header::CACHE_CONTROL, "private, no-store");

/// The description of the request's key.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub(crate) struct KeyAnswer {
    project: ProjectName,
    /// The key's id, as `assay-admin key list` shows it.
    key_id: assay_domain::id::KeyId,
    /// The key's name.
    name: Option<String>,
    /// The end of its validity.
    expires_at: Option<Timestamp>,
    /// Whether runs may have started more than 7 days ago.
    backfill: bool,
    /// Whether it accepts only reports of pull requests.
    pull_requests_only: bool,
}

impl KeyAnswer {
    fn of(grant: &IngestGrant) -> Self {
        Self {
            project: ProjectName::of(grant),
            key_id: grant.id,
            name: grant.terms.name.clone(),
            expires_at: grant.terms.expires_at,
            backfill: grant.terms.backfill,
            pull_requests_only: grant.terms.pull_requests_only,
        }
    }
}
