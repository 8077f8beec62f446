//! .NET: a filter of VSTest by fully qualified names. None of the characters that [`entry`] accepts has a meaning in a filter.

use assay_domain::test::TestName;

use crate::{Use, class_and_method};

/// `Shop.CartTests > Adds` as `Shop.CartTests.Adds`.
pub(crate) fn entry(test: &TestName) -> Result<String, &'static str> {
    let (class, method) = class_and_method(test).ok_or("its name is not of a class and a method")?;
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '+' | '`');
    if method.contains('(') {
        Err("a filter cannot tell the parameters of a test apart")
    } else if class.chars().all(is_plain) && method.chars().all(is_plain) {
        Ok(format!("{class}.{method}"))
    } else {
        Err("its name is not that of a method")
    }
}

/// The filter.
pub(crate) fn filter(entries: &[String], list_use: Use) -> String {
    let (sign, joined) = match (entries, list_use) {
        // An empty filter runs every test, so that this one contradicts itself.
        ([], Use::Select) => return "FullyQualifiedName=none&FullyQualifiedName!=none\n".to_owned(),
        (_, Use::Deselect) => ("!=", "&"),
        (_, Use::Select) => ("=", "|"),
    };
    let terms: Vec<String> = entries
        .iter()
        .map(|entry| format!("FullyQualifiedName{sign}{entry}"))
        .collect();
    format!("{}\n", terms.join(joined))
}
