//! The route table. Each resource has a file with its routes: path, handler, answer, parameters and documentation.

mod attempts;
mod branches;
mod changes;
mod commits;
mod durations;
mod failures;
mod fix;
mod flaky;
mod health;
mod history;
mod projects;
mod proof;
mod releases;
mod runs;
mod settings;
mod signatures;
mod test_list;
mod timings;
mod uploads;
mod verdict;

use std::sync::Arc;

use actix_web::{
    HttpRequest, HttpResponse,
    http::Method,
    web::{self, ServiceConfig},
};

use crate::{
    answer::Answer,
    app::App,
    call::Call,
    dispatch::dispatch,
    error::ApiError,
    route::{BASE, Route},
};

/// Every route, in the order of the description. All are for GET and HEAD.
pub const ROUTES: &[Route] = &[
    projects::LIST,
    runs::LIST,
    runs::DETAIL,
    failures::LIST,
    changes::LIST,
    attempts::LIST,
    commits::DETAIL,
    signatures::LIST,
    signatures::DETAIL,
    test_list::LIST,
    history::LIST,
    verdict::STATUS,
    fix::SHOW,
    proof::SHOW,
    flaky::LIST,
    health::SHOW,
    settings::SHOW,
    branches::LIST,
    releases::SHOW,
    timings::LIST,
    durations::FIND,
    uploads::LIST,
];

/// Any other path. It also requires a key, so that the routes are not visible without one.
static NO_ROUTE: Route = Route {
    path: "(no route)",
    handler: no_route,
    is_large: false,
    #[cfg(test)]
    operation: None,
};
/// Any other method on a path of the table.
static NO_METHOD: Route = Route {
    path: "(no method)",
    handler: no_method,
    is_large: false,
    #[cfg(test)]
    operation: None,
};

/// Mounts the API on one worker's actix application. It answers every path.
pub fn configure(app: App) -> impl FnOnce(&mut ServiceConfig) {
    let app = Arc::new(app);
    mount(
        move |route, request| dispatch(Arc::clone(&app), route, request),
        Paths::All,
    )
}

/// The same for an application that has other parts, too. It answers the paths below `/api`.
pub fn configure_own_paths(app: App) -> impl FnOnce(&mut ServiceConfig) {
    let app = Arc::new(app);
    mount(
        move |route, request| dispatch(Arc::clone(&app), route, request),
        Paths::Own,
    )
}

/// The paths that are answered beside those of the routes.
enum Paths {
    All,
    Own,
}

/// Mounts `answer` at the path of each route, and at other paths.
///
/// Actix compares decoded names of the path, so `/%61pi` is `/api`. An encoded slash stays part of its segment.
fn mount<A>(
    answer: impl Fn(&'static Route, HttpRequest) -> A + Clone + 'static,
    other_paths: Paths,
) -> impl FnOnce(&mut ServiceConfig)
where
    A: Future<Output = HttpResponse> + 'static,
{
    move |config| {
        for route in ROUTES {
            let answer = answer.clone();
            let resource = web::resource(format!("{BASE}{}", route.path));
            config.service(resource.to(move |request: HttpRequest| {
                // All methods are routed here, so that 405 has the API's headers and requires a key, too.
                let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
                answer(if is_read { route } else { &NO_METHOD }, request)
            }));
        }
        let no_route = web::to(move |request: HttpRequest| answer(&NO_ROUTE, request));
        match other_paths {
            Paths::All => config.default_service(no_route),
            Paths::Own => config.service(web::scope("/api").default_service(no_route)),
        };
    }
}

fn no_route(_: &Call<'_>) -> Result<Answer, ApiError> {
    Err(ApiError::NoSuchRoute)
}

fn no_method(_: &Call<'_>) -> Result<Answer, ApiError> {
    Err(ApiError::NoSuchMethod)
}

#[cfg(test)]
mod tests {
    use actix_web::{
        App as Actix,
        http::Uri,
        test::{TestRequest, call_and_read_body, init_service},
    };

    use super::*;

    /// The pattern of the route that answers this request.
    async fn route_of(method: Method, path: &'static str) -> String {
        // Only the target of CONNECT has an empty path.
        let target = if path.is_empty() { "host:80" } else { path };
        let target: Uri = target.parse().unwrap();
        assert_eq!(target.path(), path);
        let show = |route: &'static Route, _: HttpRequest| async { HttpResponse::Ok().body(route.path) };
        let service = init_service(Actix::new().configure(mount(show, Paths::All))).await;
        let request = TestRequest::with_uri(&target.to_string()).method(method);
        let body = call_and_read_body(&service, request.to_request()).await;
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[actix_web::test]
    async fn a_path_has_the_route_of_its_segments() {
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
            assert_eq!(route_of(Method::GET, path).await, expected, "{path}");
        }
    }

    #[actix_web::test]
    async fn only_get_and_head_are_answered() {
        let route = |method: Method| route_of(method, "/api/v1/projects");
        assert_eq!(
            (route(Method::GET).await, route(Method::HEAD).await),
            ("/projects".to_owned(), "/projects".to_owned())
        );
        assert_eq!(route(Method::POST).await, NO_METHOD.path);
        assert_eq!(route_of(Method::POST, "/api/v1").await, NO_ROUTE.path);
    }
}
