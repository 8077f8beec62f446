//! The programs agree with the oracle: every field of every route, over the whole world.
#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "tests end by panics")]

use assay_oracle::{
    GeneratedWorld, analyze,
    checks::{self, ProjectChecks},
    comparison::Comparison,
    http::Client,
};

/// A project without any data of the other projects' tests and errors.
fn empty(world: &GeneratedWorld) -> ProjectChecks<'_> {
    let organization = &world.organizations[0];
    let project = organization
        .projects
        .last()
        .expect("the empty project is the last");
    world.project_checks(organization, project)
}

/// The fingerprint of each error of a project, from the details of its runs.
fn record_fingerprints(comparison: &mut Comparison, checks: &mut ProjectChecks<'_>) {
    checks::run_detail::run_details(comparison, checks);
}

#[test]
fn projects() {
    GeneratedWorld::whole().check("projects", |comparison, world| {
        for organization in &world.organizations {
            let client = Client::new(world.stack.address(), &organization.key);
            checks::projects::projects(comparison, &client, organization);
        }
    });
}

#[test]
fn settings_and_branches() {
    GeneratedWorld::whole().check("settings and branches", |comparison, world| {
        world.each_project(comparison, |comparison, checks| {
            checks::settings(comparison, checks);
            checks::branches(comparison, checks);
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
        world.each_project(comparison, |comparison, checks| {
            checks::runs::runs(comparison, checks)
        });
    });
}

#[test]
fn attempts() {
    GeneratedWorld::whole().check("attempts", |comparison, world| {
        world.each_project(comparison, |comparison, checks| {
            record_fingerprints(comparison, checks);
            checks::attempts::attempts(comparison, checks);
        });
    });
}

#[test]
fn history() {
    GeneratedWorld::whole().check("history", |comparison, world| {
        world.each_project(comparison, |comparison, checks| {
            record_fingerprints(comparison, checks);
            checks::history(comparison, checks);
        });
    });
}

#[test]
fn error_signatures() {
    GeneratedWorld::whole().check("signatures", |comparison, world| {
        let empty = empty(world);
        world.each_project(comparison, |comparison, checks| {
            record_fingerprints(comparison, checks);
            checks::signatures::signatures(comparison, checks);
            for print in checks.fingerprints.values() {
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
fn health() {
    GeneratedWorld::whole().check("health", |comparison, world| {
        world.each_project(comparison, |comparison, checks| {
            checks::health::health(comparison, &world.stack, checks);
        });
    });
}

#[test]
fn verdicts_and_the_flaky_list() {
    GeneratedWorld::whole().check("verdicts", |comparison, world| {
        let empty = empty(world);
        world.each_project(comparison, |comparison, checks| {
            let verdicts = checks::verdicts::verdicts(comparison, checks);
            comparison.section("flaky list");
            checks::flaky::flaky(comparison, checks, &verdicts);
            comparison.section("releases");
            checks::releases::releases(comparison, checks, &verdicts);
            comparison.section("tests");
            checks::test_list::test_list(comparison, checks, &verdicts);
            comparison.section("analyze");
            analyze::analyze(comparison, &world.stack, checks, &verdicts);
            comparison.section("other projects");
            for ((name, _), _) in verdicts.iter().take(5) {
                let path = empty.path(&["tests", name]);
                checks::refused(comparison, &path, &empty.client.get(&path), 404, "test_not_found");
            }
        });
    });
}
