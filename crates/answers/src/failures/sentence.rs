//! One sentence about the cause of a failure, with counts that a reader can check.

mod elsewhere;

use assay_domain::{
    cause::{Cause, Knowledge},
    observation::{History, RunFacts, RunObservations},
    verdict::ENGINE_WINDOW_DAYS,
};
use assay_flakiness::{CauseFacts, FailureCause};

use self::elsewhere::Elsewhere;
use super::gate;
use crate::numbers::short;

/// The runs before, from which on a habit shows.
const WARM_UPS: u32 = 3;
/// The fewest tests of which all fail at first by no chance.
const TOGETHER: usize = 3;

/// The sentence of a failure.
pub fn explanation(history: &History, failure: &FailureCause, knowledge: Knowledge) -> String {
    if failure.facts.nothing_compares {
        return format!(
            "No other branch ran in the {ENGINE_WINDOW_DAYS} days before, so nothing shows whether this branch broke it"
        );
    }
    if !failure.facts.causes_distinguishable {
        return "The run has neither a revision nor a branch, so the cause is unknown; send both with the report"
            .to_owned();
    }
    let cause = gate::cause(failure);
    let words = CauseSentences {
        is_clear: cause != Cause::Unclear,
        history,
        failure,
        facts: &failure.facts,
        elsewhere: Elsewhere::of(history, failure),
        knowledge,
    };
    let sentence = if cause == Cause::Unclear {
        let [(first, _), (second, _)] = gate::two_likeliest(&failure.probabilities);
        format!("{}, or {}", words.of(first), uncapitalized(&words.of(second)))
    } else {
        words.of(cause)
    };
    match words.is_new() {
        true => format!("New test: {}", uncapitalized(&sentence)),
        false => sentence,
    }
}

/// Writes the sentence for each cause of a failure.
struct CauseSentences<'a> {
    /// Whether one cause is probable enough for an advice.
    is_clear: bool,
    history: &'a History,
    failure: &'a FailureCause,
    facts: &'a CauseFacts,
    elsewhere: Elsewhere<'a>,
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

    /// The run of the failure.
    fn here(&self) -> Option<&RunFacts> {
        self.run(Some(self.failure.run_index))
    }

    fn run(&self, index: Option<usize>) -> Option<&RunFacts> {
        self.history.runs.get(index?).map(|observed| &observed.run)
    }

    /// Whether the stable branch has runs, and none of them has the test.
    fn is_new(&self) -> bool {
        let stable = self.history.stable();
        let mut runs = self.history.runs.iter();
        !self.facts.on_stable
            && self.facts.stable_runs == 0
            && runs.any(|observed| stable.is(observed.run.branch.as_deref()))
    }

    /// For example ` on main`; empty if no run has a branch.
    fn on_stable(&self) -> String {
        if self.history.stable().any_branch_named {
            format!(" on {}", self.history.stable_branch)
        } else {
            String::new()
        }
    }

    /// For example ` (windows)`, the variant of a run.
    fn on_variant(&self, run: Option<usize>) -> String {
        self.run(run).map_or_else(String::new, |run| match &*run.variant {
            "" => " (the default variant)".to_owned(),
            variant => format!(" ({variant})"),
        })
    }

    fn this_change(&self) -> String {
        let facts = self.facts;
        if let Some(calendar) = facts.calendar.as_ref().filter(|calendar| !calendar.explains) {
            return format!(
                "Failed on this revision at a time at which it passed before: {}",
                uncapitalized(&calendar.sentence)
            );
        }
        let before = if facts.on_stable { " before" } else { "" };
        let mut stable = self.on_stable();
        if facts.stable_variant {
            stable += &self.on_variant(Some(self.failure.run_index));
        }
        let passed = facts.stable_runs - facts.stable_failed;
        let stable_runs = match (facts.stable_runs, facts.stable_failed) {
            (0, _) => match self.elsewhere.in_words() {
                Some(elsewhere) => elsewhere,
                None => format!("Did not run{stable} in the {ENGINE_WINDOW_DAYS} days before"),
            },
            (1, 0) => format!("Passed in the only run{stable}{before}"),
            (all, 0) => format!("Passed in all {all} runs{stable}{before}"),
            (1, _) => format!("Failed in the only run{stable}{before}"),
            (all, failed) if failed == all => format!("Failed in all {all} runs{stable}{before}"),
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
            _ if !facts.recognisable || same.here > 0 || same.other_tests > 0 => String::new(),
            Knowledge::AtTheTime => {
                format!("; this error was not seen in the {ENGINE_WINDOW_DAYS} days before")
            }
            Knowledge::Hindsight => "; this error was seen nowhere else".to_owned(),
        };
        let passed = match self.run(facts.passed_on_revision) {
            Some(run) => format!(", which passed in run {}", run.number),
            None => String::new(),
        };
        let elsewhere = match same.other_branches {
            0 => String::new(),
            1 => "; another branch failed with this error".to_owned(),
            failures => format!("; {failures} failures of other branches had this error"),
        };
        let again = self.landed_again();
        format!("{stable_runs} and failed on this revision{variants}{passed}{error}{elsewhere}{again}")
    }

    /// The runs of the stable branch in which this error began and ended; empty unless it had and mended the error.
    fn landed_again(&self) -> String {
        let facts = self.facts;
        let runs = self.run(facts.stable_since).zip(self.run(facts.stable_mended));
        match runs.filter(|_| facts.stable_same_error) {
            Some((first, mended)) => format!(
                "; {} began to fail with this error in run {}, and passed again in run {}",
                self.history.stable_branch, first.number, mended.number
            ),
            None => String::new(),
        }
    }

    fn earlier_on_branch(&self) -> String {
        let Some(run) = self.run(self.facts.episode_since) else {
            return match self.run(self.facts.failed_with_change) {
                Some(run) => format!("Failed in run {}, too, which tested the same change", run.number),
                None => "Probably broken by an earlier revision of this branch".to_owned(),
            };
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
        match self.run(facts.stable_mended) {
            None if facts.in_lasting_crowd => format!(
                "A shared cause{stable} since run {}: {} tests failed together in this run{error}",
                run.number, facts.failed_in_run
            ),
            None => match self.run(facts.left_stable) {
                Some(left) => format!(
                    "Failed{stable} from run {} on{error}, and does not run there since run {}",
                    run.number, left.number
                ),
                None => format!("Fails{stable} since run {}{error}", run.number),
            },
            Some(mended) if !self.is_clear => format!(
                "Failed{stable} from run {} on{error}, and passed again from run {} on",
                run.number, mended.number
            ),
            Some(mended) => {
                let branch = &self.history.stable_branch;
                let (first, since) = (run.number, mended.number);
                let revision = mended
                    .revision
                    .as_deref()
                    .map_or_else(String::new, |revision| format!("revision {}, ", short(revision)));
                let probably = if facts.stable_at_base { "" } else { "probably " };
                format!(
                    "Rebase: {branch} failed it since run {first}{error}, and is mended since {revision}run {since}; \
                     this branch {probably}began before"
                )
            }
        }
    }

    /// A run in which all tests failed at first and passed on retry: a warm-up where most runs do so, else its machine.
    fn failed_at_first(&self) -> Option<String> {
        let here = self.history.runs.get(self.failure.run_index)?;
        let tests = failed_at_first(here).filter(|_| self.failure.recovered)?;
        let before = self.history.runs.iter().filter(|other| {
            other.run.variant == here.run.variant && other.run.started_at < here.run.started_at
        });
        let (mut alike, mut all) = (0_u32, 0_u32);
        for other in before {
            all += 1;
            alike += u32::from(failed_at_first(other).is_some());
        }
        let sign = match all >= WARM_UPS && 2 * alike >= all {
            true => "a warm-up, because what the tests need is not ready when they begin",
            false => "a sign of this run's machine",
        };
        Some(format!(
            "All {tests} tests of this run failed at first and passed on retry, and so in {alike} of {all} runs \
             before: {sign}"
        ))
    }

    fn flake(&self) -> String {
        if let Some(sentence) = self.failed_at_first() {
            return sentence;
        }
        let facts = self.facts;
        if let Some(calendar) = facts.calendar.as_ref().filter(|calendar| calendar.explains) {
            return calendar.sentence.clone();
        }
        let mut sentence = if self.failure.recovered {
            "Passed on retry in this run".to_owned()
        } else if let Some(run) = self.run(facts.passed_on_revision) {
            let is_later = |here: &RunFacts| run.started_at > here.started_at;
            if self.here().is_some_and(is_later) {
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
        if facts.good_failed == 0 {
            return self.first_flake();
        }
        sentence.push_str(if sentence.is_empty() { "Failed" } else { "; failed" });
        let others = if facts.good_runs == 1 { "run" } else { "runs" };
        let counted = format!(
            " in {} of {} {others} on good code{}",
            facts.good_failed,
            facts.good_runs,
            self.on_variant(facts.good_variant)
        );
        sentence.push_str(&counted);
        if facts.recognisable {
            let times = match facts.good_same_error {
                1 => "1 time".to_owned(),
                times => format!("{times} times"),
            };
            sentence.push_str(&format!(", {times} with this error"));
        }
        sentence
    }

    /// A flake without an earlier failure on good code: what else made it the likeliest cause.
    fn first_flake(&self) -> String {
        let facts = self.facts;
        if let Some(elsewhere) = self.elsewhere.in_words().filter(|_| self.elsewhere.failed > 0) {
            return elsewhere;
        }
        let error = match facts.same_error.other_tests {
            0 => "",
            1 => "; another test failed with the same error",
            _ => "; other tests failed with the same error",
        };
        let streaks = facts.stable_streaks;
        // With hindsight, the streak of this failure is one of them.
        let others = if streaks.all == 0 || self.knowledge == Knowledge::Hindsight {
            String::new()
        } else {
            let counted = if streaks.all == 1 { "streak" } else { "streaks" };
            format!(
                "; outside of mass failures, {} of {} failing {counted} of all tests{} lasted three runs",
                streaks.lasted,
                streaks.all,
                self.on_stable()
            )
        };
        let runs = facts.good_runs;
        let plural = if runs == 1 { "run" } else { "runs" };
        let failure = if self.knowledge == Knowledge::Hindsight || self.failed_before() {
            format!("No other failure in {runs} {plural} on good code")
        } else {
            format!("First failure after {runs} passed {plural}")
        };
        format!("{failure}{error}{others}")
    }

    fn failed_before(&self) -> bool {
        let Some(here) = self.here() else {
            return false;
        };
        let mut runs = self.history.runs.iter();
        runs.any(|other| other.run.started_at < here.started_at && other.failure(self.failure.test).is_some())
    }

    /// A failure on some variants of the stable branch, and what came of others; elsewhere, that the cause is unknown.
    fn outside_of_the_code(&self) -> String {
        let facts = self.facts;
        let (failed, ran) = facts.variants;
        if !facts.on_stable || ran < 2 {
            return "Something outside of the code changed".to_owned();
        }
        let shared = facts.shared_streaks;
        // With hindsight, and from the third failure in a row on, this failure is one of them.
        let is_counted = self.knowledge == Knowledge::Hindsight || facts.stable_streak >= 3;
        let others = match shared.all {
            _ if is_counted || failed < 2 => String::new(),
            0 => String::new(),
            all => {
                let revisions = if all == 1 { "revision" } else { "revisions" };
                format!(
                    "; failures on several variants began at {all} earlier {revisions}{}, and lasted after {} of them",
                    self.on_stable(),
                    shared.lasted
                )
            }
        };
        format!("Something outside of the code failed it on {failed} of {ran} variants{others}")
    }

    fn environment(&self) -> String {
        if let Some(sentence) = self.failed_at_first() {
            return sentence;
        }
        let facts = self.facts;
        if facts.in_crowd {
            let same = facts.same_error.in_this_run;
            let others = facts.failed_in_run.saturating_sub(1);
            // The sentence is about the new test.
            if self.is_new() && others > 0 {
                let error = match same {
                    0 => String::new(),
                    _ => format!("; {same} of them with the same error"),
                };
                let tests = if others == 1 { "test" } else { "tests" };
                return format!("Failed with {others} other {tests} in this run{error}");
            }
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
        let here = self.here().map(|here| here.started_at);
        let elsewhere = self.run(facts.failed_elsewhere).zip(here);
        let Some((run, here)) = elsewhere else {
            return match self.run(facts.passed_on_revision) {
                Some(run) => format!(
                    "Something outside of the code changed: the same revision passed in run {}",
                    run.number
                ),
                None => self.outside_of_the_code(),
            };
        };
        let branch = run.branch.as_deref().unwrap_or("another branch");
        let elsewhere = &self.elsewhere;
        match (elsewhere.branches.len(), elsewhere.first_failed) {
            (branches @ 2.., Some(first)) => format!(
                "Also failed on {branches} other branches in {}",
                span(here.since_ms(first))
            ),
            (_, Some(first)) if elsewhere.failed > 1 => format!(
                "Also failed in {} runs of branch {branch} in {}",
                elsewhere.failed,
                span(here.since_ms(first))
            ),
            _ => format!(
                "Began to fail on branch {branch} {}, too",
                ago(here.since_ms(run.started_at))
            ),
        }
    }
}

/// The number of tests of a run, if all of them failed at first and passed on retry.
fn failed_at_first(observed: &RunObservations) -> Option<usize> {
    let ran = observed
        .present
        .iter()
        .filter(|test| !observed.skipped.contains(*test))
        .count();
    let all = observed.failures.len() == ran && observed.failures.iter().all(|failure| failure.recovered);
    (all && ran >= TOGETHER).then_some(ran)
}

/// The age of an event relative to the failure.
fn ago(milliseconds: i64) -> String {
    if milliseconds.unsigned_abs() < 60_000 {
        return "at the same time".to_owned();
    }
    let relation = if milliseconds < 0 { "after" } else { "before" };
    format!("{} {relation}", span(milliseconds))
}

/// A length of time, such as "3 days".
fn span(milliseconds: i64) -> String {
    let minutes = milliseconds.unsigned_abs() / 60_000;
    let (count, unit) = match minutes {
        ..90 => (minutes.max(1), "minute"),
        90..2_880 => ((minutes + 30) / 60, "hour"),
        _ => ((minutes + 720) / 1_440, "day"),
    };
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural}")
}

fn uncapitalized(sentence: &str) -> String {
    let mut rest = sentence.chars();
    rest.next()
        .map_or_else(String::new, |first| first.to_lowercase().chain(rest).collect())
}

#[cfg(test)]
mod tests;
