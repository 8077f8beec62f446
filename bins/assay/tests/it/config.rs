//! `.assay/config.toml`: flags of the commands that run in CI.

use std::fs;

use assay_testkit::{assert_contains, stderr_text};

use crate::{
    receiver::{Receiver, stored},
    upload::Job,
};

/// A job in a checkout with this file.
fn job(url: &str, config: &str) -> Job {
    let job = Job::new(url);
    fs::create_dir(job.folder.path().join(".git")).unwrap();
    job.write(".assay/config.toml", config);
    job
}

#[test]
fn commands_take_flags_from_the_file_and_those_of_the_command_line_win() {
    let config = "suite = 'e2e'\nbranch = 'main'\nattempt = 2\nretries-as-attempts = true\nreplace = false\nretry-for = '0'\n\
                  # Of other commands, or without effect alone.\nmax-excused = 3\nnever = ['*pay*', 'cart']\nrerun = '90s'\ntotal = 3\n";
    for (arguments, suite) in [
        (&["upload", "out"][..], "e2e"),
        (&["upload", "--suite", "unit", "out"], "unit"),
        (
            &["run", "--report", "r.xml", "--", "cp", "out/junit.xml", "r.xml"],
            "e2e",
        ),
    ] {
        let receiver = Receiver::start(vec![stored()]);
        let job = job(&receiver.url, config);
        let output = job.run(arguments);
        assert!(output.status.success(), "{}", stderr_text(&output));
        let request = &receiver.requests()[0];
        let field = |name: &str| request.field(name).unwrap_or_default();
        assert_eq!(
            (field("suite").as_str(), field("branch").as_str()),
            (suite, "main")
        );
        assert_eq!((field("attempt").as_str(), field("replace").as_str()), ("2", ""));
    }
}

#[test]
fn a_flag_that_excludes_one_of_the_file_wins_too_and_a_folder_below_has_the_same_file() {
    let receiver = Receiver::start(vec![stored()]);
    let job = job(
        &receiver.url,
        "gate = true\nrerun = '90s'\nreport = ['a.xml', 'b.xml']\n",
    );
    fs::create_dir(job.folder.path().join("web")).unwrap();
    let mut command = job.command(&["run", "--dry-run", "--", "cp", "../out/junit.xml", "b.xml"]);
    let output = command
        .current_dir(job.folder.path().join("web"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr_text(&output));
    assert_eq!(receiver.requests()[0].field("dryRun").as_deref(), Some("true"));

    let refused = job.run(&["split", "--total", "2"]);
    assert_contains(&stderr_text(&refused), "--index");
}

#[test]
fn a_wrong_entry_is_wrong_usage_and_the_message_has_its_line_and_what_to_do() {
    for (line, problem) in [
        (
            "bracnh = 'main'",
            "unknown key \"bracnh\"; did you mean \"branch\"? a key is a flag",
        ),
        ("json = true", "unknown key \"json\""),
        ("[gate]", "\"gate\" has a wrong type; write true or false"),
        ("gate = 'yes'", "\"gate\" has a wrong type; write true or false"),
        (
            "branch = 5",
            "\"branch\" has a wrong type; write a text in quotes",
        ),
        (
            "never = [1]",
            "\"never\" has a wrong type; write a text in quotes, or a list",
        ),
        (
            "max-excused = '3'",
            "\"max-excused\" has a wrong type; write a number",
        ),
        ("risk = 1.5", "invalid value '1.5' for '--risk <P>'"),
        (
            "format = 'junitt'",
            "invalid value 'junitt' for '--format <FORMAT>'",
        ),
        (
            "url = 'https://evil.example'",
            "\"url\" is not read from this file",
        ),
        ("branch = ", "write `flag = value`"),
        ("suite = 'again'", "duplicate key"),
    ] {
        for command in ["run", "upload"] {
            let job = job("http://127.0.0.1:1", &format!("suite = 'e2e'\n\n{line}\n"));
            let output = match command {
                "run" => job.run(&["run", "--report", "r.xml", "--", "touch", "started"]),
                _ => job.run(&["upload", "out"]),
            };
            let stderr = stderr_text(&output);
            assert_eq!(output.status.code(), Some(2), "{line}: {stderr}");
            assert_contains(&stderr, ".assay/config.toml, line 3: ");
            assert!(stderr.contains(problem), "{line}: {stderr}");
            assert!(!job.folder.path().join("started").exists(), "{line}");
            assert!(job.run(&[command, "--help-all"]).status.success(), "{line}");
        }
    }
}
