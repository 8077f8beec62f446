//! Asking before something is gone for good.

use std::io::{self, BufRead as _, Write as _};

use anyhow::{bail, ensure};

use crate::terminal;

/// Asks `question` on a terminal, before something is deleted that cannot be had back by other means. An error where the
/// answer is not yes. Where nobody can answer (a pipe, cron, CI), `--yes` is required.
pub(crate) fn confirm_deletion(yes: bool, question: impl FnOnce() -> String) -> anyhow::Result<()> {
    ensure!(
        yes || terminal::can_ask(),
        "nothing was deleted: nobody can be asked here; add --yes to delete without a question"
    );
    confirm(yes, question)
}

/// Asks `question` on a terminal; an error where the answer is not yes. Where nobody could answer (a pipe, cron, CI), and
/// with `--yes`, nobody is asked.
pub(crate) fn confirm(yes: bool, question: impl FnOnce() -> String) -> anyhow::Result<()> {
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
