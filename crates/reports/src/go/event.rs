//! An event of `go test -json`.

use std::borrow::Cow;

use serde::Deserialize;

/// One line. Absent fields are empty.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Event<'a> {
    #[serde(borrow)]
    pub(super) action: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) time: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) package: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) test: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) output: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) import_path: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) failed_build: Cow<'a, str>,
    /// Seconds.
    #[serde(default)]
    pub(super) elapsed: Option<f64>,
}
