//! The HTTP layer: a read-only JSON API under `/api/v1`.
//!
//! [`configure`] mounts the routes of [`ROUTES`] on an actix application and [`admin()`] the routes of the operators'
//! listener. Every request goes through one function (`dispatch`), which defines the order of the checks: rate limit,
//! key, plan, route and method, parameters, project, resource. A request makes one hop to a blocking thread, and
//! another one before it for a key that this process does not know. The handlers in `routes` are plain functions that
//! run there.

mod admin;
mod answer;
mod app;
mod body;
mod call;
mod cors;
mod dispatch;
mod error;
mod exposition;
mod memory;
mod metrics;
#[cfg(test)]
mod openapi;
mod reference;
mod request;
mod routes;

pub use self::{
    admin::admin,
    app::App,
    cors::{BadOrigin, Origins},
    routes::{BASE, ROUTES, Route, configure},
};
