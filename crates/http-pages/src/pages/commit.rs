//! `/p/{id}/commit/{sha}` and `/p/{id}/pull/{number}`: all runs of a commit, with one list of their failures.

use std::{collections::HashMap, iter};

use assay_answers::{
    changes::{ChangedTests, RenamedTests, RunChanges, SlowerTests, changes_of_runs},
    commit::{
        CommitFailure, CommitResults, CommitRun, CommitRuns, CommitSelector, Trust, commit_results,
        newest_commit, sha_of,
    },
    ejection::{Ejection, ejection},
    failed_error::FailedError,
    failures::FailureFilter,
    stable_branch::authors,
};
use assay_domain::{
    id::{ProjectId, RunId},
    owners::OwnerFilter,
    project::Project,
    run::{RunRow, RunStatus, ShardDurations},
    timestamp::Timestamp,
    verdict::FailingSince,
};
use assay_http::Unanswerable;
use assay_markup::{figures, name, reading, repository, words};
use maud::{Markup, html};

use super::{
    decisions::Decisions,
    parts::{branch_link, commit, ended, grouped, owner_form, owners_in_words, pager, since_run, when},
    run::RepositoryLinks,
    whose::{failure_row, gate_section},
};
use crate::{
    error::FrontError,
    layout::{Answer, Tab},
    links,
    view::View,
};

/// Failures per page. Each is read with its error.
const PER_PAGE: u32 = 10;

/// The page of a commit.
pub(super) fn of_commit(view: &View<'_>) -> Result<Answer, FrontError> {
    let sha = sha_of(view.part("sha")).ok_or(Unanswerable::CommitNotFound)?;
    let path = format!("/commit/{sha}");
    render(view, &CommitSelector::Sha(sha), &path)
}

/// The page of a pull request: its newest commit.
pub(super) fn of_pull_request(view: &View<'_>) -> Result<Answer, FrontError> {
    let number = view.part("number");
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    let parsed = number
        .parse()
        .ok()
        .filter(|number: &i64| is_number && *number >= 1);
    let number = parsed.ok_or(Unanswerable::CommitNotFound)?;
    render(
        view,
        &CommitSelector::PullRequest(number),
        &format!("/pull/{number}"),
    )
}

fn render(view: &View<'_>, selector: &CommitSelector, path: &str) -> Result<Answer, FrontError> {
    let project = view.project()?;
    let page = view.query.page()?;
    let found = newest_commit(view.store, &project, selector, Trust::Preferred, view.now)?
        .ok_or(Unanswerable::CommitNotFound)?;
    let filter = FailureFilter {
        name_part: None,
        owner: view.text("owner")?.map(|owner| OwnerFilter::of(&owner)),
    };
    let owner = filter.owner.as_ref().map(OwnerFilter::as_str);
    let requested = (&filter, (page, PER_PAGE));
    let results = commit_results(
        view.store,
        view.engine,
        &project,
        &found.runs,
        requested,
        view.now,
    )?
    .ok_or(Unanswerable::CommitNotFound)?;
    let ejection = ejection(view.store, view.engine, &project, &found, view.now)?;
    let decisions = decisions(view, &project, &results)?;
    let failures = failures(view, &project, &results)?;
    let address = |page: u64| {
        let page = page.to_string();
        let parameters = [("owner", owner), ("page", Some(page.as_str()))];
        links::with_query(&links::project(project.id, path), &parameters)
    };
    let authors = match &results.commit.branch {
        Some(branch) if results.on_stable => authors(view.store, &project, branch, view.now)?,
        Some(_) | None => HashMap::new(),
    };
    let heading = heading(selector, &results);
    let ids: Vec<RunId> = results.runs.iter().map(|run| run.id).collect();
    let changes = changes_of_runs(view.store, view.engine, &project, &ids, view.now)?;
    let body = html! {
        (head(project.id, selector, &heading, &results))
        @if let Some(ejection) = &ejection { (ejected(project.id, ejection)) }
        @if results.counts.failed > 0 { (gate(&results, &decisions)) }
        (runs(project.id, &results, (&decisions, &changes), view.now))
        section aria-labelledby="failures" {
            h2 #failures { "Failures" }
            @if owner.is_some() || failures.len() > 1 && failures.iter().any(|(of, _)| !of.failure.ownership.owners.is_empty()) {
                (owner_form(&links::project(project.id, path), owner, &[]))
            }
            @if failures.is_empty() {
                p.empty { @if owner.is_some() { "No test of this owner failed or passed on retry." } @else { "No test failed or passed on retry." } }
            } @else {
                (list(project.id, &results, &failures, (&decisions, &authors)))
            }
            (pager(&results.page, address))
        }
        (changed(project.id, &changes))
        (other_commits(project.id, selector, &found, view.now))
        @if !failures.is_empty() { (reading::folded(&[&reading::CAUSES])) }
    };
    let commit = match (selector, &results.commit.revision) {
        (CommitSelector::Sha(sha), _) | (_, Some(sha)) => format!("/commits/{sha}"),
        (CommitSelector::PullRequest(_) | CommitSelector::Branch(_), None) => "/runs".to_owned(),
    };
    let decided = decisions.iter().filter(|(_, decisions)| decisions.is_some());
    let failures = decided.map(|(run, _)| format!("/runs/{run}/failures"));
    let api: Vec<String> = iter::once(commit).chain(failures).collect();
    Ok(Answer::of_project(Tab::Runs, &heading, &api, body, project))
}

fn heading(selector: &CommitSelector, results: &CommitResults) -> String {
    match selector {
        CommitSelector::PullRequest(number) => format!("Pull request {number}"),
        CommitSelector::Branch(branch) => format!("Branch {branch}"),
        CommitSelector::Sha(sha) => {
            let revision = results.commit.revision.as_deref().unwrap_or(sha);
            format!("Commit {}", revision.chars().take(8).collect::<String>())
        }
    }
}

fn head(project: ProjectId, selector: &CommitSelector, heading: &str, results: &CommitResults) -> Markup {
    let of = &results.commit;
    let links_out = repository_links(results);
    let counts = results.counts;
    let absent = &results.absent_suites;
    let is_passed_so_far = results.status == RunStatus::Passed && !absent.is_empty();
    let colour = if is_passed_so_far {
        RunStatus::Incomplete
    } else {
        results.status
    };
    html! {
        h1 { (heading) " " span class={ "chip " (colour) } { (results.status) @if is_passed_so_far { " so far" } } }
        @if !absent.is_empty() {
            p { "No run so far, which the newest commit of " (branch_link(project, &results.stable_branch)) " has: suite" @if absent.len() > 1 { "s" } " " bdi { (absent.join(", ")) } "." }
        }
        @if results.runs.iter().any(|run| !run.trusted) { p.sub { "It was sent with a key for pull requests only, which anyone may have. It counts in no verdict." } }
        @if let Some(subject) = &of.subject { p { bdi { (subject) } } }
        p.facts {
            @if let Some(branch) = &of.branch { span { "branch " b { (branch_link(project, branch)) } } }
            @if let Some(sha) = &of.commit_sha { span { "commit " (links_out.commit(sha)) } }
            @if let Some(revision) = of.revision.as_ref().filter(|revision| Some(*revision) != of.commit_sha.as_ref()) { span { "tested revision " (links_out.commit(revision)) } }
            @if let Some(number) = of.pull_request_number {
                @if *selector == CommitSelector::PullRequest(number) {
                    span { "pull request " (links_out.pull_request(number)) }
                } @else {
                    span { a href=(links::pull_request(project, number)) { "pull request " (number) } }
                }
            }
            @if let Some(author) = &of.author_name { span { "by " bdi { (author) } } }
            span { b { (grouped(counts.failed)) } " failed" }
            span { b { (grouped(counts.recovered)) } " passed on retry" }
            span { b { (grouped(counts.skipped)) } " skipped" }
            span { "of " b { (grouped(counts.total)) } " tests" }
        }
    }
}

/// Why the merge queue did not merge the pull request.
fn ejected(project: ProjectId, ejection: &Ejection) -> Markup {
    html! {
        section aria-labelledby="queue" {
            h2 #queue { "Merge queue" }
            p {
                a href=(links::run(project, &ejection.run)) { "Run " (ejection.run_number) }
                " failed with " (grouped(ejection.failed)) " failed " @if ejection.failed == 1 { "test" } @else { "tests" } ". "
                bdi { (ejection.sentence(str::to_owned)) }
            }
            @if let Some(test) = &ejection.test {
                p.facts { span { a href=(links::attempts(project, &ejection.run, &test.name, test.file.as_deref())) { "its error" } } span { a href=(links::test(project, &test.name, test.file.as_deref())) { "history" } } }
            }
        }
    }
}

fn repository_links(results: &CommitResults) -> RepositoryLinks {
    let run_url = results.runs.iter().find_map(|run| run.run_url.as_deref());
    RepositoryLinks::new(run_url, results.commit.commit_sha.as_deref())
}

fn gate(results: &CommitResults, decisions: &[(RunId, Decisions)]) -> Markup {
    let decided = decisions
        .iter()
        .map(|(_, decisions)| decisions)
        .find(|decisions| decisions.is_some());
    let details = decided.map_or_else(Markup::default, Decisions::judged_since);
    let on_stable = results.on_stable.then_some("These runs are");
    gate_section(&results.gate, on_stable, &details, None)
}

/// What gates decided in CI, by run. Only runs with a failure are read.
fn decisions(
    view: &View<'_>,
    project: &Project,
    results: &CommitResults,
) -> Result<Vec<(RunId, Decisions)>, FrontError> {
    let failed = results.runs.iter().filter(|run| run.counts.failed > 0);
    failed
        .map(|run| Ok((run.id, Decisions::read(view, project, run.id)?)))
        .collect()
}

fn of_run(decisions: &[(RunId, Decisions)], run: RunId) -> Option<&Decisions> {
    decisions
        .iter()
        .find(|(id, _)| *id == run)
        .map(|(_, decisions)| decisions)
}

fn runs(
    project: ProjectId,
    results: &CommitResults,
    (decisions, changes): (&[(RunId, Decisions)], &[RunChanges]),
    now: Timestamp,
) -> Markup {
    let base = |run: RunId| changes.iter().find(|of| of.run.id == run)?.base.as_ref();
    html! {
        section aria-labelledby="runs" {
            h2 #runs { (words::count(results.runs.len(), "run")) }
            ol.rows {
                @for run in &results.runs {
                    li.row.(run.state()) { div.card { (run_row(project, run, base(run.id), now)) @if let Some(decisions) = of_run(decisions, run.id) { (decisions.sentences(now)) } } }
                }
            }
        }
    }
}

fn run_row(project: ProjectId, run: &CommitRun, base: Option<&FailingSince>, now: Timestamp) -> Markup {
    let (state, counts) = (run.state(), run.counts);
    html! {
        p {
            span class={ "chip " (state) } { (state) } " "
            a.leaf href=(links::run(project, &run.id)) { "Run " (run.run_number) }
            @if let Some(suite) = &run.suite { ", suite " b { bdi { (suite) } } }
        }
        @if let Some(reason) = &run.incomplete { p.sub { "It may lack results: " bdi { (reason) } "." } }
        p.facts {
            span { b { (grouped(counts.failed)) } " failed" }
            @if counts.recovered > 0 { span { b { (grouped(counts.recovered)) } " on retry" } }
            span { "of " b { (grouped(counts.total)) } " tests" }
            @if let Some(shards) = run.shards { span { (shards.received) @if let Some(expected) = shards.expected { " of " (expected) } " shards" @if let Some(of) = run.shard_durations { ": " (evenness(of)) } } }
            span { (when(run.started_at, now)) }
            @if let Some(base) = base { span { "against " a href=(links::project(project, &format!("/runs/{}", base.run_id))) { "run " (base.run_number) } @if let Some(revision) = &base.revision { " (" (commit(revision)) ")" } } }
            @if let Some(duration) = run.duration_ms.and_then(|ms| u64::try_from(ms).ok()) { span { (words::duration(duration)) } }
            @if let Some(url) = &run.run_url { span { (repository::link(Some(url), &html! { "CI run" })) " at " bdi { (repository::host(url)) } } }
        }
    }
}

/// How evenly the shards were divided, such as `1 min 31 s to 1 min 40 s, the longest 1.04 times the mean`.
fn evenness(of: ShardDurations) -> String {
    format!(
        "{} to {}, the longest {} times the mean",
        words::duration(of.shortest_ms),
        words::duration(of.longest_ms),
        of.longest_in_means()
    )
}

/// The failures of the page, each with its error.
fn failures(
    view: &View<'_>,
    project: &Project,
    results: &CommitResults,
) -> Result<Vec<(CommitFailure, FailedError)>, FrontError> {
    let errors = FailedError::of_failures(view.store, project, &results.failures)?;
    Ok(results.failures.iter().cloned().zip(errors).collect())
}

fn list(
    project: ProjectId,
    results: &CommitResults,
    failures: &[(CommitFailure, FailedError)],
    (decisions, authors): (&[(RunId, Decisions)], &HashMap<i32, String>),
) -> Markup {
    let names: Vec<_> = failures
        .iter()
        .map(|(of, _)| (of.failure.test_name.as_str(), of.failure.file_path.as_deref()))
        .collect();
    let short = name::short_names(&names);
    html! {
        ol.rows.failures {
            @for ((of, error), short) in failures.iter().zip(&short) {
                @let failure = &of.failure;
                @let file = failure.file_path.as_deref();
                @let href = links::attempts(project, &of.run_id, &failure.test_name, file);
                @let name = html! { a.leafed href=(href) { (name::in_list(short, &failure.test_name)) } };
                @let details = html! {
                    @if let Some(decisions) = of_run(decisions, of.run_id) { (decisions.mark(&failure.test_name, file)) }
                    (error_line(project, of, error))
                    (facts(project, of, error, results))
                };
                @let breakage = failure.breakage.as_ref().map(|breakage| html! {
                    p { "failing since " (since_run(project, &breakage.first_failed, authors)) }
                    @if let Some(revert) = &breakage.revert { p { (revert.sentence()) } }
                });
                (failure_row(failure, failure.status, &name, &details, breakage.as_ref()))
            }
        }
    }
}

/// How a test ended, in which run, and where it is.
fn facts(project: ProjectId, of: &CommitFailure, error: &FailedError, results: &CommitResults) -> Markup {
    let links_out = repository_links(results);
    let failure = &of.failure;
    let file = failure.file_path.as_deref();
    html! {
        p.facts {
            span { (figures::ended(failure.status)) @if failure.attempts > 1 { ", " (failure.attempts) " attempts" } }
            @if results.runs.len() > 1 { span { a href=(links::run(project, &of.run_id)) { "run " (of.run_number) } @if let Some(suite) = &of.suite { ", " bdi { (suite) } } } }
            @match (&error.file, file) {
                (Some(raised), _) => span { "at " (links_out.file(raised)) @if let Some(line) = error.line_number { ":" (line) } },
                (None, Some(file)) => span { (links_out.file(file)) },
                (None, None) => {},
            }
            @if let Some(owners) = owners_in_words(&failure.ownership) { span { bdi { (owners) } } }
            span { a href=(links::test(project, &failure.test_name, file)) { "history" } }
        }
    }
}

/// The error as the test reported it, with a link to its signature if it has one.
fn error_line(project: ProjectId, of: &CommitFailure, error: &FailedError) -> Markup {
    let text = error.line.as_deref().or(of.failure.title.as_deref());
    html! {
        @match (text, of.failure.fingerprint.as_deref()) {
            (Some(text), Some(fingerprint)) => p.error { a href=(links::signature(project, fingerprint)) { bdi { (text) } } },
            (Some(text), None) => p.error { bdi { (text) } },
            (None, _) => {},
        }
    }
}

/// What the commit changed against the stable branch, by run.
fn changed(project: ProjectId, changes: &[RunChanges]) -> Markup {
    let has_changes = |of: &&RunChanges| {
        let lists = [
            &of.broken,
            &of.repaired,
            &of.newly_skipped,
            &of.no_longer_reported,
            &of.added,
        ];
        of.renamed.total > 0
            || of.slower.total > 0
            || of.selection().is_some()
            || lists.iter().any(|list| list.total > 0)
    };
    let changes: Vec<&RunChanges> = changes.iter().filter(has_changes).collect();
    html! {
        @if !changes.is_empty() {
            section aria-labelledby="changes" {
                h2 #changes { "Changes against the stable branch" }
                @for of in changes {
                    div.box {
                        p.sub { a href=(links::run(project, &of.run.id)) { "Run " (of.run.run_number) } }
                        @if let Some(why) = of.selection() { p.sub { (why) "." } }
                        (list_of(project, "no longer reported", &of.no_longer_reported, true))
                        (list_of(project, "newly skipped", &of.newly_skipped, true))
                        (list_of(project, "newly failing", &of.broken, true))
                        (list_of(project, "repaired", &of.repaired, false))
                        (list_of(project, "new", &of.added, false))
                        @if of.slower.total > 0 { (slower(project, &of.slower)) }
                        @if of.renamed.total > 0 { (renamed(&of.renamed)) }
                    }
                }
            }
        }
    }
}

fn slower(project: ProjectId, slower: &SlowerTests) -> Markup {
    html! {
        details.plain {
            summary { b { (grouped(slower.total)) } " slower" }
            ul {
                @for slower in &slower.tests {
                    li {
                        a href=(links::test(project, &slower.test.name, slower.test.file_path.as_deref())) { bdi { (slower.test.name) } }
                        " " (format!("{:.1}", slower.factor)) " times as long: " (words::duration(slower.duration_ms)) ", usually " (words::duration(u64::try_from(slower.usual_ms).unwrap_or(0))) " on such a machine"
                    }
                }
            }
        }
    }
}

/// The renames. One that was guessed may be a test that is gone, so it is not folded.
fn renamed(renamed: &RenamedTests) -> Markup {
    html! {
        details.plain open[renamed.tests.iter().any(|test| test.guessed)] {
            summary { b { (grouped(renamed.total)) } " renamed" }
            ul {
                @for test in &renamed.tests {
                    @let [from, to] = test.in_words();
                    li { bdi { (from) } @if test.guessed { " is probably now " } @else { " is now " } bdi { (to) } }
                }
            }
        }
    }
}

/// The tests with a change. Those that a reviewer must see are not folded.
fn list_of(project: ProjectId, words: &str, changed: &ChangedTests, is_open: bool) -> Markup {
    html! {
        @if changed.total > 0 {
            details.plain open[is_open] {
                summary { b { (grouped(changed.total)) } " " (words) }
                ul {
                    @for test in &changed.tests {
                        li { a href=(links::test(project, &test.name, test.file_path.as_deref())) { bdi { (test.name) } } }
                    }
                }
            }
        }
    }
}

/// Earlier commits of a pull request.
fn other_commits(
    project: ProjectId,
    selector: &CommitSelector,
    found: &CommitRuns,
    now: Timestamp,
) -> Markup {
    let earlier: &[RunRow] = match selector {
        CommitSelector::PullRequest(_) => &found.other_commits,
        CommitSelector::Sha(_) | CommitSelector::Branch(_) => &[],
    };
    html! {
        @if !earlier.is_empty() {
            section aria-labelledby="earlier" {
                h2 #earlier { "Earlier commits" }
                ul {
                    @for run in earlier {
                        @if let Some(revision) = run.revision() {
                            li {
                                a href=(links::commit(project, revision)) { (commit(revision)) } " " (ended(run)) ", " (when(run.started_at, now))
                                @if let Some(subject) = run.subject() { ": " bdi { (subject) } }
                            }
                        }
                    }
                }
            }
        }
    }
}
