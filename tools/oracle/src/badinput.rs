//! Sends hostile text through every parameter of every route. The API must refuse it with its own errors, and never
//! with 500.

use crate::{
    checks::{ProjectChecks, refused},
    comparison::Comparison,
    hostile::{FREE, Route, codes, routes, texts},
    http::{self, Response},
    world::Run,
};

/// Runs all checks.
pub fn bad_input(comparison: &mut Comparison, checks: &ProjectChecks<'_>, run: &Run) {
    for route in &routes() {
        segments(comparison, checks, route, run);
        for parameter in &route.parameters {
            values(comparison, checks, &path_of(checks, route, run, None), parameter);
        }
        unknown(comparison, checks, &path_of(checks, route, run, None));
    }
    comparison.same("after all that", &checks.client.get("/projects").status, &200);
}

fn path_of(checks: &ProjectChecks<'_>, route: &Route, run: &Run, hostile: Option<(&str, &str)>) -> String {
    let test = run.tests().swap_remove(0);
    let mut path = String::new();
    for segment in route.path.split('/').skip(1) {
        let known = match segment {
            "{projectId}" => http::escape(&checks.project.id),
            "{runId}" => http::escape(&run.id),
            "{commitSha}" => run.commit.clone().unwrap_or_else(|| "0".to_owned()),
            "{testName}" => http::escape(&test.name),
            "{branchName}" => "main".to_owned(),
            "{fingerprint}" => checks
                .fingerprints
                .values()
                .next()
                .cloned()
                .unwrap_or_else(|| "0".to_owned()),
            fixed => fixed.to_owned(),
        };
        let value = hostile
            .filter(|(name, _)| *name == segment)
            .map_or(known.as_str(), |(_, value)| value);
        path.push('/');
        path.push_str(value);
    }
    path
}

fn segments(comparison: &mut Comparison, checks: &ProjectChecks<'_>, route: &Route, run: &Run) {
    for segment in route.path.split('/').filter(|segment| segment.starts_with('{')) {
        let code = match segment {
            "{projectId}" => "project_not_found",
            "{runId}" => "run_not_found",
            "{commitSha}" => "commit_not_found",
            "{testName}" => "test_not_found",
            "{branchName}" => "branch_not_found",
            _ => "error_not_found",
        };
        let long = "a".repeat(3_000);
        for value in texts("segments").into_iter().chain([long.as_str()]) {
            let path = path_of(checks, route, run, Some((segment, value)));
            let Some(answer) = ask(checks, &path) else {
                comparison.holds(false, || format!("GET {path}: no answer"));
                continue;
            };
            refused(comparison, &path, &answer, 404, code);
        }
        let path = path_of(checks, route, run, Some((segment, &"a".repeat(200_000))));
        let answer = ask(checks, &path);
        comparison.holds(
            answer.is_none_or(|answer| (400..500).contains(&answer.status)),
            || "a segment of 200,000 characters is no server's failure".to_owned(),
        );
        let path = path_of(checks, route, run, Some((segment, "")));
        let answer = ask(checks, &path);
        comparison.holds(answer.is_some_and(|answer| answer.status == 404), || {
            format!("GET {path}: an empty segment")
        });
    }
}

fn values(comparison: &mut Comparison, checks: &ProjectChecks<'_>, base: &str, parameter: &str) {
    let code = if parameter == "days" {
        "invalid_period"
    } else {
        "invalid_parameter"
    };
    let free = FREE.contains(&parameter);
    for value in texts("invalidValues") {
        let path = format!("{base}?{parameter}={value}");
        match ask(checks, &path) {
            Some(answer) => _ = refused(comparison, &path, &answer, 400, code),
            None => _ = comparison.holds(false, || format!("GET {path}: no answer")),
        }
    }
    for value in texts("texts") {
        let path = format!("{base}?{parameter}={value}");
        match ask(checks, &path) {
            Some(answer) if free || allowed(parameter, value) => check_form(comparison, &path, &answer),
            Some(answer) => _ = refused(comparison, &path, &answer, 400, code),
            None => _ = comparison.holds(false, || format!("GET {path}: no answer")),
        }
    }
    for twice in [
        format!("{parameter}=7&{parameter}=7"),
        format!("{parameter}=a&x=1&{parameter}=b"),
    ] {
        let path = format!("{base}?{twice}");
        if let Some(answer) = ask(checks, &path) {
            refused(comparison, &path, &answer, 400, code);
        }
    }
    for length in [201, 5_000] {
        let path = format!("{base}?{parameter}={}", "9".repeat(length));
        let Some(answer) = ask(checks, &path) else {
            continue;
        };
        // The specification does not limit page numbers. A variant may have 500 characters.
        if ["filePath", "page", "variant"].contains(&parameter) {
            check_form(comparison, &path, &answer);
        } else {
            refused(comparison, &path, &answer, 400, code);
        }
    }
    let path = format!("{base}?{parameter}={}", "%F0%9F%9B%92".repeat(40_000));
    let answer = ask(checks, &path);
    comparison.holds(answer.is_none_or(|answer| answer.status < 500), || {
        format!("{parameter} of 480,000 characters")
    });
    let path = format!("{base}?{parameter}");
    if let Some(answer) = ask(checks, &path) {
        check_form(comparison, &path, &answer);
    }
}

/// Some of the hostile values happen to be valid.
fn allowed(parameter: &str, value: &str) -> bool {
    let digits = value.len() > 3 && value.chars().all(|digit| digit.is_ascii_digit());
    match parameter {
        "explain" | "trusted" | "red" | "new" => value == "true",
        // Any page past the end gets the last page.
        "page" | "sha" => digits,
        _ => false,
    }
}

/// Unknown parameters are ignored if they are text.
fn unknown(comparison: &mut Comparison, checks: &ProjectChecks<'_>, base: &str) {
    for query in [
        "zzz=1",
        "zzz=1&zzz=2",
        "zzz",
        "",
        "&",
        "&&a=b&",
        "=",
        "Days=8",
        "DAYS=x",
    ] {
        let path = format!("{base}?{query}");
        let answer = ask(checks, &path);
        comparison.holds(answer.as_ref().is_some_and(|answer| answer.status == 200), || {
            format!(
                "GET {path}: an unknown parameter is ignored, got {:?}",
                answer.map(|a| a.status)
            )
        });
    }
    for query in [
        "zzz=%00", "zzz=%FF", "%FF=1", "%00=%00", "%zz=%zz", "a[]=1", "a;b;c",
    ] {
        let path = format!("{base}?{query}");
        if let Some(answer) = ask(checks, &path) {
            check_form(comparison, &path, &answer);
        }
    }
}

fn ask(checks: &ProjectChecks<'_>, path: &str) -> Option<Response> {
    let key = format!("Bearer {}", checks.organization.key);
    http::ask(
        checks.client.address(),
        "GET",
        path.as_bytes(),
        &[("Authorization", key.as_bytes())],
    )
}

/// Any answer in the API's own form.
fn check_form(comparison: &mut Comparison, path: &str, answer: &Response) {
    let path: String = path.chars().take(160).collect();
    comparison.holds(answer.status < 500, || format!("GET {path}: {}", answer.status));
    let code = answer.code();
    comparison.holds(answer.status == 200 || codes().contains(&code.as_str()), || {
        format!("GET {path}: {} {code:?}", answer.status)
    });
}
