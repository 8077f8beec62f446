//! The statements of a route, as Postgres logged them. This module does not depend on the schema or the queries.

use std::path::Path;

use anyhow::{Context as _, ensure};

use crate::{
    client::Request,
    cluster::{Running, with_settings},
    program::Program,
};

/// A statement with the values of its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statement {
    pub(crate) sql: String,
    /// In their order; none for null.
    pub(crate) values: Vec<Option<String>>,
}

impl Statement {
    /// Whether it begins or ends a transaction, or sets something up.
    pub(crate) fn is_control(&self) -> bool {
        let first = self
            .sql
            .split_whitespace()
            .next()
            .unwrap_or_default()
            .to_ascii_uppercase();
        matches!(
            first.as_str(),
            "BEGIN" | "START" | "COMMIT" | "ROLLBACK" | "SET" | "SAVEPOINT" | "RELEASE"
        )
    }
}

/// How many statements do work.
pub(crate) fn count(statements: &[Statement]) -> usize {
    statements
        .iter()
        .filter(|statement| !statement.is_control())
        .count()
}

/// The statements of each of these requests, on a server of their own.
pub(crate) fn of_requests(
    running: &Running,
    server: &Path,
    dir: &Path,
    requests: &[Request],
) -> anyhow::Result<Vec<Vec<Statement>>> {
    let url = with_settings(&running.url(), &[("log_statement", "all")]);
    let program = Program::server(server, &url, "error", dir)?;
    requests
        .iter()
        .map(|request| {
            // The first request prepares statements and records the key's use. If it is cold, it takes longer than a
            // key is cached, so that the next one looks the key up again.
            program.client.once(request)?;
            program.client.once(request)?;
            let before = running.log_length()?;
            program.client.once(request)?;
            let statements = parse(&running.log_since(before)?);
            ensure!(!statements.is_empty(), "Postgres logged no statement");
            Ok(statements)
        })
        .collect()
}

/// The statements that a piece of work on this connection string has Postgres log.
pub(crate) fn of_work(
    running: &Running,
    work: impl FnOnce(&str) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<Statement>> {
    let url = with_settings(&running.url(), &[("log_statement", "all")]);
    let before = running.log_length()?;
    work(&url).context("recording statements")?;
    Ok(parse(&running.log_since(before)?))
}

/// The statements of a log.
fn parse(log: &str) -> Vec<Statement> {
    let mut statements: Vec<Statement> = Vec::new();
    for entry in entries(log) {
        if let Some(text) = after(&entry, " LOG:  ") {
            let sql = match text.split_once(": ") {
                Some(("statement", sql)) => Some(sql),
                Some((how, sql)) if how.starts_with("execute ") => Some(sql),
                Some(_) | None => None,
            };
            statements.extend(sql.map(|sql| Statement {
                sql: sql.split_whitespace().collect::<Vec<_>>().join(" "),
                values: Vec::new(),
            }));
        } else if let Some(text) = after(&entry, " DETAIL:  ")
            && let Some((heading, values)) = text.split_once(": ")
            && heading.eq_ignore_ascii_case("parameters")
            && let Some(last) = statements.last_mut()
        {
            last.values = self::values(values);
        }
    }
    statements
}

/// The entries of a log. A line that begins with a tab continues the one before.
fn entries(log: &str) -> Vec<String> {
    let mut entries: Vec<String> = Vec::new();
    for line in log.lines() {
        match (line.strip_prefix('\t'), entries.last_mut()) {
            (Some(more), Some(last)) => {
                last.push('\n');
                last.push_str(more);
            }
            (_, _) => entries.push(line.to_owned()),
        }
    }
    entries
}

fn after<'a>(entry: &'a str, mark: &str) -> Option<&'a str> {
    // Before the mark there are only the time and the process.
    let (before, text) = entry.split_once(mark)?;
    (before.len() < 80).then_some(text)
}

/// The values of `$1 = 'a', $2 = NULL`; quotes within are doubled.
fn values(text: &str) -> Vec<Option<String>> {
    let mut values = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(" = ") {
        if let Some(quoted) = after.strip_prefix('\'') {
            let (mut value, mut characters) = (String::new(), quoted.char_indices().peekable());
            let mut end = quoted.len();
            while let Some((place, character)) = characters.next() {
                if character != '\'' {
                    value.push(character);
                } else if characters.next_if(|(_, next)| *next == '\'').is_some() {
                    value.push('\'');
                } else {
                    end = place + 1;
                    break;
                }
            }
            values.push(Some(value));
            rest = quoted.get(end..).unwrap_or_default();
        } else {
            values.push(None);
            rest = after;
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_read_from_a_log() {
        let log = "2026-11-21 00:00:00.000 UTC [7] LOG:  statement: BEGIN\n\
                   2026-11-21 00:00:00.000 UTC [7] LOG:  execute __diesel_stmt_0: SELECT a,\n\t  b FROM t WHERE c = $1 AND d = $2\n\
                   2026-11-21 00:00:00.000 UTC [7] DETAIL:  parameters: $1 = 'it''s = ''x''', $2 = NULL\n\
                   2026-11-21 00:00:00.000 UTC [8] LOG:  checkpoint starting: time\n\
                   2026-11-21 00:00:00.000 UTC [7] LOG:  statement: COMMIT\n";
        let statements = parse(log);
        assert_eq!(count(&statements), 1);
        assert_eq!(statements.len(), 3);
        assert_eq!(statements[1].sql, "SELECT a, b FROM t WHERE c = $1 AND d = $2");
        assert_eq!(statements[1].values, [Some("it's = 'x'".to_owned()), None]);
    }
}
