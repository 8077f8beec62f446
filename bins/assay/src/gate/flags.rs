//! The flags of the gate, which `assay gate` and `assay run --gate` share.

use std::{
    collections::HashSet,
    fs::{self, OpenOptions},
    io::{self, Read, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, ensure};
use assay_console::{message, misuse::Misuse, values::age};
use clap::{Args, ValueEnum};
use glob::Pattern;

use super::{
    policy::{Decision, Rules},
    show,
};
use crate::{clock, environment, errors};

/// Heading of the help.
const GATE: &str = "The gate";
/// Most bytes of the list of changed files.
const MOST_CHANGED: u64 = 16 << 20;

/// What the gate excuses, and where it writes its decision.
#[derive(Debug, Args)]
pub(crate) struct GateFlags {
    /// The gate does not pass if the probability that this branch broke one failed test, or any of them, is at least this
    #[arg(long, value_name = "P", default_value_t = 0.05, value_parser = probability, help_heading = GATE)]
    risk: f64,
    /// How many failed tests may be excused
    #[arg(long, value_name = "N", default_value_t = 5, help_heading = GATE)]
    max_excused: usize,
    /// The files of the change, one a line (- for standard input); a failed test in one of them is not excused
    #[arg(long, value_name = "FILE", help_heading = GATE)]
    changed: Option<PathBuf>,
    /// Tests that are never excused: a pattern for names or files; may be given several times
    #[arg(long, value_name = "GLOB", value_parser = pattern, help_heading = GATE)]
    never: Vec<Pattern>,
    /// Excuse tests that are broken on the stable branch, too
    #[arg(long, help_heading = GATE)]
    allow_broken: bool,
    /// Do not excuse a test whose first known failure is longer ago: 30d, 12h
    #[arg(long, value_name = "TIME", value_parser = age, help_heading = GATE)]
    expire_after: Option<Duration>,
    /// Append the decision as Markdown to this file; auto for $GITHUB_STEP_SUMMARY
    #[arg(long, value_name = "FILE|auto", help_heading = GATE)]
    summary: Option<PathBuf>,
    /// Write the decision as Markdown to this file, for a comment: its first line is a marker to find the comment by
    #[arg(long, value_name = "FILE", help_heading = GATE)]
    comment: Option<PathBuf>,
    /// The exit status if the gate does not pass
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..), help_heading = GATE)]
    pub(crate) exit_code: Option<u8>,
}

/// How the decision is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GateOutput {
    /// For a terminal and a log
    Text,
    /// For a comment or a summary
    Markdown,
    /// One JSON object
    Json,
    /// The failed tests as JUnit XML, the excused ones as skipped
    Junit,
}

fn probability(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|number| (0.0..=1.0).contains(number))
        .ok_or_else(|| "expected a probability from 0 to 1".to_owned())
}

fn pattern(text: &str) -> Result<Pattern, String> {
    Pattern::new(text).map_err(|error| error.to_string())
}

impl GateFlags {
    /// The rules, with the list of changed files read.
    pub(crate) fn rules(&self) -> anyhow::Result<Rules> {
        let changed = match &self.changed {
            Some(path) => changed_files(path)?,
            None => HashSet::new(),
        };
        Ok(Rules {
            risk: self.risk,
            most_excused: self.max_excused,
            changed,
            never: self.never.clone(),
            allow_broken: self.allow_broken,
            expire_after: self.expire_after,
            now: clock::now(),
        })
    }

    /// Writes the decision to the files that were asked for. A failure is printed, and does not change the exit status.
    pub(crate) fn write_files(&self, decision: &Decision) {
        let markdown = show::markdown(decision);
        for written in [self.write_comment(&markdown), self.write_summary(&markdown)] {
            if let Err(error) = written {
                errors::print(&error.context("the decision is not written"));
            }
        }
    }

    fn write_comment(&self, markdown: &str) -> anyhow::Result<()> {
        let Some(path) = &self.comment else {
            return Ok(());
        };
        fs::write(path, markdown).with_context(|| format!("--comment {}", path.display()))
    }

    fn write_summary(&self, markdown: &str) -> anyhow::Result<()> {
        let Some(named) = &self.summary else {
            return Ok(());
        };
        let path = if named.as_os_str() == "auto" {
            match environment::step_summary() {
                Some(path) => path,
                None => {
                    message!("no summary is written: GITHUB_STEP_SUMMARY is not set");
                    return Ok(());
                }
            }
        } else {
            named.clone()
        };
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&path)
            .with_context(|| format!("--summary {}", path.display()))?;
        file.write_all(format!("{markdown}\n").as_bytes())
            .with_context(|| format!("--summary {}", path.display()))
    }
}

/// The files that the list at `path` names.
fn changed_files(path: &Path) -> anyhow::Result<HashSet<String>> {
    let read = if path.as_os_str() == "-" {
        read_list(io::stdin().lock(), MOST_CHANGED)
    } else {
        fs::File::open(path)
            .map_err(anyhow::Error::new)
            .and_then(|file| read_list(file, MOST_CHANGED))
    };
    let list = read.map_err(|error| Misuse(format!("--changed {}: {error}", path.display())))?;
    Ok(names_in(&list))
}

/// Reads a list of at most `most` bytes. A longer list is an error: its rest would name files whose failed tests must
/// not be excused.
fn read_list(from: impl Read, most: u64) -> anyhow::Result<Vec<u8>> {
    let mut list = Vec::new();
    from.take(most + 1).read_to_end(&mut list)?;
    ensure!(
        u64::try_from(list.len())? <= most,
        "the list is longer than {} MiB; list only files of tests",
        most >> 20
    );
    Ok(list)
}

/// The names in the output of `git diff --name-only`: one a line, or with `-z` each with a NUL after it.
fn names_in(list: &[u8]) -> HashSet<String> {
    let names: Vec<Vec<u8>> = match list.contains(&0) {
        true => list.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect(),
        false => list
            .split(|&byte| byte == b'\n')
            .map(|line| {
                let line = line.trim_ascii();
                unquoted(line).unwrap_or_else(|| line.to_vec())
            })
            .collect(),
    };
    names
        .iter()
        .map(|name| String::from_utf8_lossy(name.strip_prefix(b"./").unwrap_or(name)).into_owned())
        .filter(|name| !name.is_empty())
        .collect()
}

/// The name in a line that Git has quoted as a string of C. Git quotes a name with a quote, a control character, or a
/// byte beyond ASCII (`core.quotePath`). None for a line that is not quoted so.
fn unquoted(line: &[u8]) -> Option<Vec<u8>> {
    let mut rest = line.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let mut name = Vec::with_capacity(rest.len());
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            name.push(byte);
            continue;
        }
        let (&escape, after) = rest.split_first()?;
        rest = after;
        name.push(match escape {
            b'a' => 0x07,
            b'b' => 0x08,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 0x0b,
            b'f' => 0x0c,
            b'r' => b'\r',
            b'"' | b'\\' => escape,
            b'0'..=b'3' => {
                let (&[middle, low], after) = rest.split_first_chunk()?;
                rest = after;
                let digits = [escape, middle, low];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 8).ok()?
            }
            _ => return None,
        });
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_that_git_quotes_are_unquoted() {
        let list = concat!(
            "./tests/plain.ts\n",
            r#""tests/\303\274ber \"uns\" \\ \a\b\t\n\v\f\r\001.ts""#,
            "\r\n\n",
            "  tests/größe.ts\n",
            "\"tests/not \\quoted\"\n",
            "\"tests/cut \\30\"",
        );
        let expected = [
            "tests/plain.ts",
            "tests/über \"uns\" \\ \u{7}\u{8}\t\n\u{b}\u{c}\r\u{1}.ts",
            "tests/größe.ts",
            "\"tests/not \\quoted\"",
            "\"tests/cut \\30\"",
        ];
        assert_eq!(names_in(list.as_bytes()), expected.map(str::to_owned).into());
    }

    #[test]
    fn names_with_a_nul_after_them_are_verbatim() {
        let list = "tests/two\nlines.ts\0\"tests/\\303\\274.ts\"\0 tests/größe.ts\0";
        let expected = [
            "tests/two\nlines.ts",
            "\"tests/\\303\\274.ts\"",
            " tests/größe.ts",
        ];
        assert_eq!(names_in(list.as_bytes()), expected.map(str::to_owned).into());
    }

    #[test]
    fn a_list_over_the_limit_is_refused() {
        let list = vec![b'a'; (1 << 20) + 1];
        let refused = read_list(&list[..], 1 << 20).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the list is longer than 1 MiB; list only files of tests"
        );
        assert_eq!(read_list(&list[1..], 1 << 20).unwrap().len(), 1 << 20);
    }
}
