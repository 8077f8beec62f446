//! What a command prints: one JSON object, or text for people.

use std::io::{self, IsTerminal as _, Write as _};

use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;

/// Prints one JSON object, or what `human` makes for people.
pub(crate) fn print(
    json: bool,
    value: &impl Serialize,
    human: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    if json {
        writeln!(out, "{}", serde_json::to_string(value)?)?;
    } else {
        writeln!(out, "{}", human().trim_end())?;
    }
    out.flush()?;
    Ok(())
}

/// A table without lines, columns of numbers to the right; empty cells show a dash. Bold only on a terminal.
pub(crate) fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(
            header
                .iter()
                .map(|title| Cell::new(title).add_attribute(Attribute::Bold)),
        );
    if plain() {
        table.force_no_tty();
    }
    let mut numeric = vec![true; header.len()];
    for row in rows {
        for (numeric, text) in numeric.iter_mut().zip(&row) {
            *numeric &= !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        }
        table.add_row(
            row.into_iter()
                .map(|text| if text.is_empty() { "-".to_owned() } else { text }),
        );
    }
    for (column, _) in table
        .column_iter_mut()
        .zip(numeric)
        .filter(|(_, numeric)| *numeric)
    {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
        .lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

/// Whether output goes elsewhere than to a terminal that shows colours.
#[expect(
    clippy::disallowed_methods,
    reason = "NO_COLOR is a custom of the terminal, not configuration of ours"
)]
fn plain() -> bool {
    !io::stdout().is_terminal() || std::env::var("NO_COLOR").is_ok_and(|value| !value.is_empty())
}

/// `1 test`, `2 tests`.
pub(crate) fn count(number: impl Into<u64>, noun: &str) -> String {
    let number = number.into();
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
