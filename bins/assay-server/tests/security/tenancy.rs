//! Every route with ids of another organization, and of another project of the same organization. The answers must
//! equal those for ids that never existed.

use std::collections::BTreeSet;

use assay_testkit::{
    Response,
    wire::{self, escape},
};

use crate::{
    contract::Contract,
    statements::Statements,
    world::{ProjectResources, World},
};

/// An id of the right form that does not exist.
const NO_ID: &str = "01a1fb15-b298-7514-9198-bca91f3e7e8b";
const NO_FINGERPRINT: &str = "00000000000000000000000000000000";
const NO_COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const NO_TEST: &str = "cart%20%3E%20nobody%20wrote%20this";

/// One route with its path's parameters filled.
#[derive(Debug, Clone)]
struct RouteRequest {
    path: String,
    /// The name of the last parameter, for messages.
    what: String,
}

/// The paths of a route with ids of these resources, or with absent ids, for its parameters below the project.
fn fill_parameters(template: &str, resources: Option<&ProjectResources>) -> Vec<String> {
    let nothing = ProjectResources::default();
    let of = resources.unwrap_or(&nothing);
    let or_absent = |ids: Vec<String>, absent: &str| {
        if ids.is_empty() {
            vec![absent.to_owned()]
        } else {
            ids
        }
    };
    let runs = || or_absent(of.runs.clone(), NO_ID);
    let tests = || {
        let names: BTreeSet<_> = of.plain_tests().iter().map(|(name, _)| escape(name)).collect();
        or_absent(names.into_iter().take(6).collect(), NO_TEST)
    };
    let fingerprints = or_absent(of.fingerprints.clone(), NO_FINGERPRINT);
    if template.contains("{runId}") && template.contains("{testName}") {
        let pairs = runs().into_iter().take(3).flat_map(|run| {
            let of_run = move |test: String| template.replace("{runId}", &run).replace("{testName}", &test);
            tests().into_iter().take(3).map(of_run)
        });
        return pairs.collect();
    }
    for (name, ids) in [
        ("{runId}", runs()),
        ("{testName}", tests()),
        ("{fingerprint}", fingerprints),
        ("{commitSha}", or_absent(of.commits.clone(), NO_COMMIT)),
    ] {
        if template.contains(name) {
            return ids.iter().map(|id| template.replace(name, id)).collect();
        }
    }
    vec![template.to_owned()]
}

/// Every route below a project, with a project and the ids of its resources.
fn requests_below_project(
    contract: &Contract,
    project: &str,
    resources: Option<&ProjectResources>,
) -> Vec<RouteRequest> {
    let below = contract
        .operations
        .iter()
        .filter(|operation| operation.path.contains("{projectId}"));
    below
        .flat_map(|operation| fill_parameters(&operation.path, resources))
        .map(|path| RouteRequest {
            path: format!("/api/v1{}", path.replace("{projectId}", project)),
            what: path,
        })
        .collect()
}

impl World {
    fn ask_as_caller(&self, method: &str, path: &str, head: &[(&str, &str)]) -> Response {
        wire::ask(self.address, method, path, Some(&self.keys.good), head).apart_from_date()
    }
}

#[test]
fn foreign_ids_get_the_same_bytes_as_absent_ids() {
    let (world, contract) = (World::new(), Contract::read());
    projects_of_others(&world, &contract);
    leaves_of_others(&world, &contract);
    filters_of_others(&world);
    versions_of_others(&world, &contract);
    cursors_of_others(&world);
    only_our_own_is_listed(&world);
    the_same_statements_run(&world, &contract);
}

/// A foreign project does not exist: for any path below it, with every method, parameter and field.
fn projects_of_others(world: &World, contract: &Contract) {
    let mut compared = 0;
    let behind = [Some(&world.theirs), Some(&world.ours), None];
    for resources in behind {
        let theirs = requests_below_project(contract, &world.theirs.project, resources);
        let absent = requests_below_project(contract, NO_ID, resources);
        for (foreign_request, absent_request) in theirs.iter().zip(&absent) {
            for method in ["GET", "HEAD", "POST", "DELETE", "BREW"] {
                for query in [
                    "",
                    "?days=7",
                    "?days=x",
                    "?page=0&sort=x",
                    "?filePath=a&filePath=b",
                    "?cursor=x",
                ] {
                    let ask = |path: &str| {
                        let head = [
                            ("X-Request-Id", "same"),
                            ("If-None-Match", "*"),
                            ("Accept-Encoding", "gzip"),
                        ];
                        world.ask_as_caller(method, &format!("{path}{query}"), &head)
                    };
                    let (theirs, absent) = (ask(&foreign_request.path), ask(&absent_request.path));
                    assert_eq!(theirs, absent, "{method} {}{query}", foreign_request.what);
                    assert!(
                        (400..500).contains(&theirs.status),
                        "{method} {}{query}",
                        foreign_request.what
                    );
                    compared += 1;
                }
            }
            // Without the client's own id, the answer has none either. A random one would differ each time.
            let plain = world.ask_as_caller("GET", &foreign_request.path, &[]);
            assert_eq!(
                plain,
                world.ask_as_caller("GET", &absent_request.path, &[]),
                "{}",
                foreign_request.what
            );
            assert_eq!(
                (plain.status, plain.code().as_str()),
                (404, "project_not_found"),
                "{}",
                foreign_request.what
            );
        }
    }
    assert!(compared > 1_000, "only {compared} answers were compared");
}

/// In the caller's project, resources of other projects do not exist, even those of the same organization.
fn leaves_of_others(world: &World, contract: &Contract) {
    for resources in [&world.theirs, &world.sibling] {
        for operation in &contract.operations {
            let path = operation.path.replace("{projectId}", &world.ours.project);
            if path == operation.path || !path.contains('{') {
                continue;
            }
            let absent = fill_parameters(&path, None).swap_remove(0);
            let absent = world.ask_as_caller("GET", &format!("/api/v1{absent}"), &[]);
            assert_eq!(absent.status, 404, "{path}");
            for leaf in fill_parameters(&path, Some(resources)) {
                let other = world.ask_as_caller("GET", &format!("/api/v1{leaf}"), &[]);
                assert_eq!(other, absent, "{leaf}");
            }
        }
        // The answer is 404: no run of this project contains a test of the other project.
        let run = format!(
            "/api/v1/projects/{}/runs/{}/tests",
            world.ours.project, world.ours.runs[0]
        );
        let absent = world.ask_as_caller("GET", &format!("{run}/{NO_TEST}"), &[]);
        assert_eq!((absent.status, absent.code().as_str()), (404, "test_not_found"));
        for (name, _) in resources.plain_tests() {
            assert_eq!(
                world.ask_as_caller("GET", &format!("{run}/{}", escape(name)), &[]),
                absent,
                "{name}"
            );
        }
    }
}

/// Branches, files and texts of another organization filter like unknown ones.
fn filters_of_others(world: &World) {
    let base = format!("/api/v1/projects/{}", world.ours.project);
    let (branch, theirs) = (escape(&world.theirs.branch), &world.theirs);
    let (_, file) = &theirs.tests[0];
    for (route, other, absent) in [
        ("/runs", format!("branch={branch}"), "branch=nobody"),
        ("/errors", format!("branch={branch}"), "branch=nobody"),
        ("/errors", "search=vault".to_owned(), "search=nobody"),
        ("/flaky", "search=vault".to_owned(), "search=nobody"),
        ("/tests", "search=vault".to_owned(), "search=nobody"),
        ("/tests", format!("branch={branch}"), "branch=nobody"),
        (
            "/tests/cart%20%3E%20pays",
            format!("filePath={}", escape(file)),
            "filePath=nobody",
        ),
    ] {
        let ask = |query: &str| {
            let mut body = world
                .ask_as_caller("GET", &format!("{base}{route}?{query}"), &[])
                .json();
            // The period ends at the time of the request.
            if let Some(fields) = body.as_object_mut() {
                fields.remove("window");
            }
            body
        };
        assert_eq!(ask(&other), ask(absent), "{route}?{other}");
    }
}

/// Foreign entity tags do not match: no 304 and no other difference.
fn versions_of_others(world: &World, contract: &Contract) {
    for tag in &world.theirs.tags {
        for tag in [tag.clone(), format!("W/{tag}"), "*".to_owned()] {
            for ask in requests_below_project(contract, &world.theirs.project, Some(&world.theirs)) {
                let answer = world.ask_as_caller("GET", &ask.path, &[("If-None-Match", &tag)]);
                assert_eq!(answer, world.ask_as_caller("GET", &ask.path, &[]), "{}", ask.what);
                assert_eq!(answer.status, 404, "{}", ask.what);
            }
        }
    }
    let paths = [
        "/settings".to_owned(),
        "/branches".to_owned(),
        format!("/runs/{}", world.ours.runs[0]),
    ];
    for path in paths {
        let path = format!("/api/v1/projects/{}{path}", world.ours.project);
        let tags = world.theirs.tags.join(", ");
        let answer = world.ask_as_caller("GET", &path, &[("If-None-Match", &tags)]);
        let same = path.ends_with("/settings")
            && world
                .theirs
                .tags
                .iter()
                .any(|tag| Some(tag.as_str()) == answer.header("etag"));
        assert!(answer.status == 200 && !same, "{path}");
    }
}

/// A cursor is only a position: with a foreign cursor, the answer has runs of the caller's project.
fn cursors_of_others(world: &World) {
    let ours: BTreeSet<_> = world.ours.runs.iter().collect();
    let all = [&world.ours, &world.sibling, &world.theirs];
    for cursor in all.iter().flat_map(|resources| &resources.cursors) {
        for direction in ["next", "prev"] {
            let path = format!(
                "/api/v1/projects/{}/runs?perPage=10&cursor={cursor}&direction={direction}",
                world.ours.project
            );
            let answer = world.ask_as_caller("GET", &path, &[]);
            assert_eq!(answer.status, 200, "{path}");
            let body = answer.json();
            assert_eq!(body["total"], 13);
            for run in body["runs"].as_array().unwrap() {
                assert!(
                    ours.contains(&run["id"].as_str().unwrap().to_owned()),
                    "{path}: {run}"
                );
            }
        }
    }
}

/// The list of projects has only the caller's, and no body contains foreign text.
fn only_our_own_is_listed(world: &World) {
    let listed = world.ask_as_caller("GET", "/api/v1/projects", &[]).json();
    let ids: BTreeSet<_> = listed["projects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|project| project["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        ids,
        BTreeSet::from([world.ours.project.clone(), world.sibling.project.clone()])
    );
    let contract = Contract::read();
    for ask in requests_below_project(&contract, &world.ours.project, Some(&world.ours)) {
        let answer = world.ask_as_caller("GET", &ask.path, &[]);
        assert!(
            answer.status == 200 || ["test_not_found", "branch_not_found"].contains(&&*answer.code()),
            "{}: {}",
            ask.what,
            answer.summary()
        );
        let body = answer.json_or_null().to_string();
        for word in ["vault", "Theirs", &world.theirs.project, "their-neighbour"] {
            assert!(!body.contains(word), "{} contains {word}", ask.what);
        }
    }
}

/// The database runs the same statements for an absent and a foreign id.
fn the_same_statements_run(world: &World, contract: &Contract) {
    let log = Statements::of(world);
    let mut logged = 0;
    for resources in [Some(&world.theirs), None] {
        let theirs = requests_below_project(contract, &world.theirs.project, resources);
        for (foreign_request, absent_request) in theirs
            .iter()
            .zip(&requests_below_project(contract, NO_ID, resources))
        {
            let of_theirs = log.during(|| world.ask_as_caller("GET", &foreign_request.path, &[]));
            let of_absent = log.during(|| world.ask_as_caller("GET", &absent_request.path, &[]));
            assert_eq!(of_theirs, of_absent, "{}", foreign_request.what);
            logged += of_theirs.len();
        }
    }
    for operation in &contract.operations {
        let path = operation.path.replace("{projectId}", &world.ours.project);
        if path == operation.path || !path.contains('{') {
            continue;
        }
        let absent = format!("/api/v1{}", fill_parameters(&path, None)[0]);
        // One request before, so that both have prepared statements.
        world.ask_as_caller("GET", &absent, &[]);
        // Without the look-up of the caller's project, which is cached for a moment.
        let below_project = |path: &str| {
            let mut statements = log.during(|| world.ask_as_caller("GET", path, &[]));
            statements.retain(|statement| !statement.starts_with(" \"project_entry\".\"name\" FROM"));
            statements
        };
        let absent = below_project(&absent);
        let leaf = format!("/api/v1{}", fill_parameters(&path, Some(&world.theirs))[0]);
        assert_eq!(below_project(&leaf), absent, "{path}");
        logged += absent.len();
    }
    assert!(logged > 20, "the log of Postgres logged {logged} statements only");
}
