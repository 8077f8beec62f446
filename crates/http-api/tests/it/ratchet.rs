//! Invariants of every route. A route of the table without a row here fails.

use actix_web::http::Method;
use assay_http_api::{BASE, ROUTES};

use crate::{
    client::Api,
    ids::{FINGERPRINT, NO_PROJECT, NO_RUN, OTHER_PROJECT, PROJECT, RUN, TEST_ENCODED},
    store::Mode,
};

/// A route, the not-found code of its path's last parameter, and its query parameters.
struct Row {
    path: &'static str,
    not_found: Option<&'static str>,
    query_parameters: &'static [&'static str],
}

const ROWS: &[Row] = &[
    Row {
        path: "/projects",
        not_found: None,
        query_parameters: &[],
    },
    Row {
        path: "/projects/{projectId}/runs",
        not_found: Some("project_not_found"),
        query_parameters: &[
            "days",
            "branch",
            "sha",
            "pullRequest",
            "status",
            "trusted",
            "perPage",
            "cursor",
            "direction",
        ],
    },
    Row {
        path: "/projects/{projectId}/runs/{runId}",
        not_found: Some("run_not_found"),
        query_parameters: &[],
    },
    Row {
        path: "/projects/{projectId}/runs/{runId}/failures",
        not_found: Some("run_not_found"),
        query_parameters: &["mode", "owner", "page", "limit"],
    },
    Row {
        path: "/projects/{projectId}/runs/{runId}/changes",
        not_found: Some("run_not_found"),
        query_parameters: &[],
    },
    Row {
        path: "/projects/{projectId}/runs/{runId}/tests/{testName}",
        not_found: Some("test_not_found"),
        query_parameters: &["filePath"],
    },
    Row {
        path: "/projects/{projectId}/commits/{commitSha}",
        not_found: Some("commit_not_found"),
        query_parameters: &["owner", "page", "limit"],
    },
    Row {
        path: "/projects/{projectId}/errors",
        not_found: Some("project_not_found"),
        query_parameters: &["days", "branch", "category", "search", "sort", "page", "perPage"],
    },
    Row {
        path: "/projects/{projectId}/errors/{fingerprint}",
        not_found: Some("error_not_found"),
        query_parameters: &["days"],
    },
    Row {
        path: "/projects/{projectId}/tests/{testName}",
        not_found: Some("test_not_found"),
        query_parameters: &["filePath", "days"],
    },
    Row {
        path: "/projects/{projectId}/tests/{testName}/status",
        not_found: Some("test_not_found"),
        query_parameters: &["filePath"],
    },
    Row {
        path: "/projects/{projectId}/flaky",
        not_found: Some("project_not_found"),
        query_parameters: &["status", "sort", "search", "owner", "page", "perPage", "explain"],
    },
    Row {
        path: "/projects/{projectId}/settings",
        not_found: Some("project_not_found"),
        query_parameters: &[],
    },
    Row {
        path: "/projects/{projectId}/branches",
        not_found: Some("project_not_found"),
        query_parameters: &[],
    },
    Row {
        path: "/projects/{projectId}/timings",
        not_found: Some("project_not_found"),
        query_parameters: &["before"],
    },
    Row {
        path: "/projects/{projectId}/durations",
        not_found: Some("project_not_found"),
        query_parameters: &[],
    },
    Row {
        path: "/projects/{projectId}/uploads",
        not_found: Some("project_not_found"),
        query_parameters: &["limit"],
    },
];

/// Invalid values for every part of a path, in their sent form.
fn bad_parts() -> Vec<String> {
    let mut parts: Vec<_> = [
        "%00",
        "a%00b",
        "%FF",
        "%C3",
        "%EF%BF%BD",
        "%",
        "%zz",
        "..",
        "null",
        "%2F",
        "%20",
        "'%22;--",
    ]
    .map(str::to_owned)
    .to_vec();
    parts.push("x".repeat(20_000));
    parts.push(PROJECT.to_uppercase());
    parts
}

impl Row {
    fn good(&self) -> String {
        self.with_project(PROJECT)
    }

    fn with_project(&self, project: &str) -> String {
        fill(self.path, project)
    }

    /// The path with its last parameter replaced.
    fn with_last(&self, part: &str) -> Option<String> {
        let start = self.path.rfind('{')?;
        let end = self.path.rfind('}')? + 1;
        let path = format!("{}{part}{}", &self.path[..start], &self.path[end..]);
        Some(fill(&path, PROJECT))
    }
}

fn fill(path: &str, project: &str) -> String {
    path.replace("{projectId}", project)
        .replace("{runId}", RUN)
        .replace("{commitSha}", "c0ffee")
        .replace("{testName}", TEST_ENCODED)
        .replace("{fingerprint}", FINGERPRINT)
}

#[test]
fn every_route_has_its_row() {
    let rows: Vec<_> = ROWS.iter().map(|row| row.path).collect();
    let routes: Vec<_> = ROUTES.iter().map(|route| route.path).collect();
    assert_eq!(rows, routes);
}

#[test]
fn every_route_is_documented_with_its_parameters() {
    let document: serde_json::Value =
        serde_json::from_str(include_str!("../../../../docs/openapi.json")).unwrap();
    for row in ROWS {
        let references = document["paths"][row.path]["get"]["parameters"]
            .as_array()
            .unwrap();
        let resolved = references.iter().map(|parameter| {
            document
                .pointer(&parameter["$ref"].as_str().unwrap()[1..])
                .unwrap()
        });
        let names: Vec<_> = resolved
            .filter(|parameter| parameter["in"] == "query")
            .map(|parameter| parameter["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, row.query_parameters, "{}", row.path);
    }
}

#[actix_web::test]
async fn a_good_request_is_answered() {
    let api = Api::new();
    for row in ROWS {
        let answer = api.get(&row.good()).await;
        let body = answer.ok();
        assert!(body.is_object());
        assert_eq!(
            body.get("project").is_some(),
            row.path != "/projects",
            "{}",
            row.path
        );
        assert_eq!(answer.header("vary"), Some("Accept-Encoding"), "{}", row.path);
        assert!(
            answer
                .header("cache-control")
                .is_some_and(|value| value.starts_with("private, no-"))
        );
        assert!(answer.header("x-request-id").is_some_and(|id| id.len() == 32));
    }
}

#[actix_web::test]
async fn every_failure_of_a_key_is_reported_before_other_errors() {
    let api = Api::new();
    let keys = &api.seed.keys;
    for (key, status, code) in [
        (None, 401, "missing_key"),
        (Some(&keys.ingest), 401, "wrong_key_type"),
        (Some(&keys.unknown), 401, "invalid_key"),
        (Some(&keys.revoked), 401, "key_revoked"),
        (Some(&keys.expired), 401, "key_expired"),
        (Some(&keys.free), 403, "tier_too_low"),
    ] {
        let header = key.map(|key| format!("Bearer {}", key.reveal()));
        let headers: Vec<_> = header
            .iter()
            .map(|value| ("Authorization", value.as_str()))
            .collect();
        for row in ROWS {
            // An invalid key precedes an invalid project, parameter, method and path.
            for path in [
                row.good(),
                row.with_project("%00") + "?days=x&page=0&filePath=%FF",
                row.good() + "/none",
            ] {
                for method in [Method::GET, Method::POST] {
                    let uri = format!("{BASE}{path}");
                    api.send(method, &uri, &headers).await.fails(status, code, &uri);
                }
            }
        }
        api.send(Method::GET, "/elsewhere", &headers)
            .await
            .fails(status, code, "/elsewhere");
    }
}

#[actix_web::test]
async fn foreign_and_missing_resources_are_the_same_bytes() {
    let api = Api::new();
    for row in ROWS.iter().filter(|row| row.path != "/projects") {
        let foreign = api.get(&row.with_project(OTHER_PROJECT)).await;
        foreign.fails(404, "project_not_found", row.path);
        let missing = api.get(&row.with_project(NO_PROJECT)).await;
        assert_eq!(foreign.body, missing.body, "{}", row.path);
        let authorization = format!("Bearer {}", api.seed.keys.other.reveal());
        let uri = format!("{BASE}{}", row.good());
        let with_other_key = api
            .send(Method::GET, &uri, &[("Authorization", &authorization)])
            .await;
        assert_eq!(
            (with_other_key.status, &with_other_key.body),
            (missing.status, &missing.body),
            "{uri}"
        );
        assert_eq!(
            format!("{:?}", foreign.headers),
            format!("{:?}", missing.headers),
            "{}",
            row.path
        );
    }
}

#[actix_web::test]
async fn an_unknown_id_in_a_path_is_not_found() {
    let api = Api::new();
    for row in ROWS {
        for part in bad_parts() {
            if row.path != "/projects" {
                let path = row.with_project(&part);
                api.get(&path).await.fails(404, "project_not_found", &path);
            }
            if let (Some(path), Some(code)) = (row.with_last(&part), row.not_found) {
                api.get(&path).await.fails(404, code, &path);
            }
        }
    }
    let path = format!("/projects/{PROJECT}/runs/{NO_RUN}/tests/%00");
    api.get(&path).await.fails(404, "run_not_found", &path);
}

#[actix_web::test]
async fn a_bad_parameter_is_refused_by_the_routes_that_take_it_and_by_no_other() {
    let api = Api::new();
    let every = ROWS.iter().flat_map(|row| row.query_parameters).copied();
    for name in every.collect::<std::collections::BTreeSet<_>>() {
        let code = if name == "days" {
            "invalid_period"
        } else {
            "invalid_parameter"
        };
        for bad in [
            "=%00",
            "=%FF",
            "=%zz",
            "=1&x=1&NAME=1",
            &format!("={}", "y".repeat(9_000)),
        ] {
            // Any text is a valid file name, at any length.
            if name == "filePath" && bad.len() > 1_000 {
                continue;
            }
            for row in ROWS {
                let path = format!("{}?{name}{}", row.good(), bad.replace("NAME", name));
                let answer = api.get(&path).await;
                // A list takes either name for the number of its entries.
                let names = match name {
                    "perPage" | "limit" => &["perPage", "limit"][..],
                    _ => &[name],
                };
                if row.query_parameters.iter().any(|own| names.contains(own)) {
                    answer.fails(400, code, &path);
                    assert!(answer.sentence().contains(name), "{path}: {}", answer.sentence());
                    // Parameters are checked before all look-ups.
                    let path = path.replace(PROJECT, NO_PROJECT);
                    api.get(&path).await.fails(400, code, &path);
                } else {
                    answer.ok();
                }
            }
        }
    }
}

#[actix_web::test]
async fn every_failure_of_the_store_is_an_internal_error_without_its_cause() {
    for (mode, status) in [
        (Mode::ReadsFail, 500),
        (Mode::AllFail, 500),
        (Mode::Unreachable, 503),
        (Mode::Panics, 500),
    ] {
        let api = Api::in_mode(mode);
        for row in ROWS {
            let answer = api.get(&row.good()).await;
            answer.fails(status, "internal_error", row.path);
            assert!(answer.header("x-request-id").is_some());
            let body = String::from_utf8(answer.body.to_vec()).unwrap();
            assert!(!body.contains("secret") && !body.contains("10.0.0.7"), "{body}");
        }
    }
}

#[actix_web::test]
async fn other_methods_are_refused_with_those_allowed() {
    let api = Api::new();
    let authorization = format!("Bearer {}", api.seed.keys.good.reveal());
    for row in ROWS {
        for method in [
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
            Method::OPTIONS,
            Method::TRACE,
        ] {
            let uri = format!("{BASE}{}", row.good());
            let answer = api.send(method, &uri, &[("Authorization", &authorization)]).await;
            answer.fails(405, "invalid_parameter", row.path);
            assert_eq!(answer.header("allow"), Some("GET, HEAD"));
        }
        let head = api
            .send(
                Method::HEAD,
                &format!("{BASE}{}", row.good()),
                &[("Authorization", &authorization)],
            )
            .await;
        assert_eq!(head.status, 200, "{}", row.path);
    }
}

#[actix_web::test]
async fn unknown_paths_are_refused() {
    let api = Api::new();
    let authorization = format!("Bearer {}", api.seed.keys.good.reveal());
    for uri in [
        "/",
        "/api/v1",
        "/api/v1/",
        "/api/v1/projects/",
        "/api/v2/projects",
        "/healthz",
        "/metrics",
        "//",
    ] {
        let answer = api
            .send(Method::GET, uri, &[("Authorization", &authorization)])
            .await;
        answer.fails(404, "invalid_parameter", uri);
    }
}
