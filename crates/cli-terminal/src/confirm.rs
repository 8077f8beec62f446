//! Questions on a terminal: confirmation before data is deleted for good, and values.

use std::io::{self, BufRead as _, Write as _};

use anyhow::{bail, ensure};

use crate::{terminal, wrap::wrapped};

/// Asks `question` on a terminal before a deletion that cannot be undone. Returns an error unless the answer is yes.
/// Without a terminal (a pipe, cron, CI), `--yes` is required.
pub fn confirm_deletion(yes: bool, question: impl FnOnce() -> String) -> anyhow::Result<()> {
    ensure!(
        yes || terminal::can_ask(),
        "nothing was deleted: there is no terminal to ask on; add --yes to delete without a question"
    );
    confirm(yes, question)
}

/// Asks `question` on a terminal. Returns an error unless the answer is yes. Does not ask with `--yes`, or without a
/// terminal (a pipe, cron, CI).
pub fn confirm(yes: bool, question: impl FnOnce() -> String) -> anyhow::Result<()> {
    if yes || !terminal::can_ask() {
        return Ok(());
    }
    match answer(&question(), "y/N")?.to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => bail!("nothing was changed"),
    }
}

/// The line that answers a question.
fn answer(question: &str, choice: &str) -> anyhow::Result<String> {
    let mut err = terminal::err();
    let question = wrapped(&format!("{question} [{choice}] "), terminal::stderr_width());
    write!(err, "{question}")?;
    err.flush()?;
    drop(err);
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(answer.trim().to_owned())
}

/// Asks for a value on a terminal. An empty answer is `default_value`. None without a terminal.
pub fn ask(question: &str, default_value: &str) -> anyhow::Result<Option<String>> {
    if !terminal::can_ask() {
        return Ok(None);
    }
    let answer = answer(question, default_value)?;
    Ok(Some(match answer.as_str() {
        "" => default_value.to_owned(),
        _ => answer,
    }))
}
