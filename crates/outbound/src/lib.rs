//! The HTTP client for services that the operator names, targets of messages and issuers of identity, and the files that
//! name them.
//!
//! Each connection goes to an address of an operator's file or table: encrypted, without redirections and proxies, and to
//! no private address that the operator does not name. Clients of other servers share its authorities only.

mod addresses;
mod certificates;
mod client;
#[cfg(unix)]
mod file;

pub use addresses::Allowed;
pub use certificates::problem as certificate_problem;
pub use client::{agent, checked_host, reason, trusted_authorities};
#[cfg(unix)]
pub use file::{FileError, read_file, read_secret_file};
