//! Warnings about values that are probably mistakes.

use assay_domain::{
    project::NAME_CHARS,
    recording::{Recording, RunContext},
    timestamp::Timestamp,
};

use crate::choice::{Choice, Origin};

/// The longest retention of any plan, in days.
const LONGEST_RETENTION_DAYS: i64 = 90;
/// The tolerated clock difference before a run counts as in the future.
const CLOCK_SKEW_MS: i64 = 5 * 60 * 1_000;
const NO_BRANCH: &str =
    "The branch is unknown, so the run does not count as one of the stable branch: give --branch.";
const NO_COMMIT: &str =
    "The commit is unknown, so a test that passes and fails on one commit is not recognised: give --commit.";

/// One warning for each suspicious value of an import.
pub(crate) fn of(recording: &Recording, choices: &[Choice], now: Timestamp) -> Vec<String> {
    let mut warnings = Vec::new();
    let key_of_content = choices
        .iter()
        .any(|choice| choice.what == "run key" && choice.from == Origin::Content);
    if recording.shard.is_some() && key_of_content {
        warnings.push(
            "This shard has no run key, so it is a run of its own: give all shards of a run the same --run-key."
                .to_owned(),
        );
    }
    let started_at = recording.started_at;
    if started_at.since_ms(now) > CLOCK_SKEW_MS {
        warnings.push(format!(
            "The run starts in the future ({started_at}); no route shows it before then."
        ));
    }
    if started_at < now.plus_days(-LONGEST_RETENTION_DAYS) {
        warnings.push(format!(
            "The run started on {started_at}, past the {LONGEST_RETENTION_DAYS} days of the longest retention: no route shows it."
        ));
    }
    let context = &recording.context;
    if context.branch.is_none() {
        warnings.push(NO_BRANCH.to_owned());
    }
    let branch = choices.iter().find(|choice| choice.what == "branch");
    if let (Some(branch), Some(kept)) = (branch, &context.branch)
        && branch.value != *kept
    {
        warnings.push(format!(
            "The branch has {} characters and {NAME_CHARS} can be filtered by; it is stored as {kept}.",
            branch.value.chars().count(),
        ));
    }
    if context.revision().is_none() {
        warnings.push(NO_COMMIT.to_owned());
    }
    warnings
}

/// Whether a warning is also true of a run with this context: an earlier report may have said what this one does not.
pub(crate) fn concerns(warning: &str, run: &RunContext) -> bool {
    match warning {
        NO_BRANCH => run.branch.is_none(),
        NO_COMMIT => run.revision().is_none(),
        _ => true,
    }
}
