//! Parameters, keys, their lifetimes and the limit of requests.

use assay_oracle::{GeneratedWorld, badinput, checks, keys, lifetimes, limit, oracle};

#[test]
fn bad_input() {
    GeneratedWorld::whole().check("bad input", |comparison, world| {
        let organization = &world.organizations[0];
        let mut checks = world.project_checks(organization, &organization.projects[0]);
        let run = oracle::visible(checks.project, organization.plan, world.now)[0].clone();
        checks::run_detail::run_detail(comparison, &mut checks, &run);
        badinput::bad_input(comparison, &checks, &run);
    });
}

#[test]
fn keys_and_their_refusals() {
    GeneratedWorld::whole().check("keys", |comparison, world| {
        let [standard, foreign, free] = &world.organizations[..] else {
            panic!("three organizations");
        };
        keys::keys(comparison, &world.stack, standard, foreign, free);
    });
}

#[test]
fn lifetimes_of_keys_and_plans() {
    GeneratedWorld::whole().check("lifetimes", |comparison, world| {
        lifetimes::revocation(comparison, &world.stack, &world.organizations[0]);
        lifetimes::plans(comparison, &world.stack, &world.organizations[2]);
        lifetimes::expiry(comparison, &world.stack, &world.organizations[0]);
        keys::listing(comparison, &world.stack, &world.organizations[0]);
    });
}

#[test]
fn the_limit_of_requests() {
    GeneratedWorld::whole().check("limit", |comparison, world| {
        limit::limit(
            comparison,
            &world.stack,
            &world.organizations[0].key,
            &world.organizations[1].key,
        );
    });
}
