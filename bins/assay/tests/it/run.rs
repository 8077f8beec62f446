//! `assay run`, with a listener that records the requests.

use std::{
    fs,
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    process::{Child, Command, Stdio},
};

use crate::{
    junit,
    pty::{Session, Streams},
    receiver::{Receiver, Reply, error, reply, stored},
    upload::Job,
};
use assay_testkit::{assert_contains, closed_pipe, started_by, stderr_text, wait_until};
use serde_json::{Value, json};

/// A shell command that writes a report.
fn write_report_then(path: &str, then: &str) -> String {
    let report = junit::report("2026-11-20T10:00:00Z", &[("adds", true)]);
    format!("mkdir -p $(dirname {path}); cat > {path} <<'XML'\n{report}XML\n{then}")
}

fn names(receiver: &Receiver) -> Vec<String> {
    let requests = receiver.requests();
    requests
        .iter()
        .flat_map(|request| request.files())
        .map(|(name, _)| name)
        .collect()
}

#[test]
fn only_reports_that_the_command_wrote_are_sent() {
    let receiver = Receiver::start(vec![stored()]);
    let job = Job::new(&receiver.url);
    job.write("out/old.xml", "not even a report");
    job.write("out/rewritten.xml", "of an earlier build");
    let script = write_report_then("out/new.xml", "")
        + &write_report_then("out/rewritten.xml", "echo to out; echo to err >&2");
    let output = job.run(&["run", "--report", "out/*.xml", "--", "sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr_text(&output));
    assert_eq!(names(&receiver), ["out/new.xml", "out/rewritten.xml"]);
    // Standard output has only the output of the command.
    assert_eq!(output.stdout, b"to out\n");
    for part in ["to err\n", "Run 812 of \"storefront\"", "2 became flaky"] {
        assert!(
            stderr_text(&output).contains(part),
            "{part}: {}",
            stderr_text(&output)
        );
    }
}

#[test]
fn without_a_named_report_the_new_one_in_the_first_usual_place_is_sent() {
    let receiver = Receiver::start(vec![stored(), stored()]);
    let job = Job::new(&receiver.url);
    let earlier = junit::report("2026-11-19T10:00:00Z", &[("adds", true)]);
    job.write("junit.xml", &earlier);
    job.write("test-results/other.json", "{}");
    let script = write_report_then("reports/new.xml", "")
        + &write_report_then(
            "test-results/a.xml",
            "echo '[1]' > test-results/data.json; exit 3",
        );
    let output = job.run(&["run", "--", "sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr_text(&output));
    assert_eq!(names(&receiver), ["test-results/a.xml"]);
    let found = "assay: found the report test-results/a.xml; --report names another one";
    assert_contains(&stderr_text(&output), found);

    let none = job.run(&["run", "--", "true"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(
        stderr_text(&none).contains("wrote no report in a usual place") && names(&receiver).len() == 1,
        "{}",
        stderr_text(&none)
    );
}

#[test]
fn the_command_has_no_keys_in_its_environment() {
    let receiver = Receiver::start(vec![stored()]);
    let job = Job::new(&receiver.url);
    let script = write_report_then("out/new.xml", "env | grep ^ASSAY_ | sort");
    let output = job
        .command(&["run", "--report", "out/*.xml", "--", "sh", "-c", &script])
        .env("ASSAY_READ_KEY", "svc_ro_secret")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr_text(&output));
    let seen = String::from_utf8(output.stdout).unwrap();
    assert!(
        seen.contains("ASSAY_INGEST_URL=") && !seen.contains("KEY="),
        "{seen}"
    );
}

#[test]
fn a_file_of_the_same_size_written_at_once_is_new() {
    let receiver = Receiver::start(vec![stored()]);
    let job = Job::new(&receiver.url);
    // An earlier report with a file time in the future, and one that was copied with its file time.
    fs::copy(
        job.folder.path().join("out/junit.xml"),
        job.folder.path().join("saved.xml"),
    )
    .unwrap();
    let script = "cp -p saved.xml out/copied.xml; cat saved.xml > out/junit.xml";
    let output = job.run(&["run", "--report", "out", "--", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr_text(&output));
    assert_eq!(names(&receiver), ["out/copied.xml", "out/junit.xml"]);
}

#[test]
fn the_program_exits_with_the_commands_status() {
    let receiver = Receiver::start(vec![stored()]);
    let job = Job::new(&receiver.url);
    for (script, code) in [
        ("exit 0", 0),
        ("exit 1", 1),
        ("exit 97", 97),
        ("kill -TERM $$", 143),
    ] {
        let output = job.run(&[
            "run",
            "--report",
            "r.xml",
            "--",
            "sh",
            "-c",
            &write_report_then("r.xml", script),
        ]);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{script}: {}",
            stderr_text(&output)
        );
    }
    assert_eq!(receiver.requests().len(), 4, "a failed run is sent as well");
    let absent = job.run(&["run", "--report", "r.xml", "--", "no-such-program"]);
    assert_eq!(absent.status.code(), Some(127));
    assert_contains(&stderr_text(&absent), "no-such-program");
    assert_eq!(
        job.run(&["run", "--report", "r.xml", "--", "./out"])
            .status
            .code(),
        Some(126)
    );
    assert_eq!(receiver.requests().len(), 4);
}

#[test]
fn a_failed_upload_exits_with_1_unless_the_command_failed() {
    let receiver = Receiver::start(vec![error(409, "sharding_differs")]);
    let job = Job::new(&receiver.url);
    let run = |flags: &[&str], script: &str| {
        let script = write_report_then("r.xml", script);
        let output = job.run(&[&["run", "--report", "r.xml"], flags, &["--", "sh", "-c", &script]].concat());
        assert_contains(&stderr_text(&output), "sharding_differs");
        output.status.code()
    };
    assert_eq!(run(&[], "exit 0"), Some(1));
    assert_eq!(run(&[], "exit 3"), Some(3));
    assert_eq!(run(&["--best-effort"], "exit 0"), Some(0));
    assert_eq!(run(&["--best-effort"], "exit 3"), Some(3));
}

#[test]
fn a_command_without_a_report_is_not_a_success() {
    let receiver = Receiver::start(vec![stored()]);
    let job = Job::new(&receiver.url);
    let old = job.run(&["run", "--report", "out/*.xml", "--", "true"]);
    assert_eq!(old.status.code(), Some(1));
    assert_contains(
        &stderr_text(&old),
        "of out/*.xml there is only one file from before the start",
    );
    let none = job.run(&["run", "--report", "absent/*.xml", "--", "sh", "-c", "exit 2"]);
    assert_eq!(none.status.code(), Some(2));
    assert_contains(&stderr_text(&none), "no file matches absent/*.xml");
    // The failure is stored, with an empty report.
    assert_eq!(receiver.requests().len(), 1);
}

#[test]
fn wrong_usage_exits_with_2_before_the_command_runs() {
    let job = Job::new("http://127.0.0.1:1");
    let refused = |command: &mut Command, part: &str| {
        let output = command.output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(2),
            "{command:?}: {}",
            stderr_text(&output)
        );
        assert!(
            stderr_text(&output).contains(part),
            "{part}: {}",
            stderr_text(&output)
        );
        assert!(!job.folder.path().join("ran").exists(), "{command:?}");
    };
    let run = || job.command(&["run", "--report", "r.xml", "--", "touch", "ran"]);
    refused(
        run().env_remove("ASSAY_INGEST_KEY"),
        "ASSAY_INGEST_KEY is not set",
    );
    refused(
        run().env("ASSAY_INGEST_URL", "http://assay.example.org"),
        "plain http://",
    );
    refused(&mut job.command(&["run", "--report", "r.xml"]), "COMMAND");
    refused(
        &mut job.command(&["run", "--report", "-", "--", "touch", "ran"]),
        "--report -",
    );
    // Without a key, as in a fork, the tests still run.
    let mut command = job.command(&["run", "--best-effort", "--report", "r.xml", "--", "touch", "ran"]);
    let fork = command.env_remove("ASSAY_INGEST_KEY").output().unwrap();
    assert_eq!(fork.status.code(), Some(0), "{}", stderr_text(&fork));
    assert!(job.folder.path().join("ran").exists());
}

/// Waits until a file exists.
fn wait_for_file(job: &Job, name: &str) {
    wait_until(name, || job.folder.path().join(name).exists());
}

pub(crate) fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-s", name, &id])
            .status()
            .unwrap()
            .success()
    );
}

/// The command with signals that it does not ignore. A job in the background of a shell ignores some from its start.
pub(crate) fn with_default_signals(command: &Command) -> Command {
    let mut env = Command::new("env");
    env.args(["--default-signal=HUP,INT,QUIT", "--"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    started_by(env, command)
}

#[test]
fn signals_are_forwarded_and_written_reports_are_still_sent() {
    for (name, number) in [("TERM", 15), ("INT", 2), ("HUP", 1)] {
        let receiver = Receiver::start(vec![stored()]);
        let job = Job::new(&receiver.url);
        let report = write_report_then("r.xml", "");
        // The trap writes a line for each signal, so a signal that arrives twice is visible.
        let script = format!(
            "got() {{ echo {name} >> got; {report}\nexit 5; }}\ntrap got {name}; touch ready; while :; do sleep 0.05; done"
        );
        let command = job.command(&["run", "--report", "r.xml", "--", "bash", "-c", &script]);
        let mut child = with_default_signals(&command).spawn().unwrap();
        wait_for_file(&job, "ready");
        signal(&child, name);
        let mut text = String::new();
        child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(5), "{name}: {text}");
        assert_eq!(
            fs::read_to_string(job.folder.path().join("got")).unwrap(),
            format!("{name}\n")
        );
        assert_eq!(names(&receiver), ["r.xml"], "{text}");

        // The signal ends a command that does not handle it.
        let command = job.command(&[
            "run",
            "--best-effort",
            "--report",
            "none.xml",
            "--",
            "sh",
            "-c",
            "touch up; exec sleep 60",
        ]);
        let mut child = with_default_signals(&command).spawn().unwrap();
        wait_for_file(&job, "up");
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), Some(128 + number), "{name}");
    }
}

#[test]
fn ignored_signals_stay_ignored_by_the_command() {
    let receiver = Receiver::start(vec![stored()]);
    for name in ["HUP", "INT", "QUIT"] {
        let job = Job::new(&receiver.url);
        let script = write_report_then("r.xml", &format!("kill -{name} $$; kill -{name} $PPID; exit 5"));
        let command = job.command(&["run", "--report", "r.xml", "--", "sh", "-c", &script]);
        // As `nohup` does, and a shell for a job in its background.
        let mut ignoring = Command::new("sh");
        ignoring.args(["-c", &format!("trap '' {name}; exec \"$@\""), "sh"]);
        let output = started_by(ignoring, &command).output().unwrap();
        assert_eq!(output.status.code(), Some(5), "{name}: {}", stderr_text(&output));
    }
    assert_eq!(names(&receiver), ["r.xml"; 3]);
}

#[test]
fn the_command_uses_the_terminal_directly() {
    let receiver = Receiver::start(vec![stored()]);
    let job = Job::new(&receiver.url);
    let script = write_report_then(
        "r.xml",
        "read -r answer; tty -s && echo \"a terminal got $answer\"",
    );
    let mut command = job.command(&["run", "--report", "r.xml", "--", "sh", "-c", &script]);
    command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let mut session = Session::start(command, 80, Streams::All);
    session.answer("forty-two");
    session.until("a terminal got forty-two");
    let (status, shown) = session.end();
    assert!(status.success(), "{shown}");
    assert_contains(&shown, "2 became flaky");
    for line in shown.lines() {
        // A bar was drawn before the sentence that took its place.
        let last = line
            .rsplit('\r')
            .find(|part| !part.is_empty())
            .unwrap_or_default();
        let last = last.trim_start_matches("\u{1b}[2K");
        let plain = last.replace("\u{1b}[1m", "");
        assert!(last.chars().count() <= 80 && !plain.contains("[1m"), "{line:?}");
    }
}

#[test]
fn ctrl_c_reaches_the_command_once() {
    let receiver = Receiver::start(vec![stored()]);
    let job = Job::new(&receiver.url);
    let report = write_report_then("r.xml", "");
    let script = format!(
        "got() {{ echo INT >> got; {report}\nexit 5; }}\ntrap got INT; echo the command is up; while :; do sleep 0.05; done"
    );
    let plain = job.command(&["run", "--report", "r.xml", "--", "bash", "-c", &script]);
    // A controlling terminal sends the signal to all processes in the foreground.
    let mut setsid = Command::new("setsid");
    setsid.args(["--ctty", "--wait", "env", "--default-signal=HUP,INT,QUIT", "--"]);
    let mut session = Session::start(started_by(setsid, &plain), 80, Streams::All);
    session.until("the command is up");
    session.answer("\u{3}");
    let (status, shown) = session.end();
    assert_eq!(status.code(), Some(5), "{shown}");
    assert_eq!(
        fs::read_to_string(job.folder.path().join("got")).unwrap(),
        "INT\n"
    );
    assert_eq!(names(&receiver), ["r.xml"], "{shown}");
}
#[test]
fn closed_output_changes_neither_the_status_nor_what_is_stored() {
    let cases: [(&[&str], Reply, &str, i32); 8] = [
        (&["--gate"], reply(201, &judged(RUN)), "exit 0", 0),
        // No test failed, so the failure of the command is not excused.
        (&["--gate"], reply(201, &judged(RUN)), "exit 3", 3),
        (
            &["--gate", "--exit-code", "42"],
            reply(201, &judged(RUN)),
            "exit 3",
            42,
        ),
        (&["--gate", "--json"], reply(201, &judged(RUN)), "exit 3", 3),
        (&[], stored(), "exit 0", 0),
        (&["--json"], stored(), "exit 3", 3),
        (&[], error(409, "sharding_differs"), "exit 0", 1),
        (&["--gate"], error(409, "sharding_differs"), "exit 3", 3),
    ];
    for (flags, answer, script, status) in cases {
        let is_judged = answer.body.contains(RUN);
        let receiver = Receiver::start(vec![answer, reply(200, &json!({}))]);
        let job = Job::new(&receiver.url);
        let script = write_report_then("r.xml", script);
        let arguments = [&["run", "--report", "r.xml"], flags, &["--", "sh", "-c", &script]].concat();
        let mut command = job.command(&arguments);
        command.stdout(closed_pipe()).stderr(closed_pipe());
        assert_eq!(command.status().unwrap().code(), Some(status), "{arguments:?}");
        let lines: Vec<_> = receiver
            .requests()
            .into_iter()
            .map(|request| request.line)
            .collect();
        assert_eq!(
            lines.iter().any(|line| line.contains("/decisions ")),
            is_judged,
            "{arguments:?}: {lines:?}"
        );
    }
}

/// Creates two folders that cannot be read: the path of one is too long, and the other has no permissions.
fn make_unreadable_folders(job: &Job) {
    let script = "mkdir -p out/deep && cd out/deep && name=$(printf %0200d 0)
        for level in $(seq 25); do mkdir $name && cd -P ./$name || exit 1; done";
    let made = Command::new("bash")
        .args(["-c", script])
        .current_dir(job.folder.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", stderr_text(&made));
    let secret = job.folder.path().join("out/secret");
    fs::create_dir(&secret).unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
}

#[test]
fn unreadable_folders_are_skipped_and_the_tests_run() {
    let receiver = Receiver::start(vec![stored()]);
    let job = Job::new(&receiver.url);
    make_unreadable_folders(&job);
    // Root can read every folder whose path is not too long.
    let is_root = fs::read_dir(job.folder.path().join("out/secret")).is_ok();
    let warning = "assay: warning: skipped a folder that cannot be read: out/";
    let folders = if is_root { 1 } else { 2 };
    for report in ["out/**/*.xml", "out", "o*"] {
        let script = write_report_then("out/new.xml", "exit 5");
        let output = job.run(&["run", "--report", report, "--", "sh", "-c", &script]);
        let stderr = stderr_text(&output);
        assert_eq!(output.status.code(), Some(5), "{report}: {stderr}");
        assert_eq!(stderr.matches(warning).count(), folders, "{report}: {stderr}");
    }
    assert_eq!(names(&receiver), ["out/new.xml"; 3]);
    // A pattern of an upload skips them as well. A folder that is named is read completely, or not at all.
    for (path, status) in [("out/**/*.xml", 0), ("out", 1)] {
        let output = job.run(&["upload", path]);
        assert_eq!(
            output.status.code(),
            Some(status),
            "{path}: {}",
            stderr_text(&output)
        );
    }
    fs::set_permissions(
        job.folder.path().join("out/secret"),
        fs::Permissions::from_mode(0o700),
    )
    .unwrap();
}

const RUN: &str = "019aa3f4-5b1c-7def-8a3b-000000000812";

/// The answer to a stored report without failed tests, for the gate.
fn judged(run: &str) -> Value {
    let mut answer: Value = serde_json::from_str(&stored().body).unwrap();
    answer["failures"] =
        json!({"gate": {"mine": 0.0, "action": "pass"}, "incomplete": null, "total": 0, "failures": []});
    (answer["runId"], answer["shardId"]) = (run.into(), run.into());
    answer
}

#[test]
fn a_server_that_stores_no_decisions_is_a_warning() {
    let unnamed = reply(201, &judged("r1"));
    let older = error(404, "not_found");
    for (stored, why) in [
        (
            reply(201, &judged(RUN)),
            "the server is older than this program; update it",
        ),
        (unnamed, "the server's answer does not name the stored report"),
    ] {
        let receiver = Receiver::start(vec![stored, older.clone()]);
        let job = Job::new(&receiver.url);
        let script = write_report_then("out/new.xml", "");
        let output = job.run(&[
            "run",
            "--report",
            "out/*.xml",
            "--gate",
            "--",
            "sh",
            "-c",
            &script,
        ]);
        let stderr = stderr_text(&output);
        assert_eq!(output.status.code(), Some(0), "{stderr}");
        let warning = "warning: the gate's decision is not stored: ";
        assert!(stderr.contains(warning) && stderr.contains(why), "{stderr}");
        let Some(decision) = receiver.requests().into_iter().nth(1) else {
            continue;
        };
        assert_eq!(decision.line, "POST /ingest/v1/decisions HTTP/1.1");
        let body: Value = serde_json::from_slice(&decision.body).unwrap();
        assert_eq!(
            body,
            json!({"runId": RUN, "shardId": RUN, "outcome": "clean", "failed": 0, "excused": []})
        );
    }
}
