//! The whole world against its oracle, project by project.

use crate::{
    analyze,
    checks::{self, Scene},
    http::Client,
    scene, scripted,
    stack::Stack,
    tally::Tally,
    world::{Organization, Plan, Way},
};

/// Compares every route of every project, the projects side by side.
pub(crate) fn compare(tally: &mut Tally, stack: &Stack, world: &[Organization], now: i64) {
    // One that knows nothing of the other projects' tests and errors.
    let empty = scene(
        stack,
        &world[0],
        world[0].projects.last().expect("the empty project is the last"),
        now,
    );
    let readers = || {
        world
            .iter()
            .filter(|organization| organization.plan != Plan::Free)
    };
    for organization in readers() {
        tally.section("projects");
        checks::projects::projects(
            tally,
            &Client::new(stack.server().address, &organization.key),
            organization,
        );
    }
    let projects = readers().flat_map(|organization| {
        let scenes = organization.projects.iter();
        scenes.map(|project| scene(stack, organization, project, now))
    });
    tally.side_by_side(projects, |tally, scene| project(tally, stack, scene, &empty));
}

fn project(tally: &mut Tally, stack: &Stack, mut scene: Scene<'_>, empty: &Scene<'_>) {
    tally.section("settings and branches");
    checks::settings(tally, &scene);
    checks::branches(tally, &scene);
    tally.section("run details");
    checks::run_detail::run_details(tally, &mut scene);
    tally.section("runs");
    checks::runs::runs(tally, &scene);
    tally.section("attempts");
    checks::attempts::attempts(tally, &scene);
    tally.section("history");
    checks::history(tally, &scene);
    tally.section("signatures");
    checks::signatures::signatures(tally, &mut scene);
    tally.section("verdicts");
    let verdicts = checks::verdicts::verdicts(tally, &scene);
    tally.section("flaky list");
    checks::flaky::flaky(tally, &scene, &verdicts);
    if scene.project.way == Way::Flags && !verdicts.is_empty() {
        tally.section("analyze");
        analyze::analyze(tally, stack, &scene, &verdicts);
    }
    tally.section("other projects");
    for print in scene.fingerprints.values() {
        let path = empty.path(&["errors", print]);
        checks::refused(tally, &path, &empty.client.get(&path), 404, "error_not_found");
    }
    for ((name, _), _) in verdicts.iter().take(5) {
        let path = empty.path(&["tests", name]);
        checks::refused(tally, &path, &empty.client.get(&path), 404, "test_not_found");
    }
    match scene.project.name.as_str() {
        "Scripted verdicts" => scripted::verdicts(tally, &scene, &verdicts),
        "Outage" => scripted::after_the_outage(tally, &verdicts),
        _ => {}
    }
}
