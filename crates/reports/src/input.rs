//! The input of every format's reader: the decoded text of one file and the known facts of the checkout.

use crate::{files::KnownFiles, limits, notes::Notes, paths, report::ReadError};

/// One decoded file of an import.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Input<'a> {
    /// Its name for messages.
    pub(crate) name: &'a str,
    /// Its content, without byte-order mark.
    pub(crate) text: &'a str,
    /// The checkout's root as the reports write it (absolute), if known.
    pub(crate) root: Option<&'a str>,
    /// The checkout's files, if known.
    pub(crate) known_files: Option<&'a KnownFiles>,
    /// The number of line breaks of the file before the text.
    pub(crate) lines_before: usize,
    /// What its readers noticed.
    pub(crate) notes: &'a Notes,
}

impl<'a> Input<'a> {
    /// A file without further information.
    #[cfg(test)]
    pub(crate) fn alone(name: &'a str, text: &'a str) -> Self {
        Self {
            name,
            text,
            root: None,
            known_files: None,
            lines_before: 0,
            notes: Box::leak(Box::default()),
        }
    }

    /// The same input without the text before byte `at`. Lines are still counted from the start of the file.
    pub(crate) fn rest_from(&self, at: usize) -> Self {
        let (before, text) = self.text.split_at_checked(at).unwrap_or((self.text, ""));
        Self {
            text,
            lines_before: self.lines_before + before.matches('\n').count(),
            ..*self
        }
    }

    /// The form in which a file's path is stored: with `/`, relative to the checkout's root where that is known.
    pub(crate) fn stored_path(&self, path: &str) -> String {
        paths::stored(path, self.root)
    }

    /// The same of a path that may be blank, or empty in that form.
    pub(crate) fn stored_file(&self, path: &str) -> Option<String> {
        let path = Some(path).filter(|path| !path.trim().is_empty())?;
        Some(self.stored_path(path)).filter(|path| !path.is_empty())
    }

    /// The error of a file that has the format but is broken, `offset` bytes into the text.
    pub(crate) fn broken_at(
        &self,
        offset: usize,
        format: &'static str,
        problem: impl Into<String>,
    ) -> ReadError {
        let before = self.text.as_bytes().get(..offset).unwrap_or(self.text.as_bytes());
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        self.broken(line, format, problem)
    }

    /// The error of a file that has the format but is broken, with a line counted from 1.
    pub(crate) fn broken(&self, line: usize, format: &'static str, problem: impl Into<String>) -> ReadError {
        ReadError::Broken {
            file: self.name.to_owned(),
            line: self.lines_before + line,
            format,
            problem: problem.into(),
        }
    }

    /// Fails if the tests that were read up to a line are more than the limit.
    pub(crate) fn check_tests(&self, tests: usize, line: impl FnOnce() -> usize) -> Result<(), ReadError> {
        if tests <= limits::TESTS {
            return Ok(());
        }
        let limit = format!("{} (line {})", limits::TESTS, line());
        Err(ReadError::too_large(self.name, "the number of tests", limit))
    }
}
