//! Behaviour that differs on a terminal: questions, colours, widths and progress bars.

use std::{io::Write as _, process::Stdio};

use crate::{
    junit,
    pty::{Session, Streams},
};
use assay_testkit::{World, assert_contains, stderr_text, text};

fn key(world: &World) -> String {
    text(
        &world
            .cli
            .json(&["key", "create", "--org", "Shop", "--days", "30"])["id"],
    )
}

fn is_revoked(world: &World) -> bool {
    world.cli.json(&["key", "list"])["keys"][0]["revokedAt"].is_string()
}

#[test]
fn revoking_a_key_needs_confirmation_only_on_a_terminal() {
    let world = World::without_key();
    let id = key(&world);
    let revoke = |arguments: &[&str]| {
        let command = world.cli.command(&[&["key", "revoke", &id], arguments].concat());
        Session::start(command, 100, Streams::All)
    };
    for no in ["n", "", "maybe"] {
        let mut session = revoke(&[]);
        session.until("[y/N]");
        session.answer(no);
        let (status, shown) = session.end();
        assert_eq!(status.code(), Some(1), "{shown}");
        assert_contains(&shown, "nothing was changed");
        assert!(!is_revoked(&world));
    }
    let mut session = revoke(&[]);
    session.until("[y/N]");
    session.answer("yes");
    assert!(session.end().0.success() && is_revoked(&world));
    // Confirmed in advance by a flag.
    let (status, shown) = revoke(&["--yes"]).end();
    assert!(status.success() && !shown.contains("[y/N]"), "{shown}");

    let other = World::without_key();
    let id = key(&other);
    assert!(
        other.cli.run(&["key", "revoke", &id]).status.success(),
        "without a terminal there is no question"
    );
    assert!(is_revoked(&other));
}

#[test]
fn renaming_moving_and_deleting_need_confirmation_on_a_terminal() {
    let world = World::without_key();
    world.cli.json(&["org", "create", "Bakery"]);
    let names = || {
        world
            .database
            .texts("SELECT name FROM organization UNION ALL SELECT name FROM project ORDER BY 1")
    };
    let before = names();
    let (web, question) = (world.project.as_str(), "[y/N]");
    for (command, question) in [
        (&["project", "rename", web, "store"][..], "to \"store\"?"),
        (
            &["project", "move-to-org", web, "Bakery"],
            "to the organization \"Bakery\"?",
        ),
        (&["project", "delete", web], "with 0 runs for good?"),
        (&["org", "rename", "Bakery", "Mill"], "to \"Mill\"?"),
        (&["org", "delete", "Shop"], "with 1 project, 0 runs"),
    ] {
        let mut session = Session::start(world.cli.command(command), 200, Streams::All);
        session.until(question);
        session.answer("n");
        let (status, shown) = session.end();
        assert!(shown.contains(question) && status.code() == Some(1), "{shown}");
    }
    assert_eq!(names(), before);
    let mut session = Session::start(world.cli.command(&["org", "delete", "Shop"]), 200, Streams::All);
    session.until(question);
    session.answer("y");
    assert!(session.end().0.success());
    assert_eq!(world.count("SELECT count(*) FROM project"), 0);
}

#[test]
fn pruning_needs_confirmation_on_a_terminal() {
    let world = World::without_key();
    let report = world.file("r.xml", &junit::report("2020-01-01T00:00:00Z", &[("adds", true)]));
    world.import(&["--run-key", "old", &report]);
    let mut session = Session::start(world.cli.command(&["prune", "--all-of-it"]), 100, Streams::All);
    session.until("[y/N]");
    session.answer("n");
    assert_eq!(session.end().0.code(), Some(1));
    assert_eq!(world.count("SELECT count(*) FROM run"), 1);

    let mut session = Session::start(world.cli.command(&["prune", "--all-of-it"]), 100, Streams::All);
    session.until("[y/N]");
    session.answer("y");
    assert!(session.end().0.success());
    assert_eq!(world.count("SELECT count(*) FROM run"), 0);
}

#[test]
fn colours_are_printed_only_on_terminals_that_support_them() {
    let world = World::without_key();
    key(&world);
    let shown = |arguments: &[&str], environment: &[(&str, &str)]| {
        let mut command = world.cli.command(arguments);
        command.envs(environment.iter().copied());
        let (status, shown) = Session::start(command, 200, Streams::All).end();
        assert!(status.success(), "{shown}");
        shown
    };
    let list = ["key", "list"];
    assert!(shown(&list, &[]).contains('\u{1b}'));
    assert!(!shown(&list, &[("NO_COLOR", "1")]).contains('\u{1b}'));
    assert!(!shown(&["key", "list", "--json"], &[]).contains('\u{1b}'));
    assert!(!shown(&["org", "list", "--json"], &[]).contains('\u{1b}'));
    let piped = world.cli.run(&list);
    assert!(!piped.stdout.contains(&0x1b));

    let mut failing = world.cli.command(&["project", "list", "--org", "Shp"]);
    failing.env("NO_COLOR", "1");
    let (status, plain) = Session::start(failing, 100, Streams::Error).end();
    assert_eq!(status.code(), Some(1));
    assert!(plain.starts_with("assay-admin: no organization"), "{plain}");
}

#[test]
fn sentences_fit_the_terminal_and_are_whole_in_a_pipe() {
    let world = World::without_key();
    let unknown = "an unknown name ".repeat(9);
    for arguments in [
        &[
            "setup",
            "--org",
            "Shop",
            "--project",
            "store",
            "--url",
            "https://assay.example.org",
        ][..],
        &["key", "create", "--org", "Shop", "--days", "30"],
        &["project", "delete", &unknown, "--yes"],
        &[
            "key",
            "create",
            "--org",
            "Shop",
            "--days",
            "no number of days that a key may have at all",
        ],
    ] {
        let mut command = world.cli.command(arguments);
        command.env("NO_COLOR", "1");
        let (_, shown) = Session::start(command, 80, Streams::All).end();
        assert!(
            shown.lines().all(|line| line.trim_end().chars().count() <= 80),
            "{shown}"
        );
        let piped = world.cli.run(arguments);
        let piped = stderr_text(&piped) + &String::from_utf8(piped.stdout).unwrap();
        assert!(piped.lines().any(|line| line.chars().count() > 80), "{piped}");
    }
}

#[test]
fn tables_fit_the_terminal_and_are_whole_in_a_pipe() {
    let world = World::without_key();
    let name = format!("Shop of {}", "very ".repeat(20));
    let organization = world.cli.json(&["org", "create", name.trim(), "--plan", "free"]);
    let id = text(&organization["id"]);
    let list = |columns: u16| {
        let mut command = world.cli.command(&["org", "list"]);
        command.env("NO_COLOR", "1");
        Session::start(command, columns, Streams::All).end().1
    };
    let fitted = list(100);
    assert!(fitted.contains('…') && fitted.contains(&id), "{fitted}");
    for line in fitted.lines() {
        assert!(line.trim_end().chars().count() <= 100, "{fitted}");
    }
    let blocks = list(50);
    let words: Vec<&str> = blocks.split_whitespace().collect();
    assert!(
        blocks.contains(&id) && words.join(" ").contains(name.trim()),
        "{blocks}"
    );
    let piped = world.cli.run(&["org", "list"]);
    let piped = String::from_utf8(piped.stdout).unwrap();
    assert!(piped.contains(name.trim()) && !piped.contains('…'), "{piped}");
}

#[test]
fn a_progress_bar_is_shown_only_on_a_terminal() {
    let world = World::without_key();
    let report = junit::report("2026-11-20T10:00:00Z", &[("adds", true)]);
    let import = |arguments: &[&str]| {
        let arguments = [
            &[
                "import",
                "--project",
                "web",
                "--run-key",
                "k",
                "--branch",
                "main",
                "--commit",
                "c0ffee",
                "-",
            ],
            arguments,
        ]
        .concat();
        let mut command = world.cli.command(&arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command
    };
    // The program waits for its input, with a bar: nothing here is a race.
    let mut session = Session::start(import(&[]), 100, Streams::Error);
    session.until("reading");
    session.until("0/1 files");
    session.until("left");
    let mut stdin = session.stdin();
    stdin.write_all(report.as_bytes()).unwrap();
    drop(stdin);
    assert!(session.end().0.success());

    let mut session = Session::start(import(&["--json"]), 100, Streams::Error);
    let mut stdin = session.stdin();
    stdin.write_all(report.as_bytes()).unwrap();
    drop(stdin);
    let (status, shown) = session.end();
    assert!(status.success() && shown.is_empty(), "{shown}");

    let mut command = import(&[]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(report.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{}",
        stderr_text(&output)
    );
}
