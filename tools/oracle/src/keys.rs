//! Access: every refusal, their order, and the delay of changes.

use crate::{
    checks::{good, refused},
    comparison::Comparison,
    hostile,
    http::{self, Client, Response, escape},
    stack::Stack,
    world::Organization,
};

/// A path of each route, with absent ids below the project.
pub fn routes(project: &str) -> Vec<String> {
    let project = escape(project);
    let absent = "01920000-0000-7000-8000-000000000000";
    let paths = hostile::routes().into_iter().map(|route| {
        route
            .path
            .replace("{projectId}", &project)
            .replace("{runId}", absent)
            .replace("{commitSha}", "c0ffee")
            .replace("{testName}", "a%2Fb")
            .replace("{fingerprint}", &"0".repeat(32))
    });
    paths.collect()
}

/// Checks every refusal. `standard` and `foreign` have runs, `free` has none.
pub fn keys(
    comparison: &mut Comparison,
    stack: &Stack,
    standard: &Organization,
    foreign: &Organization,
    free: &Organization,
) {
    headers(comparison, stack, standard);
    order(comparison, stack, standard, free);
    check_foreign_ids(comparison, stack, standard, foreign);
    methods(comparison, stack, standard);
}

fn get_with_authorization(stack: &Stack, path: &str, authorization: Option<&[u8]>) -> Response {
    let head: Vec<(&str, &[u8])> = authorization
        .map(|value| ("Authorization", value))
        .into_iter()
        .collect();
    http::ask(stack.address(), "GET", path.as_bytes(), &head).unwrap_or_else(|| panic!("no answer to {path}"))
}

/// A 401 with its challenge.
pub fn unauthorized(comparison: &mut Comparison, path: &str, answer: &Response, code: &str) {
    refused(comparison, path, answer, 401, code);
    comparison.same(
        &format!("GET {path}: www-authenticate"),
        &answer.header("www-authenticate"),
        &Some("Bearer"),
    );
}

fn headers(comparison: &mut Comparison, stack: &Stack, organization: &Organization) {
    let key = &organization.key;
    let project = &organization.projects[0];
    let ingest = stack.run_json(&["key", "create-ingest", "--project", &project.id]);
    let ingest = ingest["key"].as_str().unwrap_or_default().to_owned();
    comparison.holds(
        ingest.starts_with("svc_") && !ingest.starts_with("svc_ro_"),
        || format!("the ingest key {ingest:?}"),
    );
    comparison.holds(
        key.starts_with("svc_ro_") && key.len() == "svc_ro_".len() + 38,
        || "the read key's shape".to_owned(),
    );
    let last = if key.ends_with('a') { 'b' } else { 'a' };
    let wrong_check = format!("{}{last}", &key[..key.len() - 1]);
    let cases: Vec<(Option<Vec<u8>>, &str)> = vec![
        (None, "missing_key"),
        (Some(b"".to_vec()), "missing_key"),
        (Some(b"Basic dXNlcjpwYXNz".to_vec()), "missing_key"),
        (Some(key.clone().into_bytes()), "missing_key"),
        (Some(b"Bearer".to_vec()), "missing_key"),
        (Some(b"Bearer ".to_vec()), "missing_key"),
        (Some(format!("Token {key}").into_bytes()), "missing_key"),
        (Some(format!("Bearer {ingest}").into_bytes()), "wrong_key_type"),
        (Some(b"Bearer svc_x".to_vec()), "wrong_key_type"),
        (Some(b"Bearer svc_".to_vec()), "wrong_key_type"),
        (Some(b"Bearer svc_ro_".to_vec()), "invalid_key"),
        (Some(b"Bearer x".to_vec()), "invalid_key"),
        (Some(b"Bearer \xff\xfe".to_vec()), "invalid_key"),
        (Some("Bearer schlüssel".as_bytes().to_vec()), "invalid_key"),
        (
            Some(format!("Bearer {}", &key[..key.len() - 1]).into_bytes()),
            "invalid_key",
        ),
        (Some(format!("Bearer {key}x").into_bytes()), "invalid_key"),
        (Some(format!("Bearer {wrong_check}").into_bytes()), "invalid_key"),
        (
            Some(format!("Bearer {}", key.to_uppercase()).into_bytes()),
            "invalid_key",
        ),
        (
            Some(format!("Bearer svc_ro_{}", "a".repeat(38)).into_bytes()),
            "invalid_key",
        ),
        (
            Some(format!("Bearer svc_ro_{}", "a".repeat(4_000)).into_bytes()),
            "invalid_key",
        ),
    ];
    for path in routes(&project.id) {
        for (authorization, code) in &cases {
            unauthorized(
                comparison,
                &format!("{path} ({authorization:?})"),
                &get_with_authorization(stack, &path, authorization.as_deref()),
                code,
            );
        }
    }
    for scheme in ["Bearer", "bearer", "BEARER", "bEaReR"] {
        let answer = get_with_authorization(stack, "/projects", Some(format!("{scheme} {key}").as_bytes()));
        good(comparison, &format!("/projects ({scheme})"), &answer);
        comparison.holds(answer.header("service-key-expires-at").is_none(), || {
            "90 days are left: no expiry header".to_owned()
        });
    }
}

/// The key is checked before the plan, the plan before the route, the route before its parameters, these before any
/// look-up.
fn order(comparison: &mut Comparison, stack: &Stack, standard: &Organization, free: &Organization) {
    for path in ["/nonsense", "/projects/x/runs?days=8", "/projects/x", "/", ""] {
        unauthorized(
            comparison,
            path,
            &get_with_authorization(stack, path, None),
            "missing_key",
        );
        let answer = Client::new(stack.address(), &free.key).get(path);
        refused(comparison, path, &answer, 403, "tier_too_low");
    }
    let client = Client::new(stack.address(), &standard.key);
    for path in [
        "/nonsense",
        "/projects/x/nonsense",
        "/projects/x/runs/y/z",
        "/projects/x/tests/y/z",
        "/",
        "",
    ] {
        refused(comparison, path, &client.get(path), 404, "invalid_parameter");
    }
    for path in routes("x") {
        if path == "/projects" {
            continue;
        }
        refused(comparison, &path, &client.get(&path), 404, "project_not_found");
        if path.contains("/tests/") {
            let path = format!("{path}?filePath=a&filePath=b");
            refused(comparison, &path, &client.get(&path), 400, "invalid_parameter");
        }
    }
    for path in [
        "/projects/x/runs?days=8",
        "/projects/x/errors?days=8",
        "/projects/x/tests/t?days=90",
        "/projects/x/errors/f?days=x",
    ] {
        refused(comparison, path, &client.get(path), 400, "invalid_period");
    }
    refused(
        comparison,
        "/projects/x/flaky?page=0",
        &client.get("/projects/x/flaky?page=0"),
        400,
        "invalid_parameter",
    );
}

/// Ids of another organization get the same answers, byte for byte, as ids that never existed.
fn check_foreign_ids(
    comparison: &mut Comparison,
    stack: &Stack,
    standard: &Organization,
    foreign: &Organization,
) {
    let client = Client::new(stack.address(), &standard.key);
    let absent = "01920000-0000-7000-8000-000000000000";
    let foreign_project = &foreign.projects[0];
    for (absent_path, foreign_path) in routes(absent).iter().zip(routes(&foreign_project.id)) {
        if absent_path == "/projects" {
            continue;
        }
        let (first, second) = (client.get(absent_path), client.get(&foreign_path));
        refused(comparison, absent_path, &first, 404, "project_not_found");
        comparison.holds(first.apart_from_date() == second.apart_from_date(), || {
            format!(
                "GET {foreign_path} differs from {absent_path}: {} {}",
                second.summary(),
                first.summary()
            )
        });
    }
    let project_id = escape(&standard.projects[0].id);
    let run = &foreign_project.runs[0];
    let test = escape(&run.tests()[0].name);
    for (absent_path, foreign_path) in [
        (
            format!("/projects/{project_id}/runs/{absent}"),
            format!("/projects/{project_id}/runs/{}", run.id),
        ),
        (
            format!("/projects/{project_id}/runs/{absent}/tests/{test}"),
            format!("/projects/{project_id}/runs/{}/tests/{test}", run.id),
        ),
    ] {
        let (first, second) = (client.get(&absent_path), client.get(&foreign_path));
        refused(comparison, &absent_path, &first, 404, "run_not_found");
        comparison.holds(first.apart_from_date() == second.apart_from_date(), || {
            format!(
                "GET {foreign_path} differs from {absent_path}: {} {}",
                second.summary(),
                first.summary()
            )
        });
    }
    // A run of a sibling project does not exist in this one either.
    if let Some(run) = standard.projects.get(1).and_then(|project| project.runs.first()) {
        let path = format!("/projects/{project_id}/runs/{}", run.id);
        refused(comparison, &path, &client.get(&path), 404, "run_not_found");
    }
}

fn methods(comparison: &mut Comparison, stack: &Stack, organization: &Organization) {
    let client = Client::new(stack.address(), &organization.key);
    for path in routes(&organization.projects[0].id) {
        for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
            let answer = client.ask(method, &path, &[("Content-Length", "0")]);
            refused(
                comparison,
                &format!("{path} ({method})"),
                &answer,
                405,
                "invalid_parameter",
            );
            let allowed = answer.header("allow").unwrap_or_default().replace(' ', "");
            comparison.same(&format!("{method} {path}: allow"), &allowed.as_str(), &"GET,HEAD");
            let answer = http::ask(stack.address(), method, path.as_bytes(), &[]).unwrap();
            unauthorized(comparison, &format!("{path} ({method})"), &answer, "missing_key");
        }
        let (get, head) = (client.get(&path), client.ask("HEAD", &path, &[]));
        let headers = |answer: &Response| {
            ["content-length", "content-type", "cache-control", "etag", "vary"]
                .map(|name| answer.header(name).map(str::to_owned))
        };
        let is_same = get.status == head.status && headers(&get) == headers(&head);
        comparison.holds(is_same && head.body.is_empty(), || {
            format!(
                "HEAD {path}: {} with {} bytes, GET {}",
                head.status,
                head.body.len(),
                get.status
            )
        });
    }
}

/// Checks the key in `assay-admin key list` and in the log.
pub fn listing(comparison: &mut Comparison, stack: &Stack, organization: &Organization) {
    let output = stack.command(&["key", "list", "--org", &organization.id]);
    comparison.same("assay-admin key list", &output.status, &0);
    comparison.holds(!output.out.contains(&organization.key), || {
        "assay-admin key list prints a key".to_owned()
    });
    comparison.holds(output.out.contains(&organization.key[..12]), || {
        "assay-admin key list prints no prefix".to_owned()
    });
    comparison.holds(!stack.log().contains(&organization.key), || {
        "the log contains a key".to_owned()
    });
}
