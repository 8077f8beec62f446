//! Mistyped names and ids, and empty lists.

use assay_testkit::{Cli, TestDatabase, World, assert_contains, stderr_text, text};

#[test]
fn a_name_that_is_nearly_right_is_suggested() {
    let world = World::without_key();
    world.cli.json(&["org", "create", "Example Shop"]);
    world
        .cli
        .json(&["project", "create", "--org", "Shop", "storefront"]);
    for (arguments, meant) in [
        (&["project", "list", "--org", "shp"][..], "\"Shop\""),
        (&["project", "list", "--org", "example-shop"], "\"Example Shop\""),
        (&["project", "set", "stroefront", "--no-chat"], "\"storefront\""),
        (&["key", "create-ingest", "--project", "webb"], "\"web\""),
    ] {
        let refused = world.cli.run(arguments);
        assert_eq!(refused.status.code(), Some(1), "{arguments:?}");
        let stderr = stderr_text(&refused);
        assert!(
            stderr.contains(&format!("did you mean {meant}?")),
            "{arguments:?}: {stderr}"
        );
    }
    let refused = stderr_text(&world.cli.run(&["project", "list", "--org", "payments"]));
    assert!(
        !refused.contains("did you mean") && refused.contains("assay-admin org list"),
        "{refused}"
    );
}

#[test]
fn an_id_with_a_slip_is_suggested() {
    let world = World::without_key();
    let id = text(
        &world
            .cli
            .json(&["key", "create", "--org", "Shop", "--days", "30"])["id"],
    );
    let last = if id.ends_with('0') { "1" } else { "0" };
    let slip = format!("{}{last}", &id[..id.len() - 1]);
    let refused = world.cli.run(&["key", "revoke", &slip]);
    assert_eq!(refused.status.code(), Some(1));
    assert_contains(&stderr_text(&refused), &format!("did you mean {id}?"));
    assert!(world.cli.json(&["key", "list"])["keys"][0]["revokedAt"].is_null());
}

#[test]
fn words_of_the_command_line_are_suggested() {
    let cli = Cli::new("postgresql:///nowhere");
    for (arguments, meant) in [
        (&["improt"][..], "'import'"),
        (&["org", "creat", "x"], "'create'"),
        (&["org", "create", "x", "--plan", "standrd"], "'standard'"),
        (&["import", "--projct", "p", "x.xml"], "'--project'"),
        (
            &["import", "--project", "p", "--ci", "github-action", "x.xml"],
            "'github-actions'",
        ),
        (&["analyze", "--format", "playwrigth", "x"], "'playwright'"),
        (
            &["project", "set", "p", "--chat-events", "run_faild"],
            "'run_failed'",
        ),
    ] {
        let refused = cli.run(arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(
            stderr_text(&refused).contains(meant),
            "{arguments:?}: {}",
            stderr_text(&refused)
        );
    }
}

#[test]
fn an_empty_list_shows_what_to_do_next() {
    let database = TestDatabase::new();
    let cli = Cli::new(database.url());
    for (arguments, next) in [
        (&["org", "list"][..], "assay-admin org create NAME"),
        (&["project", "list"], "assay-admin project create --org ORG NAME"),
        (&["key", "list"], "assay-admin key create --org ORG --days 90"),
    ] {
        let shown = cli.run(arguments);
        assert!(shown.status.success());
        let shown = String::from_utf8(shown.stdout).unwrap();
        assert!(shown.contains(next), "{arguments:?}: {shown}");
    }
    let refused = stderr_text(&cli.run(&["key", "create", "--org", "Shop", "--days", "30"]));
    assert_contains(&refused, "assay-admin org create");
}

#[test]
fn lists_without_an_organization_show_all() {
    let world = World::without_key();
    world.cli.json(&["org", "create", "Other", "--plan", "pro"]);
    world
        .cli
        .json(&["project", "create", "--org", "Other", "backend"]);
    world
        .cli
        .json(&["key", "create", "--org", "Other", "--days", "30"]);
    world.cli.json(&["key", "create-ingest", "--project", "web"]);
    assert_eq!(
        world.cli.json(&["project", "list"])["projects"]
            .as_array()
            .map(Vec::len),
        Some(2)
    );
    assert_eq!(
        world.cli.json(&["project", "list", "--org", "Other"])["projects"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
    let keys = String::from_utf8(world.cli.run(&["key", "list"]).stdout).unwrap();
    assert!(
        keys.contains("sending to web") && keys.contains("in 30 d"),
        "{keys}"
    );
}
