//! Access control: read keys with their plans, ingest keys, and rate limits.
//!
//! A request passes [`limit::RateLimiter::admit`], then [`check::PresentedKey::of_header`] (which rejects malformed
//! keys without a look-up), then [`directory::Directory::check`]. The latter returns the [`check::Grant`] for all
//! further reads.

pub mod check;
pub mod directory;
pub mod ingest;
pub mod key;
pub mod lifetime;
pub mod limit;
pub mod usage;
