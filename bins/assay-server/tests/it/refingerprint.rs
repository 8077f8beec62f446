//! `assay-admin refingerprint` after the algorithm changed.

use assay_testkit::{ServedWorld, TestDatabase, text};
use serde_json::json;

/// A fingerprint in the form of an earlier version of the algorithm.
const OLD: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn a_former_fingerprint_is_found_after_errors_were_regrouped() {
    let world = ServedWorld::new();
    world.import_cases(30, &[("adds", false)], &["--branch", "main"]);
    world.import_cases(20, &[("adds", false), ("sums", false)], &["--branch", "main"]);
    let detail = |fingerprint: &str| world.ask(&format!("/projects/{}/errors/{fingerprint}", world.project));
    let present = text(&world.get("/errors")["errors"][0]["fingerprint"]);
    let before = detail(&present).json();
    age(&world.database, &present);
    assert_eq!(detail(&present).status, 404);
    assert_eq!(detail(OLD).json()["signature"]["fingerprint"], OLD);

    let done = world.cli.json(&["refingerprint", "--project", "web"]);
    assert!(done["algorithm"].as_u64() > Some(0), "{done}");
    assert_eq!(
        done["projects"],
        json!([{
            "projectId": world.project,
            "project": "web",
            "result": {"attempts": 3, "changed": 3, "signaturesBefore": 1, "signaturesAfter": 1, "renamed": 1},
        }])
    );
    assert_eq!(detail(&present).json()["signature"], before["signature"]);
    assert_eq!(detail(OLD).json()["signature"], before["signature"]);

    let again = world.cli.json(&["refingerprint"]);
    assert_eq!(
        again["projects"][0]["result"],
        json!({"attempts": 3, "changed": 0, "signaturesBefore": 1, "signaturesAfter": 1, "renamed": 0})
    );
    assert_eq!(detail(OLD).json()["signature"]["fingerprint"], present.as_str());
}

#[test]
fn regrouping_an_absent_project_is_refused() {
    let world = ServedWorld::new();
    let output = world.cli.run(&["refingerprint", "--project", "gone", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("gone"));
    let output = world.cli.run(&["refingerprint", "--no-such-flag"]);
    assert_eq!(output.status.code(), Some(2));
}

/// Changes a signature to that of an earlier version. Like every change of a project, it changes the project's state.
fn age(database: &TestDatabase, fingerprint: &str) {
    database.execute(&format!(
        "UPDATE signature SET fingerprint = '{OLD}', version = 0, title = 'old' WHERE fingerprint = '{fingerprint}'; \
         UPDATE project SET observed = gen_random_uuid()"
    ));
}
