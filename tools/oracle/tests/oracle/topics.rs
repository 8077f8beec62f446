//! Keys, limits, all ways of importing, and changes of visibility.

use assay_oracle::{
    GeneratedWorld, badinput, caching, checks, commands, keys, lifetimes, limit, names, oracle, paging,
    providers, retention, shards,
};

#[test]
fn bad_input() {
    GeneratedWorld::newest().check("bad input", |comparison, world| {
        let organization = &world.organizations[0];
        let mut checks = world.project_checks(organization, &organization.projects[0]);
        let run = oracle::visible(checks.project, organization.plan, world.now)[0].clone();
        checks::run_detail::run_detail(comparison, &mut checks, &run);
        badinput::bad_input(comparison, &checks, &run);
    });
}

#[test]
fn keys_and_their_refusals() {
    GeneratedWorld::newest().check("keys", |comparison, world| {
        let [standard, foreign, free] = &world.organizations[..] else {
            panic!("three organizations");
        };
        keys::keys(comparison, &world.stack, standard, foreign, free);
    });
}

#[test]
fn lifetimes_of_keys_and_plans() {
    GeneratedWorld::newest().check("lifetimes", |comparison, world| {
        lifetimes::revocation(comparison, &world.stack, &world.organizations[0]);
        lifetimes::plans(comparison, &world.stack, &world.organizations[2]);
        lifetimes::expiry(comparison, &world.stack, &world.organizations[0]);
        keys::listing(comparison, &world.stack, &world.organizations[0]);
    });
}

#[test]
fn entity_tags_and_codings() {
    GeneratedWorld::newest().check("caching", |comparison, world| {
        caching::caching(comparison, &world.stack, &world.organizations[0]);
    });
}

#[test]
fn the_limit_of_requests() {
    GeneratedWorld::newest().check("limit", |comparison, world| {
        limit::limit(
            comparison,
            &world.stack,
            &world.organizations[0].key,
            &world.organizations[1].key,
        );
    });
}

#[test]
fn shards_in_any_order() {
    GeneratedWorld::newest().check("shards", |comparison, world| {
        shards::shards(comparison, &world.stack, &world.organizations[0], world.now);
    });
}

#[test]
fn ci_services() {
    GeneratedWorld::newest().check("providers", |comparison, world| {
        providers::providers(comparison, &world.stack, &world.organizations[0], world.now);
    });
}

#[test]
fn names_of_tests() {
    GeneratedWorld::newest().check("names", |comparison, world| {
        names::names(comparison, &world.stack, &world.organizations[0], world.now);
    });
}

#[test]
fn the_command_line() {
    GeneratedWorld::newest().check("commands", |comparison, world| {
        commands::commands(comparison, &world.stack, &world.organizations[0], world.now);
        commands::configuration(comparison, &world.stack, &world.organizations[0]);
        commands::unusual_reports(comparison, &world.stack, &world.organizations[0], world.now);
        commands::stable_branch(comparison, &world.stack, &world.organizations[0], world.now);
    });
}

#[test]
fn pages_while_runs_arrive() {
    GeneratedWorld::newest().check("paging", |comparison, world| {
        let mut organization = world.organizations.swap_remove(1);
        let mut project = organization
            .projects
            .pop()
            .expect("the paging project is the last");
        paging::paging(comparison, &world.stack, &organization, &mut project, world.now);
    });
}

#[test]
fn retention_under_each_plan() {
    GeneratedWorld::newest().check("retention", |comparison, world| {
        retention::retention(comparison, &world.stack, world.now);
    });
}
