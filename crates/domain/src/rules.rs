//! Rules for accepting recordings.
//!
//! `assay-admin import` accepts all recordings. A report over HTTP is bound by its key. A key that leaks or is public can
//! therefore neither rewrite the past nor change verdicts outside of its permission.

use unicode_normalization::UnicodeNormalization as _;

use crate::{
    folding::fold,
    id::KeyId,
    ingest::IngestTerms,
    plain::is_invisible,
    recording::Recording,
    timestamp::{DAY_MS, Timestamp},
};

/// Hours after the first shard during which a run can be replaced over HTTP.
pub const OPEN_HOURS: i64 = 24;
/// Most days since a run's start, unless its key may backfill.
pub const OLDEST_DAYS: i64 = 7;
/// Minutes that a run's start may lie in the future, since clocks differ.
pub const AHEAD_MINUTES: i64 = 10;

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;

/// The rules for accepting recordings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordingRules {
    /// Accepts all, as `assay-admin import` does.
    Unrestricted,
    /// The rules of an ingest key.
    IngestKey {
        /// Whether runs may have started long ago.
        backfill: bool,
        /// Whether only runs of pull requests are accepted. Such runs do not count in verdicts.
        pull_requests_only: bool,
        /// What the key may store on a day; not checked if absent.
        budget: Option<UploadBudget>,
    },
}

/// What a key may store on a day, and what it sends now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadBudget {
    /// The key.
    pub key: KeyId,
    /// The bytes of this upload's report files, after unpacking.
    pub bytes: u64,
    /// The limits of the key.
    pub of_day: DailyLimits,
}

/// What a key may store on a day of UTC. There is no limit where it is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DailyLimits {
    /// Tests; each attempt counts.
    pub tests: Option<u64>,
    /// Bytes of report files, after unpacking.
    pub bytes: Option<u64>,
}

impl DailyLimits {
    /// Checks what the key would have stored on this day with its latest upload.
    pub fn check(self, tests: u64, bytes: u64, now: Timestamp) -> Result<(), RuleViolation> {
        let exceeded = [("tests", tests, self.tests), ("bytes", bytes, self.bytes)]
            .into_iter()
            .find_map(|(what, stored, most)| Some((what, most.filter(|most| stored > *most)?)));
        let Some((what, most)) = exceeded else {
            return Ok(());
        };
        let of_day_ms = now.unix_ms().rem_euclid(DAY_MS);
        Err(RuleViolation::DayUsedUp {
            what,
            most,
            after_s: (DAY_MS - of_day_ms).unsigned_abs().div_ceil(1_000),
        })
    }
}

impl RecordingRules {
    /// The rules of an ingest key.
    pub const fn of_key(terms: &IngestTerms) -> Self {
        Self::IngestKey {
            backfill: terms.backfill,
            pull_requests_only: terms.pull_requests_only,
            budget: None,
        }
    }

    /// The same rules with a daily budget, if they are those of a key.
    #[must_use]
    pub const fn within(self, budget: UploadBudget) -> Self {
        match self {
            Self::Unrestricted => self,
            Self::IngestKey {
                backfill,
                pull_requests_only,
                ..
            } => Self::IngestKey {
                backfill,
                pull_requests_only,
                budget: Some(budget),
            },
        }
    }

    /// Whether recordings under these rules count in the engine's verdicts.
    pub const fn counts_in_verdicts(self) -> bool {
        match self {
            Self::Unrestricted => true,
            Self::IngestKey {
                pull_requests_only, ..
            } => !pull_requests_only,
        }
    }

    /// Checks a recording for a project with this stable branch. The store repeats the check together with
    /// [`Self::check_open`] when it records.
    pub fn check(
        self,
        recording: &Recording,
        stable_branch: &str,
        now: Timestamp,
    ) -> Result<(), RuleViolation> {
        let Self::IngestKey {
            backfill,
            pull_requests_only,
            ..
        } = self
        else {
            return Ok(());
        };
        if pull_requests_only {
            check_pull_request(recording, stable_branch)?;
        }
        let age_ms = now.since_ms(recording.started_at);
        let started_at = recording.started_at;
        if age_ms > OLDEST_DAYS * DAY_MS && !backfill {
            return Err(RuleViolation::StartedTooLongAgo { started_at });
        }
        if age_ms < -AHEAD_MINUTES * MINUTE_MS {
            return Err(RuleViolation::StartsInTheFuture { started_at });
        }
        Ok(())
    }

    /// Checks that a gate may decide on a stored run, which counts in verdicts or not.
    pub const fn check_decision(self, run_counts_in_verdicts: bool) -> Result<(), RuleViolation> {
        if run_counts_in_verdicts && !self.counts_in_verdicts() {
            return Err(RuleViolation::RunOfAnotherKey);
        }
        Ok(())
    }

    /// Checks that a stored run, whose first shard arrived at `first_shard_at`, may still be changed.
    pub fn check_open(
        self,
        run_number: i32,
        first_shard_at: Timestamp,
        now: Timestamp,
    ) -> Result<(), RuleViolation> {
        match self {
            Self::IngestKey { .. } if now.since_ms(first_shard_at) >= OPEN_HOURS * HOUR_MS => {
                Err(RuleViolation::RunClosed {
                    run_number,
                    first_shard_at,
                })
            }
            Self::IngestKey { .. } | Self::Unrestricted => Ok(()),
        }
    }
}

/// Whether people may take a branch for another one: the names differ at most in case, compatible forms of characters
/// (NFKC), invisible characters, spaces and slashes around them, and the prefixes of references.
fn looks_like(branch: &str, other: &str) -> bool {
    let shown = |name: &str| {
        let visible: String = name.nfkc().filter(|c| !is_invisible(*c)).collect();
        let folded = fold(visible.trim_matches(|c: char| c.is_whitespace() || c == '/'));
        let mut name = folded.as_str();
        for prefix in ["refs/heads/", "refs/remotes/", "heads/", "origin/"] {
            name = name.strip_prefix(prefix).unwrap_or(name);
        }
        name.trim().to_owned()
    };
    shown(branch) == shown(other)
}

fn check_pull_request(recording: &Recording, stable_branch: &str) -> Result<(), RuleViolation> {
    let context = &recording.context;
    if context.pull_request_number.is_none() {
        return Err(RuleViolation::NotAPullRequest);
    }
    if context
        .branch
        .as_deref()
        .is_some_and(|branch| looks_like(branch, stable_branch))
    {
        return Err(RuleViolation::StableBranch {
            branch: stable_branch.to_owned(),
        });
    }
    Ok(())
}

/// The reason why a recording is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleViolation {
    /// The run's first shard arrived too long ago.
    #[error(
        "run {run_number} is closed: its first report arrived at {first_shard_at}, and a run can be changed over HTTP for \
         {OPEN_HOURS} hours; another report needs another run key, or `assay-admin import`"
    )]
    RunClosed {
        /// The run's number.
        run_number: i32,
        /// The arrival of its first shard.
        first_shard_at: Timestamp,
    },
    /// The run started too long ago for this key.
    #[error(
        "the run started at {started_at}, which is more than {OLDEST_DAYS} days ago; send old runs with a key that \
         `assay-admin key create-ingest --backfill` made"
    )]
    StartedTooLongAgo {
        /// The start of the run.
        started_at: Timestamp,
    },
    /// The run starts too far ahead.
    #[error(
        "the run starts at {started_at}, which is more than {AHEAD_MINUTES} minutes ahead; compare the clock of the \
         machine that wrote the report, its time zone if the times have none, and the start that was given"
    )]
    StartsInTheFuture {
        /// The start of the run.
        started_at: Timestamp,
    },
    /// The key has stored what it may store on a day.
    #[error(
        "with this report the key would have stored more than {most} {what} today, which is its limit; days are those of \
         UTC, and the operators of the server set the limit"
    )]
    DayUsedUp {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        most: u64,
        /// The seconds until the next day.
        after_s: u64,
    },
    /// The key is for pull requests only, but the run has none.
    #[error(
        "this key accepts reports of pull requests only, and the report has no pull request's number; give the number, or \
         use another key"
    )]
    NotAPullRequest,
    /// The key is for pull requests only, but another key sent the run.
    #[error(
        "this key decides only on runs that a key for pull requests only sent; use the key that sent this run"
    )]
    RunOfAnotherKey,
    /// The key is for pull requests only, but the run is of the stable branch.
    #[error(
        "this key accepts reports of pull requests only, and {branch:?} is the stable branch; use another key"
    )]
    StableBranch {
        /// The stable branch.
        branch: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_that_looks_like_the_stable_one_is_taken_for_it() {
        for branch in [
            "main",
            "MAIN",
            "ma\u{200b}in",
            "refs/heads/main",
            "origin/main",
            " main ",
            "ma\u{fe0f}in",
            "ma\u{fffc}in",
            "main/",
            "ｍａｉｎ",
            "𝐦𝐚𝐢𝐧",
        ] {
            assert!(looks_like(branch, "main"), "{branch:?}");
        }
        for branch in ["main2", "maintenance", "feature/main", "ma in", "mаin2"] {
            assert!(!looks_like(branch, "main"), "{branch:?}");
        }
        assert!(looks_like("main", "Main"));
    }

    #[test]
    fn a_day_is_used_up_beyond_either_limit_until_the_next_day_of_utc() {
        let limits = DailyLimits {
            tests: Some(10),
            bytes: Some(100),
        };
        let now = Timestamp::from_unix_ms(3 * DAY_MS - 1_500);
        assert_eq!(limits.check(10, 100, now), Ok(()));
        assert_eq!(DailyLimits::default().check(u64::MAX, u64::MAX, now), Ok(()));
        for (tests, bytes, what) in [(11, 100, "tests"), (10, 101, "bytes")] {
            let refused = limits.check(tests, bytes, now).unwrap_err();
            assert!(
                matches!(refused, RuleViolation::DayUsedUp { what: of, after_s: 2, .. } if of == what),
                "{refused:?}"
            );
        }
    }
}
