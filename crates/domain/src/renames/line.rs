//! A line of a renames file.

use crate::timestamp::Timestamp;

/// What stands between the names of a line.
const ARROW: &str = " -> ";

/// What a line renames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    /// A test, by its full name.
    Test,
    /// A file, or a folder if the name ends with `/`.
    File,
}

impl Kind {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::File => "file",
        }
    }
}

/// A line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// From 1.
    pub(super) number: usize,
    /// The start of its day.
    pub(super) date: Timestamp,
    pub(super) kind: Kind,
    pub(super) old: String,
    pub(super) new: String,
}

impl Line {
    /// A line of the file; none for a comment and an empty line.
    pub(super) fn parse(number: usize, text: &str) -> Result<Option<Self>, String> {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            return Ok(None);
        }
        let form = || format!("expected a date, test or file, and OLD{ARROW}NEW");
        let (date, rest) = text.split_once(' ').ok_or_else(form)?;
        let date = format!("{date}T00:00:00Z")
            .parse()
            .map_err(|_| format!("{date:?} is no date such as 2026-11-27"))?;
        let (kind, rest) = rest.trim_start().split_once(' ').ok_or_else(form)?;
        let kind = match kind {
            "test" => Kind::Test,
            "file" => Kind::File,
            other => return Err(format!("{other:?} is neither test nor file")),
        };
        let splits = rest.match_indices(ARROW).filter_map(|(index, _)| {
            let old = unquoted(rest.get(..index)?)?;
            Some((old, unquoted(rest.get(index + ARROW.len()..)?)?))
        });
        let [(old, new)] =
            <[_; 1]>::try_from(splits.collect::<Vec<_>>()).map_err(|splits| match splits.len() {
                0 if rest.matches(ARROW).count() < 2 => form(),
                _ => format!("{ARROW:?} occurs twice; put a name that has it in double quotes"),
            })?;
        let is_folder = |name: &str| name.ends_with('/');
        if old == new {
            return Err("both names are the same".to_owned());
        }
        if kind == Kind::File && is_folder(&old) != is_folder(&new) {
            return Err("a folder ends with / on both sides".to_owned());
        }
        Ok(Some(Self {
            number,
            date,
            kind,
            old,
            new,
        }))
    }

    /// A file with this name or in this folder under its new name.
    pub(super) fn renamed_file(&self, file: &str) -> String {
        let rest = file.strip_prefix(self.old.as_str()).unwrap_or_default();
        format!("{}{rest}", self.new)
    }
}

/// A name, as it is or in double quotes with `\"` and `\\`.
fn unquoted(text: &str) -> Option<String> {
    let text = text.trim();
    let Some(quoted) = text.strip_prefix('"') else {
        let is_plain = !text.is_empty() && !text.contains(ARROW);
        return is_plain.then(|| text.to_owned());
    };
    let mut name = String::new();
    let mut characters = quoted.chars();
    loop {
        match characters.next()? {
            '\\' => name.push(characters.next().filter(|next| ['"', '\\'].contains(next))?),
            '"' => return (characters.as_str().is_empty() && !name.is_empty()).then_some(name),
            other => name.push(other),
        }
    }
}

/// A name as a line has it.
pub fn quoted(name: &str) -> String {
    let is_plain = !name.contains(ARROW) && !name.starts_with('"') && name.trim() == name;
    match is_plain {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}
