//! `/`: the projects.

use assay_answers::test_list::JudgedTests;
use assay_domain::{
    folding::fold,
    id::ProjectId,
    outcomes::Outcome,
    page::PerPage,
    period::{Days, Period},
    project::ProjectEntry,
    run::{Outcome as RunOutcome, RunQuery, RunRow},
    verdict::VerdictStatus,
};
use assay_markup::{
    figures,
    strip::{self, Scale},
    words,
};
use maud::{Markup, html};

use super::{first_run, parts::newest_commit};
use crate::{
    error::FrontError,
    layout::{Answer, Page, Tab},
    links,
    view::View,
};

/// Most projects that are judged. The first of a longer list are; a search selects others.
const JUDGED_PROJECTS: usize = 60;

/// Most projects with details: those with the most failing tests. Further projects have only their names.
const DETAILED_PROJECTS: usize = 20;

/// The verdicts whose tests are counted.
const COUNTED: [VerdictStatus; 3] = [
    VerdictStatus::Broken,
    VerdictStatus::Failing,
    VerdictStatus::Flaky,
];

pub(super) fn render(view: &View<'_>) -> Result<Answer, FrontError> {
    let search = view.text("search")?;
    let projects = view.store.projects(&view.caller)?;
    if let ([only], None) = (projects.as_slice(), &search) {
        return Ok(Answer::Redirect(links::project(only.id, "")));
    }
    let folded = search.as_deref().map(fold);
    let is_wanted = |entry: &&ProjectEntry| {
        folded
            .as_deref()
            .is_none_or(|text| fold(&entry.name).contains(text))
    };
    let matching: Vec<&ProjectEntry> = projects.iter().filter(is_wanted).collect();
    let (cards, others) = detailed(view, &matching)?;
    let mut api = vec!["/projects".to_owned()];
    for card in &cards {
        let of_card = ["/tests", "/runs?days=30&trusted=true&perPage=25"];
        api.extend(of_card.map(|path| format!("/projects/{}{path}", card.entry.id)));
    }
    let body = html! {
        h1 { "Projects" }
        @if projects.is_empty() && view.caller.only.is_some() {
            p.empty { "No project of this organization is open to you." }
        } @else if projects.is_empty() {
            (first_run::of_organization(view))
        } @else {
            form.controls role="search" action="/" method="get" data-live {
                label.search { span.unseen { "Search projects" } input name="search" type="search" value=[search.as_deref()] maxlength="200" placeholder="Search projects" autocomplete="off"; }
                button type="submit" { "Apply" }
            }
        }
        div #results {
            @if matching.is_empty() && !projects.is_empty() {
                p.empty { "No project matches. " a href="/" { "Show all projects" } }
            }
            div.panels { @for card in &cards { (card.panel(view)) } }
            @if !cards.is_empty() {
                p.sub { "A bar is a run, the newest on the right." }
                (strip::legend([Outcome::Passed, Outcome::Recovered, Outcome::Failed]))
            }
            @if !others.is_empty() {
                h2 { "Further projects" }
                ul { @for entry in &others { li { a href=(links::project(entry.id, "")) { bdi { (entry.name) } } } } }
            }
        }
    };
    Ok(Answer::Page(Box::new(Page {
        title: "Projects".to_owned(),
        project: None,
        tab: Tab::None,
        body,
        api,
    })))
}

/// A project with its state, verdicts and newest runs.
struct Card<'a> {
    entry: &'a ProjectEntry,
    verdicts: JudgedTests,
    runs: Vec<RunRow>,
}

/// The cards of the projects with the most tests that fail on the stable branch, then of those whose newest run there failed
/// outside of its tests, and the other projects by name.
fn detailed<'a>(
    view: &View<'_>,
    projects: &[&'a ProjectEntry],
) -> Result<(Vec<Card<'a>>, Vec<&'a ProjectEntry>), FrontError> {
    let mut judged = Vec::new();
    for entry in projects.iter().take(JUDGED_PROJECTS) {
        if let Some(project) = view.directory.project(&view.caller, entry.id, view.now)? {
            judged.push((*entry, view.verdicts(&project)?, project));
        }
    }
    // Stable, so that equal projects keep the order of the list.
    judged.sort_by_key(|(_, verdicts, _)| {
        let state = verdicts.stable.state(&verdicts.history);
        let failed_outside_tests = state.suites.iter().any(|suite| suite.failed_outside_tests);
        std::cmp::Reverse((state.failing, failed_outside_tests))
    });
    let further = judged.split_off(DETAILED_PROJECTS.min(judged.len()));
    let mut others: Vec<&ProjectEntry> = further.into_iter().map(|(entry, ..)| entry).collect();
    others.extend(projects.iter().skip(JUDGED_PROJECTS));
    let mut cards = Vec::new();
    for (entry, verdicts, project) in judged {
        let query = RunQuery {
            // Runs of public keys count in no verdict, so they are in no chart.
            trusted: Some(true),
            ..RunQuery::newest(Period::ending(view.now, Days::Thirty), PerPage::TwentyFive)
        };
        let runs = view.store.runs(&project, &query)?.runs;
        cards.push(Card {
            entry,
            verdicts,
            runs,
        });
    }
    Ok((cards, others))
}

impl Card<'_> {
    fn panel(&self, view: &View<'_>) -> Markup {
        let Self {
            entry,
            verdicts,
            runs,
        } = self;
        let counts = verdicts.counts();
        let cells: Vec<Option<Outcome>> = runs.iter().rev().map(cell).collect();
        html! {
            section.panel {
                h2 { a href=(links::project(entry.id, "")) { bdi { (entry.name) } } }
                p { b { (verdicts.stable.sentence(&verdicts.history)) } }
                p.facts {
                    @for status in COUNTED { span { (counted(entry.id, counts.of(status), status)) } }
                }
                p { (strip::draw(&cells, Scale { step: 9, height: 22 }, "Runs")) }
                p.sub {
                    @match newest_commit(entry.id, &runs.iter().collect::<Vec<_>>(), view.now) {
                        Some(newest) => { "Newest: " (newest) },
                        None => "No run in the last 30 days",
                    }
                }
            }
        }
    }
}

/// A number of tests, with a link to their list if there are any.
fn counted(project: ProjectId, tests: usize, status: VerdictStatus) -> Markup {
    let word = figures::status(status).to_lowercase();
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
