//! The caches of keys and projects in processes: two servers over one database.

use std::{thread, time::Duration};

use assay_testkit::{ServedWorld, Server, text};

/// A change counts on every process this long after its command.
const EFFECTIVE_WITHIN: Duration = Duration::from_secs(1);

/// The status and the code of the answer of each server.
fn ask(servers: [&Server; 2], key: &str, path: &str) -> [String; 2] {
    servers.map(|server| {
        let answer = server.client().get(&format!("/api/v1{path}"), Some(key));
        let code = answer.json()["code"].as_str().unwrap_or("ok").to_owned();
        format!("{} {code}", answer.status)
    })
}

#[test]
fn a_change_of_keys_and_plans_takes_effect_on_every_process_within_a_second() {
    let world = ServedWorld::new();
    let second = Server::start_with(world.database.url(), &[("ASSAY_RATE_LIMIT", "0")]);
    let servers = [&world.server, &second];
    let new_key = |org: &str| text(&world.cli.json(&["key", "create", "--org", org, "--days", "30"])["key"]);
    world.cli.json(&["org", "create", "Bakery", "--plan", "standard"]);
    let (own, of_another) = (new_key("Shop"), new_key("Bakery"));
    let revoke = ["key", "revoke", world.key_id.as_str()];
    for (command, key, before, after) in [
        (&revoke[..], &world.key, "200 ok", "401 key_revoked"),
        (
            &["org", "set-plan", "Shop", "free"],
            &own,
            "200 ok",
            "403 tier_too_low",
        ),
        (
            &["org", "set-plan", "Shop", "pro"],
            &own,
            "403 tier_too_low",
            "200 ok",
        ),
    ] {
        assert_eq!(ask(servers, key, "/projects"), [before; 2], "{command:?}");
        world.cli.json(command);
        thread::sleep(EFFECTIVE_WITHIN);
        assert_eq!(ask(servers, key, "/projects"), [after; 2], "{command:?}");
        assert_eq!(
            ask(servers, &of_another, "/projects"),
            ["200 ok"; 2],
            "{command:?}"
        );
    }
    // What is new works at once.
    let project = text(&world.cli.json(&["project", "create", "--org", "Shop", "api"])["id"]);
    let path = format!("/projects/{project}/settings");
    assert_eq!(ask(servers, &new_key("Shop"), &path), ["200 ok"; 2]);
}
