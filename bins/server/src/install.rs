//! Installs Postgres for a demonstration. No other command installs anything.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use anyhow::{Context as _, bail};
use assay_local_postgres::{ClusterError, Installer, look};

use crate::{config::Config, startup};

/// Installs Postgres where the demonstration's database needs it: says what it installs, and asks on a terminal.
pub(crate) fn where_missing(config: &Config) -> anyhow::Result<()> {
    let settings = startup::cluster_settings();
    let Err(missing @ ClusterError::NotFound { .. }) = look(&config.data_dir(), &settings) else {
        return Ok(());
    };
    let Some(installer) = Installer::find(settings.path.as_deref()) else {
        bail!(missing);
    };
    eprintln!("Postgres was not found. The demonstration needs it and installs it with:\n  {installer}");
    let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    if is_terminal && !is_agreed()? {
        bail!(missing);
    }
    installer.run(is_terminal).context("installing Postgres")
}

/// Asks on the terminal; an empty answer is yes.
fn is_agreed() -> io::Result<bool> {
    let mut err = io::stderr().lock();
    write!(err, "Install it now? [Y/n] ")?;
    err.flush()?;
    drop(err);
    let mut answer = String::new();
    let length = io::stdin().lock().read_line(&mut answer)?;
    Ok(length > 0 && matches!(answer.trim().to_lowercase().as_str(), "" | "y" | "yes"))
}
