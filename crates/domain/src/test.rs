//! A test: a name within a project, and its file.

use serde::{Deserialize, Serialize};

/// A test's identity within its project: its full title path and its file, if the reports name one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct TestName {
    /// The framework's own title path, its non-empty parts joined with ` > `.
    pub name: String,
    /// The stored file of the test.
    pub file_path: Option<String>,
}

impl TestName {
    /// Selects exactly this test.
    pub fn selector(&self) -> TestSelector {
        TestSelector {
            name: self.name.clone(),
            file: FileSelector::Exactly(self.file_path.clone()),
        }
    }

    /// The bytes of its texts.
    pub fn text_bytes(&self) -> usize {
        self.name.len() + self.file_path.as_ref().map_or(0, String::len)
    }
}

/// How a test is shown where that differs from its identity. The newest result of the test decides.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShownAs {
    /// The name as its tool wrote it, if the identity lacks the parts that change from run to run.
    pub name: Option<String>,
    /// The file that was found in the checkout. A path depends on the checkout, so it is no part of the identity.
    pub file_path: Option<String>,
}

/// Selects a test by name and, if several files have the name, by file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestSelector {
    /// The full stored name.
    pub name: String,
    /// The file: any, or exactly this one.
    pub file: FileSelector,
}

/// The file part of a test selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileSelector {
    /// Any file with a test of this name; ambiguous if several have one.
    Any,
    /// This file, or no file (an empty `filePath`).
    Exactly(Option<String>),
}

impl FileSelector {
    /// Whether a test in this file is selected.
    pub fn admits(&self, file_path: Option<&str>) -> bool {
        match self {
            Self::Any => true,
            Self::Exactly(file) => file.as_deref() == file_path,
        }
    }
}

/// The result of a look-up by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TestLookup<T> {
    /// One test.
    Found(T),
    /// No test of this name (and file).
    Missing,
    /// Several tests of this name.
    Ambiguous(CandidateFiles),
}

impl<T> TestLookup<T> {
    /// The test, if there is exactly one.
    pub fn found(self) -> Option<T> {
        match self {
            Self::Found(test) => Some(test),
            Self::Missing | Self::Ambiguous(_) => None,
        }
    }

    /// Maps the test. A missing or ambiguous name stays as it is.
    pub fn try_map<U, E>(self, map: impl FnOnce(T) -> Result<U, E>) -> Result<TestLookup<U>, E> {
        Ok(match self {
            Self::Found(test) => TestLookup::Found(map(test)?),
            Self::Missing => TestLookup::Missing,
            Self::Ambiguous(files) => TestLookup::Ambiguous(files),
        })
    }
}

/// The files of several tests that share a name. Only the first are listed, so that the length of an answer is bounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CandidateFiles {
    /// The first files by code point, no file before all others. At most [`Self::NAMED`].
    pub named: Vec<Option<String>>,
    /// The number of further files.
    pub others: u64,
}

impl CandidateFiles {
    /// Most files in the list.
    pub const NAMED: usize = 50;

    /// Lists the first of `files`, which are in order.
    pub fn first_of(files: impl ExactSizeIterator<Item = Option<String>>) -> Self {
        let others = files.len().saturating_sub(Self::NAMED);
        Self {
            named: files.take(Self::NAMED).collect(),
            others: u64::try_from(others).unwrap_or(u64::MAX),
        }
    }
}

/// A test's number within its project: counted from 0, never reused. Deleted tests leave gaps. Bit positions of
/// [`crate::observation`].
pub type TestOrdinal = u32;
