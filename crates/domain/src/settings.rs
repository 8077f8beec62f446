//! A project's configuration in the API.

use serde::Serialize;

use crate::vocabulary::vocabulary;

vocabulary!(
    /// An event that messages report.
    ChatEvent {
        /// A suite began to fail on the stable branch.
        RunFailed = "run_failed",
        /// A suite passes on the stable branch again.
        RunRecovered = "run_recovered",
        /// A test became flaky.
        TestFlaky = "test_flaky",
        /// A test became broken.
        TestBroken = "test_broken",
        /// A flaky or broken test became healthy.
        TestResolved = "test_resolved",
        /// An error signature occurred for the first time, on the stable branch.
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
    /// Messages to people.
    pub chat: Chat,
    /// The integration with the code host.
    pub repohost: Repohost,
    /// Whether the names of tests are stored without the parts that change from run to run, such as addresses.
    pub stable_names: bool,
}

/// Messages to people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Chat {
    /// Whether messages are sent: the project has events for them, and `assay-notify` has a target for it.
    pub configured: bool,
    /// The events that messages report: those of the project for which a target exists. Empty without a target.
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
