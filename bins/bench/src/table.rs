//! Tables of measurements: one form for the terminal, for JSON and for the documentation.

use comfy_table::{CellAlignment, ContentArrangement, Table as Terminal, presets};
use serde::{Deserialize, Serialize};

/// A table of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Table {
    /// The id of its place in the documentation.
    pub(crate) id: String,
    pub(crate) title: String,
    /// Headings, which hold the units.
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Cell>>,
    /// Sentences below it.
    pub(crate) notes: Vec<String>,
}

/// One value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Cell {
    Number(f64),
    Text(String),
    /// Not measured.
    Nothing(()),
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        if number.is_finite() {
            Self::Number(number)
        } else {
            Self::Nothing(())
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Nothing(()), Into::into)
    }
}

impl Cell {
    fn shown(&self) -> String {
        match self {
            Self::Number(number) => shown(*number),
            Self::Text(text) => text.clone(),
            Self::Nothing(()) => "–".to_owned(),
        }
    }

    /// The number that it is.
    pub(crate) const fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(_) | Self::Nothing(()) => None,
        }
    }
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(id: &str, title: &str, columns: &[&str]) -> Self {
        Self {
            id: id.to_owned(),
            title: title.to_owned(),
            columns: columns.iter().map(|column| (*column).to_owned()).collect(),
            rows: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Adds a sentence.
    pub(crate) fn note(&mut self, sentence: impl Into<String>) {
        self.notes.push(sentence.into());
    }

    /// The number in the row that begins with `row`, in the column of this heading.
    pub(crate) fn number(&self, row: &str, column: &str) -> Option<f64> {
        let place = self.columns.iter().position(|heading| heading == column)?;
        let named = |cells: &&Vec<Cell>| cells.first().is_some_and(|first| first.shown() == row);
        self.rows.iter().find(named)?.get(place)?.number()
    }

    /// For the documentation.
    pub(crate) fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut text = line(self.columns.clone());
        let rule = |place: usize| if self.is_numeric(place) { "--:" } else { "---" };
        text.push_str(&line(
            (0..self.columns.len())
                .map(|place| rule(place).to_owned())
                .collect(),
        ));
        for row in &self.rows {
            text.push_str(&line(
                row.iter().map(|cell| cell.shown().replace('|', "\\|")).collect(),
            ));
        }
        for note in &self.notes {
            text.push_str(&format!("\n{note}\n"));
        }
        text
    }

    /// For people at a terminal.
    pub(crate) fn terminal(&self) -> String {
        let mut table = Terminal::new();
        table
            .load_style(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(&self.columns);
        for row in &self.rows {
            table.add_row(row.iter().map(Cell::shown));
        }
        for (place, column) in table.column_iter_mut().enumerate() {
            if self.is_numeric(place) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let mut text = format!("\n{}\n", self.title);
        for line in table.lines() {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        for note in &self.notes {
            text.push_str(&format!("  {note}\n"));
        }
        text
    }

    fn is_numeric(&self, place: usize) -> bool {
        let mut cells = self.rows.iter().filter_map(|row| row.get(place));
        place > 0 && cells.all(|cell| !matches!(cell, Cell::Text(_)))
    }
}

/// Three significant digits, whole from a hundred up, with thousands separators; counts in full.
pub(crate) fn shown(number: f64) -> String {
    let size = number.abs();
    if size >= 99.95 || number.fract() == 0.0 {
        return apart(&format!("{number:.0}"));
    }
    if size >= 9.995 {
        format!("{number:.1}")
    } else if size >= 0.0995 {
        format!("{number:.2}")
    } else {
        format!("{number:.3}")
    }
}

/// Whole digits with a comma before every third from the end.
fn apart(digits: &str) -> String {
    let length = digits.trim_start_matches('-').len();
    let mut text = String::new();
    for (place, digit) in digits.trim_start_matches('-').chars().enumerate() {
        if place > 0 && (length - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if digits.starts_with('-') {
        format!("-{text}")
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_show_three_digits() {
        for (number, text) in [
            (0.0, "0"),
            (3.0, "3"),
            (0.0123, "0.012"),
            (2.345, "2.35"),
            (45.67, "45.7"),
            (123.4, "123"),
            (25_000_000.0, "25,000,000"),
            (-1234.0, "-1,234"),
        ] {
            assert_eq!(shown(number), text);
        }
    }

    #[test]
    fn a_table_reads_back_from_json() {
        let mut table = Table::new("t", "T", &["Route", "ms", "x"]);
        table.row(vec!["a".into(), 1.5.into(), f64::NAN.into()]);
        let read: Table = serde_json::from_str(&serde_json::to_string(&table).unwrap()).unwrap();
        assert_eq!(read, table);
        assert_eq!(read.number("a", "ms"), Some(1.5));
        assert_eq!(read.number("a", "x"), None);
        assert!(read.markdown().contains("| a | 1.50 | – |"));
    }
}
