//! `/p/{id}/runs/{run}/test`: the attempts of a test in a run, side by side.

use assay_answers::{
    failures::failure_of,
    prompt::{self, Place},
};
use assay_domain::{
    attempt::{AttemptOutput, ErrorDetail},
    id::RunId,
    test::FileSelector,
    test_attempts::{StoredAttempt, TestAttempts},
    timestamp::Timestamp,
};
use assay_http::{Unanswerable, single_test};
use assay_markup::{cause, figures, name, repository, words};
use maud::{Markup, html};

use super::{
    decisions::Decisions,
    parts::{branch_link, commit, owners_in_words},
};
use crate::{
    error::FrontError,
    layout::{Answer, Tab},
    links,
    view::View,
};

/// Most characters of each error text on the page.
const TEXT_CHARS: usize = 4_000;
/// Most characters of each output on the page.
const OUTPUT_CHARS: usize = 8_000;
/// Most errors per attempt on the page.
const ERRORS: usize = 5;
/// Most attempts on the page.
const ATTEMPTS: usize = 10;

pub(super) fn render(view: &View<'_>) -> Result<Answer, FrontError> {
    let project = view.project()?;
    let id: RunId = view.part("run").parse().map_err(|_| Unanswerable::RunNotFound)?;
    let selector = view.test()?;
    let attempts = view.store.attempts(&project, id, &selector)?;
    let attempts = single_test(attempts.ok_or(Unanswerable::RunNotFound)?)?;
    let explained = failure_of(view.store, view.engine, &project, &attempts, view.now)?;
    let decisions = Decisions::read(view, &project, id)?;
    let test = &attempts.test;
    let address = view
        .pages
        .map(|pages| pages.attempts(project.id, &id, &test.name, test.file_path.as_deref()));
    let prompt_place = Place {
        project: &project.name,
        page: address.as_deref(),
    };
    let first_attempts = attempts.attempts.get(..ATTEMPTS.min(attempts.attempts.len()));
    let omitted = usize::try_from(attempts.omitted).unwrap_or_default();
    let hidden = attempts.attempts.len().saturating_sub(ATTEMPTS) + omitted;
    let body = html! {
        h1 { (name::heading(&test.name, test.file_path.as_deref())) }
        p.facts {
            span { a href=(links::run(project.id, &id)) { "Run " (attempts.run.run_number) } @if let Some(branch) = &attempts.run.branch { " on " (branch_link(project.id, branch)) } }
            @if let Some(sha) = &attempts.commit_sha { span { "commit " (commit(sha)) } }
            span { a href=(links::test(project.id, &test.name, test.file_path.as_deref())) { "Verdict and history of this test" } }
        }
        @if let Some(failure) = &explained {
            p.why { "This failure: " (cause::chip(failure.cause)) " " (failure.explanation) "." }
            @if let Some(owners) = owners_in_words(&failure.ownership) { p.sub { bdi { (owners) } } }
        }
        (decisions.mark(&test.name, test.file_path.as_deref()))
        @if let Some(verdict) = &attempts.verdict { p.why { "This test: " (figures::chip(verdict.status)) " " (verdict.explanation) "." } }
        @if let Some((title, fingerprint)) = explained.as_ref().and_then(|failure| failure.title.as_ref().zip(failure.fingerprint.as_ref())) {
            p.why { "This error: " a href=(links::signature(project.id, fingerprint)) { bdi { (title) } } }
        }
        h2 { (words::count(attempts.attempts.len() + omitted, "attempt")) }
        div.attempts {
            @for (place, attempt) in first_attempts.unwrap_or_default().iter().enumerate() {
                @let prompt = prompt::of(prompt_place, &attempts, attempt, explained.as_ref());
                (panel(&attempts, attempt, prompt.as_deref().map(|prompt| (place, prompt)), view.now))
            }
        }
        @if hidden > 0 { p.sub { "And " (words::grouped(hidden)) " more attempts; the JSON has them." } }
    };
    let file = match &selector.file {
        FileSelector::Any => None,
        FileSelector::Exactly(file) => Some(file.clone().unwrap_or_default()),
    };
    let title = format!("{}, run {}", name::in_title(&test.name), attempts.run.run_number);
    let route = format!("/runs/{id}/tests/{}", links::escaped(&test.name));
    let api = [
        links::with_query(&route, &[("filePath", file.as_deref())]),
        format!("/runs/{id}/failures"),
    ];
    Ok(Answer::of_project(Tab::Runs, &title, &api, body, project))
}

/// One attempt, with its prompt and the prompt's number on the page.
fn panel(
    of: &TestAttempts,
    attempt: &StoredAttempt,
    prompt: Option<(usize, &str)>,
    now: Timestamp,
) -> Markup {
    let has_executions = of.attempts.iter().any(|attempt| attempt.execution > 0);
    html! {
        section.panel {
            h3 {
                span class={ "chip " (attempt.status.as_str()) } { (figures::ended(attempt.status)) } " "
                (prompt::label(attempt.retry))
                @if has_executions { ", execution " (attempt.execution + 1) }
            }
            p.facts {
                @if let Some(duration) = attempt.duration_ms { span { (words::duration(duration)) } }
                @if let Some(browser) = &attempt.browser_name { span { bdi { (browser) } } }
                @if let Some(shard) = attempt.shard { span { "shard " (shard.index) } }
            }
            @if let Some(reason) = &attempt.skip_reason { p { "Skipped: " bdi { (cut(reason)) } } }
            (errors(attempt))
            (output(&attempt.output, of.started_at, now))
            @if let Some((place, prompt)) = prompt {
                @let anchor = format!("prompt-{place}");
                p { button type="button" data-copy=(anchor) hidden { "Copy prompt" } }
                details.plain { summary { "Prompt for an assistant" } pre id=(anchor) tabindex="0" { (prompt) } }
            }
        }
    }
}

fn errors(attempt: &StoredAttempt) -> Markup {
    html! {
        @for error in attempt.errors.iter().take(ERRORS) { (self::error(error)) }
        @if attempt.errors.len() > ERRORS { p.sub { "And " (attempt.errors.len() - ERRORS) " more errors." } }
    }
}

/// The files that the report names, and what the attempt printed. CI deletes its files some time after the run.
fn output(of: &AttemptOutput, started_at: Timestamp, now: Timestamp) -> Markup {
    html! {
        @if !of.attachments.is_empty() {
            p.sub { "Files of this run, which started " (words::age(started_at, now)) ":" }
            ul {
                @for attachment in &of.attachments {
                    li {
                        @match &attachment.url {
                            Some(url) => (repository::link(Some(url), &html! { bdi { (attachment.name) } })),
                            None => bdi { (attachment.name) },
                        }
                        @if let Some(path) = attachment.path.as_ref().filter(|path| **path != attachment.name) { span.path { bdi { (path) } } }
                        @if let Some(kind) = &attachment.kind { span.path { bdi { (kind) } } }
                    }
                }
            }
        }
        @if let Some(console) = &of.console {
            details.plain { summary { "Output" } pre tabindex="0" { (end(console)) } }
        }
    }
}

/// The end of a text, which is where a failure shows.
fn end(text: &str) -> String {
    let surplus = text.chars().count().saturating_sub(OUTPUT_CHARS);
    let end: String = text.chars().skip(surplus).collect();
    if surplus == 0 { end } else { format!("…{end}") }
}

fn error(error: &ErrorDetail) -> Markup {
    html! {
        @if let Some(message) = &error.message { pre tabindex="0" { (cut(message)) } }
        @if let Some(location) = &error.location {
            p.sub { "at " code { bdi { (location.file) } @if let Some(line) = location.line { ":" (line) } } }
        }
        @if let Some(snippet) = &error.snippet { pre.lines tabindex="0" { (cut(snippet)) } }
        @if let Some(stack) = &error.stack {
            details.plain { summary { "Stack" } pre.lines tabindex="0" { (cut(stack)) } }
        }
    }
}

fn cut(text: &str) -> String {
    let mut cut: String = text.chars().take(TEXT_CHARS).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    cut
}
