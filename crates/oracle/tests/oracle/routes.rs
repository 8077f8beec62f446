//! Every field of every route, over the whole world.

use assay_oracle::{
    GeneratedWorld, analyze,
    checks::{self, Scene},
    comparison::Comparison,
    http::Client,
    scripted,
    world::{Plan, Way},
};

/// A project without any data of the other projects' tests and errors.
fn empty(world: &GeneratedWorld) -> Scene<'_> {
    let organization = &world.organizations[0];
    let project = organization
        .projects
        .last()
        .expect("the empty project is the last");
    world.scene(organization, project)
}

/// The fingerprint of each error of a project, from the details of its runs.
fn record_fingerprints(comparison: &mut Comparison, scene: &mut Scene<'_>) {
    checks::run_detail::run_details(comparison, scene);
}

#[test]
fn projects() {
    GeneratedWorld::whole().check("projects", |comparison, world| {
        for organization in world.organizations.iter().filter(|one| one.plan != Plan::Free) {
            let client = Client::new(world.stack.address(), &organization.key);
            checks::projects::projects(comparison, &client, organization);
        }
    });
}

#[test]
fn settings_and_branches() {
    GeneratedWorld::whole().check("settings and branches", |comparison, world| {
        world.each_project(comparison, |comparison, scene| {
            checks::settings(comparison, scene);
            checks::branches(comparison, scene);
        });
    });
}

#[test]
fn run_details() {
    GeneratedWorld::whole().check("run details", |comparison, world| {
        world.each_project(comparison, record_fingerprints)
    });
}

#[test]
fn runs() {
    GeneratedWorld::whole().check("runs", |comparison, world| {
        world.each_project(comparison, |comparison, scene| {
            checks::runs::runs(comparison, scene)
        });
    });
}

#[test]
fn attempts() {
    GeneratedWorld::whole().check("attempts", |comparison, world| {
        world.each_project(comparison, |comparison, scene| {
            record_fingerprints(comparison, scene);
            checks::attempts::attempts(comparison, scene);
        });
    });
}

#[test]
fn history() {
    GeneratedWorld::whole().check("history", |comparison, world| {
        world.each_project(comparison, |comparison, scene| {
            record_fingerprints(comparison, scene);
            checks::history(comparison, scene);
        });
    });
}

#[test]
fn error_signatures() {
    GeneratedWorld::whole().check("signatures", |comparison, world| {
        let empty = empty(world);
        world.each_project(comparison, |comparison, scene| {
            record_fingerprints(comparison, scene);
            checks::signatures::signatures(comparison, scene);
            for print in scene.fingerprints.values() {
                let path = empty.path(&["errors", print]);
                checks::refused(
                    comparison,
                    &path,
                    &empty.client.get(&path),
                    404,
                    "error_not_found",
                );
            }
        });
    });
}

#[test]
fn verdicts_and_the_flaky_list() {
    GeneratedWorld::whole().check("verdicts", |comparison, world| {
        let empty = empty(world);
        world.each_project(comparison, |comparison, scene| {
            let verdicts = checks::verdicts::verdicts(comparison, scene);
            comparison.section("flaky list");
            checks::flaky::flaky(comparison, scene, &verdicts);
            if scene.project.way == Way::Flags && !verdicts.is_empty() {
                comparison.section("analyze");
                analyze::analyze(comparison, &world.stack, scene, &verdicts);
            }
            comparison.section("other projects");
            for ((name, _), _) in verdicts.iter().take(5) {
                let path = empty.path(&["tests", name]);
                checks::refused(comparison, &path, &empty.client.get(&path), 404, "test_not_found");
            }
            comparison.section("scripted verdicts");
            match scene.project.name.as_str() {
                "Scripted verdicts" => scripted::verdicts(comparison, scene, &verdicts),
                "Outage" => scripted::after_the_outage(comparison, &verdicts),
                _ => {}
            }
        });
    });
}
