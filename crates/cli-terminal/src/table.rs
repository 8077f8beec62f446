//! Tables that fit the terminal.

use anstyle::{AnsiColor, Style};
use comfy_table::{
    Attribute, CellAlignment, Color, ColumnConstraint, ContentArrangement, Row, Table as Drawing, presets,
};

use crate::{terminal, wrap::wrapped};

/// The minimum width of a shortened text, in columns.
const LEAST: usize = 12;
/// The space between two columns.
const GAP: u16 = 2;

/// A value with its tone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    text: String,
    tone: Tone,
}

/// The tone of a value: a colour on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// No style.
    Plain,
    /// A good state.
    Good,
    /// A state that needs attention.
    Doubtful,
    /// A bad state.
    Bad,
    /// A detail.
    Faint,
}

impl Cell {
    /// A value in this tone.
    pub fn new(text: impl Into<String>, tone: Tone) -> Self {
        Self {
            text: text.into(),
            tone,
        }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text, Tone::Plain)
    }
}

impl Tone {
    const fn color(self) -> Option<AnsiColor> {
        match self {
            Self::Plain => None,
            Self::Good => Some(AnsiColor::Green),
            Self::Doubtful => Some(AnsiColor::Yellow),
            Self::Bad => Some(AnsiColor::Red),
            Self::Faint => Some(AnsiColor::BrightBlack),
        }
    }

    /// The text in this tone.
    pub fn paint(self, text: &str) -> String {
        let style = self.color().map_or(Style::new(), |color| color.on_default());
        format!("{style}{text}{style:#}")
    }
}

/// A table without lines. Columns of numbers are right-aligned, and empty cells show a dash. On a narrow terminal long
/// texts are cut with an ellipsis; ids and numbers are not. If the table still does not fit, each row becomes a block
/// of lines. Without a terminal each row is one uncut line.
pub fn table<C: Into<Cell>>(header: &[&str], rows: impl IntoIterator<Item = Vec<C>>) -> String {
    let rows = rows
        .into_iter()
        .map(|row| row.into_iter().map(|cell| printable(cell.into())).collect())
        .collect();
    let table = Table { header, rows };
    table.within(terminal::width())
}

/// A table with indented, wrapped notes below each row. No text is cut. None if the columns are too wide for the
/// terminal.
pub fn table_with_notes(
    header: &[&str],
    rows: impl IntoIterator<Item = (Vec<Cell>, Vec<String>)>,
    columns: usize,
) -> Option<String> {
    let (rows, notes): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
    let rows = rows
        .into_iter()
        .map(|row| row.into_iter().map(printable).collect())
        .collect();
    let table = Table { header, rows };
    if table.natural_width() > columns {
        return None;
    }
    let rendered = table.within(None);
    let mut rendered = rendered.lines();
    let mut text = rendered.next().unwrap_or_default().to_owned() + "\n";
    for (line, notes) in rendered.zip(notes) {
        text += line;
        text.push('\n');
        for note in notes {
            text += &indented(&note, GAP, Some(columns));
        }
    }
    Some(text)
}

/// An indented text in lines of at most this many columns, or on one line.
pub fn indented(text: &str, indent: u16, columns: Option<usize>) -> String {
    let text = printable(text.into()).text;
    wrapped(&format!("{:1$}{text}\n", "", usize::from(indent)), columns)
}

/// A cell on one line; a dash if it is empty.
fn printable(cell: Cell) -> Cell {
    let text = terminal::one_line(&cell.text);
    let text = if text.is_empty() { "-".to_owned() } else { text };
    Cell { text, ..cell }
}

struct Table<'a> {
    header: &'a [&'a str],
    rows: Vec<Vec<Cell>>,
}

impl Table<'_> {
    /// The text for a terminal of this many columns, or of any width.
    fn within(&self, columns: Option<usize>) -> String {
        let mut drawing = self.drawing();
        let widths: Vec<usize> = drawing
            .column_max_content_widths()
            .into_iter()
            .map(usize::from)
            .collect();
        let gaps = usize::from(GAP) * widths.len().saturating_sub(1);
        let Some(columns) = columns.filter(|columns| widths.iter().sum::<usize>() + gaps > *columns) else {
            drawing.set_content_arrangement(ContentArrangement::Disabled);
            return lines(&drawing);
        };
        let rigid: Vec<bool> = (0..)
            .zip(&widths)
            .map(|(i, width)| self.is_rigid(i, *width))
            .collect();
        let needed: usize = widths
            .iter()
            .zip(&rigid)
            .map(|(width, rigid)| if *rigid { *width } else { LEAST })
            .sum();
        if needed + gaps > columns {
            return self.blocks();
        }
        for (column, _) in drawing.column_iter_mut().zip(&rigid).filter(|(_, rigid)| **rigid) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
        drawing
            .set_content_arrangement(ContentArrangement::Dynamic)
            // The gap after the last column may exceed the width, because it stays empty.
            .set_width(u16::try_from(columns).unwrap_or(u16::MAX).saturating_add(GAP));
        lines(&drawing)
    }

    /// The width of the table without cuts, in columns of the terminal.
    fn natural_width(&self) -> usize {
        let widths = self.drawing().column_max_content_widths();
        let gaps = usize::from(GAP) * widths.len().saturating_sub(1);
        widths.into_iter().map(usize::from).sum::<usize>() + gaps
    }

    /// Whether a column keeps its width. Short columns, numbers and ids do; ids are copied.
    fn is_rigid(&self, column: usize, width: usize) -> bool {
        let is_id = |text: &str| text.len() == 36 && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
        let mut cells = self.rows.iter().filter_map(|row| row.get(column));
        width <= LEAST || self.is_numeric(column) || cells.any(|cell| is_id(&cell.text))
    }

    fn is_numeric(&self, column: usize) -> bool {
        let mut cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.all(|cell| cell.text.bytes().all(|byte| byte.is_ascii_digit()))
    }

    fn drawing(&self) -> Drawing {
        let mut drawing = Drawing::new();
        drawing.load_style(presets::NOTHING).enforce_styling();
        // The spaces between columns are not bold, so that a line can end where its text does.
        drawing.style_text_only();
        drawing.set_header(
            self.header
                .iter()
                .map(|title| comfy_table::Cell::new(title).add_attribute(Attribute::Bold)),
        );
        for row in &self.rows {
            let mut rendered = Row::from(row.iter().map(Cell::to_table_cell).collect::<Vec<_>>());
            rendered.max_height(1);
            drawing.add_row(rendered);
        }
        for (index, column) in (0..).zip(drawing.column_iter_mut()) {
            column.set_padding((0, GAP));
            if self.is_numeric(index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        drawing
    }

    /// Each row as a block of lines, one value per line.
    fn blocks(&self) -> String {
        let width = self
            .header
            .iter()
            .map(|title| title.chars().count())
            .max()
            .unwrap_or_default();
        let bold = Style::new().bold();
        let block = |row: &Vec<Cell>| -> String {
            let line = |(title, cell): (&&str, &Cell)| {
                let value = cell.tone.paint(&cell.text);
                format!("{bold}{title:width$}{bold:#}  {value}\n")
            };
            self.header.iter().zip(row).map(line).collect()
        };
        self.rows.iter().map(block).collect::<Vec<_>>().join("\n")
    }
}

impl Cell {
    fn to_table_cell(&self) -> comfy_table::Cell {
        let cell = comfy_table::Cell::new(&self.text);
        match self.tone {
            Tone::Plain => cell,
            Tone::Good => cell.fg(Color::DarkGreen),
            Tone::Doubtful => cell.fg(Color::DarkYellow),
            Tone::Bad => cell.fg(Color::DarkRed),
            Tone::Faint => cell.fg(Color::DarkGrey),
        }
    }
}

fn lines(drawing: &Drawing) -> String {
    drawing
        .lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_indented_text_fits_the_terminal_and_stays_one_line_without_one() {
        let text = "A failed test is excused if this change most probably did not break it.";
        assert_eq!(indented(text, 2, None), format!("  {text}\n"));
        let wrapped = indented(text, 2, Some(30));
        assert!(
            wrapped
                .lines()
                .all(|line| line.len() <= 30 && line.starts_with("  ")),
            "{wrapped}"
        );
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&wrapped), words(text));
    }

    const ID: &str = "019aa3f4-5b1c-7def-8a3b-0123456789ab";

    fn rendered(rows: &[[&str; 3]], columns: Option<usize>) -> String {
        let rows = rows
            .iter()
            .map(|row| row.iter().map(|text| printable((*text).into())).collect())
            .collect();
        let text = Table {
            header: &["NAME", "RUNS", "ID"],
            rows,
        }
        .within(columns);
        anstream::adapter::strip_str(&text).to_string()
    }

    #[test]
    fn texts_that_fit_are_whole_and_numbers_are_right_aligned() {
        let expected = format!("NAME  RUNS  ID\nshop     7  {ID}\nweb    120  {ID}\n");
        assert_eq!(
            rendered(&[["shop", "7", ID], ["web", "120", ID]], Some(80)),
            expected
        );
        assert_eq!(rendered(&[["shop", "7", ID], ["web", "120", ID]], None), expected);
    }

    #[test]
    fn long_names_are_shortened_and_ids_are_not() {
        let name = "a-storefront-with-a-name-that-nobody-would-ever-type";
        let text = rendered(&[[name, "7", ID], ["web", "", ID]], Some(66));
        assert!(
            text.contains(ID) && text.contains('…') && !text.contains(name),
            "{text}"
        );
        assert!(text.lines().all(|line| line.chars().count() <= 66), "{text}");
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(rendered(&[[name, "7", ID]], None).contains(name));
    }

    #[test]
    fn wide_characters_count_double() {
        let name = "店铺".repeat(20);
        let text = rendered(&[[&name, "7", ID]], Some(70));
        let row = text.lines().nth(1).unwrap();
        assert!(row.contains('…') && row.ends_with(ID), "{text}");
        let wide = row.chars().filter(|c| "店铺".contains(*c)).count();
        assert!(row.chars().count() + wide <= 70, "{text}");
    }

    #[test]
    fn a_terminal_too_narrow_for_columns_gets_lines() {
        let text = rendered(&[["a name of some length", "7", ID], ["web", "8", ID]], Some(40));
        let expected =
            format!("NAME  a name of some length\nRUNS  7\nID    {ID}\n\nNAME  web\nRUNS  8\nID    {ID}\n");
        assert_eq!(text, expected);
    }

    #[test]
    fn control_characters_are_removed() {
        assert!(rendered(&[["a\u{1b}[31mb\nc", "7", ID]], None).contains("a [31mb c"));
    }
}
