//! Asking before something is gone for good.

use std::io::{self, BufRead as _, Write as _};

use anyhow::bail;

use crate::terminal;

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
