//! The analysis as one self-contained page. It loads no external resources and is readable in light and dark mode, on a
//! phone and without scripts.

mod card;

use assay_domain::{outcomes::Outcome, verdict::VerdictStatus};
use assay_markup::{STYLE, chart, figures, mark, name, reading, strip, tile, words};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use self::card::{Filters, Rows};
use crate::analysis::verdicts::{Analysis, AnalyzedTest, RunBar};

const SCRIPT: &str = include_str!("page/script.js");

/// Most runs in the overview.
const MOST_BARS: usize = 240;

/// The page.
pub fn page(analysis: &Analysis) -> String {
    let bars = analysis.bars();
    let folder = folder(&bars);
    let mut rows = Rows {
        analysis,
        bars: &bars,
        folder,
        filters: Filters::default(),
    };
    let groups = groups(&mut rows);
    let filters = rows.filters;
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content="Assay";
                // The policy blocks all loading, even if markup from a report's text reached the page.
                meta http-equiv="Content-Security-Policy" content=(policy());
                title { (analysis.stable.explanation) ": test report by Assay" }
                // Without this, a browser requests an icon from the page's server.
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    (head(analysis))
                    (overview(analysis, &bars, folder))
                    (controls(analysis, &filters))
                    (report_errors(analysis, folder))
                    (groups)
                    (reading())
                }
                footer { "Assay, flakiness engine " (analysis.engine) ". The same results and the same time give the same verdicts as the service." }
                (data("runs", &runs(&bars, folder)))
                (data("files", &filters.files.texts()))
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
    .into_string()
}

/// The page's content security policy. It permits only the page's own script and style, by their hashes.
fn policy() -> String {
    let hash = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text));
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
}

fn head(analysis: &Analysis) -> Markup {
    let from = analysis.now.plus_days(-analysis.window_days);
    html! {
        header.page {
            p.brand { (mark()) "Assay" }
            h1 { (analysis.stable.explanation) }
            p { (headline(analysis)) "." }
            p.sub {
                (words::count(analysis.runs, "run")) ", " (words::count(analysis.tests.len(), "test"))
                ", " (words::date(from)) " to " (words::time(analysis.now)) " UTC. Stable branch "
                code { (analysis.stable_branch) } "."
                @if analysis.runs_assumed_stable > 0 {
                    " " (words::count(analysis.runs_assumed_stable, "run")) " without a branch judged as on it."
                }
                @if analysis.runs_read > analysis.runs {
                    " " (words::count(analysis.runs_read - analysis.runs, "run")) " outside of these " (analysis.window_days) " days left aside."
                }
            }
        }
    }
}

fn headline(analysis: &Analysis) -> String {
    words::headline(
        analysis.count(VerdictStatus::Broken),
        analysis.count(VerdictStatus::Failing),
        analysis.count(VerdictStatus::Flaky),
    )
}

fn overview(analysis: &Analysis, bars: &[RunBar], folder: &str) -> Markup {
    let timed = || {
        analysis
            .tests
            .iter()
            .filter_map(|judged| judged.entry.figures.time_lost_ms)
    };
    let lost = timed()
        .next()
        .map(|_| words::duration(timed().fold(0, u64::saturating_add)));
    let lost_hint = if lost.is_some() {
        "in failed attempts of all tests"
    } else {
        "no durations were reported"
    };
    let figure = |count: usize| words::grouped(count);
    html! {
        section.tiles aria-label="Summary" {
            (tile("broken", &figure(analysis.count(VerdictStatus::Broken)), "broken", "their code fails, run after run"))
            (tile("failing", &figure(analysis.failing().len()), "failing now", "the newest runs failed, the cause is open"))
            (tile("flaky", &figure(analysis.count(VerdictStatus::Flaky)), "flaky", "fail although the code is good"))
            (tile("healthy", &figure(analysis.count(VerdictStatus::Healthy)), "healthy", "no problem, or no longer one"))
            (tile("few", &figure(analysis.count(VerdictStatus::InsufficientData)), "gathering data", "too few runs for a verdict"))
            (tile("lost", lost.as_deref().unwrap_or("–"), "lost", lost_hint))
        }
        (run_chart(bars, folder))
    }
}

/// The runs of the window, with the numbers of failed and of recovered tests.
fn run_chart(bars: &[RunBar], folder: &str) -> Markup {
    let newest = bars
        .get(bars.len().saturating_sub(MOST_BARS)..)
        .unwrap_or_default();
    let (Some(first), Some(last)) = (newest.first(), newest.last()) else {
        return html! {};
    };
    let most = newest
        .iter()
        .map(|bar| bar.failed + bar.recovered)
        .max()
        .unwrap_or(0);
    let failed_runs = newest.iter().filter(|bar| bar.failed > 0).count();
    let label = format!(
        "The newest {}: {failed_runs} with failed tests, at most {most} failing in one",
        words::count(newest.len(), "run")
    );
    let chart_bars: Vec<chart::RunBar> = newest
        .iter()
        .map(|bar| chart::RunBar {
            about: about(bar, folder),
            link: bar.url.as_deref().map(str::to_owned),
            failed: bar.failed,
            recovered: bar.recovered,
            has_failed: bar.failed > 0,
        })
        .collect();
    html! {
        figure.panel {
            figcaption {
                span { b { (words::count(failed_runs, "failed run")) } " of " (newest.len()) @if bars.len() > newest.len() { " newest" } }
                span { "failing tests a run, at most " (most) }
            }
            (chart::runs(&chart_bars, &label, [&words::day(first.started_at), &words::day(last.started_at)]))
            (strip::legend(Outcome::ALL))
        }
    }
}

fn about(bar: &RunBar, folder: &str) -> String {
    let on = bar
        .branch
        .as_ref()
        .map(|branch| format!(" on {branch}"))
        .unwrap_or_default();
    format!(
        "{}{on}, {}: {} tests, {} failed, {} passed on retry",
        short(&bar.run, folder),
        words::date_time(bar.started_at),
        bar.tests,
        bar.failed,
        bar.recovered
    )
}

fn short<'a>(run: &'a str, folder: &str) -> &'a str {
    run.strip_prefix(folder).unwrap_or(run)
}

/// The common folder of all runs' files, with its slash; may be empty.
fn folder(bars: &[RunBar]) -> &str {
    let Some(first) = bars.first() else { return "" };
    let mut folder = first.run.rsplit_once('/').map_or("", |(folder, _)| {
        first.run.get(..=folder.len()).unwrap_or_default()
    });
    while !folder.is_empty() && !bars.iter().all(|bar| bar.run.starts_with(folder)) {
        let parent = folder
            .trim_end_matches('/')
            .rsplit_once('/')
            .map_or(0, |(parent, _)| parent.len() + 1);
        folder = folder.get(..parent).unwrap_or_default();
    }
    folder
}

fn report_errors(analysis: &Analysis, folder: &str) -> Markup {
    let errors = &analysis.report_errors;
    html! {
        @if !errors.is_empty() {
            section aria-label="Errors outside of tests" {
                h2 { "Errors outside of tests" }
                ul {
                    @for error in errors.iter().take(MOST_BARS) {
                        li {
                            code { (error.message) } " in " (words::count(error.runs, "run")) ", the newest "
                            (short(&error.last_run, folder)) " of " (words::date_time(error.last_run_at))
                        }
                    }
                }
            }
        }
    }
}

/// A run for the script: name, branch, start, revision.
#[derive(Serialize)]
struct RunEntry<'a>(&'a str, Option<&'a str>, String, Option<&'a str>);

fn runs<'a>(bars: &'a [RunBar], folder: &str) -> Vec<RunEntry<'a>> {
    let entries = bars.iter().map(|bar| {
        RunEntry(
            short(&bar.run, folder),
            bar.branch.as_deref(),
            words::date_time(bar.started_at),
            bar.revision.as_deref(),
        )
    });
    entries.collect()
}

/// Data for the script. A browser does not execute it.
fn data(id: &str, value: &impl Serialize) -> Markup {
    // Texts, numbers and lists of them always serialize. No `<` remains, so that a text cannot end the element.
    let json = serde_json::to_string(value)
        .unwrap_or_default()
        .replace('<', "\\u003c");
    html! { script type="application/json" id=(id) { (PreEscaped(json)) } }
}

/// Search, order and filters. They need the script, which makes them visible.
fn controls(analysis: &Analysis, filters: &Filters) -> Markup {
    let statuses = [
        VerdictStatus::Broken,
        VerdictStatus::Failing,
        VerdictStatus::Flaky,
        VerdictStatus::Healthy,
        VerdictStatus::InsufficientData,
    ];
    html! {
        form.controls hidden role="search" aria-label="Tests" {
            div.chips role="group" aria-label="Verdict" {
                button type="button" data-show="" aria-pressed="true" { "All " span { (words::grouped(analysis.tests.len())) } }
                @for status in statuses.into_iter().filter(|status| analysis.count(*status) > 0) {
                    button type="button" data-show=(status.as_str()) aria-pressed="false" {
                        (figures::status(status)) " " span { (words::grouped(analysis.count(status))) }
                    }
                }
            }
            label.search { span.unseen { "Search tests" } input name="search" type="search" placeholder="Search tests" autocomplete="off"; }
            label { span { "Sort by" } select name="sort" {
                option value="" { "time lost" }
                option value="score" { "flake score" }
                option value="rate" { "failure rate" }
                option value="impact" { "impact" }
                option value="name" { "name" }
            } }
            (filter("file", "File", filters.files.texts(), |file| (file, file)))
            (filter("branch", "Fails on", filters.branches.texts(), |branch| (branch, branch)))
            (filter("variant", "Variant", filters.variants.texts(), |variant| (variant, variant)))
            (filter("error", "Error", filters.signatures.texts(), |text| text.split_once(' ').unwrap_or((text, text))))
            label.check { input name="new" type="checkbox" value="1"; span { "new this week" } }
            p.count role="status" {}
        }
    }
}

/// A select list of texts, if there are several. The options are in alphabetical order. `data-n` is the number of the
/// text in the rows.
fn filter<'a>(
    field: &str,
    label: &str,
    texts: Vec<&'a str>,
    parts: impl Fn(&'a str) -> (&'a str, &'a str),
) -> Markup {
    let mut options: Vec<(usize, &str, &str)> = texts
        .into_iter()
        .enumerate()
        .map(|(number, text)| {
            let (value, option_label) = parts(text);
            (number, value, option_label)
        })
        .collect();
    options.sort_by_key(|(_, value, option_label)| (*option_label, *value));
    html! {
        @if options.len() > 1 {
            label { span { (label) } select name=(field) {
                option value="" { "any" }
                @for (number, value, option_label) in options { option value=(value) data-n=(number) { (option_label) } }
            } }
        }
    }
}

fn groups(rows: &mut Rows<'_>) -> Markup {
    let analysis = rows.analysis;
    let names: Vec<(&str, Option<&str>)> = analysis
        .tests
        .iter()
        .map(|judged| (judged.entry.test_name.as_str(), judged.entry.file_path.as_deref()))
        .collect();
    // One list for all groups, so that names of different tests also differ across groups.
    let short = name::short_names(&names);
    let mut tests_and_names = analysis.tests.iter().zip(&short);
    let mut next = |rows: &mut Rows<'_>, tests: &[AnalyzedTest]| -> Markup {
        let markup: Vec<Markup> = (0..)
            .zip(tests_and_names.by_ref().take(tests.len()))
            .map(|(rank, (judged, short))| rows.row(judged, short, card::detail(rank, judged.entry.status)))
            .collect();
        html! { ol.rows { @for row in &markup { (row) } } }
    };
    let reported = next(rows, analysis.reported());
    let failing = next(rows, analysis.failing());
    let others = next(rows, analysis.others());
    html! {
        section.group aria-labelledby="ranking" {
            h2 #ranking { "Broken and flaky" }
            @if analysis.reported().is_empty() {
                p.empty { "Every test with enough runs is healthy or fails too lately to say why." }
            } @else {
                (figures::columns())
                (reported)
            }
        }
        @if !analysis.failing().is_empty() {
            section.group aria-labelledby="failing" {
                h2 #failing { "Failing now" }
                p.sub { "Their newest runs failed. Further runs decide whether they are broken or flaky." }
                (failing)
            }
        }
        section.group aria-labelledby="others" {
            h2 #others { "And " (words::count(analysis.others().len(), "other test")) }
            details.fold {
                summary {
                    (words::grouped(analysis.count(VerdictStatus::Healthy))) " healthy, "
                    (words::grouped(analysis.count(VerdictStatus::InsufficientData))) " with too few runs for a verdict"
                }
                (others)
            }
        }
    }
}

fn reading() -> Markup {
    html! {
        section.reading aria-labelledby="reading" {
            h2 #reading { "How to read this" }
            (reading::list(&[&reading::VERDICTS, &reading::STRIP, &reading::NEW, &reading::FIGURES]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_cannot_end_its_element() {
        let html = data("x", &["</script><b>"]).into_string();
        assert_eq!(
            html,
            r#"<script type="application/json" id="x">["\u003c/script>\u003cb>"]</script>"#
        );
    }
}
