//! Texts that no log shows.

use serde::Deserialize;

/// A secret of the operator's file, such as the address of a webhook.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub(crate) const fn new(text: String) -> Self {
        Self(text)
    }

    /// The text.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}
