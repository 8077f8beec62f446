//! For development only: a database per test, the real programs, an HTTP client.
//!
//! [`TestDatabase::new`] creates an empty, migrated database for the test and drops it at the end. [`Server::start`]
//! runs the real server over it, [`Cli`] the real command lines. [`World::new`] creates an organization, a project and a
//! read key in it. [`ServedWorld::new`] adds a server.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "only tests use this crate; they read the environment and fail by panics"
)]

mod authority;
mod browser;
mod cluster;
mod command_line;
mod database;
mod http;
mod issuer;
mod logins;
mod program;
pub mod pty;
mod receiver;
mod server;
mod smtp_receiver;
pub mod timed_junit;
mod wait;
pub mod wire;
mod world;

pub use authority::Authority;
pub use browser::{Browser, Scripts};
pub use command_line::check_command_line;
pub use database::{TestDatabase, execute, insert_results, texts, update_results};
pub use http::{Client, Response};
pub use issuer::{Behaviour, Issuer, Signer, unix_s};
pub use logins::Logins;
pub use program::{Cli, closed_pipe, notify_file, program, started_by, stderr_text};
pub use receiver::{Answer, Receiver, Request};
pub use server::{Server, free_address};
pub use smtp_receiver::SmtpReceiver;
pub use wait::{PATIENCE, assert_contains, wait_until};
pub use world::{ServedWorld, Template, World, junit, rfc3339, text};
