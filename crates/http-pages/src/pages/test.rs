//! `/p/{id}/test`: a test's verdict, its evidence and its history.

use std::collections::BTreeMap;

use assay_answers::{fix::fix_status, owners::owners, stable_branch::StableBranchState};
use assay_domain::{
    fix::{FixState, WatchedFix},
    history::{Occurrence, TestHistory},
    id::{ProjectId, RunId},
    outcomes::{Outcome, variant_name},
    project::Project,
    run::{Run, SomeTests},
    shell,
    signature::TestSignature,
    store::in_snapshot,
    test::{TestLookup, TestName, TestSelector},
    timestamp::Timestamp,
    verdict::{ENGINE_WINDOW_DAYS, FailingSince, StoredVerdict},
};
use assay_http::single_test;
use assay_markup::{
    chart::{self, PeriodBar},
    figures, name, reading, strip, words,
};
use maud::{Markup, html};

use super::parts::{cards, choice, count, failing_since, grouped, owners_in_words, section, when};
use crate::{
    error::FrontError,
    layout::{Answer, Tab},
    links,
    view::View,
};

/// Most runs in a strip.
const CELLS: usize = 60;
/// Most strips on the page.
const STRIPS: usize = 8;
/// Most durations in the chart.
const DURATIONS: usize = 80;

pub(super) fn render(view: &View<'_>) -> Result<Answer, FrontError> {
    let project = view.project()?;
    let selector = view.test()?;
    let period = view.period()?;
    let history = single_test(view.store.history(&project, &selector, &period)?)?;
    let verdict = match view.store.verdict(&project, &selector)? {
        TestLookup::Found(verdict) => verdict.stored,
        TestLookup::Missing | TestLookup::Ambiguous(_) => None,
    };
    let since = failing_on_stable(view, &project, &selector)?;
    let signatures = single_test(view.store.test_signatures(&project, &selector, &period)?)?;
    let test = &history.test;
    let owned = in_snapshot(view.store, &project, |snapshot| {
        Ok(owners(snapshot, view.now)?.of(test.file_path.as_deref()))
    })?;
    let fixed = single_test(fix_status(
        view.store,
        view.engine,
        &project,
        &selector,
        view.now,
    )?)?
    .fixes;
    let days = period.days.count().to_string();
    let body = html! {
        h1 { (name::heading(&test.name, test.file_path.as_deref())) }
        @if let Some(owners) = owners_in_words(&owned) { p.sub { bdi { (owners) } } }
        @if let Some((since, run)) = &since {
            p { b { "Fails on " bdi { (history.stable_branch) } } }
            (failing_since(project.id, since, run.as_ref().and_then(Run::subject), run.as_ref().and_then(|run| run.author_name.as_deref()), view.now))
        }
        @if let Some(written) = &history.written_name {
            p { "In the newest report: " (name::in_title(written)) }
        }
        (self::verdict(project.id, verdict.as_ref(), &history, since.as_ref().map(|(since, _)| since.run_number), view))
        section aria-labelledby="history" {
            h2 #history { "History" }
            form.controls action=(links::project(project.id, "/test")) method="get" {
                input type="hidden" name="name" value=(test.name);
                input type="hidden" name="file" value=(test.file_path.as_deref().unwrap_or_default());
                label { span { "Days" } select name="days" { @for each in view.periods() { (choice(&each.to_string(), Some(&days), &each.to_string())) } } }
                button type="submit" { "Apply" }
            }
            @if history.occurrences.is_empty() {
                p.empty { "It did not run in these " (days) " days." }
            } @else {
                div.box { (strips(project.id, test, &history)) (strip::legend(strip::RUN_OUTCOMES)) }
                (durations(&history.occurrences))
            }
        }
        (fixes(project.id, &fixed, view.now))
        (errors(project.id, &signatures, view.now))
        (reading::folded(&[&reading::VERDICTS, &reading::STRIP, &reading::FIGURES]))
    };
    let route = format!("/tests/{}", links::escaped(&test.name));
    let file = ("filePath", Some(test.file_path.as_deref().unwrap_or_default()));
    let api = [
        links::with_query(&route, &[("days", Some(days.as_str())), file]),
        links::with_query(&format!("{route}/status"), &[file]),
        links::with_query(&format!("{route}/fix"), &[file]),
        links::with_query(&format!("{route}/proof"), &[file]),
    ];
    let title = name::in_title(&test.name);
    Ok(Answer::of_project(Tab::Tests, &title, &api, body, project))
}

/// The run since which the test fails on the stable branch; none if its newest result there did not fail.
fn failing_on_stable(
    view: &View<'_>,
    project: &Project,
    test: &TestSelector,
) -> Result<Option<(FailingSince, Option<Run>)>, FrontError> {
    let window = (view.now.plus_days(-ENGINE_WINDOW_DAYS), view.now);
    let since = in_snapshot(view.store, project, |snapshot| {
        let history = snapshot.observations(window.0, window.1)?;
        let stable = StableBranchState::in_snapshot(snapshot, &history, window)?;
        let lookups = snapshot.test_ordinals(std::slice::from_ref(test))?;
        Ok(lookups.into_iter().find_map(|lookup| match lookup {
            TestLookup::Found(test) => stable.failing_since(&history, test),
            TestLookup::Missing | TestLookup::Ambiguous(_) => None,
        }))
    })?;
    let Some(since) = since else {
        return Ok(None);
    };
    let run = match since.run_id.parse() {
        Ok(id) => view.store.run_with(project, id, &SomeTests::Of(Vec::new()))?,
        Err(_) => None,
    };
    Ok(Some((since, run.map(|detail| detail.run))))
}

fn verdict(
    project: ProjectId,
    verdict: Option<&StoredVerdict>,
    history: &TestHistory,
    fails_since: Option<i32>,
    view: &View<'_>,
) -> Markup {
    let Some(verdict) = verdict else {
        return html! { p.why { "There is no verdict on this test yet." } };
    };
    let numbers: BTreeMap<String, i32> = history
        .occurrences
        .iter()
        .map(|occurrence| (occurrence.run_id.to_string(), occurrence.run_number))
        .collect();
    let run = |id: &str| {
        html! {
            @match id.parse::<RunId>() {
                Ok(run) => a href=(links::run(project, &run)) { @match numbers.get(id) { Some(number) => { "run " (number) }, None => "an earlier run" } },
                Err(_) => (id),
            }
        }
    };
    let chip = match fails_since {
        Some(_) => figures::chip_before(verdict.status, fails_since),
        None => figures::chip_on(verdict.status, &history.stable_branch, &verdict.failing_on),
    };
    html! {
        p.why { (chip) " " (verdict.explanation) "." }
        div.box {
            (figures::metrics(&verdict.figures, verdict.last.as_ref().map(|(_, last)| (last.status, last.started_at))))
            p.sub { "Judged " (when(verdict.evaluated_at, view.now)) "." }
            details {
                summary { "Recompute" }
                p { "The runs, the constants and the answer as one file, which is computed again without this server:" }
                pre { "assay proof --project " (project) " --test " (shell::quoted(&history.test.name)) " > proof.json\nassay proof check proof.json" }
            }
        }
        @if !verdict.failing_on.is_empty() {
            p.facts {
                span { "Fails now on" }
                @for on in &verdict.failing_on { span { b { bdi { (on.branch.as_deref().unwrap_or("runs without a branch")) } } " (" (words::count(usize::try_from(on.streak).unwrap_or(usize::MAX), "run")) ")" } }
            }
        }
        @if !verdict.evidence.signals.is_empty() {
            (section("evidence", "Evidence", &html! { div.panel { (figures::evidence(&verdict.evidence, &run)) } }))
        }
    }
}

/// Strips by branch, the stable one first, and by variant if there are several.
fn strips(project: ProjectId, test: &TestName, history: &TestHistory) -> Markup {
    let mut branches: BTreeMap<(bool, Option<&str>), Vec<&Occurrence>> = BTreeMap::new();
    let mut variants: BTreeMap<&str, Vec<&Occurrence>> = BTreeMap::new();
    for occurrence in &history.occurrences {
        let branch = occurrence.branch.as_deref();
        let is_other = branch != Some(history.stable_branch.as_str());
        branches.entry((is_other, branch)).or_default().push(occurrence);
        let variant = variant_name(occurrence.suite.as_deref().unwrap_or_default());
        variants.entry(variant).or_default().push(occurrence);
    }
    let mut by_branch: Vec<_> = branches.into_iter().collect();
    // Branches with the newest runs first, after the stable one.
    by_branch.sort_by_key(|((is_other, _), occurrences)| {
        (
            *is_other,
            std::cmp::Reverse(occurrences.first().map(|occurrence| occurrence.started_at)),
        )
    });
    let hidden = by_branch.len().saturating_sub(STRIPS);
    html! {
        div.strips {
            @for ((is_other, branch), occurrences) in by_branch.iter().take(STRIPS) {
                div.branch {
                    p.label { span.on { bdi { (branch.unwrap_or("no branch")) } } @if !is_other { span.stable { "stable" } } }
                    (cells(project, test, occurrences))
                }
            }
            @if hidden > 0 { p.sub { "And " (words::count(hidden, "branch")) } }
            @if variants.len() > 1 {
                @for (variant, occurrences) in variants.iter().take(STRIPS) {
                    div.branch {
                        p.label { span.on { bdi { (variant) } } span.stable { "variant" } }
                        (cells(project, test, occurrences))
                    }
                }
            }
        }
    }
}

/// A strip as a list: each run has a text, and a class for its shape and colour.
fn cells(project: ProjectId, test: &TestName, newest_first: &[&Occurrence]) -> Markup {
    let mut shown: Vec<&&Occurrence> = newest_first.iter().take(CELLS).collect();
    shown.reverse();
    html! {
        div.scroll tabindex="0" role="group" aria-label="Runs, the newest on the right" {
            ol.cells {
                @for occurrence in shown {
                    @let outcome = outcome(occurrence);
                    @let words = format!("run {}, {}, {}", occurrence.run_number, occurrence.branch.as_deref().unwrap_or("no branch"), outcome.words());
                    li { a.(strip::class(outcome)) title=(words) href=(links::attempts(project, &occurrence.run_id, &test.name, test.file_path.as_deref())) { (words) } }
                }
            }
        }
    }
}

fn outcome(occurrence: &Occurrence) -> Outcome {
    if occurrence.status.is_failure() {
        Outcome::Failed
    } else if occurrence.status.is_skip() {
        Outcome::Skipped
    } else if occurrence.any_failed_attempt {
        Outcome::Recovered
    } else {
        Outcome::Passed
    }
}

/// The reported fixes, and what the stable branch shows of them.
fn fixes(project: ProjectId, fixes: &[WatchedFix], now: Timestamp) -> Markup {
    html! {
        @if !fixes.is_empty() {
            (section("fixes", "Fixes", &cards(fixes.iter().map(|watched| html! {
                p { b { (fix_in_words(watched)) } }
                p.facts {
                    span { "commit " a href=(links::project(project, &format!("/commit/{}", links::escaped(&watched.fix.revision)))) { bdi { (watched.fix.revision) } } }
                    span { (when(watched.fix.stored_at, now)) }
                    @if let Some(check) = &watched.fix.check { span { (check.outcome.in_words()) ": " (grouped(u64::from(check.runs))) " of " (grouped(u64::from(check.needed))) " repetitions" } }
                    @if let Some(run) = &watched.shown.failed_run {
                        a href=(links::run(project, run)) { @if watched.shown.state == FixState::Held { "a later failed run" } @else { "the failed run" } }
                    }
                }
            }))))
        }
    }
}

fn fix_in_words(watched: &WatchedFix) -> String {
    let builds = format!(
        "{} of {} clean builds",
        watched.shown.clean_runs, watched.shown.runs_needed
    );
    match watched.shown.state {
        FixState::Unproved => "Not proved".to_owned(),
        FixState::Waiting => "Waits for the stable branch".to_owned(),
        FixState::Watching => format!("Watched: {builds}"),
        FixState::Held => format!("Held: {builds}"),
        FixState::DidNotHold => format!("Did not hold: failed after {builds}"),
        FixState::FailsDifferently => format!("Watched: {builds}, and a failure with another error"),
    }
}

/// The error signatures of the test in the period.
fn errors(project: ProjectId, signatures: &[TestSignature], now: Timestamp) -> Markup {
    html! {
        @if !signatures.is_empty() {
            (section("errors", "Errors", &cards(signatures.iter().map(|signature| html! {
                p { a href=(links::signature(project, &signature.fingerprint)) { bdi { (signature.title) } } }
                p.facts {
                    span.category { (signature.category) }
                    span { b { (grouped(signature.occurrences)) } " ×" }
                    span { "in " (count(signature.runs, "run")) }
                    span { "last " (when(signature.last_run, now)) }
                }
            }))))
        }
    }
}

fn durations(newest_first: &[Occurrence]) -> Markup {
    let timed: Vec<(&Occurrence, u64)> = newest_first
        .iter()
        .take(DURATIONS)
        .filter_map(|occurrence| Some((occurrence, occurrence.duration_ms?)))
        .collect();
    let bars: Vec<PeriodBar> = timed
        .iter()
        .rev()
        .map(|(occurrence, ms)| PeriodBar {
            about: format!(
                "run {}, {}: {}, {}",
                occurrence.run_number,
                words::date_time(occurrence.started_at),
                words::duration(*ms),
                outcome(occurrence).words()
            ),
            value: f64::from(u32::try_from(*ms).unwrap_or(u32::MAX)),
            class: strip::class(outcome(occurrence)),
        })
        .collect();
    let day = |timed: Option<&(&Occurrence, u64)>| {
        timed
            .map(|(occurrence, _)| words::day(occurrence.started_at))
            .unwrap_or_default()
    };
    html! {
        @if let Some(longest) = timed.iter().map(|(_, ms)| *ms).max() {
            figure.panel {
                figcaption { b { "Durations" } span { "at most " (words::duration(longest)) } }
                (chart::periods(&bars, &format!("Durations of the newest {}", words::count(bars.len(), "run")), [&day(timed.last()), &day(timed.first())]))
            }
        }
    }
}
