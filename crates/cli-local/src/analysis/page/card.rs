//! A test of the list: one compact row that expands to its card.

use std::collections::{BTreeSet, HashMap, HashSet};

use assay_domain::{
    outcomes::{Outcome, Strip, StripSubject, variant_name},
    timestamp::Timestamp,
    verdict::{VerdictEntry, VerdictStatus},
};
use assay_markup::{
    figures, name,
    repository::{self, Repository},
    strip::{self, Scale},
    words,
};
use maud::{Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

use crate::analysis::interner::Interner;
use crate::analysis::verdicts::{Analysis, AnalyzedTest, ErrorCount, RunBar};

/// Most runs in a row's strip.
const ROW_RUNS: usize = 24;
/// Most runs in a card's strips.
const MOST_COLUMNS: usize = 160;
/// The preferred width of a card's strips in pixels. More runs make them wider.
const WIDTH: usize = 780;
/// Most strips in a card.
const MOST_STRIPS: usize = 6;
/// Most error signatures in a card.
const MOST_ERRORS: usize = 5;

/// The level of detail of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// The card with errors and evidence, as part of the row.
    Card,
    /// The same card as text. The script reads it when the row opens, because thousands of cards would make the page
    /// slow.
    Later,
    /// A sentence, the figures and the strip of the first branch.
    Short,
}

/// The filter texts, collected while the rows are written.
#[derive(Debug, Default)]
pub(super) struct Filters {
    pub(super) files: Interner<String>,
    pub(super) branches: Interner<String>,
    pub(super) variants: Interner<String>,
    /// Fingerprint and title of each signature, separated by a space.
    pub(super) signatures: Interner<String>,
}

/// Writes the rows of the page.
pub(super) struct Rows<'a> {
    pub(super) analysis: &'a Analysis,
    pub(super) bars: &'a [RunBar],
    /// The common folder of all runs' names, which is omitted.
    pub(super) folder: &'a str,
    pub(super) filters: Filters,
}

impl Rows<'_> {
    /// One test. `short` is its name in the list.
    pub(super) fn row(&mut self, judged: &AnalyzedTest, short: &name::ShortName, detail: Detail) -> Markup {
        let entry = &judged.entry;
        let figures = &entry.figures;
        let strips = self.analysis.strips(judged);
        let all = self.analysis.recent(judged, usize::MAX);
        let last = all.last().map(|(index, _)| *index);
        let mass = self.mass_failures(entry);
        let newest: Vec<(usize, Outcome)> = all
            .get(all.len().saturating_sub(ROW_RUNS)..)
            .unwrap_or_default()
            .iter()
            .map(|(index, outcome)| (*index, with_mass_failure(*index, *outcome, &mass)))
            .collect();
        let outcomes: Vec<Option<Outcome>> = newest.iter().map(|(_, outcome)| Some(*outcome)).collect();
        let runs = ranges_of(newest.iter().map(|(index, _)| *index));
        let status = entry.status.as_str();
        html! {
            li.row.(status) data-s=(status) data-lost=[figures.time_lost_ms] data-score=(format!("{:.4}", figures.flake_score))
                data-rate=[figures.failure_rate.map(|rate| format!("{rate:.4}"))] data-impact=[(figures.impact > 0.0).then(|| format!("{:.3}", figures.impact))]
                data-f=[entry.file_path.as_ref().map(|file| self.filters.files.number(file))]
                data-b=[self.failing_branches(&strips)] data-v=[self.failing_variants(judged)] data-e=[self.errors(&judged.errors)]
                data-new=[self.analysis.is_new(judged).then_some("1")] {
                details id=(anchor(entry)) {
                    summary {
                        (figures::chip(entry.status))
                        (name::in_list(short, &entry.test_name))
                        span.runs data-runs=(runs) { (strip::draw(&outcomes, Scale::LINE, "Runs")) }
                        span.figure { (figures.failure_rate.map_or("–".to_owned(), words::percent)) }
                        span.figure { (figures.time_lost_ms.map_or("–".to_owned(), words::duration)) }
                    }
                    @match detail {
                        Detail::Card => (self.card(judged, &strips, &mass, last)),
                        // The card is markup. Its report texts contain no unescaped `<`, so they cannot end the
                        // element.
                        Detail::Later => script.later type="text/html" { (PreEscaped(self.card(judged, &strips, &mass, last).into_string())) },
                        Detail::Short => (self.short_card(judged, &strips, &mass)),
                    }
                }
            }
        }
    }

    fn card(
        &self,
        judged: &AnalyzedTest,
        strips: &[Strip],
        mass: &HashSet<usize>,
        newest: Option<usize>,
    ) -> Markup {
        let entry = &judged.entry;
        html! {
            article.card {
                h3 { (name::heading(&entry.test_name, entry.file_path.as_deref())) }
                p.why { (entry.explanation) "." }
                (self.strips(strips, mass))
                (figures::metrics(&entry.figures, last(entry)))
                div.behind {
                    (errors(&judged.errors))
                    @if let Some(evidence) = &entry.evidence {
                        details.evidence {
                            summary { "Evidence: " (words::count(evidence.signals.len(), "signal")) " over " (words::count(usize::try_from(evidence.runs_seen).unwrap_or(usize::MAX), "run")) }
                            (figures::evidence(evidence, &|run| self.run(run)))
                        }
                    }
                }
                p.link {
                    a href={ "#" (anchor(entry)) } { "Link to this test" }
                    (self.newest_run(newest, entry.file_path.as_deref()))
                }
            }
        }
    }

    /// A run of the evidence by its name, with a link to the CI run if its page is known.
    fn run(&self, id: &str) -> Markup {
        let bar = self.bars.iter().find(|bar| &*bar.run == id);
        let name = html! { (id.strip_prefix(self.folder).unwrap_or(id)) };
        repository::link(bar.and_then(|bar| bar.url.as_deref()), &name)
    }

    /// Links to the newest run of a test, its commit and the test's file.
    fn newest_run(&self, index: Option<usize>, file: Option<&str>) -> Markup {
        let bar = index.and_then(|index| self.bars.get(index));
        let Some((bar, url)) = bar.and_then(|bar| Some((bar, bar.url.as_deref()?))) else {
            return html! {};
        };
        let repository = Repository::of_run(url);
        let at = repository.as_ref().zip(bar.revision.as_deref());
        let commit = at.and_then(|(repository, sha)| repository.commit(sha));
        let file = at
            .zip(file)
            .and_then(|((repository, sha), file)| repository.file(sha, file));
        html! {
            ". Newest run: " (repository::link(Some(url), &html! { "CI run" }))
            @if commit.is_some() { ", " (repository::link(commit.as_deref(), &html! { "commit" })) }
            @if file.is_some() { ", " (repository::link(file.as_deref(), &html! { "file" })) }
            "."
        }
    }

    fn short_card(&self, judged: &AnalyzedTest, strips: &[Strip], mass: &HashSet<usize>) -> Markup {
        let entry = &judged.entry;
        html! {
            article.card {
                h3 { (name::heading(&entry.test_name, entry.file_path.as_deref())) }
                p.why { (entry.explanation) "." }
                @if strips.iter().any(Strip::has_failure) {
                    (self.strips(strips.get(..1).unwrap_or_default(), mass))
                    p.sub { code { "assay analyze --json" } " has the evidence." }
                }
            }
        }
    }

    fn strips(&self, strips: &[Strip], mass: &HashSet<usize>) -> Markup {
        let runs: BTreeSet<usize> = strips
            .iter()
            .flat_map(|strip| strip.cells.iter().map(|(index, _)| *index))
            .collect();
        let earlier = runs.len().saturating_sub(MOST_COLUMNS);
        let columns_shown: Vec<usize> = runs.into_iter().skip(earlier).collect();
        let columns: HashMap<usize, usize> = columns_shown
            .iter()
            .enumerate()
            .map(|(column, index)| (*index, column))
            .collect();
        let scale = Scale {
            step: (WIDTH / columns_shown.len().max(1)).clamp(4, 14),
            height: 26,
        };
        let hidden = strips.get(MOST_STRIPS..).unwrap_or_default();
        let day = |index: Option<&usize>| {
            let bar = index.and_then(|index| self.bars.get(*index));
            bar.map_or(String::new(), |bar| words::day(bar.started_at))
        };
        html! {
            div.strips data-runs=(ranges_of(columns_shown.iter().copied())) {
                @for strip in strips.iter().take(MOST_STRIPS) {
                    div.branch {
                        p.label { (label(&strip.subject)) }
                        div.scroll tabindex="0" role="group" aria-label="Outcomes over time" {
                            (strip::draw(&cells(strip, &columns, mass), scale, &text_alternative(&strip.subject)))
                        }
                    }
                }
                div.branch.times {
                    p.label {
                        @if !hidden.is_empty() {
                            @let failing = hidden.iter().filter(|strip| strip.has_failure()).count();
                            span.stable { (hidden.len()) " more, " (failing) " failing" }
                        }
                    }
                    p.axis {
                        span { (day(columns_shown.first())) @if earlier > 0 { " (" (earlier) " earlier)" } }
                        @if day(columns_shown.first()) != day(columns_shown.last()) { span { "to " (day(columns_shown.last())) } }
                    }
                }
            }
        }
    }

    /// The indexes of the runs that the evidence names as mass failures.
    fn mass_failures(&self, entry: &VerdictEntry) -> HashSet<usize> {
        let Some(evidence) = entry
            .evidence
            .as_ref()
            .filter(|evidence| !evidence.dropped.is_empty())
        else {
            return HashSet::new();
        };
        let dropped: HashSet<&str> = evidence.dropped.iter().map(|run| run.run_id.as_str()).collect();
        let bars = self.bars.iter().enumerate();
        bars.filter(|(_, bar)| dropped.contains(&*bar.run))
            .map(|(index, _)| index)
            .collect()
    }

    fn failing_branches(&mut self, strips: &[Strip]) -> Option<String> {
        let failing = strips.iter().filter(|strip| strip.has_failure());
        let numbers = failing.filter_map(|strip| match &strip.subject {
            StripSubject::Branch { name: Some(name), .. } => {
                Some(self.filters.branches.number(&name.to_string()))
            }
            StripSubject::Branch { name: None, .. } | StripSubject::Variant(_) => None,
        });
        joined(numbers)
    }

    fn failing_variants(&mut self, judged: &AnalyzedTest) -> Option<String> {
        let failing = self.analysis.failing_variants(judged);
        let variants = &mut self.filters.variants;
        joined(
            failing
                .iter()
                .map(|name| variants.number(&variant_name(name).to_owned())),
        )
    }

    fn errors(&mut self, errors: &[ErrorCount]) -> Option<String> {
        let signatures = &mut self.filters.signatures;
        joined(errors.iter().map(|error| {
            let text = format!("{} {}", error.fingerprint, error.title);
            signatures.number(&text)
        }))
    }
}

/// The anchor of a test. It depends only on the test's name and file.
pub(super) fn anchor(entry: &VerdictEntry) -> String {
    let mut hasher = Sha256::new();
    hasher.update(entry.test_name.as_bytes());
    hasher.update([0]);
    hasher.update(entry.file_path.as_deref().unwrap_or_default().as_bytes());
    let digest = hasher.finalize();
    let hex: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    format!("t-{hex}")
}

/// The detail of the test at this rank: cards for broken, flaky and failing tests first, as text if they are many.
pub(super) fn detail(rank: usize, status: VerdictStatus) -> Detail {
    match status {
        VerdictStatus::Healthy | VerdictStatus::InsufficientData => Detail::Short,
        VerdictStatus::Broken | VerdictStatus::Flaky | VerdictStatus::Failing => match rank {
            ..100 => Detail::Card,
            100..1_000 => Detail::Later,
            _ => Detail::Short,
        },
    }
}

fn with_mass_failure(index: usize, outcome: Outcome, mass: &HashSet<usize>) -> Outcome {
    if outcome == Outcome::Failed && mass.contains(&index) {
        Outcome::MassFailure
    } else {
        outcome
    }
}

fn cells(strip: &Strip, columns: &HashMap<usize, usize>, mass: &HashSet<usize>) -> Vec<Option<Outcome>> {
    let mut cells = vec![None; columns.len()];
    for (index, outcome) in &strip.cells {
        if let Some(cell) = columns.get(index).and_then(|column| cells.get_mut(*column)) {
            *cell = Some(with_mass_failure(*index, *outcome, mass));
        }
    }
    cells
}

fn label(of: &StripSubject) -> Markup {
    html! {
        @match of {
            StripSubject::Branch { name: Some(name), stable } => {
                span.on title=(name) { (name) }
                @if *stable { span.stable { "stable" } }
            }
            StripSubject::Branch { name: None, stable: true } => span.on { "all runs" },
            StripSubject::Branch { name: None, stable: false } => span.on { "no branch" },
            StripSubject::Variant(name) => {
                span.on title=(name) { (variant_name(name)) }
                span.stable { "variant" }
            }
        }
    }
}

fn text_alternative(of: &StripSubject) -> String {
    match of {
        StripSubject::Branch { name: Some(name), .. } => format!("Runs on {name}"),
        StripSubject::Branch { name: None, .. } => "Runs".to_owned(),
        StripSubject::Variant(name) => format!("Runs in the variant {}", variant_name(name)),
    }
}

fn last(entry: &VerdictEntry) -> Option<(assay_domain::attempt::AttemptStatus, Timestamp)> {
    entry.last_run.as_ref().map(|last| (last.status, last.started_at))
}

fn errors(errors: &[ErrorCount]) -> Markup {
    html! {
        @if !errors.is_empty() {
            details.errors {
                summary { (words::count(errors.len(), "error signature")) ": " span.first { (errors.first().map_or("", |error| &error.title)) } }
                ul {
                    @for error in errors.iter().take(MOST_ERRORS) {
                        li {
                            p { span.category { (error.category) } b { (error.title) } span.times { (error.occurrences) " ×" } }
                            @if let Some(sample) = &error.sample { pre tabindex="0" { (sample) } }
                            p.fingerprint { code { (error.fingerprint) } }
                        }
                    }
                    @if errors.len() > MOST_ERRORS { li { "and " (errors.len() - MOST_ERRORS) " more" } }
                }
            }
        }
    }
}

/// Numbers in ascending order, with `first-last` for ranges: `0-3,7`.
fn ranges_of(indexes: impl Iterator<Item = usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for index in indexes {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == index => *last = index,
            Some(_) | None => ranges.push((index, index)),
        }
    }
    let texts = ranges.into_iter().map(|(first, last)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        }
    });
    texts.collect::<Vec<_>>().join(",")
}

fn joined(numbers: impl Iterator<Item = u32>) -> Option<String> {
    let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
    (!numbers.is_empty()).then(|| numbers.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_indexes_are_a_range() {
        assert_eq!(ranges_of([0, 1, 2, 7, 9, 10].into_iter()), "0-2,7,9-10");
        assert_eq!(ranges_of(std::iter::empty()), "");
    }
}
