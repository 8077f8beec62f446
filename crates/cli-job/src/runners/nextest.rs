//! cargo-nextest: a filterset of binaries and tests.

use assay_domain::test::TestName;

use crate::runners::names::{Use, class_and_method};

/// `acme-shop::orders > tests::adds_up` as `(binary_id(=acme-shop::orders) & test(=tests::adds_up))`.
pub(crate) fn entry(test: &TestName) -> Result<String, &'static str> {
    let (binary, name) = class_and_method(test).ok_or("its name is not of a binary and a test")?;
    Ok(format!(
        "(binary_id(={}) & test(={}))",
        escaped(binary),
        escaped(name)
    ))
}

/// A text, escaped for an exact match in a filterset.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        if matches!(char, '\\' | ')' | ',') {
            escaped.push('\\');
        }
        escaped.push(char);
    }
    escaped
}

/// The filterset.
pub(crate) fn filterset(entries: &[String], list_use: Use) -> String {
    match (entries, list_use) {
        ([], Use::Deselect) => "all()\n".to_owned(),
        ([], Use::Select) => "none()\n".to_owned(),
        (entries, Use::Deselect) => format!("not ({})\n", entries.join(" | ")),
        (entries, Use::Select) => format!("{}\n", entries.join(" | ")),
    }
}
