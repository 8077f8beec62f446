//! Errors and warnings that are printed before the command ends, and advice on errors.

use assay_cli_remote::server::{annotation, ingest::UploadError};
use assay_cli_terminal::terminal;
use assay_domain::run::CiProvider;

/// Advice for an error and its causes; `None` if the messages already contain it or no advice is known.
pub(crate) fn advice(error: &anyhow::Error) -> Option<&'static str> {
    let reason = |cause: &(dyn std::error::Error + 'static)| cause.downcast_ref::<UploadError>()?.advice();
    error.chain().find_map(reason)
}

/// Prints an error that does not end the command.
pub(crate) fn print(error: &anyhow::Error) {
    assay_cli_terminal::errors::print(error, advice(error));
}

/// Prints a warning that a CI service shows beside the build.
pub(crate) fn warn(provider: Option<CiProvider>, text: &str) {
    terminal::print_line(format_args!("{}", annotation::warning(provider, text)));
}
