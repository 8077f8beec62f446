//! Completions and manual pages of the programs.

use std::{
    io::Write as _,
    process::{Command, Output, Stdio},
};

use assay_testkit::{Cli, assert_contains, program, stderr_text};

fn cli() -> Cli {
    Cli::new("postgresql:///nowhere")
}

/// Runs a tool over a text; none if the tool is not installed.
fn tool(name: &str, arguments: &[&str], input: &[u8]) -> Option<Output> {
    let mut child = Command::new(name)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    // A tool may exit before it has read all input; its exit status shows whether that is an error.
    let _ = writer.join().unwrap();
    Some(output)
}

#[test]
fn completions_are_valid_in_their_shells() {
    let server = program("assay-server");
    for (shell, check) in [
        ("bash", Some(["bash", "-n"])),
        ("zsh", Some(["zsh", "-n"])),
        ("fish", Some(["fish", "--no-execute"])),
        ("elvish", None),
        ("powershell", None),
    ] {
        let ours = [
            ("assay-admin", ["create-ingest", "stable-branch", "doctor"]),
            ("assay", ["quarantine", "retry-for", "causes"]),
        ]
        .map(|(program, words)| {
            let command = |arguments: &[&str]| {
                let arguments = [&["completions", shell], arguments].concat();
                cli().command_of(program, &arguments).output().unwrap()
            };
            let output = command(&[]);
            assert!(output.status.success(), "{}", stderr_text(&output));
            let script = String::from_utf8(output.stdout.clone()).unwrap();
            for word in words {
                assert!(script.contains(word), "{shell}: {word}");
            }
            let json: serde_json::Value = serde_json::from_slice(&command(&["--json"]).stdout).unwrap();
            assert_eq!(json["script"].as_str(), Some(script.as_str()));
            output.stdout
        });
        let servers = Command::new(&server)
            .args(["--completions", shell])
            .output()
            .unwrap();
        assert!(servers.status.success(), "{}", stderr_text(&servers));
        assert!(String::from_utf8_lossy(&servers.stdout).contains("admin-listen"));
        for script in ours.into_iter().chain([servers.stdout]) {
            let checked = check.and_then(|[name, flag]| tool(name, &[flag], &script));
            assert!(
                checked.as_ref().is_none_or(|output| output.status.success()),
                "{shell}: {}",
                stderr_text(&checked.unwrap())
            );
        }
    }
    let wrong = cli().run(&["completions", "bsh"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert_contains(&stderr_text(&wrong), "'bash'");
}

#[test]
fn bash_completes_a_command_an_option_and_a_value() {
    let script = cli().run(&["completions", "bash"]).stdout;
    let complete = |words: &[&str]| {
        let line = words.join(" ");
        let last = words.len() - 1;
        let test = format!(
            "{}\nCOMP_WORDS=({line}{}); COMP_CWORD={last}; COMPREPLY=(); _assay_admin assay-admin '{}' '{}'\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
            String::from_utf8_lossy(&script),
            if words[last].is_empty() { "''" } else { "" },
            words[last],
            words[last - 1],
        );
        let output = tool("bash", &["--norc"], test.as_bytes()).expect("there is bash");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(complete(&["assay-admin", "doc"]).contains("doctor"));
    assert!(complete(&["assay-admin", "import", "--tested"]).contains("--tested-revision"));
    let plans = complete(&["assay-admin", "org", "create", "--plan", "s"]);
    assert_eq!(plans.trim(), "standard");
}

#[test]
fn each_command_has_a_page_that_renders() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("man1").display().to_string();
    let written = cli().json(&["man", "--output", &output]);
    let files: Vec<&str> = written["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file.as_str().unwrap())
        .collect();
    for name in [
        "assay-admin.1",
        "assay-admin-import.1",
        "assay-admin-key-create.1",
        "assay-admin-doctor.1",
    ] {
        assert!(
            files.iter().any(|file| file.ends_with(&format!("/{name}"))),
            "{name}: {files:?}"
        );
    }
    let single = |name| cli().command_of(name, &["man"]).output().unwrap().stdout;
    let server = Command::new(program("assay-server"))
        .arg("--man")
        .output()
        .unwrap();
    assert!(server.status.success(), "{}", stderr_text(&server));
    let pages = files.iter().map(|file| std::fs::read(file).unwrap()).chain([
        single("assay-admin"),
        single("assay"),
        server.stdout,
    ]);
    for page in pages {
        let Some(rendered) = tool("groff", &["-man", "-Tutf8", "-ww", "-z"], &page) else {
            continue;
        };
        assert!(
            rendered.status.success() && stderr_text(&rendered).is_empty(),
            "{}",
            stderr_text(&rendered)
        );
    }
}
