//! Maven's Surefire and Failsafe: patterns of classes and methods for `-Dtest` and `-Dit.test`.

use assay_domain::test::TestName;

use crate::{Use, class_and_method};

/// `org.example.OrderTest > total` as `org.example.OrderTest#total`.
pub(crate) fn entry(test: &TestName) -> Result<String, &'static str> {
    let (class, method) = class_and_method(test).ok_or("its name is not of a class and a method")?;
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$');
    // JUnit 5 writes a method without parameters as `total()`.
    let method = method.strip_suffix("()").unwrap_or(method);
    if class.chars().all(is_plain) && method.chars().all(is_plain) {
        Ok(format!("{class}#{method}"))
    } else {
        Err("its name is not that of a method: it has parameters or a display name")
    }
}

/// The patterns, joined by commas.
pub(crate) fn patterns(entries: &[String], list_use: Use) -> String {
    let sign = match list_use {
        Use::Deselect => "!",
        Use::Select => "",
    };
    let signed: Vec<String> = entries.iter().map(|entry| format!("{sign}{entry}")).collect();
    format!("{}\n", signed.join(","))
}
