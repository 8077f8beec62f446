//! The names of all tests of a project in memory, and the rule of every search for tests.

use crate::{
    folding::contains_folded,
    test::{TestName, TestOrdinal},
};

/// The name and the file of a test, borrowed. The order is that of [`TestName`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TestNameRef<'a> {
    /// The framework's own title path.
    pub name: &'a str,
    /// The stored file of the test.
    pub file_path: Option<&'a str>,
}

impl TestNameRef<'_> {
    /// Whether the name or the file contains a text that is already folded.
    pub fn contains_folded(self, folded: &str) -> bool {
        contains_folded(self.name, folded) || self.file_contains_folded(folded)
    }

    /// Whether the file contains a text that is already folded.
    pub fn file_contains_folded(self, folded: &str) -> bool {
        self.file_path.is_some_and(|file| contains_folded(file, folded))
    }
}

impl TestName {
    /// The same, borrowed.
    pub fn borrowed(&self) -> TestNameRef<'_> {
        TestNameRef {
            name: &self.name,
            file_path: self.file_path.as_deref(),
        }
    }
}

/// Names by their tests' numbers, in one text, because a project may have 100,000 tests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestNames {
    texts: String,
    /// For each test, the ends of its name and of its file in `texts`.
    ends: Vec<(usize, Option<usize>)>,
}

impl TestNames {
    /// Adds the name of the test with the next number.
    pub fn push(&mut self, test: TestNameRef<'_>) {
        self.texts.push_str(test.name);
        let name_end = self.texts.len();
        let file_end = test.file_path.map(|file| {
            self.texts.push_str(file);
            self.texts.len()
        });
        self.ends.push((name_end, file_end));
    }

    /// The name of a test; none if it has a higher number than all of these.
    pub fn get(&self, test: TestOrdinal) -> Option<TestNameRef<'_>> {
        self.at(usize::try_from(test).ok()?)
    }

    /// All names in the order of their numbers.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = TestNameRef<'_>> {
        (0..self.len()).filter_map(|index| self.at(index))
    }

    /// The number of names.
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no name.
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Their approximate memory use in bytes.
    pub const fn bytes(&self) -> usize {
        self.texts.capacity() + self.ends.capacity() * size_of::<(usize, Option<usize>)>()
    }

    fn at(&self, index: usize) -> Option<TestNameRef<'_>> {
        let (name_end, file_end) = *self.ends.get(index)?;
        let start = match index.checked_sub(1).and_then(|before| self.ends.get(before)) {
            Some((name, file)) => file.unwrap_or(*name),
            None => 0,
        };
        Some(TestNameRef {
            name: self.texts.get(start..name_end)?,
            file_path: file_end.and_then(|end| self.texts.get(name_end..end)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [TestNameRef<'static>; 4] = [
        TestNameRef {
            name: "pays",
            file_path: Some("cart.spec.ts"),
        },
        TestNameRef {
            name: "",
            file_path: None,
        },
        TestNameRef {
            name: "ΟΔΟΣ",
            file_path: Some(""),
        },
        TestNameRef {
            name: "last",
            file_path: None,
        },
    ];

    #[test]
    fn names_are_found_by_number() {
        let mut names = TestNames::default();
        for name in NAMES {
            names.push(name);
        }
        assert_eq!(names.iter().collect::<Vec<_>>(), NAMES);
        assert_eq!(names.get(2), Some(NAMES[2]));
        assert_eq!(names.get(4), None);
        assert_eq!(names.len(), 4);
    }

    #[test]
    fn a_search_looks_into_name_and_file() {
        assert!(NAMES[0].contains_folded("pay") && NAMES[0].contains_folded("spec"));
        assert!(!NAMES[0].file_contains_folded("pay") && NAMES[0].file_contains_folded("cart"));
        // A text that spans name and file does not match.
        assert!(!NAMES[0].contains_folded("scart"));
        assert!(!NAMES[1].contains_folded("x") && NAMES[2].contains_folded("οδοσ"));
    }
}
