//! The description of the API, for programs and for people.
//!
//! Both are written from the code's own types by the tests of `openapi`, which fail when either is out of date.

/// The OpenAPI document.
pub(crate) const DOCUMENT: &str = include_str!("../../../docs/openapi.json");

/// The same as a page that needs nothing else: no script, no network.
pub(crate) const PAGE: &str = include_str!("../../../docs/reference.html");

/// What the page may load: nothing but its own styles.
pub(crate) const PAGE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";
