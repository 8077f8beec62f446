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
    /// A name of its own.
    pub fn owned(self) -> TestName {
        TestName {
            name: self.name.to_owned(),
            file_path: self.file_path.map(str::to_owned),
        }
    }

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

/// Names by their tests' numbers, in one text, because a project may have 100,000 tests. Numbers of deleted tests have
/// no name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestNames {
    texts: String,
    /// In the order of their numbers.
    entries: Vec<Entry>,
}

/// A test's number, and the ends of its name and of its file in the texts. The name begins where the entry before ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    number: TestOrdinal,
    name_end: usize,
    file_end: Option<usize>,
}

impl TestNames {
    /// Adds the name of a test with a higher number than all tests before.
    pub fn push(&mut self, number: TestOrdinal, test: TestNameRef<'_>) {
        self.texts.push_str(test.name);
        let name_end = self.texts.len();
        let file_end = test.file_path.map(|file| {
            self.texts.push_str(file);
            self.texts.len()
        });
        self.entries.push(Entry {
            number,
            name_end,
            file_end,
        });
    }

    /// The name of a test; none if no test has this number.
    pub fn get(&self, test: TestOrdinal) -> Option<TestNameRef<'_>> {
        // Without gaps before it, a test is at the index of its number.
        let index = usize::try_from(test).ok()?;
        let is_at_index = self.entries.get(index).is_some_and(|entry| entry.number == test);
        let index = match is_at_index {
            true => index,
            false => self
                .entries
                .binary_search_by_key(&test, |entry| entry.number)
                .ok()?,
        };
        Some(self.at(index)?.1)
    }

    /// All tests in the order of their numbers.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (TestOrdinal, TestNameRef<'_>)> {
        (0..self.len()).filter_map(|index| self.at(index))
    }

    /// The number of names.
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no name.
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Their approximate memory use in bytes.
    pub const fn bytes(&self) -> usize {
        self.texts.capacity() + self.entries.capacity() * size_of::<Entry>()
    }

    fn at(&self, index: usize) -> Option<(TestOrdinal, TestNameRef<'_>)> {
        let entry = self.entries.get(index)?;
        let before = index.checked_sub(1).and_then(|before| self.entries.get(before));
        let start = before.map_or(0, |before| before.file_end.unwrap_or(before.name_end));
        let name = TestNameRef {
            name: self.texts.get(start..entry.name_end)?,
            file_path: entry.file_end.and_then(|end| self.texts.get(entry.name_end..end)),
        };
        Some((entry.number, name))
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
        for numbers in [[0, 1, 2, 3], [0, 1, 4, 5], [2, 3, 7, 4_000_000_000]] {
            let mut names = TestNames::default();
            for (number, name) in numbers.into_iter().zip(NAMES) {
                names.push(number, name);
            }
            let expected: Vec<_> = numbers.into_iter().zip(NAMES).collect();
            assert_eq!(names.iter().collect::<Vec<_>>(), expected);
            for number in 0..10 {
                let expected = expected.iter().find(|(expected, _)| *expected == number);
                assert_eq!(names.get(number), expected.map(|(_, name)| *name), "{number}");
            }
            assert_eq!(names.get(numbers[3]), Some(NAMES[3]));
            assert_eq!(names.len(), 4);
        }
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
