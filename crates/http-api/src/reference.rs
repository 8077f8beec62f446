//! The description of the API, for programs and for people.
//!
//! The tests of `openapi` generate both from the code's types, and fail if either is out of date.

/// The OpenAPI document.
pub(crate) const DOCUMENT: &str = include_str!("../../../docs/openapi.json");

/// The description as a page without external resources. The page works without its script.
pub(crate) const PAGE: &str = include_str!("../../../docs/reference.html");

/// The page's content security policy: only its own styles, and its own script by its hash.
pub(crate) const PAGE_POLICY: &str = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-epVDKAZKhsgMisbB3MjWrPHa8GZOEWJ1ovS/JOyX55s='";
