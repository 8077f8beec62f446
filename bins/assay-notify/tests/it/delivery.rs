//! Delivery: signatures, repetitions, order, and what is sent.

use std::{
    fs,
    process::{Child, Stdio},
};

use assay_testkit::{
    Answer, Receiver, Request, SmtpReceiver, World, assert_contains, junit, notify_file, stderr_text,
    wait_until,
};
use serde_json::Value;
use standardwebhooks::Webhook;

use crate::program::run;

const KEYS: [&str; 2] = [
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "whsec_c2VjcmV0IG9mIHRoZSBmb3JtZXIgcGFzc3dvcmQ=",
];

/// A world whose project has events and two good runs on main.
pub(crate) fn world() -> World {
    let world = World::new();
    let events = "run_failed,run_recovered,test_broken,test_flaky,test_resolved,new_error";
    world
        .cli
        .json(&["project", "set", "web", "--chat-events", events]);
    for (minutes, commit) in [(600, "a000000000"), (540, "b000000000")] {
        import(&world, minutes, commit, &outcomes(3, 0));
    }
    world
}

/// So many tests, of which the first ones fail.
pub(crate) fn outcomes(tests: usize, failed: usize) -> Vec<(String, bool)> {
    (0..tests)
        .map(|number| (format!("test {number}"), number >= failed))
        .collect()
}

pub(crate) fn import(world: &World, minutes_ago: i64, commit: &str, cases: &[(String, bool)]) {
    let cases: Vec<(&str, bool)> = cases
        .iter()
        .map(|(name, passed)| (name.as_str(), *passed))
        .collect();
    world.import_cases(
        minutes_ago,
        &cases,
        &[
            "--branch",
            "main",
            "--commit",
            commit,
            "--suite",
            "e2e",
            "--run-key",
            commit,
        ],
    );
}

pub(crate) fn hook(receiver: &Receiver) -> String {
    format!(
        "private_addresses = [\"127.0.0.1\"]\n[[target]]\nname = \"hook\"\n\
         webhook = {{ url = \"http://127.0.0.1:{}/\", keys = [\"{}\", \"{}\"] }}\n",
        receiver.port, KEYS[0], KEYS[1]
    )
}

/// A pass, which must succeed.
pub(crate) fn pass(world: &World, text: &str) {
    let output = run(
        world,
        text,
        &["--once", "--public-url", "https://assay.example.org/"],
    );
    assert!(output.status.success(), "{}", stderr_text(&output));
}

fn data(request: &Request) -> Value {
    serde_json::from_str::<Value>(&request.body).unwrap()["data"].clone()
}

/// A running program, which is killed at the end.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn start(world: &World, text: &str) -> Self {
        let config = notify_file(world.folder.path(), text);
        let mut command = world
            .cli
            .command_of("assay-notify", &["--every", "1", "--config"]);
        Self(command.arg(config).stderr(Stdio::null()).spawn().unwrap())
    }

    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_fix_that_did_not_hold_is_a_message_with_the_test_and_the_run() {
    let (world, receiver) = (world(), Receiver::new());
    let events = "fix_held,fix_did_not_hold";
    world
        .cli
        .json(&["project", "set", "web", "--chat-events", events]);
    pass(&world, &hook(&receiver));
    import(&world, 480, "c000000000", &outcomes(3, 1));
    let cases = [("test 0", true), ("test 1", true), ("test 2", true)];
    let claim = ["--message", "Assay-Fixes: cart > test 0"];
    let flags = ["--branch", "main", "--commit", "d000000000", "--suite", "e2e"];
    world.import_cases(420, &cases, &[&flags[..], &claim].concat());
    import(&world, 360, "e000000000", &outcomes(3, 1));
    // The next judgement makes it certain.
    import(&world, 300, "f000000000", &outcomes(3, 0));
    pass(&world, &hook(&receiver));
    let requests = receiver.requests();
    let [message] = requests.as_slice() else {
        panic!("{requests:?}")
    };
    let content = data(message);
    assert_eq!(content["events"], serde_json::json!(["fix_did_not_hold"]));
    assert_eq!(
        content["headline"],
        "the fix of 1 test did not hold as of run 5 (e0000000)"
    );
    assert_eq!(
        content["groups"][0]["tests"],
        serde_json::json!(["cart > test 0"])
    );
}

#[test]
fn the_third_failed_run_names_a_commit_to_revert_once_in_a_breakage() {
    let (world, receiver) = (World::new(), Receiver::new());
    let events = "run_failed,run_recovered,revert_candidate";
    world
        .cli
        .json(&["project", "set", "web", "--chat-events", events]);
    // The messages about a commit to revert after a run.
    let candidates = |hours: i64, failed: usize| {
        let commit = format!("{:08x}00", 1_000 - hours);
        import(&world, hours * 60, &commit, &outcomes(20, failed));
        pass(&world, &hook(&receiver));
        // The next message need not wait for an hour.
        world
            .database
            .execute("UPDATE message SET created_at = created_at - interval '2 hours'");
        let sent = receiver.requests();
        let sent = sent.iter().map(data);
        sent.filter(|content| content["events"] == serde_json::json!(["revert_candidate"]))
            .collect::<Vec<_>>()
    };
    candidates(80, 0);
    for hours in (60..80).rev() {
        import(
            &world,
            hours * 60,
            &format!("{:08x}00", 1_000 - hours),
            &outcomes(20, 0),
        );
    }
    // Two runs may be those of a bad machine.
    let counts = [50, 49, 48, 47].map(|hours| candidates(hours, 5).len());
    assert_eq!(counts, [0, 0, 1, 1], "{:?}", receiver.requests());
    let headline = candidates(46, 0)[0]["headline"].to_string();
    let sentence = "5 tests broke with one error since 000003b6; revert candidate 000003b6 (";
    assert_contains(&headline, sentence);
    // Two tests never name a commit, and the next breakage has one of its own.
    candidates(45, 0);
    let counts = [44, 43, 42, 41].map(|hours| candidates(hours, 2).len());
    assert_eq!(counts, [1; 4]);
    for hours in [40, 39, 38] {
        candidates(hours, 0);
    }
    let counts = [37, 36, 35, 34].map(|hours| candidates(hours, 7).len());
    assert_eq!(counts, [1, 1, 2, 2], "{:?}", receiver.requests());
}

#[test]
fn an_outage_of_300_tests_sends_one_message_whose_signatures_another_implementation_verifies() {
    let (world, receiver) = (world(), Receiver::new());
    import(&world, 480, "c000000000", &outcomes(300, 0));
    pass(&world, &hook(&receiver));
    assert!(receiver.requests().is_empty());

    for (minutes, commit) in [(420, "de104964aa"), (360, "e000000000"), (300, "f000000000")] {
        import(&world, minutes, commit, &outcomes(300, 300));
        pass(&world, &hook(&receiver));
    }
    let [request] = receiver.requests().try_into().unwrap();
    let data = data(&request);
    assert_eq!(
        data["headline"],
        "300 tests broke with one error since de104964; it may be the environment"
    );
    let page = format!("https://assay.example.org/p/{}/commit/de104964aa", world.project);
    assert_eq!(data["url"], page);
    assert_eq!(data["groups"][0]["tests"].as_array().unwrap().len(), 3);
    assert_eq!(
        (&data["groups"][0]["more"], &data["tone"]),
        (&297.into(), &"bad".into())
    );

    let mut headers = http::HeaderMap::new();
    for (name, value) in &request.headers {
        let name: http::HeaderName = name.parse().unwrap();
        headers.insert(name, value.parse().unwrap());
    }
    for key in KEYS {
        Webhook::new(key)
            .unwrap()
            .verify(request.body.as_bytes(), &headers)
            .unwrap();
    }
    let other = Webhook::new("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA").unwrap();
    assert!(other.verify(request.body.as_bytes(), &headers).is_err());
    let changed = request.body.replace("300", "301");
    assert!(
        Webhook::new(KEYS[0])
            .unwrap()
            .verify(changed.as_bytes(), &headers)
            .is_err()
    );
}

#[test]
fn a_message_that_is_refused_or_whose_answer_is_lost_is_sent_again_under_its_id() {
    let (world, receiver) = (world(), Receiver::new());
    pass(&world, &hook(&receiver));
    receiver.answer(Answer::Status(503, String::new()));
    import(&world, 60, "c000000000", &outcomes(3, 1));
    let running = Running::start(&world, &hook(&receiver));
    wait_until("the first attempt", || {
        let noted = "SELECT count(*) FROM message WHERE error LIKE '%status 503%'";
        world.count(noted) == 1
    });
    // The operator sees why.
    let doctor = world.cli.json(&["doctor"]);
    let checks = doctor["checks"].as_array().unwrap();
    let messages = checks.iter().find(|check| check["check"] == "messages").unwrap();
    assert_eq!(messages["status"], "warn");
    let found = messages["found"][1].as_str().unwrap();
    let expected =
        "1 message about \"web\" to the target \"hook\" not delivered: 127.0.0.1 answers with status 503";
    assert_eq!(found, expected);
    receiver.answer(Answer::Close);
    running.kill();
    let seen = receiver.requests().len();
    // A start tries everything again.
    let running = Running::start(&world, &hook(&receiver));
    wait_until("the second attempt", || receiver.requests().len() > seen);
    running.kill();
    receiver.answer(Answer::Status(200, String::new()));
    let seen = receiver.requests().len();
    pass(&world, &hook(&receiver));
    pass(&world, &hook(&receiver));
    let requests = receiver.requests();
    assert_eq!(requests.len(), seen + 1, "a delivered message is not sent again");
    let id = &requests[0].headers["webhook-id"];
    assert!(
        requests
            .iter()
            .all(|request| request.headers["webhook-id"] == *id)
    );
    assert!(requests.iter().all(|request| data(request) == data(&requests[0])));
}

#[test]
fn redirections_are_not_followed_and_private_addresses_must_be_named() {
    let (world, receiver, other) = (world(), Receiver::new(), Receiver::new());
    receiver.answer(Answer::Redirect(format!("http://127.0.0.1:{}/", other.port)));
    let redirected = run(&world, &hook(&receiver), &["--test", "hook"]);
    assert!(stderr_text(&redirected).contains("status 307"), "{redirected:?}");
    assert!(other.requests().is_empty());

    let unnamed = hook(&receiver)
        .replace("private_addresses = [\"127.0.0.1\"]", "")
        .replace("http://127.0.0.1", "https://127.0.0.1");
    let refused = run(&world, &unnamed, &["--test", "hook"]);
    assert!(
        stderr_text(&refused).contains("name one of them in private_addresses"),
        "{refused:?}"
    );
    assert_eq!(receiver.requests().len(), 1);
}

#[test]
fn a_recovery_continues_the_thread_and_a_preview_changes_nothing() {
    let world = world();
    let messages = world.folder.path().join("messages");
    let text = format!("[[target]]\nname = \"log\"\nfile = {{ path = {messages:?}, format = \"json\" }}\n");
    let lines = || -> Vec<Value> {
        let text = fs::read_to_string(&messages).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    pass(&world, &text);
    import(&world, 60, "c000000000", &outcomes(3, 1));
    for _ in 0..2 {
        let preview = run(&world, &text, &["--dry-run"]);
        let printed = String::from_utf8(preview.stdout).unwrap();
        assert_contains(&printed, "to log:\nweb: 1 test broke since c0000000");
    }
    assert!(lines().is_empty());
    pass(&world, &text);
    assert_eq!(lines().len(), 1);

    // The suite passes again, and another judgement confirms it.
    import(&world, 50, "d000000000", &outcomes(3, 0));
    pass(&world, &text);
    assert_eq!(lines().len(), 1);
    import(&world, 40, "e000000000", &outcomes(3, 0));
    pass(&world, &text);
    assert_eq!(lines().len(), 1, "an hour has not passed");
    let waiting = stderr_text(&run(&world, &text, &["--dry-run"]));
    assert!(
        waiting.contains("changes of \"web\" to \"log\" wait") && waiting.contains("nothing is due"),
        "{waiting}"
    );
    world
        .database
        .execute("UPDATE message SET created_at = created_at - interval '1 hour'");
    pass(&world, &text);
    let [failed, recovered] = lines().try_into().unwrap();
    assert_eq!(recovered["thread"], failed["id"]);
    assert_eq!(recovered["data"]["tone"], "good");
    let headline = recovered["data"]["headline"].as_str().unwrap();
    assert!(
        headline.starts_with("e2e passes again on main as of run "),
        "{headline}"
    );
}

#[test]
fn a_recovery_answers_in_the_thread_of_slack_and_of_mail() {
    let (world, slack, mail) = (world(), Receiver::new(), SmtpReceiver::new());
    slack.answer(Answer::Status(
        200,
        r#"{"ok":true,"ts":"1503435956.000247"}"#.to_owned(),
    ));
    let text = format!(
        "private_addresses = [\"127.0.0.1\"]\n\
         [[target]]\nname = \"team\"\nslack = {{ token = \"xoxb-hidden\", channel = \"C1\", api = \"http://127.0.0.1:{}/api\" }}\n\
         [[target]]\nname = \"mail\"\nsmtp = {{ host = \"127.0.0.1\", port = {}, tls = \"off\", from = \"Assay <assay@example.org>\", \
         to = [\"team@example.org\", \"lead@example.org\"] }}\n",
        slack.port, mail.port
    );
    pass(&world, &text);
    import(&world, 60, "c000000000", &outcomes(3, 1));
    pass(&world, &text);
    import(&world, 50, "d000000000", &outcomes(3, 0));
    import(&world, 40, "e000000000", &outcomes(3, 0));
    world
        .database
        .execute("UPDATE message SET created_at = created_at - interval '1 hour'");
    pass(&world, &text);

    let [failed, recovered] = slack.requests().try_into().unwrap();
    assert_eq!(failed.path, "/api/chat.postMessage");
    assert_eq!(failed.headers["authorization"], "Bearer xoxb-hidden");
    let body = |request: &Request| serde_json::from_str::<Value>(&request.body).unwrap();
    let (failed, recovered) = (body(&failed), body(&recovered));
    assert_eq!(
        (&failed["channel"], failed.get("thread_ts")),
        (&"C1".into(), None)
    );
    assert_eq!(recovered["thread_ts"], "1503435956.000247");

    let [failed, recovered] = mail.mails().try_into().unwrap();
    assert!(
        failed.starts_with("RCPT TO:<team@example.org>\nRCPT TO:<lead@example.org>\n"),
        "{failed}"
    );
    let header = |mail: &str, name: &str| -> Option<String> {
        let prefix = format!("{name}: ");
        mail.lines()
            .find_map(|line| line.strip_prefix(&prefix))
            .map(str::to_owned)
    };
    assert_eq!(
        header(&failed, "Subject").unwrap(),
        "web: 1 test broke since c0000000; the test may be flaky"
    );
    let id = header(&failed, "Message-ID").unwrap();
    assert_eq!(header(&recovered, "In-Reply-To"), Some(id.clone()));
    assert_eq!(header(&recovered, "References"), Some(id));
    assert_eq!(header(&failed, "Auto-Submitted").unwrap(), "auto-generated");

    // Slack answers a refusal with status 200.
    slack.answer(Answer::Status(
        200,
        r#"{"ok":false,"error":"channel_not_found"}"#.to_owned(),
    ));
    let refused = run(&world, &text, &["--test", "team"]);
    assert!(
        stderr_text(&refused).contains("Slack refuses the message: channel_not_found"),
        "{refused:?}"
    );
}

#[test]
fn a_digest_names_what_was_resolved_what_came_new_and_what_costs_most_time_by_owner() {
    let world = world();
    let messages = world.folder.path().join("messages");
    let text = format!(
        "[[target]]\nname = \"log\"\nevents = [\"test_broken\", \"test_flaky\", \"test_resolved\", \"new_error\"]\n\
         digest = {{ every = \"day\", at = \"00:00\" }}\nfile = {{ path = {messages:?} }}\n"
    );
    pass(&world, &text);
    for number in 0..5 {
        import(
            &world,
            200 - 10 * number,
            &format!("c{number}00000000"),
            &outcomes(3, 1),
        );
    }
    pass(&world, &text);
    // What a digest of yesterday does not have.
    world
        .database
        .execute("UPDATE edge SET settled_at = settled_at - interval '3 days'");
    // The first test is good again. The second one breaks by another error and waits long.
    let cases = [("test 0", true), ("test 1", false), ("test 2", true)];
    let failure = |_: &str| {
        (
            "no route to the cart".to_owned(),
            "at cart.test.ts:9:1".to_owned(),
        )
    };
    let report = junit(&cases, "cart.test.ts", failure).replace("0.010", "90.000");
    for number in 0..10 {
        let commit = format!("d{number}00000000");
        let flags = [
            "--branch",
            "main",
            "--commit",
            &commit,
            "--suite",
            "e2e",
            "--run-key",
            &commit,
        ];
        world.import_report(120 - 10 * number, &report, &flags);
    }
    pass(&world, &text);
    let before = fs::read_to_string(&messages).unwrap();
    assert!(
        before.contains("1 test broke since c0000000") && !before.contains("the last day"),
        "{before}"
    );
    // Everything happened yesterday.
    world.database.execute(
        "UPDATE message SET created_at = created_at - interval '1 day'; \
         UPDATE edge SET settled_at = date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' - interval '1 hour' \
         WHERE settled_at > now() - interval '1 day'; \
         UPDATE project SET owners_path = 'CODEOWNERS', owners_text = '* @shop/cart', owners_files = 'cart.test.ts', \
         owners_at = now(), observed = gen_random_uuid(), judged = NULL",
    );
    pass(&world, &text);
    pass(&world, &text);
    let digest = fs::read_to_string(&messages).unwrap()[before.len()..].to_owned();
    assert_eq!(digest.matches("the last day").count(), 1, "{digest}");
    assert_contains(
        &digest,
        "web: the last day: 1 test broke, 1 repaired, 0 became flaky, 0 not flaky any more, 1 new error",
    );
    assert_contains(
        &digest,
        "- @shop/cart: 1 broke, 1 repaired, 0 became flaky, 0 not flaky any more\n    · broke: cart > test 1\n    \
             · repaired: cart > test 0\n    · 15 min lost in 14 days: cart > test 1\n\
             - new errors\n    · no route to the cart",
    );
}
