//! Processes every request, from the rate limit to the response.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use actix_web::{
    HttpRequest, HttpResponse, HttpResponseBuilder,
    http::{
        Method,
        header::{self, HeaderName},
    },
    rt::time::sleep,
};
use assay_access::{
    check::{PresentedKey, ReadGrant, budget_id},
    limit::{Budget, WINDOW_MS},
};
use assay_domain::timestamp::Timestamp;
use assay_http::{
    CountedBy, Outcome, Problem, RATE_LIMITED, Rejected, RequestId, SUCCESS, authorization, observe,
};

use crate::{
    answer::{Body, Reply, RestOfBody},
    app::App,
    body::{BodyInParts, BuiltPart, WholeBody},
    call::Call,
    error::ApiError,
    memory::BUILDING,
    request::RequestParts,
    route::{BASE, Route},
};

/// The header that announces a key's expiry in the last days before it.
const EXPIRES_AT: HeaderName = HeaderName::from_static("service-key-expires-at");
const LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// Answers one request for `route`.
pub(crate) async fn dispatch(app: Arc<App>, route: &'static Route, request: HttpRequest) -> HttpResponse {
    let now = (app.clock)();
    let respond = async |id: &RequestId| {
        let (mut response, code) = match app.origins.preflight(&request) {
            Some(response) => (response, SUCCESS),
            None => respond(&app, route, &request, id, now).await,
        };
        app.origins.mark(&request, response.headers_mut());
        Outcome {
            response,
            route: route.path,
            code,
        }
    };
    observe(&app.metrics.http, &request, respond).await
}

/// The response, with the code for the log.
async fn respond(
    app: &Arc<App>,
    route: &'static Route,
    request: &HttpRequest,
    id: &RequestId,
    now: Timestamp,
) -> (HttpResponse, &'static str) {
    let authorization = authorization(request.headers());
    let counted_by = authorization.as_deref().map(|header| CountedBy {
        limiter: &*app.limiter,
        id: budget_id(header).into(),
    });
    let presented = app.reception.presented(authorization.as_deref(), now);
    let (reading, parts) = (Arc::clone(app), RequestParts::of(request));
    let work = move |grant| read(&reading, route, grant, &parts, now);
    match app
        .reception
        .receive(presented.clone(), counted_by, now, work)
        .await
    {
        Ok((reply, budget)) => {
            let is_head = request.method() == Method::HEAD;
            let build = part_builder(app, presented.ok(), route, id);
            (success(reply, budget, is_head, build), SUCCESS)
        }
        // As a firewall in front of the API answers.
        Err(ApiError::Problem(Problem::RateLimited { .. })) => {
            (HttpResponse::TooManyRequests().finish(), RATE_LIMITED)
        }
        Err(error) => {
            error.log(route.path, id);
            (error.response(), error.code())
        }
    }
}

/// Calls the handler. Blocks on the store.
fn read(
    app: &App,
    route: &'static Route,
    grant: ReadGrant,
    parts: &RequestParts,
    now: Timestamp,
) -> Result<Reply, ApiError> {
    let call = Call {
        store: &*app.store,
        directory: app.reception.directory(),
        engine: &*app.engine,
        metrics: &app.metrics,
        pages: app.pages.as_ref(),
        caller: grant.caller(),
        now,
        path: &parts.path_parameters(BASE, route.path),
        pairs: &parts.pairs(),
        wants_csv: parts.preferences.csv(),
    };
    let building = if route.is_large { BUILDING } else { 0 };
    let memory = app.memory.reserve(grant.id, building)?;
    let answer = (route.handler)(&call)?;
    answer.into_reply(&parts.preferences, grant.expiry_notice(now), memory)
}

/// The response of a success. Only successes have the budget headers: the remaining budget changes with each request,
/// and the 404s of missing and of foreign resources must be equal.
fn success(
    reply: Reply,
    budget: Option<Budget>,
    is_head: bool,
    build: impl Fn(RestOfBody) -> Pin<Box<dyn Future<Output = BuiltPart>>> + Unpin + 'static,
) -> HttpResponse {
    let cache_control = match reply.tag {
        Some(_) => "private, no-cache",
        None => "private, no-store",
    };
    let mut response = HttpResponseBuilder::new(reply.body.status());
    response
        .insert_header((header::CACHE_CONTROL, cache_control))
        .insert_header((header::VARY, reply.form.vary()));
    if let Some(tag) = reply.tag {
        response.insert_header(tag.header());
    }
    if let Some(expiry) = reply.expiry_notice {
        response.insert_header((EXPIRES_AT, expiry.to_string()));
    }
    if let Some(budget) = budget {
        response
            .insert_header((LIMIT_POLICY, policy(&budget)))
            .insert_header((LIMIT, remaining(&budget)));
    }
    match reply.body {
        Body::NotModified => response.finish(),
        Body::Json { bytes, coding } => {
            if let Some(name) = coding.header() {
                response.insert_header((header::CONTENT_ENCODING, name));
            }
            response
                .insert_header((header::CONTENT_TYPE, reply.form.content_type()))
                .body(WholeBody::new(bytes, reply.memory))
        }
        Body::Parts { first, coding, rest } => {
            if let Some(name) = coding.header() {
                response.insert_header((header::CONTENT_ENCODING, name));
            }
            let (first, rest) = if is_head {
                (Vec::new(), None)
            } else {
                (first, Some(rest))
            };
            response
                .insert_header(header::ContentType::json())
                .body(BodyInParts::new(first, rest, build, reply.memory))
        }
    }
}

/// Returns a function that builds the further parts of an answer. Each part waits for a thread, as the request did.
/// Under overload it tries again, because an answer that has begun should be completed.
fn part_builder(
    app: &Arc<App>,
    key: Option<PresentedKey>,
    route: &'static Route,
    id: &RequestId,
) -> impl Fn(RestOfBody) -> Pin<Box<dyn Future<Output = BuiltPart>>> + Unpin + 'static {
    let (app, id) = (Arc::clone(app), id.clone());
    move |rest| {
        let (app, id, key) = (Arc::clone(&app), id.clone(), key.clone());
        Box::pin(async move {
            let part = match key {
                Some(key) => next_part(&app, key, rest).await,
                None => Err(Problem::Panicked.into()),
            };
            if let Err(error) = &part {
                error.log(route.path, &id);
            }
            part
        })
    }
}

async fn next_part(app: &Arc<App>, key: PresentedKey, rest: RestOfBody) -> BuiltPart {
    // Only a job that runs takes the rest, so that it is still here after a rejection.
    let rest = Arc::new(Mutex::new(Some(rest)));
    let mut tries = 1;
    loop {
        let (store, shared_rest) = (Arc::clone(&app.store), Arc::clone(&rest));
        let work = move || {
            let rest = shared_rest.lock().unwrap_or_else(PoisonError::into_inner).take();
            rest.ok_or(Problem::Panicked)?.next(&*store)
        };
        match app.reception.run(&key, work).await {
            Ok(part) => return part,
            Err(Rejected::Overloaded) if tries < PART_TRIES => {
                tries += 1;
                sleep(PART_PAUSE).await;
            }
            Err(rejected) => return Err(Problem::from(rejected).into()),
        }
    }
}

/// How often a further part tries to get a thread.
const PART_TRIES: u32 = 10;
/// The pause between two tries.
const PART_PAUSE: Duration = Duration::from_secs(1);

/// The policy of a budget in the form of the IETF's draft on rate limit headers.
fn policy(budget: &Budget) -> String {
    format!("\"default\";q={};w={}", budget.limit, WINDOW_MS / 1_000)
}

/// The remaining requests of the current window, and the seconds until it ends.
fn remaining(budget: &Budget) -> String {
    format!("\"default\";r={};t={}", budget.remaining, budget.reset_s)
}
