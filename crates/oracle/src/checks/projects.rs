//! `GET /projects`.

use serde_json::{Value, json};

use super::good;
use crate::{
    http::Client,
    tally::{TIME, Tally},
    world::Organization,
};

/// Every project of the organization, oldest first.
pub fn projects(tally: &mut Tally, client: &Client, organization: &Organization) {
    for path in ["/projects", "/projects?unknown=1&unknown=2"] {
        let answer = client.get(path);
        good(tally, path, &answer);
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
        tally.matches(
            "GET /projects",
            &answer.json_or_null(),
            &json!({"projects": expected}),
        );
        tally.that(answer.json_or_null().get("project").is_none(), || {
            "GET /projects names no project".to_owned()
        });
    }
}
