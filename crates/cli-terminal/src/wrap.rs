//! Lines that fit a terminal.

use console::measure_text_width;

/// The beginning of a next step.
const STEP: &str = "-> ";

/// The text in lines of at most this many columns, or as it is without a terminal. A line is broken at spaces and goes on
/// with its indentation. A word is not broken, because names and addresses are copied, and a command of these programs goes
/// on by the syntax of a shell.
pub fn wrapped(text: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns else {
        return text.to_owned();
    };
    text.split_inclusive('\n')
        .map(|line| {
            let (text, end) = line.strip_suffix('\n').map_or((line, ""), |text| (text, "\n"));
            match measure_text_width(text) <= columns {
                true => line.to_owned(),
                false => folded(text, columns) + end,
            }
        })
        .collect()
}

fn folded(line: &str, columns: usize) -> String {
    let words = line.trim_start_matches(' ');
    let indent = line.len() - words.len();
    if indent > 0 && words.trim_start_matches(STEP).starts_with("assay") && !line.ends_with(':') {
        return broken(line, indent, indent + 4, columns, " \\");
    }
    // A sentence that ends with a command.
    if let Some((words, command)) = line.split_once(": assay") {
        return [
            format!("{words}:"),
            format!("{:1$}assay{command}", "", indent + 2),
        ]
        .map(|line| wrapped(&line, Some(columns)))
        .join("\n");
    }
    let step = if words.starts_with(STEP) { STEP.len() } else { 0 };
    broken(line, indent, indent + step, columns, "")
}

/// Breaks a line that begins with `indent` spaces before words that do not fit, with `mark` before each break and `hanging`
/// spaces after it. A break that does not make its word fit is not made. A mark is of a shell, whose quoted words are
/// whole.
pub(crate) fn broken(line: &str, indent: usize, hanging: usize, columns: usize, mark: &str) -> String {
    let mut quote = None;
    let is_between = |char: char| {
        match quote {
            None if !mark.is_empty() && matches!(char, '\'' | '"') => quote = Some(char),
            Some(open) if open == char => quote = None,
            None | Some(_) => {}
        }
        char == ' ' && quote.is_none()
    };
    let (mut text, mut length) = (" ".repeat(indent), indent);
    let words = line.trim_start_matches(' ').split(is_between);
    for (place, word) in words.enumerate() {
        let width = measure_text_width(word) + mark.len();
        if place > 0 && length + 1 + width > columns && hanging + width <= columns {
            text += &format!("{mark}\n{}", " ".repeat(hanging));
            length = hanging;
        } else if place > 0 {
            text.push(' ');
            length += 1;
        }
        text += word;
        length += width - mark.len();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn sentences_are_broken_at_spaces_and_copied_words_are_whole() {
        let address = "https://assay.example.org/p/01a229fb/runs/01a229fc";
        for (text, right) in [
            ("short", "short"),
            (
                "Run 13 of \"storefront\" failed: 7 tests\n\nnext",
                "Run 13 of \"storefront\"\nfailed: 7 tests\n\nnext",
            ),
            (
                "  -> set the public address of each server",
                "  -> set the public\n     address of each\n     server",
            ),
            (address, address),
            (
                &format!("page {address} of it"),
                &format!("page {address}\nof it"),
            ),
            ("店铺店铺店铺 店铺店铺店铺", "店铺店铺店铺\n店铺店铺店铺"),
            (
                "\u{1b}[1m1234567890\u{1b}[0m 1234567890",
                "\u{1b}[1m1234567890\u{1b}[0m 1234567890",
            ),
            (
                "Next, there: assay-admin org import",
                "Next, there:\n  assay-admin org \\\n      import",
            ),
            (
                "  assay-server --org 'A B C' --data-dir d",
                "  assay-server --org \\\n      'A B C' \\\n      --data-dir d",
            ),
        ] {
            assert_eq!(wrapped(text, Some(22)), right);
            assert_eq!(wrapped(text, None), text);
        }
    }
}
