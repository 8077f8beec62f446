//! `assay-admin export`: its files compared with the rows of the database, killed midway, and with damaged results.

use std::{
    fs::{self, File},
    path::Path,
    process::{Output, Stdio},
};

use assay_testkit::{Cli, Logins, Server, World, assert_contains, rfc3339, stderr_text, wait_until};
use diesel::{Connection as _, PgConnection, connection::SimpleConnection as _};
use parquet::{
    file::reader::{FileReader as _, SerializedFileReader},
    record::Field,
};
use serde_json::{Value, json};
use time::{Duration, OffsetDateTime, format_description::well_known::Rfc3339};

/// A failure with a comma, a quote and a line break in its message, a skipped test, and a start.
const REPORT: &str = "<testsuites><testsuite name=\"cart\" timestamp=\"START\">\
    <testcase name=\"adds\" time=\"0.25\"/>\
    <testcase name=\"sums, &quot;all&quot;\" time=\"1.5\">\
        <failure message=\"expected 3,&#10;got &quot;4&quot;\">at cart.ts:9</failure></testcase>\
    <testcase name=\"later\" time=\"0\"><skipped message=\"not yet\"/></testcase></testsuite></testsuites>";

/// Three runs of three tests, these days ago.
fn world(days: [i64; 3]) -> World {
    let world = World::new();
    for (days, key) in days.into_iter().zip(["a", "b", "c"]) {
        let start = rfc3339(OffsetDateTime::now_utc() - Duration::days(days));
        let flags = ["--no-ci", "--branch", "main", "--commit", key, "--run-key", key];
        world.import_report(days * 24 * 60, &REPORT.replace("START", &start), &flags);
    }
    world
}

fn export(world: &World, folder: &Path, more: &[&str]) -> Output {
    let folder = folder.to_str().unwrap();
    let arguments = ["export", "--project", "web", "--json", folder];
    world.cli.run(&[&arguments[..], more].concat())
}

fn answer(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr_text(output)))
}

/// The rows of all files of a table, in the order of their names, as objects.
fn rows(folder: &Path, table: &str) -> Vec<Value> {
    let mut rows = Vec::new();
    for name in names(folder) {
        if name.starts_with(table) && name.ends_with(".parquet") {
            let file = SerializedFileReader::new(File::open(folder.join(&name)).unwrap()).unwrap();
            rows.extend(file.get_row_iter(None).unwrap().map(|row| {
                let row = row.unwrap();
                let fields = row
                    .get_column_iter()
                    .map(|(name, field)| (name.clone(), value(field)));
                Value::Object(fields.collect())
            }));
        }
    }
    rows
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "columns have few of the types of Parquet"
)]
fn value(field: &Field) -> Value {
    match field {
        Field::Null => Value::Null,
        Field::Bool(flag) => json!(flag),
        Field::Int(number) => json!(number),
        Field::Long(number) | Field::TimestampMillis(number) => json!(number),
        Field::Double(number) => json!(number),
        Field::Str(text) => json!(text),
        _ => panic!("no column has {field:?}"),
    }
}

/// The same rows with each number as a real one: Postgres writes 0 for 0.0.
fn reals(mut rows: Vec<Value>) -> Vec<Value> {
    for cell in rows
        .iter_mut()
        .flat_map(|row| row.as_object_mut().unwrap().values_mut())
    {
        if let Some(real) = cell.as_f64() {
            *cell = json!(real);
        }
    }
    rows
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The rows of a statement, as objects with times in milliseconds.
fn stored(world: &World, statement: &str) -> Vec<Value> {
    let json = format!("SELECT coalesce(jsonb_agg(to_jsonb(one)), '[]')::text FROM ({statement}) AS one");
    serde_json::from_str(&world.database.text(&json).unwrap()).unwrap()
}

fn ms(column: &str) -> String {
    format!("(extract(epoch FROM {column}) * 1000)::bigint")
}

#[test]
fn the_files_have_the_rows_of_the_database_and_the_causes_of_the_api() {
    let world = world([3, 2, 1]);
    let folder = world.folder.path().join("out");
    let output = export(&world, &folder, &["--results-per-file", "4"]);
    assert!(output.status.success(), "{}", stderr_text(&output));
    let exported = answer(&output);
    for (field, number) in [
        ("runs", 3),
        ("results", 9),
        ("failures", 3),
        ("tests", 3),
        ("files", 9),
    ] {
        assert_eq!(exported[field], number, "{field}: {exported}");
    }
    assert_eq!(exported["after"], 3);
    assert_eq!(exported["leftOut"], json!([]));

    let run_columns = format!(
        "run, id, suite, branch, commit_sha, tested_revision, pull_request_number, run_url, status, trusted, {} AS started_at, \
         {} AS finished_at, duration_ms, tests, passed, failed, skipped, recovered, shards_received, shards_expected",
        ms("started_at"),
        ms("finished_at")
    );
    let from_view = stored(
        &world,
        &format!("SELECT {run_columns} FROM reader_run ORDER BY run"),
    );
    assert_eq!(rows(&folder, "runs"), from_view);
    let result_columns = format!(
        "run, {} AS run_started_at, test, status, {} AS started_at, duration_ms, attempts, browser",
        ms("run_started_at"),
        ms("started_at")
    );
    let from_view = stored(
        &world,
        &format!("SELECT {result_columns} FROM reader_result ORDER BY run, test"),
    );
    assert_eq!(rows(&folder, "results"), from_view);
    assert_eq!(from_view.len(), 9);
    let from_view = stored(
        &world,
        &format!(
            "SELECT test, test_name, file_path, status, reason, explanation, flake_score, flake_rate, broken_probability, impact, \
             time_lost_ms, {} AS evaluated_at FROM reader_test ORDER BY test",
            ms("evaluated_at")
        ),
    );
    assert_eq!(reals(rows(&folder, "tests")), reals(from_view.clone()));
    assert!(
        from_view.iter().all(|test| test["explanation"].is_string()),
        "{from_view:?}"
    );
    let attempts = stored(
        &world,
        "SELECT run_number AS run, test, execution, retry, message, is_final FROM attempt ORDER BY 1, 2, 3, 4",
    );
    let exported: Vec<Value> = rows(&folder, "attempts")
        .into_iter()
        .map(|row| {
            let columns = ["run", "test", "execution", "retry", "message", "is_final"];
            Value::Object(
                columns
                    .map(|column| (column.to_owned(), row[column].clone()))
                    .into_iter()
                    .collect(),
            )
        })
        .collect();
    assert_eq!(exported, attempts);

    // The causes are those of the API.
    let server = Server::start_with(world.database.url(), &[]);
    let failures = rows(&folder, "failures");
    for failure in &failures {
        let runs = stored(
            &world,
            &format!("SELECT id FROM run WHERE number = {}", failure["run"]),
        );
        let path = format!(
            "/api/v1/projects/{}/runs/{}/failures",
            world.project,
            runs[0]["id"].as_str().unwrap()
        );
        let answer = server.client().get(&path, Some(&world.key)).json();
        let of_api = &answer["failures"][0];
        for (column, pointer) in [
            ("cause", "/cause"),
            ("mine", "/mine"),
            ("flake", "/probabilities/flake"),
            ("this_change", "/probabilities/thisChange"),
            ("action", "/action"),
            ("explanation", "/explanation"),
            ("fingerprint", "/fingerprint"),
            ("title", "/title"),
        ] {
            assert_eq!(
                Some(&failure[column]),
                of_api.pointer(pointer),
                "{column}: {of_api}"
            );
        }
    }
    assert_eq!(failures.len(), 3);

    // The text format has the same rows, and the documented columns.
    let csv = world.folder.path().join("csv");
    assert!(export(&world, &csv, &["--format", "csv"]).status.success());
    let page =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/export.md")).unwrap();
    for table in ["runs", "results", "attempts", "failures", "tests"] {
        let name = names(&csv)
            .into_iter()
            .find(|name| name.starts_with(table))
            .unwrap();
        let mut reader = csv::Reader::from_path(csv.join(name)).unwrap();
        let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
        let records: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        let of_parquet = rows(&folder, table);
        assert_eq!(records.len(), of_parquet.len(), "{table}");
        for (record, row) in records.iter().zip(&of_parquet) {
            for (column, cell) in header.iter().zip(record) {
                match &row[column] {
                    Value::Null => assert_eq!(cell, ""),
                    Value::String(text) => assert_eq!(cell, text),
                    Value::Number(ms) if column.ends_with("_at") => {
                        let time = OffsetDateTime::parse(cell, &Rfc3339).unwrap();
                        assert_eq!(
                            time.unix_timestamp_nanos() / 1_000_000,
                            ms.as_i64().unwrap().into()
                        );
                    }
                    Value::Number(number) if number.is_f64() => {
                        assert_eq!(cell.parse().ok(), number.as_f64(), "{column}");
                    }
                    other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                        assert_eq!(cell, other.to_string(), "{column}");
                    }
                }
            }
        }
        let section = page.split(&format!("\n### {table}\n")).nth(1).expect(table);
        let documented: Vec<&str> = section
            .split("\n#")
            .next()
            .unwrap()
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split_once("` ").map(|(name, _)| name))
            .collect();
        assert_eq!(documented, header, "{table} in docs/export.md");
    }
}

/// A lock on the results of a run, which is alone in its week.
fn lock_results(world: &World, run: i32) -> PgConnection {
    let partition = format!(
        "SELECT 'result_block_' || name FROM partition, run WHERE run.number = {run} \
         AND run.started_at >= starts_at AND run.started_at < ends_at"
    );
    let partition = world.database.text(&partition).unwrap();
    let mut connection = world.database.connection();
    let lock = format!("BEGIN; LOCK TABLE {partition} IN ACCESS EXCLUSIVE MODE");
    connection.batch_execute(&lock).unwrap();
    connection
}

#[test]
fn a_killed_export_leaves_no_partial_file_and_goes_on_after_its_last_run() {
    let world = world([21, 14, 7]);
    let whole = world.folder.path().join("whole");
    assert!(export(&world, &whole, &[]).status.success());
    let folder = world.folder.path().join("out");
    let path = folder.to_str().unwrap();
    let arguments = ["export", "--project", "web", "--results-per-file", "1", path];
    let holder = lock_results(&world, 2);
    let mut command = world.cli.command(&arguments);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the export stops at the second run", || {
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        world.database.text(waiting).as_deref() == Some("1")
    });
    let second = export(&world, &folder, &["--after", "1"]);
    assert_contains(&stderr_text(&second), "another export is writing to");
    child.kill().unwrap();
    child.wait().unwrap();
    drop(holder);
    assert_eq!(rows(&folder, "runs").len(), 1);
    // A kill between two renames leaves files without that of the runs.
    fs::write(
        folder.join("results-0000000002.parquet"),
        "of a piece that was not completed",
    )
    .unwrap();

    let again = export(&world, &folder, &[]);
    assert_eq!(again.status.code(), Some(1));
    let advice = "has an export up to run 1; to go on after it, add --after 1, else name a new folder";
    assert_contains(&stderr_text(&again), advice);
    let rest = answer(&export(&world, &folder, &["--after", "1"]));
    assert_eq!((&rest["runs"], &rest["after"]), (&json!(2), &json!(3)));
    for table in ["runs", "results", "attempts", "failures", "tests"] {
        assert_eq!(rows(&folder, table), rows(&whole, table), "{table}");
    }
    assert!(
        !names(&folder).iter().any(|name| name.ends_with("unfinished")),
        "{:?}",
        names(&folder)
    );
}

#[test]
fn an_empty_period_is_no_failure_and_a_damaged_run_is_left_out_with_a_line() {
    let world = world([3, 2, 1]);
    let empty = world.folder.path().join("empty");
    let output = export(&world, &empty, &["--to", "2020-01-02"]);
    assert_eq!(
        output.status.code(),
        Some(2),
        "it ends before the retention begins: {}",
        stderr_text(&output)
    );
    let output = export(&world, &empty, &["--from", "2020-01-01", "--to", "2020-01-02"]);
    assert!(output.status.success(), "{}", stderr_text(&output));
    let none = answer(&output);
    assert_eq!((&none["runs"], &none["after"]), (&json!(0), &Value::Null));
    assert_eq!(names(&empty), ["project", "tests.parquet"]);
    for wrong in [
        &["--from", "yesterday"][..],
        &["--from", "2026-11-02", "--to", "2026-11-02"],
        &["--format", "json"],
    ] {
        assert_eq!(export(&world, &empty, wrong).status.code(), Some(2), "{wrong:?}");
    }

    world
        .database
        .execute("UPDATE result_block SET duration_ms = '{1}' WHERE run_number = 2");
    // The pack only serves the engine: the export does not need it.
    world
        .database
        .execute("UPDATE run_pack SET pack = '\\x09' WHERE run_number = 3");
    let folder = world.folder.path().join("out");
    let output = export(&world, &folder, &[]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = stderr_text(&output);
    for line in [
        "left out run 2: the database holds a block of results that cannot be read",
        "1 run left out; `assay-admin doctor`",
    ] {
        assert!(stderr.contains(line), "{line} is missing: {stderr}");
    }
    let exported = answer(&output);
    assert_eq!(
        (
            &exported["runs"],
            &exported["after"],
            &exported["leftOut"][0]["run"]
        ),
        (&json!(2), &json!(3), &json!(2))
    );
    let runs: Vec<Value> = rows(&folder, "runs")
        .into_iter()
        .map(|row| row["run"].clone())
        .collect();
    assert_eq!(runs, [1, 3]);
    let without = world.folder.path().join("without");
    export(&world, &without, &["--without-failures"]);
    assert!(
        !names(&without).iter().any(|name| name.starts_with("failures")),
        "{:?}",
        names(&without)
    );
}

#[test]
fn the_login_of_people_with_sql_reads_three_views_of_all_organizations_and_nothing_else() {
    let world = world([3, 2, 1]);
    let name = world
        .database
        .text("SELECT 'reader_' || current_database()")
        .unwrap();
    let logins = Logins::new(world.database.url(), &name);
    let [_, web, .., reader] = logins.urls();
    for command in [
        &["org", "create", "Other"][..],
        &["project", "create", "--org", "Other", "theirs"],
    ] {
        world.cli.json(command);
    }
    let report = world.file("theirs.xml", &REPORT.replace("START", "2026-11-20T08:00:00Z"));
    world
        .cli
        .json(&["import", "--project", "theirs", "--no-ci", &report]);
    world.cli.json(&["migrate"]);
    // The server's login is enough for an export.
    let folder = world.folder.path().join("out");
    Cli::new(web).json(&["export", "--project", "web", folder.to_str().unwrap()]);
    let mut connection = PgConnection::establish(&reader).unwrap();
    let mut is_allowed = |sql: &str| {
        connection.batch_execute("BEGIN").unwrap();
        let outcome = connection.batch_execute(sql);
        connection.batch_execute("ROLLBACK").unwrap();
        let denials = ["permission denied", "must be owner", "cannot update view"];
        let is_denial = |error: String| {
            assert!(
                denials.iter().any(|denial| error.contains(denial)),
                "{sql}: {error}"
            )
        };
        outcome.map_err(|error| is_denial(error.to_string())).is_ok()
    };
    for view in ["reader_run", "reader_result", "reader_test"] {
        // Division by zero unless the reader sees the projects of both organizations.
        let sees_both = format!("SELECT 1 / (count(DISTINCT project) - 1) FROM {view}");
        assert!(is_allowed(&sees_both), "{view}");
        assert!(!is_allowed(&format!("UPDATE {view} SET project = ''")), "{view}");
    }
    let tables = world.database.texts(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v')",
    );
    for relation in tables
        .into_iter()
        .flatten()
        .filter(|relation| !relation.starts_with("reader_"))
    {
        assert!(!is_allowed(&format!("SELECT FROM {relation}")), "{relation}");
    }
    for sql in [
        "CREATE TABLE own ()",
        "SELECT assay_create_partition(now(), now())",
        "SELECT assay_ingest_key('')",
        "DROP VIEW reader_run",
    ] {
        assert!(!is_allowed(sql), "{sql}");
    }
    // A project that is being deleted disappears at once.
    world
        .database
        .execute("UPDATE project SET deleted_at = now() WHERE name = 'theirs'");
    assert!(is_allowed(
        "SELECT 1 / (CASE WHEN count(DISTINCT project) = 1 THEN 1 ELSE 0 END) FROM reader_result"
    ));
    drop(connection);
    logins.drop_in(&world.database);
}
