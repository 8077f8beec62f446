//! `GET /projects`.

use serde_json::{Value, json};

use super::good;
use crate::{
    comparison::{Comparison, TIME},
    http::Client,
    world::Organization,
};

/// Every project of the organization, oldest first.
pub fn projects(comparison: &mut Comparison, client: &Client, organization: &Organization) {
    for path in ["/projects", "/projects?unknown=1&unknown=2"] {
        let answer = client.get(path);
        good(comparison, path, &answer);
        let expected: Vec<Value> = organization
            .projects
            .iter()
            .map(|project| {
                json!({
                    "id": project.id,
                    "name": project.name,
                    "stableBranch": project.stable,
                    "createdAt": TIME,
                })
            })
            .collect();
        comparison.matches(
            "GET /projects",
            &answer.json_or_null(),
            &json!({"projects": expected}),
        );
        comparison.holds(answer.json_or_null().get("project").is_none(), || {
            "GET /projects names no project".to_owned()
        });
    }
}
