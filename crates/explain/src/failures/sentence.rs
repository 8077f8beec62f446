//! One sentence about the cause of a failure, with counts that a reader can check.

use assay_domain::{
    cause::{Cause, Knowledge},
    observation::{History, RunFacts},
};
use assay_flakiness::{CauseFacts, FailureCause};

use super::gate;

/// Characters of a revision in a sentence.
const REVISION_CHARS: usize = 8;

/// The sentence of a failure.
pub fn explanation(history: &History, failure: &FailureCause, knowledge: Knowledge) -> String {
    if !failure.facts.causes_distinguishable {
        return "The run has neither a revision nor a branch, so the cause is unknown; send both with the report"
            .to_owned();
    }
    let words = CauseSentences {
        history,
        failure,
        facts: &failure.facts,
        knowledge,
    };
    let cause = gate::cause(failure);
    if cause != Cause::Unclear {
        return words.of(cause);
    }
    let [(first, _), (second, _)] = gate::two_likeliest(&failure.probabilities);
    format!(
        "{}, or {}; run it again",
        words.of(first),
        uncapitalized(&words.of(second))
    )
}

/// Writes the sentence for each cause of a failure.
struct CauseSentences<'a> {
    history: &'a History,
    failure: &'a FailureCause,
    facts: &'a CauseFacts,
    knowledge: Knowledge,
}

impl CauseSentences<'_> {
    fn of(&self, cause: Cause) -> String {
        match cause {
            Cause::Flake => self.flake(),
            Cause::Environment => self.environment(),
            Cause::BrokenBefore => self.broken_before(),
            Cause::EarlierOnBranch => self.earlier_on_branch(),
            Cause::ThisChange => self.this_change(),
            Cause::Unclear => String::new(),
        }
    }

    fn run(&self, index: Option<usize>) -> Option<&RunFacts> {
        self.history.runs.get(index?).map(|observed| &observed.run)
    }

    /// For example ` on main`; empty if no run has a branch.
    fn on_stable(&self) -> String {
        let any_branch = self
            .history
            .runs
            .iter()
            .any(|observed| observed.run.branch.is_some());
        if any_branch {
            format!(" on {}", self.history.stable_branch)
        } else {
            String::new()
        }
    }

    fn this_change(&self) -> String {
        let facts = self.facts;
        let before = if facts.on_stable { " before" } else { "" };
        let stable = self.on_stable();
        let passed = facts.stable_runs - facts.stable_failed;
        let stable_runs = match (facts.stable_runs, facts.stable_failed) {
            (0, _) => format!("Never ran{stable} before"),
            (1, 0) => format!("Passed in the only run{stable}{before}"),
            (all, 0) => format!("Passed in all {all} runs{stable}{before}"),
            (all, _) => format!("Passed in {passed} of {all} runs{stable}{before}"),
        };
        let (failed, ran) = facts.variants;
        let variants = if ran > 1 {
            format!(" on {failed} of {ran} variants")
        } else {
            String::new()
        };
        let same = facts.same_error;
        let error = match self.knowledge {
            _ if !facts.recognisable || same.here > 0 || same.other_tests > 0 => "",
            Knowledge::AtTheTime => "; this error was never seen before",
            Knowledge::Hindsight => "; this error was seen nowhere else",
        };
        format!("{stable_runs} and failed on this revision{variants}{error}")
    }

    fn earlier_on_branch(&self) -> String {
        let Some(run) = self.run(self.facts.episode_since) else {
            return "Probably broken by an earlier revision of this branch".to_owned();
        };
        let number = run.number;
        let since = match run.revision.as_deref().map(short) {
            Some(revision) => format!("revision {revision} (run {number})"),
            None => format!("run {number}"),
        };
        let passed = if self.facts.passed_before {
            "; passed before it"
        } else {
            ""
        };
        format!("Fails on this branch since {since}{passed}")
    }

    fn broken_before(&self) -> String {
        let facts = self.facts;
        let stable = self.on_stable();
        let index = if facts.on_stable {
            facts.episode_since
        } else {
            facts.stable_since
        };
        let Some(run) = self.run(index) else {
            let this = if facts.on_stable { "run" } else { "branch" };
            return format!("Probably broken{stable} before this {this}");
        };
        let error = if facts.stable_same_error {
            ", with the same error"
        } else {
            ""
        };
        format!("Fails{stable} since run {}{error}", run.number)
    }

    fn flake(&self) -> String {
        let facts = self.facts;
        let mut sentence = if self.failure.recovered {
            "Passed on retry in this run".to_owned()
        } else if let Some(run) = self.run(facts.passed_on_revision) {
            let started = self
                .history
                .runs
                .get(self.failure.run_index)
                .map(|here| here.run.started_at);
            if started.is_some_and(|started| run.started_at > started) {
                format!("Passed when run {} ran the same revision again", run.number)
            } else {
                format!("Passed on the same revision in run {}", run.number)
            }
        } else {
            String::new()
        };
        if !sentence.is_empty() && facts.good_failed == 0 {
            return sentence;
        }
        if facts.good_runs == 0 {
            return "Failed, and ran in no other run on good code".to_owned();
        }
        sentence.push_str(if sentence.is_empty() { "Failed" } else { "; failed" });
        let others = if facts.good_runs == 1 { "run" } else { "runs" };
        let counted = format!(
            " in {} of {} {others} on good code",
            facts.good_failed, facts.good_runs
        );
        sentence.push_str(&counted);
        if facts.recognisable && facts.good_failed > 0 {
            let times = match facts.good_same_error {
                1 => "1 time".to_owned(),
                times => format!("{times} times"),
            };
            sentence.push_str(&format!(", {times} with this error"));
        }
        sentence
    }

    fn environment(&self) -> String {
        let facts = self.facts;
        if facts.in_crowd {
            let same = facts.same_error.in_this_run;
            let error = if same > 0 {
                format!("; {} of them with the same error", same + 1)
            } else {
                String::new()
            };
            let tests = if facts.failed_in_run == 1 { "test" } else { "tests" };
            return format!(
                "{} {tests} failed together in this run{error}",
                facts.failed_in_run
            );
        }
        let here = self
            .history
            .runs
            .get(self.failure.run_index)
            .map(|here| here.run.started_at);
        let elsewhere = self.run(facts.failed_elsewhere).zip(here);
        let Some((run, here)) = elsewhere else {
            let passed = self
                .run(facts.passed_on_revision)
                .map_or_else(String::new, |run| {
                    format!(": the same revision passed in run {}", run.number)
                });
            return format!("Something outside of the code changed{passed}");
        };
        let branch = run.branch.as_deref().unwrap_or("another branch");
        format!(
            "Began to fail on branch {branch} {}, too",
            ago(here.since_ms(run.started_at))
        )
    }
}

/// The age of an event relative to the failure.
fn ago(milliseconds: i64) -> String {
    let minutes = milliseconds.unsigned_abs() / 60_000;
    let (count, unit) = match minutes {
        ..1 => return "at the same time".to_owned(),
        1..90 => (minutes, "minute"),
        90..2_880 => ((minutes + 30) / 60, "hour"),
        _ => ((minutes + 720) / 1_440, "day"),
    };
    let plural = if count == 1 { "" } else { "s" };
    let relation = if milliseconds < 0 { "after" } else { "before" };
    format!("{count} {unit}{plural} {relation}")
}

/// The abbreviated revision for a sentence.
fn short(revision: &str) -> String {
    revision.chars().take(REVISION_CHARS).collect()
}

fn uncapitalized(sentence: &str) -> String {
    let mut rest = sentence.chars();
    rest.next()
        .map_or_else(String::new, |first| first.to_lowercase().chain(rest).collect())
}
