//! Questions on a terminal: confirmation before data is deleted for good, and values.

use std::io::{self, BufRead as _, Write as _};

use anyhow::{bail, ensure};

use crate::terminal;

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
    let mut err = terminal::err();
    write!(err, "{} [y/N] ", question())?;
    err.flush()?;
    drop(err);
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => bail!("nothing was changed"),
    }
}

/// Asks for a value on a terminal. An empty answer is `default_value`. None without a terminal.
pub fn ask(question: &str, default_value: &str) -> anyhow::Result<Option<String>> {
    if !terminal::can_ask() {
        return Ok(None);
    }
    let mut err = terminal::err();
    write!(err, "{question} [{default_value}] ")?;
    err.flush()?;
    drop(err);
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    let answer = answer.trim();
    let is_default = answer.is_empty();
    Ok(Some(if is_default { default_value } else { answer }.to_owned()))
}
