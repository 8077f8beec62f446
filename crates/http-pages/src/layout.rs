//! The frame of all pages: head, navigation, foot.

use assay_domain::{project::Project, timestamp::Timestamp};
use assay_markup::mark;
use maud::{DOCTYPE, Markup, html};

use crate::{assets, links};

/// The content of a page.
pub(crate) struct Page {
    pub(crate) title: String,
    /// The project that the page belongs to.
    pub(crate) project: Option<Project>,
    /// The section of the project.
    pub(crate) tab: Tab,
    pub(crate) body: Markup,
    /// Paths and queries of the read API's routes with the same data, relative to its base; the first has most of it.
    pub(crate) api: Vec<String>,
}

/// A page's content, or a redirect to this address within the site.
pub(crate) enum Answer {
    Page(Box<Page>),
    Redirect(String),
}

impl Answer {
    /// A page of a project, whose name is the end of the title. `api` are paths and queries of the read API's routes with
    /// the same data, below that of the project; the first has most of it.
    pub(crate) fn of_project<A: AsRef<str>>(
        tab: Tab,
        heading: &str,
        api: &[A],
        body: Markup,
        project: Project,
    ) -> Self {
        let api = api
            .iter()
            .map(|path| format!("/projects/{}{}", project.id, path.as_ref()));
        Self::Page(Box::new(Page {
            title: match heading {
                "" => project.name.clone(),
                heading => format!("{heading}, {}", project.name),
            },
            api: api.collect(),
            project: Some(project),
            tab,
            body,
        }))
    }
}

/// A section of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tab {
    None,
    Overview,
    Tests,
    Runs,
    Errors,
    Health,
}

/// The sections with their paths, their names, and the setting that the script remembers for each.
const TABS: [(Tab, &str, &str, Option<&str>); 5] = [
    (Tab::Overview, "", "Overview", None),
    (Tab::Tests, "/tests", "Tests", Some("sort")),
    (Tab::Runs, "/runs", "Runs", Some("days")),
    (Tab::Errors, "/errors", "Errors", Some("days")),
    (Tab::Health, "/health", "Health", None),
];

/// The whole page. `api_url` is the base of the read API.
pub(crate) fn page(page: &Page, now: Timestamp, api_url: &str) -> String {
    let top = html! {
        header.top {
            a.skip href="#main" { "Skip to the content" }
            a.brand href="/" { (mark()) "Assay" }
            @if let Some(project) = &page.project {
                span.project { bdi { (project.name) } }
                nav aria-label="Project" {
                    @for (tab, part, name, remembered) in TABS {
                        a href=(links::project(project.id, part)) data-remember=[remembered] aria-current=[(tab == page.tab).then_some("page")] { (name) }
                    }
                }
            } @else {
                nav {}
            }
            form method="post" action="/logout" { button type="submit" { "Sign out" } }
        }
    };
    let foot = html! {
        footer {
            @for (place, path) in page.api.iter().enumerate() {
                @let address = format!("{api_url}{path}");
                // No link: a browser would send no read key.
                p { @if place == 0 { "This page as JSON, with a read key in $KEY:" } @else { "Further data of this page:" } }
                p { code { "curl -H \"Authorization: Bearer $KEY\" '" (address.replace('\'', "%27")) "'" } }
            }
            // To the minute, so that a page without news keeps its entity tag.
            p { "Assay. Times are UTC; this page is of " (assay_markup::words::date_time(now)) "." }
        }
    };
    document(&page.title, &html! { (top) main #main { (page.body) } (foot) })
}

/// A document with this content.
pub(crate) fn document(title: &str, content: &Markup) -> String {
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Assay" }
                link rel="icon" href="data:,";
                link rel="stylesheet" href=(assets::style().path);
                script src=(assets::script().path) defer {}
            }
            body { (content) }
        }
    };
    document.into_string()
}

/// A page with an error message.
pub(crate) fn error(sentence: &str, more: &Markup) -> String {
    document(
        sentence,
        &html! {
            header.top { a.brand href="/" { (mark()) "Assay" } }
            main #main {
                h1 { (sentence) }
                (more)
                p { a href="/" { "All projects" } }
            }
        },
    )
}

/// A page that leads the browser to an address. A redirection would not do: after one from another site, browsers omit the
/// session's cookie, and one after a form must stay on this site.
pub(crate) fn forward(address: &str, text: &str) -> String {
    document(
        text,
        &html! {
            meta http-equiv="refresh" content={ "0;url=" (address) };
            main #main { p { a href=(address) { (text) } } }
        },
    )
}

/// The sign-in page, with the names of the providers. With `by_link`, a link with a key signs in without a click, as in the
/// demonstration.
pub(crate) fn login(wrong: Option<&str>, next: Option<&str>, by_link: bool, providers: &[&str]) -> String {
    document(
        "Sign in",
        &html! {
            main #main {
                // The next page is in the address, so that the body of the form has a small limit.
                form.box.sign-in data-by-link[by_link] method="post" action=(links::with_query("/login", &[("next", next)])) {
                    p.brand { (mark()) "Assay" }
                    h1 { "Sign in" }
                    @if let Some(wrong) = wrong { p.wrong role="alert" { (wrong) } }
                    @for (place, name) in providers.iter().enumerate() {
                        p { a.provider href=(links::with_query("/login/provider", &[("n", Some(&place.to_string())), ("next", next)])) {
                            "Sign in with " (name)
                        } }
                    }
                    p #from-link role="status" hidden { "The link that you followed brought this key. Sign in only if you know who sent it: you will see the data of that key." }
                    // Password managers store a name beside a password. A key has no name, so the page provides one.
                    input type="text" name="username" value="assay" autocomplete="username" hidden;
                    label { "Read key"
                        input type="password" name="key" required maxlength="200" autocomplete="current-password" placeholder="svc_ro_…";
                    }
                    button.main type="submit" { "Sign in" }
                    // Browsers omit the session's cookie after a link of another site. A request from this link has the
                    // cookie. The script follows the link if there is a session.
                    @if let Some(next) = next { p.sub { "Signed in already? " a #next href=(next) { "Open the page" } } }
                    p.sub { code { "assay-admin key create" } " makes a read key. This site keeps a sealed hash of it in a cookie, for as long as you use it and 12 hours more." }
                }
            }
        },
    )
}
