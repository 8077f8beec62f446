//! cargo-nextest: a filterset of binaries and tests.

use assay_domain::test::TestName;

use crate::{Use, class_and_method};

/// `acme-shop::orders > tests::adds_up` as `(binary_id(=acme-shop::orders) & test(=tests::adds_up))`.
pub(crate) fn entry(test: &TestName) -> Result<String, &'static str> {
    let (binary, name) = class_and_method(test).ok_or("its name is not of a binary and a test")?;
    let is_plain = |text: &str| !text.contains(['(', ')', '\\', ',', '/', '"', ' ']);
    if is_plain(binary) && is_plain(name) {
        Ok(format!("(binary_id(={binary}) & test(={name}))"))
    } else {
        Err("its name has characters that a filterset cannot hold")
    }
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
