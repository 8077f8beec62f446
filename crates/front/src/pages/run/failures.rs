//! The causes of a run's failures.

use std::collections::HashMap;

use assay_components::{cause, figures, name, words};
use assay_domain::{
    cause::{Cause, Knowledge, band},
    id::{ProjectId, RunId},
    project::Project,
    run::{RunDetail, TestEntry},
};
use assay_explain::failures::{
    ByCause, CauseEvidence, ExplainedFailure, FailuresQuery, RunFailures, run_failures,
};
use maud::{Markup, html};

use super::{Places, first_line};
use crate::{error::FrontError, links, view::View};

/// Most failures with causes on the page. A run with more failed as a whole.
const MOST: u32 = 5_000;
/// Most links to evidence runs per failure.
const LINKED: usize = 3;

/// The failed and recovered tests of a run with their causes.
pub(super) struct Causes {
    explained: RunFailures,
    /// The index of each test by name and file. A test that failed in several variants has the index of the variant
    /// whose failure this branch most probably caused.
    places: HashMap<(String, Option<String>), usize>,
}

impl Causes {
    pub(super) fn read(
        view: &View<'_>,
        project: &Project,
        run: &RunDetail,
        knowledge: Knowledge,
    ) -> Result<Self, FrontError> {
        let query = FailuresQuery {
            run: run.run.id,
            knowledge,
            page: 1,
            per_page: MOST,
        };
        let explained = run_failures(view.store, view.engine, project, &query, view.now)?
            .ok_or(FrontError::RunNotFound)?;
        let mut places = HashMap::new();
        for (place, failure) in explained.failures.iter().enumerate() {
            let test = (failure.test_name.clone(), failure.file_path.clone());
            places.entry(test).or_insert(place);
        }
        Ok(Self { explained, places })
    }

    fn place(&self, test: &TestEntry) -> Option<usize> {
        self.places
            .get(&(test.test_name.clone(), test.file_path.clone()))
            .copied()
    }

    /// Sorts the tests like the read API: failures most probably caused by this branch first.
    pub(super) fn sort(&self, tests: &mut [&TestEntry]) {
        tests.sort_by_cached_key(|test| self.place(test).unwrap_or(usize::MAX));
    }

    /// The gate of the run, and the number of its failures by cause. `address` returns the page's address in a mode.
    pub(super) fn gate(&self, address: impl Fn(Option<&'static str>) -> String) -> Markup {
        let (word, sentence) = cause::gate(self.explained.gate.action);
        let later = Knowledge::Hindsight.as_str();
        let is_later = self.explained.mode == Knowledge::Hindsight;
        html! {
            section aria-labelledby="gate" {
                h2 #gate { "Whose failures?" }
                div.box {
                    p.gate { span class={ "chip gate " (self.explained.gate.action.as_str()) } { (word) } " " (sentence) }
                    p.facts {
                        @for (of, tests) in by_cause(&self.explained.gate.by_cause) {
                            @if tests > 0 { span { (cause::chip(of)) " " b { (super::super::grouped(tests)) } } }
                        }
                    }
                    nav.controls aria-label="What is known" {
                        div.chips {
                            a href=(address(None)) aria-current=[(!is_later).then_some("true")] { "as known when it ran" }
                            a href=(address(Some(later))) aria-current=[is_later.then_some("true")] { "with later runs" }
                        }
                    }
                }
            }
        }
    }

    /// These tests, each with its cause.
    pub(super) fn list(
        &self,
        project: ProjectId,
        run: &RunId,
        tests: &[&TestEntry],
        places: &Places,
    ) -> Markup {
        let names: Vec<_> = tests
            .iter()
            .map(|test| (test.test_name.as_str(), test.file_path.as_deref()))
            .collect();
        let short = name::short_names(&names);
        html! {
            ol.rows.failures {
                @for (test, short) in tests.iter().zip(&short) {
                    @let explained = self.place(test).and_then(|place| self.explained.failures.get(place));
                    li.row.(test.status.as_str()) {
                        div.failure {
                            p.of {
                                @match explained { Some(failure) => (cause::chip(failure.cause)), None => (figures::ended_chip(test.status)) }
                            }
                            div {
                                p { a.leafed href=(links::attempts(project, run, &test.test_name, test.file_path.as_deref())) { (name::in_list(short, &test.test_name)) } }
                                @if let Some(failure) = explained { p { (failure.explanation) "." } }
                                p.facts {
                                    span { (figures::ended(test.status)) @if test.attempts > 1 { ", " (test.attempts) " attempts" } @if let Some(ms) = test.duration_ms { ", " (words::duration(ms)) } }
                                    @if let Some(file) = &test.file_path { span { (places.file(file)) } }
                                    @if let Some(failure) = explained { (facts(project, failure)) }
                                }
                                (error(project, test, explained))
                            }
                            @if let Some(failure) = explained {
                                div.whose {
                                    (cause::bar(&probabilities(failure)))
                                    @if test.status.is_failure() {
                                        p { "yours: " b { (band(failure.mine)) } }
                                        p { (cause::action(failure.action)) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

const fn by_cause(counts: &ByCause) -> [(Cause, u32); 6] {
    [
        (Cause::ThisChange, counts.this_change),
        (Cause::EarlierOnBranch, counts.earlier_on_branch),
        (Cause::BrokenBefore, counts.broken_before),
        (Cause::Flake, counts.flake),
        (Cause::Environment, counts.environment),
        (Cause::Unclear, counts.unclear),
    ]
}

const fn probabilities(failure: &ExplainedFailure) -> [(Cause, f64); 5] {
    let of = &failure.probabilities;
    [
        (Cause::ThisChange, of.this_change),
        (Cause::EarlierOnBranch, of.earlier_on_branch),
        (Cause::BrokenBefore, of.broken_before),
        (Cause::Flake, of.flake),
        (Cause::Environment, of.environment),
    ]
}

/// The verdict on the test, and the runs behind the sentence.
fn facts(project: ProjectId, failure: &ExplainedFailure) -> Markup {
    let CauseEvidence { runs, runs_total } = &failure.evidence;
    let linked = runs.get(..LINKED.min(runs.len())).unwrap_or_default();
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
                        @match run.run_id.parse::<RunId>() {
                            Ok(id) => a href=(links::run(project, &id)) { "run " (run.run_number) },
                            Err(_) => { "run " (run.run_number) },
                        }
                    }
                }
            }
        }
        @if more > 0 && !linked.is_empty() { span { "and " (more) " more" } }
    }
}

/// The last error of the test, with a link to its signature if it has one.
fn error(project: ProjectId, test: &TestEntry, explained: Option<&ExplainedFailure>) -> Markup {
    let signed = explained.and_then(|failure| failure.title.as_deref().zip(failure.fingerprint.as_deref()));
    html! {
        @match (signed, test.error_message.as_deref()) {
            (Some((title, fingerprint)), _) => p.error { a href=(links::signature(project, fingerprint)) { bdi { (title) } } },
            (None, Some(message)) => p.error { bdi { (first_line(message)) } },
            (None, None) => {},
        }
    }
}
