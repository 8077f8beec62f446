//! Access control: read keys with their plans, ingest keys, and rate limits.
//!
//! A request to the read API passes [`limit::RateLimiter::admit`], then [`check::PresentedKey::of_header`] (which
//! rejects malformed keys without a look-up), then [`directory::Directory::check`]. The latter returns the
//! [`check::Grant`] for all further reads. Uploads and tool calls look the key up first and count afterwards. Pages
//! read the key from the session and count before the look-up.

pub mod check;
pub mod directory;
pub mod ingest;
pub mod key;
pub mod lifetime;
pub mod limit;
pub mod usage;
