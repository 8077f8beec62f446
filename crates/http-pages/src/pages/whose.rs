//! The gate and the causes of failures, which the pages of runs and commits share.

use assay_answers::failures::{ExplainedFailure, Gate, whose};
use assay_domain::attempt::AttemptStatus;
use assay_markup::cause;
use maud::{Markup, html};

use super::parts::grouped;

/// The section of a gate, with the number of failures by cause. On the stable branch `on_stable` says so, and there is
/// nothing to merge.
pub(super) fn gate_section(
    gate: &Gate,
    on_stable: Option<&str>,
    details: &Markup,
    controls: Option<&Markup>,
) -> Markup {
    let (word, sentence) = cause::gate(gate.action, gate.only_lacks_results());
    html! {
        section aria-labelledby="gate" {
            h2 #gate { @if on_stable.is_some() { "What broke?" } @else { "Whose failures?" } }
            div.box {
                @if let Some(on_stable) = on_stable {
                    p.gate { (on_stable) " on the stable branch. Each test names the run with which it began to fail." }
                } @else {
                    p.gate { span class={ "chip gate " (gate.action.as_str()) } { (word) } " " (sentence) }
                }
                (details)
                p.facts {
                    @for (cause_of_tests, tests) in gate.by_cause.counts() {
                        @if tests > 0 { span { (cause::chip(cause_of_tests)) " " b { (grouped(tests)) } } }
                    }
                }
                @if let Some(controls) = controls { (controls) }
            }
        }
    }
}

/// The row of a failure or recovery: its name, its explanation, details, and whose it is. `breakage` is when it began on
/// the stable branch.
pub(super) fn failure_row(
    failure: &ExplainedFailure,
    status: AttemptStatus,
    name: &Markup,
    details: &Markup,
    breakage: Option<&Markup>,
) -> Markup {
    html! {
        li.row.(status.as_str()) {
            div.failure {
                p { (cause::chip(failure.cause)) }
                div {
                    p { (name) }
                    p { (failure.explanation) "." }
                    (details)
                }
                div.whose {
                    (cause::bar(&failure.probabilities.by_cause()))
                    @if status.is_failure() { (whose_failure(failure, breakage)) }
                }
            }
        }
    }
}

fn whose_failure(failure: &ExplainedFailure, breakage: Option<&Markup>) -> Markup {
    html! {
        @match breakage {
            Some(breakage) => (breakage),
            None => {
                p { "by this change: " b { (whose(failure.mine, failure.action)) } }
                p { (cause::action(failure.action)) }
            }
        }
    }
}
