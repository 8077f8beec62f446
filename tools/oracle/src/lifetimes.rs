//! The delay of a revocation, an expiry and a new plan.

use std::{thread::sleep, time::Duration};

use crate::{
    checks::{good, refused},
    clock::{self, DAY},
    comparison::Comparison,
    http::{Client, escape},
    keys::{routes, unauthorized},
    stack::Stack,
    world::{Organization, Plan},
};

/// Revoked keys, and the lifetimes of keys.
pub fn revocation(comparison: &mut Comparison, stack: &Stack, organization: &Organization) {
    for days in ["30", "60", "90", "180"] {
        let key_json = stack.run_json(&["key", "create", "--org", &organization.id, "--days", days]);
        let key = key_json["key"].as_str().unwrap().to_owned();
        let client = Client::new(stack.address(), &key);
        good(comparison, "/projects", &client.get("/projects"));
        let lifetime: i64 = days.parse().unwrap();
        let expires = key_json["expiresAt"]
            .as_str()
            .and_then(clock::parse)
            .unwrap_or_default();
        comparison.holds((expires - clock::now() - lifetime * DAY).abs() < 60_000, || {
            format!("a key of {days} days: {key_json}")
        });
        if days == "30" || days == "180" {
            let output = stack.command(&["key", "revoke", key_json["id"].as_str().unwrap()]);
            comparison.same("assay-admin key revoke", &output.status, &0);
            sleep(Duration::from_millis(1_000));
            unauthorized(
                comparison,
                "/projects (revoked)",
                &client.get("/projects"),
                "key_revoked",
            );
            unauthorized(
                comparison,
                "/nonsense (revoked)",
                &client.get("/nonsense"),
                "key_revoked",
            );
        }
    }
    for days in ["31", "0", "365", "x"] {
        let output = stack.command(&["key", "create", "--org", &organization.id, "--days", days]);
        comparison.same(
            &format!("assay-admin key create --days {days}"),
            &output.status,
            &2,
        );
    }
}

/// A plan takes effect within a second.
pub fn plans(comparison: &mut Comparison, stack: &Stack, free: &Organization) {
    let client = Client::new(stack.address(), &free.key);
    let project = free.projects.first().map_or("x", |project| project.id.as_str());
    for path in routes(project) {
        refused(comparison, &path, &client.get(&path), 403, "tier_too_low");
    }
    for (plan, status) in [(Plan::Standard, 200), (Plan::Pro, 200), (Plan::Free, 403)] {
        stack.run_json(&["org", "set-plan", &free.id, plan.name()]);
        sleep(Duration::from_millis(1_000));
        comparison.same(
            &format!("GET /projects under {plan:?}"),
            &client.get("/projects").status,
            &status,
        );
    }
}

/// The last days of a key. No command can set them, so the test writes to the database.
pub fn expiry(comparison: &mut Comparison, stack: &Stack, organization: &Organization) {
    let key_json = stack.run_json(&["key", "create", "--org", &organization.id, "--days", "30"]);
    let key = key_json["key"].as_str().unwrap().to_owned();
    let client = Client::new(stack.address(), &key);
    let settings = format!("/projects/{}/settings", escape(&organization.projects[0].id));
    let table = stack.database().text(
        "select table_schema || '.' || table_name from information_schema.columns where column_name = 'expires_at' limit 1",
    );
    let Some(table) = table.filter(|table| !table.is_empty()) else {
        comparison.holds(false, || "no table with keys that expire was found".to_owned());
        return;
    };
    for (left, header) in [
        ("8 days", false),
        ("7 days 1 hour", false),
        ("6 days 23 hours", true),
        ("1 minute", true),
        ("-1 second", false),
    ] {
        let id = key_json["id"].as_str().unwrap();
        let of_key = format!("{table} k where to_jsonb(k)::text like '%{id}%'");
        let done = stack.database().text(&format!("select count(*) from {of_key}"));
        stack.database().execute(&format!(
            "update {table} k set expires_at = now() + interval '{left}' where to_jsonb(k)::text like '%{id}%'"
        ));
        comparison.holds(done.as_deref() == Some("1"), || {
            format!("the key {id} is not in {table}")
        });
        sleep(Duration::from_millis(1_000));
        let answer = client.get(&settings);
        if left.starts_with('-') {
            unauthorized(comparison, "/settings (expired)", &answer, "key_expired");
            let revoked = stack.command(&["key", "revoke", id]);
            comparison.same("assay-admin key revoke", &revoked.status, &0);
            sleep(Duration::from_millis(1_000));
            unauthorized(
                comparison,
                "/settings (expired and revoked)",
                &client.get(&settings),
                "key_revoked",
            );
            continue;
        }
        good(comparison, &settings, &answer);
        let expiry = answer.header("service-key-expires-at");
        comparison.holds(expiry.is_some() == header, || {
            format!("{left} before its end: the header is {expiry:?}")
        });
        if let Some(expiry) = expiry {
            comparison.holds(clock::parse(expiry).is_some(), || {
                format!("the header {expiry:?} is no time")
            });
            refused(
                comparison,
                "/projects/x/runs",
                &client.get("/projects/x/runs"),
                404,
                "project_not_found",
            );
            let tag = answer.header("etag").unwrap_or_default().to_owned();
            let same = client.ask("GET", &settings, &[("If-None-Match", &tag)]);
            comparison.holds(
                same.status == 304 && same.header("service-key-expires-at").is_some(),
                || format!("304 near the end: {same:?}"),
            );
        }
    }
}
