//! The route table. Each resource has a file, with its handlers and their envelopes.

pub(crate) mod attempts;
pub(crate) mod branches;
pub(crate) mod failures;
pub(crate) mod flaky;
pub(crate) mod history;
pub(crate) mod projects;
pub(crate) mod runs;
pub(crate) mod settings;
pub(crate) mod signatures;
pub(crate) mod verdict;

use std::sync::Arc;

use actix_web::{
    HttpRequest,
    http::Method,
    web::{self, ServiceConfig},
};

use crate::{
    answer::Answer,
    app::App,
    call::Call,
    dispatch::{Handler, dispatch},
    error::ApiError,
    request::text,
};

/// The prefix of every route.
pub const BASE: &str = "/api/v1";

/// A route: the pattern of its path below [`BASE`], and its handler.
pub struct Route {
    /// The pattern, as `/projects/{projectId}`.
    pub path: &'static str,
    pub(crate) handler: Handler,
    /// Whether its answers may be large, so that it reserves memory before it begins.
    pub(crate) is_large: bool,
}

/// Every route. All are for GET and HEAD.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/projects",
        handler: projects::list,
        is_large: false,
    },
    Route {
        path: "/projects/{projectId}/runs",
        handler: runs::list,
        is_large: false,
    },
    Route {
        path: "/projects/{projectId}/runs/{runId}",
        handler: runs::detail,
        is_large: true,
    },
    Route {
        path: "/projects/{projectId}/runs/{runId}/failures",
        handler: failures::list,
        is_large: true,
    },
    Route {
        path: "/projects/{projectId}/runs/{runId}/tests/{testName}",
        handler: attempts::list,
        is_large: true,
    },
    Route {
        path: "/projects/{projectId}/errors",
        handler: signatures::list,
        is_large: true,
    },
    Route {
        path: "/projects/{projectId}/errors/{fingerprint}",
        handler: signatures::detail,
        is_large: true,
    },
    Route {
        path: "/projects/{projectId}/tests/{testName}",
        handler: history::list,
        is_large: true,
    },
    Route {
        path: "/projects/{projectId}/tests/{testName}/status",
        handler: verdict::status,
        is_large: false,
    },
    Route {
        path: "/projects/{projectId}/flaky",
        handler: flaky::list,
        is_large: true,
    },
    Route {
        path: "/projects/{projectId}/settings",
        handler: settings::show,
        is_large: false,
    },
    Route {
        path: "/projects/{projectId}/branches",
        handler: branches::list,
        is_large: true,
    },
];

/// Any other path. It requires a key too, so that the routes are not visible without one.
static NO_ROUTE: Route = Route {
    path: "(no route)",
    handler: no_route,
    is_large: false,
};
/// Any other method on a path of the table.
static NO_METHOD: Route = Route {
    path: "(no method)",
    handler: no_method,
    is_large: false,
};

/// Mounts the API on an actix application, which is one worker's.
///
/// One service handles every path. Actix's own table would test one regular expression a route for each request,
/// which took a twentieth of the time of a cheap one.
pub fn configure(app: App) -> impl FnOnce(&mut ServiceConfig) {
    let app = Arc::new(app);
    move |config| {
        config.default_service(web::to(move |request: HttpRequest| {
            let route = Route::of(request.method(), request.uri().path());
            dispatch(Arc::clone(&app), route, request)
        }));
    }
}

impl Route {
    /// The route of this method and undecoded path.
    fn of(method: &Method, path: &str) -> &'static Self {
        let mut segments = path.split('/');
        let is_below = BASE
            .split('/')
            .all(|name| segments.next().is_some_and(|segment| is(segment, name)));
        let route = ROUTES.iter().find(|route| route.fits(segments.clone()));
        match route.filter(|_| is_below) {
            None => &NO_ROUTE,
            Some(route) if [Method::GET, Method::HEAD].contains(method) => route,
            Some(_) => &NO_METHOD,
        }
    }

    fn fits<'a>(&self, mut segments: impl Iterator<Item = &'a str>) -> bool {
        let fits = self.path.split('/').skip(1).all(|pattern| {
            segments.next().is_some_and(|segment| {
                if pattern.starts_with('{') {
                    !segment.is_empty()
                } else {
                    is(segment, pattern)
                }
            })
        });
        fits && segments.next().is_none()
    }
}

/// Whether an undecoded segment is this name.
fn is(segment: &str, name: &str) -> bool {
    segment == name || (segment.contains('%') && text::decode(segment).is_some_and(|text| text == name))
}

fn no_route(_: &Call<'_>) -> Result<Answer, ApiError> {
    Err(ApiError::NoSuchRoute)
}

fn no_method(_: &Call<'_>) -> Result<Answer, ApiError> {
    Err(ApiError::NoSuchMethod)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_the_route_of_its_segments() {
        for (path, expected) in [
            ("/api/v1/projects", "/projects"),
            ("/api/v1/projects/a/flaky", "/projects/{projectId}/flaky"),
            (
                "/api/v1/projects/a/tests/b",
                "/projects/{projectId}/tests/{testName}",
            ),
            (
                "/api/v1/projects/a/tests/b%2Fstatus",
                "/projects/{projectId}/tests/{testName}",
            ),
            (
                "/api/v1/projects/%FF/tests/status/status",
                "/projects/{projectId}/tests/{testName}/status",
            ),
            ("/%61pi/v1/projects/a/%66laky", "/projects/{projectId}/flaky"),
            ("/api/v1/projects/{projectId}/runs", "/projects/{projectId}/runs"),
            ("/api/v1/projects/", NO_ROUTE.path),
            ("/api/v1//projects", NO_ROUTE.path),
            ("/api/v1/projects//flaky", NO_ROUTE.path),
            ("/api/v1/projects/a", NO_ROUTE.path),
            ("/api/v1/projects/a/flaky/", NO_ROUTE.path),
            ("/api/v1/projects%2Fa/flaky", NO_ROUTE.path),
            ("/api/v1/%7BprojectId%7D", NO_ROUTE.path),
            ("/api/v2/projects", NO_ROUTE.path),
            ("/api/v1", NO_ROUTE.path),
            ("/projects", NO_ROUTE.path),
            ("/", NO_ROUTE.path),
            ("*", NO_ROUTE.path),
            ("", NO_ROUTE.path),
        ] {
            assert_eq!(Route::of(&Method::GET, path).path, expected, "{path}");
        }
    }

    #[test]
    fn only_get_and_head_are_answered() {
        let route = |method: &Method| Route::of(method, "/api/v1/projects").path;
        assert_eq!(
            (route(&Method::GET), route(&Method::HEAD)),
            ("/projects", "/projects")
        );
        assert_eq!(route(&Method::POST), NO_METHOD.path);
        assert_eq!(Route::of(&Method::POST, "/api/v1").path, NO_ROUTE.path);
    }
}
