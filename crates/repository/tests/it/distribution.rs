//! The schema and every statement are limited to one project, or to the tables without projects. The database can
//! therefore be distributed by project. `bins/assay-server/tests/citus` runs the programs against such a database.
//!
//! Pruning is left out, because it goes through the projects one by one, and drops periods for all of them.

use std::collections::BTreeSet;

use assay_domain::{
    attempt::ErrorDetail,
    decision::{GateDecision, GateOutcome},
    fix::NewFix,
    ingest::{IngestKeys, IngestTerms, Upload},
    key::KeyHash,
    page::PerPage,
    period::Days,
    recording::Effect,
    rules::{DailyLimits, RecordingRules, UploadBudget},
    run::SomeTests,
    settings::ChatEvent,
    signature::{Classifier, ErrorClass, SignatureQuery, SignatureSort},
    store::{
        Administration, Attempt, MessageKey, MessageKind, NewMessage, Outbox, ProjectChange, ReadKeys,
        Recorder, Store, in_snapshot,
    },
};
use assay_testkit::TestDatabase;

use crate::{
    fixture::*,
    statements::{Statement, listen, project_column, recorded_statements},
};

/// The tables of all projects. A distributed database copies them to every node, apart from `partition`, which stays on the
/// coordinator.
const OF_ALL_PROJECTS: [&str; 5] = [
    "organization",
    "project_entry",
    "api_key",
    "ended_session",
    "partition",
];

/// The tables that are distributed by project, without their partitions.
fn tables(database: &TestDatabase) -> BTreeSet<String> {
    database
        .texts(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace \
             AND relkind IN ('r', 'p') AND NOT relispartition",
        )
        .into_iter()
        .flatten()
        .filter(|name| !OF_ALL_PROJECTS.contains(&name.as_str()) && !name.starts_with("__"))
        .collect()
}

#[test]
fn every_key_and_index_of_a_projects_table_begins_with_the_project() {
    let database = TestDatabase::new();
    let tables = tables(&database);
    assert!(
        ["run", "result_block", "attempt", "verdict_block"]
            .iter()
            .all(|name| tables.contains(*name)),
        "{tables:?}"
    );
    for table in &tables {
        let with_key = database.text(&format!(
            "SELECT count(*) FROM pg_index WHERE indrelid = '{table}'::regclass AND indisprimary"
        ));
        assert_eq!(with_key.as_deref(), Some("1"), "{table} has no primary key");
        let first_columns = database.texts(&format!(
            "SELECT attname FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0] \
             WHERE indrelid = '{table}'::regclass"
        ));
        assert!(
            first_columns
                .iter()
                .all(|column| column.as_deref() == Some(project_column(table))),
            "an index of {table} begins with {first_columns:?}"
        );
        let defaults = database.texts(&format!(
            "SELECT attname FROM pg_attribute JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum \
             WHERE attrelid = '{table}'::regclass AND pg_get_expr(adbin, adrelid) LIKE '%nextval%'"
        ));
        assert!(
            defaults.is_empty(),
            "{table} numbers across projects: {defaults:?}"
        );
    }
}

#[test]
fn every_table_with_a_project_is_distributed_and_the_others_are_copied() {
    let database = TestDatabase::new();
    let with_project: BTreeSet<String> = database
        .texts(
            "SELECT relname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid \
             WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition \
             AND attname = 'project_id' AND relname <> 'api_key'",
        )
        .into_iter()
        .flatten()
        .chain(["project".to_owned()])
        .collect();
    assert_eq!(with_project, tables(&database));
    assert!(assay_repository::distribute(database.url()).unwrap().is_empty());

    // The query of `distribute`, over a table like the extension's catalogue. It finds a new table.
    let undistributed = || assay_repository::undistributed(database.url()).unwrap();
    database.execute("CREATE TABLE pg_dist_partition (logicalrelid regclass)");
    let undistributed_tables = undistributed();
    assert_eq!(
        undistributed_tables.first().map(String::as_str),
        Some("project"),
        "the table of projects is distributed first"
    );
    let mut expected = with_project;
    expected.extend(OF_ALL_PROJECTS.map(str::to_owned));
    expected.extend(["__diesel_schema_migrations", "__migration_checksum"].map(str::to_owned));
    expected.remove("partition");
    assert_eq!(
        BTreeSet::from_iter(
            undistributed_tables
                .into_iter()
                .filter(|table| table != "pg_dist_partition")
        ),
        expected
    );
    database.execute(
        "INSERT INTO pg_dist_partition SELECT oid FROM pg_class; \
         CREATE TABLE later (project_id uuid, number integer, PRIMARY KEY (project_id, number)); \
         CREATE TABLE small (id uuid PRIMARY KEY)",
    );
    assert_eq!(undistributed(), ["later", "small"]);
}

#[test]
fn no_foreign_key_leads_from_one_machine_to_another() {
    let database = TestDatabase::new();
    let tables = tables(&database);
    let keys = database.texts(
        "SELECT conrelid::regclass || '.' || (SELECT attname FROM pg_attribute WHERE attrelid = conrelid AND attnum = conkey[1]) \
             || ' ' || confrelid::regclass || '.' || (SELECT attname FROM pg_attribute WHERE attrelid = confrelid AND attnum = confkey[1]) \
         FROM pg_constraint WHERE contype = 'f' AND connamespace = 'public'::regnamespace AND conparentid = 0",
    );
    assert!(keys.len() > 8, "{keys:?}");
    for key in keys.into_iter().flatten() {
        let (from, to) = key.split_once(' ').unwrap();
        let is_by_project = |column: &str| {
            let (table, column) = column.split_once('.').unwrap();
            tables.contains(table) && column == project_column(table)
        };
        let is_of_all = |column: &str| OF_ALL_PROJECTS.contains(&column.split('.').next().unwrap());
        assert!(
            [from, to].into_iter().all(is_by_project) || [from, to].into_iter().all(is_of_all),
            "{key}"
        );
    }
}

/// The migration that creates the tables, which are distributed afterwards.
const BEFORE_DISTRIBUTION: &str = "2026-11-26-000041";

#[test]
fn later_migrations_run_on_a_distributed_database() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../migrations");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_str().unwrap()[..BEFORE_DISTRIBUTION.len()] <= *BEFORE_DISTRIBUTION {
            continue;
        }
        let sql = std::fs::read_to_string(path.join("up.sql")).unwrap();
        assert_eq!(obstacles(&sql), Vec::<&str>::new(), "{}", path.display());
    }
}

#[test]
fn the_lint_of_migrations_rejects_what_a_distributed_database_refuses() {
    for (sql, obstacle) in [
        ("DROP INDEX run_by_start;", "not in a DO block"),
        ("CREATE INDEX x ON run (project_id, suite);", "not in a DO block"),
        (
            "CREATE UNIQUE INDEX x ON run (project_id, suite);",
            "not in a DO block",
        ),
        (
            "ALTER TABLE verdict_block ADD COLUMN x integer;",
            "not in a DO block",
        ),
        (
            "DO $$ BEGIN DROP INDEX a, b; END $$;",
            "several indexes in one DROP",
        ),
        (
            "DO $$ BEGIN ALTER TABLE run ADD COLUMN x text CHECK (x <> ''); END $$;",
            "a constraint with a column",
        ),
        (
            "DO $$ BEGIN ALTER TABLE run ADD COLUMN x text, ADD CONSTRAINT c CHECK (x <> ''); END $$;",
            "a constraint with another change",
        ),
        (
            "UPDATE project SET observed = gen_random_uuid();",
            "a volatile function in an update",
        ),
    ] {
        assert_eq!(obstacles(sql), [obstacle], "{sql}");
    }
    let fine = "-- ALTER TABLE run, DROP INDEX x\n\
         CREATE TABLE later (project_id uuid NOT NULL REFERENCES project (id), x integer CHECK (x > 0), PRIMARY KEY (project_id, x));\n\
         DO $$ BEGIN\n\
             DROP INDEX run_by_start;\n\
             CREATE INDEX run_by_start ON run (project_id, started_at);\n\
             ALTER TABLE run ADD COLUMN x text NOT NULL DEFAULT '', ADD COLUMN y uuid DEFAULT gen_random_uuid();\n\
             ALTER TABLE run ADD CONSTRAINT run_x_check CHECK (x <> '');\n\
             ALTER TABLE run ALTER COLUMN suite SET NOT NULL;\n\
             UPDATE run SET x = coalesce(suite, '');\n\
         END $$;";
    assert_eq!(obstacles(fine), Vec::<&str>::new());
}

/// The statements of a migration that a distributed database refuses, each once.
///
/// The extension takes over each change of a distributed table, together with the statements that were sent with it. In
/// a DO block each statement is on its own.
fn obstacles(sql: &str) -> Vec<&'static str> {
    let code: String = sql
        .lines()
        .map(|line| line.split("--").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join(" ")
        .to_uppercase();
    let (outside, inside): (Vec<_>, Vec<_>) = code
        .split("$$")
        .enumerate()
        .partition(|(place, _)| place % 2 == 0);
    let statements = |parts: &[(usize, &str)]| -> Vec<String> {
        let parts = parts.iter().flat_map(|(_, part)| part.split(';'));
        parts.map(|statement| format!(" {} ", statement.trim())).collect()
    };
    let (outside, inside) = (statements(&outside), statements(&inside));
    let changes_table = |statement: &String| {
        [
            " ALTER TABLE ",
            " CREATE INDEX ",
            " CREATE UNIQUE INDEX ",
            " DROP INDEX ",
        ]
        .iter()
        .any(|verb| statement.contains(verb))
    };
    let added = |statement: &String| -> Vec<String> {
        let columns = statement.split("ADD COLUMN").skip(1);
        columns
            .map(|column| column.split(", A").next().unwrap().to_owned())
            .collect()
    };
    let any = |is_bad: &dyn Fn(&String) -> bool| inside.iter().chain(&outside).any(is_bad);
    let mut refusals = Vec::new();
    if outside.iter().any(changes_table) {
        refusals.push("not in a DO block");
    }
    if any(&|statement| statement.contains(" DROP INDEX ") && statement.contains(',')) {
        refusals.push("several indexes in one DROP");
    }
    if any(&|statement| {
        let constraints = [" CHECK ", " CHECK(", " REFERENCES ", " UNIQUE ", " PRIMARY KEY "];
        added(statement)
            .iter()
            .any(|column| constraints.iter().any(|word| column.contains(word)))
    }) {
        refusals.push("a constraint with a column");
    }
    if any(&|statement| {
        let changes = [" ADD ", " DROP ", " ALTER COLUMN "].iter();
        let count: usize = changes.map(|change| statement.matches(change).count()).sum();
        statement.contains(" ALTER TABLE ") && statement.contains(" ADD CONSTRAINT ") && count > 1
    }) {
        refusals.push("a constraint with another change");
    }
    if any(&|statement| {
        let volatile = ["GEN_RANDOM_UUID(", "CLOCK_TIMESTAMP(", "RANDOM()"];
        statement.contains(" UPDATE ") && volatile.iter().any(|function| statement.contains(function))
    }) {
        refusals.push("a volatile function in an update");
    }
    refusals
}

#[test]
fn projects_and_keys_are_looked_up_without_tables_of_projects() {
    listen();
    let world = World::new();
    let tables = tables(&world.database);
    let (store, project) = (&world.store, &world.project);
    store
        .create_ingest_key(project.id, &key(1), &IngestTerms::default())
        .unwrap();
    let statements = recorded_statements(|| {
        assert_eq!(store.all_projects().unwrap().len(), 1);
        assert_eq!(store.projects(&world.caller).unwrap().len(), 1);
        assert_eq!(store.projects_of(world.caller.organization).unwrap().len(), 1);
        assert!(store.project(&world.caller, project.id, NOW).unwrap().is_some());
        assert!(store.project_of_key(project.id, NOW).unwrap().is_some());
        assert!(store.key(&KeyHash([9; 32])).unwrap().is_none());
        assert!(store.ingest_key(&KeyHash([1; 32])).unwrap().is_some());
        assert_eq!(store.keys(world.caller.organization).unwrap().len(), 1);
    });
    assert!(statements.len() >= 8, "{statements:?}");
    for statement in &statements {
        let references = Statement::of(statement).references(&tables);
        assert!(references.is_empty(), "{statement}");
    }
}

/// Replaces every error with one message.
struct ConstantClassifier;

impl Classifier for ConstantClassifier {
    fn classify(&self, _: &[ErrorDetail]) -> Option<ErrorClass> {
        Some(class("renamed"))
    }
}

#[test]
fn every_statement_names_its_one_project_by_a_constant() {
    listen();
    let world = World::new();
    // Another project of the same caller, whose rows no statement about the first may read.
    let other = world.another_project("other");
    world
        .store
        .record(other.id, &report("o").test("x", "f"), &CountingJudge, NOW)
        .unwrap();
    let statements = recorded_statements(|| exercise(&world));
    let seen_tables = assert_of_one_project(&statements, &world);
    let unseen: Vec<_> = tables(&world.database)
        .difference(&seen_tables)
        .cloned()
        .collect();
    assert!(unseen.is_empty(), "no statement names {unseen:?}");
    for statement in statements {
        let is_of_other = Statement::of(&statement).binds.contains(&other.id.to_string());
        assert!(!is_of_other, "of another project: {statement}");
    }
}

/// Asserts that each statement names tables of the coordinator, or tables of the world's project with the project as a
/// constant. Returns the latter.
pub(crate) fn assert_of_one_project(statements: &[String], world: &World) -> BTreeSet<String> {
    let tables = tables(&world.database);
    let on_coordinator = OF_ALL_PROJECTS.map(str::to_owned).into();
    let (mut seen_tables, mut wrong) = (BTreeSet::new(), Vec::new());
    for statement in statements {
        let statement = Statement::of(statement);
        let references = statement.references(&tables);
        if !references.is_empty() && !statement.references(&on_coordinator).is_empty() {
            wrong.push(format!("of two machines: {}", statement.sql));
        }
        for table in references {
            if !statement.has_constant(&table, &world.project.id.to_string()) {
                wrong.push(format!(
                    "{} without the project as a constant: {}",
                    table.name, statement.sql
                ));
            }
            seen_tables.insert(table.table);
        }
        // A distributed table forbids changing a row's distribution column, even to the same value.
        let change = statement
            .sql
            .split_once("DO UPDATE SET")
            .map_or("", |(_, change)| change);
        if change.replace('"', "").contains("project_id =") {
            wrong.push(format!("changes the project of a row: {}", statement.sql));
        }
        // Its command tag counts the rows that the condition left unchanged, too.
        if statement.sql.contains(" SELECT ") && change.contains(" WHERE ") && !change.contains("RETURNING") {
            wrong.push(format!("counts by the command tag: {}", statement.sql));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    seen_tables
}

/// Runs every read and every write at least once.
fn exercise(world: &World) {
    let (store, project) = (&world.store, &world.project);
    let imported = world.import(&report("a").shard(1, 2).test("x", "fp").test("y", "p"));
    world.import(&report("a").shard(2, 2).test("x", "f").test_in("y", None, "p"));
    world.import(&report("a").shard(2, 2).content(8).test("x", "p"));
    world.import(
        &report("a")
            .shard(2, 2)
            .content(7)
            .replacing()
            .test("x", "p")
            .test("z", "s"),
    );
    let mut in_a_browser = report("b").at(2 * HOUR).branch("topic").test("x", "ff");
    in_a_browser.tests[0].attempts[0].attempt.browser = Some("firefox".to_owned());
    world.import(&in_a_browser);
    let (x, month) = (any_file("x"), period(Days::Thirty));
    store.branches(project).unwrap();
    let mut query = run_query();
    (query.branch, query.sha) = (Some("main".to_owned()), Some("c0f".to_owned()));
    store.runs(project, &query).unwrap();
    store.run(project, imported.run_id).unwrap().unwrap();
    let page = SomeTests::Page { offset: 0, limit: 2 };
    store.run_with(project, imported.run_id, &page).unwrap().unwrap();
    let page = SomeTests::Slowest { offset: 0, limit: 2 };
    store.run_with(project, imported.run_id, &page).unwrap().unwrap();
    store.attempts(project, imported.run_id, &x).unwrap().unwrap();
    let named = assay_domain::test::TestName {
        name: x.name.clone(),
        file_path: Some("a.spec.ts".to_owned()),
    };
    store.last_errors(project, &[(imported.run_id, named)]).unwrap();
    store.history(project, &x, &month).unwrap();
    store.verdict(project, &x).unwrap();
    store.test_summary(project, &x, &month, 3).unwrap();
    let signatures = SignatureQuery {
        period: month,
        branch: Some("main".to_owned()),
        category: None,
        search: Some("broke".to_owned()),
        sort: SignatureSort::Occurrences,
        page: 1,
        per_page: PerPage::Ten,
    };
    let page = store.signatures(project, &signatures).unwrap();
    let fingerprint = &page.signatures[0].fingerprint;
    store.signature(project, fingerprint, &month).unwrap().unwrap();
    let history = world.history(14);
    world.test_names(&[0]).unwrap();
    let run = history
        .runs
        .iter()
        .find(|run| run.present.contains(0))
        .unwrap()
        .run
        .clone();
    let keys = [result_key(0, run.number, run.started_at)];
    world.final_results(&keys).unwrap();
    in_snapshot(store, project, |snapshot| {
        snapshot.observations(NOW.plus_days(-14), NOW)?;
        let failed = snapshot.failed_run(imported.run_id)?.unwrap();
        snapshot.final_statuses(&failed, &[0])?;
        snapshot.window_errors(failed.run_number, &[0], NOW.plus_days(-14), NOW)?;
        snapshot.stored_facts(&[0])?;
        snapshot.test_ordinals(std::slice::from_ref(&x))?;
        snapshot.signature_numbers(&["fingerprint".to_owned()])
    })
    .unwrap();
    let ingest_key = key(7);
    store
        .create_ingest_key(project.id, &ingest_key, &IngestTerms::default())
        .unwrap();
    let budget = UploadBudget {
        key: ingest_key.id,
        bytes: 1,
        of_day: DailyLimits::default(),
    };
    let within = RecordingRules::of_key(&IngestTerms::default()).within(budget);
    let sent = report("sent").at(HOUR).test("x", "p");
    store
        .record_under(project.id, &sent, within, &CountingJudge, NOW)
        .unwrap();
    store
        .record_upload(&Upload {
            key: ingest_key.id,
            project: project.id,
            at: NOW,
            run_id: imported.run_id,
            run_number: 1,
            shard_id: imported.shard_id,
            effect: Effect::Added,
            bytes: 1,
            files: 1,
            client: None,
            sender: None,
        })
        .unwrap();
    let decision = GateDecision {
        run_id: imported.run_id,
        shard_id: Some(imported.shard_id),
        outcome: GateOutcome::Excused,
        failed: 1,
        excused: vec![excused("x")],
    };
    let rules = RecordingRules::Unrestricted;
    store.record_decision(project.id, &decision, rules, NOW).unwrap();
    let fix = NewFix {
        test_name: "x".to_owned(),
        file_path: excused("x").file_path,
        revision: "c0ffee1".to_owned(),
        rate_before: Some(0.1),
        check: None,
    };
    store.record_fix(project.id, &fix, rules, NOW).unwrap();
    assert!(
        matches!(store.fixes(project, &x, &period(Days::Thirty)).unwrap(), assay_domain::test::TestLookup::Found(of_test) if of_test.fixes.len() == 1)
    );
    assert_eq!(store.decisions(project, imported.run_id).unwrap().len(), 1);
    store.uploads(project.id, 10).unwrap();
    store
        .rebuild(project.id, &CountingJudge, NOW, &mut |_, _| ())
        .unwrap();
    exercise_outbox(world);
    let change = ProjectChange {
        stable_branch: Some("topic".to_owned()),
        ..ProjectChange::default()
    };
    store
        .set_project(project.id, &change, &CountingJudge, NOW)
        .unwrap();
    store
        .refingerprint(project.id, &ConstantClassifier)
        .unwrap()
        .unwrap();
}

/// Everything that assay-notify does, apart from the list of all projects.
fn exercise_outbox(world: &World) {
    let (store, id) = (&world.store, world.project.id);
    let change = ProjectChange {
        chat: Some(Some(ChatEvent::ALL.to_vec())),
        ..ProjectChange::default()
    };
    store.set_project(id, &change, &CountingJudge, NOW).unwrap();
    world.import(&report("broken").test("x", "f").test("y", "p"));
    store.register(id, Some(ChatEvent::ALL), NOW).unwrap();
    let edges = store.unsettled(id).unwrap();
    let numbers: Vec<i32> = edges.iter().map(|edge| edge.number).collect();
    assert!(!numbers.is_empty());
    store.settle(id, &numbers, &[], NOW).unwrap();
    store.settled(id).unwrap();
    store.edge_names(id, &[0], &[0]).unwrap();
    let thread = uuid::Uuid::from_u128(1);
    for number in 0..2 {
        let message = NewMessage {
            target: "team",
            number,
            id: uuid::Uuid::from_u128(number.unsigned_abs().into()),
            kind: MessageKind::Changes,
            through: 1,
            content: Some("{}".to_owned()),
            thread: Some(thread),
        };
        store.add_message(id, &message, NOW).unwrap();
    }
    store.messages(id, "team").unwrap();
    let key = |number| MessageKey {
        project: id,
        target: "team",
        number,
    };
    store.cover(key(1), 2).unwrap();
    assert_eq!(store.due(id, "team", NOW).unwrap().unwrap().number, 0);
    let delivered = Attempt::Delivered { receipt: None };
    store.note_attempt(key(0), &delivered, NOW).unwrap();
    let failed = Attempt::Failed {
        reason: "no".to_owned(),
        next: None,
    };
    store.note_attempt(key(1), &failed, NOW).unwrap();
    store.retry_all(id, NOW).unwrap();
    store.forget(id, NOW.plus_days(9)).unwrap();
}
