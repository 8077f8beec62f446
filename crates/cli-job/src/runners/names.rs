//! What all runners share: the action for the listed tests, and the parts of stored names.

use assay_domain::test::TestName;

/// The runner's action for the listed tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// It skips them.
    Deselect,
    /// It runs only them.
    Select,
}

/// The separator of a stored name's parts.
pub(crate) const SEPARATOR: &str = " > ";

/// A regular expression that matches only this text.
pub(crate) fn literal(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        if matches!(
            char,
            '\\' | '.' | '+' | '*' | '?' | '(' | ')' | '|' | '[' | ']' | '{' | '}' | '^' | '$'
        ) {
            escaped.push('\\');
        }
        escaped.push(char);
    }
    escaped
}

/// The class and the method of a name with these two parts.
pub(crate) fn class_and_method(test: &TestName) -> Option<(&str, &str)> {
    test.name
        .split_once(SEPARATOR)
        .filter(|(class, method)| !class.is_empty() && !method.contains(SEPARATOR))
}
