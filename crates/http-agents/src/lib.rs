//! Tools for coding agents over the Model Context Protocol: `POST /mcp`.
//!
//! An [`Endpoint`] is mounted on the listener of the pages. `route` checks the key, `server` implements the protocol,
//! and `tools` has one file per tool. `budget` fits every answer into the bytes that the call allows.

mod arguments;
mod budget;
mod error;
mod route;
mod server;
mod text;
mod tools;

pub use self::route::{Endpoint, PublicAddress};
