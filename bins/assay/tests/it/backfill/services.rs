//! The routes of the other services, whose cases are in `testdata/backfill`, and a folder. Each history is compared as CSV.

use std::{collections::BTreeMap, fs, path::Path};

use assay_domain::timestamp::Timestamp;
use assay_testkit::{Cli, ServedWorld, assert_contains, text};
use serde::Deserialize;
use serde_json::Value;

use super::{
    days_ago,
    host::{Answer, Host, json, status, zipped},
    succeeded,
};
use crate::junit;

/// What a service answers, and the history that this becomes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    #[serde(rename = "why")]
    _why: String,
    flags: String,
    environment: BTreeMap<String, String>,
    /// The header without which every request fails.
    header: (String, String),
    /// The answers by path, with one value of the query or without it: JSON, a page with the address of the next one, or the
    /// report as it is (`xml`), in an archive (`zip`) or behind a redirection to another host (`storage`).
    routes: BTreeMap<String, Value>,
    rows: Vec<String>,
}

impl Case {
    fn answer(&self, path: &str, storage: &Host) -> Answer {
        let without_query = path.split('?').next().unwrap();
        let filtered = self.routes.iter().find(|(route, _)| {
            let filter = route
                .strip_prefix(without_query)
                .and_then(|rest| rest.strip_prefix('?'));
            filter.is_some_and(|filter| path.split(['?', '&']).any(|part| part == filter))
        });
        let route = filtered
            .map(|(_, route)| route)
            .or_else(|| self.routes.get(without_query));
        match route.map(|route| (route, route.as_str(), route.get("next"))) {
            None => status(404, ""),
            Some((_, Some("xml"), _)) => (200, String::new(), xml().into_bytes()),
            Some((_, Some("zip"), _)) => (200, String::new(), zipped(&[("junit.xml", &xml())], false)),
            Some((_, Some("storage"), _)) => status(302, &format!("Location: {}/a\r\n", storage.url)),
            Some((_, Some(other), _)) => panic!("{other}"),
            Some((route, None, Some(next))) => {
                let link = format!("Link: <{}>; rel=\"next\"\r\n", next.as_str().unwrap());
                (200, link, route["body"].to_string().into_bytes())
            }
            Some((route, None, None)) => json(route),
        }
    }
}

/// The rows of a history: test, run, branch, revision, variant, retry and status.
fn rows(folder: &tempfile::TempDir) -> Vec<String> {
    let text = fs::read_to_string(folder.path().join("h.csv")).unwrap();
    let columns = |line: &str| {
        let cells: Vec<_> = line.split(',').collect();
        [0, 2, 4, 5, 6, 8, 9]
            .map(|index| cells[index].to_owned())
            .join(",")
    };
    text.lines()
        .skip(1)
        .filter(|line| line.contains("T10:"))
        .map(columns)
        .collect()
}

fn xml() -> String {
    junit::report(&start(), &[("pays", false)])
}

/// A start that identifies its row.
fn start() -> String {
    format!("{}T10:00:00Z", days_ago(3).to_string().split('T').next().unwrap())
}

fn check(path: &Path) {
    let ms = start().parse::<Timestamp>().unwrap().unix_ms();
    let at = |later: i64| (ms + later).to_string();
    let text = fs::read_to_string(path).unwrap().replace("{start}", &start());
    let text = text.replace("\"{ms+1}\"", &at(1)).replace("\"{ms+2}\"", &at(2));
    // The storage gets no token.
    let tokens = ["authorization", "private-token", "circle-token"];
    let storage =
        Host::start(
            move |_, asked| match tokens.iter().any(|name| asked.headers.contains_key(*name)) {
                true => status(400, ""),
                false => (200, String::new(), xml().into_bytes()),
            },
        );
    let case = text.clone();
    let host = Host::start(move |url, asked| {
        let case: Case = serde_json::from_str(&case.replace("{host}", url)).unwrap();
        match asked.headers.get(&case.header.0) == Some(&case.header.1) {
            true => case.answer(&asked.path, &storage),
            false => status(401, ""),
        }
    });
    let case: Case = serde_json::from_str(&text.replace("{host}", &host.url)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let flags = case.flags.split(' ');
    let arguments = ["backfill", "--retry-for", "0", "--csv", "h.csv"]
        .into_iter()
        .chain(flags);
    let mut run = Cli::new("").command(&arguments.collect::<Vec<_>>());
    run.envs(&case.environment).current_dir(folder.path());
    succeeded(run);
    assert_eq!(rows(&folder), case.rows, "{}", path.display());
}

#[test]
fn each_service_becomes_the_history_of_its_case() {
    let cases = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/backfill")).unwrap();
    let cases: Vec<_> = cases.map(|case| case.unwrap().path()).collect();
    assert_eq!(cases.len(), 5);
    cases.iter().for_each(|case| check(case));
}

#[test]
fn the_paths_of_a_folder_name_run_branch_and_commit() {
    let folder = tempfile::tempdir().unwrap();
    for (path, pays) in [
        ("main/run-9-c0ffee", true),
        ("main/run-10-decaf", false),
        ("notes", true),
    ] {
        let path = folder.path().join("builds").join(path);
        fs::create_dir_all(path.join("out")).unwrap();
        fs::write(
            path.join("out/junit.xml"),
            junit::report(&start(), &[("pays", pays)]),
        )
        .unwrap();
    }
    let flags = [
        "backfill",
        "--dir",
        "builds",
        "--pattern",
        "{branch}/run-{run}-{commit}",
        "--csv",
        "h.csv",
    ];
    let mut run = Cli::new("").command(&flags);
    run.current_dir(folder.path());
    let shown = succeeded(run);
    assert_contains(&shown, "skipped 1 file that the pattern does not match");
    assert_eq!(
        rows(&folder),
        [
            "totals > pays,main/9/c0ffee,main,c0ffee,,0,passed",
            "totals > pays,main/10/decaf,main,decaf,,0,failed"
        ]
    );

    // The dates are those of the reports. All files were written just now.
    let dated = |more: &[&str]| {
        let mut run = Cli::new("").command(&[&flags[..5], more].concat());
        run.current_dir(folder.path()).output().unwrap()
    };
    let day = start().split('T').next().unwrap().to_owned();
    let plan = String::from_utf8(dated(&["--plan"]).stdout).unwrap();
    assert_contains(&plan, &format!("2 runs of dir builds, from {day} to {day}"));
    let none = assay_testkit::stderr_text(&dated(&["--plan", "--days", "2"]));
    assert_contains(&none, "no finished run of the last 2 days");
}

/// Jenkins numbers the builds of each branch from 1, and those of a job that was made again once more.
#[test]
fn builds_of_one_number_are_one_run_only_with_one_branch_and_commit() {
    let world = ServedWorld::with_ingest(&[]);
    let folder = tempfile::tempdir().unwrap();
    let builds = [
        ("main/1-c0ffee/unit", true),
        ("main/1-c0ffee/e2e", true),
        ("main/1-decaf/unit", true),
        ("feature/1-c0ffee/unit", false),
        ("feature/2-beef/unit", false),
    ];
    for (path, pays) in builds {
        let path = folder.path().join("builds").join(path);
        fs::create_dir_all(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        fs::write(path.join("junit.xml"), junit::report(&start(), &[(name, pays)])).unwrap();
    }
    let key = world
        .cli
        .json(&["key", "create-ingest", "--project", "web", "--backfill"]);
    let run = |arguments: &[&str]| {
        let mut run = world.cli.command(arguments);
        run.current_dir(folder.path())
            .env("ASSAY_INGEST_URL", world.server.ingest().base())
            .env("ASSAY_INGEST_KEY", text(&key["key"]));
        run
    };
    let flags = [
        "backfill",
        "--dir",
        "builds",
        "--pattern",
        "{branch}/{run}-{commit}",
    ];
    let shown = succeeded(run(&[&flags[..], &["--csv", "h.csv"]].concat()));
    assert_contains(&shown, "1 day, 4 runs.");
    succeeded(run(&["analyze", "h.csv"]));
    let mut runs: Vec<_> = rows(&folder)
        .iter()
        .map(|row| row.split(',').nth(1).unwrap().to_owned())
        .collect();
    runs.sort();
    let expected = [
        "feature/1/c0ffee",
        "feature/2/beef",
        "main/1/c0ffee",
        "main/1/c0ffee",
        "main/1/decaf",
    ];
    assert_eq!(runs, expected);

    // Another commit has the key of one of them.
    let other = [
        "upload",
        "builds/main/1-decaf",
        "--run-key",
        "main/1/decaf",
        "--commit",
        "5eed",
    ];
    succeeded(run(&other));
    let output = run(&flags).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert_contains(&shown, "Of 4 runs, 4 have reports; reports: 3 stored, 1 refused.");
    assert_eq!(output.status.code(), Some(1));
    fs::remove_dir_all(folder.path().join(".assay")).unwrap();
    let again = [&flags[..], &["--days", "10"]].concat();
    fs::remove_dir_all(folder.path().join("builds/main/1-decaf")).unwrap();
    assert_contains(
        &succeeded(run(&again)),
        "Of 3 runs, 3 have reports; reports: 3 there already.",
    );
}

#[test]
fn a_history_that_was_written_before_stays_until_the_next_one_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let build = folder.path().join("builds/1");
    fs::create_dir_all(&build).unwrap();
    fs::write(build.join("junit.xml"), "<testsuites/>").unwrap();
    let written = |csv: &str| {
        let flags = ["backfill", "--dir", "builds", "--pattern", "{run}", "--csv", csv];
        let mut run = Cli::new("").command(&flags);
        run.current_dir(folder.path()).output().unwrap().status.code()
    };
    let history = folder.path().join("h.csv");
    fs::write(&history, "the old one").unwrap();
    assert_eq!(written("h.csv"), Some(1));
    assert_eq!(fs::read_to_string(&history).unwrap(), "the old one");

    fs::write(
        build.join("junit.xml"),
        junit::report(&start(), &[("pays", false)]),
    )
    .unwrap();
    std::os::unix::fs::symlink("h.csv", folder.path().join("link.csv")).unwrap();
    assert_eq!(written("link.csv"), Some(0));
    assert!(fs::read_to_string(&history).unwrap().contains("totals > pays"));
    // Nothing else is left.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    assert_eq!(written("/dev/null"), Some(0));
}
