//! `/p/{id}/runs/{run}`: one run, with the causes of its failures.

mod failures;

use assay_answers::failures::ListedFailures;
use assay_domain::{
    attempt::{AttemptStatus, ErrorDetail},
    cause::Knowledge,
    id::{ProjectId, RunId},
    owners::OwnerFilter,
    page::Page as PagePlace,
    project::Project,
    run::{RunDetail, RunStatus, SomeTests, TestEntry},
    store::StoreError,
    timestamp::Timestamp,
};
use assay_http::{Problem, Unanswerable};
use assay_markup::{
    figures, name, reading,
    repository::{self, Repository},
    words,
};
use maud::{Markup, html};

use self::failures::Causes;
use super::{
    decisions::Decisions,
    parts::{branch_link, commit, grouped, owner_form, pager, shares, when},
};
use crate::{
    error::FrontError,
    layout::{Answer, Tab},
    links,
    view::View,
};

/// Most errors outside of tests on the page.
const REPORT_ERRORS: usize = 10;

/// Tests per page by file.
const PER_PAGE_BY_FILE: u32 = 80;

/// The filters for the tests of the run.
const TEST_FILTERS: [(&str, &str); 3] = [
    ("failed", "failed"),
    ("recovered", "passed on retry"),
    ("all", "all"),
];

pub(super) fn render(view: &View<'_>) -> Result<Answer, FrontError> {
    let project = view.project()?;
    let id: RunId = view.part("run").parse().map_err(|_| Unanswerable::RunNotFound)?;
    match with_tests(view, &project, id) {
        Err(FrontError::Problem(Problem::Store(StoreError::Corrupt { .. }))) => damaged(view, project, id),
        answer => answer,
    }
}

/// The page of a run whose tests cannot be read.
fn damaged(view: &View<'_>, project: Project, id: RunId) -> Result<Answer, FrontError> {
    let run = view.store.run_with(&project, id, &SomeTests::Of(Vec::new()))?;
    let run = run.ok_or(Unanswerable::RunNotFound)?;
    let body = html! {
        (head(project.id, &run, &RepositoryLinks::of(&run), view.now))
        (report_errors(&run))
        section aria-labelledby="tests" {
            h2 #tests { "Tests" }
            div.box {
                p { b { "The stored results of this run are damaged. " } "Its tests cannot be shown. Other runs are not affected." }
                p { code { "assay-admin doctor" } " names the damage. To store the results again, restore the database from a backup, or import the run's reports with " code { "assay-admin import --replace" } " and the run's key." }
            }
        }
    };
    let title = format!("Run {}", run.run.run_number);
    Ok(Answer::of_project::<&str>(Tab::Runs, &title, &[], body, project))
}

fn with_tests(view: &View<'_>, project: &Project, id: RunId) -> Result<Answer, FrontError> {
    let requested_filter = view
        .query
        .parse("show", "must be one of failed, recovered, all", |word| {
            TEST_FILTERS
                .into_iter()
                .map(|(word, _)| word)
                .find(|filter| *filter == word)
        })?;
    let sort = view.query.parse("sort", "must be duration", |sort| {
        (sort == "duration").then_some("duration")
    })?;
    let page = view.query.page()?;
    let run_with = |tests: &SomeTests| -> Result<_, FrontError> {
        let run = view.store.run_with(project, id, tests)?;
        run.ok_or(Unanswerable::RunNotFound.into())
    };
    let counts = run_with(&SomeTests::Of(Vec::new()))?.counts;

    let shown = Selection {
        path: links::run(project.id, &id),
        filter: requested_filter.unwrap_or_else(|| default_filter(counts.failed, counts.recovered)),
        sort,
        knowledge: view.query.word("mode")?.unwrap_or(Knowledge::AtTheTime),
        owner: view.text("owner")?.map(|owner| OwnerFilter::of(&owner)),
    };
    let list = shown.list();
    let causes = Causes::read(
        view,
        project,
        id,
        shown.knowledge,
        match list {
            Some(listed) => (listed, shown.owner.clone(), page),
            None => (ListedFailures::All, None, 1),
        },
    )?;
    let place = match list {
        Some(_) => causes.page(),
        None => PagePlace::of_size(page, PER_PAGE_BY_FILE, u64::from(counts.total)),
    };
    let (offset, limit) = (place.offset(), PER_PAGE_BY_FILE);
    let run = run_with(&match (list, sort) {
        (Some(_), _) => SomeTests::Of(causes.tests()),
        (None, None) => SomeTests::Page { offset, limit },
        (None, Some(_)) => SomeTests::Slowest { offset, limit },
    })?;
    let decisions = causes.decisions();
    let repository_links = RepositoryLinks::of(&run);
    let body = html! {
        (head(project.id, &run, &repository_links, view.now))
        (report_errors(&run))
        (decisions.section(view.now))
        @if run.counts.failed > 0 { (causes.gate(&decisions, |mode| shown.address(shown.filter, None, mode))) }
        section aria-labelledby="tests" {
            h2 #tests { "Tests" }
            (shown.controls(&run))
            @if list.is_some() && (shown.owner.is_some() || causes.page().total > 1 && causes.has_owners()) { (shown.owner_form()) }
            @if place.total == 0 {
                p.empty { @if list.is_some() && shown.owner.is_some() { "No such test of this owner in this run." } @else { "No such test in this run." } }
            } @else if list.is_some() {
                (causes.list(project.id, &run, &repository_links, &decisions))
            } @else {
                (listed_tests(project.id, &run, &repository_links, &decisions, sort.is_some()))
            }
            (pager(&place, |page| shown.address(shown.filter, Some(&page.to_string()), shown.mode())))
        }
        @if list.is_some() { (reading::folded(&[&reading::CAUSES])) }
    };
    let detail = format!("/runs/{id}");
    let explained = links::with_query(
        &format!("{detail}/failures"),
        &[
            ("mode", shown.mode()),
            ("owner", shown.owner()),
            ("limit", Some("200")),
        ],
    );
    let title = format!("Run {}", run.run.run_number);
    let api = [detail, explained];
    Ok(Answer::of_project(Tab::Runs, &title, &api, body, project.clone()))
}

/// The failed tests of a run that has some, else those that passed on retry, else all.
const fn default_filter(failed: u32, recovered: u32) -> &'static str {
    match (failed, recovered) {
        (1.., _) => "failed",
        (0, 1..) => "recovered",
        (0, 0) => "all",
    }
}

/// Which tests of a run the page shows, and in which order.
struct Selection {
    path: String,
    filter: &'static str,
    sort: Option<&'static str>,
    knowledge: Knowledge,
    /// Only failures of tests with this owner. The list of all tests has no such filter.
    owner: Option<OwnerFilter>,
}

impl Selection {
    /// The list of failures; none for all tests.
    fn list(&self) -> Option<ListedFailures> {
        match self.filter {
            "failed" => Some(ListedFailures::FailedTests),
            "recovered" => Some(ListedFailures::RecoveredTests),
            _ => None,
        }
    }

    fn mode(&self) -> Option<&'static str> {
        (self.knowledge == Knowledge::Hindsight).then_some(self.knowledge.as_str())
    }

    /// The address of tests of the run in the present order.
    fn address(&self, filter: &str, page: Option<&str>, mode: Option<&str>) -> String {
        self.sorted_address(filter, self.sort.filter(|_| filter == "all"), page, mode)
    }

    fn sorted_address(
        &self,
        filter: &str,
        sort: Option<&str>,
        page: Option<&str>,
        mode: Option<&str>,
    ) -> String {
        let parameters = [
            ("show", Some(filter)),
            ("sort", sort),
            ("mode", mode),
            ("owner", self.owner().filter(|_| filter != "all")),
            ("page", page),
        ];
        links::with_query(&self.path, &parameters)
    }

    fn owner(&self) -> Option<&str> {
        self.owner.as_ref().map(OwnerFilter::as_str)
    }

    fn owner_form(&self) -> Markup {
        let kept = [("show", Some(self.filter)), ("mode", self.mode())];
        owner_form(&self.path, self.owner(), &kept)
    }

    /// The links to other tests and to another order.
    fn controls(&self, run: &RunDetail) -> Markup {
        let (filter, mode) = (self.filter, self.mode());
        html! {
            nav.controls aria-label="Which tests" {
                div.chips {
                    @for (word, label) in TEST_FILTERS {
                        @let count = match word { "failed" => run.counts.failed, "recovered" => run.counts.recovered, _ => run.counts.total };
                        a href=(self.address(word, None, mode)) aria-current=[(word == filter).then_some("true")] {
                            (label) " " span { (grouped(count)) }
                        }
                    }
                }
                @if self.list().is_none() {
                    div.chips {
                        @for (each, label) in [(None, "by file"), (Some("duration"), "longest first")] {
                            a href=(self.sorted_address(filter, each, None, mode)) aria-current=[(each == self.sort).then_some("true")] { (label) }
                        }
                    }
                }
            }
        }
    }
}

/// Links from the run's commit, files and pull request to its repository.
pub(super) struct RepositoryLinks {
    repository: Option<Repository>,
    commit: Option<String>,
}

impl RepositoryLinks {
    fn of(run: &RunDetail) -> Self {
        Self::new(run.run.run_url.as_deref(), run.run.commit_sha.as_deref())
    }

    /// The links of a CI run's repository, with files at a commit.
    pub(super) fn new(run_url: Option<&str>, commit: Option<&str>) -> Self {
        Self {
            repository: run_url.and_then(Repository::of_run),
            commit: commit.map(str::to_owned),
        }
    }

    /// A commit, with a link if its page is known.
    pub(super) fn commit(&self, sha: &str) -> Markup {
        let page = self
            .repository
            .as_ref()
            .and_then(|repository| repository.commit(sha));
        repository::link(page.as_deref(), &commit(sha))
    }

    /// A file, with a link if its page is known.
    pub(super) fn file(&self, file: &str) -> Markup {
        let page = self
            .repository
            .as_ref()
            .zip(self.commit.as_deref())
            .and_then(|(repository, sha)| repository.file(sha, file));
        repository::link(page.as_deref(), &html! { bdi { (file) } })
    }

    /// A pull request's number, with a link if its page is known.
    pub(super) fn pull_request(&self, number: i64) -> Markup {
        let page = self
            .repository
            .as_ref()
            .and_then(|repository| repository.pull_request(number));
        repository::link(page.as_deref(), &html! { b { (number) } })
    }
}

fn head(project: ProjectId, run: &RunDetail, repository_links: &RepositoryLinks, now: Timestamp) -> Markup {
    let (counts, run) = (run.counts, &run.run);
    let status = match run.status {
        RunStatus::Passed => "passed",
        RunStatus::Failed => "failed",
        RunStatus::Incomplete => "incomplete",
    };
    let plain = counts.passed.saturating_sub(counts.recovered);
    html! {
        h1 { "Run " (run.run_number) " " span class={ "chip " (status) } { (status) } }
        @if !run.trusted { p.sub { "It was sent with a key for pull requests only, which anyone may have. It counts in no verdict." } }
        @if let Some(subject) = run.subject() { p { bdi { (subject) } } }
        p.facts {
            @if let Some(branch) = &run.branch { span { "branch " b { (branch_link(project, branch)) } } }
            @if let Some(sha) = &run.commit_sha { span { "commit " (repository_links.commit(sha)) } }
            @if let Some(revision) = assay_domain::revision::tested_or_commit(run.tested_revision.as_deref(), run.commit_sha.as_deref()) { span { a href=(links::commit(project, revision)) { "all runs of this commit" } } }
            @if let Some(revision) = run.tested_revision.as_ref().filter(|revision| Some(*revision) != run.commit_sha.as_ref()) { span { "tested revision " (repository_links.commit(revision)) } }
            @if let Some(number) = run.pull_request_number { span { "pull request " (repository_links.pull_request(number)) @if let Some(title) = &run.pull_request_title { ", " bdi { (title) } } } }
            @if let Some(author) = &run.author_name { span { "by " bdi { (author) } } }
            @if let Some(suite) = &run.suite { span { "suite " b { bdi { (suite) } } } }
            @if let Some(url) = &run.run_url { span { (repository::link(Some(url), &html! { "CI run" })) " at " bdi { (repository::host(url)) } } }
            span { (when(run.started_at, now)) }
            @if let Some(duration) = run.duration_ms.and_then(|ms| u64::try_from(ms).ok()) { span { "took " b { (words::duration(duration)) } } }
            @if let Some(shards) = &run.shards {
                span { (shards.received.len()) @if let Some(expected) = shards.expected { " of " (expected) } " shards" }
            }
        }
        div.box {
            (shares(&counts))
            p.facts {
                span { b { (grouped(counts.failed)) } " failed" }
                span { b { (grouped(counts.recovered)) } " passed on retry" }
                span { b { (grouped(plain)) } " passed at the first attempt" }
                span { b { (grouped(counts.skipped)) } " skipped" }
                span { "of " b { (grouped(counts.total)) } " tests" }
            }
        }
    }
}

fn report_errors(run: &RunDetail) -> Markup {
    let errors = &run.run.report_errors;
    let more = errors.len().saturating_sub(REPORT_ERRORS)
        + usize::try_from(run.run.omitted_report_errors).unwrap_or(usize::MAX);
    html! {
        @if !errors.is_empty() {
            section aria-labelledby="report-errors" {
                h2 #report-errors { "Errors outside of tests" }
                div.box {
                    @for error in errors.iter().take(REPORT_ERRORS) { (report_error(error)) }
                    @if more > 0 { p.sub { "And " (words::grouped(more)) " more." } }
                }
            }
        }
    }
}

fn report_error(error: &ErrorDetail) -> Markup {
    let text = [&error.message, &error.stack]
        .into_iter()
        .flatten()
        .next()
        .cloned()
        .unwrap_or_default();
    let beginning: String = text.chars().take(2_000).collect();
    html! { pre tabindex="0" { (beginning) } }
}

/// The tests in their order: grouped by file, or with `is_one_list` as one list.
fn listed_tests(
    project: ProjectId,
    run: &RunDetail,
    repository_links: &RepositoryLinks,
    decisions: &Decisions,
    is_one_list: bool,
) -> Markup {
    let tests = &run.tests;
    let names: Vec<_> = tests
        .iter()
        .map(|test| (test.test_name.as_str(), test.file_path.as_deref()))
        .collect();
    let short = name::short_names(&names);
    let named: Vec<(&TestEntry, &name::ShortName)> = tests.iter().zip(&short).collect();
    html! {
        @for group in named.chunk_by(|(left, _), (right, _)| is_one_list || left.file_path == right.file_path) {
            @if let Some((first, _)) = group.first() {
                @if !is_one_list { h3.path { @match &first.file_path { Some(file) => (repository_links.file(file)), None => "(no file)" } } }
                ol.rows {
                    @for (test, short) in group {
                        @let href = links::attempts(project, &run.run.id, &test.test_name, test.file_path.as_deref());
                        li.row.(test.status.as_str()) { a.of-run href=(href) { (listed_test(test, short, decisions)) } }
                    }
                }
            }
        }
    }
}

fn listed_test(test: &TestEntry, short: &name::ShortName, decisions: &Decisions) -> Markup {
    html! {
        @match test.status {
            AttemptStatus::Passed if test.attempts > 1 => span.chip.recovered { "on retry" },
            _ => (figures::ended_chip(test.status)),
        }
        span.named {
            (name::in_list(short, &test.test_name))
            @if decisions.has_excused(&test.test_name, test.file_path.as_deref()) { " " span.chip.excused { "Excused" } }
            @if let Some(message) = test.error_message.as_deref().filter(|_| test.status.is_failure()) {
                span.path { bdi { (first_line(message)) } }
            }
        }
        span.sub { @if let Some(browser) = &test.browser_name { bdi { (browser) } } }
        span.figure { @if test.attempts > 1 { (test.attempts) " ×" span.unseen { " attempts" } } }
        span.figure { (test.duration_ms.map_or("–".to_owned(), words::duration)) }
    }
}

/// The first non-blank line of a message, bounded.
fn first_line(message: &str) -> String {
    let line = message
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default();
    line.trim().chars().take(160).collect()
}
