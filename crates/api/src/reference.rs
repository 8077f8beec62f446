//! The description of the API, for programs and for people.
//!
//! The tests of `openapi` generate both from the code's types, and fail if either is out of date.

/// The OpenAPI document.
pub(crate) const DOCUMENT: &str = include_str!("../../../docs/openapi.json");

/// The same as a self-contained page, without script and network.
pub(crate) const PAGE: &str = include_str!("../../../docs/reference.html");

/// The page's content security policy: only its own styles.
pub(crate) const PAGE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";
