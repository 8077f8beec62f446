//! `/p/{id}/tests`: every test of the engine's window.

use std::cmp::Ordering;

use assay_components::{figures, history, words};
use assay_domain::{
    folding::{contains_folded, fold},
    page::{Page as PagePlace, PerPage},
    test::TestName,
    verdict::{Verdict, VerdictStatus},
};
use maud::html;

use super::{Answer, choice, pager, rows};
use crate::{
    error::FrontError,
    layout::{Page, Tab},
    links,
    view::View,
};

/// The verdicts in the order of the page.
const STATUSES: [VerdictStatus; 5] = [
    VerdictStatus::Broken,
    VerdictStatus::Failing,
    VerdictStatus::Flaky,
    VerdictStatus::Healthy,
    VerdictStatus::InsufficientData,
];

/// The order of the list.
const SORTS: [(&str, &str); 5] = [
    ("", "time lost"),
    ("score", "flake score"),
    ("rate", "failure rate"),
    ("impact", "impact"),
    ("name", "name"),
];

pub(super) fn render(view: &View<'_>) -> Result<Answer, FrontError> {
    let project = view.project()?;
    let status: Option<VerdictStatus> = view.word("status")?;
    let sort = view
        .parse("sort", "must be one of score, rate, impact, name", |sort| {
            SORTS.into_iter().map(|(word, _)| word).find(|word| *word == sort)
        })?
        .unwrap_or_default();
    let (search, file, branch) = (view.text("search")?, view.text("file")?, view.text("branch")?);
    let page = view.page()?;
    let verdicts = view.verdicts(&project)?;

    let (folded, folded_file) = (search.as_deref().map(fold), file.as_deref().map(fold));
    let places = history::run_places(&verdicts.history);
    let fails_on = |verdict: &Verdict, branch: &str| {
        let strips = history::strips(&verdicts.history, &places, verdict.test);
        strips.iter().any(|strip| match &strip.of {
            history::Of::Branch { name, .. } => name.as_deref() == Some(branch) && strip.has_failure(),
            history::Of::Variant(_) => false,
        })
    };
    let in_name = |test: &TestName, search: &str| {
        contains_folded(&test.name, search)
            || test
                .file_path
                .as_deref()
                .is_some_and(|file| contains_folded(file, search))
    };
    let mut matching: Vec<&(TestName, Verdict)> = verdicts
        .tests
        .iter()
        .filter(|(test, verdict)| {
            folded.as_deref().is_none_or(|search| in_name(test, search))
                && folded_file.as_deref().is_none_or(|part| {
                    test.file_path
                        .as_deref()
                        .is_some_and(|file| contains_folded(file, part))
                })
                && branch.as_deref().is_none_or(|branch| fails_on(verdict, branch))
        })
        .collect();
    let with = |status: VerdictStatus| {
        matching
            .iter()
            .filter(|(_, verdict)| verdict.status == status)
            .count()
    };
    let counts = STATUSES.map(|status| (status, with(status)));
    let found = matching.len();
    matching.retain(|(_, verdict)| status.is_none_or(|status| verdict.status == status));
    matching.sort_by(|left, right| compare(sort, left, right));

    let place = PagePlace::of(
        page,
        PerPage::Fifty,
        u64::try_from(matching.len()).unwrap_or(u64::MAX),
    );
    let shown: Vec<&(TestName, Verdict)> = matching
        .into_iter()
        .skip(usize::try_from(place.offset()).unwrap_or(usize::MAX))
        .take(usize::try_from(place.per_page).unwrap_or(usize::MAX))
        .collect();
    let path = links::project(project.id, "/tests");
    let address = |status: Option<&str>, page: Option<&str>| {
        links::with_query(
            &path,
            &[
                ("status", status),
                ("sort", Some(sort).filter(|sort| !sort.is_empty())),
                ("search", search.as_deref()),
                ("file", file.as_deref()),
                ("branch", branch.as_deref()),
                ("page", page),
            ],
        )
    };
    let chosen = status.map(VerdictStatus::as_str);
    let body = html! {
        h1 { "Tests" }
        form.controls role="search" action=(path) method="get" data-live {
            @if let Some(status) = chosen { input type="hidden" name="status" value=(status); }
            label.search { span.unseen { "Search tests" } input name="search" type="search" value=[search.as_deref()] maxlength="200" placeholder="Search tests" autocomplete="off"; }
            label { span { "File" } input name="file" value=[file.as_deref()] maxlength="200" placeholder="any" autocomplete="off"; }
            label { span { "Fails on" } input name="branch" value=[branch.as_deref()] maxlength="200" placeholder="any branch" autocomplete="off"; }
            label { span { "Sort by" } select name="sort" { @for (word, shown) in SORTS { (choice(word, Some(sort), shown)) } } }
            button type="submit" { "Apply" }
        }
        div #results {
            nav.controls aria-label="Verdict" {
                div.chips {
                    a href=(address(None, None)) aria-current=[status.is_none().then_some("true")] { "All " span { (words::grouped(found)) } }
                    @for (each, tests) in counts {
                        @if tests > 0 || status == Some(each) {
                            a href=(address(Some(each.as_str()), None)) aria-current=[(status == Some(each)).then_some("true")] { (figures::status(each)) " " span { (words::grouped(tests)) } }
                        }
                    }
                }
            }
            @if shown.is_empty() {
                p.empty { "No test matches." }
            } @else {
                (rows::columns())
                (rows::rows(project.id, &verdicts.history, &shown))
            }
            (pager(&place, |page| address(chosen, Some(&page.to_string()))))
        }
    };
    // The read API lists flaky and broken tests alone.
    let word = chosen.filter(|word| ["flaky", "broken"].contains(word));
    let api = links::with_query(
        &format!("/projects/{}/flaky", project.id),
        &[
            ("status", word),
            ("search", search.as_deref()),
            ("perPage", Some("50")),
        ],
    );
    Ok(Page {
        title: format!("Tests, {}", project.name),
        project: Some(project),
        tab: Tab::Tests,
        body,
        api: vec![api],
    }
    .into())
}

/// What is wrong first; within a verdict the largest first, unknown last. The order is total, so that pages do not overlap.
fn compare(
    sort: &str,
    (left_name, left): &(TestName, Verdict),
    (right_name, right): &(TestName, Verdict),
) -> Ordering {
    let rank = |verdict: &Verdict| STATUSES.iter().position(|status| *status == verdict.status);
    let (l, r) = (&left.figures, &right.figures);
    let by_figure = match sort {
        "score" => r.flake_score.total_cmp(&l.flake_score),
        "rate" => r
            .failure_rate
            .unwrap_or(-1.0)
            .total_cmp(&l.failure_rate.unwrap_or(-1.0)),
        "impact" => r.impact.total_cmp(&l.impact),
        "name" => Ordering::Equal,
        _ => rank(left)
            .cmp(&rank(right))
            .then_with(|| r.time_lost_ms.cmp(&l.time_lost_ms))
            .then_with(|| r.flake_score.total_cmp(&l.flake_score)),
    };
    by_figure.then_with(|| left_name.cmp(right_name))
}
