//! The pages. Each is a function from a view to its content.

mod attempts;
mod commit;
mod decisions;
mod error_signature;
mod errors;
mod first_run;
mod health;
mod overview;
pub(crate) mod parts;
mod projects;
mod release;
mod rows;
mod run;
mod runs;
mod test;
mod tests;
mod whose;

use crate::{error::FrontError, layout::Answer, view::View};

/// A page: the pattern of its path and its render function.
pub(crate) struct PageRoute {
    pub(crate) path: &'static str,
    pub(crate) render: fn(&View<'_>) -> Result<Answer, FrontError>,
}

/// Every page except signing in and out.
pub(crate) static PAGES: [PageRoute; 13] = [
    page("/", projects::render),
    page("/p/{project}", overview::render),
    page("/p/{project}/tests", tests::render),
    page("/p/{project}/runs", runs::render),
    page("/p/{project}/release", release::render),
    page("/p/{project}/runs/{run}", run::render),
    page("/p/{project}/runs/{run}/test", attempts::render),
    page("/p/{project}/commit/{sha}", commit::of_commit),
    page("/p/{project}/pull/{number}", commit::of_pull_request),
    page("/p/{project}/test", test::render),
    page("/p/{project}/health", health::render),
    page("/p/{project}/errors", errors::render),
    page("/p/{project}/errors/{fingerprint}", error_signature::render),
];

const fn page(path: &'static str, render: fn(&View<'_>) -> Result<Answer, FrontError>) -> PageRoute {
    PageRoute { path, render }
}
