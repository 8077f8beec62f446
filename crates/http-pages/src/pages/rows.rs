//! Compact rows of tests, each with a link to the test's page.

use assay_answers::test_list::TestList;
use assay_domain::{id::ProjectId, outcomes::Outcome, timestamp::Timestamp, verdict::VerdictStatus};
use assay_markup::{
    figures, name,
    strip::{self, Scale},
    words,
};
use maud::{Markup, html};

use super::parts::owners_in_words;
use crate::links;

/// The rows of a list: verdict, name, reason, last failure, newest runs and figures, and the file of a flaky test.
pub(super) fn rows(project: ProjectId, list: &TestList, now: Timestamp) -> Markup {
    let names: Vec<_> = list
        .tests
        .iter()
        .map(|test| (&*test.verdict.test_name, test.verdict.file_path.as_deref()))
        .collect();
    let short = name::short_names(&names);
    html! {
        (figures::columns())
        ol.rows {
            @for (test, short) in list.tests.iter().zip(&short) {
                @let verdict = &test.verdict;
                @let file = verdict.file_path.as_deref();
                @let newest: Vec<Option<Outcome>> = test.newest_results.0.iter().copied().map(Some).collect();
                @let since = verdict.failing_since.as_ref();
                li.row.(verdict.status.as_str()) {
                    a href=(links::test(project, &verdict.test_name, file)) {
                        (figures::chip_before(verdict.status, since.map(|since| since.run_number)))
                        span.named {
                            (name::in_list(short, &verdict.test_name))
                            span.path {
                                bdi { (verdict.explanation) }
                                @if let Some(at) = test.last_failed_at { ". Last failure " (words::age(at, now)) }
                                @if verdict.status == VerdictStatus::Flaky {
                                    ", flake score " (format!("{:.2}", verdict.figures.flake_score))
                                    @if let Some(file) = name::file_beside(&verdict.test_name, file) { bdi.file { (file) } }
                                }
                            }
                            @if let Some(since) = since { span.path { "Fails on the stable branch since run " (since.run_number) ", " (words::age(since.started_at, now)) } }
                            @if let Some(owners) = owners_in_words(&verdict.ownership) { span.path { bdi { (owners) } } }
                            @if let Some(on) = verdict.failing_on.first().filter(|_| verdict.status == VerdictStatus::Healthy) { span.path { "Healthy on " bdi { (list.stable.branch) } "; fails on " bdi { (on.branch.as_deref().unwrap_or("runs without a branch")) } " since run " (on.since_run) } }
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
