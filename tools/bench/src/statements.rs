//! Counts the statements of an operation from Postgres' log, independent of the schema and the queries.

use std::path::Path;

use anyhow::{Context as _, ensure};

use crate::{
    cases::Case,
    cluster::{Running, with_settings},
    dataset::OpenDataset,
    program::Program,
};

/// The number of statements of each of these requests, on a separate server.
pub(crate) fn of_requests(opened: &OpenDataset, server: &Path, cases: &[Case]) -> anyhow::Result<Vec<usize>> {
    let url = with_settings(&opened.running.url(), &[("log_statement", "all")]);
    let program = Program::server(server, opened, &url)?;
    let count = |case: &Case| {
        // The first request prepares statements and records the key's use. With cold caches it takes longer than a key
        // is cached, so the next request looks up the key again.
        program.client.once(&case.request)?;
        program.client.once(&case.request)?;
        let before = opened.running.log_length()?;
        program.client.once(&case.request)?;
        let statements = count(&opened.running.log_since(before)?);
        ensure!(statements > 0, "Postgres logged no statement");
        Ok(statements)
    };
    cases.iter().map(count).collect()
}

/// The number of statements of an operation on this connection string.
pub(crate) fn of_work(
    running: &Running,
    work: impl FnOnce(&str) -> anyhow::Result<()>,
) -> anyhow::Result<usize> {
    let url = with_settings(&running.url(), &[("log_statement", "all")]);
    let before = running.log_length()?;
    work(&url).context("counting statements")?;
    Ok(count(&running.log_since(before)?))
}

/// The statements in a log that read or write data.
fn count(log: &str) -> usize {
    const CONTROL: &str = "BEGIN START COMMIT ROLLBACK SET SAVEPOINT RELEASE";
    // A line that continues a statement begins with a tab.
    let lines = log.lines().filter(|line| !line.starts_with('\t'));
    let statements = lines.filter_map(|line| {
        let (how, sql) = line.split_once(" LOG:  ")?.1.split_once(": ")?;
        (how == "statement" || how.starts_with("execute ")).then_some(sql)
    });
    let word = |sql: &str| sql.split_whitespace().next().map(str::to_ascii_uppercase);
    statements
        .filter(|sql| word(sql).is_none_or(|word| !CONTROL.split(' ').any(|control| control == word)))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_do_work_are_counted() {
        let log = "2026-11-21 00:00:00.000 UTC [7] LOG:  statement: BEGIN\n\
                   2026-11-21 00:00:00.000 UTC [7] LOG:  execute __diesel_stmt_0: SELECT a,\n\t  b FROM t WHERE c = $1\n\
                   2026-11-21 00:00:00.000 UTC [7] DETAIL:  parameters: $1 = 'it''s'\n\
                   2026-11-21 00:00:00.000 UTC [8] LOG:  checkpoint starting: time\n\
                   2026-11-21 00:00:00.000 UTC [7] LOG:  statement: COMMIT\n";
        assert_eq!(count(log), 1);
    }
}
