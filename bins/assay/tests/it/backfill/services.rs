//! The routes of the other services, whose cases are in `testdata/backfill`, and a folder. Each history is compared as CSV.

use std::{collections::BTreeMap, fs, path::Path};

use assay_domain::timestamp::Timestamp;
use assay_testkit::{Cli, assert_contains};
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
    /// The answers by path, with or without the query: JSON, a page with the address of the next one, or the report as it
    /// is (`xml`), in an archive (`zip`) or behind a redirection to another host (`storage`).
    routes: BTreeMap<String, Value>,
    rows: Vec<String>,
}

impl Case {
    fn answer(&self, path: &str, storage: &Host) -> Answer {
        let without_query = path.split('?').next().unwrap();
        let route = self.routes.get(path).or_else(|| self.routes.get(without_query));
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
    assert_eq!(cases.len(), 4);
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
            "totals > pays,9,main,c0ffee,,0,passed",
            "totals > pays,10,main,decaf,,0,failed"
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
