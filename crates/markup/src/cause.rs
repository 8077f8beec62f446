//! Causes of failures, in words and as a bar.

use assay_domain::cause::{Action, Cause, EvidenceWord, band};
use maud::{Markup, html};

use crate::chart;

/// A cause in words.
pub const fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::ThisChange => "This change",
        Cause::EarlierOnBranch => "Earlier on this branch",
        Cause::BrokenBefore => "Broken before",
        Cause::Flake => "Flake",
        Cause::Environment => "Environment",
        Cause::Unclear => "Unclear",
    }
}

/// A cause as a chip.
pub fn chip(of: Cause) -> Markup {
    html! { span class={ "chip cause " (of.as_str()) } { (cause(of)) } }
}

/// The action for one failure.
pub const fn action(action: Action) -> &'static str {
    match action {
        Action::Pass => "continue",
        Action::Rerun => "run it again",
        Action::Block => "fix it",
    }
}

/// The action for a run: a word for a chip, and a sentence. A run may not pass only because it may lack results.
pub const fn gate(action: Action, only_lacks_results: bool) -> (&'static str, &'static str) {
    match action {
        Action::Rerun if only_lacks_results => (
            "Rerun",
            "This branch most probably did not cause these failures, but the run may lack results, so it does not pass.",
        ),
        Action::Pass => (
            "Pass",
            "This branch most probably did not cause these failures: continue.",
        ),
        Action::Rerun => (
            "Rerun",
            "Run the same revision again: its results show which failures this branch caused.",
        ),
        Action::Block => ("Block", "This branch broke something: fix it before you merge."),
    }
}

/// The contribution of an evidence run, in words.
pub const fn evidence(word: EvidenceWord) -> &'static str {
    match word {
        EvidenceWord::PassedOnStable => "passed on the stable branch in",
        EvidenceWord::FailedOnGoodCode => "failed on good code in",
        EvidenceWord::PassedOnRevision => "passed on this revision in",
        EvidenceWord::FailingSince => "failing since",
        EvidenceWord::FailingOnStableSince => "failing on the stable branch since",
        EvidenceWord::FailedElsewhere => "failed on another branch in",
    }
}

/// The probabilities of the causes as one bar, with a text alternative.
pub fn bar(probabilities: &[(Cause, f64)]) -> Markup {
    let mut largest_first = probabilities.to_vec();
    largest_first.sort_by(|(_, left), (_, right)| right.total_cmp(left));
    let spoken: Vec<String> = largest_first
        .iter()
        .filter(|(_, probability)| *probability >= 0.1)
        .map(|(of, probability)| format!("{}: {}", cause(*of), band(*probability)))
        .collect();
    let parts: Vec<(&str, u64)> = probabilities
        .iter()
        // Parts below one percent are not drawn, so that every drawn part is visible.
        .filter(|(_, probability)| *probability >= 0.01)
        .map(|(of, probability)| (of.as_str(), thousandths(*probability)))
        .collect();
    chart::shares(&parts, &spoken.join(", "))
}

fn thousandths(probability: f64) -> u64 {
    let text = format!("{:.0}", probability.clamp(0.0, 1.0) * 1_000.0);
    text.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_bands_and_no_percentage() {
        let drawn = bar(&[
            (Cause::ThisChange, 0.94),
            (Cause::Flake, 0.055),
            (Cause::BrokenBefore, 0.005),
        ]);
        let drawn = drawn.into_string();
        assert!(
            drawn.contains("aria-label=\"This change: near certain\""),
            "{drawn}"
        );
        assert!(
            drawn.contains("class=\"flake\"") && !drawn.contains("broken_before"),
            "{drawn}"
        );
        assert!(!drawn.contains('%'), "{drawn}");
    }
}
