//! The description of the API, for programs and for people.
//!
//! The tests of `openapi` generate both from the code's types, and fail if either is out of date.

/// The OpenAPI document.
pub(crate) const DOCUMENT: &str = include_str!("../../../docs/openapi.json");

/// The same as a page that needs nothing else: no network, and no script but its own, which it does without.
pub(crate) const PAGE: &str = include_str!("../../../docs/reference.html");

/// What the page may load: nothing but its own styles and its own script, which is known by its hash.
pub(crate) const PAGE_POLICY: &str = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-epVDKAZKhsgMisbB3MjWrPHa8GZOEWJ1ovS/JOyX55s='";
