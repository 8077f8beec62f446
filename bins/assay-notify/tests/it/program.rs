//! The program: its file, its flags and its exit statuses.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    process::{Command, Output},
};

use assay_testkit::{Answer, Receiver, World, assert_contains, notify_file, stderr_text, wait_until};

/// Runs the program with this file.
pub(crate) fn run(world: &World, text: &str, arguments: &[&str]) -> Output {
    let config = notify_file(world.folder.path(), text);
    let mut command = world.cli.command_of("assay-notify", arguments);
    command.arg("--config").arg(config).output().unwrap()
}

#[test]
fn an_invalid_file_is_refused_with_the_status_of_wrong_usage_and_no_secret() {
    let world = World::new();
    let output = run(
        &world,
        "[[target]]\nname = \"team\"\nteams = { url = \"http://example.org/hidden\" }\n",
        &["--once"],
    );
    let printed = stderr_text(&output);
    assert_eq!(output.status.code(), Some(2), "{printed}");
    assert_contains(&printed, "target \"team\": the address must begin with https://");
    assert!(!printed.contains("hidden"), "{printed}");

    let exposed = world.folder.path().join("exposed.toml");
    fs::write(&exposed, "").unwrap();
    fs::set_permissions(&exposed, fs::Permissions::from_mode(0o644)).unwrap();
    let mut command = world.cli.command_of("assay-notify", &["--once", "--config"]);
    let output = command.arg(&exposed).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr_text(&output).contains("chmod 600"), "{output:?}");
}

#[test]
fn a_test_message_arrives_and_a_refused_one_is_an_error() {
    let (world, receiver) = (World::new(), Receiver::new());
    let text = format!(
        "private_addresses = [\"127.0.0.1\"]\n[[target]]\nname = \"hook\"\nwebhook = {{ url = \"http://127.0.0.1:{}/hidden\", \
         keys = [\"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"] }}\n",
        receiver.port
    );
    let output = run(&world, &text, &["--test", "hook"]);
    assert!(output.status.success(), "{}", stderr_text(&output));
    let [request] = receiver.requests().try_into().unwrap();
    assert_eq!(request.path, "/hidden");
    assert!(
        request.body.contains("this is a test message"),
        "{}",
        request.body
    );

    let unknown = run(&world, &text, &["--test", "hok"]);
    assert!(stderr_text(&unknown).contains("it has: hook"), "{unknown:?}");
    receiver.answer(Answer::Status(410, String::new()));
    let refused = run(&world, &text, &["--test", "hook"]);
    let printed = stderr_text(&refused);
    assert_eq!(refused.status.code(), Some(1));
    assert_contains(&printed, "127.0.0.1 answers with status 410");
    assert!(!printed.contains("hidden"), "{printed}");
}

#[test]
fn a_service_waits_for_its_database_and_a_single_pass_does_not() {
    let world = World::new();
    let text = "[[target]]\nname = \"log\"\nfile = { path = \"/dev/null\", format = \"json\" }\n";
    let config = notify_file(world.folder.path(), text);
    let log = world.folder.path().join("log");
    let command = |arguments: &[&str]| {
        let mut command = world.cli.command_of("assay-notify", arguments);
        command
            .env("ASSAY_DATABASE_URL", "postgresql://a@127.0.0.1:1/a")
            .arg("--config")
            .arg(&config)
            .stderr(fs::File::create(&log).unwrap());
        command
    };
    assert_eq!(command(&["--once"]).status().unwrap().code(), Some(1));
    let mut service = command(&["--every", "1"]).spawn().unwrap();
    wait_until("two attempts", || {
        let log = fs::read_to_string(&log).unwrap();
        log.matches("the database is unreachable").count() >= 2
    });
    let pid = service.id().to_string();
    assert!(Command::new("kill").arg(pid).status().unwrap().success());
    assert!(service.wait().unwrap().success());
}
