//! `/`: the projects.

use assay_components::{
    strip::{self, Outcome, Scale},
    words,
};
use assay_domain::{
    id::ProjectId,
    page::{Direction, PerPage},
    run::{Outcome as RunOutcome, RunQuery, RunRow},
    verdict::VerdictStatus,
    window::{Days, Window},
};
use maud::{Markup, html};

use super::{
    first_run,
    parts::{ended, when},
};
use crate::{
    error::FrontError,
    layout::{Answer, Page, Tab},
    links,
    view::View,
};

/// Most projects with details. Further projects have only their names.
const DETAILED_PROJECTS: usize = 20;

/// The verdicts whose tests are counted, with their words.
const COUNTED: [(VerdictStatus, &str); 3] = [
    (VerdictStatus::Broken, "broken"),
    (VerdictStatus::Failing, "failing now"),
    (VerdictStatus::Flaky, "flaky"),
];

pub(super) fn render(view: &View<'_>) -> Result<Answer, FrontError> {
    let projects = view.store.projects(&view.caller)?;
    if let [only] = projects.as_slice() {
        return Ok(Answer::Redirect(links::project(only.id, "")));
    }
    let mut detailed_projects = Vec::new();
    for entry in projects.iter().take(DETAILED_PROJECTS) {
        let Some(project) = view.directory.project(&view.caller, entry.id, view.now)? else {
            continue;
        };
        let query = RunQuery {
            window: Window::ending(view.now, Days::Thirty),
            branch: None,
            sha: None,
            pull_request: None,
            // Runs of public keys count in no verdict, so they are in no chart.
            trusted: Some(true),
            number: None,
            status: None,
            per_page: PerPage::TwentyFive,
            position: None,
            direction: Direction::Next,
        };
        let runs = view.store.runs(&project, &query)?.runs;
        let verdicts = view.verdicts(&project)?;
        detailed_projects.push((entry, runs, verdicts));
    }
    // The projects whose stable branch is red come first.
    detailed_projects.sort_by_key(|(_, _, verdicts)| std::cmp::Reverse(verdicts.stable.failing()));
    let body = html! {
        h1 { "Projects" }
        @if projects.is_empty() {
            (first_run::of_organization(view))
        }
        div.panels {
            @for (entry, runs, verdicts) in &detailed_projects {
                section.panel {
                    h2 { a href=(links::project(entry.id, "")) { bdi { (entry.name) } } }
                    p { b { (verdicts.stable.sentence(&verdicts.history)) } }
                    p.facts {
                        @for (status, word) in COUNTED {
                            span { (counted(entry.id, verdicts.count(status), status, word)) }
                        }
                    }
                    @let cells: Vec<Option<Outcome>> = runs.iter().rev().map(cell).collect();
                    p { (strip::draw(&cells, Scale { step: 9, height: 22 }, "Runs")) }
                    p.sub {
                        @match runs.first() {
                            Some(run) => { "Last run " a href=(links::run(entry.id, &run.id)) { "#" (run.run_number) } ", " (ended(run)) ", " (when(run.started_at, view.now)) },
                            None => "No run in the last 30 days",
                        }
                    }
                }
            }
        }
        @if !detailed_projects.is_empty() {
            p.sub { "A bar is a run, the newest on the right." }
            (strip::legend([Outcome::Passed, Outcome::Recovered, Outcome::Failed]))
        }
        @if projects.len() > DETAILED_PROJECTS {
            h2 { "Further projects" }
            ul { @for entry in projects.iter().skip(DETAILED_PROJECTS) { li { a href=(links::project(entry.id, "")) { bdi { (entry.name) } } } } }
        }
    };
    Ok(Page {
        title: "Projects".to_owned(),
        project: None,
        tab: Tab::None,
        body,
        api: vec!["/projects".to_owned()],
    }
    .into())
}

/// A number of tests, with a link to their list if there are any.
fn counted(project: ProjectId, tests: usize, status: VerdictStatus, word: &str) -> Markup {
    html! {
        @if tests > 0 {
            a href=(links::tests_with(project, status)) { b { (words::grouped(tests)) } " " (word) }
        } @else {
            b { "0" } " " (word)
        }
    }
}

/// The outcome of a run, if it is known. A passed run with recovered tests counts as passed on retry.
fn cell(run: &RunRow) -> Option<Outcome> {
    match run.status {
        Some(RunOutcome::Failed) => Some(Outcome::Failed),
        Some(RunOutcome::Passed) if run.counts.recovered > 0 => Some(Outcome::Recovered),
        Some(RunOutcome::Passed) => Some(Outcome::Passed),
        None => None,
    }
}
