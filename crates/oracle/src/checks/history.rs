//! `GET /projects/{projectId}/tests/{testName}`.

use serde_json::json;

use super::{Scene, refused, runs::periods};
use crate::{comparison::Comparison, http::form, oracle};

/// The history of every visible test.
pub fn history(comparison: &mut Comparison, scene: &Scene<'_>) {
    let visible = oracle::visible(scene.project, scene.organization.plan, scene.now);
    let tests = oracle::tests_of(&visible);
    for (number, (name, file)) in tests.iter().enumerate() {
        let mut periods: Vec<Option<i64>> = vec![None];
        if number % 4 == 0 {
            periods.extend(scene.periods().into_iter().map(Some));
        }
        for days in periods {
            let runs = oracle::within(scene.project, days.unwrap_or(30), scene.now);
            let mut path = scene.path(&["tests", name]);
            path.push_str(&format!(
                "?filePath={}",
                form(file.as_deref().unwrap_or_default())
            ));
            if number % 3 == 0 {
                path = scene.path(&["tests", name]) + "?";
            }
            path.push_str(&days.map(|days| format!("&days={days}")).unwrap_or_default());
            let answer = scene.get_window(comparison, &path, days.unwrap_or(30));
            comparison.matches(
                &format!("GET {path}"),
                &answer,
                &json!({
                    "project": {"id": scene.project.id, "name": scene.project.name},
                    "test": {"name": name, "filePath": file},
                    "occurrences": oracle::history(&runs, name, file.as_deref()),
                }),
            );
        }
    }
    let Some((name, _)) = tests.first() else { return };
    let base = scene.path(&["tests", name]);
    periods(comparison, scene, &base);
    for (path, code) in [
        (format!("{base}?filePath=other.ts"), "test_not_found"),
        (format!("{base}?filePath="), "test_not_found"),
        (scene.path(&["tests", "no such test"]), "test_not_found"),
    ] {
        refused(comparison, &path, &scene.client.get(&path), 404, code);
    }
    let path = format!("{base}?filePath=a&filePath=b");
    refused(
        comparison,
        &path,
        &scene.client.get(&path),
        400,
        "invalid_parameter",
    );
}
