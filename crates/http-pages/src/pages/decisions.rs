//! The decisions of gates on a run in CI.

use assay_domain::{
    decision::{ExcusedTest, GateOutcome, RunDecision},
    id::RunId,
    project::Project,
    timestamp::Timestamp,
};
use assay_markup::{cause, words};
use maud::{Markup, html};

use super::parts::when;
use crate::{error::FrontError, view::View};

/// The decisions on a run, newest first.
pub(super) struct Decisions(pub(super) Vec<RunDecision>);

impl Decisions {
    pub(super) fn read(view: &View<'_>, project: &Project, run: RunId) -> Result<Self, FrontError> {
        Ok(Self(view.store.decisions(project, run)?))
    }

    /// Every decision in a sentence with its time.
    pub(super) fn sentences(&self, now: Timestamp) -> Markup {
        html! { @for decision in &self.0 { p { (when(decision.decision.decided_at, now)) ": " (sentence(decision)) "." } } }
    }

    /// The same as a section of a page.
    pub(super) fn section(&self, now: Timestamp) -> Markup {
        html! {
            @if !self.0.is_empty() {
                section aria-labelledby="decisions" {
                    h2 #decisions { "What the gate decided in CI" }
                    div.box { (self.sentences(now)) }
                }
            }
        }
    }

    /// Whether a gate decided.
    pub(super) const fn is_some(&self) -> bool {
        !self.0.is_empty()
    }

    /// That the judgement of a page is not the one of the gate; empty without a decision.
    pub(super) fn judged_since(&self) -> Markup {
        html! {
            @if !self.0.is_empty() {
                p.sub { "This is judged with every result that is stored now. The gate decided in CI with those of its time." }
            }
        }
    }

    /// Whether a gate excused this failed test.
    pub(super) fn has_excused(&self, test_name: &str, file_path: Option<&str>) -> bool {
        self.excuse(test_name, file_path).is_some()
    }

    /// Why a gate excused this failed test; empty if none did.
    pub(super) fn mark(&self, test_name: &str, file_path: Option<&str>) -> Markup {
        html! {
            @if let Some(excused) = self.excuse(test_name, file_path) {
                p.why { span.chip.excused { "Excused" } " in CI, then as " (cause::cause(excused.cause)) ": " bdi { (excused.reason) } "." }
            }
        }
    }

    fn excuse(&self, test_name: &str, file_path: Option<&str>) -> Option<&ExcusedTest> {
        let excused = self.0.iter().flat_map(|decision| &decision.decision.excused);
        excused
            .filter(|test| test.test_name == test_name)
            .find(|test| test.file_path.as_deref() == file_path)
    }
}

fn sentence(run_decision: &RunDecision) -> String {
    let decision = &run_decision.decision;
    let run = run_decision
        .shard
        .map_or_else(|| "the run".to_owned(), |shard| format!("shard {shard}"));
    let failed = usize::try_from(decision.failed).unwrap_or(usize::MAX);
    let excused = format!(
        "The gate excused {} of {} of {run}",
        words::grouped(decision.excused.len()),
        words::count(failed, "failed test")
    );
    match decision.outcome {
        GateOutcome::Clean => format!("The gate let {run} pass, because no test failed"),
        GateOutcome::Excused => format!("{excused} and let it pass"),
        GateOutcome::Rerun => format!("{excused} and asked to run the same revision again"),
        GateOutcome::Blocked if failed == 0 => format!("The gate did not let {run} pass"),
        GateOutcome::Blocked => format!("{excused} and did not let it pass"),
    }
}

#[cfg(test)]
mod tests {
    use assay_domain::{cause::Cause, decision::StoredDecision};

    use super::*;

    fn decision(shard: Option<u32>, outcome: GateOutcome, failed: u32, excused: &[&str]) -> RunDecision {
        let test = |name: &&str| ExcusedTest {
            test_name: (*name).to_owned(),
            file_path: Some("cart.test.ts".to_owned()),
            cause: Cause::Flake,
            mine: 0.01,
            reason: format!("{name} <b> often fails"),
        };
        RunDecision {
            shard,
            decision: StoredDecision {
                decided_at: Timestamp::from_unix_ms(1_795_000_000_000),
                whole_run: shard.is_none(),
                outcome,
                failed,
                excused: excused.iter().map(test).collect(),
            },
        }
    }

    #[test]
    fn each_outcome_is_one_sentence() {
        use GateOutcome::{Blocked, Clean, Excused, Rerun};
        for (decision, expected) in [
            (
                decision(None, Clean, 0, &[]),
                "The gate let the run pass, because no test failed",
            ),
            (
                decision(None, Excused, 1, &["a"]),
                "The gate excused 1 of 1 failed test of the run and let it pass",
            ),
            (
                decision(Some(2), Rerun, 3, &["a", "b"]),
                "The gate excused 2 of 3 failed tests of shard 2 and asked to run the same revision again",
            ),
            (
                decision(Some(2), Blocked, 2, &[]),
                "The gate excused 0 of 2 failed tests of shard 2 and did not let it pass",
            ),
            (
                decision(None, Blocked, 0, &[]),
                "The gate did not let the run pass",
            ),
        ] {
            assert_eq!(sentence(&decision), expected);
        }
    }

    #[test]
    fn only_an_excused_test_is_marked_and_its_reason_is_text() {
        let decisions = Decisions(vec![
            decision(Some(1), GateOutcome::Blocked, 2, &["b"]),
            decision(Some(2), GateOutcome::Excused, 1, &["a"]),
        ]);
        let mark = decisions.mark("a", Some("cart.test.ts")).into_string();
        assert!(
            mark.contains("then as Flake: <bdi>a &lt;b&gt; often fails</bdi>"),
            "{mark}"
        );
        assert!(decisions.has_excused("b", Some("cart.test.ts")));
        for (name, file) in [("a", None), ("a", Some("other.ts")), ("c", Some("cart.test.ts"))] {
            assert_eq!(decisions.mark(name, file).into_string(), "");
        }
    }
}
