//! `assay backfill` against receivers of CI services and a real server.

mod host;
mod services;

use std::{
    fs,
    process::{Command, Output, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use assay_domain::timestamp::Timestamp;
use assay_testkit::{Cli, ServedWorld, assert_contains, stderr_text, text};
use serde_json::Value;

use self::host::{CUT, GitHubRun, Host, Leg, github, status, zipped};
use crate::{ingest::now, junit};

fn days_ago(days: i64) -> Timestamp {
    now().parse::<Timestamp>().unwrap().plus_days(-days)
}

fn report(start: Timestamp, pays: bool) -> String {
    junit::report(&start.to_string(), &[("adds", true), ("pays", pays)])
}

fn github_run(id: u64, days: i64, pays: bool) -> GitHubRun {
    let start = days_ago(days).plus_ms(i64::try_from(id).unwrap() * 1_000);
    GitHubRun {
        id,
        start,
        branch: "trunk",
        sha: format!("{id:040x}"),
        is_expired: false,
        is_gone: false,
        fork: None,
        base: None,
        legs: vec![leg("test", "report", 1, start, 0, pays)],
    }
}

/// A job of a run, with its report in an artifact, in zip64 if the run began in an even second.
fn leg(
    job: &'static str,
    artifact: &'static str,
    attempt: u32,
    run: Timestamp,
    after_ms: i64,
    pays: bool,
) -> Leg {
    let report = report(run.plus_ms(after_ms), pays);
    let files = [("out/junit.xml", report.as_str()), ("out/page.html", "<html/>")];
    Leg {
        job,
        artifact,
        attempt,
        after_ms,
        archive: zipped(&files, run.unix_ms() / 1_000 % 2 == 0),
    }
}

/// The storage that archives are redirected to. It knows no token.
fn storage(runs: &[GitHubRun]) -> Host {
    let archives: Vec<_> = runs
        .iter()
        .flat_map(GitHubRun::legs)
        .map(|(id, _, leg)| (format!("/blob/{id}?"), leg.archive.clone()))
        .collect();
    Host::start(move |_, asked| {
        let archive = archives.iter().find(|(path, _)| asked.path.starts_with(path));
        archive.map_or_else(
            || status(404, ""),
            |(_, bytes)| (200, String::new(), bytes.clone()),
        )
    })
}

/// `assay backfill` in a folder, without a server.
fn command(folder: &tempfile::TempDir, url: &str, arguments: &[&str]) -> Command {
    let mut command =
        Cli::new("postgresql://127.0.0.1:1/nowhere").command(&[&["backfill"], arguments].concat());
    command
        .args(["--host-url", url, "--retry-for", "0"])
        .env("GITHUB_TOKEN", "the-token")
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn succeeded(mut command: Command) -> String {
    let output = command.output().unwrap();
    let shown = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        stderr_text(&output)
    );
    assert!(output.status.success(), "{shown}");
    assert!(!shown.contains("the-token"), "the token is shown: {shown}");
    shown
}

#[test]
fn without_a_server_a_history_becomes_a_page_and_a_table() {
    let mut runs: Vec<_> = (1..=12).map(|id| github_run(id, 6, id % 3 > 0)).collect();
    (runs[1].is_gone, runs[3].is_expired) = (true, true);
    runs[4].legs[0].archive = zipped(&[("../../etc/junit.xml", &report(runs[4].start, false))], false);
    let bomb = format!(
        "<testsuite><testcase name=\"a\"/></testsuite>{}",
        " ".repeat(32 << 20)
    );
    runs[5].legs[0].archive = zipped(&[("junit.xml", &bomb)], false);
    runs[6].legs[0].archive = b"no archive".to_vec();
    let nested = format!("PK\x03\x04 junit.xml{}", report(runs[7].start, false));
    runs[7].legs[0].archive = zipped(
        &[("junit.xml", &report(runs[7].start, true)), ("old.zip", &nested)],
        false,
    );
    let start = runs[8].start;
    runs[8].legs.push(leg("cover", "coverage", 1, start, 0, true));
    let folder = tempfile::tempdir().unwrap();
    let storage = storage(&runs);
    let github = github(runs, &storage);
    let flags =
        "--github shop/web --workflow ci.yml --artifacts report* --analyze page.html --csv history.csv";
    let flags: Vec<_> = flags.split(' ').collect();
    let shown = succeeded(command(&folder, &github.url, &flags));
    for part in [
        "1 day, 7 runs. In the last 1 day: ",
        "1 flaky test, 0 broken ones, ",
        "totals > pays",
        "Of 12 runs, 7 have reports; files: 2 deleted by the CI service, 4 not readable.",
        "skipped 1 file of report of 5/5, the first ../../etc/junit.xml: links, archives,",
        "skipped 1 file of report of 8/8, the first old.zip: ",
        "Open page.html",
        "Next: keep it up to date. `assay-admin setup` makes a project and its keys",
        "unpacks to more than 250 times its size",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // The artifact of another name is not asked for, nor another workflow.
    assert_eq!(storage.count("/blob/"), 10);
    assert_eq!(
        github.count("/runs?"),
        github.count("/actions/workflows/ci.yml/runs?")
    );
    // The token goes to the service only, also where it redirects.
    assert!(
        storage
            .asked()
            .iter()
            .all(|asked| !asked.headers.contains_key("authorization"))
    );
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("https://github.com/shop/web/actions/runs/12") && page.contains("trunk"));

    let mut analyze = Cli::new("").command(&["analyze", "history.csv", "--stable-branch", "trunk", "--json"]);
    let analyzed: Value =
        serde_json::from_slice(&analyze.current_dir(folder.path()).output().unwrap().stdout).unwrap();
    assert_eq!(
        (&analyzed["runs"], &analyzed["stableBranch"]),
        (&7.into(), &"trunk".into())
    );
    assert_eq!(analyzed["tests"][0]["status"], "flaky");
}

#[test]
fn a_renamed_repository_is_read_under_its_old_name() {
    let runs = vec![github_run(1, 2, true)];
    let renamed = github(runs.clone(), &storage(&runs));
    let old = Host::start(move |url, asked| {
        if let Some(rest) = asked.path.strip_prefix("/repos/shop/old") {
            return status(301, &format!("Location: {url}/repos/shop/web{rest}\r\n"));
        }
        let token = ("authorization", asked.headers["authorization"].as_str());
        let answer = assay_testkit::Client::new(renamed.url.clone()).get_with(&asked.path, &[token]);
        (answer.status, String::new(), answer.text().into_bytes())
    });
    let folder = tempfile::tempdir().unwrap();
    let shown = succeeded(command(&folder, &old.url, &["--github", "shop/old", "--plan"]));
    assert_contains(&shown, "1 run of github shop/old");
    assert_contains(&shown, "0 without anything to read");
    assert_contains(&shown, "1 file to read, ");
    let expiry = runs[0].start.plus_days(90);
    assert_contains(&shown, &format!("the next file is deleted at {expiry}"));
}

#[test]
fn a_plan_lists_more_runs_than_a_search_does_and_downloads_nothing() {
    let mut runs: Vec<_> = (1..=2_000).map(|id| github_run(id, 60, true)).collect();
    for run in &mut runs {
        run.legs[0].archive = vec![0; 100];
    }
    runs[0].is_expired = true;
    let folder = tempfile::tempdir().unwrap();
    let storage = storage(&[]);
    let github = github(runs, &storage);
    let shown = succeeded(command(
        &folder,
        &github.url,
        &["--github", "shop/web", "--plan", "--json"],
    ));
    let plan: Value = serde_json::from_str(shown.lines().next().unwrap()).unwrap();
    let counts =
        ["runs", "runsWithout", "files", "expired", "bytes"].map(|name| plan[name].as_u64().unwrap());
    assert_eq!(counts, [2_000, 1, 1_999, 1, 199_900], "{plan}");
    assert_eq!((storage.asked().len(), github.count("/zip")), (0, 0));
    // Two for each run, and the pages of the searches.
    assert!(
        (4_020..4_080).contains(&plan["requests"].as_u64().unwrap()),
        "{plan}"
    );
}

/// The answers of a project without its own ids and times of arrival.
fn answers(world: &ServedWorld, project: &str, read_key: &str) -> String {
    let mut all = String::new();
    let get = |below: &str| {
        let path = format!("/api/v1/projects/{project}{below}");
        let answer = world.server.client().get(&path, Some(read_key));
        assert_eq!(answer.status, 200, "{below}: {}", answer.text());
        let mut answer = answer.json();
        // The name of the project and the time of the request differ.
        let fields = answer.as_object_mut().unwrap();
        fields.retain(|name, _| name != "project" && name != "window");
        answer
    };
    let runs = get("/runs?perPage=50");
    all += &runs.to_string();
    for run in runs["runs"].as_array().unwrap() {
        all += &get(&format!("/runs/{}", text(&run["id"]))).to_string();
    }
    all += &get("/errors?days=30").to_string();
    all += &get("/tests/totals%20%3E%20pays?days=30").to_string();
    // What is computed as of the request has a score that ages by the millisecond.
    let flaky = get("/flaky?perPage=50")["tests"].clone();
    for test in flaky.as_array().into_iter().flatten() {
        let of = |name: &str| test[name].to_string();
        all += &[
            "testName",
            "status",
            "statusReason",
            "explanation",
            "timeLostMs",
            "firstFailedAt",
            "failingSince",
            "lastSeenAt",
            "lastRun",
            "runsConsidered",
        ]
        .map(of)
        .join(" ");
    }
    // Each id becomes the number of its first use.
    let mut ids = Vec::new();
    let is_id = |word: &str| word.len() == 36 && word.split('-').map(str::len).eq([8, 4, 4, 4, 12]);
    let words = all.split('"').map(|word| match is_id(word) {
        false => word.to_owned(),
        true => {
            let place = ids.iter().position(|id| id == word).unwrap_or_else(|| {
                ids.push(word.to_owned());
                ids.len() - 1
            });
            format!("id {place}")
        }
    });
    words.collect::<Vec<_>>().join("\"")
}

#[test]
fn a_backfill_that_is_killed_stores_what_uploads_at_the_time_would_have_stored() {
    let world = ServedWorld::with_ingest(&[]);
    let key_of = |project: &str, more: &[&str]| {
        world.cli.json(&[
            "project",
            "create",
            "--org",
            "Shop",
            project,
            "--stable-branch",
            "trunk",
        ]);
        let events = "run_failed,run_recovered,test_broken,test_flaky,test_resolved,new_error";
        world
            .cli
            .json(&["project", "set", project, "--chat-events", events]);
        let key = [&["key", "create-ingest", "--project", project], more].concat();
        text(&world.cli.json(&key)["key"])
    };
    let (key, live_key) = (key_of("old", &["--backfill"]), key_of("live", &["--backfill"]));
    let id_of = |name: &str| {
        let list = world.cli.json(&["project", "list"]);
        let projects = list["projects"].as_array().unwrap().clone();
        text(&projects.iter().find(|project| project["name"] == name).unwrap()["id"])
    };
    // The last ones break a test, so that a message would be due.
    let runs: Vec<_> = (1..=12)
        .map(|id| {
            github_run(
                id,
                13 - i64::try_from(id).unwrap(),
                ![2, 5, 10, 11, 12].contains(&id),
            )
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let sending = |project_key: &str, arguments: &[&str]| {
        let mut command = world.cli.command(arguments);
        command
            .current_dir(folder.path())
            .env("ASSAY_INGEST_URL", world.server.ingest().base())
            .env("ASSAY_INGEST_KEY", project_key)
            .env("GITHUB_TOKEN", "the-token")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    };

    let upload = |key: &str, run: &GitHubRun| {
        let event = serde_json::json!({"head_commit": {"message": "Add carts", "author": {"name": "Ada"}}});
        fs::write(folder.path().join("event.json"), event.to_string()).unwrap();
        fs::create_dir_all(folder.path().join("out")).unwrap();
        let passed = ![2, 5, 10, 11, 12].contains(&run.id);
        fs::write(folder.path().join("out/junit.xml"), report(run.start, passed)).unwrap();
        let mut upload = sending(key, &["upload", "out/junit.xml", "--json"]);
        upload.envs([
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_RUN_ID", &run.id.to_string()),
            ("GITHUB_RUN_ATTEMPT", "1"),
            ("GITHUB_JOB", "test"),
            ("RUNNER_NAME", "runner-1"),
            ("GITHUB_REF_NAME", "trunk"),
            ("GITHUB_SHA", &run.sha),
            ("GITHUB_SERVER_URL", "https://github.com"),
            ("GITHUB_REPOSITORY", "shop/web"),
            ("GITHUB_EVENT_PATH", "event.json"),
        ]);
        let output = upload.output().unwrap();
        assert!(output.status.success(), "{}", stderr_text(&output));
    };
    // At the time, one after the other. The first one was sent to both, so that messages are due from then on.
    upload(&key, &runs[0]);
    runs.iter().for_each(|run| upload(&live_key, run));

    // Later: the service first limits the rate, and the command is killed while it waits for an archive.
    let archives = storage(&runs);
    let (is_stuck, releases) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (stuck, released, behind) = (Arc::clone(&is_stuck), Arc::clone(&releases), archives.url.clone());
    let was_cut = AtomicBool::new(false);
    let storage = Host::start(move |_, asked| {
        if asked.path.starts_with("/blob/7?") && !released.load(Ordering::SeqCst) {
            stuck.store(true, Ordering::SeqCst);
            thread::sleep(Duration::from_secs(600));
        }
        if asked.path.starts_with("/blob/3?") && !was_cut.swap(true, Ordering::SeqCst) {
            return (200, CUT.to_owned(), b"PK".to_vec());
        }
        status(302, &format!("Location: {behind}{}\r\n", asked.path))
    });
    let github = github(runs.clone(), &storage);
    let (behind, was_limited, was_used_up) =
        (github.url.clone(), AtomicBool::new(false), AtomicBool::new(false));
    let limited = Host::start(move |url, asked| {
        if asked.path.contains("/artifacts?") && !was_limited.swap(true, Ordering::SeqCst) {
            return status(403, "Retry-After: 1\r\nX-RateLimit-Remaining: 0\r\n");
        }
        if asked.path.contains("/jobs?") && !was_used_up.swap(true, Ordering::SeqCst) {
            let ends = days_ago(0).unix_ms() / 1_000 + 1;
            let limit = format!("X-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: {ends}\r\n");
            return status(403, &limit);
        }
        let client = assay_testkit::Client::new(behind.clone());
        let headers: Vec<_> = asked
            .headers
            .iter()
            .filter(|(name, _)| *name == "authorization")
            .collect();
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let answer = client.get_with(&asked.path, &headers);
        let named = ["location", "link"]
            .iter()
            .filter_map(|name| Some(format!("{name}: {}\r\n", answer.header(name)?)));
        (
            answer.status,
            named.collect::<String>().replace(&behind, url),
            answer.text().replace(&behind, url).into_bytes(),
        )
    });
    let arguments = ["backfill", "--github", "shop/web", "--host-url", &limited.url];
    let mut killed = sending(&key, &arguments).spawn().unwrap();
    assay_testkit::wait_until("the backfill waits for an archive", || {
        is_stuck.load(Ordering::SeqCst)
    });
    killed.kill().unwrap();
    killed.wait().unwrap();
    let is_judged = || {
        let sql = format!(
            "SELECT (judged = observed)::text FROM project WHERE id = '{}'",
            id_of("old")
        );
        world.database.text(&sql)
    };
    // Only the last report is judged.
    assert_eq!(is_judged().as_deref(), Some("false"));
    releases.store(true, Ordering::SeqCst);
    let shown = succeeded(sending(&key, &arguments));
    assert_contains(
        &shown,
        "Of 12 runs, 12 have reports; reports: 6 stored, 1 there already, 5 sent earlier.",
    );
    assert_contains(
        &shown,
        "Runs older than its plan's retention are stored and not shown.",
    );
    assert_contains(&shown, "assay run --report FILE -- COMMAND");
    // Nothing is read again but the report whose judgement was due.
    assert_eq!((archives.count("/blob/5?"), archives.count("/blob/6?")), (1, 2));
    let again = succeeded(sending(&key, &arguments));
    assert_contains(&again, "Of 12 runs, 12 have reports; reports: 12 sent earlier.");
    fs::remove_file(folder.path().join(".assay/backfill/sent")).unwrap();
    let without_state = succeeded(sending(&key, &arguments));
    assert_contains(
        &without_state,
        "Of 12 runs, 12 have reports; reports: 12 there already.",
    );

    let read_key = text(
        &world
            .cli
            .json(&["key", "create", "--org", "Shop", "--days", "30"])["key"],
    );
    let [old, live] = ["old", "live"].map(&id_of);
    assert_eq!(
        answers(&world, &old, &read_key),
        answers(&world, &live, &read_key)
    );
    // Uploads at the time sent messages. The backfill does not.
    let edges = |id: &str| world.count(&format!("SELECT count(*) FROM edge WHERE project_id = '{id}'"));
    assert_eq!((edges(&old), edges(&live) > 0), (0, true));
    assert_eq!(is_judged().as_deref(), Some("true"));

    // A pull request from a fork, a job that ran again, a matrix whose legs ran at once, and a push to a pull request.
    let mut more: Vec<_> = (101..=104).map(|id| github_run(id, 1, true)).collect();
    more[0].branch = "carts";
    more[0].fork = Some("ada/web");
    let start = more[1].start;
    more[1].legs = vec![
        leg("test", "report", 1, start, 0, false),
        leg("test", "report", 2, start, 600_000, true),
    ];
    let start = more[2].start;
    more[2].legs = vec![
        leg("unit (18)", "unit-18", 1, start, 0, true),
        leg("unit (20)", "unit-20", 1, start, 0, false),
    ];
    (more[3].branch, more[3].base) = ("carts", Some("ba5eba5e"));
    let github = host::github(more.clone(), &self::storage(&more));
    let arguments = ["backfill", "--github", "shop/web", "--host-url", &github.url];
    succeeded(sending(&key, &arguments));
    let stored = world.database.text(&format!(
        "SELECT string_agg(concat_ws(' ', right(commit_sha, 2), branch, coalesce(right(tested_revision, 2), '-'), \
                coalesce(pull_request_number::text, '-'), coalesce(merge_base, '-'), coalesce(suite, '-'), status, attempts), '; ' ORDER BY number) \
         FROM run, LATERAL (SELECT string_agg(job_attempt::text, ',' ORDER BY job_attempt) AS attempts FROM part \
              WHERE part.project_id = run.project_id AND part.run_number = run.number) parts \
         WHERE project_id = '{old}' AND number > 12"
    ));
    assert_eq!(
        stored.as_deref(),
        Some(
            "65 ada:carts 65 7 - test passed 1; 66 trunk - - - test passed 1,2; 67 trunk - - - unit (18) passed 1; \
             67 trunk - - - unit (20) failed 1; 68 carts - - 0ba5eba5e test passed 1"
        )
    );
    // Only the run of a pull request whose list has none asks for it.
    assert_eq!(github.count("/commits/"), 1);
}

/// A matrix needs `--suite`, which no CI service knows.
#[test]
fn a_report_that_its_job_sent_under_another_suite_is_there_already() {
    let world = ServedWorld::with_ingest(&[]);
    let key = ["key", "create-ingest", "--project", "web", "--backfill"];
    let key = text(&world.cli.json(&key)["key"]);
    let mut runs: Vec<_> = (1..=4).map(|id| github_run(id, 2, true)).collect();
    // Two jobs sent equal reports.
    let start = runs[0].start;
    runs[0].legs = vec![
        leg("test (18)", "report-18", 1, start, 0, true),
        leg("test (20)", "report-20", 1, start, 0, true),
    ];
    // A report without times starts when it is sent.
    runs[1].start = days_ago(0).plus_ms(-3_600_000);
    let timeless = "<testsuite><testcase name=\"adds\" time=\"1\"/></testsuite>";
    runs[1].legs[0].archive = zipped(&[("junit.xml", timeless)], false);
    // The service does not say which of two jobs stored which.
    let start = runs[2].start;
    runs[2].legs = vec![
        leg("test (18)", "a", 1, start, 0, true),
        leg("test (20)", "b", 1, start, 0, false),
    ];
    // Nobody sent these.
    let start = runs[3].start;
    runs[3].legs = vec![
        leg("test (18)", "report-18", 1, start, 0, true),
        leg("test (20)", "report-20", 1, start, 200_000, true),
    ];
    let folder = tempfile::tempdir().unwrap();
    let sending = |arguments: &[&str]| {
        let mut command = world.cli.command(arguments);
        command
            .current_dir(folder.path())
            .env("ASSAY_INGEST_URL", world.server.ingest().base())
            .env("ASSAY_INGEST_KEY", &key)
            .env("GITHUB_TOKEN", "the-token");
        command
    };
    for (run, suite, content) in [
        (&runs[0], "test 18", report(runs[0].start, true)),
        (&runs[0], "test 20", report(runs[0].start, true)),
        (&runs[1], "unit", timeless.to_owned()),
        (&runs[2], "test 18", report(runs[2].start, true)),
        (&runs[2], "test 20", report(runs[2].start, false)),
    ] {
        fs::write(folder.path().join("junit.xml"), content).unwrap();
        let mut upload = sending(&["upload", "junit.xml", "--suite", suite]);
        upload.envs([
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_RUN_ID", &run.id.to_string()),
            ("GITHUB_RUN_ATTEMPT", "1"),
            ("GITHUB_JOB", "test"),
            ("RUNNER_NAME", "runner-1"),
            ("GITHUB_REF_NAME", "trunk"),
            ("GITHUB_SHA", &run.sha),
            ("GITHUB_SERVER_URL", "https://github.com"),
            ("GITHUB_REPOSITORY", "shop/web"),
        ]);
        succeeded(upload);
    }
    let stored = || world.count("SELECT count(*) FROM part");
    assert_eq!((stored(), world.count("SELECT count(*) FROM run")), (5, 5));
    let github = github(runs.clone(), &storage(&runs));
    let backfill = || sending(&["backfill", "--github", "shop/web", "--host-url", &github.url]);
    assert_contains(
        &succeeded(backfill()),
        "Of 4 runs, 4 have reports; reports: 2 stored, 5 there already.",
    );
    assert_eq!((stored(), world.count("SELECT count(*) FROM run")), (7, 7));
    fs::remove_dir_all(folder.path().join(".assay")).unwrap();
    assert_contains(&succeeded(backfill()), "reports: 7 there already.");
}

#[test]
fn each_failure_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let github = github(vec![github_run(1, 1, true)], &storage(&[]));
    let page = ["--github", "shop/web", "--analyze", "page.html"];
    let output = |mut command: Command| -> Output { command.output().unwrap() };
    let without = |mut command: Command| {
        command.env_remove("GITHUB_TOKEN").env("PATH", "/nowhere");
        command
    };
    let wrong = |mut command: Command| {
        command.env("GITHUB_TOKEN", "other-token");
        command
    };
    let empty = Host::start(|_, asked| match asked.path.contains("created") {
        true => host::json(&serde_json::json!({"total_count": 0, "workflow_runs": []})),
        false => host::json(&serde_json::json!({"default_branch": "main"})),
    });
    let away = Host::start(|_, _| status(301, "Location: https://ci.test/repos/shop/web?a=1\r\n"));
    let endless = Host::start(|url, asked| {
        let link = format!("Link: <{url}{}>; rel=\"next\"\r\n", asked.path);
        let body = serde_json::json!({"total_count": 1, "workflow_runs": []});
        (200, link, body.to_string().into_bytes())
    });
    for (command, code, part) in [
        (
            without(command(&folder, &github.url, &page)),
            2,
            "or sign in with `gh auth login`",
        ),
        (
            wrong(command(&folder, &github.url, &page)),
            1,
            "Bad credentials; see whether OWNER/REPO is right",
        ),
        (
            command(&folder, "http://127.0.0.1:1", &page),
            1,
            "see whether this machine reaches it",
        ),
        (
            command(&folder, &empty.url, &page),
            1,
            "look further back with --days",
        ),
        (
            command(&folder, &away.url, &page),
            1,
            "the CI service moved it to https://ci.test/repos/shop/web, which is not followed",
        ),
        (
            command(&folder, &endless.url, &page),
            1,
            "the CI service's list does not end",
        ),
        (
            command(&folder, &github.url, &["--github", "shop", "--plan"]),
            2,
            "expected OWNER/REPO",
        ),
        (
            command(&folder, &github.url, &["--github", "shop/web"]),
            2,
            "judge here with --analyze",
        ),
        (
            command(&folder, &github.url, &["--github", "shop/none", "--plan"]),
            1,
            "(404: ",
        ),
    ] {
        let output = output(command);
        let shown = stderr_text(&output);
        assert_eq!(output.status.code(), Some(code), "{part}: {shown}");
        assert!(
            shown.contains(part) || part.starts_with('(') && shown.contains("answered 404"),
            "{part}: {shown}"
        );
        assert!(!shown.contains("-token"), "{shown}");
    }
    // A key that may not send old runs.
    let world = ServedWorld::with_ingest(&[]);
    let key = world.cli.json(&["key", "create-ingest", "--project", "web"]);
    let mut refused = command(&folder, &github.url, &["--github", "shop/web"]);
    refused
        .env("ASSAY_INGEST_URL", world.server.ingest().base())
        .env("ASSAY_INGEST_KEY", text(&key["key"]));
    assert!(stderr_text(&refused.output().unwrap()).contains("--backfill --days 7` makes one that may"));
    let bearer = format!("Bearer {}", text(&key["key"]));
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "text/xml")];
    let route = "/ingest/v1/reports?judgement=later";
    let refused = world
        .server
        .ingest()
        .post(route, &headers, report(days_ago(0), true).as_bytes());
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (400, "invalid_parameter")
    );
}
