//! Every subcommand once, on a data set of a few thousand results.

use std::{
    collections::BTreeMap,
    path::Path,
    process::{Command, Stdio},
};

/// The rows of the table that the program prints, by name and then by heading.
type Rows = BTreeMap<String, BTreeMap<String, f64>>;

/// Runs the program on a data folder, with arguments separated by spaces.
fn bench(dir: &Path, arguments: &str) -> Rows {
    let output = Command::new(env!("CARGO_BIN_EXE_assay-bench"))
        .args(arguments.split(' '))
        .args(["--seconds", "0.05", "--data-dir"])
        .arg(dir)
        .arg("--server")
        .arg(assay_testkit::program("assay-server"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments}: {stderr}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let cells = |line: &str| -> Vec<String> {
        let cells = line.trim_matches(['|', ' ']).split(" | ");
        cells.map(str::to_owned).collect()
    };
    let mut lines = printed.lines().filter(|line| line.starts_with('|')).map(cells);
    let (headings, _rule) = (lines.next().unwrap(), lines.next().unwrap());
    let row = |row: Vec<String>| {
        assert_eq!(row.len(), headings.len(), "{row:?}");
        let number = |(heading, cell): (&String, &String)| {
            let number = cell.replace(',', "").parse().ok()?;
            Some((heading.clone(), number))
        };
        let values = headings.iter().zip(&row).skip(1).filter_map(number);
        (row[0].clone(), values.collect())
    };
    lines.map(row).collect()
}

#[test]
fn a_tiny_data_set_is_made_and_measured() {
    let scratch = tempfile::tempdir_in("/tmp").unwrap();
    let dir = scratch.path();
    let data = bench(
        dir,
        "generate --projects 3 --tests 40 --runs-per-day 4 --days 15 --branches 9 --failing 0.3",
    );
    let large = &data["0: Large"];
    assert_eq!((large["tests"], large["runs"]), (40.0, 60.0));
    assert_eq!(data["1: Storm"]["runs"], 56.0);
    assert!(data.values().all(|project| project["results"] > 0.0), "{data:?}");

    let routes = bench(dir, "load");
    for name in [
        "projects",
        "test status",
        "runs list",
        "run detail",
        "failures of a run",
        "explain_failures of a run",
        "flaky list of the storm",
    ] {
        let route = &routes[name];
        assert!(
            route["p50 ms"] > 0.0 && route["32 connections: answers/s"] > 0.0,
            "{route:?}"
        );
        assert!(route["bytes"] > 20.0, "{route:?}");
    }

    let import = bench(dir, "import --times 1");
    let whole = &import["with verdicts"];
    assert_eq!(whole["tests"], 40.0);
    assert!(whole["seconds"] > 0.0 && whole["WAL kB"] > 1.0, "{whole:?}");
}

#[test]
fn the_growth_is_measured_over_sizes() {
    let scratch = tempfile::tempdir_in("/tmp").unwrap();
    let growth = bench(
        scratch.path(),
        "growth --sizes 1/4,1 --projects 1 --tests 40 --runs-per-day 2 --days 6 --failing 0.5",
    );
    let exponent = growth["results, millions"]["exponent"];
    assert!((exponent - 1.0).abs() < 0.001, "{exponent}");
    assert!(growth["import of a run, s"]["1/4"] > 0.0);
}
