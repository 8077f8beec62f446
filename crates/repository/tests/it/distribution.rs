//! The schema and every statement are limited to one project, so that the database could be distributed by project.
//!
//! Statements are recorded at the connections, with their parameters. Pruning is left out, because it goes through
//! the projects one by one, and drops periods for all of them.

use std::{cell::RefCell, collections::BTreeSet, sync::Once};

use assay_domain::{
    attempt::ErrorDetail,
    intake::{IngestKeys, IngestTerms, Upload},
    page::PerPage,
    recording::Effect,
    run::SomeTests,
    signature::{Classifier, ErrorClass, SignatureQuery, SignatureSort},
    store::{Administration, ProjectChange, Recorder, Store, in_snapshot},
    window::Days,
};
use assay_testkit::TestDatabase;
use diesel::connection::{Instrumentation, InstrumentationEvent, set_default_instrumentation};

use crate::fixture::*;

/// Small tables that every machine would hold in full.
const EVERYWHERE: [&str; 4] = ["organization", "project", "api_key", "period"];

thread_local! {
    /// The statements of this thread, which runs one test; none while not recording.
    static RECORDED: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
    /// Work to run before a statement of this thread, and the number of statements before it.
    static INTERRUPTION: RefCell<Option<Interruption>> = const { RefCell::new(None) };
}

type Interruption = (usize, Box<dyn FnOnce()>);

/// The statements of some work.
pub(crate) fn recorded_statements(work: impl FnOnce()) -> Vec<String> {
    RECORDED.set(Some(Vec::new()));
    work();
    RECORDED.take().unwrap()
}

/// Runs `work`, and `meanwhile` after this number of its statements. Returns whether `work` sent that many.
pub(crate) fn interrupted<T>(
    after: usize,
    meanwhile: impl FnOnce() + 'static,
    work: impl FnOnce() -> T,
) -> (T, bool) {
    INTERRUPTION.set(Some((after, Box::new(meanwhile))));
    let result = work();
    (result, INTERRUPTION.take().is_none())
}

/// Interrupts the thread's work when it is due. The statements of the interruption itself are not counted.
fn interrupt() {
    match INTERRUPTION.take() {
        Some((0, meanwhile)) => meanwhile(),
        Some((after, meanwhile)) => INTERRUPTION.set(Some((after - 1, meanwhile))),
        None => {}
    }
}

/// Records the statements of every connection that is opened from now on.
pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| set_default_instrumentation(|| Some(Box::new(StatementRecorder))).unwrap());
}

struct StatementRecorder;

impl Instrumentation for StatementRecorder {
    fn on_connection_event(&mut self, event: InstrumentationEvent<'_>) {
        if let InstrumentationEvent::StartQuery { query, .. } = event {
            RECORDED.with_borrow_mut(|statements| {
                statements
                    .iter_mut()
                    .for_each(|statements| statements.push(query.to_string()))
            });
            interrupt();
        }
    }
}

/// The tables that hold a project's data, without their partitions.
fn tables(database: &TestDatabase) -> BTreeSet<String> {
    database
        .texts(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace \
             AND relkind IN ('r', 'p') AND NOT relispartition",
        )
        .into_iter()
        .flatten()
        .filter(|name| !EVERYWHERE.contains(&name.as_str()) && !name.starts_with("__"))
        .collect()
}

#[test]
fn every_key_and_index_of_a_projects_table_begins_with_the_project() {
    let database = TestDatabase::new();
    let tables = tables(&database);
    assert!(
        ["run", "result", "attempt", "verdict"]
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
                .all(|column| column.as_deref() == Some("project_id")),
            "an index of {table} begins with {first_columns:?}"
        );
        // Only a foreign key to a reference table may lack the project. Any other has it on both sides.
        let foreign = database.texts(&format!(
            "SELECT conname || ' to ' || confrelid::regclass FROM pg_constraint \
             WHERE contype = 'f' AND conrelid = '{table}'::regclass \
             AND confrelid::regclass::text NOT IN ('organization', 'project', 'api_key') \
             AND NOT (EXISTS (SELECT FROM pg_attribute WHERE attrelid = conrelid AND attnum = conkey[1] AND attname = 'project_id') \
                 AND EXISTS (SELECT FROM pg_attribute WHERE attrelid = confrelid AND attnum = confkey[1] AND attname = 'project_id'))"
        ));
        assert!(foreign.is_empty(), "{table}: {foreign:?}");
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
    let tables = tables(&world.database);

    let statements = recorded_statements(|| exercise(&world));

    let (mut met, mut wrong) = (BTreeSet::new(), Vec::new());
    for statement in &statements {
        let statement = Statement::of(statement);
        for place in statement.places(&tables) {
            if !statement.has_constant(&place, &world.project.id.to_string()) {
                wrong.push(format!(
                    "{} without the project as a constant: {}",
                    place.name, statement.sql
                ));
            }
            met.insert(place.table);
        }
        // A distributed table forbids changing a row's distribution column, even to the same value.
        let change = statement
            .sql
            .split_once("DO UPDATE SET")
            .map_or("", |(_, change)| change);
        if change.replace('"', "").contains("project_id =") {
            wrong.push(format!("changes the project of a row: {}", statement.sql));
        }
        if statement.binds.contains(&other.id.to_string()) {
            wrong.push(format!("of another project: {}", statement.sql));
        }
    }
    wrong.extend(
        tables
            .difference(&met)
            .map(|table| format!("no statement met {table}")),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Runs every read and every write at least once.
fn exercise(world: &World) {
    let (store, project) = (&world.store, &world.project);
    let imported = world.import(&report("a").shard(1, 2).test("x", "fp").test("y", "p"));
    world.import(&report("a").shard(2, 2).test("x", "f").test_in("y", None, "p"));
    world.import(&report("a").shard(2, 2).content(7).test("x", "p").test("z", "s"));
    let mut in_a_browser = report("b").at(2 * HOUR).branch("topic").test("x", "ff");
    in_a_browser.tests[0].attempts[0].attempt.browser = Some("firefox".to_owned());
    world.import(&in_a_browser);
    let (x, month) = (any_file("x"), window(Days::Thirty));
    store.branches(project).unwrap();
    let mut query = run_query();
    (query.branch, query.sha) = (Some("main".to_owned()), Some("c0f".to_owned()));
    store.runs(project, &query).unwrap();
    store.run(project, imported.run_id).unwrap().unwrap();
    let page = SomeTests::Page { offset: 0, limit: 2 };
    store.run_with(project, imported.run_id, &page).unwrap().unwrap();
    store.attempts(project, imported.run_id, &x).unwrap().unwrap();
    store.history(project, &x, &month).unwrap();
    store.verdict(project, &x).unwrap();
    let signatures = SignatureQuery {
        window: month,
        branch: Some("main".to_owned()),
        category: None,
        search: Some("broke".to_owned()),
        sort: SignatureSort::Occurrences,
        page: 1,
        per_page: PerPage::Ten,
    };
    let page = store.signatures(project, &signatures).unwrap();
    let fingerprint = &page.signatures[0].fingerprint;
    store.new_signatures(project, &month).unwrap();
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
        snapshot.test_ordinal(&x)?;
        snapshot.signature_numbers(&["fingerprint".to_owned()])
    })
    .unwrap();
    let ingest_key = key(7);
    store
        .create_ingest_key(project.id, &ingest_key, &IngestTerms::default())
        .unwrap();
    store
        .record_upload(&Upload {
            key: ingest_key.id,
            project: project.id,
            at: NOW,
            run_id: imported.run_id,
            run_number: 1,
            effect: Effect::Added,
            bytes: 1,
            files: 1,
            client: None,
        })
        .unwrap();
    store.uploads(project.id, 10).unwrap();
    store
        .rebuild(project.id, &CountingJudge, NOW, &mut |_, _| ())
        .unwrap();
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

/// A table in a statement, and its alias.
struct Place {
    table: String,
    name: String,
}

/// A statement with its parameters.
struct Statement {
    sql: String,
    binds: Vec<String>,
}

impl Statement {
    fn of(record: &str) -> Self {
        let (sql, binds) = record.split_once(" -- binds: ").unwrap_or((record, "[]"));
        Self {
            sql: sql.replace('"', "").replace(['\n', '\t'], " "),
            binds: elements(binds),
        }
    }

    /// The indexes of its tables.
    fn places(&self, tables: &BTreeSet<String>) -> Vec<Place> {
        let words: Vec<&str> = self
            .sql
            .split([' ', '(', ')', ','])
            .filter(|word| !word.is_empty())
            .collect();
        let mut places = Vec::new();
        for (index, word) in words.iter().enumerate() {
            let before = if index == 0 { "" } else { words[index - 1] };
            if tables.contains(*word) && ["FROM", "JOIN", "INTO", "UPDATE", "USING", "COPY"].contains(&before)
            {
                let is_renamed = words.get(index + 1) == Some(&"AS");
                let name = if is_renamed { words[index + 2] } else { word };
                places.push(Place {
                    table: (*word).to_owned(),
                    name: name.to_owned(),
                });
            }
        }
        places
    }

    /// Whether this constant is a table's project.
    fn has_constant(&self, place: &Place, project: &str) -> bool {
        let columns_begin = |verb: &str| {
            let after = self.sql.split_once(&format!("{verb} {}", place.table));
            after.is_some_and(|(_, after)| {
                let renamed = format!(" AS {}", place.name);
                let after = after.strip_prefix(&renamed).unwrap_or(after);
                after.trim_start().starts_with("(project_id")
            })
        };
        if columns_begin("COPY") {
            // The rows follow, each with its project.
            return true;
        }
        if columns_begin("INSERT INTO") {
            return self.binds.first().is_some_and(|bound| bound == project);
        }
        let equals = format!("{}.project_id = $", place.name);
        self.sql.match_indices(&equals).any(|(at, _)| {
            let number: String = self.sql[at + equals.len()..]
                .chars()
                .take_while(char::is_ascii_digit)
                .collect();
            let number: usize = number.parse().unwrap();
            self.binds.get(number - 1).is_some_and(|bound| bound == project)
        })
    }
}

/// The elements of a list as `Debug` writes it.
pub(crate) fn elements(list: &str) -> Vec<String> {
    let inner = list
        .trim()
        .strip_prefix('[')
        .and_then(|list| list.strip_suffix(']'));
    let (mut elements, mut current) = (Vec::new(), String::new());
    let (mut depth, mut quoted, mut escaped) = (0_i32, false, false);
    for letter in inner.unwrap_or_default().chars() {
        if quoted {
            quoted = escaped || letter != '"';
            escaped = !escaped && letter == '\\';
        } else {
            match letter {
                '"' => quoted = true,
                '[' | '(' | '{' => depth += 1,
                ']' | ')' | '}' => depth -= 1,
                _ => {}
            }
            if letter == ',' && depth == 0 {
                elements.push(current.trim().to_owned());
                current.clear();
                continue;
            }
        }
        current.push(letter);
    }
    if !current.trim().is_empty() {
        elements.push(current.trim().to_owned());
    }
    elements
}
