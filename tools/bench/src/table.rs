//! Tables of measurements, in Markdown.

/// A table of a measurement.
#[derive(Debug)]
pub(crate) struct Table {
    title: String,
    /// Headings with the units.
    columns: Vec<String>,
    /// Each row's name and its values. A missing value was not measured.
    rows: Vec<(String, Vec<Option<f64>>)>,
    /// Sentences below it.
    notes: Vec<String>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(title: &str, columns: &[&str]) -> Self {
        Self {
            title: title.to_owned(),
            columns: columns.iter().map(|column| (*column).to_owned()).collect(),
            rows: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, name: &str, values: &[Option<f64>]) {
        self.rows.push((name.to_owned(), values.to_vec()));
    }

    /// Adds a sentence.
    pub(crate) fn note(&mut self, sentence: impl Into<String>) {
        self.notes.push(sentence.into());
    }

    /// The table for a terminal and for the documentation.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("\n## {}\n\n| {} |\n| ---", self.title, self.columns.join(" | "));
        text.push_str(&" | --:".repeat(self.columns.len().saturating_sub(1)));
        text.push_str(" |\n");
        for (name, values) in &self.rows {
            let values = values
                .iter()
                .map(|value| value.map_or_else(|| "–".to_owned(), shown));
            text.push_str(&format!(
                "| {name} | {} |\n",
                values.collect::<Vec<_>>().join(" | ")
            ));
        }
        for note in &self.notes {
            text.push_str(&format!("\n{note}\n"));
        }
        text
    }
}

/// Three significant digits, without decimals from a hundred on, with thousands separators. Counts have all digits.
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
    let (sign, digits) = digits.split_at(usize::from(digits.starts_with('-')));
    let mut text = sign.to_owned();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
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
    fn a_table_is_markdown() {
        let mut table = Table::new("T", &["Route", "ms", "x"]);
        table.row("a", &[Some(1.5), None]);
        assert!(table.markdown().contains("| --- | --: | --: |\n| a | 1.50 | – |"));
    }
}
