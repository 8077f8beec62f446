//! A served database with two organizations that must not see each other, and keys of every kind.

use std::{net::SocketAddr, sync::OnceLock};

use assay_testkit::{
    Cli, Server, Template, TestDatabase, rfc3339, text,
    wire::{self, escape},
};

/// The resources of one project, as its owner sees them over HTTP.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProjectResources {
    pub(crate) project: String,
    /// The ids of runs and shards.
    pub(crate) runs: Vec<String>,
    /// The commits of runs.
    pub(crate) commits: Vec<String>,
    /// The cursors of the runs list, in both directions.
    pub(crate) cursors: Vec<String>,
    pub(crate) fingerprints: Vec<String>,
    /// The tests by name and file.
    pub(crate) tests: Vec<(String, String)>,
    pub(crate) branch: String,
    /// The entity tags of the routes that have one.
    pub(crate) tags: Vec<String>,
}

impl ProjectResources {
    /// The tests with a unique name.
    pub(crate) fn plain_tests(&self) -> Vec<&(String, String)> {
        let of_name = |name: &String| self.tests.iter().filter(|(other, _)| other == name).count();
        self.tests.iter().filter(|(name, _)| of_name(name) == 1).collect()
    }
}

/// Keys, each shown once when it was created.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    pub(crate) good: String,
    pub(crate) theirs: String,
    pub(crate) free: String,
    pub(crate) revoked: String,
    pub(crate) expired: String,
    pub(crate) ingest: String,
    /// Well-formed, but unknown.
    pub(crate) unknown: String,
}

impl Keys {
    pub(crate) fn all(&self) -> [&str; 7] {
        [
            &self.good,
            &self.theirs,
            &self.free,
            &self.revoked,
            &self.expired,
            &self.ingest,
            &self.unknown,
        ]
    }
}

/// A server with two organizations, their keys and the resources of their projects.
pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) address: SocketAddr,
    pub(crate) keys: Keys,
    /// A project of the caller's organization.
    pub(crate) ours: ProjectResources,
    /// Another one of the same organization.
    pub(crate) sibling: ProjectResources,
    /// A project of another organization.
    pub(crate) theirs: ProjectResources,
    pub(crate) cli: Cli,
    /// Dropped last.
    pub(crate) database: TestDatabase,
}

/// The state that the programs created, once for all worlds: testkit's world without its key, and the organizations of
/// these tests.
struct State {
    template: Template,
    keys: Keys,
    /// Each project's id and name, and the ids of its shards.
    projects: Vec<(String, &'static str, Vec<String>)>,
}

impl State {
    fn make() -> Self {
        let world = assay_testkit::World::without_key();
        for (name, plan) in [("Ours", "standard"), ("Theirs", "pro"), ("Free", "free")] {
            world.cli.json(&["org", "create", name, "--plan", plan]);
        }
        let mut projects = Vec::new();
        for (org, name, runs) in [
            ("Ours", "shop", 13),
            ("Ours", "their-neighbour", 3),
            ("Theirs", "vault", 13),
        ] {
            let id = text(&world.cli.json(&["project", "create", "--org", org, name])["id"]);
            let shards: Vec<_> = (0..runs)
                .flat_map(|number| import(&world, &id, name, number))
                .collect();
            projects.push((id, name, shards));
        }
        let keys = keys(&world.cli, &world.database, &projects[0].0);
        Self {
            template: world.into_template(),
            keys,
            projects,
        }
    }
}

impl World {
    /// A world whose server has these settings.
    pub(crate) fn with(settings: &[(&str, &str)]) -> Self {
        static STATE: OnceLock<State> = OnceLock::new();
        let state = STATE.get_or_init(State::make);
        let assay_testkit::World { cli, database, .. } = state.template.world();
        let keys = state.keys.clone();
        let server = Server::start_with(database.url(), settings);
        let address = server.client().address();
        let mut resources = state
            .projects
            .iter()
            .zip([&keys.good, &keys.good, &keys.theirs])
            .map(|((id, name, shards), key)| project_resources(address, key, id, name, shards));
        let (ours, sibling, theirs) = (
            resources.next().unwrap(),
            resources.next().unwrap(),
            resources.next().unwrap(),
        );
        drop(resources);
        Self {
            server,
            address,
            keys,
            ours,
            sibling,
            theirs,
            cli,
            database,
        }
    }

    /// A world without a rate limit.
    pub(crate) fn new() -> Self {
        Self::with(&[("ASSAY_RATE_LIMIT", "0")])
    }
}

fn keys(cli: &Cli, database: &TestDatabase, project: &str) -> Keys {
    let make = |org: &str| cli.json(&["key", "create", "--org", org, "--days", "90"]);
    let revoked = make("Ours");
    cli.json(&["key", "revoke", &text(&revoked["id"])]);
    let expired = make("Ours");
    database.execute(&format!(
        "UPDATE api_key SET created_at = now() - interval '200 days', expires_at = now() - interval '1 day' \
         WHERE id = '{}'",
        text(&expired["id"])
    ));
    let unknown = make("Ours");
    database.execute(&format!(
        "DELETE FROM api_key WHERE id = '{}'",
        text(&unknown["id"])
    ));
    let ingest = cli.json(&["key", "create-ingest", "--project", project]);
    Keys {
        good: text(&make("Ours")["key"]),
        theirs: text(&make("Theirs")["key"]),
        free: text(&make("Free")["key"]),
        revoked: text(&revoked["key"]),
        expired: text(&expired["key"]),
        ingest: text(&ingest["key"]),
        unknown: text(&unknown["key"]),
    }
}

/// Imports a run, every fourth one as two shards, and returns the shards' ids. Names and errors are unique to the
/// project.
fn import(world: &assay_testkit::World, project: &str, name: &str, number: i64) -> Vec<String> {
    let start = rfc3339(time::OffsetDateTime::now_utc() - time::Duration::hours(2 + number));
    let shards: &[Option<&str>] = if number % 4 == 0 {
        &[Some("1/2"), Some("2/2")]
    } else {
        &[None]
    };
    let mut ids = Vec::new();
    for (place, shard) in shards.iter().enumerate() {
        let path = world.file("report.xml", &report(name, number, place));
        // A commit of this project only.
        let own: String = name.bytes().take(4).map(|byte| format!("{byte:02x}")).collect();
        let (run_key, sha) = (format!("{name}-{number}"), format!("{own:0<8}{number:032x}"));
        let branch = if number == 3 {
            "main".to_owned()
        } else {
            format!("{name}/work")
        };
        let mut arguments = vec![
            "import",
            "--project",
            project,
            "--started-at",
            &start,
            "--branch",
            &branch,
            "--commit",
            &sha,
        ];
        if let Some(shard) = shard {
            arguments.extend(["--run-key", &run_key, "--shard", shard]);
        }
        arguments.push(&path);
        ids.extend(world.cli.json(&arguments)["shardId"].as_str().map(str::to_owned));
    }
    ids
}

fn report(name: &str, number: i64, place: usize) -> String {
    let failure = |text: &str| {
        format!("<failure message=\"{name}: {text}, got {number}\">at {name}/cart.test.ts:3:1</failure>")
    };
    let mut cases = vec![
        ("pays".to_owned(), format!("{name}-a.test.ts"), String::new()),
        ("pays".to_owned(), format!("{name}-b.test.ts"), String::new()),
        (
            format!("{name} buys a/b &amp; ünïcode"),
            "cart.test.ts".to_owned(),
            if number % 3 == 0 {
                failure("expected three")
            } else {
                String::new()
            },
        ),
        (
            format!("{name} fails"),
            "cart.test.ts".to_owned(),
            failure("connection refused by the shop"),
        ),
    ];
    // Enough tests for an answer that is compressed.
    cases.extend((0..60).map(|case| {
        (
            format!("{name} case {case} of shard {place}"),
            "many.test.ts".to_owned(),
            String::new(),
        )
    }));
    let cases: String = cases
        .iter()
        .map(|(case, file, body)| {
            format!("<testcase classname=\"cart\" name=\"{case}\" file=\"{file}\" time=\"0.010\">{body}</testcase>")
        })
        .collect();
    format!("<testsuite>{cases}</testsuite>")
}

/// All data that the owner of a project can read of it.
fn project_resources(
    address: SocketAddr,
    key: &str,
    project: &str,
    name: &str,
    shards: &[String],
) -> ProjectResources {
    let base = format!("/api/v1/projects/{project}");
    let get = |path: &str| {
        let answer = wire::get(address, &format!("{base}{path}"), key, &[]);
        assert_eq!(answer.status, 200, "{path}: {}", answer.summary());
        answer
    };
    let json = |path: &str| get(path).json();
    let mut resources = ProjectResources {
        project: project.to_owned(),
        branch: format!("{name}/work"),
        ..ProjectResources::default()
    };
    let first = json("/runs");
    let mut pages = vec![first.clone()];
    if let Some(next) = first["nextCursor"].as_str() {
        pages.push(json(&format!("/runs?cursor={next}")));
    }
    for page in &pages {
        resources.cursors.extend(
            ["nextCursor", "prevCursor"]
                .iter()
                .filter_map(|name| page[*name].as_str().map(str::to_owned)),
        );
        for run in page["runs"].as_array().unwrap() {
            resources.runs.push(text(&run["id"]));
            resources.commits.push(text(&run["commitSha"]));
        }
    }
    let detail = get(&format!("/runs/{}", resources.runs[0]));
    resources.tags.extend(detail.header("etag").map(str::to_owned));
    resources.runs.extend(shards.iter().cloned());
    let detail = detail.json();
    for test in detail["tests"].as_array().unwrap() {
        let name = text(&test["testName"]);
        resources.tests.push((name, text(&test["filePath"])));
    }
    for error in json("/errors")["errors"].as_array().unwrap() {
        resources.fingerprints.push(text(&error["fingerprint"]));
    }
    for path in ["/settings", "/branches"] {
        resources.tags.extend(get(path).header("etag").map(str::to_owned));
    }
    let test = escape(&resources.plain_tests()[0].0);
    let attempts = get(&format!("/runs/{}/tests/{test}", resources.runs[0]));
    resources.tags.extend(attempts.header("etag").map(str::to_owned));
    assert!(
        !resources.fingerprints.is_empty() && resources.tags.len() == 4,
        "{resources:?}"
    );
    resources
}
