//! Records which of several sources a value was taken from.

use std::fmt::Display;

use serde::Serialize;

/// A value of an import, and its source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// The value's name, in words.
    pub what: &'static str,
    /// The value as text.
    pub value: String,
    /// Its source.
    pub from: Origin,
}

/// The source of an import's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Origin {
    /// A flag of the user.
    Flag,
    /// CI's environment variables.
    Variables,
    /// The report itself.
    Report,
    /// The content of the files. A run key from the content identifies the same bytes.
    Content,
    /// The time of the file's last change.
    FileTime,
    /// The time of the import.
    Clock,
}

impl Origin {
    /// The origin in words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::Variables => "CI variables",
            Self::Report => "report",
            Self::Content => "content of the files",
            Self::FileTime => "time of the file",
            Self::Clock => "time of the import",
        }
    }
}

/// Takes the first available value, and records its source.
#[derive(Debug, Default)]
pub(crate) struct Chooser {
    /// The choices so far.
    pub(crate) choices: Vec<Choice>,
}

impl Chooser {
    /// The first value present, most trusted source first.
    pub(crate) fn first<T: Display>(
        &mut self,
        what: &'static str,
        candidates: impl IntoIterator<Item = (Origin, Option<T>)>,
    ) -> Option<T> {
        let (from, value) = candidates
            .into_iter()
            .find_map(|(from, value)| value.map(|value| (from, value)))?;
        self.note(what, &value, from);
        Some(value)
    }

    /// Records a value that was chosen elsewhere.
    pub(crate) fn note(&mut self, what: &'static str, value: &impl Display, from: Origin) {
        self.choices.push(Choice {
            what,
            value: value.to_string(),
            from,
        });
    }
}
