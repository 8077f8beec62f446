//! `GET /projects/{projectId}/tests/{testName}`.

use serde_json::json;

use super::ProjectChecks;
use crate::{comparison::Comparison, http::form, oracle};

/// The history of every visible test.
pub fn history(comparison: &mut Comparison, checks: &ProjectChecks<'_>) {
    let visible = oracle::visible(checks.project, checks.organization.plan, checks.now);
    let tests = oracle::tests_of(&visible);
    for (number, (name, file)) in tests.iter().enumerate() {
        let mut periods: Vec<Option<i64>> = vec![None];
        if number % 4 == 0 {
            periods.extend(checks.periods().into_iter().map(Some));
        }
        for days in periods {
            let runs = oracle::within(checks.project, days.unwrap_or(30), checks.now);
            let mut path = checks.path(&["tests", name]);
            path.push_str(&format!(
                "?filePath={}",
                form(file.as_deref().unwrap_or_default())
            ));
            if number % 3 == 0 {
                path = checks.path(&["tests", name]) + "?";
            }
            path.push_str(&days.map(|days| format!("&days={days}")).unwrap_or_default());
            let answer = checks.get_window(comparison, &path, days.unwrap_or(30));
            comparison.matches(
                &format!("GET {path}"),
                &answer,
                &json!({
                    "project": {"id": checks.project.id, "name": checks.project.name},
                    "test": {"name": name, "filePath": file},
                    "occurrences": oracle::history(&runs, name, file.as_deref()),
                }),
            );
        }
    }
}
