//! An acceptance test with an oracle of its own.
//!
//! It makes up a world out of a seed: organizations with plans and keys, projects with oddly named branches, sharded
//! runs, retries, recovered and broken tests, error texts that differ only in numbers, ids and times. It writes
//! that world as Playwright's JSON reports, imports them with the real `assay`, and compares every route, field,
//! page, filter, count and error of the real `assay-server` with answers that it computes naively from the world.
//! It knows the specification, the decisions in docs/api-decisions.md and nothing of the crates.
//!
//! ```text
//! cargo test -p assay-server --test oracle                            # the default seed
//! ASSAY_ORACLE_SEED=99 cargo test -p assay-server --test oracle       # another, or several: 1,2,3
//! ASSAY_ORACLE_ONLY=keys,names cargo test -p assay-server --test oracle
//! ASSAY_ORACLE_PROGRAMS=/usr/local/bin cargo test -p assay-server --test oracle   # programs built elsewhere
//! ```
//!
//! The parts are `world`, `bad-input`, `keys`, `limit`, `shards`, `providers`,
//! `names`, `paging`, `commands` and `retention`. The
//! summary, a line a part and one for each check that did not hold, goes to standard error, the last line being
//! `N passed, M failed`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a test that drives the programs from outside, with their clock and environment"
)]

mod analyze;
mod badinput;
mod caching;
mod checks;
mod clock;
mod commands;
mod compare;
mod dice;
mod generator;
mod habits;
mod hostile;
mod http;
mod importer;
mod keys;
mod lifetimes;
mod limit;
mod names;
mod oracle;
mod paging;
mod playwright;
mod providers;
mod retention;
mod scripted;
mod shards;
mod small;
mod stack;
mod tally;
mod texts;
mod world;

use std::io::Write;

use crate::{
    checks::Scene,
    generator::Sketch,
    http::Client,
    stack::Stack,
    tally::Tally,
    world::{Organization, Plan, Project, Way},
};

#[test]
fn the_product_agrees_with_its_oracle() {
    let seeds = std::env::var("ASSAY_ORACLE_SEED").unwrap_or_else(|_| "20261120".to_owned());
    for seed in seeds.split(',') {
        let seed: u64 = seed
            .trim()
            .parse()
            .expect("ASSAY_ORACLE_SEED is a number, or several with commas");
        let mut tally = Tally::default();
        judge(&mut tally, seed);
        say(&format!("seed {seed}\n{}", tally.summary()));
        assert_eq!(tally.failed(), 0, "seed {seed}: see the list above");
    }
}

/// Writes past the test harness, which keeps what a passing test prints.
pub(crate) fn say(text: &str) {
    let _written = writeln!(std::io::stderr(), "{text}");
}

/// The parts, by the names that `ASSAY_ORACLE_ONLY` takes.
fn judge(tally: &mut Tally, seed: u64) {
    let only = std::env::var("ASSAY_ORACLE_ONLY").unwrap_or_default();
    let wanted = |part: &str| only.is_empty() || only.split(',').any(|name| name == part);
    let now = clock::now();
    let stack = Stack::start();
    let mut world = make(seed, now);
    tally.section("import");
    for organization in &mut world {
        importer::found(&stack, organization, tally);
    }
    std::thread::scope(|scope| {
        // It mostly waits for a minute to end, on a server of its own.
        let (standard, pro) = (world[0].key.clone(), world[1].key.clone());
        let stack = &stack;
        let limit = wanted("limit").then(|| {
            scope.spawn(move || {
                let mut tally = Tally::default();
                tally.section("limit");
                limit::limit(&mut tally, stack, &standard, &pro);
                tally
            })
        });
        parts(tally, stack, world, now, &wanted);
        if let Some(limit) = limit {
            tally.absorb(limit.join().expect("the limit's checks end"));
        }
    });
    let logs = stack.logs();
    tally.that(!logs.contains("panicked"), || {
        format!("a server panicked: {logs}")
    });
}

fn parts(
    tally: &mut Tally,
    stack: &Stack,
    mut world: Vec<Organization>,
    now: i64,
    wanted: &dyn Fn(&str) -> bool,
) {
    for organization in &mut world {
        for project in &mut organization.projects {
            importer::open(stack, &organization.id, project, tally);
            if !wanted("world") && !project.name.starts_with("Paging") {
                // The other parts need a few of the newest.
                project.runs.drain(..project.runs.len().saturating_sub(6));
            }
        }
    }
    let projects = world
        .iter_mut()
        .flat_map(|organization| &mut organization.projects);
    tally.side_by_side(projects, |tally, project| {
        importer::deliver(stack, project, tally)
    });
    if wanted("world") {
        compare::compare(tally, stack, &world, now);
    }
    if wanted("bad-input") {
        tally.section("bad input");
        let organization = &world[0];
        let mut scene = scene(stack, organization, &organization.projects[0], now);
        let run = oracle::visible(&organization.projects[0], organization.plan, now)[0].clone();
        checks::run_detail::run_detail(tally, &mut scene, &run);
        badinput::bad_input(tally, &scene, &run);
    }
    if wanted("keys") {
        tally.section("keys");
        keys::keys(tally, stack, &world[0], &world[1], &world[2]);
    }
    if wanted("shards") {
        tally.section("shards");
        shards::shards(tally, stack, &world[0], now);
    }
    if wanted("providers") {
        tally.section("providers");
        providers::providers(tally, stack, &world[0], now);
    }
    if wanted("names") {
        tally.section("names");
        names::names(tally, stack, &world[0], now);
    }
    if wanted("commands") {
        tally.section("commands");
        commands::commands(tally, stack, &world[0], now);
        commands::configuration(tally, stack, &world[0]);
        commands::shapes(tally, stack, &world[0], now);
        commands::stable_branch(tally, stack, &world[0], now);
    }
    if wanted("paging") {
        tally.section("paging");
        let mut organization = world.swap_remove(1);
        let mut project = organization
            .projects
            .pop()
            .expect("the paging project is the last");
        paging::paging(tally, stack, &organization, &mut project, now);
    }
    if wanted("retention") {
        tally.section("retention");
        retention::retention(tally, stack, now);
    }
}

/// A reader of a project.
pub(crate) fn scene<'a>(
    stack: &Stack,
    organization: &'a Organization,
    project: &'a Project,
    now: i64,
) -> Scene<'a> {
    let client = Client::new(stack.server().address, &organization.key);
    Scene {
        client,
        organization,
        project,
        now,
        fingerprints: Default::default(),
    }
}

/// A standard organization, a pro one, and a free one that may not read.
fn make(seed: u64, now: i64) -> Vec<Organization> {
    let organization = |name: &str, plan: Plan, projects: Vec<Project>| Organization {
        id: String::new(),
        name: name.to_owned(),
        plan,
        key: String::new(),
        key_id: String::new(),
        projects,
    };
    let sketches = [
        Sketch {
            name: "Shop 🛒",
            stable: "main",
            way: Way::Github,
            days: 72,
            runs: 44,
            tests: 48,
        },
        Sketch {
            name: "warehouse \"quoted\" & <b>",
            stable: "trunk/stable",
            way: Way::Gitlab,
            days: 104,
            runs: 40,
            tests: 52,
        },
        Sketch {
            name: "Flags",
            stable: "main",
            way: Way::Flags,
            days: 20,
            runs: 36,
            tests: 46,
        },
    ];
    let mut made: Vec<Project> = sketches
        .iter()
        .map(|sketch| generator::project(seed, sketch, now))
        .collect();
    made[0].chat_events = Some(vec!["run_failed", "test_broken", "new_error"]);
    made[0].pr_comments = Some(true);
    made[1].pr_comments = Some(false);
    let flags = made.pop().expect("three projects");
    let warehouse = made.pop().expect("three projects");
    let shop = made.pop().expect("three projects");
    vec![
        organization(
            "Standard & Söhne",
            Plan::Standard,
            vec![shop, scripted::project(seed, now), small::project("Empty")],
        ),
        organization(
            "Pro",
            Plan::Pro,
            vec![
                warehouse,
                flags,
                scripted::outage(seed, now),
                paging::project(seed, now),
            ],
        ),
        organization("Free", Plan::Free, vec![small::project("Unread")]),
    ]
}
