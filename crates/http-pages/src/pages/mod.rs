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
    PageRoute {
        path: "/",
        render: projects::render,
    },
    PageRoute {
        path: "/p/{project}",
        render: overview::render,
    },
    PageRoute {
        path: "/p/{project}/tests",
        render: tests::render,
    },
    PageRoute {
        path: "/p/{project}/runs",
        render: runs::render,
    },
    PageRoute {
        path: "/p/{project}/release",
        render: release::render,
    },
    PageRoute {
        path: "/p/{project}/runs/{run}",
        render: run::render,
    },
    PageRoute {
        path: "/p/{project}/runs/{run}/test",
        render: attempts::render,
    },
    PageRoute {
        path: "/p/{project}/commit/{sha}",
        render: commit::of_commit,
    },
    PageRoute {
        path: "/p/{project}/pull/{number}",
        render: commit::of_pull_request,
    },
    PageRoute {
        path: "/p/{project}/test",
        render: test::render,
    },
    PageRoute {
        path: "/p/{project}/health",
        render: health::render,
    },
    PageRoute {
        path: "/p/{project}/errors",
        render: errors::render,
    },
    PageRoute {
        path: "/p/{project}/errors/{fingerprint}",
        render: error_signature::render,
    },
];
