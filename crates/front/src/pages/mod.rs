//! The pages, each a function from a view to its content.

mod attempts;
mod error_signature;
mod errors;
mod overview;
mod projects;
mod rows;
mod run;
mod runs;
mod test;
mod tests;

use actix_web::HttpRequest;
use assay_components::words;
use assay_domain::{page::Page as PagePlace, test::CandidateFiles, timestamp::Timestamp};
use maud::{Markup, html};

use crate::{error::FrontError, layout::Page, links, view::View};

/// A page: the pattern of its path, and what renders it.
pub(crate) struct Shown {
    pub(crate) path: &'static str,
    pub(crate) render: fn(&View<'_>) -> Result<Answer, FrontError>,
}

/// A page's content, or the address of a better place.
pub(crate) enum Answer {
    Page(Box<Page>),
    Elsewhere(String),
}

impl From<Page> for Answer {
    fn from(page: Page) -> Self {
        Self::Page(Box::new(page))
    }
}

/// Every page but those of signing in and out.
pub(crate) static PAGES: [Shown; 9] = [
    Shown {
        path: "/",
        render: projects::render,
    },
    Shown {
        path: "/p/{project}",
        render: overview::render,
    },
    Shown {
        path: "/p/{project}/tests",
        render: tests::render,
    },
    Shown {
        path: "/p/{project}/runs",
        render: runs::render,
    },
    Shown {
        path: "/p/{project}/runs/{run}",
        render: run::render,
    },
    Shown {
        path: "/p/{project}/runs/{run}/test",
        render: attempts::render,
    },
    Shown {
        path: "/p/{project}/test",
        render: test::render,
    },
    Shown {
        path: "/p/{project}/errors",
        render: errors::render,
    },
    Shown {
        path: "/p/{project}/errors/{fingerprint}",
        render: error_signature::render,
    },
];

/// Links to the same page for each file that has the asked name.
pub(crate) fn candidates(request: &HttpRequest, files: &CandidateFiles) -> Markup {
    let query = crate::pairs(request.query_string());
    let name = crate::value(&query, "name");
    html! {
        ul {
            @for file in &files.named {
                @let shown = file.as_deref().unwrap_or_default();
                li { a href=(links::with_query(request.path(), &[("name", name), ("file", Some(shown))])) { bdi { (if shown.is_empty() { "(no file)" } else { shown }) } } }
            }
        }
        @if files.others > 0 { p.sub { "And " (files.others) " more files." } }
    }
}

/// A moment with its age.
fn when(at: Timestamp, now: Timestamp) -> Markup {
    html! { (words::time(at)) ", " span.age { (words::age(at, now)) } }
}

/// A number of a database in words.
fn count(number: u64, noun: &str) -> String {
    words::count(usize::try_from(number).unwrap_or(usize::MAX), noun)
}

fn grouped(number: u64) -> String {
    words::grouped(usize::try_from(number).unwrap_or(usize::MAX))
}

/// Links to the pages before and after this one. `address` gives a page's.
fn pager(place: &PagePlace, address: impl Fn(u64) -> String) -> Markup {
    html! {
        @if place.page_count > 1 {
            nav.pages aria-label="Pages" {
                @if place.page > 1 { a.button rel="prev" href=(address(place.page - 1)) { "Previous" } }
                span { "Page " (grouped(place.page)) " of " (grouped(place.page_count)) }
                @if place.page < place.page_count { a.button rel="next" href=(address(place.page + 1)) { "Next" } }
            }
        }
    }
}

/// An option of a choice.
fn choice(value: &str, chosen: Option<&str>, shown: &str) -> Markup {
    html! { option value=(value) selected[chosen.unwrap_or_default() == value] { (shown) } }
}

/// A commit in short.
fn commit(sha: &str) -> Markup {
    html! { code title=(sha) { (sha.chars().take(8).collect::<String>()) } }
}
