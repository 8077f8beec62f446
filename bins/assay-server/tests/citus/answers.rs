//! The same reports into plain Postgres and into a distributed database: every program and every route answers the
//! same.

use std::collections::HashMap;

use assay_oracle::{
    clock,
    generated_world::import,
    stack::Stack,
    world::{Organization, Plan},
};
use assay_testkit::{Cli, Response, Server, TestDatabase, assert_contains, execute, text};
use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    everything,
    gated::{BLOCKED, EXCUSED, GatedRun},
};

/// An installation over one of the two databases.
struct Side {
    cli: Cli,
    server: Server,
    world: Vec<Organization>,
    ids: Ids,
}

/// Ids in the order of their first use, by which the two sides can be compared.
struct Ids {
    numbers: HashMap<String, usize>,
    /// The time for which the world was generated. Later times are those at which the side was filled and judged.
    now: String,
}

impl Ids {
    /// The text with numbers in place of ids, and without times of the clock.
    fn replaced(&mut self, text: &str) -> String {
        let mut replaced = String::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let id = rest
                .get(..36)
                .filter(|id| has_form(id, "xxxxxxxx-xxxx-7xxx-xxxx-xxxxxxxxxxxx"));
            let time = rest
                .get(..24)
                .filter(|time| has_form(time, "xxxx-xx-xxTxx:xx:xx.xxxZ"));
            let taken = if let Some(id) = id {
                let next = self.numbers.len();
                let number = *self.numbers.entry(id.to_owned()).or_insert(next);
                replaced += &format!("id-{number}");
                id.len()
            } else if let Some(time) = time.filter(|time| **time > *self.now) {
                replaced += "later";
                time.len()
            } else {
                replaced.push(first);
                first.len_utf8()
            };
            rest = &rest[taken..];
        }
        replaced
    }
}

/// Whether a text has a hexadecimal digit at each `x` of the form, and the form's own character elsewhere.
fn has_form(text: &str, form: &str) -> bool {
    text.bytes().zip(form.bytes()).all(|(byte, form)| match form {
        b'x' => byte.is_ascii_hexdigit(),
        _ => byte == form,
    })
}

/// Compares the answers of all routes about all projects; returns how many there are.
fn compare_answers([plain, distributed]: &mut [Side; 2]) -> usize {
    let mut compared = 0;
    for (one, other) in plain.world.iter().zip(&distributed.world) {
        for (project, same) in one.projects.iter().zip(&other.projects) {
            let days = if one.plan == Plan::Pro { 90 } else { 30 };
            let expected = everything::of_period(plain.server.client(), &one.key, &project.id, days);
            let answers = everything::of_period(distributed.server.client(), &other.key, &same.id, days);
            assert_eq!(answers.len(), expected.len(), "{}", project.name);
            for ((path, body), (same_path, same_body)) in expected.iter().zip(&answers) {
                let path = plain.ids.replaced(path);
                assert_eq!(distributed.ids.replaced(same_path), path);
                assert_eq!(
                    distributed.ids.replaced(same_body),
                    plain.ids.replaced(body),
                    "{path}"
                );
                compared += 1;
            }
        }
    }
    compared
}

/// Runs a command of the administrator on both sides, whose output must be the same; returns it.
fn run_on_both(sides: &mut [Side; 2], arguments: &[&str]) -> Value {
    let [expected, found] = sides.each_mut().map(|side| {
        let printed = side.cli.json(arguments);
        let replaced = side.ids.replaced(&printed.to_string());
        (printed, replaced)
    });
    assert_eq!(found.1, expected.1, "{arguments:?}");
    found.0
}

#[test]
#[ignore = "needs a Citus cluster: see main.rs"]
fn every_answer_is_that_of_plain_postgres() {
    let cluster = Cluster::new();
    let [owner, web, ci, ingest, ..] = cluster.urls();
    let administration = Cli::new(&owner);
    let migrated = administration.json(&["migrate"]);
    assert_eq!(migrated["rolesToDo"], Value::Null, "{migrated}");
    let again = administration.json(&["migrate"]);
    assert_eq!(
        (&again["applied"], &again["distributed"]),
        (&json!([]), &json!([])),
        "{again}"
    );
    every_table_of_projects_is_distributed(&cluster);

    let plain = TestDatabase::new();
    let now = clock::now();
    let side = |cli: &str, server: &str| Side {
        world: import(&Stack::at(cli), now),
        cli: Cli::new(cli),
        server: Server::start_with(server, &[("ASSAY_RATE_LIMIT", "0")]),
        ids: Ids {
            numbers: HashMap::new(),
            now: clock::text(now),
        },
    };
    let mut sides = std::thread::scope(|scope| {
        let sides = [(plain.url(), plain.url()), (owner.as_str(), web.as_str())];
        let sides = sides.map(|(cli, server)| scope.spawn(|| side(cli, server)));
        sides.map(|side| side.join().unwrap())
    });
    let compared = compare_answers(&mut sides);
    println!("{compared} answers equal those of plain Postgres");
    assert!(compared > 1_000, "{compared}");

    let rebuilt = run_on_both(&mut sides, &["rebuild"]);
    for project in rebuilt["projects"].as_array().unwrap() {
        let result = &project["result"];
        for name in ["runsChanged", "branchesChanged", "daysChanged"] {
            assert_eq!(result[name], 0, "{project}");
        }
    }
    run_on_both(&mut sides, &["refingerprint"]);
    let pruned = run_on_both(&mut sides, &["prune", "--yes"]);
    assert!(pruned.to_string().contains("\"runs\""), "{pruned}");
    run_on_both(
        &mut sides,
        &["project", "set", "Flags", "--stable-branch", "trunk"],
    );
    run_on_both(&mut sides, &["project", "rename", "Flags", "Banners", "--yes"]);
    run_on_both(&mut sides, &["project", "delete", "Empty", "--yes"]);
    for side in &mut sides {
        for organization in &mut side.world {
            organization.projects.retain(|project| project.name != "Empty");
        }
    }
    // The servers keep look-ups for half a second.
    std::thread::sleep(std::time::Duration::from_secs(1));
    println!(
        "{} answers are equal after the administration",
        compare_answers(&mut sides)
    );

    // The coordinator alone has what only imports and administration use.
    let [_, web_of_coordinator, ..] = cluster.logins.as_ref().unwrap().urls();
    for login in [&owner, &web_of_coordinator, &ci, &ingest] {
        let report = Cli::new(login).json(&["doctor"]);
        assert_ne!(report["status"], "fail", "{report}");
    }
    assert!(
        !sides[1].server.log().contains("permission denied"),
        "{}",
        sides[1].server.log()
    );
    a_decision_of_a_gate_is_stored_and_shown(&sides[1], &web, &ingest);
    a_later_migration_is_applied_and_its_table_distributed(&cluster, &administration, &owner);
    drop(sides);
}

fn every_table_of_projects_is_distributed(cluster: &Cluster) {
    let with_project = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND NOT relispartition \
         AND relkind IN ('r', 'p') AND relname <> 'api_key' AND (relname = 'project' OR EXISTS ( \
             SELECT FROM pg_attribute WHERE attrelid = pg_class.oid AND attname = 'project_id')) ORDER BY 1";
    let distributed = "SELECT table_name::text FROM citus_tables WHERE citus_table_type = 'distributed' \
         AND colocation_id = (SELECT colocation_id FROM citus_tables WHERE table_name = 'project'::regclass) \
         AND table_name NOT IN (SELECT oid FROM pg_class WHERE relispartition) ORDER BY 1";
    let tables = cluster.texts(with_project);
    assert!(tables.len() >= 14, "{tables:?}");
    assert_eq!(cluster.texts(distributed), tables);
    let others = "SELECT relname FROM pg_class JOIN citus_tables ON table_name = oid \
         WHERE citus_table_type = 'reference' ORDER BY 1";
    assert_eq!(
        cluster.texts(others),
        [
            "__diesel_schema_migrations",
            "__migration_checksum",
            "api_key",
            "ended_session",
            "organization",
            "project_entry"
        ],
        "the others are on every node"
    );
    // The coordinator's own copy of a table without projects ends with a number.
    let foreign_keys = "SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND conparentid = 0 \
         AND connamespace = 'public'::regnamespace AND conrelid::regclass::text !~ '_[0-9]+$' \
         AND conrelid::regclass::text NOT IN ('api_key', 'ended_session')";
    assert_eq!(
        Some(cluster.text(foreign_keys)),
        TestDatabase::new().text(foreign_keys),
        "they are restored, but those of tables that servers write"
    );
}

/// With the logins of the pages and of the ingest listener.
fn a_decision_of_a_gate_is_stored_and_shown(side: &Side, web: &str, ingest: &str) {
    let organization = side
        .world
        .iter()
        .find(|organization| organization.plan == Plan::Pro);
    let organization = organization.expect("an organization has this plan");
    let project = &organization.projects[0].id;
    let made = side.cli.json(&["key", "create-ingest", "--project", project]);
    let gated = GatedRun::new(
        web,
        &[("ASSAY_INGEST_DATABASE_URL", ingest)],
        [&text(&made["key"]), &organization.key, project],
    );
    assert!(!gated.page().contains(EXCUSED));
    for (decide, effect, sentence) in [
        (GatedRun::excuse as fn(&GatedRun) -> Response, "added", EXCUSED),
        (GatedRun::block, "replaced", BLOCKED),
    ] {
        let stored = decide(&gated);
        assert_eq!(stored.json()["effect"], effect, "{}", stored.text());
        let page = gated.page();
        assert_contains(&page, sentence);
    }
    let listed = side.cli.json(&["uploads", "--project", project, "--limit", "1"]);
    assert_eq!(listed["uploads"][0]["decision"]["outcome"], "blocked", "{listed}");
}

/// A migration that the lint accepts.
const LATER: &str = "SET citus.multi_shard_modify_mode = 'sequential'; BEGIN; \
     CREATE TABLE later (project_id uuid NOT NULL REFERENCES project (id), number integer, PRIMARY KEY (project_id, number)); \
     CREATE INDEX later_number ON later (project_id, number); \
     DO $$ BEGIN \
         DROP INDEX run_by_branch; \
         CREATE INDEX run_by_branch ON run (project_id, branch, started_at DESC, number DESC); \
         ALTER TABLE run ADD COLUMN later text; \
         ALTER TABLE run ADD CONSTRAINT run_later_check CHECK (later <> ''); \
         UPDATE run SET later = 'x'; \
     END $$; COMMIT";

fn a_later_migration_is_applied_and_its_table_distributed(
    cluster: &Cluster,
    administration: &Cli,
    owner: &str,
) {
    execute(owner, LATER);
    let migrated = administration.json(&["migrate"]);
    assert_eq!(migrated["distributed"], json!(["later"]), "{migrated}");
    for catalogue in [
        "citus_tables WHERE table_name = 'later'::regclass",
        "pg_constraint WHERE contype = 'f' AND conrelid = 'later'::regclass",
    ] {
        assert_eq!(
            cluster.text(&format!("SELECT count(*) FROM {catalogue}")),
            "1",
            "{catalogue}"
        );
    }
}
