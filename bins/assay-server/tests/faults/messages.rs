//! Messages by webhook and mail while `assay-notify`, imports, the server with an upload and Postgres are killed: no edge
//! is lost, and none is sent twice under two ids.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use assay_testkit::{
    Answer, Receiver, SmtpReceiver, assert_contains, free_address, junit, notify_file, program, rfc3339,
    text, wait_until,
};
use diesel::connection::SimpleConnection as _;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use serde_json::Value;
use time::OffsetDateTime;

use crate::{
    postgres::number,
    quiet, server,
    turns::{LOCK, WAITING},
    world::World,
};

const SUITES: usize = 6;
/// Runs of each suite before it fails, one a day, so that one failure is more probably broken code than a flake.
const GOOD_RUNS: usize = 4;
const DAY_MINUTES: usize = 24 * 60;

#[test]
fn edges_are_sent_once_whatever_is_killed_meanwhile() {
    let _alone = quiet::alone();
    let mut world = World::with_own_postgres();
    let (receiver, mail) = (Receiver::new(), SmtpReceiver::new());
    let config = notify_file(
        world.folder.path(),
        &format!(
            "private_addresses = [\"127.0.0.1\"]\n[[target]]\nname = \"hook\"\nevents = [\"run_failed\"]\n\
             webhook = {{ url = \"http://127.0.0.1:{}/\", keys = [\"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"] }}\n\
             [[target]]\nname = \"mail\"\nevents = [\"run_failed\"]\n\
             smtp = {{ host = \"127.0.0.1\", port = {}, tls = \"off\", from = \"assay@example.org\", \
             to = [\"team@example.org\"] }}\n",
            receiver.port, mail.port
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
    let ingest = Ingest {
        address: free_address(),
        key: text(&world.cli.json(&["key", "create-ingest", "--project", "web"])["key"]),
    };
    ingest.start_server(&mut world);
    let mut notify = start(&world, &config);
    let mut random = StdRng::seed_from_u64(5);
    for suite in 0..SUITES {
        // Every other answer is lost.
        let is_lost = suite % 2 == 0;
        receiver.answer(match is_lost {
            true => Answer::Close,
            false => Answer::Status(200, String::new()),
        });
        mail.lose_answers(is_lost);
        let seen = mail.mails().len();
        match suite % 3 {
            0 => {
                let mut importing = import(&world, suite, GOOD_RUNS);
                pause(&mut random);
                importing.kill().unwrap();
                importing.wait().unwrap();
            }
            1 => {
                let mut importing = import(&world, suite, GOOD_RUNS);
                pause(&mut random);
                world.postgres().kill();
                world.postgres().start_again();
                importing.wait().unwrap();
            }
            _ => ingest.upload_across_a_kill(&mut world, suite),
        }
        notify.kill().unwrap();
        notify.wait().unwrap();
        notify = start(&world, &config);
        // The job repeats its import, as CI does.
        assert!(import(&world, suite, GOOD_RUNS).wait().unwrap().success());
        if is_lost {
            wait_until("a mail whose answer is lost", || mail.mails().len() > seen);
        }
    }
    receiver.answer(Answer::Status(200, String::new()));
    mail.lose_answers(false);
    // A start tries everything again.
    notify.kill().unwrap();
    notify.wait().unwrap();
    notify = start(&world, &config);
    let mut connection = world.postgres().connect().unwrap();
    // The targets are served one after the other, so one statement looks at both: a message that is written after one
    // statement and before another would be delivered for the first and written for the second.
    let targets_done = "SELECT count(*) AS value FROM (SELECT FROM message GROUP BY target \
                        HAVING max(through) >= (SELECT max(settled) FROM edge WHERE event = 'run_failed') \
                        AND bool_and(content IS NULL OR delivered_at IS NOT NULL)) AS target \
                        WHERE NOT EXISTS (SELECT FROM edge WHERE event = 'run_failed' AND settled IS NULL)";
    wait_until("everything is delivered", || {
        number(&mut connection, targets_done) == 2
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
    for body in one_each(bodies) {
        let body: Value = serde_json::from_str(&body).unwrap();
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
        assert_contains(sent, expected.as_str());
    }
    assert_mails(&mail.mails());
}

/// Each error is in one mail, and repetitions have their mail's id.
fn assert_mails(mails: &[String]) {
    let mut by_id: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for mail in mails {
        let mut lines = mail.lines();
        let id = lines.find_map(|line| line.strip_prefix("Message-ID: ")).unwrap();
        by_id.entry(id.to_owned()).or_default().insert(mail.clone());
    }
    assert!(mails.len() > by_id.len(), "no mail was repeated");
    let sent = one_each(by_id);
    for error in (0..SUITES).map(error) {
        let number = sent.iter().filter(|mail| mail.contains(&error)).count();
        assert_eq!(number, 1, "{error}: {sent:#?}");
    }
}

/// The only content under each id.
fn one_each(by_id: BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let one = |(id, contents): (String, BTreeSet<String>)| {
        assert_eq!(contents.len(), 1, "{id} had several contents: {contents:?}");
        contents.into_iter().next().unwrap()
    };
    by_id.into_iter().map(one).collect()
}

/// The error of a suite. Its words differ, because numbers are no part of a fingerprint.
fn error(suite: usize) -> String {
    let word = ["anchor", "bridge", "candle", "desert", "engine", "forest"][suite];
    format!("the {word} is gone")
}

/// The server's ingest listener.
struct Ingest {
    address: String,
    key: String,
}

impl Ingest {
    /// Starts the server again, or for the first time with this listener.
    fn start_server(&self, world: &mut World) {
        world.server.kill();
        let url = world.postgres().url().to_owned();
        let environment = [
            ("ASSAY_DATABASE_URL", url.as_str()),
            ("ASSAY_INGEST_LISTEN", &self.address),
        ];
        let command = Command::new(program("assay-server"));
        world.server = server::start_with(command, world.folder.path(), &environment);
    }

    /// Uploads the failed run of a suite. The server is killed while it stores the report, and the command repeats it.
    fn upload_across_a_kill(&self, world: &mut World, suite: usize) {
        let mut holder = world.postgres().connect().unwrap();
        let mut watcher = world.postgres().connect().unwrap();
        holder.batch_execute(LOCK).unwrap();
        let mut command = world.cli.command(&["upload", "--retry-for", "60s"]);
        command
            .args(arguments(world, suite, GOOD_RUNS))
            .current_dir(world.folder.path())
            .env_remove("ASSAY_DATABASE_URL")
            .env("ASSAY_INGEST_URL", format!("http://{}", self.address))
            .env("ASSAY_INGEST_KEY", &self.key);
        let mut upload = spawn(&mut command);
        let waiting = format!("SELECT ({WAITING}) AS value");
        wait_until("the report is being stored", || {
            number(&mut watcher, &waiting) == 1
        });
        self.start_server(world);
        holder.batch_execute("ROLLBACK").unwrap();
        assert!(upload.wait().unwrap().success());
    }
}

fn pause(random: &mut StdRng) {
    thread::sleep(Duration::from_millis(random.random_range(0..400)));
}

/// The arguments of a run of a suite, whose report is written. The run after the good ones fails.
fn arguments(world: &World, suite: usize, run: usize) -> Vec<String> {
    let failure = |_: &str| (error(suite), "at a.test.ts:1:1".to_owned());
    let name = format!("test of {suite}");
    let report = junit(&[(&name, run < GOOD_RUNS)], "a.test.ts", failure);
    let path = world.folder.path().join(format!("{suite}-{run}.xml"));
    fs::write(&path, report).unwrap();
    let minutes = i64::try_from((GOOD_RUNS - run) * DAY_MINUTES + 20).unwrap();
    let start = rfc3339(OffsetDateTime::now_utc() - time::Duration::minutes(minutes));
    let (key, suite) = (format!("{suite}-{run}"), format!("suite {suite}"));
    let flags = [
        ("--branch", "main".to_owned()),
        ("--run-key", key),
        ("--suite", suite),
        ("--started-at", start),
    ];
    let mut arguments = vec![path.display().to_string()];
    for (flag, value) in flags {
        arguments.extend([flag.to_owned(), value]);
    }
    arguments
}

/// Imports a run of a suite.
fn import(world: &World, suite: usize, run: usize) -> Child {
    let mut command = world.cli.command(&["import", "--project", "web"]);
    spawn(command.args(arguments(world, suite, run)))
}

fn spawn(command: &mut Command) -> Child {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn start(world: &World, config: &Path) -> Child {
    let mut command = world
        .cli
        .command_of("assay-notify", &["--every", "1", "--config"]);
    command.arg(config).stderr(Stdio::null());
    command.spawn().unwrap()
}
