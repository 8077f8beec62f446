//! Every error of every route against the description of the API, also while the database fails.
//!
//! `bins/assay-server/tests/security` compares all other answers with it.

use std::collections::BTreeSet;

use actix_web::http::Method;
use assay_http_api::{BASE, ROUTES};
use serde_json::Value;

use crate::api::{Answer, Api};

fn document() -> Value {
    serde_json::from_str(include_str!("../../../../docs/openapi.json")).unwrap()
}

/// The value, or the target of its reference.
fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    value["$ref"]
        .as_str()
        .map_or(value, |path| document.pointer(&path[1..]).unwrap())
}

/// The names of an operation's parameters of the query.
fn query<'a>(document: &'a Value, operation: &'a Value) -> BTreeSet<&'a str> {
    let parameters = operation["parameters"].as_array().unwrap().iter();
    parameters
        .map(|parameter| resolve(document, parameter))
        .filter(|parameter| parameter["in"] == "query")
        .map(|parameter| parameter["name"].as_str().unwrap())
        .collect()
}

/// Asserts that the description has the answer's status, headers, form and code.
#[track_caller]
fn conforms(document: &Value, operation: &Value, answer: &Answer, context: &str) {
    let response = resolve(document, &operation["responses"][answer.status.as_str()]);
    assert!(
        response.is_object(),
        "{context}: {} is not described",
        answer.status
    );
    let nothing = serde_json::Map::new();
    let headers = response["headers"].as_object().unwrap_or(&nothing);
    for (name, header) in headers {
        let is_required = resolve(document, header)["required"] == true;
        assert!(
            !is_required || answer.header(name).is_some(),
            "{context}: {name} is missing"
        );
    }
    for name in answer.headers.keys() {
        let is_described = headers
            .keys()
            .any(|header| name.as_str().eq_ignore_ascii_case(header));
        assert!(
            is_described || name == "content-type",
            "{context}: {name} is not described"
        );
    }
    let codes = response["x-codes"].as_array().unwrap().iter();
    let codes: Vec<_> = codes.map(|code| code["code"].as_str().unwrap()).collect();
    if response["content"].is_null() {
        assert!(answer.body.is_empty(), "{context}: {:?}", answer.body);
        return;
    }
    let body = answer.json();
    assert_eq!(
        answer.header("content-type"),
        Some("application/json"),
        "{context}"
    );
    assert!(
        codes.contains(&body["code"].as_str().unwrap()),
        "{context}: {body}"
    );
    assert_eq!(body.as_object().unwrap().len(), 2, "{context}: {body}");
    assert!(!body["error"].as_str().unwrap().is_empty(), "{context}");
}

#[actix_web::test]
async fn every_error_conforms_to_the_description() {
    let (document, api, limited) = (document(), Api::new(), Api::with(1, 64));
    let with_key = |key: &str| [("Authorization", format!("Bearer {key}"))];
    let every: Vec<_> = ROUTES
        .iter()
        .map(|route| &document["paths"][route.path]["get"])
        .collect();
    let names: BTreeSet<_> = every
        .iter()
        .flat_map(|operation| query(&document, operation))
        .collect();
    limited.get("/projects").await.ok();
    for (route, operation) in ROUTES.iter().zip(every) {
        let path = api.fill(route.path);
        for (key, status, code) in &api.bad_keys {
            let [(name, value)] = with_key(key.reveal());
            let uri = format!("{BASE}{path}?days=x");
            let answer = api.send(Method::GET, &uri, &[(name, &value)]).await;
            answer.fails(*status, code, &path);
            conforms(&document, operation, &answer, &path);
        }
        // The project is empty, so that nothing below it exists.
        let answer = api.get(&path).await;
        if answer.status != 200 {
            conforms(&document, operation, &answer, &path);
        }
        let elsewhere = path.replace(&api.project, crate::api::NO_ID);
        if elsewhere != path {
            let answer = api.get(&elsewhere).await;
            answer.fails(404, "project_not_found", &elsewhere);
            conforms(&document, operation, &answer, &elsewhere);
        }
        let own = query(&document, operation);
        for name in &names {
            let path = format!("{path}?{name}=%FF");
            let answer = api.get(&path).await;
            // A list takes either name for the number of its entries.
            let is_alias =
                ["perPage", "limit"].contains(name) && (own.contains("perPage") || own.contains("limit"));
            if own.contains(name) || is_alias {
                let code = if *name == "days" {
                    "invalid_period"
                } else {
                    "invalid_parameter"
                };
                answer.fails(400, code, &path);
                assert!(answer.json()["error"].as_str().unwrap().contains(name), "{path}");
                conforms(&document, operation, &answer, &path);
            } else {
                assert_ne!(answer.status, 400, "{path}");
            }
        }
        let refused = limited.get(&path).await;
        assert_eq!(refused.status, 429);
        conforms(&document, operation, &refused, &path);
    }
}

/// The project is empty, so that the first id below it is not found in any case.
#[actix_web::test]
async fn a_hostile_segment_of_a_path_is_not_found() {
    let api = Api::new();
    let parts: Value = serde_json::from_str(include_str!("../../../../testdata/requests.json")).unwrap();
    let long = Value::String("a".repeat(3_000));
    for value in parts["segments"].as_array().unwrap().iter().chain([&long]) {
        for route in ROUTES {
            let names = route.path.split('/').filter(|segment| segment.starts_with('{'));
            let below = names.clone().nth(1);
            for name in names {
                let path = api.fill(&route.path.replace(name, value.as_str().unwrap()));
                let missing = below.filter(|_| name != "{projectId}").unwrap_or(name);
                let code = match missing {
                    "{projectId}" => "project_not_found",
                    "{runId}" => "run_not_found",
                    "{commitSha}" => "commit_not_found",
                    "{testName}" => "test_not_found",
                    "{branchName}" => "branch_not_found",
                    _ => "error_not_found",
                };
                api.get(&path).await.fails(404, code, &path);
            }
        }
    }
}

/// The key is checked before the plan, the plan before the route, and parameters before any look-up.
#[actix_web::test]
async fn refusals_have_an_order() {
    let api = Api::new();
    for path in ["/nonsense", "/projects/x/runs/y/z", "/", ""] {
        let uri = format!("{BASE}{path}");
        api.send(Method::GET, &uri, &[])
            .await
            .fails(401, "missing_key", path);
        for (key, status, code) in &api.bad_keys {
            let header = format!("Bearer {}", key.reveal());
            let answer = api.send(Method::GET, &uri, &[("Authorization", &header)]).await;
            answer.fails(*status, code, path);
        }
        api.get(path).await.fails(404, "invalid_parameter", path);
    }
    for (path, code) in [
        ("/projects/x/runs?days=8", "invalid_period"),
        ("/projects/x/errors/f?days=x", "invalid_period"),
        ("/projects/x/flaky?page=0", "invalid_parameter"),
        ("/projects/x/tests/t?filePath=a&filePath=b", "invalid_parameter"),
    ] {
        api.get(path).await.fails(400, code, path);
    }
}

#[actix_web::test]
async fn no_route_writes() {
    let api = Api::new();
    let authorization = format!("Bearer {}", api.key.reveal());
    for route in ROUTES {
        let (path, uri) = (api.fill(route.path), format!("{BASE}{}", api.fill(route.path)));
        for method in [
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
            Method::OPTIONS,
        ] {
            let answer = api
                .send(method.clone(), &uri, &[("Authorization", &authorization)])
                .await;
            answer.fails(405, "invalid_parameter", &path);
            assert_eq!(answer.header("allow"), Some("GET, HEAD"), "{method} {path}");
            api.send(method, &uri, &[]).await.fails(401, "missing_key", &path);
        }
        let get = api.get(&path).await;
        let head = api
            .send(Method::HEAD, &uri, &[("Authorization", &authorization)])
            .await;
        let fields = ["content-type", "cache-control", "etag", "vary"];
        let of = |answer: &Answer| fields.map(|field| answer.header(field).map(str::to_owned));
        assert_eq!((head.status, of(&head)), (get.status, of(&get)), "{path}");
    }
}

#[actix_web::test]
async fn every_failure_of_the_database_is_an_internal_error_without_its_cause() {
    let document = document();
    let (failing, failing_entirely, unreachable) = (Api::new(), Api::new(), Api::new());
    failing.get("/projects").await.ok();
    failing
        .get(&failing.fill("/projects/{projectId}/settings"))
        .await
        .ok();
    for api in [&failing, &failing_entirely] {
        api.database.execute("DROP SCHEMA public CASCADE");
    }
    let unreachable = unreachable.without_database();
    for (api, status, routes) in [
        (&failing, 500, ROUTES),
        (&failing_entirely, 500, ROUTES),
        // A request waits some seconds for a connection.
        (&unreachable, 503, &ROUTES[..1]),
    ] {
        for route in routes {
            let path = api.fill(route.path);
            let answer = api.get(&path).await;
            answer.fails(status, "internal_error", &path);
            conforms(&document, &document["paths"][route.path]["get"], &answer, &path);
            let body = answer.text();
            assert!(!body.contains("relation") && !body.contains("test_"), "{body}");
        }
    }
}
