//! The causes of a run's failures.

use std::{collections::HashMap, sync::Arc};

use assay_answers::{
    changes::NotRun,
    failures::{
        Breakage, CauseEvidence, ExplainedFailure, FailuresQuery, ListedFailures, RunFailures, run_failures,
    },
    stable_branch::{StableBranchState, authors},
};
use assay_domain::{
    cause::Knowledge,
    id::{ProjectId, RunId},
    merge_queue::is_queue_branch,
    owners::OwnerFilter,
    page::Page,
    project::Project,
    run::{RunDetail, TestEntry},
    store::in_snapshot,
    test::TestOrdinal,
    test_names::TestNameRef,
    verdict::{ENGINE_WINDOW_DAYS, FailingSince},
};
use assay_http::Unanswerable;
use assay_markup::{cause, figures, name, words};
use maud::{Markup, html};

use super::{Decisions, RepositoryLinks, first_line};
use crate::{
    error::FrontError,
    links,
    pages::{
        parts::{owners_in_words, run_link, since_run},
        whose::{failure_row, gate_section},
    },
    view::View,
};

/// Most files, classes and tests that are named because they did not run.
const MOST_NOT_RUN: usize = 5;
/// Most links to evidence runs per failure.
const MOST_LINKED_RUNS: usize = 3;

/// Tests per page with causes.
const PER_PAGE_WITH_CAUSES: u32 = 30;

/// The gate of a run, one page of its failed or recovered tests with their causes, the state of the stable branch, and the
/// authors of its runs.
pub(super) struct Causes(RunFailures, Arc<StableBranchState>, HashMap<i32, String>);

impl Causes {
    /// Reads one page, from 1, of the listed failures, or of those of an owner.
    pub(super) fn read(
        view: &View<'_>,
        project: &Project,
        run: RunId,
        knowledge: Knowledge,
        (listed, owner, page): (ListedFailures, Option<OwnerFilter>, u64),
    ) -> Result<Self, FrontError> {
        let query = FailuresQuery {
            run,
            knowledge,
            page,
            per_page: PER_PAGE_WITH_CAUSES,
            listed,
            owner,
        };
        let explained = run_failures(view.store, view.engine, project, &query, view.now)?;
        let window = (view.now.plus_days(-ENGINE_WINDOW_DAYS), view.now);
        let (stable, branch) = in_snapshot(view.store, project, |snapshot| {
            let history = snapshot.observations(window.0, window.1)?;
            let state = StableBranchState::in_snapshot(snapshot, &history, window)?;
            Ok((state, history.stable_branch.to_string()))
        })?;
        let explained = explained.ok_or(Unanswerable::RunNotFound)?;
        let authors = match explained.on_stable {
            true => authors(view.store, project, &branch, view.now)?,
            false => HashMap::new(),
        };
        Ok(Self(explained, stable, authors))
    }

    /// The position of this page in the list.
    pub(super) const fn page(&self) -> Page {
        self.0.page
    }

    /// What gates decided on the run.
    pub(super) fn decisions(&self) -> Decisions {
        Decisions(self.0.decisions.clone())
    }

    /// Whether an owner of tests of this page is known.
    pub(super) fn has_owners(&self) -> bool {
        self.0
            .failures
            .iter()
            .any(|failure| !failure.ownership.owners.is_empty())
    }

    /// The tests of this page.
    pub(super) fn tests(&self) -> Vec<TestOrdinal> {
        self.0.failures.iter().map(|failure| failure.test).collect()
    }

    /// The gate of the run, and the number of its failures by cause. `address` returns the page's address in a mode.
    pub(super) fn gate(
        &self,
        decisions: &Decisions,
        address: impl Fn(Option<&'static str>) -> String,
    ) -> Markup {
        let hindsight = Knowledge::Hindsight.as_str();
        let is_hindsight = self.0.mode == Knowledge::Hindsight;
        let details = html! {
            (decisions.judged_since())
            @if let Some(reason) = &self.0.incomplete { p.sub { "The run may lack results: " bdi { (reason) } "." } }
            @let NotRun { files, classes, skipped } = &self.0.not_run;
            @let not_run: Vec<&str> = files.iter().chain(classes).chain(skipped.iter().map(|test| &test.name))
                .take(MOST_NOT_RUN).map(String::as_str).collect();
            @if !not_run.is_empty() { p.sub { "Usually runs, and did not run: " bdi { (not_run.join(", ")) } "." } }
            @if self.0.run.branch.as_deref().is_some_and(is_queue_branch) {
                p.sub { "This is a run of a merge queue. The page of each pull request says whose failure it is." }
            }
        };
        let controls = html! {
            nav.controls aria-label="What is known" {
                div.chips {
                    a href=(address(None)) aria-current=[(!is_hindsight).then_some("true")] { "as known when it ran" }
                    a href=(address(Some(hindsight))) aria-current=[is_hindsight.then_some("true")] { "with later runs" }
                }
            }
        };
        let on_stable = self.0.on_stable.then_some("This run is");
        gate_section(&self.0.gate, on_stable, &details, Some(&controls))
    }

    /// When a test began to fail on the stable branch, and whether it still does.
    fn breakage(&self, project: ProjectId, failure: &ExplainedFailure, breakage: &Breakage) -> Markup {
        let run = |since: &FailingSince| since_run(project, since, &self.2);
        html! {
            p { "failing since " (run(&breakage.first_failed)) }
            @if let Some(passed) = &breakage.last_passed { p { "passed last in " (run(passed)) } }
            @if let Some(revert) = &breakage.revert { p { (revert.sentence()) } }
            p { @if self.1.fails(failure.test) { b { "still fails" } } @else { "does not fail any more" } }
        }
    }

    /// The tests of this page in the order of the read API: failures most probably caused by this branch first.
    pub(super) fn list(
        &self,
        project: ProjectId,
        run: &RunDetail,
        repository_links: &RepositoryLinks,
        decisions: &Decisions,
    ) -> Markup {
        let tests: HashMap<TestNameRef<'_>, &TestEntry> = run
            .tests
            .iter()
            .map(|test| (test_name(&test.test_name, test.file_path.as_deref()), test))
            .collect();
        // A failure without a test is omitted: the run may have been imported again after the failures were read.
        let listed: Vec<(&ExplainedFailure, &TestEntry)> = self
            .0
            .failures
            .iter()
            .filter_map(|failure| {
                let name = test_name(&failure.test_name, failure.file_path.as_deref());
                Some((failure, *tests.get(&name)?))
            })
            .collect();
        let names: Vec<_> = listed
            .iter()
            .map(|(_, test)| (test.test_name.as_str(), test.file_path.as_deref()))
            .collect();
        let short = name::short_names(&names);
        html! {
            ol.rows.failures {
                @for ((failure, test), short) in listed.iter().zip(&short) {
                    @let href = links::attempts(project, &run.run.id, &test.test_name, test.file_path.as_deref());
                    @let name = html! { a.leafed href=(href) { (name::in_list(short, &test.test_name)) } };
                    @let details = html! {
                        (decisions.mark(&test.test_name, test.file_path.as_deref()))
                        (details(project, test, failure, repository_links))
                    };
                    @let breakage = failure.breakage.as_ref().map(|breakage| self.breakage(project, failure, breakage));
                    (failure_row(failure, test.status, &name, &details, breakage.as_ref()))
                }
            }
        }
    }
}

/// How a test ended, where it is, and its error.
fn details(
    project: ProjectId,
    test: &TestEntry,
    failure: &ExplainedFailure,
    repository_links: &RepositoryLinks,
) -> Markup {
    html! {
        p.facts {
            span { (figures::ended(test.status)) @if test.attempts > 1 { ", " (test.attempts) " attempts" } @if let Some(ms) = test.duration_ms { ", " (words::duration(ms)) } }
            @if let Some(file) = &test.file_path { span { (repository_links.file(file)) } }
            @if let Some(owners) = owners_in_words(&failure.ownership) { span { bdi { (owners) } } }
            (facts(project, failure))
        }
        (error(project, test, failure))
    }
}

const fn test_name<'a>(name: &'a str, file_path: Option<&'a str>) -> TestNameRef<'a> {
    TestNameRef { name, file_path }
}

/// The verdict on the test, and the runs behind the sentence.
fn facts(project: ProjectId, failure: &ExplainedFailure) -> Markup {
    let CauseEvidence { runs, runs_total } = &failure.evidence;
    let linked = runs.get(..MOST_LINKED_RUNS.min(runs.len())).unwrap_or_default();
    let more = runs_total.saturating_sub(u32::try_from(linked.len()).unwrap_or(u32::MAX));
    html! {
        @if let Some(verdict) = &failure.verdict {
            span { a href=(links::test(project, &failure.test_name, failure.file_path.as_deref())) { "verdict" } ": " (figures::status(verdict.status).to_lowercase()) }
        }
        @for group in linked.chunk_by(|left, right| left.says == right.says) {
            @if let Some(first) = group.first() {
                span {
                    (cause::evidence(first.says)) " "
                    @for (place, run) in group.iter().enumerate() {
                        @if place > 0 { ", " }
                        (run_link(project, &run.run_id, run.run_number))
                    }
                }
            }
        }
        @if more > 0 && !linked.is_empty() { span { "and " (more) " more runs behind the sentence" } }
    }
}

/// The last error of the test as the test reported it, with a link to its signature if it has one.
fn error(project: ProjectId, test: &TestEntry, failure: &ExplainedFailure) -> Markup {
    let signature = failure.title.as_deref().zip(failure.fingerprint.as_deref());
    html! {
        @match (signature, test.error_message.as_deref()) {
            (Some((_, fingerprint)), Some(message)) => p.error { a href=(links::signature(project, fingerprint)) { bdi { (first_line(message)) } } },
            (Some((title, fingerprint)), None) => p.error { a href=(links::signature(project, fingerprint)) { bdi { (title) } } },
            (None, Some(message)) => p.error { bdi { (first_line(message)) } },
            (None, None) => {},
        }
    }
}
