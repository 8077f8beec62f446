//! The caches of keys and projects in processes, and their delay: two servers over one database.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use assay_testkit::{ServedWorld, Server, text};

/// A change counts on every process within this time after its command.
const EFFECTIVE_WITHIN: Duration = Duration::from_secs(1);
/// Time limit of all other operations.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time for which the change is then observed.
const WATCHED: Duration = Duration::from_millis(500);

/// Two servers over the database of a world.
struct Pair {
    world: ServedWorld,
    second: Server,
}

/// One answer: its server, key and request time, with its status and code.
struct TimedAnswer {
    server: usize,
    key: String,
    sent_at: Instant,
    answer: String,
}

impl Pair {
    fn new() -> Self {
        let world = ServedWorld::new();
        let second = Server::start_with(world.database.url(), &[("ASSAY_RATE_LIMIT", "0")]);
        Self { world, second }
    }

    fn servers(&self) -> [&Server; 2] {
        [&self.world.server, &self.second]
    }

    /// Sends requests with all keys to both servers without a pause, from before a command until well after it. Returns
    /// every answer, and the time at which the command ended.
    fn answers_around(&self, keys: &[&str], command: &[&str]) -> (Vec<TimedAnswer>, Instant) {
        let answers = Mutex::new(Vec::new());
        let over = AtomicBool::new(false);
        let ended = thread::scope(|scope| {
            for (server, running) in self.servers().into_iter().enumerate() {
                let (answers, over) = (&answers, &over);
                scope.spawn(move || {
                    // The loop also ends if the test fails in the meantime.
                    let begun = Instant::now();
                    while !over.load(Ordering::Relaxed) && begun.elapsed() < PATIENCE {
                        for key in keys {
                            let sent_at = Instant::now();
                            let answer = ask(running, key, "/projects");
                            answers.lock().unwrap().push(TimedAnswer {
                                server,
                                key: (*key).to_owned(),
                                sent_at,
                                answer,
                            });
                        }
                    }
                });
            }
            let every_key_answered = |answers: &Vec<TimedAnswer>| {
                let has = |server, key: &&str| {
                    answers
                        .iter()
                        .any(|answer| answer.server == server && answer.key == **key)
                };
                (0..2).all(|server| keys.iter().all(|key| has(server, key)))
            };
            wait(
                || every_key_answered(&answers.lock().unwrap()),
                "every key was sent everywhere",
            );
            self.world.cli.json(command);
            let ended = Instant::now();
            thread::sleep(EFFECTIVE_WITHIN + WATCHED);
            let late = |answers: &Vec<TimedAnswer>| {
                let count = |server| {
                    let is_late = |answer: &&TimedAnswer| {
                        answer.server == server && answer.sent_at > ended + EFFECTIVE_WITHIN
                    };
                    answers.iter().filter(is_late).count()
                };
                (0..2).all(|server| count(server) >= keys.len())
            };
            wait(
                || late(&answers.lock().unwrap()),
                "every key was sent after the command",
            );
            over.store(true, Ordering::Relaxed);
            ended
        });
        (answers.into_inner().unwrap(), ended)
    }
}

/// The status and the code of an answer.
fn ask(server: &Server, key: &str, path: &str) -> String {
    let answer = server.client().get(&format!("/api/v1{path}"), Some(key));
    let code = answer.json()["code"].as_str().unwrap_or("ok").to_owned();
    format!("{} {code}", answer.status)
}

fn wait(condition: impl Fn() -> bool, what: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "never: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Asserts the answers for a key: `before` until the change, `after` from a second after it.
fn assert_changes((answers, ended): &(Vec<TimedAnswer>, Instant), key: &str, before: &str, after: &str) {
    for timed in answers.iter().filter(|timed| timed.key == key) {
        let is_late = timed.sent_at > *ended + EFFECTIVE_WITHIN;
        let allowed: &[&str] = if is_late { &[after] } else { &[before, after] };
        let later = timed.sent_at.saturating_duration_since(*ended);
        assert!(
            allowed.contains(&timed.answer.as_str()),
            "server {} answered {:?} {later:?} after the command",
            timed.server,
            timed.answer
        );
    }
}

#[test]
fn a_revocation_takes_effect_on_every_process_within_a_second() {
    let pair = Pair::new();
    let other = text(
        &pair
            .world
            .cli
            .json(&["key", "create", "--org", "Shop", "--days", "30"])["key"],
    );
    let revoke = ["key", "revoke", pair.world.key_id.as_str()];
    let answers = pair.answers_around(&[&pair.world.key, &other], &revoke);
    assert_changes(&answers, &pair.world.key, "200 ok", "401 key_revoked");
    assert_changes(&answers, &other, "200 ok", "200 ok");
}

#[test]
fn a_plan_takes_effect_on_every_process_within_a_second() {
    let pair = Pair::new();
    let cli = &pair.world.cli;
    cli.json(&["org", "create", "Bakery", "--plan", "standard"]);
    let other = text(&cli.json(&["key", "create", "--org", "Bakery", "--days", "30"])["key"]);
    let keys = [pair.world.key.as_str(), other.as_str()];
    let answers = pair.answers_around(&keys, &["org", "set-plan", "Shop", "free"]);
    assert_changes(&answers, &pair.world.key, "200 ok", "403 tier_too_low");
    assert_changes(&answers, &other, "200 ok", "200 ok");
    let answers = pair.answers_around(&keys, &["org", "set-plan", "Shop", "pro"]);
    assert_changes(&answers, &pair.world.key, "403 tier_too_low", "200 ok");
    assert_changes(&answers, &other, "200 ok", "200 ok");
}

#[test]
fn new_resources_are_visible_at_once() {
    let pair = Pair::new();
    let cli = &pair.world.cli;
    for server in pair.servers() {
        assert_eq!(ask(server, &pair.world.key, "/projects"), "200 ok");
    }
    let project = text(&cli.json(&["project", "create", "--org", "Shop", "api"])["id"]);
    let key = text(&cli.json(&["key", "create", "--org", "Shop", "--days", "30"])["key"]);
    for server in pair.servers() {
        for key in [&pair.world.key, &key] {
            assert_eq!(
                ask(server, key, &format!("/projects/{project}/settings")),
                "200 ok"
            );
        }
    }
}

#[test]
fn changed_settings_are_shown_immediately_on_every_route() {
    let pair = Pair::new();
    let world = &pair.world;
    world.import_cases(10, &[("adds", true)], &["--branch", "main"]);
    let name = text(
        &world.get(&format!("/runs/{}", text(&world.get("/runs")["runs"][0]["id"])))["tests"][0]["testName"],
    );
    let history = format!("/tests/{}", name.replace(' ', "%20").replace('>', "%3E"));
    for branch in ["trunk", "main", "next"] {
        let set = [
            "project",
            "set",
            "web",
            "--stable-branch",
            branch,
            "--chat-events",
            "run_failed",
        ];
        world.cli.json(&set);
        world.cli.notify_once();
        for server in pair.servers() {
            let get = |path: &str| {
                let path = format!("/api/v1/projects/{}{path}", world.project);
                server.client().get(&path, Some(&world.key)).json()
            };
            assert_eq!(get("/settings")["settings"]["stableBranch"], branch);
            assert_eq!(get("/settings")["settings"]["chat"]["events"][0], "run_failed");
            assert_eq!(get("/runs")["stableBranch"], branch);
            assert_eq!(get(&history)["stableBranch"], branch);
        }
    }
}
