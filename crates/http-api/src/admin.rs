//! The operators' listener, for the platform that runs the server.

use std::{sync::Arc, time::Duration};

use actix_web::{
    HttpResponse,
    http::header::{self, Accept, ContentType},
    web::{self, ServiceConfig},
};
use assay_http::{AdmissionControl, Problem, ProjectMetrics, TimeLimits, with_causes};

use crate::{app::App, exposition::Exposition, reference};

/// Time limits of the readiness check. A platform waits a few seconds for it.
const READINESS: TimeLimits = TimeLimits {
    waiting: Duration::from_secs(1),
    answering: Duration::from_secs(3),
};

/// Mounts `/healthz` (the process answers), `/readyz` (the database answers, too), `/metrics`, `/metrics/projects`, and the
/// description of the API: `/openapi.json` and, for people, `/docs`. `/` redirects to `/docs`.
pub fn admin(app: App) -> impl FnOnce(&mut ServiceConfig) {
    move |config| {
        let (ready, figures) = (app.clone(), app.clone());
        let admission = Arc::new(AdmissionControl::new(1, READINESS));
        let scrapes = Arc::new(AdmissionControl::new(1, READINESS));
        config
            .route(
                "/healthz",
                web::get().to(async || HttpResponse::Ok().body("alive\n")),
            )
            .route(
                "/readyz",
                web::get().to(move || readiness(ready.clone(), Arc::clone(&admission))),
            )
            .route(
                "/metrics",
                web::get().to(move |accept: web::Header<Accept>| metrics(app.clone(), accept.into_inner())),
            )
            .route(
                "/metrics/projects",
                web::get().to(move |accept: web::Header<Accept>| {
                    project_metrics(figures.clone(), Arc::clone(&scrapes), accept.into_inner())
                }),
            )
            .route("/openapi.json", web::get().to(document))
            .route("/docs", web::get().to(page))
            .service(web::redirect("/", "/docs"));
    }
}

async fn readiness(app: App, admission: Arc<AdmissionControl<()>>) -> HttpResponse {
    match admission.run((), move || app.store.ready()).await {
        Ok(Ok(())) => HttpResponse::Ok().body("ready\n"),
        Ok(Err(error)) => not_ready(&error),
        Err(rejected) => not_ready(&Problem::from(rejected)),
    }
}

fn not_ready(error: &dyn std::error::Error) -> HttpResponse {
    log::warn!("not ready: {}", with_causes(error));
    HttpResponse::ServiceUnavailable().body("not ready\n")
}

async fn document() -> HttpResponse {
    HttpResponse::Ok()
        .insert_header(ContentType::json())
        .body(reference::DOCUMENT)
}

async fn page() -> HttpResponse {
    HttpResponse::Ok()
        .insert_header(ContentType::html())
        .insert_header((header::CONTENT_SECURITY_POLICY, reference::PAGE_POLICY))
        .body(reference::PAGE)
}

async fn metrics(app: App, accept: Accept) -> HttpResponse {
    let (connections, reads) = (app.store.connections(), app.store.reads_by_node());
    exposed(&accept, app.metrics.open_metrics(connections, reads))
}

/// The figures of projects. They need the database, so they are apart from the metrics of the process.
async fn project_metrics(app: App, admission: Arc<AdmissionControl<()>>, accept: Accept) -> HttpResponse {
    match admission.run((), move || app.store.judged_figures()).await {
        Ok(Ok(projects)) => exposed(&accept, ProjectMetrics::text(&projects)),
        Ok(Err(error)) => not_ready(&error),
        Err(rejected) => not_ready(&Problem::from(rejected)),
    }
}

fn exposed(accept: &Accept, text: Result<String, std::fmt::Error>) -> HttpResponse {
    let format = Exposition::negotiate(accept);
    match text {
        Ok(text) => HttpResponse::Ok()
            .insert_header((header::CONTENT_TYPE, format.content_type()))
            .insert_header((header::VARY, "Accept"))
            .body(format.convert(text)),
        Err(error) => {
            log::error!("the metrics could not be written: {error}");
            HttpResponse::InternalServerError()
                .insert_header(ContentType::plaintext())
                .finish()
        }
    }
}
