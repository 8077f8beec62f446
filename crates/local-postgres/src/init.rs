//! Creates a cluster's data.

use std::{
    fs,
    io::{self, Write},
    path::Path,
    process::{Command, Stdio},
};

use crate::{ClusterError, binaries::Binaries, layout::Layout, settings::ROLE};

/// Creates the data with `initdb`, then the database `assay` in them, and moves them into place when they are
/// complete.
pub(crate) fn make_data(layout: &Layout, binaries: &Binaries) -> Result<(), ClusterError> {
    for abandoned in layout.abandoned_data() {
        if let Err(error) = remove_tree(&abandoned) {
            // Its `initdb` may still be writing. The next start removes the rest.
            log::warn!("{} was not removed: {error}", abandoned.display());
        }
    }
    let unfinished = layout.unfinished_data();
    remove_tree(&unfinished)?;
    let mut initdb = layout.account.command(&binaries.program("initdb"));
    initdb
        .args([
            "--no-sync",
            "--data-checksums",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--username",
            ROLE,
            "--pgdata",
        ])
        .arg(&unfinished);
    run("initdb", initdb, None)?;
    let mut single = layout.account.command(&binaries.program("postgres"));
    single
        .args(["--single", "-c", "fsync=off", "-D"])
        .arg(&unfinished)
        .arg("postgres");
    run(
        "postgres --single",
        single,
        Some(&format!("CREATE DATABASE {ROLE};\n")),
    )?;
    fs::rename(&unfinished, layout.data())
        .map_err(|source| ClusterError::io("move into place", &unfinished, source))
}

/// Runs a program to its end with this input.
fn run(program: &'static str, mut command: Command, input: Option<&str>) -> Result<(), ClusterError> {
    let path = Path::new(command.get_program()).to_path_buf();
    let failed = |source| ClusterError::io("run", &path, source);
    let mut child = command
        .current_dir("/")
        .env("LC_ALL", "C")
        .stdin(if input.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut has_read_input = true;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        match stdin.write_all(input.as_bytes()) {
            // The program ended early. Its output has the reason.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => has_read_input = false,
            written => written.map_err(failed)?,
        }
    }
    let ended = child.wait_with_output().map_err(failed)?;
    let output = String::from_utf8_lossy(&ended.stderr);
    // In single-user mode Postgres prints a failed statement and still exits with 0.
    if ended.status.success() && has_read_input && !output.contains("ERROR:") {
        return Ok(());
    }
    Err(ClusterError::Program {
        program,
        status: ended.status,
        output: tail(&output),
    })
}

/// Removes a folder with its contents, if it exists.
pub(crate) fn remove_tree(path: &Path) -> Result<(), ClusterError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(ClusterError::io("remove", path, error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The last five lines.
pub(crate) fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().collect();
    lines
        .get(lines.len().saturating_sub(5)..)
        .unwrap_or_default()
        .join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_ends_before_it_reads_its_input_is_reported_with_status_and_output() {
        // More than a pipe holds.
        let input = "x".repeat(1 << 20);
        for (script, expected) in [
            (
                "echo no space >&2; exit 3",
                "sh failed (exit status: 3): no space",
            ),
            ("exec true", "sh failed (exit status: 0): "),
        ] {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            let error = run("sh", command, Some(&input)).unwrap_err().to_string();
            assert_eq!(error, expected);
        }
    }
}
