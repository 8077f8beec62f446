//! The route table. One file a resource; an envelope stands beside the handler that answers it.

pub(crate) mod attempts;
pub(crate) mod branches;
pub(crate) mod flaky;
pub(crate) mod history;
pub(crate) mod projects;
pub(crate) mod runs;
pub(crate) mod settings;
pub(crate) mod signatures;
pub(crate) mod verdict;

use actix_web::{
    HttpRequest, Route as ActixRoute,
    web::{self, ServiceConfig},
};

use crate::{
    answer::Answer,
    app::App,
    call::Call,
    dispatch::{Handler, dispatch},
    error::ApiError,
};

/// The prefix of every route.
pub const BASE: &str = "/api/v1";

/// A route: the pattern of its path below [`BASE`], and what answers it.
pub struct Route {
    /// The pattern, as `/projects/{projectId}`.
    pub path: &'static str,
    pub(crate) handler: Handler,
}

/// Every route. All are for GET and HEAD.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/projects",
        handler: projects::list,
    },
    Route {
        path: "/projects/{projectId}/runs",
        handler: runs::list,
    },
    Route {
        path: "/projects/{projectId}/runs/{runId}",
        handler: runs::detail,
    },
    Route {
        path: "/projects/{projectId}/runs/{runId}/tests/{testName}",
        handler: attempts::list,
    },
    Route {
        path: "/projects/{projectId}/errors",
        handler: signatures::list,
    },
    Route {
        path: "/projects/{projectId}/errors/{fingerprint}",
        handler: signatures::detail,
    },
    Route {
        path: "/projects/{projectId}/tests/{testName}",
        handler: history::list,
    },
    Route {
        path: "/projects/{projectId}/tests/{testName}/status",
        handler: verdict::status,
    },
    Route {
        path: "/projects/{projectId}/flaky",
        handler: flaky::list,
    },
    Route {
        path: "/projects/{projectId}/settings",
        handler: settings::show,
    },
    Route {
        path: "/projects/{projectId}/branches",
        handler: branches::list,
    },
];

/// Any other path. It asks for a key too, so that a stranger learns nothing of the routes.
static NO_ROUTE: Route = Route {
    path: "(no route)",
    handler: no_route,
};
/// Any other method on a path of the table.
static NO_METHOD: Route = Route {
    path: "(no method)",
    handler: no_method,
};

/// Mounts the API on an actix application, which is one worker's.
pub fn configure(app: App) -> impl FnOnce(&mut ServiceConfig) {
    let app = app.of_worker();
    move |config| {
        let mut scope = web::scope(BASE);
        for route in ROUTES {
            let resource = web::resource(route.path)
                .route(answering(web::get(), &app, route))
                .route(answering(web::head(), &app, route))
                .default_service(answering(web::route(), &app, &NO_METHOD));
            scope = scope.service(resource);
        }
        config
            .service(scope)
            .default_service(answering(web::route(), &app, &NO_ROUTE));
    }
}

fn answering(method: ActixRoute, app: &App, route: &'static Route) -> ActixRoute {
    let app = app.clone();
    method.to(move |request: HttpRequest| dispatch(app.clone(), route, request))
}

fn no_route(_: &Call<'_>) -> Result<Answer, ApiError> {
    Err(ApiError::NoSuchRoute)
}

fn no_method(_: &Call<'_>) -> Result<Answer, ApiError> {
    Err(ApiError::NoSuchMethod)
}
