//! Explanations of the words, figures and marks that pages show.

use maud::{Markup, html};

/// A word or a mark, and its explanation.
pub type Term = (&'static str, &'static str);

/// The verdicts on tests.
pub const VERDICTS: [Term; 4] = [
    (
        "Broken",
        "The code that the test checks is very probably bad: the test fails run after run on the stable branch. A test \
         that is also flaky counts as broken.",
    ),
    (
        "Flaky",
        "The test fails although the code is good: it passed on retry, or it both passed and failed on one revision, \
         or it fails in episodes that a breakage and its fix do not explain.",
    ),
    (
        "Failing now",
        "The newest runs failed. They do not show yet whether the code or the test is at fault.",
    ),
    (
        "Healthy, gathering data",
        "A healthy test has no problem, or no longer one. A test gathers data until it has enough runs for a verdict.",
    ),
];

/// The marks of runs.
pub const STRIP: [Term; 1] = [(
    "Strip",
    "A bar is a run, the newest on the right. If a run has several variants or retries, the bar shows the worst of \
     them.",
)];

/// The filter for tests that are newly failing.
pub const NEW: [Term; 1] = [(
    "New this week",
    "The test first failed in the last 7 days, and ran without a failure before.",
)];

/// The figures of a verdict.
pub const FIGURES: [Term; 4] = [
    (
        "Flake score",
        "From 0 to 1: low below 0.5, likely below 0.9, near certain above. It is a score, not a percentage.",
    ),
    (
        "Failure rate, flip rate",
        "The share of runs with a failed attempt, and of neighbouring runs of a branch that ended differently. Runs in \
         which many tests failed together are left out.",
    ),
    ("Time lost", "The measured duration of every failed attempt."),
    (
        "Impact",
        "Failed runs of the stable branch that the test caused. A run is shared among the tests that failed in \
         it.",
    ),
];

/// The causes of failures and the actions for a run.
pub const CAUSES: [Term; 9] = [
    ("This change", "The revision of this run broke the test."),
    (
        "Earlier on this branch",
        "An earlier revision of this branch broke it.",
    ),
    (
        "Broken before",
        "It was broken on the stable branch before this branch.",
    ),
    ("Flake", "The test failed on good code."),
    (
        "Environment",
        "Many tests failed together, or something outside of the code changed.",
    ),
    (
        "Unclear",
        "No cause is likely enough, or the run names neither revision nor branch.",
    ),
    (
        "Bar beside a failure",
        "How probable each cause is, in the colours of the causes. Below it: how probably this branch broke the test. \
         Unlikely is below 0.05, possible below 0.5, likely below 0.9.",
    ),
    (
        "Pass, rerun, block",
        "What to do about all failures of the run. Rerun means to run the same revision again: its results show which \
         failures this branch caused.",
    ),
    (
        "Excused",
        "A gate in CI did not count the failure against the run, for the cause and the reason that it saw then. The run \
         still counts it.",
    ),
];

/// A list of terms.
pub fn list(groups: &[&[Term]]) -> Markup {
    html! {
        dl { @for (term, explanation) in groups.iter().copied().flatten() { dt { (term) } dd { (explanation) } } }
    }
}

/// A folded list of terms.
pub fn folded(groups: &[&[Term]]) -> Markup {
    html! {
        details.reading.plain { summary { "How to read this" } (list(groups)) }
    }
}
