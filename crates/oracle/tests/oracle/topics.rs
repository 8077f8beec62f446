//! Keys, limits, all ways of importing, and changes of visibility.

use assay_oracle::{
    Product, badinput, caching, checks, commands, keys, lifetimes, limit, names, oracle, paging, providers,
    retention, shards,
};

#[test]
fn bad_input() {
    Product::newest().check("bad input", |tally, product| {
        let organization = &product.world[0];
        let mut scene = product.scene(organization, &organization.projects[0]);
        let run = oracle::visible(scene.project, organization.plan, product.now)[0].clone();
        checks::run_detail::run_detail(tally, &mut scene, &run);
        badinput::bad_input(tally, &scene, &run);
    });
}

#[test]
fn keys_and_their_refusals() {
    Product::newest().check("keys", |tally, product| {
        let [standard, foreign, free] = &product.world[..] else {
            panic!("three organizations");
        };
        keys::keys(tally, &product.stack, standard, foreign, free);
    });
}

#[test]
fn lifetimes_of_keys_and_plans() {
    Product::newest().check("lifetimes", |tally, product| {
        lifetimes::revocation(tally, &product.stack, &product.world[0]);
        lifetimes::plans(tally, &product.stack, &product.world[2]);
        lifetimes::expiry(tally, &product.stack, &product.world[0]);
        keys::listing(tally, &product.stack, &product.world[0]);
    });
}

#[test]
fn entity_tags_and_codings() {
    Product::newest().check("caching", |tally, product| {
        caching::caching(tally, &product.stack, &product.world[0]);
    });
}

#[test]
fn the_limit_of_requests() {
    Product::newest().check("limit", |tally, product| {
        limit::limit(
            tally,
            &product.stack,
            &product.world[0].key,
            &product.world[1].key,
        );
    });
}

#[test]
fn shards_in_any_order() {
    Product::newest().check("shards", |tally, product| {
        shards::shards(tally, &product.stack, &product.world[0], product.now);
    });
}

#[test]
fn ci_services() {
    Product::newest().check("providers", |tally, product| {
        providers::providers(tally, &product.stack, &product.world[0], product.now);
    });
}

#[test]
fn names_of_tests() {
    Product::newest().check("names", |tally, product| {
        names::names(tally, &product.stack, &product.world[0], product.now);
    });
}

#[test]
fn the_command_line() {
    Product::newest().check("commands", |tally, product| {
        commands::commands(tally, &product.stack, &product.world[0], product.now);
        commands::configuration(tally, &product.stack, &product.world[0]);
        commands::unusual_reports(tally, &product.stack, &product.world[0], product.now);
        commands::stable_branch(tally, &product.stack, &product.world[0], product.now);
    });
}

#[test]
fn pages_while_runs_arrive() {
    Product::newest().check("paging", |tally, product| {
        let mut organization = product.world.swap_remove(1);
        let mut project = organization
            .projects
            .pop()
            .expect("the paging project is the last");
        paging::paging(tally, &product.stack, &organization, &mut project, product.now);
    });
}

#[test]
fn retention_under_each_plan() {
    Product::newest().check("retention", |tally, product| {
        retention::retention(tally, &product.stack, product.now);
    });
}
