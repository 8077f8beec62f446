//! Interns tests and error signatures: each is stored once and has a number.

use std::{collections::HashMap, hash::Hash, sync::Arc};

use assay_domain::{
    attempt::ErrorDetail,
    set_up,
    signature::{Category, ErrorClass},
    test::{TestName, TestOrdinal},
};

/// Stored characters of an error's text.
const SAMPLE_CHARS: usize = 1_200;

/// Values by number, dense from 0.
#[derive(Debug)]
pub(crate) struct Interner<T> {
    numbers: HashMap<Arc<T>, u32>,
    values: Vec<Arc<T>>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self {
            numbers: HashMap::new(),
            values: Vec::new(),
        }
    }
}

impl<T: Eq + Hash + Clone> Interner<T> {
    /// The number of a value.
    pub(crate) fn number(&mut self, value: &T) -> u32 {
        if let Some(number) = self.numbers.get(value) {
            return *number;
        }
        let number = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        let shared = Arc::new(value.clone());
        self.values.push(Arc::clone(&shared));
        self.numbers.insert(shared, number);
        number
    }

    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.values.get(usize::try_from(number).ok()?).map(AsRef::as_ref)
    }

    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.values.len()).unwrap_or(u32::MAX)
    }
}

impl Interner<String> {
    /// The texts in the order of their numbers.
    pub(crate) fn texts(&self) -> Vec<&str> {
        self.values.iter().map(|text| text.as_str()).collect()
    }
}

/// The tests of a history.
#[derive(Debug, Default)]
pub(crate) struct Tests {
    names: Interner<TestName>,
    /// The groups of subtests that passed.
    groups: Interner<TestName>,
    /// The files that were found for tests whose reports have none.
    found_files: HashMap<TestOrdinal, String>,
}

impl Tests {
    /// The number of a test.
    pub(crate) fn number(&mut self, test: &TestName) -> TestOrdinal {
        self.names.number(test)
    }

    /// The set-ups of classes, each with the tests of its class.
    pub(crate) fn set_ups(&self) -> Vec<(TestOrdinal, Vec<TestOrdinal>)> {
        let tests = || (0..).zip(&self.names.values);
        let set_ups =
            tests().filter_map(|(number, test)| Some((number, test, set_up::class_of(&test.name)?)));
        set_ups
            .map(|(number, own, class)| {
                let file = own.file_path.as_deref();
                let of_class =
                    tests().filter(|(test, name)| *test != number && set_up::is_of_class(name, class, file));
                (number, of_class.map(|(test, _)| test).collect())
            })
            .collect()
    }

    /// The number of a test if a report had it.
    pub(crate) fn known(&self, test: &TestName) -> Option<TestOrdinal> {
        self.names.numbers.get(test).copied()
    }

    /// The number of a group that passed. Groups are numbered apart from tests.
    pub(crate) fn group_number(&mut self, group: &TestName) -> u32 {
        self.groups.number(group)
    }

    /// The groups that failed by themselves in some report and so are tests, by their numbers.
    pub(crate) fn groups_as_tests(&self) -> HashMap<u32, TestOrdinal> {
        let groups = (0..).zip(&self.groups.values);
        groups
            .filter_map(|(number, group)| Some((number, self.known(group)?)))
            .collect()
    }

    /// Keeps the file that was found for a test. The last one counts.
    pub(crate) fn show_file(&mut self, test: TestOrdinal, file: &str) {
        if self.found_files.get(&test).map(String::as_str) != Some(file) {
            self.found_files.insert(test, file.to_owned());
        }
    }

    /// The name of a test with its file. The ordinal must come from [`Self::number`].
    pub(crate) fn name(&self, test: TestOrdinal) -> TestName {
        let name = self.names.get(test).cloned().unwrap_or(TestName {
            name: String::new(),
            file_path: None,
        });
        TestName {
            file_path: self.found_files.get(&test).cloned().or(name.file_path),
            name: name.name,
        }
    }

    /// The number of tests.
    pub(crate) fn len(&self) -> u32 {
        self.names.len()
    }
}

/// The error signatures of a history, with the first text of each.
#[derive(Debug, Default)]
pub(crate) struct Signatures {
    fingerprints: Interner<String>,
    by_number: Vec<Signature>,
}

/// An error signature.
#[derive(Debug, Clone)]
pub(crate) struct Signature {
    pub(crate) fingerprint: String,
    pub(crate) title: String,
    pub(crate) category: Category,
    /// The beginning of the first occurrence's own text, at most [`SAMPLE_CHARS`] characters.
    pub(crate) sample: Option<String>,
}

impl Signatures {
    pub(crate) fn number(&mut self, class: &ErrorClass, errors: &[ErrorDetail]) -> u32 {
        let number = self.fingerprints.number(&class.fingerprint);
        if usize::try_from(number).is_ok_and(|number| number == self.by_number.len()) {
            let text = errors.iter().find(|error| error.has_text());
            let sample = text.and_then(|error| error.message.as_ref().or(error.stack.as_ref()));
            self.by_number.push(Signature {
                fingerprint: class.fingerprint.clone(),
                title: class.title.clone(),
                category: class.category,
                sample: sample.map(|text| text.chars().take(SAMPLE_CHARS).collect()),
            });
        }
        number
    }

    pub(crate) fn get(&self, number: u32) -> Option<&Signature> {
        self.by_number.get(usize::try_from(number).ok()?)
    }
}
