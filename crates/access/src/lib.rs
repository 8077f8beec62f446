//! Access control: read keys with their plans, sessions, ingest keys and tokens that stand for them, and rate limits.
//!
//! [`check::PresentedKey::of_header`] rejects malformed keys without a look-up. [`directory::Directory::check`] returns
//! the [`check::Grant`] for all further reads. [`limit::RateLimiter::admit`] counts requests. The listeners call them
//! through one function, `Reception::receive` in `crates/http`, which also records the key's use
//! ([`usage::KeyUsage`]).

pub mod check;
pub mod directory;
pub mod limit;
pub mod session;
pub mod token;
pub mod usage;
