//! Access control: read keys with their plans, ingest keys, and rate limits.
//!
//! A request passes [`limit::RateLimiter::admit`], then [`check::PresentedKey::of_header`] (no look-up for what
//! cannot be a read key), then [`directory::Directory::check`], which yields the [`check::Grant`] that everything
//! else is read on behalf of.

pub mod check;
pub mod directory;
pub mod ingest;
pub mod key;
pub mod lifetime;
pub mod limit;
pub mod usage;
