//! The output of a command: one JSON object, or text for people.

use std::{fmt::Display, io::Write as _};

use assay_domain::{recording::ReplacedResults, run::Counts, shell};
use serde::Serialize;

pub use crate::table::table;
use crate::{terminal, wrap::wrapped};

/// Prints one JSON object, or the text that `human` makes.
pub fn print(json: bool, value: &impl Serialize, human: impl FnOnce() -> String) -> anyhow::Result<()> {
    if json {
        let mut out = terminal::plain_out();
        writeln!(out, "{}", serde_json::to_string(value)?)?;
        out.flush()?;
    } else {
        let mut out = terminal::out();
        writeln!(out, "{}", wrapped(human().trim_end(), terminal::width()))?;
        out.flush()?;
    }
    Ok(())
}

/// Prints warnings on standard error.
pub fn print_warnings(warnings: &[String]) {
    for warning in warnings {
        message!("warning: {warning}");
    }
}

/// `1 test`, `2 tests`.
pub fn count<N: Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    format!("{number} {noun}{}", if number == N::from(1) { "" } else { "s" })
}

/// The numbers of tests by outcome.
pub fn counts(counts: &Counts) -> String {
    let Counts {
        total,
        passed,
        failed,
        skipped,
        recovered,
    } = counts;
    format!(
        "{}, {passed} passed ({recovered} recovered), {failed} failed, {skipped} skipped",
        count(*total, "test")
    )
}

/// A name in the syntax of a shell: quoted if necessary.
pub fn shell_word(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    if !name.is_empty() && !name.starts_with('-') && name.chars().all(is_plain) {
        name.to_owned()
    } else {
        shell::quoted(name)
    }
}

/// `1.50 GiB`.
pub fn bytes(bytes: i64) -> String {
    indicatif::HumanBytes(u64::try_from(bytes).unwrap_or_default()).to_string()
}

/// How a stored report relates to earlier ones of its run, as further lines; empty if it is the first or an addition.
pub fn relation(continues: bool, replaced: Option<ReplacedResults>) -> String {
    let replaced = replaced.map(|ReplacedResults { tests, failed }| {
        format!(
            "\nIt replaced {} of earlier reports, {failed} of them failed",
            count(tests, "test")
        )
    });
    let continued = continues.then(|| "\nIt continues what failed in an earlier attempt".to_owned());
    replaced.into_iter().chain(continued).collect()
}
