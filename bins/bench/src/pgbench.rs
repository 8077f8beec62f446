//! The same statements through pgbench: the limit of Postgres and libpq on this machine.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, bail};

use crate::{number::float, recorded::Statement};

/// pgbench, where it was found.
#[derive(Debug)]
pub(crate) struct Pgbench {
    program: PathBuf,
}

/// What a run of pgbench came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ran {
    /// Transactions a second.
    pub(crate) rate: f64,
    /// Mean latency in milliseconds.
    pub(crate) ms: f64,
}

impl Pgbench {
    /// The one of this machine.
    pub(crate) fn find(pg_bin: Option<&Path>) -> Option<Self> {
        crate::program::find("pgbench", pg_bin).map(|program| Self { program })
    }

    /// Runs prepared statements as often as these connections can in this time. A first second does not count:
    /// Postgres plans each statement for each connection, for the last time after the fifth execution.
    pub(crate) fn run(
        &self,
        url: &str,
        statements: &[Statement],
        connections: u32,
        seconds: u64,
        script: &Path,
    ) -> anyhow::Result<Ran> {
        let (text, variables) = script_of(statements);
        fs::write(script, text).with_context(|| format!("writing {}", script.display()))?;
        let mut command = Command::new(&self.program);
        command.args(["--no-vacuum", "--protocol=prepared"]);
        command.arg(format!("--client={connections}"));
        command.arg(format!("--jobs={}", connections.min(2)));
        command.arg("--progress=1");
        // One more than those that count, and one because the last may end before it is reported.
        command.arg(format!("--time={}", seconds.max(1) + 2));
        command.arg("--file").arg(script);
        for (name, value) in variables {
            command.arg(format!("--define={name}={value}"));
        }
        let output = command.arg(url).output().context("running pgbench")?;
        let said = String::from_utf8_lossy(&output.stderr);
        let told: Vec<Ran> = said.lines().filter_map(progress).collect();
        match told.get(1..) {
            Some(planned @ [_, ..]) if output.status.success() => {
                let mean = |of: fn(&Ran) -> f64| planned.iter().map(of).sum::<f64>() / float(planned.len());
                Ok(Ran {
                    rate: mean(|ran| ran.rate),
                    ms: mean(|ran| ran.ms),
                })
            }
            Some(_) | None => {
                bail!(
                    "pgbench failed: {}",
                    said.lines()
                        .find(|line| line.contains("rror"))
                        .unwrap_or_default()
                )
            }
        }
    }
}

/// Parses a progress line about the last second: `progress: 2.0 s, 7391.0 tps, lat 1.079 ms stddev 0.215, 0 failed`.
fn progress(line: &str) -> Option<Ran> {
    let mut figures = line.strip_prefix("progress: ")?.split(", ").skip(1);
    let mut number = |before: &str| {
        let figure = figures.next()?.trim_start_matches(before);
        figure.split_whitespace().next()?.parse::<f64>().ok()
    };
    Some(Ran {
        rate: number("")?,
        ms: number("lat ")?,
    })
}

/// A script, and the variables with the statements' parameters. Nulls are written into the text, because a variable
/// cannot be null.
fn script_of(statements: &[Statement]) -> (String, BTreeMap<String, String>) {
    let (mut script, mut variables) = (String::new(), BTreeMap::new());
    for (place, statement) in statements.iter().enumerate() {
        let mut rest = statement.sql.as_str();
        while let Some((before, after)) = rest.split_once('$') {
            script.push_str(before);
            let digits = after.len()
                - after
                    .trim_start_matches(|character: char| character.is_ascii_digit())
                    .len();
            let (number, behind) = after.split_at(digits);
            let value = number
                .parse::<usize>()
                .ok()
                .and_then(|number| statement.values.get(number.checked_sub(1)?));
            match value {
                Some(Some(value)) => {
                    let name = format!("s{place}p{number}");
                    script.push_str(&format!(":{name}"));
                    variables.insert(name, value.clone());
                }
                Some(None) => script.push_str("NULL"),
                None => script.push_str(&format!("${number}")),
            }
            rest = behind;
        }
        script.push_str(rest);
        script.push_str(";\n");
    }
    (script, variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_progress_is_read() {
        let line = "progress: 2.0 s, 7391.5 tps, lat 1.079 ms stddev 0.215, 0 failed";
        assert_eq!(
            progress(line),
            Some(Ran {
                rate: 7391.5,
                ms: 1.079
            })
        );
        assert_eq!(progress("pgbench (15.18)"), None);
    }

    #[test]
    fn parameters_become_variables() {
        let statement = Statement {
            sql: "SELECT a FROM t WHERE b = $1 AND c = $2 AND d = $1".to_owned(),
            values: vec![Some("x".to_owned()), None],
        };
        let (script, variables) = script_of(&[statement]);
        assert_eq!(
            script,
            "SELECT a FROM t WHERE b = :s0p1 AND c = NULL AND d = :s0p1;\n"
        );
        assert_eq!(
            variables.into_iter().collect::<Vec<_>>(),
            [("s0p1".to_owned(), "x".to_owned())]
        );
    }
}
