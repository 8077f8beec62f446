//! `/p/{id}`: the problems of a project.

use std::sync::Arc;

use assay_answers::{
    owners::Owners,
    stable_branch::StableBranchState,
    test_list::{JudgedTests, NamedVerdict, sorted_part},
};
use assay_domain::{
    id::ProjectId,
    observation::{History, RunFacts},
    outcomes::Outcome as Bar,
    page::PerPage,
    period::{Days, Period},
    project::Project,
    run::{Outcome, RunQuery, RunRow},
    signature::{NewSignature, SignatureSort},
    store::{SharedKey, StoreError, in_snapshot, shared},
    test::TestName,
    test_names::TestNames,
    timestamp::Timestamp,
    verdict::{ENGINE_WINDOW_DAYS, Verdict, VerdictStatus},
};
use assay_markup::{
    chart::{self, RunBar},
    reading, strip, tile, tile_link, words,
};
use maud::{Markup, html};

use super::{
    first_run,
    parts::{cards, count, failing_since, newest_commit, when},
    rows,
};
use crate::{
    error::FrontError,
    layout::{Answer, Tab},
    links,
    view::View,
};

/// Most tests of a group on the page.
const TESTS: usize = 10;
/// Most runs in the chart.
const RUNS: usize = 40;
/// Most release branches on the page, the last ones by name.
const RELEASES: usize = 10;
/// Days of the tests.
const DAYS: i64 = ENGINE_WINDOW_DAYS;

pub(super) fn render(view: &View<'_>) -> Result<Answer, FrontError> {
    let project = view.project()?;
    let (history, tests) = Tests::read(view, &project)?;
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
    let new_signatures = view
        .store
        .new_signatures(&project, &Period::ending(view.now, Days::Seven))?;

    let Tests {
        total,
        broken,
        failing,
        flaky,
        stable,
        owners,
    } = &*tests;
    let id = project.id;
    let list = |group: &Group, heading: &str| {
        let rows = rows::rows(id, &history, (stable, owners), &group.worst(), view.now);
        group.section(id, heading, &rows)
    };
    let body = html! {
        h1 { (stable.sentence(&history)) }
        @if let Some(since) = stable.red_since(&history) {
            @let run = runs.iter().find(|run| run.run_number == since.run_number);
            (failing_since(id, &since, run.and_then(RunRow::subject), run.and_then(|run| run.author_name.as_deref()), view.now))
        }
        p { "Verdicts: " (words::headline(broken.tests, failing.tests, flaky.tests)) "." }
        p.sub {
            (words::count(*total, "test")) " in the last " (DAYS) " days. " (newest_commits(id, &runs, (&history.stable_branch, stable.newest(&history)), view.now))
        }
        section.tiles aria-label="Summary" {
            (broken.tile(id, "broken", "their code fails, run after run"))
            (failing.tile(id, "failing now", "the newest runs failed, the cause is open"))
            (flaky.tile(id, "flaky", "fail although the code is good"))
        }
        (releases(id, &history))
        (run_chart(id, &runs))
        (list(broken, "Broken"))
        (list(failing, "Failing now"))
        (list(flaky, "Flaky, by time lost"))
        (new_errors(id, &new_signatures, view.now))
        (reading::folded(&[&reading::VERDICTS, &reading::STRIP, &reading::FIGURES]))
    };
    let api = [
        "/flaky?perPage=50&explain=true",
        "/runs?days=30&perPage=50",
        "/errors?days=7&sort=firstSeen&perPage=10",
    ];
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

/// The tests of the engine's window.
struct Tests {
    total: usize,
    broken: Group,
    failing: Group,
    flaky: Group,
    stable: Arc<StableBranchState>,
    owners: Arc<Owners>,
}

impl Tests {
    /// Reads the runs of the window and judges their tests. Requests over the same runs share the judgement.
    fn read(view: &View<'_>, project: &Project) -> Result<(Arc<History>, Arc<Self>), FrontError> {
        let window = (view.now.plus_days(-ENGINE_WINDOW_DAYS), view.now);
        Ok(in_snapshot(view.store, project, |snapshot| {
            let history = snapshot.observations(window.0, window.1)?;
            let key = SharedKey::of_verdicts("overview", &history, view.now);
            let tests = shared(snapshot, key, window, |snapshot| {
                let verdicts = view.judged(snapshot)?;
                let tests = Self::of(&verdicts, &*snapshot.all_test_names()?)?;
                let bytes = tests.bytes();
                Ok((tests, bytes))
            })?;
            Ok((history, tests))
        })?)
    }

    fn of(verdicts: &JudgedTests, names: &TestNames) -> Result<Self, StoreError> {
        let group = |status| Group::of(verdicts, names, status);
        Ok(Self {
            total: verdicts.total(),
            broken: group(VerdictStatus::Broken)?,
            failing: group(VerdictStatus::Failing)?,
            flaky: group(VerdictStatus::Flaky)?,
            stable: Arc::clone(&verdicts.stable),
            owners: Arc::clone(&verdicts.owners),
        })
    }

    /// The approximate memory of the groups, in bytes.
    fn bytes(&self) -> usize {
        let groups = [&self.broken, &self.failing, &self.flaky];
        let worst = groups.into_iter().flat_map(|group| &group.worst);
        let tests = worst.map(|(TestName { name, file_path }, verdict)| {
            name.len() + file_path.as_ref().map_or(0, String::len) + verdict.bytes()
        });
        size_of_val(self) + tests.sum::<usize>()
    }
}

/// The tests with one status: their number, and those that the page shows.
struct Group {
    status: VerdictStatus,
    tests: usize,
    /// The tests with the most lost time, at most [`TESTS`] of them.
    worst: Vec<(TestName, Verdict)>,
}

impl Group {
    fn of(verdicts: &JudgedTests, names: &TestNames, status: VerdictStatus) -> Result<Self, StoreError> {
        let tests = verdicts.entries(names, |(_, verdict)| verdict.status == status)?;
        let count = tests.len();
        let worst = sorted_part(tests, (0, TESTS), |(left_name, left), (right_name, right)| {
            let (left, right) = (&left.figures, &right.figures);
            right
                .time_lost_ms
                .cmp(&left.time_lost_ms)
                .then_with(|| right.flake_score.total_cmp(&left.flake_score))
                .then_with(|| left_name.cmp(right_name))
        });
        let owned = worst
            .into_iter()
            .map(|(name, verdict)| (name.owned(), verdict.clone()));
        Ok(Self {
            status,
            tests: count,
            worst: owned.collect(),
        })
    }

    /// The rows of the worst tests, with a link to all. Nothing without a test.
    fn section(&self, project: ProjectId, heading: &str, rows: &Markup) -> Markup {
        html! {
            @if !self.worst.is_empty() {
                section aria-label=(heading) {
                    h2 { (heading) }
                    (rows)
                    @if self.tests > self.worst.len() {
                        p.pages { a href=(links::tests_with(project, self.status)) { "All " (words::grouped(self.tests)) } }
                    }
                }
            }
        }
    }

    fn worst(&self) -> Vec<NamedVerdict<'_>> {
        let worst = self.worst.iter();
        worst.map(|(name, verdict)| (name.borrowed(), verdict)).collect()
    }

    /// The number of these tests, with a link to their list if there are any.
    fn tile(&self, project: ProjectId, label: &str, hint: &str) -> Markup {
        let (class, figure) = (self.status.as_str(), words::grouped(self.tests));
        match self.tests {
            0 => tile(class, &figure, label, hint),
            _ => tile_link(
                class,
                &figure,
                label,
                hint,
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

fn new_errors(project: ProjectId, signatures: &[NewSignature], now: Timestamp) -> Markup {
    html! {
        @if !signatures.is_empty() {
            section aria-label="New errors" {
                h2 { "New errors of the last 7 days" }
                (cards(signatures.iter().map(|signature| html! {
                    a href=(links::signature(project, &signature.fingerprint)) { bdi { (signature.title) } }
                    p.facts {
                        span.category { (signature.category) }
                        span { (count(signature.tests, "test")) }
                        span { (count(signature.runs, "run")) }
                        span { "first seen " (when(signature.first_seen, now)) }
                    }
                })))
                p.pages { a href=(links::with_query(&links::project(project, "/errors"), &[("days", Some("7")), ("sort", Some(SignatureSort::FirstSeen.as_str()))])) { "All errors of the last 7 days" } }
            }
        }
    }
}
