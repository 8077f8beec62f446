//! `/p/{id}/health`: the health of a project over weeks, and where the time of the stable branch's runs goes.

use assay_answers::{
    durations::{COMPARED, ProjectDurations, SlowTest, SlowerSince, SuiteChange, SuiteDurations, durations},
    health::{HealthWeek, OwnerWeeks, ProjectHealth, SuiteWeek, SuiteWeeks, health},
    test_list::{STATUSES, StatusCounts},
};
use assay_domain::{
    id::ProjectId, observation::History, owners::OwnerFilter, settings::FlakeBudgetState, test::TestName,
    timestamp::Timestamp,
};
use assay_markup::{
    chart::{self, PeriodBar},
    figures, words,
};
use maud::{Markup, html};

use super::parts::{cards, count, failing_since, run_link};
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
        section aria-labelledby="weeks" {
            h2 #weeks { "Weeks" }
            (cards(answer.weeks.iter().rev().map(|week| week_row(project.id, week))))
        }
        @if has_owners {
            section aria-labelledby="owners" {
                h2 #owners { "Owners, by time lost in flaky tests" }
                (cards(answer.owners.iter().map(|owner| owner_row(project.id, owner))))
                @if answer.other_owners > 0 { p.sub { "And " (count(answer.other_owners, "further owner")) "." } }
            }
        }
        (time_of_runs(project.id, &times, view.now))
    };
    let api = ["/health", "/durations", "/settings"];
    Ok(Answer::of_project(Tab::Health, "Health", &api, body, project))
}

/// A chart of each figure.
fn charts(of: &ProjectHealth) -> Markup {
    let times = |heading: &str, class, ms: &dyn Fn(&HealthWeek) -> Option<u64>| {
        chart(&of.weeks, heading, class, |week| {
            (
                ms(week).unwrap_or(0),
                ms(week).map_or_else(|| "none".to_owned(), words::duration),
            )
        })
    };
    html! {
        (times(&format!("Time that {} was red", of.stable_branch), "failed", &|week| Some(week.red_ms)))
        (times("Time lost in flaky tests", "recovered", &|week| Some(week.flaky_lost_ms)))
        (times("Time until green, median", "failed", &|week| week.time_to_green_ms))
        (chart(&of.weeks, "Failed runs", "failed", |week| {
            (week.runs.failed, format!("{} of {}", week.runs.failed, count(week.runs.total, "run")))
        }))
        @for suite in &of.suites { (suite_chart(&of.weeks, suite)) }
    }
}

/// The median time of a suite.
fn suite_chart(weeks: &[HealthWeek], of: &SuiteWeeks) -> Markup {
    let heading = match of.suite.is_empty() {
        true => "Median time of a run".to_owned(),
        false => format!("Median time of {}", of.suite),
    };
    let mut times = of.weeks.iter();
    html! {
        @if of.weeks.iter().any(|week| week.p50_ms.is_some()) {
            (chart(weeks, &heading, "passed", |_| times.next().map_or_else(|| (0, String::new()), suite_week)))
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

/// A chart of one figure a week, with the figure of the present week as its summary. `bar` returns a figure and its words.
fn chart(
    weeks: &[HealthWeek],
    heading: &str,
    class: &'static str,
    mut bar: impl FnMut(&HealthWeek) -> (u64, String),
) -> Markup {
    let (mut bars, mut summary) = (Vec::new(), String::new());
    for week in weeks {
        let (value, words) = bar(week);
        bars.push(PeriodBar {
            about: format!("week from {}: {words}", words::day(week.from)),
            // The milliseconds of a week fit.
            value: u32::try_from(value).map_or(f64::MAX, f64::from),
            class,
        });
        summary = words;
    }
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
            @for status in STATUSES { @if of.of(status) > 0 { span { b { (words::grouped(of.of(status))) } " " (figures::status(status).to_lowercase()) } } }
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

/// Where the time of the newest runs goes.
fn time_of_runs(project: ProjectId, of: &ProjectDurations, now: Timestamp) -> Markup {
    let has_suites = of.suites.iter().any(|suite| !suite.suite.is_empty());
    html! {
        section aria-labelledby="suites" {
            h2 #suites { "Time of a run" }
            p.sub { "From the newest complete runs of " bdi { (of.stable_branch) } " in the last 14 days, at most 30 of a suite: " (count(of.runs, "run")) ". The figures are of the newest " (COMPARED) " runs of a suite, those before of its oldest " (COMPARED) ". A test's usual duration is the median of its passes at the first attempt." }
            @if of.suites.is_empty() { p.empty { "There is no complete run." } }
            (suites(&of.suites, has_suites))
        }
        @if !of.suites.is_empty() {
            section aria-labelledby="slower" {
                h2 #slower { "Became slower" }
                @if of.slower.tests.is_empty() {
                    p.empty { "No test became slower and stayed so. A test needs five runs before and three since then." }
                } @else {
                    p.sub { (count(of.slower.total, "test")) ", whatever the speed of the machines. Those that take the most additional time come first." }
                    (cards(of.slower.tests.iter().map(|test| slower(project, test, now))))
                }
            }
            section aria-labelledby="slowest" {
                h2 #slowest { "Slowest tests" }
                @if of.slowest.is_empty() { p.empty { "No test with a duration passed at its first attempt." } }
                (cards(of.slowest.iter().map(|test| slow(project, test))))
            }
        }
    }
}

fn suites(suites: &[SuiteDurations], has_suites: bool) -> Markup {
    cards(suites.iter().map(|suite| {
        html! {
            @if has_suites { p { b { @if suite.suite.is_empty() { "no suite" } @else { bdi { (suite.suite) } } } } }
            p.facts {
                span { "tests " b { (words::duration(suite.tests_ms)) } }
                span { "failed attempts " b { (words::duration(suite.failed_attempts_ms)) } }
                @if let Some(run) = suite.run_ms { span { "from start to end " b { (words::duration(run)) } } }
                span { "of the newest " (usize::try_from(suite.runs).unwrap_or(COMPARED).min(COMPARED)) " of " (count(suite.runs, "run")) }
            }
            @match &suite.change {
                Some(change) => (changed(change)),
                None => p.sub { "The change is shown from ten runs on." },
            }
        }
    }))
}

/// The change since the oldest runs as a sum.
fn changed(change: &SuiteChange) -> Markup {
    let parts = [
        ("new tests", change.new_tests_ms),
        ("removed tests", change.removed_tests_ms),
        ("slower tests", change.slower_tests_ms),
        (
            "everything else, such as other machines and tests that now fail",
            change.other_ms,
        ),
    ];
    html! {
        p.facts {
            span { "before: tests " b { (words::duration(change.earlier_tests_ms)) } }
            @for (of, ms) in parts { @if ms != 0 { span { (of) " " b { (difference(ms)) } } } }
            span { "failed attempts " b { (words::duration(change.earlier_failed_attempts_ms)) } }
            @if let Some(run) = change.earlier_run_ms { span { "from start to end " b { (words::duration(run)) } } }
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
