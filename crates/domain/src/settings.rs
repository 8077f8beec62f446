//! A project's configuration in the API.

use std::str::FromStr;

use serde::Serialize;

use crate::{release_branch::BranchPattern, vocabulary::vocabulary};

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
        /// More tests are flaky than the budget of the project allows.
        FlakeBudgetExceeded = "flake_budget_exceeded",
        /// As few tests are flaky again as the budget of the project asks for.
        FlakeBudgetMet = "flake_budget_met",
        /// The stable branch shows that a fix of a flaky test holds.
        FixHeld = "fix_held",
        /// A test failed with an error of before its fix.
        FixDidNotHold = "fix_did_not_hold",
        /// Most probably one commit broke what fails on the stable branch.
        RevertCandidate = "revert_candidate",
    }
);

impl ChatEvent {
    /// Those about fixes of tests. They change no verdict.
    pub const OF_FIXES: [Self; 2] = [Self::FixHeld, Self::FixDidNotHold];
}

/// The `settings` object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// The stable branch.
    pub stable_branch: String,
    /// The stable branches beside it, as names or patterns with one `*`.
    pub release_branches: Vec<BranchPattern>,
    /// The days of results that the organization's plan shows.
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub retention_days: i64,
    /// Messages to people.
    pub chat: Chat,
    /// The integration with the code host.
    pub repohost: Repohost,
    /// Whether the names of tests are stored without the parts that change from run to run, such as addresses.
    pub stable_names: bool,
    /// How many flaky tests the project may have; null without a budget.
    pub flake_budget: Option<FlakeBudgetState>,
}

/// How many flaky tests a project may have. Between the two numbers it stays as it is, so that a test that is flaky now and
/// then sends no messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FlakeBudget {
    /// With more flaky tests the budget is exceeded.
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub most: i32,
    /// With this many or fewer it is met again.
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub met_at: i32,
}

impl FlakeBudget {
    /// Whether this many flaky tests exceed the budget, if it `was` exceeded before or not.
    pub const fn is_exceeded(self, was: bool, flaky: i32) -> bool {
        flaky > self.most || was && flaky > self.met_at
    }
}

/// The error of text that is no flake budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected two numbers of tests such as 20,10, the second one at most the first")]
pub struct BadFlakeBudget;

impl FromStr for FlakeBudget {
    type Err = BadFlakeBudget;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |text: &str| text.parse().ok().filter(|number| *number >= 0);
        let numbers = text
            .split_once(',')
            .and_then(|(most, met_at)| number(most).zip(number(met_at)));
        numbers
            .filter(|(most, met_at)| met_at <= most)
            .map(|(most, met_at)| Self { most, met_at })
            .ok_or(BadFlakeBudget)
    }
}

/// A flake budget, and whether it is exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FlakeBudgetState {
    /// The budget.
    #[serde(flatten)]
    pub budget: FlakeBudget,
    /// Whether it is exceeded, as of the stored verdicts.
    pub is_exceeded: bool,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_keeps_its_state_between_its_numbers() {
        let budget: FlakeBudget = "20,10".parse().unwrap();
        let states = [20, 21, 20, 11, 10, 11, 20, 21]
            .into_iter()
            .scan(false, |was, flaky| {
                *was = budget.is_exceeded(*was, flaky);
                Some(*was)
            });
        assert_eq!(
            states.collect::<Vec<_>>(),
            [false, true, true, true, false, false, false, true]
        );
        for bad in ["", "20", "10,20", "-1,-2", "a,b", "1,2,3"] {
            assert_eq!(bad.parse::<FlakeBudget>(), Err(BadFlakeBudget), "{bad}");
        }
    }
}
