//! Answers of targets, and what a log shows of the requests.

use assay_testkit::{Answer, Receiver, assert_contains, stderr_text};

use crate::{
    delivery::{hook, import, outcomes, pass, world},
    program::run,
};

#[test]
fn a_status_of_success_confirms_a_message_whatever_the_body_is() {
    let (world, receiver) = (world(), Receiver::new());
    pass(&world, &hook(&receiver));
    import(&world, 60, "c000000000", &outcomes(3, 1));
    receiver.answer(Answer::Status(200, "x".repeat(1 << 20)));
    pass(&world, &hook(&receiver));
    pass(&world, &hook(&receiver));
    assert_eq!(receiver.requests().len(), 1);

    receiver.answer(Answer::Half(202));
    let sent = run(&world, &hook(&receiver), &["--test", "hook"]);
    assert!(sent.status.success(), "{}", stderr_text(&sent));
}

#[test]
fn a_target_that_names_a_time_is_left_alone_until_then_and_a_preview_shows_the_message() {
    let (world, receiver) = (world(), Receiver::new());
    pass(&world, &hook(&receiver));
    import(&world, 60, "c000000000", &outcomes(3, 1));
    receiver.answer(Answer::Later(429, 600));
    let refused = run(&world, &hook(&receiver), &["--once"]);
    assert!(stderr_text(&refused).contains("status 429"), "{refused:?}");
    let late = "SELECT count(*) FROM message WHERE next_attempt_at > now() + interval '9 minutes'";
    assert_eq!(world.count(late), 1);
    let preview = run(&world, &hook(&receiver), &["--dry-run"]);
    let printed = String::from_utf8(preview.stdout).unwrap();
    assert_contains(&printed, "to hook:\nweb: 1 test broke since c0000000");
    assert_eq!(receiver.requests().len(), 1);
}

#[test]
fn no_log_shows_the_secrets_of_a_request() {
    let (world, receiver) = (world(), Receiver::new());
    receiver.answer(Answer::Status(200, r#"{"ok":true,"ts":"1"}"#.to_owned()));
    let text = format!(
        "private_addresses = [\"127.0.0.1\"]\n\
         [[target]]\nname = \"team\"\nslack = {{ url = \"http://127.0.0.1:{port}/services/hidden\" }}\n\
         [[target]]\nname = \"app\"\n\
         slack = {{ token = \"xoxb-hidden\", channel = \"C1\", api = \"http://127.0.0.1:{port}/api\" }}\n",
        port = receiver.port
    );
    for target in ["team", "app"] {
        let sent = run(&world, &text, &["--log", "trace", "--test", target]);
        let printed = stderr_text(&sent);
        assert!(sent.status.success(), "{printed}");
        assert!(!printed.contains("hidden"), "{printed}");
    }
    assert_eq!(receiver.requests().len(), 2);
}

#[test]
fn a_project_that_is_not_found_is_named_at_the_start() {
    let (world, receiver) = (world(), Receiver::new());
    let text = hook(&receiver).replace(
        "name = \"hook\"",
        "name = \"hook\"\nprojects = [\"web\", \"wbe\"]",
    );
    let output = run(&world, &text, &["--once"]);
    let printed = stderr_text(&output);
    assert_contains(
        &printed,
        "target \"hook\": \"wbe\" is no project with events for messages",
    );
    assert!(!printed.contains("\"web\" is"), "{printed}");
}

#[test]
fn suites_that_fail_by_the_same_tests_share_a_group() {
    let (world, receiver) = (world(), Receiver::new());
    let import = |suite: &str, minutes: i64, commit: &str, passes: bool| {
        let key = format!("{suite} {commit}");
        let flags = [
            "--branch",
            "main",
            "--commit",
            commit,
            "--suite",
            suite,
            "--run-key",
            &key,
        ];
        world.import_cases(minutes, &[("pays", passes)], &flags);
    };
    for suite in ["linux", "macos"] {
        import(suite, 500, "a000000000", true);
        import(suite, 480, "b000000000", true);
    }
    pass(&world, &hook(&receiver));
    for suite in ["linux", "macos"] {
        import(suite, 60, "c000000000", false);
    }
    pass(&world, &hook(&receiver));
    let [request] = receiver.requests().try_into().unwrap();
    assert!(
        request.body.contains("1 test broke since c0000000\","),
        "{}",
        request.body
    );
    assert!(!request.body.contains("flaky"), "{}", request.body);
}
