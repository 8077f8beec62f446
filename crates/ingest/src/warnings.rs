//! Warnings about values that are probably mistakes.

use std::{collections::HashSet, fmt};

use assay_domain::{
    project::NAME_CHARS,
    recording::{ImportReceipt, Recording, RunContext, Sender},
    renames::{Renames, RenamesFile},
    test_names::TestNameRef,
    timestamp::Timestamp,
};

use crate::choice::{Choice, Origin};

/// The longest retention of any plan, in days.
const LONGEST_RETENTION_DAYS: i64 = 90;
/// The tolerated clock difference before a run counts as in the future.
const CLOCK_SKEW_MS: i64 = 5 * 60 * 1_000;

/// A warning for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Warning {
    /// The branch is unknown.
    NoBranch,
    /// The commit is unknown.
    NoCommit,
    /// Any other warning, in one sentence.
    Other(String),
}

impl Warning {
    /// Whether the warning applies to a run with this context, which may have values of an earlier report.
    pub(crate) fn applies_to(&self, run: &RunContext) -> bool {
        match self {
            Self::NoBranch => run.branch.is_none(),
            Self::NoCommit => run.revision().is_none(),
            Self::Other(_) => true,
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoBranch => {
                "The branch is unknown, so the run does not count as one of the stable branch: give --branch."
            }
            Self::NoCommit => {
                "The commit is unknown, so a test that passes and fails on one commit is not recognised: give --commit."
            }
            Self::Other(sentence) => sentence,
        })
    }
}

/// A warning if other parts of the run have some of the same tests, and nothing tells how they relate.
pub(crate) fn of_standing(recording: &Recording, imported: &ImportReceipt) -> Option<String> {
    let beside = &imported.standing.beside;
    let is_other = |sender: &&Sender| !sender.is_same_instance(&recording.sender);
    let sender = beside.iter().find(is_other).or(beside.first())?;
    let by = match sender {
        sender if !is_other(&sender) => "this job".to_owned(),
        Sender {
            job: None,
            runner: None,
            ..
        } => "another job".to_owned(),
        other => other.to_string(),
    };
    let place = match recording.shard {
        Some(shard) => format!("shard {} of run {}", shard.index, imported.run_number),
        None => format!("run {}", imported.run_number),
    };
    let kept = match (&sender.report_path, &recording.sender.report_path) {
        (Some(other), Some(own)) if own != other => format!("{other} and {own} are both kept"),
        (Some(_) | None, Some(_) | None) => "Both are kept".to_owned(),
    };
    Some(format!(
        "In {place}, {by} also stored results of some of these tests. {kept}, and a test that failed in either is failed. \
         If they are different jobs or legs of a matrix, give each a --suite; if a command was repeated, give the later one \
         --attempt 2."
    ))
}

/// Warnings about claims of the commit's message that name no test.
pub(crate) fn of_claims(imported: &ImportReceipt) -> impl Iterator<Item = String> {
    imported.standing.unknown_claims.iter().map(|name| {
        format!(
            "The commit's message has \"Assay-Fixes: {}\", but no test of the project has this name. Write the stored name of \
             one test in a line.",
            assay_reports::shown_name(name)
        )
    })
}

/// Most warnings about the renames file.
const MOST_OF_RENAMES: usize = 20;

/// Warnings about the lines of the renames file that are left out, and those that are ignored for this report.
pub(crate) fn of_renames(recording: &Recording) -> Vec<String> {
    let Some(file) = recording
        .checkout
        .renames
        .as_ref()
        .filter(|file| !file.text.is_empty())
    else {
        return Vec::new();
    };
    let renames = Renames::parse(&file.text);
    let shown = recording.tests.iter().map(|test| TestNameRef {
        file_path: test
            .shown_as
            .file_path
            .as_deref()
            .or(test.test.file_path.as_deref()),
        ..test.test.borrowed()
    });
    let tests: HashSet<TestNameRef<'_>> = shown.collect();
    let problems = renames.problems().iter().map(ToString::to_string);
    let contradictions = renames.contradictions(&tests);
    let all = problems.chain(contradictions.iter().map(ToString::to_string));
    all.take(MOST_OF_RENAMES)
        .map(|sentence| format!("{}: {sentence}.", RenamesFile::PATH))
        .collect()
}

/// One warning for each suspicious value of an import.
pub(crate) fn of(recording: &Recording, choices: &[Choice], now: Timestamp) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let key_of_content = choices
        .iter()
        .any(|choice| choice.what == "run key" && choice.from == Origin::Content);
    if recording.shard.is_some() && key_of_content {
        warnings.push(Warning::Other(
            "This shard has no run key, so it is stored as a separate run: give all shards of a run the same --run-key."
                .to_owned(),
        ));
    }
    let started_at = recording.started_at;
    if started_at.since_ms(now) > CLOCK_SKEW_MS {
        warnings.push(Warning::Other(format!(
            "The run starts in the future ({started_at}); no route shows it before then."
        )));
    }
    if started_at < now.plus_days(-LONGEST_RETENTION_DAYS) {
        warnings.push(Warning::Other(format!(
            "The run started on {started_at}, past the {LONGEST_RETENTION_DAYS} days of the longest retention: no route shows it."
        )));
    }
    let context = &recording.context;
    if context.branch.is_none() {
        warnings.push(Warning::NoBranch);
    }
    let branch = choices.iter().find(|choice| choice.what == "branch");
    if let (Some(branch), Some(stored)) = (branch, &context.branch)
        && branch.value != *stored
    {
        warnings.push(Warning::Other(format!(
            "The branch has {} characters and {NAME_CHARS} can be filtered by; it is stored as {stored}.",
            branch.value.chars().count(),
        )));
    }
    if context.revision().is_none() {
        warnings.push(Warning::NoCommit);
    }
    warnings
}
