//! Messages while `assay-notify`, imports and Postgres are killed: no edge is lost, and none is sent twice under two ids.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::{Child, Stdio},
    thread,
    time::Duration,
};

use assay_testkit::{Answer, Receiver, junit, notify_file, rfc3339, wait_until};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use serde_json::Value;
use time::OffsetDateTime;

use crate::{postgres::number, quiet, world::World};

const SUITES: usize = 6;
/// Runs of each suite before it fails, one a day, so that one failure is more probably broken code than a flake.
const GOOD_RUNS: usize = 4;
const DAY_MINUTES: usize = 24 * 60;

#[test]
fn edges_are_sent_once_whatever_is_killed_meanwhile() {
    let _alone = quiet::alone();
    let mut world = World::with_own_postgres();
    let receiver = Receiver::new();
    let config = notify_file(
        world.folder.path(),
        &format!(
            "private_addresses = [\"127.0.0.1\"]\n[[target]]\nname = \"hook\"\nevents = [\"run_failed\"]\n\
             webhook = {{ url = \"http://127.0.0.1:{}/\", keys = [\"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"] }}\n",
            receiver.port
        ),
    );
    world
        .cli
        .json(&["project", "set", "web", "--chat-events", "run_failed"]);
    for suite in 0..SUITES {
        for run in 0..GOOD_RUNS {
            assert!(import(&world, suite, run).wait().unwrap().success());
        }
    }
    let mut notify = start(&world, &config);
    let mut random = StdRng::seed_from_u64(5);
    for suite in 0..SUITES {
        // Every other answer is lost.
        receiver.answer(match suite % 2 {
            0 => Answer::Close,
            _ => Answer::Status(200, String::new()),
        });
        let mut importing = import(&world, suite, GOOD_RUNS);
        thread::sleep(Duration::from_millis(random.random_range(0..400)));
        match suite % 3 {
            0 => importing.kill().unwrap(),
            1 => {
                world.postgres().kill();
                world.postgres().start_again();
            }
            _ => {
                world.server.kill();
                let url = world.postgres().url().to_owned();
                world.server = crate::server::start(world.folder.path(), &url);
            }
        }
        importing.wait().unwrap();
        notify.kill().unwrap();
        notify.wait().unwrap();
        notify = start(&world, &config);
        // The job repeats its import, as CI does.
        assert!(import(&world, suite, GOOD_RUNS).wait().unwrap().success());
    }
    receiver.answer(Answer::Status(200, String::new()));
    // A start tries everything again.
    notify.kill().unwrap();
    notify.wait().unwrap();
    notify = start(&world, &config);
    let mut connection = world.postgres().connect().unwrap();
    wait_until("everything is delivered", || {
        let open = "SELECT (SELECT count(*) FROM edge WHERE event = 'run_failed' AND settled IS NULL) \
                    + (SELECT count(*) FROM message WHERE content IS NOT NULL AND delivered_at IS NULL) AS value";
        let sent = "SELECT count(*) AS value FROM message WHERE content IS NOT NULL";
        number(&mut connection, open) == 0 && number(&mut connection, sent) > 0
    });
    notify.kill().unwrap();
    notify.wait().unwrap();

    // One edge a suite, each with a number of its own.
    let edges = "SELECT count(*) AS value FROM edge WHERE event = 'run_failed' AND NOT is_cancelled";
    assert_eq!(number(&mut connection, edges), i64::try_from(SUITES).unwrap());
    let mut bodies: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for request in receiver.requests() {
        let id = request.headers["webhook-id"].clone();
        bodies.entry(id).or_default().insert(request.body);
    }
    let mut sent: Vec<String> = Vec::new();
    for (id, bodies) in &bodies {
        assert_eq!(bodies.len(), 1, "{id} had several bodies");
        let body: Value = serde_json::from_str(bodies.first().unwrap()).unwrap();
        let groups = body["data"]["groups"].as_array().unwrap().clone();
        sent.extend(
            groups
                .iter()
                .map(|group| group["error"].as_str().unwrap().to_owned()),
        );
    }
    sent.sort();
    let expected: Vec<String> = (0..SUITES).map(error).collect();
    assert_eq!(sent.len(), SUITES, "{sent:?}");
    for (sent, expected) in sent.iter().zip(&expected) {
        assert!(sent.contains(expected.as_str()), "{sent}");
    }
}

/// The error of a suite. Its words differ, because numbers are no part of a fingerprint.
fn error(suite: usize) -> String {
    let word = ["anchor", "bridge", "candle", "desert", "engine", "forest"][suite];
    format!("the {word} is gone")
}

/// Imports a run of a suite. The one after the good ones fails.
fn import(world: &World, suite: usize, run: usize) -> Child {
    let failure = |_: &str| (error(suite), "at a.test.ts:1:1".to_owned());
    let name = format!("test of {suite}");
    let report = junit(&[(&name, run < GOOD_RUNS)], "a.test.ts", failure);
    let path = world.folder.path().join(format!("{suite}-{run}.xml"));
    fs::write(&path, report).unwrap();
    let minutes = i64::try_from((GOOD_RUNS - run) * DAY_MINUTES + 20).unwrap();
    let start = rfc3339(OffsetDateTime::now_utc() - time::Duration::minutes(minutes));
    let (key, name) = (format!("{suite}-{run}"), format!("suite {suite}"));
    let mut command = world
        .cli
        .command(&["import", "--project", "web", "--branch", "main"]);
    command
        .args(["--run-key", &key, "--suite", &name, "--started-at", &start])
        .arg(path)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().unwrap()
}

fn start(world: &World, config: &Path) -> Child {
    let mut command = world
        .cli
        .command_of("assay-notify", &["--every", "1", "--config"]);
    command.arg(config).stderr(Stdio::null());
    command.spawn().unwrap()
}
