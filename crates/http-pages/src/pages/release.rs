//! `/p/{id}/release?branch=`: whether a release may be cut from a branch.

use assay_answers::release::{ReleaseFailure, ReleaseState, release};
use assay_domain::{id::ProjectId, observation::History, timestamp::Timestamp};
use assay_http::Unanswerable;
use assay_markup::figures;
use maud::{Markup, html};

use super::parts::{branch_link, cards, failing_since, owners_in_words, pager};
use crate::{
    error::FrontError,
    layout::{Answer, Tab},
    links,
    view::{PER_PAGE, View},
};

pub(super) fn render(view: &View<'_>) -> Result<Answer, FrontError> {
    let project = view.project()?;
    let branch = view.text("branch")?;
    let branch = branch.ok_or_else(|| Unanswerable::bad("branch", "is missing"))?;
    let judge = |history: &History| view.engine.verdicts(history, view.now);
    let requested = (view.query.page()?, PER_PAGE);
    let state = release(view.store, judge, &project, &branch, requested, view.now)?;
    let state = state.ok_or(Unanswerable::BranchNotFound)?;
    let path = links::project(project.id, "/release");
    let body = html! {
        h1 { "Release " bdi { (branch) } }
        p { "May a release be cut? " b { (state.explanation) } "." }
        p.sub {
            "By the newest runs of " (branch_link(project.id, &branch)) " and " bdi { (state.stable.branch) }
            " in the last 14 days. The verdicts are the project's, by the runs of all branches."
        }
        (tests(project.id, &state, view.now))
        (pager(&state.page, |page| links::with_query(&path, &[("branch", Some(&branch)), ("page", Some(&page.to_string()))])))
    };
    let (escaped, page) = (links::escaped(&branch), state.page.page);
    let api = format!("/releases/{escaped}?page={page}&perPage=50");
    let heading = format!("Release {branch}");
    Ok(Answer::of_project(Tab::Runs, &heading, &[api], body, project))
}

fn tests(project: ProjectId, state: &ReleaseState, now: Timestamp) -> Markup {
    let is_stable = state.state.branch == state.stable.branch;
    let (both, there_only): (Vec<_>, Vec<_>) = state
        .tests
        .iter()
        .partition(|test| test.fails_on_stable && !is_stable);
    html! {
        @for (heading, tests) in [("Fail on this branch only", there_only), ("Fail on both", both)] {
            @if !tests.is_empty() {
                section aria-label=(heading) {
                    h2 { (if is_stable { "Failing tests" } else { heading }) }
                    (cards(tests.into_iter().map(|test| failure(project, test, now))))
                }
            }
        }
    }
}

fn failure(project: ProjectId, of: &ReleaseFailure, now: Timestamp) -> Markup {
    html! {
        p { (figures::chip(of.status)) " " a href=(links::test(project, &of.test_name, of.file_path.as_deref())) { bdi { (of.test_name) } } }
        (failing_since(project, &of.failing_since, None, of.author_name.as_deref(), now))
        @if let Some(owners) = owners_in_words(&of.ownership) { p.facts { span { (owners) } } }
    }
}
