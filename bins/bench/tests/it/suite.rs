//! Every subcommand once, on a data set of a few thousand results.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use serde_json::Value;

/// Runs the program with `--json` on a data folder. Its last line is the printed object.
fn bench(dir: &Path, arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_assay-bench"))
        .args(arguments)
        .args(["--json", "--keep-caches", "--seconds", "0.05", "--data-dir"])
        .arg(dir)
        .arg("--server")
        .arg(assay_testkit::program("assay-server"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    let printed = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(printed.lines().last().unwrap_or("null")).unwrap()
}

/// The rows of a table, each with its headings.
fn rows(section: &Value, id: &str) -> Vec<serde_json::Map<String, Value>> {
    let tables = section["tables"].as_array().unwrap();
    let table = tables
        .iter()
        .find(|table| table["id"] == id)
        .unwrap_or_else(|| panic!("no table {id}: {section}"));
    let columns = table["columns"].as_array().unwrap();
    let row = |row: &Value| {
        let cells = row.as_array().unwrap();
        assert_eq!(cells.len(), columns.len());
        columns
            .iter()
            .zip(cells)
            .map(|(column, cell)| (column.as_str().unwrap().to_owned(), cell.clone()))
            .collect()
    };
    table["rows"].as_array().unwrap().iter().map(row).collect()
}

fn row<'a>(rows: &'a [serde_json::Map<String, Value>], name: &str) -> &'a serde_json::Map<String, Value> {
    rows.iter()
        .find(|row| row.values().any(|cell| cell == name))
        .unwrap_or_else(|| panic!("no row {name}"))
}

const SHAPE: [&str; 12] = [
    "--projects",
    "3",
    "--tests",
    "40",
    "--runs-per-day",
    "4",
    "--days",
    "15",
    "--branches",
    "9",
    "--failing",
    "0.3",
];

#[test]
fn a_tiny_data_set_is_made_and_measured() {
    let scratch = tempfile::tempdir_in("/tmp").unwrap();
    let dir = scratch.path();
    let made = bench(dir, &[&["generate"], SHAPE.as_slice()].concat());
    let data = rows(&made, "data");
    let large = row(&data, "0: Large");
    assert_eq!(
        (large["tests"].as_f64(), large["runs"].as_f64()),
        (Some(40.0), Some(60.0))
    );
    assert_eq!(row(&data, "1: Storm")["runs"].as_f64(), Some(56.0));
    let results: f64 = data.iter().map(|row| row["results"].as_f64().unwrap()).sum();
    assert_eq!(made["data"]["results"].as_f64(), Some(results));

    let load = bench(dir, &["load"]);
    let routes = rows(&load, "routes");
    for name in [
        "projects",
        "test status",
        "runs list",
        "run detail",
        "flaky list, every test failing",
    ] {
        let route = row(&routes, name);
        assert!(
            route["p50 ms"].as_f64().unwrap() > 0.0 && route["bytes"].as_f64().unwrap() > 20.0,
            "{route:?}"
        );
        assert!(route["statements"].as_f64().unwrap() >= 1.0, "{route:?}");
    }
    let flaky = load["tables"]
        .as_array()
        .unwrap()
        .iter()
        .find(|table| table["id"] == "flaky")
        .unwrap();
    assert!(
        flaky["notes"][0].as_str().unwrap().contains("the same verdicts"),
        "{flaky}"
    );
    assert!(
        row(&rows(&load, "rivals"), "assay-server")["req/s"]
            .as_f64()
            .unwrap()
            > 0.0
    );
    assert!(
        row(&rows(&load, "run-detail"), "over HTTP, median")["ms"]
            .as_f64()
            .unwrap()
            > 0.0
    );
    assert!(
        row(&rows(&load, "conditional"), "run detail")["304: req/s"]
            .as_f64()
            .unwrap()
            > 0.0
    );
    assert!(
        row(&rows(&load, "cold"), "test status")["cold ms"]
            .as_f64()
            .unwrap()
            > 0.0
    );
    let status = rows(&load, "limits");
    let status = row(&status, "test status");
    assert!(status["pgbench /s"].as_f64().unwrap() > 0.0, "{status:?}");

    let server = assay_testkit::program("assay-server");
    let route = bench(
        dir,
        &["route", "runs list", "--against", server.to_str().unwrap()],
    );
    let servers = rows(&route, "route");
    assert_eq!(servers.len(), 2);
    for server in &servers {
        assert!(server["req/s"].as_f64().unwrap() > 0.0, "{server:?}");
        assert!(server["pgbench /s"].as_f64().unwrap() > 0.0, "{server:?}");
    }

    let import = bench(dir, &["import", "--times", "1"]);
    assert_eq!(
        row(&rows(&import, "import"), "a whole run, every verdict judged")["tests"],
        40.0
    );
    assert!(
        row(&rows(&bench(dir, &["memory"]), "memory"), "idle")["resident MB"]
            .as_f64()
            .unwrap()
            > 1.0
    );
    let pruned = bench(dir, &["prune"]);
    // Its fifteen days are past a retention of 90 days in 75 days at the earliest.
    assert_eq!(row(&rows(&pruned, "prune"), "runs pruned")["value"], 0.0);

    let document = dir.join("performance.md");
    let marks = ["targets", "routes", "prune", "import-machine"]
        .map(|id| format!("<!-- bench:{id} -->\n<!-- /bench:{id} -->\n"));
    std::fs::write(&document, marks.concat()).unwrap();
    bench(dir, &["report", "--docs", document.to_str().unwrap()]);
    let written = std::fs::read_to_string(&document).unwrap();
    assert!(
        written.contains("| test status |")
            && written.contains("commit ")
            && written.contains("| runs pruned |"),
        "{written}"
    );
}

#[test]
fn the_growth_is_measured_over_sizes() {
    let scratch = tempfile::tempdir_in("/tmp").unwrap();
    let shape = [
        "--projects",
        "1",
        "--tests",
        "40",
        "--runs-per-day",
        "2",
        "--days",
        "6",
        "--failing",
        "0.5",
    ];
    let grown = bench(
        scratch.path(),
        &[&["growth", "--sizes", "1/4,1"], shape.as_slice()].concat(),
    );
    let growth = rows(&grown, "growth");
    let exponent = row(&growth, "results, millions")["exponent"].as_f64().unwrap();
    assert!((exponent - 1.0).abs() < 1e-9, "{exponent}");
    assert!(row(&growth, "import of a run, s")["1/4"].as_f64().unwrap() > 0.0);
}

#[test]
fn other_shapes_are_made_and_measured() {
    let scratch = tempfile::tempdir_in("/tmp").unwrap();
    let measured = bench(
        scratch.path(),
        &["shapes", "--only", "runs,branches", "--size", "1/10000"],
    );
    let shapes = rows(&measured, "shapes");
    // A hundred runs are imported. All except the last are stored a hundred times.
    let runs = row(&shapes, "runs in all");
    assert_eq!(runs["a million runs"].as_f64(), Some(9_901.0));
    assert_eq!(runs["10,000 branches"].as_f64(), Some(200.0));
    for name in ["runs list", "test history, 90 days", "import of a run, s"] {
        let measured = row(&shapes, name)["a million runs"].as_f64();
        assert!(measured.unwrap() > 0.0, "{name}");
    }
}
