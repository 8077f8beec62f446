//! `/p/{id}/health`: the health of a project over weeks, and its slow tests.

use assay_answers::{
    durations::{ProjectDurations, SlowTest, SlowerSince, durations},
    health::{HealthWeek, OwnerWeeks, ProjectHealth, SuiteWeek, SuiteWeeks, health},
    test_list::StatusCounts,
};
use assay_domain::{
    id::ProjectId, observation::History, owners::OwnerFilter, settings::FlakeBudgetState, test::TestName,
    timestamp::Timestamp, verdict::VerdictStatus,
};
use assay_markup::{
    chart::{self, PeriodBar},
    figures, words,
};
use maud::{Markup, html};

use super::parts::{cards, count, failing_since, run_link, section};
use crate::{
    error::FrontError,
    layout::{Answer, Tab},
    links,
    view::View,
};

pub(super) fn render(view: &View<'_>) -> Result<Answer, FrontError> {
    let project = view.project()?;
    let judge = |history: &History, at| view.engine.verdicts(history, at);
    let answer = health(view.store, &judge, &project, view.now)?;
    let times = durations(view.store, &project, view.now)?;
    let budget = view.store.settings(&project)?.flake_budget;
    let has_owners = answer
        .owners
        .iter()
        .any(|owner| owner.owner != OwnerFilter::UNOWNED);
    let body = html! {
        h1 { "Health" }
        p { (answer.explanation) "." }
        @if let Some(FlakeBudgetState { budget, is_exceeded }) = budget {
            p {
                "The flake budget of " (words::count(usize::try_from(budget.most).unwrap_or(0), "flaky test")) " is "
                @if is_exceeded { b { "exceeded" } ". It is met again at " (budget.met_at) "." } @else { "met." }
            }
        }
        p.sub { "Weeks begin on Monday in UTC. Each is judged as of its end, the present one as of now." }
        div.panels { (charts(&answer)) }
        (section("weeks", "Weeks", &cards(answer.weeks.iter().rev().map(|week| week_row(project.id, week)))))
        @if has_owners {
            (section("owners", "Owners, by time lost in flaky tests", &html! {
                (cards(answer.owners.iter().map(|owner| owner_row(project.id, owner))))
                @if answer.other_owners > 0 { p.sub { "And " (count(answer.other_owners, "further owner")) "." } }
            }))
        }
        (slow_tests(project.id, &times, view.now))
    };
    let api = ["/health", "/durations", "/settings"];
    Ok(Answer::of_project(Tab::Health, "Health", &api, body, project))
}

/// A chart of each figure.
fn charts(of: &ProjectHealth) -> Markup {
    let times = |heading: &str, class, ms: fn(&HealthWeek) -> Option<u64>| {
        let bar = |ms: Option<u64>| (ms.unwrap_or(0), ms.map_or("none".to_owned(), words::duration));
        chart(&of.weeks, heading, class, of.weeks.iter().map(ms).map(bar))
    };
    let failed_runs = of.weeks.iter().map(|HealthWeek { runs, .. }| {
        (
            runs.failed,
            format!("{} of {}", runs.failed, count(runs.total, "run")),
        )
    });
    let is_timed = |suite: &&SuiteWeeks| suite.weeks.iter().any(|week| week.p50_ms.is_some());
    html! {
        (times(&format!("Time that {} was red", of.stable_branch), "failed", |week| Some(week.red_ms)))
        (times("Time lost in flaky tests", "recovered", |week| Some(week.flaky_lost_ms)))
        (times("Time until green, median", "failed", |week| week.time_to_green_ms))
        (chart(&of.weeks, "Failed runs", "failed", failed_runs))
        @for suite in of.suites.iter().filter(is_timed) {
            @let name = if suite.suite.is_empty() { "a run" } else { &suite.suite };
            (chart(&of.weeks, &format!("Median time of {name}"), "passed", suite.weeks.iter().map(suite_week)))
        }
    }
}

fn suite_week(of: &SuiteWeek) -> (u64, String) {
    match of.p50_ms.zip(of.p95_ms) {
        Some((p50, p95)) => {
            let (p50_words, p95_words) = (words::duration(p50), words::duration(p95));
            (
                p50,
                format!("{p50_words}, p95 {p95_words}, {}", count(of.runs, "run")),
            )
        }
        None => (0, "not known".to_owned()),
    }
}

/// A chart of one figure a week, with the figure of the present week as its summary. A bar is a figure and its words.
fn chart(
    weeks: &[HealthWeek],
    heading: &str,
    class: &'static str,
    bars: impl Iterator<Item = (u64, String)>,
) -> Markup {
    let mut summary = String::new();
    let bar = |(week, (value, words)): (&HealthWeek, (u64, String))| {
        let about = format!("week from {}: {words}", words::day(week.from));
        summary = words;
        // The milliseconds of a week fit.
        let value = u32::try_from(value).map_or(f64::MAX, f64::from);
        PeriodBar { about, value, class }
    };
    let bars: Vec<PeriodBar> = weeks.iter().zip(bars).map(bar).collect();
    let first = weeks
        .first()
        .map_or_else(String::new, |week| words::day(week.from));
    html! {
        figure.panel {
            figcaption { b { (heading) } span { "this week: " (summary) } }
            (chart::periods(&bars, &format!("{heading}, week by week; this week: {summary}"), [&first, "this week"]))
        }
    }
}

fn week_row(project: ProjectId, of: &HealthWeek) -> Markup {
    html! {
        p { b { (words::date(of.from)) " to " (words::date(of.to.plus_ms(-1))) } }
        p.facts {
            span { "red " b { (words::duration(of.red_ms)) } }
            @if let Some(longest) = &of.longest_red {
                span {
                    "longest " (words::duration(longest.red_ms)) " since "
                    (run_link(project, &longest.run_id, longest.run_number))
                }
            }
            @if let Some(ms) = of.time_to_green_ms {
                span { (count(of.repairs, "repair")) ", green after " (words::duration(ms)) " at the median" }
            }
        }
        p.facts {
            span { (count(of.runs.total, "run")) }
            span { b { (of.runs.failed) } " failed" }
            span { b { (of.runs.recovered) } " passed on retry" }
            span { "lost in flaky tests " b { (words::duration(of.flaky_lost_ms)) } }
            @if let Some(most) = &of.most_lost {
                span { (words::duration(most.lost_ms)) " of it in " (named(project, &most.test)) }
            }
        }
        (tests_by_verdict(&of.tests))
    }
}

fn tests_by_verdict(of: &StatusCounts) -> Markup {
    html! {
        p.facts {
            span { (words::count(of.total, "test")) }
            @for status in VerdictStatus::LISTED { @if of.of(status) > 0 { span { b { (words::grouped(of.of(status))) } " " (figures::status(status).to_lowercase()) } } }
        }
    }
}

fn owner_row(project: ProjectId, of: &OwnerWeeks) -> Markup {
    let tests = links::with_query(&links::project(project, "/tests"), &[("owner", Some(&*of.owner))]);
    let lost = of.flaky_lost_ms.iter().sum();
    let (lost, weeks) = (
        words::duration(lost),
        words::count(of.flaky_lost_ms.len(), "week"),
    );
    html! {
        p { a href=(tests) { bdi { (of.owner) } } }
        p.facts {
            span { "lost in flaky tests " (lost) " in " (weeks) }
            (chart::line_of_periods(&of.flaky_lost_ms, "recovered", &format!("Time lost in flaky tests of {}, week by week", of.owner)))
        }
        (tests_by_verdict(&of.tests))
    }
}

/// The tests that became slower, and the slowest ones.
fn slow_tests(project: ProjectId, of: &ProjectDurations, now: Timestamp) -> Markup {
    html! {
        section aria-labelledby="slower" {
            h2 #slower { "Became slower" }
            p.sub { "From the newest complete runs of " bdi { (of.stable_branch) } " in the last 14 days, at most 30 of a suite: " (count(of.runs, "run")) "." }
            @if of.slower.tests.is_empty() {
                p.empty { "No test became slower and stayed so. A test needs five runs before and three since then." }
            } @else {
                p.sub { (count(of.slower.total, "test")) ", whatever the speed of the machines. Those that take the most additional time come first." }
                (cards(of.slower.tests.iter().map(|test| slower(project, test, now))))
            }
        }
        section aria-labelledby="slowest" {
            h2 #slowest { "Slowest tests" }
            p.sub { "By the median of a test's passes at the first attempt in the newest five runs of its suite." }
            @if of.slowest.is_empty() { p.empty { "No test with a duration passed at its first attempt." } }
            (cards(of.slowest.iter().map(|test| slow(project, test))))
        }
    }
}

/// A duration with its sign.
fn difference(ms: i64) -> String {
    let sign = if ms < 0 { "−" } else { "+" };
    format!("{sign}{}", words::duration(ms.unsigned_abs()))
}

fn slower(project: ProjectId, of: &SlowerSince, now: Timestamp) -> Markup {
    html! {
        p { (named(project, &of.test)) }
        p.facts {
            span { b { (format!("{:.1}", of.factor)) } " times as long" }
            span { b { (difference(of.extra_ms)) } " a run" }
            span { "probability " (format!("{:.2}", of.probability)) }
            span { "in " (count(of.runs.into(), "run")) }
            @if !of.suite.is_empty() { span { bdi { (of.suite) } } }
        }
        (failing_since(project, &of.since, None, None, now))
    }
}

fn slow(project: ProjectId, of: &SlowTest) -> Markup {
    html! {
        p { (named(project, &of.test)) }
        p.facts {
            span { b { (words::duration(of.usual_ms)) } }
            @if !of.suite.is_empty() { span { bdi { (of.suite) } } }
            @if let Some(file) = &of.test.file_path { span { bdi { (file) } } }
        }
    }
}

fn named(project: ProjectId, test: &TestName) -> Markup {
    html! { a.leaf href=(links::test(project, &test.name, test.file_path.as_deref())) { bdi { (test.name) } } }
}
