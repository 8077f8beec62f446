//! Compact rows of tests, each with a link to the test's page.

use assay_answers::{owners::Owners, stable_branch::StableBranchState, test_list::NamedVerdict};
use assay_domain::{
    id::ProjectId,
    observation::History,
    outcomes::{Cells, NEWEST, Outcome},
    owners::Ownership,
    timestamp::Timestamp,
    verdict::VerdictStatus,
};
use assay_markup::{
    figures, name,
    strip::{self, Scale},
    words,
};
use maud::{Markup, html};

use super::parts::owners_in_words;
use crate::links;

/// The rows of these tests, in their order: verdict, name, reason, last failure, newest runs and figures, and the file of a
/// flaky test.
pub(super) fn rows(
    project: ProjectId,
    history: &History,
    (stable, owners): (&StableBranchState, &Owners),
    tests: &[NamedVerdict<'_>],
    now: Timestamp,
) -> Markup {
    let runs = Cells::of(history);
    let names: Vec<_> = tests
        .iter()
        .map(|(test, _)| (test.name, test.file_path))
        .collect();
    let short = name::short_names(&names);
    let mut lookup = owners.lookup();
    html! {
        (figures::columns())
        ol.rows {
            @for ((test, verdict), short) in tests.iter().zip(&short) {
                @let cells = runs.worst(verdict.test, |_| true);
                @let newest: Vec<Option<Outcome>> = cells.get(cells.len().saturating_sub(NEWEST)..).unwrap_or_default().iter().map(|(_, outcome)| Some(*outcome)).collect();
                @let since = stable.failing_since(history, verdict.test);
                li.row.(verdict.status.as_str()) {
                    a href=(links::test(project, test.name, test.file_path)) {
                        (figures::chip_before(verdict.status, since.as_ref().map(|since| since.run_number)))
                        span.named {
                            (name::in_list(short, test.name))
                            span.path {
                                bdi { (verdict.explanation) }
                                @if let Some(at) = runs.last_failed_at(&cells) { ". Last failure " (words::age(at, now)) }
                                @if verdict.status == VerdictStatus::Flaky {
                                    ", flake score " (format!("{:.2}", verdict.figures.flake_score))
                                    @if let Some(file) = name::file_beside(test.name, test.file_path) { bdi.file { (file) } }
                                }
                            }
                            @if let Some(since) = &since { span.path { "Fails on the stable branch since run " (since.run_number) ", " (words::age(since.started_at, now)) } }
                            (owned_by(lookup.of(test.file_path)))
                            @if let Some(on) = verdict.failing_on.first().filter(|_| verdict.status == VerdictStatus::Healthy) { span.path { "Healthy on " bdi { (history.stable_branch) } "; fails on " bdi { (on.branch.as_deref().unwrap_or("runs without a branch")) } " since run " (on.since_run) } }
                        }
                        span.runs { (strip::draw(&newest, Scale::LINE, "Runs")) }
                        span.figure { span.unseen { "fails in " } (verdict.figures.failure_rate.map_or("–".to_owned(), words::percent)) }
                        span.figure { span.unseen { "time lost " } (verdict.figures.time_lost_ms.map_or("–".to_owned(), words::duration)) }
                    }
                }
            }
        }
    }
}

/// The owners of a row's test on a line of their own, if it has any.
fn owned_by(ownership: &Ownership) -> Markup {
    html! { @if let Some(owners) = owners_in_words(ownership) { span.path { bdi { (owners) } } } }
}
