//! `/p/{id}`: the problems of a project.

use assay_answers::test_list::{TestFilters, TestList, TestQuery};
use assay_domain::{
    id::ProjectId,
    observation::{History, RunFacts},
    outcomes::Outcome as Bar,
    page::PerPage,
    period::{Days, Period},
    project::Project,
    run::{Outcome, RunQuery, RunRow},
    signature::{Signature, SignatureQuery, SignatureSort},
    store::in_snapshot,
    timestamp::Timestamp,
    verdict::{ENGINE_WINDOW_DAYS, TestSort, VerdictStatus},
};
use assay_markup::{
    chart::{self, RunBar},
    figures, reading, strip, tile, tile_link, words,
};
use maud::{Markup, html};

use super::{
    first_run,
    parts::{cards, count, failing_since, grouped, newest_commit, when},
    rows,
};
use crate::{
    error::FrontError,
    layout::{Answer, Tab},
    links,
    view::View,
};

/// Most runs in the chart.
const RUNS: usize = 40;
/// Most release branches on the page, the last ones by name.
const RELEASES: usize = 10;

/// The tests of a verdict on the page.
struct Group {
    status: VerdictStatus,
    /// The words below their number.
    hint: &'static str,
    /// The heading of those that lost most time.
    heading: &'static str,
}

const GROUPS: [Group; 3] = [
    Group {
        status: VerdictStatus::Broken,
        hint: "their code fails, run after run",
        heading: "Broken",
    },
    Group {
        status: VerdictStatus::Failing,
        hint: "the newest runs failed, the cause is open",
        heading: "Failing now",
    },
    Group {
        status: VerdictStatus::Flaky,
        hint: "fail although the code is good",
        heading: "Flaky, by time lost",
    },
];

pub(super) fn render(view: &View<'_>) -> Result<Answer, FrontError> {
    let project = view.project()?;
    let (judged, lists) = in_snapshot(view.store, &project, |snapshot| {
        let judged = view.judged(snapshot)?;
        let mut list = |of: &Group| TestList::in_snapshot(snapshot, &project, &judged, &of.query(), view.now);
        let lists: Vec<TestList> = GROUPS.iter().map(&mut list).collect::<Result<_, _>>()?;
        Ok((judged, lists))
    })?;
    let (history, stable) = (&judged.history, &judged.stable);
    let counts = judged.counts();
    let runs = view
        .store
        .runs(
            &project,
            &RunQuery {
                // Runs of public keys count in no verdict, so they are in no chart.
                trusted: Some(true),
                ..RunQuery::newest(Period::ending(view.now, Days::Thirty), PerPage::Fifty)
            },
        )?
        .runs;
    if runs.is_empty() && first_run::has_no_run(view, &project)? {
        return Ok(without_run(view, project));
    }
    let new_errors = SignatureQuery {
        period: Period::ending(view.now, Days::Seven),
        branch: None,
        category: None,
        search: None,
        sort: SignatureSort::FirstSeen,
        page: 1,
        per_page: PerPage::Ten,
    };
    let new_errors = view.store.signatures(&project, &new_errors)?.signatures;
    let id = project.id;
    let body = html! {
        h1 { (stable.sentence(history)) }
        @if let Some(since) = stable.red_since(history) {
            @let run = runs.iter().find(|run| run.run_number == since.run_number);
            (failing_since(id, &since, run.and_then(RunRow::subject), run.and_then(|run| run.author_name.as_deref()), view.now))
        }
        p { "Verdicts: " (words::headline(counts.broken, counts.failing, counts.flaky)) "." }
        p.sub {
            (words::count(counts.total, "test")) " in the last " (ENGINE_WINDOW_DAYS) " days. " (newest_commits(id, &runs, (&history.stable_branch, stable.newest(history)), view.now))
        }
        section.tiles aria-label="Summary" {
            @for group in &GROUPS { (group.tile(id, counts.of(group.status))) }
        }
        (releases(id, history))
        (run_chart(id, &runs))
        @for (group, list) in GROUPS.iter().zip(&lists) { (group.section(id, list, view.now)) }
        (new_signatures(id, &new_errors, view.now))
        (reading::folded(&[&reading::VERDICTS, &reading::STRIP, &reading::FIGURES]))
    };
    let mut api = GROUPS
        .map(|group| format!("/tests?{}", group.parameters()))
        .to_vec();
    api.extend([
        "/runs?days=30&trusted=true&perPage=50".to_owned(),
        "/errors?days=7&sort=firstSeen".to_owned(),
    ]);
    Ok(Answer::of_project(Tab::Overview, "", &api, body, project))
}

/// The page of a project without a run.
fn without_run(view: &View<'_>, project: Project) -> Answer {
    let body = html! {
        h1 { "Connect " bdi { (project.name) } }
        (first_run::of_project(view, project.id))
    };
    Answer::of_project(Tab::Overview, "", &["/runs?days=30&perPage=50"], body, project)
}

impl Group {
    /// The ten tests that lost most time.
    fn query(&self) -> TestQuery {
        TestQuery {
            filters: TestFilters::default(),
            status: Some(self.status),
            sort: TestSort::TimeLost,
            by_owner: false,
            page: 1,
            per_page: PerPage::Ten,
        }
    }

    /// The same as parameters of the list's route.
    fn parameters(&self) -> String {
        format!("status={}&sort={}", self.status, TestSort::TimeLost)
    }

    /// The rows of the list, with a link to all. Nothing without a test.
    fn section(&self, project: ProjectId, list: &TestList, now: Timestamp) -> Markup {
        html! {
            @if !list.tests.is_empty() {
                section aria-label=(self.heading) {
                    h2 { (self.heading) }
                    (rows::rows(project, list, now))
                    @if list.page.page_count > 1 {
                        p.pages { a href=(links::tests_with(project, self.status)) { "All " (grouped(list.page.total)) } }
                    }
                }
            }
        }
    }

    /// The number of these tests, with a link to their list if there are any.
    fn tile(&self, project: ProjectId, tests: usize) -> Markup {
        let (class, figure) = (self.status.as_str(), words::grouped(tests));
        let label = figures::status(self.status).to_lowercase();
        match tests {
            0 => tile(class, &figure, &label, self.hint),
            _ => tile_link(
                class,
                &figure,
                &label,
                self.hint,
                &links::tests_with(project, self.status),
            ),
        }
    }
}

/// The pages of the release branches with a run.
fn releases(project: ProjectId, history: &History) -> Markup {
    let branches = history.release_branches();
    html! {
        @if !branches.is_empty() {
            p { "May a release be cut?" @for branch in branches.iter().rev().take(RELEASES) { " " a href=(links::release(project, branch)) { bdi { (branch) } } } }
        }
    }
}

/// How the newest commit of the stable branch ended, and which commit is newer.
fn newest_commits(
    project: ProjectId,
    newest_first: &[RunRow],
    (stable, newest_stable): (&str, Option<&RunFacts>),
    now: Timestamp,
) -> Markup {
    let all: Vec<&RunRow> = newest_first.iter().collect();
    let is_stable = |run: &&RunRow| run.branch.as_deref() == Some(stable);
    let is_newest = |run: &&RunRow| {
        newest_stable.is_none_or(|newest| {
            run.run_number == newest.number
                || newest.revision.is_some() && run.revision() == newest.revision.as_deref()
        })
    };
    let on_stable = newest_first
        .iter()
        .filter(is_stable)
        .filter(is_newest)
        .collect::<Vec<_>>();
    let newer = newest_first.first().filter(|run| !is_stable(run));
    html! {
        @if let Some(newest) = newest_commit(project, &on_stable, now) {
            "Newest on the stable branch: " (newest) ". "
        } @else {
            "Stable branch " code { bdi { (stable) } } ". "
        }
        @if newer.is_some() && let Some(newest) = newest_commit(project, &all, now) {
            "Newest of all: " (newest) "."
        }
    }
}

/// The newest runs, each with a link.
fn run_chart(project: ProjectId, newest_first: &[RunRow]) -> Markup {
    let mut shown: Vec<&RunRow> = newest_first.iter().take(RUNS).collect();
    shown.reverse();
    let failed_runs = shown
        .iter()
        .filter(|run| run.status == Some(Outcome::Failed))
        .count();
    let label = format!(
        "The newest {}, {failed_runs} of them failed",
        words::count(shown.len(), "run")
    );
    let bars: Vec<RunBar> = shown
        .iter()
        .map(|run| RunBar {
            about: about(run),
            link: Some(links::run(project, &run.id)),
            failed: run.counts.failed,
            recovered: run.counts.recovered,
            has_failed: run.status == Some(Outcome::Failed),
        })
        .collect();
    html! {
        @if let (Some(first), Some(last)) = (shown.first(), shown.last()) {
            figure.panel {
                figcaption {
                    span { b { (words::count(failed_runs, "failed run")) } " of the last " (shown.len()) ": the more tests failed, the higher the bar" }
                    a href=(links::project(project, "/runs")) { "All runs" }
                }
                (chart::runs(&bars, &label, [&words::day(first.started_at), &words::day(last.started_at)]))
                (strip::legend([Bar::Passed, Bar::Recovered, Bar::Failed]))
            }
        } @else {
            p.panel { "No run in the last 30 days. " code { "assay upload" } " or " code { "assay-admin import" } " adds one." }
        }
    }
}

fn about(run: &RunRow) -> String {
    let branch = run
        .branch
        .as_ref()
        .map(|branch| format!(", {branch}"))
        .unwrap_or_default();
    format!(
        "run {}{branch}, {}: {} failed, {} passed on retry, of {}",
        run.run_number,
        words::date_time(run.started_at),
        run.counts.failed,
        run.counts.recovered,
        words::count(usize::try_from(run.counts.total).unwrap_or(usize::MAX), "test"),
    )
}

/// The errors of the last 7 days that never occurred before.
fn new_signatures(project: ProjectId, newest_first: &[Signature], now: Timestamp) -> Markup {
    let new = newest_first.iter().filter(|signature| signature.is_new);
    html! {
        @if newest_first.iter().any(|signature| signature.is_new) {
            section aria-label="New errors" {
                h2 { "New errors of the last 7 days" }
                (cards(new.map(|signature| html! {
                    a href=(links::signature(project, &signature.fingerprint)) { bdi { (signature.title) } }
                    p.facts {
                        span.category { (signature.category) }
                        span { (count(signature.test_count, "test")) }
                        span { (count(signature.run_count, "run")) }
                        span { "first seen " (when(signature.first_seen, now)) }
                    }
                })))
                p.pages { a href=(links::with_query(&links::project(project, "/errors"), &[("days", Some("7")), ("sort", Some(SignatureSort::FirstSeen.as_str()))])) { "All errors of the last 7 days" } }
            }
        }
    }
}
