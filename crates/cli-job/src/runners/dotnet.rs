//! .NET: a filter of VSTest by fully qualified names. The characters that [`entry`] accepts have no special meaning in
//! a filter.

use assay_domain::test::TestName;

use crate::runners::names::{Use, class_and_method};

/// `Shop.CartTests > Adds` as `Shop.CartTests.Adds`.
pub(crate) fn entry(test: &TestName) -> Result<String, &'static str> {
    let (class, method) = class_and_method(test).ok_or("its name is not of a class and a method")?;
    let is_plain = |char: char| char.is_alphanumeric() || matches!(char, '_' | '.' | '+' | '`');
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
        // An empty filter would run every test. This filter contradicts itself, so it runs none.
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
