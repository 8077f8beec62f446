//! The second listener: for the platform that runs the server, never for clients.

use actix_web::{
    HttpResponse,
    http::header::ContentType,
    web::{self, ServiceConfig},
};

use crate::app::App;

/// Mounts `/healthz` (the process answers), `/readyz` (the database answers too) and `/metrics`.
pub fn admin(app: App) -> impl FnOnce(&mut ServiceConfig) {
    move |config| {
        let ready = app.clone();
        config
            .route(
                "/healthz",
                web::get().to(async || HttpResponse::Ok().body("alive\n")),
            )
            .route("/readyz", web::get().to(move || readiness(ready.clone())))
            .route("/metrics", web::get().to(move || metrics(app.clone())));
    }
}

async fn readiness(app: App) -> HttpResponse {
    match web::block(move || app.store.ready()).await {
        Ok(Ok(())) => HttpResponse::Ok().body("ready\n"),
        Ok(Err(error)) => not_ready(&error),
        Err(error) => not_ready(&error),
    }
}

fn not_ready(error: &dyn std::error::Error) -> HttpResponse {
    let cause = error
        .source()
        .map(|source| format!(": {source}"))
        .unwrap_or_default();
    log::warn!("not ready: {error}{cause}");
    HttpResponse::ServiceUnavailable().body("not ready\n")
}

async fn metrics(app: App) -> HttpResponse {
    match app.metrics.text() {
        Ok(text) => HttpResponse::Ok()
            .insert_header((
                "Content-Type",
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
            ))
            .body(text),
        Err(error) => {
            log::error!("the metrics could not be written: {error}");
            HttpResponse::InternalServerError()
                .insert_header(ContentType::plaintext())
                .finish()
        }
    }
}
