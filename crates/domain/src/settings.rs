//! A project's configuration in the API.

use serde::Serialize;

use crate::vocabulary::vocabulary;

vocabulary!(
    /// An event that the chat integration reports.
    ChatEvent {
        /// A run of the stable branch failed.
        RunFailed = "run_failed",
        /// A run of the stable branch passed after a failed one.
        RunRecovered = "run_recovered",
        /// A test became flaky.
        TestFlaky = "test_flaky",
        /// A test became broken.
        TestBroken = "test_broken",
        /// An error signature occurred for the first time.
        NewError = "new_error",
    }
);

/// The `settings` object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// The stable branch.
    pub stable_branch: String,
    /// The days of results that the organization's plan shows.
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub retention_days: i64,
    /// The chat integration.
    pub chat: Chat,
    /// The integration with the code host.
    pub repohost: Repohost,
    /// Whether the names of tests are stored without the parts that change from run to run, such as addresses.
    pub stable_names: bool,
}

/// The chat integration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Chat {
    /// Whether it is configured.
    pub configured: bool,
    /// The events that it reports; empty if it is not configured.
    pub events: Vec<ChatEvent>,
}

/// The integration with the code host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Repohost {
    /// Whether pull requests get a comment.
    pub pr_comments_enabled: bool,
}
