//! The HTTP layer: a read-only JSON API under `/api/v1`.
//!
//! [`configure`] mounts the routes of [`ROUTES`] on an actix application and [`admin()`] the routes of the operators'
//! listener. Every request goes through one function (`dispatch`) and the reception of the listeners, which define the
//! order of the checks: rate limit, key, plan, route and method, parameters, project, resource. The handlers in `routes`
//! are plain functions on a blocking thread.

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
mod reference;
mod request;
mod route;
mod routes;
#[cfg(test)]
mod tests;

pub use self::{
    admin::admin,
    app::App,
    cors::{BadOrigin, Origins},
    route::{BASE, Route},
    routes::{ROUTES, configure, configure_own_paths},
};
