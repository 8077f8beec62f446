//! The operators' listener shows only operational data, and the API's listener shows none of it.

use std::{collections::BTreeSet, env};

use crate::{contract::Contract, dice::Dice, world::World};
use assay_testkit::wire;

const PATHS: [&str; 5] = ["/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"];

#[test]
fn the_listeners_do_not_answer_for_each_other() {
    let world = World::new();
    for path in PATHS {
        let stranger = wire::ask(world.address, "GET", path, None, &[]);
        assert_eq!(
            (stranger.status, stranger.code().as_str()),
            (401, "missing_key"),
            "{path}"
        );
        let caller = wire::get(world.address, path, &world.keys.good, &[]);
        assert_eq!(
            (caller.status, caller.code().as_str()),
            (404, "invalid_parameter"),
            "{path}"
        );
        assert_eq!(world.server.admin().get(path, None).status, 200, "{path}");
    }
    for operation in Contract::read().operations {
        let path = format!(
            "/api/v1{}",
            operation.path.replace("{projectId}", &world.ours.project)
        );
        let answer = world
            .server
            .admin()
            .get(&path.replace(['{', '}'], ""), Some(&world.keys.good));
        assert_eq!((answer.status, answer.body.len()), (404, 0), "{path}");
    }
}

#[test]
fn the_operators_listener_reveals_no_tenant_and_nothing_of_the_machine() {
    let world = World::new();
    for resources in [&world.ours, &world.theirs] {
        for path in ["runs", "flaky", "errors", "settings", "branches?search=vault"] {
            let path = format!("/api/v1/projects/{}/{path}", resources.project);
            wire::get(world.address, &path, &world.keys.good, &[]);
            wire::get(world.address, &path, &world.keys.theirs, &[]);
        }
    }
    let mut private: Vec<String> = [&world.ours, &world.theirs, &world.sibling]
        .iter()
        .flat_map(|resources| {
            [
                vec![resources.project.clone(), resources.branch.clone()],
                resources.runs.clone(),
                resources.fingerprints.clone(),
            ]
        })
        .flatten()
        .collect();
    private.extend(world.keys.all().map(|key| key[8..].to_owned()));
    private.extend(world.keys.all().map(|key| key[..12].to_owned()));
    private.extend(["Theirs", "vault", "their-neighbour"].map(str::to_owned));
    private.push(world.database.text("SELECT current_database()").unwrap());
    private.push(
        env!("CARGO_MANIFEST_DIR")
            .trim_end_matches("/bins/assay-server")
            .to_owned(),
    );
    private.extend(env::var("HOME").into_iter().filter(|home| home.len() > 1));
    private.push(world.address.to_string());
    for path in PATHS {
        let answer = world.server.admin().get(path, Some(&world.keys.good));
        let answered = format!("{:?} {}", answer.headers, answer.text());
        for word in &private {
            assert!(!answered.contains(word), "{path} contains {word}");
        }
    }
}

#[test]
fn requests_cannot_grow_the_metrics() {
    let world = World::new();
    let contract = Contract::read();
    let mut routes: BTreeSet<String> = contract
        .operations
        .iter()
        .map(|operation| operation.path.clone())
        .collect();
    let mut dice = Dice::new(1, "metrics");
    let mut series = Vec::new();
    for _ in 0..3 {
        // So many that each route has every answer before the last round.
        for _ in 0..1_000 {
            let operation = dice.pick(&contract.operations);
            let mut path = format!("/api/v1{}", operation.path);
            while let (Some(start), Some(end)) = (path.find('{'), path.find('}')) {
                path.replace_range(start..=end, &dice.hex(8));
            }
            if dice.percent(30) {
                path.push_str(&format!("/{}", dice.hex(8)));
            }
            if dice.percent(30) {
                path.push_str(&format!("?{}={}", dice.hex(4), dice.hex(4)));
            }
            let method = if dice.percent(50) {
                "GET".to_owned()
            } else {
                format!("M{}", dice.hex(6))
            };
            let key = dice.percent(70).then_some(world.keys.good.as_str());
            let id = dice.hex(12);
            wire::ask(
                world.address,
                &method,
                &path,
                key,
                &[("X-Request-Id", &id), ("Host-Name", &id)],
            );
        }
        let metrics = world.server.admin().get("/metrics", None).text();
        series.push(metrics.lines().filter(|line| !line.starts_with('#')).count());
        for line in metrics.lines() {
            let Some((_, rest)) = line.split_once("route=\"") else {
                continue;
            };
            let (route, _) = rest.split_once('"').unwrap();
            routes.insert(route.to_owned());
        }
    }
    // The patterns of the document, and one word each for unknown paths and unknown methods.
    assert!(routes.len() <= contract.operations.len() + 2, "{routes:?}");
    assert_eq!(series[1], series[2], "the metrics grow with requests");
    assert!(series[2] < 2_000, "{series:?}");
}
