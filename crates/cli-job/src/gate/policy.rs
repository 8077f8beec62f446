//! Which failures of a run are excused, and whether the run passes.

use std::collections::BTreeSet;

use assay_answers::failures::PROVEN_FROM;
use assay_cli_terminal::output;
use assay_domain::{
    cause::{Action, Cause},
    decision::{ExcusedTest, GateDecision, GateOutcome, LONGEST_REASON},
    id::RunId,
    timestamp::Timestamp,
};
use assay_flakiness::any_mine;
use assay_reports::without_package;
use glob::Pattern;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::gate::{
    burn_in::BurnInResults,
    excuses::Excuse,
    judged::{JudgedFailure, JudgedRun},
    reruns::Reruns,
};

/// The minimum number of failed tests with one error that form a crowd.
pub(super) const CROWD: u32 = 10;

/// The rules that decide which failures are excused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rules {
    /// The probability of a breakage by this branch, from 0 to 1, from which the gate does not pass.
    pub risk: f64,
    /// How many failed tests may be excused.
    pub most_excused: usize,
    /// Files of the change, relative to the checkout.
    pub changed: BTreeSet<String>,
    /// Tests that are never excused, by name or file.
    #[serde(serialize_with = "as_texts", deserialize_with = "of_texts")]
    pub never: Vec<Pattern>,
    /// Whether tests may be excused that are broken on the stable branch.
    pub allow_broken: bool,
    /// A test whose first known failure is older than this many seconds is not excused.
    pub expire_after_s: Option<u64>,
    /// Failures that the team accepts until a day.
    pub excuses: Vec<Excuse>,
    /// The time of the decision.
    pub now: Timestamp,
}

fn as_texts<S: Serializer>(patterns: &[Pattern], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(patterns.iter().map(Pattern::as_str))
}

fn of_texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Pattern>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?.into_iter();
    let patterns = texts.map(|text| Pattern::new(&text).map_err(D::Error::custom));
    patterns.collect()
}

/// Why a failed test is not excused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// This branch probably broke it.
    Mine,
    /// No cause is probable enough.
    Unclear,
    /// It is broken on the stable branch.
    Broken,
    /// It ran too rarely elsewhere.
    New,
    /// Many tests failed with the same error.
    Crowd,
    /// Its file is part of the change.
    Changed,
    /// `--never` names it.
    Never,
    /// It has been failing for too long.
    Expired,
}

impl Refusal {
    /// The word of the JSON answer.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Mine => "mine",
            Self::Unclear => "unclear",
            Self::Broken => "broken",
            Self::New => "new",
            Self::Crowd => "crowd",
            Self::Changed => "changed",
            Self::Never => "never",
            Self::Expired => "expired",
        }
    }

    /// The reason as one sentence, without a full stop.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Mine => "this change may have broken it",
            Self::Unclear => "its cause is not clear enough",
            Self::Broken => "it is broken on the stable branch; --allow-broken excuses it",
            Self::New => "it is new: it ran in fewer than 5 runs without this change",
            Self::Crowd => "10 or more tests failed with the same error",
            Self::Changed => "its file is part of the change",
            Self::Never => "--never names it",
            Self::Expired => "it failed first longer ago than --expire-after",
        }
    }
}

/// The decision on a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The outcome.
    pub outcome: GateOutcome,
    /// Why the run is not valid, one sentence each.
    pub problems: Vec<String>,
    /// What would decide, one sentence each, if the run is not decided.
    pub open: Vec<String>,
    /// The failed tests, each with why it is not excused.
    pub failed: Vec<(JudgedFailure, Option<Refusal>)>,
    /// The reruns on which it is based; none if no test ran again.
    pub reran: Option<Reran>,
    /// What the burn-in found; none without one.
    pub burn_in: Option<BurnInResults>,
    /// The judgement that it is based on.
    pub judged: JudgedRun,
    /// The reruns that led to the judgement.
    pub reruns: Option<Reruns>,
}

/// The reruns before a decision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reran {
    /// The tests that ran again.
    pub tests: u32,
    /// How often the runner ran for them.
    pub times: u32,
    /// The seconds that this took.
    pub seconds: f64,
    /// P(this branch broke at least one of the failed tests) afterwards.
    pub mine: f64,
}

impl Decision {
    /// The decision on a run, or on one report of it, as a server stores it.
    pub fn to_record(&self, run_id: RunId, shard_id: Option<RunId>) -> GateDecision {
        let excused = self.failed.iter().filter(|(_, refusal)| refusal.is_none());
        GateDecision {
            run_id,
            shard_id,
            outcome: self.outcome,
            failed: u32::try_from(self.failed.len()).unwrap_or(u32::MAX),
            excused: excused
                .map(|(failure, _)| ExcusedTest {
                    test_name: failure.test_name.clone(),
                    file_path: failure.file_path.clone(),
                    cause: failure.cause,
                    mine: failure.mine,
                    reason: failure.explanation.chars().take(LONGEST_REASON).collect(),
                })
                .collect(),
        }
    }

    /// Adds what a burn-in found. The run does not pass if a test is newly flaky.
    pub fn add_burn_in(&mut self, results: BurnInResults) {
        let newly_flaky = results.failed.iter().filter(|failure| failure.is_newly_flaky);
        let problems: Vec<String> = newly_flaky
            .map(|failure| format!("Newly flaky: {}", failure.in_words()))
            .collect();
        if !problems.is_empty() {
            self.outcome = GateOutcome::Blocked;
            self.problems.extend(problems);
        }
        self.burn_in = Some(results);
    }

    /// Whether reruns could change the decision: nothing but probabilities speaks against the failed tests.
    pub fn may_run_again(&self) -> bool {
        let is_open = |(failure, refusal): &(JudgedFailure, Option<Refusal>)| match refusal {
            None | Some(Refusal::Mine | Refusal::Unclear) => true,
            Some(Refusal::New) => failure.runs_elsewhere > 0 && !failure.cleared,
            Some(Refusal::Broken | Refusal::Crowd | Refusal::Changed | Refusal::Never | Refusal::Expired) => {
                false
            }
        };
        !self.outcome.passes() && self.problems.is_empty() && self.failed.iter().all(is_open)
    }

    /// The number of excused failures.
    pub fn excused(&self) -> usize {
        self.failed
            .iter()
            .filter(|(_, refusal)| refusal.is_none())
            .count()
    }
}

/// Decides on a run.
pub fn decide(run: &JudgedRun, rules: &Rules) -> Decision {
    let mut failed: Vec<(JudgedFailure, Option<Refusal>)> = run
        .failed()
        .map(|failure| (failure.clone(), rules.refusal(failure)))
        .collect();
    let mine = rules.excuse_until(&mut failed).unwrap_or(run.mine);
    let excused = failed.iter().filter(|(_, refusal)| refusal.is_none()).count();
    let mut problems = Vec::new();
    if let Some(reason) = &run.incomplete {
        problems.push(format!("The report is not complete: {reason}"));
    }
    if run.tests == 0 {
        problems.push("The report holds no test".to_owned());
    }
    if run.total > run.failures.len() {
        problems.push(format!(
            "{} tests failed or recovered, of which only {} are explained",
            run.total,
            run.failures.len()
        ));
    }
    problems.extend(run.lacking.clone());
    let counted = counted_once(failed.iter().filter(|(_, refusal)| refusal.is_none()));
    if counted > rules.most_excused {
        problems.push(format!(
            "{} would be excused, more than the {} of --max-excused",
            output::count(excused, "failed test"),
            rules.most_excused
        ));
    }
    let all_excused = excused == failed.len();
    let outcome = if !problems.is_empty() {
        GateOutcome::Blocked
    } else if failed.is_empty() {
        GateOutcome::Clean
    } else if all_excused && mine < rules.risk {
        GateOutcome::Excused
    } else {
        GateOutcome::Blocked
    };
    let mut decision = Decision {
        outcome,
        problems,
        open: Vec::new(),
        failed,
        reran: None,
        burn_in: None,
        judged: run.clone(),
        reruns: None,
    };
    if decision.may_run_again() && run.action != Action::Block {
        decision.outcome = GateOutcome::Rerun;
    }
    decision
}

/// The number of excused failures for `--max-excused`. A mass failure that reruns cleared has one cause and counts once.
fn counted_once<'a>(excused: impl Iterator<Item = &'a (JudgedFailure, Option<Refusal>)>) -> usize {
    let is_one = |(failure, _): &&(JudgedFailure, _)| failure.cleared && failure.in_mass_failure;
    let (cleared, others): (Vec<_>, Vec<_>) = excused.partition(is_one);
    others.len() + cleared.len().min(1)
}

impl Rules {
    /// Excuses the failures that an excuse with a date covers. Returns the probability that this change broke any of the
    /// others; none if no failure is covered.
    fn excuse_until(&self, failed: &mut [(JudgedFailure, Option<Refusal>)]) -> Option<f64> {
        let (mut any, mut others) = (false, Vec::new());
        for (failure, refusal) in failed {
            let may_be_excused = match refusal {
                None | Some(Refusal::Never | Refusal::Changed | Refusal::Expired) => false,
                Some(Refusal::Mine | Refusal::Unclear | Refusal::Broken | Refusal::New | Refusal::Crowd) => {
                    true
                }
            };
            let excuses = self.excuses.iter().filter(|_| may_be_excused);
            let of_test = excuses.filter(|excuse| excuse.is_about(failure));
            let judged = of_test.map(|excuse| (excuse, excuse.refusal(failure, self.now)));
            match judged.min_by_key(|(excuse, refusal)| (refusal.is_some(), !excuse.has_error_of(failure))) {
                Some((excuse, None)) => {
                    any = true;
                    failure.explanation = excuse.sentence();
                    *refusal = None;
                    continue;
                }
                Some((Excuse { until, owner, .. }, Some(why))) => {
                    failure.explanation += &format!("; excused until {until} by {owner}, but {why}");
                }
                None => {}
            }
            others.push(failure.mine_and_shared());
        }
        any.then(|| any_mine(others))
    }

    /// Why a failed test is not excused.
    fn refusal(&self, failure: &JudgedFailure) -> Option<Refusal> {
        let file = failure.file_path.as_deref();
        let names = |pattern: &Pattern| {
            pattern.matches(&failure.test_name) || file.is_some_and(|file| pattern.matches(file))
        };
        let is_changed = touches_test(&self.changed, &failure.test_name, file);
        let is_expired = self
            .expire_after_s
            .zip(failure.first_failed_at)
            .is_some_and(|(after_s, first)| {
                u64::try_from(self.now.since_ms(first)).is_ok_and(|age| age > after_s.saturating_mul(1_000))
            });
        if self.never.iter().any(names) {
            Some(Refusal::Never)
        } else if is_changed {
            Some(Refusal::Changed)
        } else if is_expired {
            Some(Refusal::Expired)
        } else if failure.runs_elsewhere == 0 || failure.runs_elsewhere < PROVEN_FROM && !failure.cleared {
            // Before the probability: reruns excuse a test of few runs, and none that only this branch ran.
            Some(Refusal::New)
        } else if failure.mine >= self.risk {
            Some(Refusal::Mine)
        } else if failure.same_error >= CROWD && !(failure.cleared && failure.in_mass_failure) {
            Some(Refusal::Crowd)
        } else if failure.cause == Cause::Unclear {
            Some(Refusal::Unclear)
        } else if failure.broken_on_stable && !self.allow_broken {
            // Last, because it advises the flag that excuses it.
            Some(Refusal::Broken)
        } else {
            None
        }
    }
}

/// Whether a change touches the file of a test. Where the report has no file, such as pytest's, a class or module that the
/// name begins with names it: `tests.test_cart` is `tests/test_cart.py`.
pub(crate) fn touches_test(changed: &BTreeSet<String>, name: &str, file: Option<&str>) -> bool {
    let Some(file) = file else {
        let module = without_package(name).split(" > ").next().unwrap_or(name);
        return changed.iter().any(|changed| names_module(module, changed));
    };
    touches(changed, file)
}

/// Whether a dotted name is that of a file's module or class, or of something in it. Sources may be in a folder that the name
/// lacks, such as `src/test/java`.
fn names_module(name: &str, file: &str) -> bool {
    let (path, _) = file.rsplit_once('.').unwrap_or((file, ""));
    let path: Vec<&str> = path.split('/').filter(|part| *part != ".").collect();
    let name: Vec<&str> = name.split('.').collect();
    // At least two parts, unless the file is in the root: one word is too little for a match in any folder.
    let shared = |skipped: usize| {
        let path = path.get(skipped..).unwrap_or_default();
        (path.len() > 1 || skipped == 0) && !path.is_empty() && name.starts_with(path)
    };
    (0..path.len()).any(shared)
}

/// Whether a change touches a file.
fn touches(changed: &BTreeSet<String>, file: &str) -> bool {
    changed.contains(file.strip_prefix("./").unwrap_or(file))
        || changed.iter().any(|changed| ends_with_path(changed, file))
}

/// Whether a changed file is the test's file. Reports may name files relative to a folder of the checkout, or by their path
/// in a container.
fn ends_with_path(changed: &str, file: &str) -> bool {
    let is_folder = |folder: &str| folder.is_empty() || folder.ends_with('/');
    let is_absolute = file.starts_with('/') || file.get(1..3) == Some(":/");
    changed.strip_suffix(file).is_some_and(is_folder)
        || is_absolute && file.strip_suffix(changed).is_some_and(is_folder)
}

#[cfg(test)]
mod tests;
