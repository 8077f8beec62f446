//! The annotation of a build's page of Buildkite.

use std::{
    io::Write as _,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::Context as _;

use crate::codehost::{comment::Comment, post::Outcome};

/// The program of the agent.
pub(crate) struct Agent(pub(crate) PathBuf);

impl Agent {
    /// Writes the annotation, unless the build has one of a newer state. One context replaces its earlier text. Nothing reads an
    /// annotation, so its state is kept as meta-data of the build.
    pub(crate) fn annotate(&self, comment: &Comment) -> anyhow::Result<Outcome> {
        let key = format!("assay-state-{}", comment.project());
        let known = self.output(&["meta-data", "get", &key, "--default", "0"], "")?;
        if known.trim().parse().is_ok_and(|known: i64| known > comment.state) {
            return Ok(Outcome::Newer);
        }
        self.output(&["meta-data", "set", &key, &comment.state.to_string()], "")?;
        let style = match (comment.clean, comment.action.as_str()) {
            (true, _) => "success",
            (false, "block") => "error",
            (false, _) => "warning",
        };
        self.output(
            &["annotate", "--context", "assay", "--style", style],
            &comment.markdown,
        )?;
        Ok(Outcome::Edited)
    }

    /// The output of a command of the agent.
    fn output(&self, arguments: &[&str], input: &str) -> anyhow::Result<String> {
        let command = arguments.first().copied().unwrap_or_default();
        output_of(Command::new(&self.0).args(arguments), input)
            .with_context(|| format!("buildkite-agent {command}"))
    }
}

/// Runs a program with this input, and returns its output.
pub(crate) fn output_of(command: &mut Command, input: &str) -> anyhow::Result<String> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    let reason = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{}: {}", output.status, reason.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;
    use crate::codehost::comment::Counts;

    #[test]
    fn an_older_state_never_replaces_a_newer_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("buildkite-agent");
        let script = "#!/bin/sh\ncd \"$(dirname \"$0\")\"\ncase \"$1 $2\" in\n\
            'meta-data get') cat state 2>/dev/null || echo \"$5\";;\n\
            'meta-data set') echo \"$4\" > state;;\n*) cat > shown;;\nesac\n";
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let agent = Agent(path);
        let comment = |state: i64| Comment {
            enabled: true,
            revision: None,
            state,
            clean: false,
            action: "rerun".to_owned(),
            counts: Counts {
                total: 1,
                failed: 1,
                skipped: 0,
                recovered: 0,
            },
            headline: String::new(),
            url: None,
            marker: "<!-- assay project=1 ".to_owned(),
            markdown: format!("text {state}"),
            annotations: Vec::new(),
        };
        for (state, expected, shown) in [
            (5, Outcome::Edited, "text 5"),
            (4, Outcome::Newer, "text 5"),
            (6, Outcome::Edited, "text 6"),
        ] {
            assert_eq!(agent.annotate(&comment(state)).unwrap(), expected, "{state}");
            assert_eq!(fs::read_to_string(folder.path().join("shown")).unwrap(), shown);
        }
    }
}
